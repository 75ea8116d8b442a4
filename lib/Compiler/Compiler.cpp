//===- Compiler.cpp - Compilation of StableHLO ----------------------------===//

#include "fp8/Compiler/Compiler.h"
#include "GPUKernels.h"
#include "KernelCache.h"
#include "ObjectCode.h"
#include "Threads.h"
#include "TransferVerdicts.h"
#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Codegen/GPUObject/Object.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Compiler/BuildId.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Kernels/CostReport.h"
#include "fp8/Kernels/MemoryReport.h"
#include "fp8/Pipelines/GPU.h"
#include "fp8/Pipelines/Import.h"
#include "fp8/Pipelines/Lowering.h"
#include "fp8/Pipelines/Quantize.h"
#include "fp8/Pipelines/Structure.h"
#include "fp8/Support/ElementTypes.h"
#include "fp8/Support/InternalErrors.h"
#include "fp8/Support/OutputFile.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Runs and times the pipeline that `build` creates, and dumps its result.
LogicalResult runStage(ModuleOp module, const CompileOptions &options,
                       StringRef stage, double &seconds,
                       function_ref<void(OpPassManager &)> build,
                       StageInput input = StageInput::CompilersOwn) {
  auto begin = std::chrono::steady_clock::now();
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  build(pm);
  labelInternalErrors(pm, stage, input);
  LogicalResult result = pm.run(module);
  if (succeeded(result))
    result = verifyStage(module, stage);
  seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (options.dumpDir.empty() || failed(result))
    return result;
  SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, options.name + "-" + stage + ".mlir");
  // If the directory could not be created, opening the file reports it.
  (void)llvm::sys::fs::create_directories(options.dumpDir);
  if (llvm::Error error =
          writeFile(path, [&](raw_ostream &os) { module.print(os); }))
    return emitError(module.getLoc()) << llvm::toString(std::move(error));
  return success();
}

fp8_role roleOf(ArgRole role) {
  switch (role) {
  case ArgRole::State:
    return FP8_ROLE_STATE;
  case ArgRole::Frozen:
    return FP8_ROLE_FROZEN;
  case ArgRole::Batch:
    return FP8_ROLE_BATCH;
  case ArgRole::Key:
    return FP8_ROLE_KEY;
  case ArgRole::Constant:
    return FP8_ROLE_CONSTANT;
  }
  llvm_unreachable("unknown role");
}

fp8_kind kindOf(StateKind kind) {
  switch (kind) {
  case StateKind::Parameter:
    return FP8_KIND_PARAMETER;
  case StateKind::Moment1:
    return FP8_KIND_MOMENT1;
  case StateKind::Moment2:
    return FP8_KIND_MOMENT2;
  case StateKind::Step:
    return FP8_KIND_STEP;
  case StateKind::Gradient:
  case StateKind::Average:
  case StateKind::Other:
    return FP8_KIND_OTHER;
  }
  llvm_unreachable("unknown kind");
}

fp8_kind kindOf(ResultKind kind) {
  switch (kind) {
  case ResultKind::State:
    return FP8_KIND_STATE;
  case ResultKind::Loss:
    return FP8_KIND_LOSS;
  case ResultKind::Metric:
    return FP8_KIND_METRIC;
  case ResultKind::Output:
    return FP8_KIND_OUTPUT;
  case ResultKind::TraceQuantization:
    return FP8_KIND_TRACE_QUANTIZATION;
  case ResultKind::TraceUpdate:
    return FP8_KIND_TRACE_UPDATE;
  case ResultKind::TraceAlignment:
    return FP8_KIND_TRACE_ALIGNMENT;
  }
  llvm_unreachable("unknown kind");
}

