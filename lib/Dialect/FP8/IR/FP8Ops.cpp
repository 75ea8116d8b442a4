//===- FP8Ops.cpp - Operations of the fp8 dialect -------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "AccessSyntax.h"
#include "Integers.h"
#include "Tile.h"

#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallBitVector.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

static ParseResult parseTile(OpAsmParser &parser, DenseI64ArrayAttr &tile) {
  SmallVector<int64_t> extents;
  if (parseTileList(parser, extents))
    return failure();
  tile = parser.getBuilder().getDenseI64ArrayAttr(extents);
  return success();
}

static void printTile(OpAsmPrinter &printer, Operation *,
                      DenseI64ArrayAttr tile) {
  printTileList(printer, tile.asArrayRef());
}

/// `[0, 1] x [0, 1]`
static ParseResult parseDimPair(OpAsmParser &parser, DenseI64ArrayAttr &lhs,
                                DenseI64ArrayAttr &rhs) {
  return failure(parseIntegers(parser, lhs) || parser.parseKeyword("x") ||
                 parseIntegers(parser, rhs));
}

static ParseResult parseDotDims(OpAsmParser &parser,
                                DenseI64ArrayAttr &lhsBatching,
                                DenseI64ArrayAttr &rhsBatching,
                                DenseI64ArrayAttr &lhsContracting,
                                DenseI64ArrayAttr &rhsContracting) {
  lhsBatching = rhsBatching = parser.getBuilder().getDenseI64ArrayAttr({});
  if (succeeded(parser.parseOptionalKeyword("batching_dims")))
    if (parser.parseEqual() || parseDimPair(parser, lhsBatching, rhsBatching) ||
        parser.parseComma())
      return failure();
  return failure(parser.parseKeyword("contracting_dims") ||
                 parser.parseEqual() ||
                 parseDimPair(parser, lhsContracting, rhsContracting));
}

static void printDotDims(OpAsmPrinter &printer, Operation *,
                         DenseI64ArrayAttr lhsBatching,
                         DenseI64ArrayAttr rhsBatching,
                         DenseI64ArrayAttr lhsContracting,
                         DenseI64ArrayAttr rhsContracting) {
  auto print = [&](StringRef name, ArrayRef<int64_t> lhs,
                   ArrayRef<int64_t> rhs) {
    printer << name << " = [";
    llvm::interleaveComma(lhs, printer.getStream());
    printer << "] x [";
    llvm::interleaveComma(rhs, printer.getStream());
    printer << "]";
  };
  if (!lhsBatching.empty() || !rhsBatching.empty()) {
    print("batching_dims", lhsBatching, rhsBatching);
    printer << ", ";
  }
  print("contracting_dims", lhsContracting, rhsContracting);
}

#define GET_OP_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Ops.cpp.inc"

//===----------------------------------------------------------------------===//
// AmaxOp, AminOp
//===----------------------------------------------------------------------===//

void AmaxOp::build(OpBuilder &builder, OperationState &state, Value input,
                   ScaledType type) {
  DenseI64ArrayAttr tile;
  if (!type.isPerTensor())
    tile = builder.getDenseI64ArrayAttr(type.getTile());
  build(builder, state, getQuantizerType(type), input, tile);
}

/// Checks that `value` has one f32 for every tile of `shape`.
static LogicalResult verifyTileValues(Operation *op, ArrayRef<int64_t> shape,
                                      std::optional<ArrayRef<int64_t>> tile,
                                      StringRef what, Value value) {
  SmallVector<int64_t> expected;
  if (tile) {
    if (failed(verifyTile([&] { return op->emitOpError(); }, shape, *tile)))
      return failure();
    expected = getScaleShape(shape, *tile);
  }
  auto type =
      RankedTensorType::get(expected, Float32Type::get(op->getContext()));
  if (value.getType() != type)
    return op->emitOpError() << "expected a " << what << " of type " << type
                             << " but got " << value.getType();
  return success();
}

LogicalResult AmaxOp::verify() {
  return verifyTileValues(*this, getInput().getType().getShape(), getTile(),
                          "result", getResult());
}

LogicalResult AminOp::verify() {
  return verifyTileValues(*this, getInput().getType().getShape(), getTile(),
                          "result", getResult());
}

