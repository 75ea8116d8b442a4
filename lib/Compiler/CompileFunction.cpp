//===- CompileFunction.cpp - The stages of one function -------------------===//

#include "CompileFunction.h"
#include "DescribeFunction.h"
#include "DescribeSignature.h"
#include "GPUKernels.h"
#include "KernelCache.h"
#include "ObjectCode.h"
#include "RunStage.h"
#include "Stopwatch.h"
#include "Threads.h"
#include "TransferVerdicts.h"
#include "fp8/Codegen/GPUObject/Object.h"
#include "fp8/Compiler/BuildId.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Pipelines/GPU.h"
#include "fp8/Pipelines/Lowering.h"
#include "fp8/Pipelines/Structure.h"

using namespace mlir;
using namespace mlir::fp8;

FailureOr<Executable> fp8::beginExecutable(ModuleOp module,
                                           const CompileOptions &options) {
  auto target = findTarget(options.targetCPU);
  if (!target)
    return emitError(module.getLoc()) << llvm::toString(target.takeError());
  Executable executable;
  executable.target = std::move(*target);
  if (!options.targetGPU.empty()) {
    module.getContext()->loadDialect<FP8Dialect>();
    auto gpu = makeGPUTarget(module.getContext(), options.targetGPU);
    if (!gpu)
      return emitError(module.getLoc()) << llvm::toString(gpu.takeError());
    executable.gpu = gpu->getChip().str();
    executable.gpuImage = !options.gpuImage.empty() ? options.gpuImage
                          : findPtxas().empty()     ? "ptx"
                                                    : "cubin";
    auto image = parseGPUImage(executable.gpuImage);
    if (!image)
      return emitError(module.getLoc()) << llvm::toString(image.takeError());
  }
  executable.compiler = getCompilerVersion().str();
  executable.build = getCompilerBuildId().str();
  return executable;
}

FailureOr<func::FuncOp> fp8::publicFunction(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (func.isPublic())
      return func;
  return module.emitError("expected a public function");
}

namespace {

/// Runs the stages after fp8 on a module.
class FunctionCompiler {
public:
  FunctionCompiler(ModuleOp module, const CompileOptions &options,
                   const CompileStats &stats, Reports &reports,
                   Executable &executable)
      : module(module), options(options), reports(reports),
        executable(executable), isForGPU(!options.targetGPU.empty()) {
    result.name = options.name;
    result.stats = stats;
  }

  LogicalResult run();

private:
  LogicalResult runStage(StringRef stage, double &seconds,
                         function_ref<void(OpPassManager &)> build) {
    return fp8::runStage(module, options, stage, seconds, build);
  }
  LogicalResult formKernels();
  LogicalResult findKernels();
  LogicalResult lowerKernels();
  void describe();
  FailureOr<CompiledObjects> compileForCPU();
  FailureOr<CompiledObjects> compileForGPU();
  FailureOr<std::vector<ObjectCode>> compileKernelsForGPU(GPUImage image);
  FailureOr<CompiledObjects> makeObjects();
  void addToExecutable(CompiledObjects code);

  ModuleOp module;
  const CompileOptions &options;
  Reports &reports;
  Executable &executable;
  bool isForGPU;
  ExecutableFunction result;
  std::unique_ptr<KernelCache> kernels; ///< Null without a cache.
};

} // namespace

/// Forms kernels and plans memory.
LogicalResult FunctionCompiler::formKernels() {
  CompileStats &stats = result.stats;
  if (failed(runStage("structured", stats.structureSeconds,
                      buildStructurePipeline)) ||
      failed(runStage("kernels", stats.kernelsSeconds, [&](OpPassManager &pm) {
        buildKernelsPipeline(
            pm, isForGPU ? PayloadLayouts::AlongK : PayloadLayouts::AsTensors,
            &reports.memory);
      })))
    return failure();
  reports.cost = makeCostReport(module);
  addTransferVerdicts(module, reports.verdicts);
  return success();
}

/// Looks up the kernels in the cache, and replaces those that it has by
/// declarations, unless the IR is dumped.
LogicalResult FunctionCompiler::findKernels() {
  if (!options.cache || isForGPU)
    return success();
  Stopwatch watch;
  PassManager pm(module.getContext());
  buildPlanPipeline(pm, options.targetCPU, countThreads(options.runThreads));
  if (failed(pm.run(module)))
    return failure();
  FailureOr<CPUTargetAttr> target = targetOf(module);
  if (failed(target))
    return failure();
  kernels = std::make_unique<KernelCache>(*options.cache, module, *target,
                                          options.optimize);
  if (options.dumpDir.empty())
    kernels->declareKnown(module);
  result.stats.codegenSeconds += watch.seconds();
  return success();
}

/// Lowers kernels to the code of one task or block.
LogicalResult FunctionCompiler::lowerKernels() {
  if (failed(runStage(
          "codegen", result.stats.codegenSeconds, [&](OpPassManager &pm) {
            if (isForGPU)
              buildGPUCodegenPipeline(pm, options.targetGPU);
            else
              buildCodegenPipeline(pm, options.targetCPU,
                                   countThreads(options.runThreads));
          })))
    return failure();
  if (kernels)
    kernels->describe(module);
  return success();
}