/// Returns the signature after scaled tensors are split into payload and scale,
/// which follow each other.
Signature splitScaled(const Signature &signature) {
  Signature split;
  for (SignatureArg arg : signature.args) {
    auto scaled = dyn_cast<ScaledType>(arg.type);
    if (scaled)
      arg.type = scaled.getPayloadType();
    arg.index = split.args.size();
    split.args.push_back(arg);
    if (!scaled)
      continue;
    arg.path += FP8Dialect::kScaleSuffix;
    arg.type = scaled.getScaleTensorType();
    ++arg.index;
    split.args.push_back(std::move(arg));
  }
  for (SignatureResult result : signature.results) {
    auto scaled = dyn_cast<ScaledType>(result.type);
    if (scaled)
      result.type = scaled.getPayloadType();
    result.index = split.results.size();
    split.results.push_back(result);
    if (!scaled)
      continue;
    result.path += FP8Dialect::kScaleSuffix;
    if (result.kind == ResultKind::State)
      result.statePath += FP8Dialect::kScaleSuffix;
    result.type = scaled.getScaleTensorType();
    ++result.index;
    split.results.push_back(std::move(result));
  }
  return split;
}

/// Describes one argument or result to the runtime.
FailureOr<TensorDescription> describe(const std::string &path, Type type,
                                      Location loc) {
  auto tensor = cast<RankedTensorType>(type);
  TensorDescription description;
  description.name = path;
  description.shape = tensor.getShape().vec();
  description.dtype = dtypeOf(tensor.getElementType());
  if (description.dtype == FP8_NUM_DTYPES)
    return emitError(loc) << "element type of '" << path
                          << "' is not supported at run time: " << type;
  return description;
}

/// Reads the parts that ranks have of an argument, if it is distributed.
void readPart(func::FuncOp function, unsigned index,
              TensorDescription &argument) {
  auto part = function.getArgAttrOfType<DictionaryAttr>(
      index, stablehlo::kPartAttrName);
  if (!part)
    return;
  auto whole = part.getAs<DenseI64ArrayAttr>(stablehlo::kPartWholeName);
  argument.whole = whole.asArrayRef().vec();
  auto offsets = part.getAs<DenseIntElementsAttr>(stablehlo::kPartOffsetsName);
  llvm::append_range(argument.partOffsets, offsets.getValues<int64_t>());
}

/// Returns the scaled type that an argument had before it was split; null if it
/// had none.
ScaledType scaledTypeOf(const Signature &whole, StringRef path) {
  const SignatureArg *arg = whole.findArg(path);
  return arg ? dyn_cast<ScaledType>(arg->type) : ScaledType();
}

/// Describes the part of the scales that belongs to a part of a payload, which
/// consists of whole tiles. A single scale for all has no parts.
void readPartOfScales(ScaledType type, const TensorDescription &payload,
                      TensorDescription &scales) {
  if (payload.whole.empty() || scales.shape.empty())
    return;
  auto tileOf = [&](size_t dim) {
    int64_t tile = type.getTile()[dim];
    return tile == ScaledType::kWhole ? payload.whole[dim] : tile;
  };
  for (auto [dim, size] : llvm::enumerate(payload.whole))
    scales.whole.push_back(llvm::divideCeil(size, tileOf(dim)));
  for (auto [i, offset] : llvm::enumerate(payload.partOffsets))
    scales.partOffsets.push_back(offset / tileOf(i % payload.whole.size()));
}

/// Describes the arguments and results of `function`: its signature after the
/// fp8 stage, in the order of the schedule's buffers.
LogicalResult describeSignature(func::FuncOp function,
                                ExecutableFunction &result) {
  FailureOr<Signature> whole = Signature::fromAttributes(function);
  if (failed(whole))
    return failure();
  Signature signature = splitScaled(*whole);
  for (const SignatureArg &arg : signature.args) {
    const SignatureArg *written = whole->findArg(arg.path);
    Location loc = written ? function.getArgument(written->index).getLoc()
                           : function.getLoc();
    FailureOr<TensorDescription> argument = describe(arg.path, arg.type, loc);
    if (failed(argument))
      return failure();
    argument->role = roleOf(arg.role);
    argument->kind = kindOf(arg.kind);
    argument->vocabulary = arg.vocabulary.value_or(-1);
    argument->zeroInit = arg.zeroInit;
    if (written)
      readPart(function, written->index, *argument);
    if (!written && !result.arguments.empty())
      if (auto scaled = scaledTypeOf(*whole, result.arguments.back().name))
        readPartOfScales(scaled, result.arguments.back(), *argument);
    result.arguments.push_back(std::move(*argument));
  }
  for (const SignatureResult &returned : signature.results) {
    FailureOr<TensorDescription> description =
        describe(returned.path, returned.type, function.getLoc());
    if (failed(description))
      return failure();
    description->kind = kindOf(returned.kind);
    if (const SignatureArg *arg = signature.findArg(returned.statePath))
      description->stateArg = arg->index;
    result.results.push_back(std::move(*description));
  }
  return success();
}