//===----------------------------------------------------------------------===//
// ComputeScaleOp
//===----------------------------------------------------------------------===//

void ComputeScaleOp::build(OpBuilder &builder, OperationState &state,
                           Value amax, ScaleRule rule, Type format,
                           int64_t margin) {
  build(builder, state, amax.getType(), amax.getType(), amax,
        ScaleRuleAttr::get(builder.getContext(), rule),
        builder.getI64IntegerAttr(margin), TypeAttr::get(format));
}

LogicalResult ComputeScaleOp::verify() {
  auto scaleType = getScale().getType();
  if (scaleType.getShape() != getAmax().getType().getShape())
    return emitOpError() << "expected a scale of the shape of "
                         << getAmax().getType() << " but got " << scaleType;
  if (isa<Float8E8M0FNUType>(scaleType.getElementType()) &&
      getRule() == ScaleRule::Exact)
    return emitOpError() << "expected rule pow2 or ocp_floor for f8E8M0FNU "
                            "scales but got exact";
  // Beyond this every f32 amax would give the same quantizer.
  int64_t margin = getMarginAttr().getInt();
  if (margin < -64 || margin > 64)
    return emitOpError() << "expected a margin from -64 to 64 but got "
                         << margin;
  return success();
}

//===----------------------------------------------------------------------===//
// QuantizeOp, DequantizeOp
//===----------------------------------------------------------------------===//

void QuantizeOp::build(OpBuilder &builder, OperationState &state,
                       ScaledType type, Value input, Value scale,
                       Value quantizer) {
  build(builder, state, type, input, scale, quantizer, Rounding::NearestEven,
        Overflow::Saturate);
}

void QuantizeOp::build(OpBuilder &builder, OperationState &state,
                       ScaledType type, Value input, Value scale,
                       Value quantizer, Rounding rounding, Overflow overflow) {
  build(builder, state, type, input, scale, quantizer, /*seed=*/Value(),
        rounding, overflow, /*tensor=*/IntegerAttr());
}

static LogicalResult verifySameShape(Operation *op, RankedTensorType real,
                                     ScaledType scaled) {
  if (real.getShape() != scaled.getShape())
    return op->emitOpError()
           << "expected the shape of " << scaled << " but got " << real;
  return success();
}

/// Checks that stochastic rounding has a seed and other rounding has none.
template <typename OpTy> static LogicalResult verifyRounding(OpTy op) {
  bool stochastic = op.getRounding() == Rounding::Stochastic;
  if (stochastic && !op.getSeed())
    return op.emitOpError() << "expected a seed with rounding stochastic";
  if (!stochastic && (op.getSeed() || op.getTensor()))
    return op.emitOpError() << "expected a seed and a tensor's number with "
                               "rounding stochastic only but got rounding "
                            << stringifyRounding(op.getRounding());
  return success();
}

LogicalResult QuantizeOp::verify() {
  if (failed(verifyRounding(*this)))
    return failure();
  return verifySameShape(*this, getInput().getType(), getResult().getType());
}

LogicalResult DequantizeOp::verify() {
  return verifySameShape(*this, getResult().getType(), getInput().getType());
}

//===----------------------------------------------------------------------===//
// RoundOp
//===----------------------------------------------------------------------===//

LogicalResult RoundOp::verify() {
  if (getInput().getType().getShape() != getResult().getType().getShape())
    return emitOpError() << "expected the shape of " << getInput().getType()
                         << " but got " << getResult().getType();
  return verifyRounding(*this);
}

//===----------------------------------------------------------------------===//
// ExpandRangeOp, RestoreRangeOp
//===----------------------------------------------------------------------===//

template <typename OpTy> static LogicalResult verifyRange(OpTy op) {
  if (op.getResult().getType() != op.getInput().getType())
    return op.emitOpError()
           << "expected a result of type " << op.getInput().getType()
           << " but got " << op.getResult().getType();
  return verifyTileValues(op, op.getInput().getType().getShape(), op.getTile(),
                          "center and an exponent", op.getCenter());
}

LogicalResult ExpandRangeOp::verify() { return verifyRange(*this); }

LogicalResult RestoreRangeOp::verify() { return verifyRange(*this); }

//===----------------------------------------------------------------------===//
// RescaleOp
//===----------------------------------------------------------------------===//

