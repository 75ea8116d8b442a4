//===- Compiler.cpp - StableHLO text to a runnable executable -------------===//

#include "fp8/Compiler/Compiler.h"
#include "InternalErrors.h"
#include "JIT.h"
#include "fp8/Analysis/LinearLayers.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Kernels/MemoryReport.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Pipelines/Import.h"
#include "fp8/Pipelines/Lowering.h"
#include "fp8/Pipelines/Quantize.h"
#include "fp8/Pipelines/Structure.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>

using namespace mlir;
using namespace mlir::fp8;

CompiledFunction::CompiledFunction()
    : memory(std::make_unique<MemoryReport>()) {}
CompiledFunction::~CompiledFunction() = default;

namespace {

class CompiledFunctionImpl : public CompiledFunction {
public:
  ~CompiledFunctionImpl() override { fp8_executable_destroy(handle); }
  const fp8_executable *executable() const override { return handle; }

  fp8_executable *handle = nullptr;
  std::unique_ptr<JITCode> code;
  std::vector<std::vector<char>> constants;
};

/// Runs the pipeline that `build` makes, times it, and dumps what comes out.
LogicalResult runStage(ModuleOp module, const CompileOptions &options,
                       StringRef stage, double &seconds,
                       function_ref<void(OpPassManager &)> build) {
  auto begin = std::chrono::steady_clock::now();
  PassManager pm(module.getContext());
  pm.enableVerifier(true);
  build(pm);
  InternalErrors internal(pm);
  LogicalResult result = pm.run(module);
  if (failed(result))
    internal.report(stage);
  seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (options.dumpDir.empty() || failed(result))
    return result;
  SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, options.name + "-" + stage + ".mlir");
  // Should it fail, so does the file.
  (void)llvm::sys::fs::create_directories(options.dumpDir);
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return emitError(module.getLoc())
           << "cannot write '" << path << "': " << error.message();
  module.print(os);
  return success();
}

fp8_dtype dtypeOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return FP8_DTYPE_BOOL;
    case 8:
      return isUnsigned ? FP8_DTYPE_U8 : FP8_DTYPE_I8;
    case 16:
      return isUnsigned ? FP8_DTYPE_U16 : FP8_DTYPE_I16;
    case 32:
      return isUnsigned ? FP8_DTYPE_U32 : FP8_DTYPE_I32;
    case 64:
      return isUnsigned ? FP8_DTYPE_U64 : FP8_DTYPE_I64;
    }
  }
  if (isa<Float8E4M3FNType>(type))
    return FP8_DTYPE_F8_E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return FP8_DTYPE_F8_E5M2;
  if (type.isF16())
    return FP8_DTYPE_F16;
  if (type.isBF16())
    return FP8_DTYPE_BF16;
  if (type.isF32())
    return FP8_DTYPE_F32;
  if (type.isF64())
    return FP8_DTYPE_F64;
  return FP8_NUM_DTYPES;
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

/// What the function takes and returns once scaled tensors are two: payload
/// and scale, one after the other.
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

/// The description of the compiled function: its signature after the fp8 stage,
/// in the order of buffers that the schedule uses.
struct Description {
  Signature signature;
  std::vector<fp8_tensor_info> arguments, results;
  std::vector<SmallVector<int64_t>> shapes;

  LogicalResult build(func::FuncOp function);
};

LogicalResult Description::build(func::FuncOp function) {
  FailureOr<Signature> whole = Signature::fromAttributes(function);
  if (failed(whole))
    return failure();
  signature = splitScaled(*whole);
  shapes.reserve(signature.args.size() + signature.results.size());
  auto describe = [&](const std::string &path, Type type, Location loc,
                      fp8_tensor_info &info) -> LogicalResult {
    auto tensor = cast<RankedTensorType>(type);
    info = fp8_tensor_info{};
    info.name = path.c_str();
    info.dtype = dtypeOf(tensor.getElementType());
    if (info.dtype == FP8_NUM_DTYPES)
      return emitError(loc) << "element type of '" << path
                            << "' is not supported at run time: " << type;
    shapes.emplace_back(tensor.getShape());
    info.rank = shapes.back().size();
    info.dims = shapes.back().data();
    return success();
  };
  for (const SignatureArg &arg : signature.args) {
    fp8_tensor_info &info = arguments.emplace_back();
    const SignatureArg *written = whole->findArg(arg.path);
    Location loc = written ? function.getArgument(written->index).getLoc()
                           : function.getLoc();
    if (failed(describe(arg.path, arg.type, loc, info)))
      return failure();
    info.role = roleOf(arg.role);
    info.kind = kindOf(arg.kind);
    info.vocabulary = arg.vocabulary.value_or(-1);
    info.zero_init = arg.zeroInit;
    info.state_arg = -1;
  }
  for (const SignatureResult &result : signature.results) {
    fp8_tensor_info &info = results.emplace_back();
    if (failed(describe(result.path, result.type, function.getLoc(), info)))
      return failure();
    info.kind = kindOf(result.kind);
    info.state_arg = -1;
    info.vocabulary = -1;
    if (const SignatureArg *arg = signature.findArg(result.statePath))
      info.state_arg = arg->index;
  }
  return success();
}

