//===- DescribeSignature.cpp - Arguments and results for the runtime ------===//

#include "DescribeSignature.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Support/ElementTypes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

static fp8_role roleOf(ArgRole role) {
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

static fp8_kind kindOf(StateKind kind) {
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

static fp8_kind kindOf(ResultKind kind) {
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
static Signature splitScaled(const Signature &signature) {
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
static FailureOr<TensorDescription> describe(const std::string &path, Type type,
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
static void readPart(func::FuncOp function, unsigned index,
                     TensorDescription &argument) {
  auto part = function.getArgAttrOfType<DictionaryAttr>(
      index, stablehlo::kPartAttrName);
  if (!part)
    return;
  auto whole = part.getAs<DenseI64ArrayAttr>(stablehlo::kPartWholeName);
  argument.whole = whole.asArrayRef().vec();
  auto offsets = part.getAs<DenseIntElementsAttr>(stablehlo::kPartOffsetsName);
  llvm::append_range(argument.partOffsets, offsets.getValues<int64_t>());
  if (auto blocks = part.getAs<IntegerAttr>(stablehlo::kPartBlocksName))
    argument.partBlocks = blocks.getInt();
}

/// Returns the scaled type that an argument had before it was split; null if it
/// had none.
static ScaledType scaledTypeOf(const Signature &whole, StringRef path) {
  const SignatureArg *arg = whole.findArg(path);
  return arg ? dyn_cast<ScaledType>(arg->type) : ScaledType();
}

/// Describes the part of the scales that belongs to a part of a payload, which
/// consists of whole tiles. A single scale for all has no parts.
static void readPartOfScales(ScaledType type, const TensorDescription &payload,
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

LogicalResult fp8::describeSignature(func::FuncOp function,
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
    argument->labels = arg.labels;
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