LogicalResult RescaleOp::verify() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  ArrayRef<int64_t> factor = getFactor().getType().getShape();
  if (factor.size() != getDims().size())
    return emitOpError() << "expected one of dims for each dimension of the "
                            "factor, "
                         << factor.size() << ", but got " << getDims().size();
  llvm::SmallBitVector seen(shape.size());
  for (auto [size, dim] : llvm::zip_equal(factor, getDims())) {
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
      return emitOpError() << "expected dims from 0 to " << shape.size()
                           << " (exclusive) but got " << dim;
    if (seen.test(dim))
      return emitOpError() << "expected different dims but got " << dim
                           << " twice";
    seen.set(dim);
    if (size != shape[dim])
      return emitOpError() << "expected " << shape[dim]
                           << " factors along dimension " << dim << " but got "
                           << size;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// PackOp, UnpackOp
//===----------------------------------------------------------------------===//

OpFoldResult PackOp::fold(FoldAdaptor) {
  auto unpack = getPayload().getDefiningOp<UnpackOp>();
  if (unpack && unpack.getPayload() == getPayload() &&
      unpack.getScale() == getScale() &&
      unpack.getInput().getType() == getResult().getType())
    return unpack.getInput();
  return {};
}

LogicalResult UnpackOp::fold(FoldAdaptor,
                             SmallVectorImpl<OpFoldResult> &results) {
  auto pack = getInput().getDefiningOp<PackOp>();
  if (!pack)
    return failure();
  results.assign({pack.getPayload(), pack.getScale()});
  return success();
}

//===----------------------------------------------------------------------===//
// WindowsOp
//===----------------------------------------------------------------------===//

int64_t WindowsOp::getResultDim(int64_t dim) {
  return dim + llvm::count_if(getDims(), [&](int64_t d) { return d < dim; });
}

bool WindowsOp::isTap(int64_t dim) {
  return llvm::any_of(getDims(),
                      [&](int64_t d) { return getResultDim(d) + 1 == dim; });
}

/// Returns how many windows there are along a dimension of `extent` elements.
static int64_t countWindows(WindowsOp op, size_t i, int64_t extent) {
  int64_t padded = op.getLow()[i] + op.getHigh()[i] +
                   (extent - 1) * (op.getInterior()[i] + 1) + 1;
  int64_t span = (op.getSizes()[i] - 1) * op.getDilations()[i] + 1;
  return padded < span ? 0 : (padded - span) / op.getStrides()[i] + 1;
}

LogicalResult WindowsOp::verify() {
  auto type = cast<RankedTensorType>(getInput().getType());
  ArrayRef<int64_t> dims = getDims();
  if (dims.empty() || !llvm::is_sorted(dims, std::less_equal<int64_t>()) ||
      dims.front() < 0 || dims.back() >= type.getRank())
    return emitOpError() << "expected ascending dimensions of a tensor of rank "
                         << type.getRank() << " but got [" << dims << "]";
  for (auto [name, list] : {std::pair("sizes", getSizes()),
                            {"strides", getStrides()},
                            {"dilations", getDilations()},
                            {"low", getLow()},
                            {"high", getHigh()},
                            {"interior", getInterior()}})
    if (list.size() != dims.size())
      return emitOpError() << "expected '" << name << "' to have "
                           << dims.size() << " numbers but got " << list.size();
  if (getReversed().size() != dims.size())
    return emitOpError() << "expected 'reversed' to have " << dims.size()
                         << " flags but got " << getReversed().size();
  for (ArrayRef<int64_t> list : {getSizes(), getStrides(), getDilations()})
    if (llvm::any_of(list, [](int64_t number) { return number < 1; }))
      return emitOpError() << "expected sizes, strides and dilations to be "
                              "positive but got ["
                           << list << "]";
  if (llvm::any_of(getInterior(), [](int64_t number) { return number < 0; }))
    return emitOpError() << "expected no negative interior padding but got ["
                         << getInterior() << "]";
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    const int64_t *place = llvm::find(dims, static_cast<int64_t>(dim));
    if (place == dims.end()) {
      shape.push_back(extent);
      continue;
    }
    size_t i = place - dims.begin();
    shape.append({countWindows(*this, i, extent), getSizes()[i]});
  }
  if (getType() != type.clone(shape))
    return emitOpError() << "expected a result of type " << type.clone(shape)
                         << " but got " << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// TransposeOp, ReshapeOp, SliceOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyResult(Operation *op, ScaledType expected) {
  Type type = op->getResult(0).getType();
  if (type != expected)
    return op->emitOpError()
           << "expected a result of type " << expected << " but got " << type;
  return success();
}