/// The bytes of a constant as they lie in memory.
std::vector<char> constantBytes(memref::GlobalOp global) {
  auto elements = cast<DenseElementsAttr>(*global.getInitialValue());
  std::vector<char> bytes;
  if (elements.getElementType().isInteger(1)) {
    for (bool value : elements.getValues<bool>())
      bytes.push_back(value);
    return bytes;
  }
  ArrayRef<char> raw = elements.getRawData();
  int64_t repeat = elements.isSplat() ? elements.getNumElements() : 1;
  for (int64_t i = 0; i < repeat; ++i)
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

/// The function of the module that is called from outside.
FailureOr<func::FuncOp> publicFunction(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (func.isPublic())
      return func;
  return module.emitError("expected a public function");
}

/// Moves the function with this `fp8.entry`, if there is one, to a module of
/// its own.
OwningOpRef<ModuleOp> takeEntry(ModuleOp module, StringRef entry) {
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

/// All stages after fp8.
LogicalResult finish(ModuleOp module, const CompileOptions &options,
                     CompiledFunctionImpl &result) {
  CompileStats &stats = result.stats;
  FailureOr<func::FuncOp> function = publicFunction(module);
  Description description;
  if (failed(function) || failed(description.build(*function)))
    return failure();
  if (failed(runStage(module, options, "structured", stats.structureSeconds,
                      buildStructurePipeline)) ||
      failed(runStage(module, options, "kernels", stats.kernelsSeconds,
                      [&](OpPassManager &pm) {
                        buildKernelsPipeline(pm, result.memory.get());
                      })) ||
      failed(runStage(module, options, "codegen", stats.codegenSeconds,
                      buildCodegenPipeline)))
    return failure();

  int64_t arenaBytes = 0, scratchBytes = 0;
  std::vector<std::string> launchNames;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (auto bytes = func->getAttrOfType<IntegerAttr>(kScratchBytesAttr)) {
      scratchBytes = std::max(scratchBytes, bytes.getInt());
      ++stats.kernels;
    }
    if (auto bytes = func->getAttrOfType<IntegerAttr>(kArenaBytesAttr)) {
      arenaBytes = bytes.getInt();
      func.walk([&](func::CallOp call) {
        // What the launch does is known from where its last op came from.
        launchNames.push_back(call.getCallee().str() + " " +
                              describeLocation(call.getLoc()));
      });
    }
  }
  stats.launches = launchNames.size();
  for (auto global : module.getOps<memref::GlobalOp>())
    result.constants.push_back(constantBytes(global));

  if (failed(runStage(module, options, "llvm", stats.codegenSeconds,
                      buildLLVMPipeline)))
    return failure();
  auto begin = std::chrono::steady_clock::now();
  FailureOr<std::unique_ptr<JITCode>> code =
      JITCode::create(module, options.threads);
  if (failed(code))
    return failure();
  result.code = std::move(*code);
  stats.llvmSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();

  std::vector<fp8_constant> constants;
  for (const std::vector<char> &bytes : result.constants)
    constants.push_back({bytes.data(), static_cast<int64_t>(bytes.size())});
  std::vector<const char *> names;
  for (const std::string &name : launchNames)
    names.push_back(name.c_str());
  fp8_executable_desc desc = {};
  desc.name = options.name.c_str();
  desc.entry = result.code->entry();
  desc.arguments = description.arguments.data();
  desc.num_arguments = description.arguments.size();
  desc.results = description.results.data();
  desc.num_results = description.results.size();
  desc.constants = constants.data();
  desc.num_constants = constants.size();
  desc.arena_bytes = arenaBytes;
  desc.scratch_bytes = scratchBytes;
  desc.launch_names = names.data();
  desc.num_launches = names.size();
  if (fp8_executable_create(&desc, &result.handle) != FP8_OK) {
    module.emitError() << fp8_last_error();
    return failure();
  }
  return success();
}

/// Returns what the forward dot of the head computes, and its path; "" if there
/// is not one such dot outside of loops and branches.
std::string addLogits(ModuleOp module) {
  FailureOr<func::FuncOp> function = publicFunction(module);
  if (failed(function))
    return "";
  LinearLayers layers(*function);
  SmallVector<Operation *> heads;
  for (const DotInfo &dot : layers.getDots())
    if (dot.head && dot.role == DotRole::Forward && !dot.recomputed)
      heads.push_back(dot.dot);
  if (heads.size() != 1 || heads.front()->getParentOp() != *function)
    return "";
  std::string path = "fp8.logits";
  Value logits = heads.front()->getResult(0);
  Builder builder(module.getContext());
  unsigned index = function->getNumResults();
  (void)function->insertResult(
      index, logits.getType(),
      builder.getDictionaryAttr(
          {builder.getNamedAttr(kPathAttr, builder.getStringAttr(path)),
           builder.getNamedAttr(kKindAttr, builder.getStringAttr("output"))}));
  function->getBody().front().getTerminator()->insertOperands(index, logits);
  return path;
}

/// Compiles a module of its own that has been through the fp8 stage.
LogicalResult compileBeside(OwningOpRef<ModuleOp> module, StringRef name,
                            const CompileOptions &options,
                            std::unique_ptr<CompiledFunction> &function) {
  CompileOptions ownOptions = options;
  ownOptions.name = name.str();
  auto compiled = compileQuantized(*module, ownOptions);
  if (succeeded(compiled))
    function = std::move(*compiled);
  return compiled;
}

/// Compiles the functions beside the step.
LogicalResult compileEntries(ModuleOp module, const CompileOptions &options,
                             CompiledFunction &result) {
  OwningOpRef<ModuleOp> store = takeEntry(module, "store"),
                        load = takeEntry(module, "load");
  if (store &&
      failed(compileBeside(std::move(store), "store", options, result.store)))
    return failure();
  if (load &&
      failed(compileBeside(std::move(load), "load", options, result.load)))
    return failure();
  return success();
}

/// Compiles what exports the parameters of the step in `module`.
LogicalResult compileExport(ExportPlan &plan, ModuleOp module,
                            const CompileOptions &options,
                            CompiledFunction &result) {
  FailureOr<func::FuncOp> step = publicFunction(module);
  if (failed(step) || failed(plan.fold(*step, result.verdicts.gatedUnits)))
    return failure();
  result.exportManifest = plan.manifest();
  MLIRContext *context = module.getContext();
  return success(succeeded(compileBeside(plan.buildEncode(context), "export",
                                         options, result.encode)) &&
                 succeeded(compileBeside(plan.buildDecode(context), "import",
                                         options, result.decode)));
}

} // namespace

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
  if (failed(
          runStage(module, options, "import", seconds, [&](OpPassManager &pm) {
            buildImportPipeline(pm, config);
          })))
    return failure();
  FailureOr<func::FuncOp> function = publicFunction(module);
  if (failed(function))
    return failure();
  return Signature::fromAttributes(*function);
}

