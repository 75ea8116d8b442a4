//===- Compiler.cpp - Compilation of StableHLO ----------------------------===//

#include "fp8/Compiler/Compiler.h"
#include "CompileFunction.h"
#include "DescribeSignature.h"
#include "Reports.h"
#include "RunStage.h"
#include "Stopwatch.h"
#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Pipelines/Import.h"
#include "fp8/Pipelines/Quantize.h"

using namespace mlir;
using namespace mlir::fp8;

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

static FailureOr<std::vector<TensorDescription>>
describeArguments(func::FuncOp function) {
  ExecutableFunction described;
  if (failed(describeSignature(function, described)))
    return failure();
  return std::move(described.arguments);
}

FailureOr<std::vector<TensorDescription>>
fp8::importArguments(ModuleOp module, const CompileOptions &options) {
  if (failed(importModule(module, options)))
    return failure();
  return describeArguments(*publicFunction(module));
}

/// Lets the caller check what the arguments are to be given.
static LogicalResult checkArguments(func::FuncOp function,
                                    const CompileOptions &options) {
  if (!options.checkArguments)
    return success();
  FailureOr<std::vector<TensorDescription>> arguments =
      describeArguments(function);
  if (failed(arguments))
    return failure();
  return options.checkArguments(*arguments);
}

/// A step without batch arguments makes its data itself, as one with a
/// simulated environment does.
static LogicalResult checkThatNoDataIsMissing(func::FuncOp function,
                                              const Signature &signature) {
  for (const SignatureArg &arg : signature.args)
    if (arg.role == ArgRole::Batch)
      return emitError(function.getArgument(arg.index).getLoc())
             << "expected data for the batch argument '" << arg.path
             << "' (fp8-run: --data FILE... or --batch " << arg.path
             << "=FILE)";
  return success();
}

/// Imports the step and adds the texts about it.
static LogicalResult importStep(ModuleOp module, const CompileOptions &options,
                                CompileStats &stats, Executable &executable) {
  Stopwatch watch;
  FailureOr<Signature> signature = importModule(module, options);
  if (failed(signature))
    return failure();
  func::FuncOp function = *publicFunction(module);
  if (!options.hasData &&
      failed(checkThatNoDataIsMissing(function, *signature)))
    return failure();
  if (failed(checkArguments(function, options)))
    return failure();
  addSignature(executable, function, *signature);
  stats.importSeconds = watch.seconds();
  return success();
}

/// Makes the step return the result of the head's forward dot, if there is
/// exactly one and it is outside of loops and branches.
static void addLogits(ModuleOp module) {
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
          {builder.getNamedAttr(FP8Dialect::kPathAttrName,
                                builder.getStringAttr(FP8_LOGITS_NAME)),
           builder.getNamedAttr(FP8Dialect::kKindAttrName,
                                builder.getStringAttr("output"))}));
  function->getBody().front().getTerminator()->insertOperands(index, logits);
}

/// Plans the export of an imported step, if there is to be one.
static FailureOr<std::optional<ExportPlan>>
planExport(ModuleOp module, const CompileOptions &options) {
  if (!options.exportFormat)
    return std::optional<ExportPlan>();
  FailureOr<func::FuncOp> function = publicFunction(module);
  if (failed(function))
    return failure();
  FailureOr<ExportPlan> plan =
      ExportPlan::make(*function, *options.exportFormat);
  if (failed(plan))
    return failure();
  return std::optional<ExportPlan>(std::move(*plan));
}

/// Runs the fp8 stage.
static LogicalResult quantize(ModuleOp module, const CompileOptions &options,
                              CompileStats &stats, VerdictReport &verdicts) {
  QuantizePipelineOptions quantize;
  quantize.recipe = options.recipe;
  for (const std::string &assignment : options.recipeOverrides)
    quantize.set.push_back(assignment);
  quantize.failOnFallback = options.failOnFallback;
  quantize.dataParallel = options.dataParallel;
  quantize.lossReduction = options.lossReduction;
  quantize.zero = options.zero;
  quantize.globalAmax = options.globalAmax;
  quantize.globalBatch = options.globalBatch;
  quantize.trace = options.trace;
  return runStage(
      module, options, "fp8", stats.fp8Seconds,
      [&](OpPassManager &pm) {
        buildQuantizePipeline(pm, quantize, &verdicts);
      },
      StageInput::ImportedStep);
}

/// Compiles the functions that export and import the parameters of the step in
/// `module`.
static LogicalResult compileExport(ExportPlan &plan, ModuleOp module,
                                   ArrayRef<GatedUnitVerdict> units,
                                   const CompileOptions &options,
                                   Executable &executable) {
  FailureOr<func::FuncOp> step = publicFunction(module);
  if (failed(step) || failed(plan.fold(*step, units)))
    return failure();
  executable.texts["export.json"] = plan.manifest();
  MLIRContext *context = module.getContext();
  OwningOpRef<ModuleOp> encode = plan.buildEncode(context);
  if (failed(compileCompanion(*encode, "export", options, executable)))
    return failure();
  OwningOpRef<ModuleOp> decode = plan.buildDecode(context);
  return compileCompanion(*decode, "import", options, executable);
}

FailureOr<Executable> fp8::compile(ModuleOp module,
                                   const CompileOptions &options) {
  FailureOr<Executable> result = beginExecutable(module, options);
  CompileStats stats;
  if (failed(result) || failed(importStep(module, options, stats, *result)))
    return failure();
  if (options.returnLogits)
    addLogits(module);
  FailureOr<std::optional<ExportPlan>> plan = planExport(module, options);
  Reports reports;
  if (failed(plan) ||
      failed(quantize(module, options, stats, reports.verdicts)) ||
      failed(compileEntries(module, options, *result)) ||
      (*plan &&
       failed(compileExport(**plan, module, reports.verdicts.gatedUnits,
                            options, *result))) ||
      failed(compileFunction(module, options, stats, reports, *result)))
    return failure();
  addReports(*result, reports, options);
  // The main function comes first.
  std::rotate(result->functions.begin(), std::prev(result->functions.end()),
              result->functions.end());
  return result;
}