static ScaledType transposedType(ScaledType type,
                                 ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape, tile;
  for (int64_t dim : permutation) {
    shape.push_back(type.getShape()[dim]);
    tile.push_back(type.getTile()[dim]);
  }
  return ScaledType::get(type.getContext(), shape, type.getElementType(), tile,
                         type.getScaleType());
}

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value input,
                        ArrayRef<int64_t> permutation) {
  build(builder, state,
        transposedType(cast<ScaledType>(input.getType()), permutation), input,
        permutation);
}

LogicalResult TransposeOp::verify() {
  ScaledType type = getInput().getType();
  if (!isPermutationVector(getPermutation()) ||
      static_cast<int64_t>(getPermutation().size()) != type.getRank())
    return emitOpError() << "expected a permutation of " << type.getRank()
                         << " dimensions but got [" << getPermutation() << "]";
  return verifyResult(*this, transposedType(type, getPermutation()));
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    setPermutation(applyPermutation(inner.getPermutation(), getPermutation()));
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  auto dims = llvm::seq<int64_t>(0, getInput().getType().getRank());
  return llvm::equal(getPermutation(), dims) ? getInput() : OpFoldResult();
}

namespace {
/// Dimensions that are merged into one: their size, and how many consecutive
/// elements share a scale.
struct Run {
  int64_t size = 1, tile = 1;
};
} // namespace

/// Adds a dimension outside the others. Fails if no single tile describes the
/// scales.
static LogicalResult addOuter(Run &run, int64_t size, int64_t tile) {
  if (tile == ScaledType::kWhole || tile > size)
    tile = size;
  if (run.tile >= run.size) // One scale for all inner elements.
    run.tile = run.size * tile;
  else if (tile != 1 || run.size % run.tile != 0)
    return failure();
  run.size *= size;
  return success();
}

/// Merges some dimensions of a type into one.
static FailureOr<Run> mergeDims(ScaledType type, ArrayRef<int64_t> dims) {
  Run run;
  for (int64_t dim : llvm::reverse(dims))
    if (failed(addOuter(run, type.getShape()[dim], type.getTile()[dim])))
      return failure();
  return run;
}

/// Whether every element has the same scale under both types, one of which is a
/// reshape of the other.
static bool haveSameScales(ScaledType a, ScaledType b) {
  return llvm::all_of(matchReshape(a.getShape(), b.getShape()),
                      [&](const MatchedDims &dims) {
                        FailureOr<Run> left = mergeDims(a, dims.from);
                        FailureOr<Run> right = mergeDims(b, dims.to);
                        return succeeded(left) && succeeded(right) &&
                               std::min(left->tile, left->size) ==
                                   std::min(right->tile, right->size);
                      });
}

LogicalResult ReshapeOp::verify() {
  ScaledType from = getInput().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType() ||
      from.getScaleType() != to.getScaleType())
    return emitOpError() << "expected a result of payload "
                         << from.getElementType() << " and scale "
                         << from.getScaleType() << " but got " << to;
  if (from.getPayloadType().getNumElements() !=
      to.getPayloadType().getNumElements())
    return emitOpError() << "expected a result of "
                         << from.getPayloadType().getNumElements()
                         << " elements but got " << to;
  if (!haveSameScales(from, to))
    return emitOpError() << "expected a tile that gives every element of "
                         << from << " the scale it has but got " << to;
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    if (!haveSameScales(inner.getInput().getType(), getResult().getType()))
      return {};
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return getInput().getType() == getResult().getType() ? getInput()
                                                       : OpFoldResult();
}

static ScaledType slicedType(ScaledType type, ArrayRef<int64_t> starts,
                             ArrayRef<int64_t> limits) {
  SmallVector<int64_t> shape;
  for (auto [start, limit] : llvm::zip_equal(starts, limits))
    shape.push_back(limit - start);
  return ScaledType::get(type.getContext(), shape, type.getElementType(),
                         type.getTile(), type.getScaleType());
}