FailureOr<std::unique_ptr<CompiledFunction>>
fp8::compile(ModuleOp module, const CompileOptions &options) {
  auto result = std::make_unique<CompiledFunctionImpl>();
  CompileStats &stats = result->stats;
  auto begin = std::chrono::steady_clock::now();
  FailureOr<Signature> signature = importModule(module, options);
  if (failed(signature))
    return failure();
  result->signature = *signature;
  result->unchangedState = findUnchangedState(*publicFunction(module));
  stats.importSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();

  if (options.returnLogits)
    result->logits = addLogits(module);
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
  quantize.trace = options.trace;
  if (failed(runStage(module, options, "fp8", stats.fp8Seconds,
                      [&](OpPassManager &pm) {
                        buildQuantizePipeline(pm, quantize, &result->verdicts);
                      })) ||
      failed(compileEntries(module, options, *result)) ||
      (plan && failed(compileExport(*plan, module, options, *result))) ||
      failed(finish(module, options, *result)))
    return failure();
  return std::unique_ptr<CompiledFunction>(std::move(result));
}

FailureOr<std::unique_ptr<CompiledFunction>>
fp8::compileQuantized(ModuleOp module, const CompileOptions &options) {
  auto result = std::make_unique<CompiledFunctionImpl>();
  if (failed(compileEntries(module, options, *result)))
    return failure();
  FailureOr<func::FuncOp> function = publicFunction(module);
  if (failed(function))
    return failure();
  FailureOr<Signature> signature = Signature::fromAttributes(*function);
  if (failed(signature))
    return failure();
  result->signature = std::move(*signature);
  if (failed(finish(module, options, *result)))
    return failure();
  return std::unique_ptr<CompiledFunction>(std::move(result));
}