/// Returns the bytes of a constant as they lie in memory.
std::string constantBytes(memref::GlobalOp global) {
  auto elements = cast<DenseElementsAttr>(*global.getInitialValue());
  std::string bytes;
  if (elements.getElementType().isInteger(1)) {
    for (bool value : elements.getValues<bool>())
      bytes.push_back(value);
    return bytes;
  }
  ArrayRef<char> raw = elements.getRawData();
  size_t repeat = elements.isSplat() ? elements.getNumElements() : 1;
  bytes.reserve(repeat * raw.size());
  bytes.append(raw.begin(), raw.end());
  // Fill in a splat by doubling.
  while (bytes.size() < repeat * raw.size())
    bytes.append(bytes, 0,
                 std::min(bytes.size(), repeat * raw.size() - bytes.size()));
  return bytes;
}

/// Returns the public function of the module.
FailureOr<func::FuncOp> publicFunction(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (func.isPublic())
      return func;
  return module.emitError("expected a public function");
}

/// Moves the function with this `fp8.entry`, if there is one, to a module of
/// its own.
OwningOpRef<ModuleOp> extractEntry(ModuleOp module, StringRef entry) {
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

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Compiles kernels and schedule to machine code.
FailureOr<CompiledObjects> compileForCPU(ModuleOp module,
                                         const CompileOptions &options,
                                         KernelCache *kernels,
                                         CompileStats &stats) {
  if (failed(runStage(module, options, "llvm", stats.codegenSeconds,
                      buildLLVMPipeline)))
    return failure();
  auto begin = std::chrono::steady_clock::now();
  auto code =
      compileObjects(module, options.threads, options.optimize, kernels);
  stats.llvmSeconds = secondsSince(begin);
  return code;
}

/// Compiles kernels for a GPU, and the schedule for the host CPU.
FailureOr<CompiledObjects> compileForGPU(ModuleOp module,
                                         const CompileOptions &options,
                                         const Executable &executable,
                                         CompileStats &stats) {
  llvm::Expected<GPUImage> image = parseGPUImage(executable.gpuImage);
  if (!image)
    return emitError(module.getLoc()) << llvm::toString(image.takeError());
  if (failed(runStage(module, options, "nvvm", stats.codegenSeconds,
                      buildNVVMPipeline)) ||
      failed(runStage(module, options, "schedule", stats.codegenSeconds,
                      [&](OpPassManager &pm) {
                        buildGPUSchedulePipeline(pm, options.gpuExpand);
                      })))
    return failure();
  auto begin = std::chrono::steady_clock::now();
  FailureOr<std::vector<ObjectCode>> kernels =
      compileGPUKernels(module, executable.target, *image, options.threads);
  stats.llvmSeconds = secondsSince(begin);
  if (failed(kernels) ||
      failed(runStage(module, options, "llvm", stats.codegenSeconds,
                      [&](OpPassManager &pm) {
                        buildHostPipeline(pm, options.targetCPU);
                      })))
    return failure();
  begin = std::chrono::steady_clock::now();
  auto code = compileObjects(module, options.threads, options.optimize,
                             /*kernels=*/nullptr);
  if (failed(code))
    return failure();
  kernels->push_back(std::move(code->objects.back()));
  code->objects = std::move(*kernels);
  stats.llvmSeconds += secondsSince(begin);
  return code;
}

/// Looks up the kernels of `module` in the cache, and replaces those that it
/// has by declarations, unless the IR is dumped. Returns null without a cache.
FailureOr<std::unique_ptr<KernelCache>>
findKernels(ModuleOp module, const CompileOptions &options) {
  if (!options.cache || !options.targetGPU.empty())
    return std::unique_ptr<KernelCache>();
  PassManager pm(module.getContext());
  buildPlanPipeline(pm, options.targetCPU, countThreads(options.runThreads));
  if (failed(pm.run(module)))
    return failure();
  FailureOr<CPUTargetAttr> target = targetOf(module);
  if (failed(target))
    return failure();
  auto kernels = std::make_unique<KernelCache>(*options.cache, module, *target,
                                               options.optimize);
  if (options.dumpDir.empty())
    kernels->declareKnown(module);
  return kernels;
}

/// Adds the kernels' need for scratch bytes, and their number.
void addKernels(ModuleOp module, ExecutableFunction &result,
                CompileStats &stats) {
  for (Operation &op : *module.getBody())
    if (auto bytes = op.getAttrOfType<IntegerAttr>(kScratchBytesAttr)) {
      result.scratchBytes = std::max(result.scratchBytes, bytes.getInt());
      ++stats.kernels;
    }
  for (auto kernel : module.getOps<gpu::GPUModuleOp>())
    if (auto launch = kernel->getAttrOfType<GPULaunchAttr>(
            FP8Dialect::kGPULaunchAttrName)) {
      result.scratchBytes = std::max(result.scratchBytes,
                                     launch.getScratch() * launch.getBlocks());
      ++stats.kernels;
    }
}

/// Adds the JSON of what computes each dot, if the target may use cuBLASLt.
void addDotChoices(ModuleOp module, StringRef name, Executable &executable) {
  auto rows = module->getAttrOfType<ArrayAttr>(FP8Dialect::kDotChoicesAttrName);
  if (!rows)
    return;
  llvm::json::Array dots;
  for (auto row : rows.getAsRange<DictionaryAttr>()) {
    llvm::json::Object dot;
    for (NamedAttribute field : row) {
      llvm::json::Value &value = dot[field.getName().strref()];
      if (auto text = dyn_cast<StringAttr>(field.getValue()))
        value = text.getValue();
      else if (auto number = dyn_cast<IntegerAttr>(field.getValue()))
        value = number.getInt();
      else if (auto sizes = dyn_cast<DenseI64ArrayAttr>(field.getValue()))
        value = llvm::json::Array(sizes.asArrayRef());
      else if (auto types = dyn_cast<ArrayAttr>(field.getValue()))
        value = llvm::json::Array(llvm::map_range(types, [](Attribute type) {
          std::string text;
          llvm::raw_string_ostream(text) << cast<TypeAttr>(type).getValue();
          return text;
        }));
    }
    dots.push_back(std::move(dot));
  }
  executable.texts["dots-" + name.str() + ".json"] =
      llvm::formatv("{0:2}\n", llvm::json::Value(std::move(dots))).str();
}

/// Adds what the schedules say: the arena, the shards of the arguments and the
/// names of the launches.
void addSchedules(ModuleOp module, ExecutableFunction &result) {
  for (auto schedule : module.getOps<ScheduleOp>()) {
    // The arena comes first.
    for (size_t i = 0; i < result.arguments.size(); ++i) {
      auto number = [&](StringRef name, int64_t missing) {
        auto attr = schedule.getArgAttrOfType<IntegerAttr>(i + 1, name);
        return attr ? attr.getInt() : missing;
      };
      result.arguments[i].shard = number(FP8Dialect::kShardAttrName, 0);
      result.arguments[i].slices = number(FP8Dialect::kSlicesAttrName, 1);
    }
    result.arenaBytes = schedule.getArenaBytes().value_or(0);
    auto name = [&](auto op) {
      size_t number = *op.getNumber(); // fp8-plan-memory gives it.
      result.launchNames.resize(
          std::max(result.launchNames.size(), number + 1));
      result.launchNames[number] = op.getLabel().value_or("").str();
    };
    schedule.walk([&](Operation *op) {
      if (auto launch = dyn_cast<LaunchOp>(op))
        name(launch);
      else if (auto start = dyn_cast<StartAllReduceOp>(op))
        name(start);
      else if (auto start = dyn_cast<StartExchangeOp>(op))
        name(start);
    });
  }
}

/// Adds the bytes of the constants by their numbers, which fp8-plan-memory
/// gives.
void addConstants(ModuleOp module, ExecutableFunction &result) {
  for (auto global : module.getOps<memref::GlobalOp>()) {
    size_t index =
        global->getAttrOfType<IntegerAttr>(FP8Dialect::kNumberAttrName)
            .getInt();
    result.constants.resize(std::max(result.constants.size(), index + 1));
    result.constants[index] = constantBytes(global);
  }
}

/// Runs all stages after fp8, and adds the function and its code to
/// `executable`. `stats` holds the times of the previous stages. `verdicts` are
/// completed, unless null.
LogicalResult addFunction(ModuleOp module, const CompileOptions &options,
                          CompileStats stats, MemoryReport &memory,
                          CostReport &cost, Executable &executable,
                          VerdictReport *verdicts = nullptr) {
  FailureOr<func::FuncOp> function = publicFunction(module);
  ExecutableFunction result;
  result.name = options.name;
  if (failed(function) || failed(describeSignature(*function, result)))
    return failure();
  if (failed(runStage(module, options, "structured", stats.structureSeconds,
                      buildStructurePipeline)) ||
      failed(runStage(module, options, "kernels", stats.kernelsSeconds,
                      [&](OpPassManager &pm) {
                        buildKernelsPipeline(pm,
                                             options.targetGPU.empty()
                                                 ? PayloadLayouts::AsTensors
                                                 : PayloadLayouts::AlongK,
                                             &memory);
                      })))
    return failure();
  cost = makeCostReport(module);
  if (verdicts)
    addTransferVerdicts(module, *verdicts);
  auto begin = std::chrono::steady_clock::now();
  FailureOr<std::unique_ptr<KernelCache>> kernels =
      findKernels(module, options);
  stats.codegenSeconds += secondsSince(begin);
  if (failed(kernels))
    return failure();
  if (failed(runStage(module, options, "codegen", stats.codegenSeconds,
                      [&](OpPassManager &pm) {
                        if (options.targetGPU.empty())
                          buildCodegenPipeline(
                              pm, options.targetCPU,
                              countThreads(options.runThreads));
                        else
                          buildGPUCodegenPipeline(pm, options.targetGPU);
                      })))
    return failure();

  if (*kernels)
    (*kernels)->describe(module);
  addKernels(module, result, stats);
  addDotChoices(module, options.name, executable);
  addSchedules(module, result);
  // The memory plan does not include the part of the arena for cuBLASLt.
  memory.scratchBytes =
      result.scratchBytes +
      std::max<int64_t>(result.arenaBytes - memory.arenaBytes, 0);
  stats.launches = result.launchNames.size();
  addConstants(module, result);

  FailureOr<CompiledObjects> code =
      options.targetGPU.empty()
          ? compileForCPU(module, options, kernels->get(), stats)
          : compileForGPU(module, options, executable, stats);
  if (failed(code))
    return failure();
  stats.cachedKernels = code->cachedKernels;
  result.entry = code->entry().str();
  for (const ObjectCode &object : ArrayRef(code->objects).drop_back())
    result.kernels.push_back(object.symbol);
  result.stats = stats;

  Executable compiled;
  compiled.functions.push_back(std::move(result));
  compiled.objects = std::move(code->objects);
  executable.merge(std::move(compiled));
  return success();
}

/// Returns an executable without functions that names this compiler.
FailureOr<Executable> beginExecutable(ModuleOp module,
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

/// Adds the text that `print` writes, if any.
void addText(Executable &executable, StringRef name,
             function_ref<void(raw_ostream &)> print) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  if (!text.empty())
    executable.texts[name.str()] = std::move(text);
}

/// Adds the texts about the step.
void addReports(Executable &executable, const VerdictReport &verdicts,
                const MemoryReport &memory, const CostReport &cost,
                const CompileOptions &options) {
  addText(executable, "verdicts.json",
          [&](raw_ostream &os) { verdicts.printJSON(os); });
  addText(executable, "verdicts.txt",
          [&](raw_ostream &os) { verdicts.printTable(os); });
  addText(executable, "summary.txt",
          [&](raw_ostream &os) { os << verdicts.getSummary() << "\n"; });
  addText(executable, "memory.json",
          [&](raw_ostream &os) { memory.printJSON(os); });
  addText(executable, "memory.txt", [&](raw_ostream &os) { memory.print(os); });
  // The text exists if several ranks may run the step. They compare its first
  // line: a rank with other options would wait for messages that nobody sends.
  addText(executable, "ranks.txt", [&](raw_ostream &os) {
    if (options.dataParallel)
      os << "--zero " << options.zero
         << (options.globalAmax ? " --global-amax\n" : "\n")
         << verdicts.getCollectiveSummary() << "\n";
  });
  addText(executable, "cost.json",
          [&](raw_ostream &os) { cost.printJSON(os); });
}

/// Makes the step return the result of the head's forward dot, if there is
/// exactly one and it is outside of loops and branches.
void addLogits(ModuleOp module) {
  FailureOr<func::FuncOp> function = publicFunction(module);
  if (failed(function))
    return;
  LinearLayers layers(*function);
  SmallVector<Operation *> heads;
  for (const DotInfo &dot : layers.getDots())
    if (dot.head && dot.role == DotRole::Forward && !dot.recomputed)
      heads.push_back(dot.dot);
  if (heads.size() != 1 || heads.front()->getParentOp() != *function)
    return;
  Value logits = heads.front()->getResult(0);
  Builder builder(module.getContext());
  unsigned index = function->getNumResults();
  (void)function->insertResult(
      index, logits.getType(),
      builder.getDictionaryAttr(
          {builder.getNamedAttr(kPathAttr,
                                builder.getStringAttr(FP8_LOGITS_NAME)),
           builder.getNamedAttr(kKindAttr, builder.getStringAttr("output"))}));
  function->getBody().front().getTerminator()->insertOperands(index, logits);
}

/// Compiles a separate module that has been through the fp8 stage.
LogicalResult compileFunction(OwningOpRef<ModuleOp> module, StringRef name,
                              const CompileOptions &options,
                              Executable &executable) {
  CompileOptions ownOptions = options;
  ownOptions.name = name.str();
  MemoryReport memory;
  CostReport cost;
  return addFunction(*module, ownOptions, CompileStats(), memory, cost,
                     executable);
}

/// Compiles the companions of the step.
LogicalResult compileEntries(ModuleOp module, const CompileOptions &options,
                             Executable &executable) {
  for (StringRef name : {"store", "load"}) {
    OwningOpRef<ModuleOp> entry = extractEntry(module, name);
    if (entry &&
        failed(compileFunction(std::move(entry), name, options, executable)))
      return failure();
  }
  return success();
}

/// Compiles the functions that export and import the parameters of the step in
/// `module`.
LogicalResult compileExport(ExportPlan &plan, ModuleOp module,
                            ArrayRef<GatedUnitVerdict> units,
                            const CompileOptions &options,
                            Executable &executable) {
  FailureOr<func::FuncOp> step = publicFunction(module);
  if (failed(step) || failed(plan.fold(*step, units)))
    return failure();
  executable.texts["export.json"] = plan.manifest();
  MLIRContext *context = module.getContext();
  return success(succeeded(compileFunction(plan.buildEncode(context), "export",
                                           options, executable)) &&
                 succeeded(compileFunction(plan.buildDecode(context), "import",
                                           options, executable)));
}

} // namespace