void SliceOp::build(OpBuilder &builder, OperationState &state, Value input,
                    ArrayRef<int64_t> starts, ArrayRef<int64_t> limits) {
  build(builder, state,
        slicedType(cast<ScaledType>(input.getType()), starts, limits), input,
        starts, limits);
}

LogicalResult SliceOp::verify() {
  ScaledType type = getInput().getType();
  size_t rank = type.getRank();
  if (getStarts().size() != rank || getLimits().size() != rank)
    return emitOpError() << "expected " << rank << " starts and limits but got "
                         << getStarts().size() << " and " << getLimits().size();
  for (auto [dim, start, limit] : llvm::enumerate(getStarts(), getLimits())) {
    if (start < 0 || start > limit || limit > type.getShape()[dim])
      return emitOpError() << "expected a part of the " << type.getShape()[dim]
                           << " elements of dimension " << dim << " but got "
                           << start << " to " << limit;
    if (type.variesAlong(dim) && start % type.getTile()[dim] != 0)
      return emitOpError() << "expected a start at a multiple of the tile of "
                           << type.getTile()[dim] << " along dimension " << dim
                           << " but got " << start;
  }
  return verifyResult(*this, slicedType(type, getStarts(), getLimits()));
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return getInput().getType() == getResult().getType() ? getInput()
                                                       : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// DotGeneralOp
//===----------------------------------------------------------------------===//

void DotGeneralOp::build(OpBuilder &builder, OperationState &state, Type result,
                         Value lhs, Value rhs,
                         ArrayRef<int64_t> lhsBatchingDims,
                         ArrayRef<int64_t> rhsBatchingDims,
                         ArrayRef<int64_t> lhsContractingDims,
                         ArrayRef<int64_t> rhsContractingDims) {
  build(builder, state, result, lhs, rhs, lhsBatchingDims, rhsBatchingDims,
        lhsContractingDims, rhsContractingDims, builder.getF32Type(),
        /*promote_every=*/IntegerAttr(), /*accumulator_bits=*/IntegerAttr());
}

/// Checks the dimension numbers of one operand; collects its free dimensions.
static LogicalResult verifyDims(DotGeneralOp op, StringRef side,
                                ScaledType type, ArrayRef<int64_t> batching,
                                ArrayRef<int64_t> contracting,
                                SmallVectorImpl<int64_t> &freeDims) {
  llvm::SmallBitVector seen(type.getRank());
  for (ArrayRef<int64_t> dims : {batching, contracting})
    for (int64_t dim : dims) {
      if (dim < 0 || dim >= type.getRank())
        return op.emitOpError() << "expected " << side << " dimensions below "
                                << type.getRank() << " but got " << dim;
      if (seen.test(dim))
        return op.emitOpError() << "expected distinct " << side
                                << " dimensions but got " << dim << " twice";
      seen.set(dim);
    }
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!seen.test(dim))
      freeDims.push_back(dim);
  return success();
}

/// Returns how many consecutive elements along a pair of contracting dimensions
/// have the same scales.
static int64_t getScaleRun(ScaledType lhs, int64_t lhsDim, ScaledType rhs,
                           int64_t rhsDim) {
  int64_t run = 0;
  if (lhs.variesAlong(lhsDim))
    run = lhs.getTile()[lhsDim];
  if (rhs.variesAlong(rhsDim))
    run = std::gcd(run, rhs.getTile()[rhsDim]);
  return run == 0 ? lhs.getShape()[lhsDim] : run;
}

/// Checks that scales are constant in steps in which a dot accumulates: a
/// multiple of 32 elements (MX's block) or a whole dimension.
static LogicalResult verifyScaleRuns(DotGeneralOp op) {
  ScaledType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
  std::optional<unsigned> varying;
  for (auto [index, l, r] : llvm::enumerate(op.getLhsContractingDims(),
                                            op.getRhsContractingDims())) {
    int64_t run = getScaleRun(lhs, l, rhs, r);
    if (run % 32 == 0 || run == lhs.getShape()[l])
      return success();
    varying = index;
  }
  if (!varying)
    return success();
  int64_t l = op.getLhsContractingDims()[*varying];
  int64_t r = op.getRhsContractingDims()[*varying];
  auto extent = [](ScaledType type, int64_t dim) {
    int64_t tile = type.getTile()[dim];
    return tile == ScaledType::kWhole ? std::string("*") : std::to_string(tile);
  };
  return op.emitOpError()
         << "expected scales that are constant along a contracting dimension "
            "in common blocks of a multiple of 32 (or *) but got tiles of "
         << extent(lhs, l) << " and " << extent(rhs, r)
         << " along lhs dimension " << l << " and rhs dimension " << r;
}