/// Describes what the runtime has to know besides the code.
void FunctionCompiler::describe() {
  describeFunction(module, result);
  if (std::string dots = dotChoicesOf(module); !dots.empty())
    executable.texts["dots-" + result.name + ".json"] = std::move(dots);
  // The memory plan does not include the part of the arena for cuBLASLt.
  reports.memory.scratchBytes =
      result.scratchBytes +
      std::max<int64_t>(result.arenaBytes - reports.memory.arenaBytes, 0);
}

/// Makes machine code of what is in the LLVM dialect.
FailureOr<CompiledObjects> FunctionCompiler::makeObjects() {
  Stopwatch watch;
  auto code =
      compileObjects(module, options.threads, options.optimize, kernels.get());
  result.stats.llvmSeconds += watch.seconds();
  return code;
}

/// Compiles kernels and schedule to machine code.
FailureOr<CompiledObjects> FunctionCompiler::compileForCPU() {
  if (failed(runStage("llvm", result.stats.codegenSeconds, buildLLVMPipeline)))
    return failure();
  return makeObjects();
}

/// Compiles kernels to an image each, and lowers the schedule around them.
FailureOr<std::vector<ObjectCode>>
FunctionCompiler::compileKernelsForGPU(GPUImage image) {
  CompileStats &stats = result.stats;
  if (failed(runStage("nvvm", stats.codegenSeconds, buildNVVMPipeline)) ||
      failed(runStage("schedule", stats.codegenSeconds, [&](OpPassManager &pm) {
        buildGPUSchedulePipeline(pm, options.gpuExpand);
      })))
    return failure();
  Stopwatch watch;
  auto objects =
      compileGPUKernels(module, executable.target, image, options.threads);
  stats.llvmSeconds += watch.seconds();
  return objects;
}

/// Compiles kernels for a GPU, and the schedule for the host CPU.
FailureOr<CompiledObjects> FunctionCompiler::compileForGPU() {
  llvm::Expected<GPUImage> image = parseGPUImage(executable.gpuImage);
  if (!image)
    return emitError(module.getLoc()) << llvm::toString(image.takeError());
  FailureOr<std::vector<ObjectCode>> objects = compileKernelsForGPU(*image);
  if (failed(objects) || failed(runStage("llvm", result.stats.codegenSeconds,
                                         [&](OpPassManager &pm) {
                                           buildHostPipeline(pm,
                                                             options.targetCPU);
                                         })))
    return failure();
  FailureOr<CompiledObjects> code = makeObjects();
  if (failed(code))
    return failure();
  objects->push_back(std::move(code->objects.back()));
  code->objects = std::move(*objects);
  return code;
}

/// Adds the function with its code.
void FunctionCompiler::addToExecutable(CompiledObjects code) {
  result.stats.cachedKernels = code.cachedKernels;
  result.entry = code.entry().str();
  for (const ObjectCode &object : ArrayRef(code.objects).drop_back())
    result.kernels.push_back(object.symbol);
  Executable compiled;
  compiled.functions.push_back(std::move(result));
  compiled.objects = std::move(code.objects);
  executable.merge(std::move(compiled));
}

LogicalResult FunctionCompiler::run() {
  FailureOr<func::FuncOp> function = publicFunction(module);
  if (failed(function) || failed(describeSignature(*function, result)) ||
      failed(formKernels()) || failed(findKernels()) || failed(lowerKernels()))
    return failure();
  describe();
  FailureOr<CompiledObjects> code =
      isForGPU ? compileForGPU() : compileForCPU();
  if (failed(code))
    return failure();
  addToExecutable(std::move(*code));
  return success();
}

LogicalResult fp8::compileFunction(ModuleOp module,
                                   const CompileOptions &options,
                                   const CompileStats &stats, Reports &reports,
                                   Executable &executable) {
  return FunctionCompiler(module, options, stats, reports, executable).run();
}

LogicalResult fp8::compileCompanion(ModuleOp module, StringRef name,
                                    const CompileOptions &options,
                                    Executable &executable) {
  CompileOptions ownOptions = options;
  ownOptions.name = name.str();
  Reports reports; // The step's are those of the program.
  return compileFunction(module, ownOptions, CompileStats(), reports,
                         executable);
}

/// Moves the function with this `fp8.entry`, if there is one, to a module of
/// its own.
static OwningOpRef<ModuleOp> extractEntry(ModuleOp module, StringRef entry) {
  for (auto func : module.getOps<func::FuncOp>()) {
    auto attr = func->getAttrOfType<StringAttr>(FP8Dialect::kEntryAttrName);
    if (!attr || attr.getValue() != entry)
      continue;
    OwningOpRef<ModuleOp> own(ModuleOp::create(func.getLoc()));
    func->remove();
    own->push_back(func);
    func->removeAttr(FP8Dialect::kEntryAttrName);
    func.setPublic();
    return own;
  }
  return nullptr;
}

LogicalResult fp8::compileEntries(ModuleOp module,
                                  const CompileOptions &options,
                                  Executable &executable) {
  for (StringRef name : {"store", "load"}) {
    OwningOpRef<ModuleOp> entry = extractEntry(module, name);
    if (entry && failed(compileCompanion(*entry, name, options, executable)))
      return failure();
  }
  return success();
}