std::string CompileOptions::setTarget(StringRef text) {
  StringRef gpu = text;
  if (gpu.consume_front("nvptx:"))
    targetGPU = gpu.str();
  else if (text == "cpu")
    targetGPU.clear();
  else
    return "expected a target of cpu or nvptx:GPU (nvptx:sm_89, nvptx:sm_90a, "
           "nvptx:sm_100a, nvptx:sm_120a) but got '" +
           text.str() + "'";
  return "";
}

OwningOpRef<ModuleOp> fp8::parseModule(StringRef file, MLIRContext &context) {
  llvm::SourceMgr sources;
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer) {
    emitError(UnknownLoc::get(&context))
        << "cannot read '" << file << "': " << buffer.getError().message();
    return nullptr;
  }
  sources.AddNewSourceBuffer(std::move(*buffer), SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

FailureOr<Signature> fp8::importModule(ModuleOp module,
                                       const CompileOptions &options) {
  double seconds = 0;
  ImportConfig config;
  config.entry = options.entry;
  config.signature = options.signature;
  if (failed(runStage(
          module, options, "import", seconds,
          [&](OpPassManager &pm) { buildImportPipeline(pm, config); },
          StageInput::Step)))
    return failure();
  FailureOr<func::FuncOp> function = publicFunction(module);
  if (failed(function))
    return failure();
  return Signature::fromAttributes(*function);
}

FailureOr<Executable> fp8::compile(ModuleOp module,
                                   const CompileOptions &options) {
  FailureOr<Executable> result = beginExecutable(module, options);
  if (failed(result))
    return failure();
  CompileStats stats;
  auto begin = std::chrono::steady_clock::now();
  FailureOr<Signature> signature = importModule(module, options);
  if (failed(signature))
    return failure();
  addText(*result, "signature.json",
          [&](raw_ostream &os) { printSignatureJSON(*signature, os); });
  addText(*result, "state.txt", [&](raw_ostream &os) {
    for (const std::string &path : findUnchangedState(*publicFunction(module)))
      os << path << "\n";
  });
  stats.importSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();

  if (options.returnLogits)
    addLogits(module);
  std::optional<ExportPlan> plan;
  if (options.exportFormat) {
    FailureOr<func::FuncOp> function = publicFunction(module);
    FailureOr<ExportPlan> made =
        ExportPlan::make(*function, *options.exportFormat);
    if (failed(made))
      return failure();
    plan = std::move(*made);
  }

  QuantizePipelineOptions quantize;
  quantize.recipe = options.recipe;
  for (const std::string &assignment : options.recipeOverrides)
    quantize.set.push_back(assignment);
  quantize.failOnFallback = options.failOnFallback;
  quantize.dataParallel = options.dataParallel;
  quantize.lossReduction = options.lossReduction;
  quantize.zero = options.zero;
  quantize.globalAmax = options.globalAmax;
  quantize.trace = options.trace;
  VerdictReport verdicts;
  MemoryReport memory;
  CostReport cost;
  if (failed(runStage(
          module, options, "fp8", stats.fp8Seconds,
          [&](OpPassManager &pm) {
            buildQuantizePipeline(pm, quantize, &verdicts);
          },
          StageInput::Step)) ||
      failed(compileEntries(module, options, *result)) ||
      (plan && failed(compileExport(*plan, module, verdicts.gatedUnits, options,
                                    *result))) ||
      failed(addFunction(module, options, stats, memory, cost, *result,
                         &verdicts)))
    return failure();
  addReports(*result, verdicts, memory, cost, options);
  // The main function comes first.
  std::rotate(result->functions.begin(), std::prev(result->functions.end()),
              result->functions.end());
  return result;
}

FailureOr<Executable> fp8::compileQuantized(ModuleOp module,
                                            const CompileOptions &options) {
  FailureOr<Executable> result = beginExecutable(module, options);
  MemoryReport memory;
  CostReport cost;
  if (failed(result) || failed(compileEntries(module, options, *result)) ||
      failed(
          addFunction(module, options, CompileStats(), memory, cost, *result)))
    return failure();
  return result;
}