static LogicalResult verifyAccumulator(DotGeneralOp op) {
  if (!op.getAccumulator().isF32())
    return op.emitOpError()
           << "expected accumulator f32 but got " << op.getAccumulator();
  std::optional<uint64_t> bits = op.getAccumulatorBits();
  if (bits && (*bits < 4 || *bits > 23))
    return op.emitOpError() << "expected 4 to 23 accumulator_bits but got "
                            << static_cast<int64_t>(*bits);
  std::optional<uint64_t> every = op.getPromoteEvery();
  if (every && (*every == 0 || *every % 32 != 0))
    return op.emitOpError() << "expected promote_every to be a positive "
                               "multiple of 32 but got "
                            << static_cast<int64_t>(*every);
  // A narrow partial sum is scaled only when it is promoted.
  ScaledType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
  if (!bits)
    return success();
  for (auto [l, r] :
       llvm::zip(op.getLhsContractingDims(), op.getRhsContractingDims())) {
    if (!lhs.variesAlong(l) && !rhs.variesAlong(r))
      continue;
    int64_t run = getScaleRun(lhs, l, rhs, r);
    if (op.getLhsContractingDims().size() != 1 || !every || run % *every != 0)
      return op.emitOpError()
             << "expected promote_every to divide the " << run
             << " elements between changes of the scales, along a single "
                "contracting dimension, with accumulator_bits";
  }
  return success();
}

LogicalResult DotGeneralOp::verify() {
  ScaledType lhs = getLhs().getType(), rhs = getRhs().getType();
  for (ScaledType type : {lhs, rhs})
    if (!isFormat(type.getElementType()))
      return emitOpError() << "expected operands of an FP8 format but got "
                           << type;
  SmallVector<int64_t> lhsFree, rhsFree, shape;
  if (failed(verifyDims(*this, "lhs", lhs, getLhsBatchingDims(),
                        getLhsContractingDims(), lhsFree)) ||
      failed(verifyDims(*this, "rhs", rhs, getRhsBatchingDims(),
                        getRhsContractingDims(), rhsFree)))
    return failure();
  auto verifyPairs = [&](StringRef kind, ArrayRef<int64_t> lhsDims,
                         ArrayRef<int64_t> rhsDims) -> LogicalResult {
    if (lhsDims.size() != rhsDims.size())
      return emitOpError() << "expected as many lhs as rhs " << kind
                           << " dimensions but got " << lhsDims.size()
                           << " and " << rhsDims.size();
    for (auto [l, r] : llvm::zip_equal(lhsDims, rhsDims))
      if (lhs.getShape()[l] != rhs.getShape()[r])
        return emitOpError()
               << "expected " << kind << " dimensions of equal size but got "
               << lhs.getShape()[l] << " and " << rhs.getShape()[r];
    return success();
  };
  if (failed(verifyPairs("batching", getLhsBatchingDims(),
                         getRhsBatchingDims())) ||
      failed(verifyPairs("contracting", getLhsContractingDims(),
                         getRhsContractingDims())))
    return failure();
  if (failed(verifyScaleRuns(*this)) || failed(verifyAccumulator(*this)))
    return failure();
  for (int64_t dim : getLhsBatchingDims())
    shape.push_back(lhs.getShape()[dim]);
  for (int64_t dim : lhsFree)
    shape.push_back(lhs.getShape()[dim]);
  for (int64_t dim : rhsFree)
    shape.push_back(rhs.getShape()[dim]);
  if (getResult().getType().getShape() != ArrayRef(shape))
    return emitOpError() << "expected a result of type "
                         << RankedTensorType::get(
                                shape, getResult().getType().getElementType())
                         << " but got " << getResult().getType();
  return success();
}
