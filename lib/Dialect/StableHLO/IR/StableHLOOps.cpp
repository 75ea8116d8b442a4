//===- StableHLOOps.cpp - Verifiers and builders --------------------------===//
//
// Constraint numbers in comments are those of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "AssemblyFormat.h"
#include "Constraints.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::stablehlo;

Value stablehlo::padWithZeros(OpBuilder &builder, Location loc, Value value,
                              ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                              ArrayRef<int64_t> interior) {
  auto isZero = [](int64_t number) { return number == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero) &&
      llvm::all_of(interior, isZero))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (auto [extent, before, after, between] :
       llvm::zip_equal(type.getShape(), low, high, interior))
    shape.push_back(before + after +
                    (extent == 0 ? 0 : (extent - 1) * (between + 1) + 1));
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero = ConstantOp::create(
      builder, loc, cast<ElementsAttr>(builder.getZeroAttr(scalar)));
  return PadOp::create(builder, loc, type.clone(shape), value, zero, low, high,
                       interior);
}

SmallVector<int64_t> stablehlo::orOnes(std::optional<ArrayRef<int64_t>> values,
                                       unsigned rank) {
  return values ? SmallVector<int64_t>(*values) : SmallVector<int64_t>(rank, 1);
}

SmallVector<std::pair<int64_t, int64_t>>
stablehlo::paddings(std::optional<DenseIntElementsAttr> attr, unsigned rank) {
  SmallVector<std::pair<int64_t, int64_t>> list(rank, {0, 0});
  if (!attr)
    return list;
  SmallVector<int64_t> flat(attr->getValues<int64_t>());
  for (unsigned i = 0; i < rank; ++i)
    list[i] = {flat[2 * i], flat[2 * i + 1]};
  return list;
}

Operation *stablehlo::getCombiner(Region &body) {
  Block &block = body.front();
  if (block.getOperations().size() != 2)
    return nullptr;
  Operation &op = block.front(), *terminator = block.getTerminator();
  bool isAll = op.getNumOperands() == 2 && terminator->getNumOperands() == 1 &&
               terminator->getOperand(0) == op.getResult(0) &&
               llvm::all_of(op.getOperands(), [](Value operand) {
                 return isa<BlockArgument>(operand);
               });
  return isAll ? &op : nullptr;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static Type getScalarType(Type element) {
  return RankedTensorType::get({}, element);
}

static Type withElementType(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element);
}

std::string stablehlo::toString(ArrayRef<int64_t> dims) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(dims, os);
  os << ']';
  return text;
}

LogicalResult stablehlo::expectType(Operation *op, Type expected, Type actual,
                                    const Twine &what) {
  if (expected == actual)
    return success();
  return op->emitOpError("expected ")
         << what << " of type " << expected << " but got " << actual;
}

LogicalResult stablehlo::expectSize(Operation *op, int64_t expected,
                                    int64_t actual, const Twine &what) {
  if (expected == actual)
    return success();
  return op->emitOpError("expected ")
         << expected << ' ' << what << " but got " << actual;
}

LogicalResult stablehlo::expectInRange(Operation *op, ArrayRef<int64_t> dims,
                                       int64_t bound, const Twine &what) {
  for (int64_t dim : dims)
    if (dim < 0 || dim >= bound)
      return op->emitOpError("expected ")
             << what << " in [0, " << bound << ") but got " << toString(dims);
  return success();
}

LogicalResult stablehlo::expectUnique(Operation *op, ArrayRef<int64_t> dims,
                                      const Twine &what) {
  SmallVector<int64_t> sorted(dims);
  llvm::sort(sorted);
  if (llvm::adjacent_find(sorted) == sorted.end())
    return success();
  return op->emitOpError("expected unique ")
         << what << " but got " << toString(dims);
}

LogicalResult stablehlo::expectSorted(Operation *op, ArrayRef<int64_t> dims,
                                      const Twine &what) {
  if (llvm::is_sorted(dims))
    return success();
  return op->emitOpError("expected sorted ")
         << what << " but got " << toString(dims);
}

static LogicalResult expectPositive(Operation *op, ArrayRef<int64_t> values,
                                    const Twine &what) {
  if (llvm::all_of(values, [](int64_t value) { return value > 0; }))
    return success();
  return op->emitOpError("expected positive ")
         << what << " but got " << toString(values);
}

/// Returns the terminator of a region; an error if it is not stablehlo.return.
static FailureOr<ReturnOp> expectReturn(Operation *op, Region &region,
                                        const Twine &what) {
  Block &block = region.front();
  auto ret = block.empty() ? ReturnOp() : dyn_cast<ReturnOp>(block.back());
  if (!ret)
    return op->emitOpError("expected stablehlo.return at the end of ") << what;
  return ret;
}

/// Checks that a region maps 0-d tensors of `arguments` element types to those
/// of `results`.
static LogicalResult expectScalarRegion(Operation *op, Region &region,
                                        ArrayRef<Type> arguments,
                                        ArrayRef<Type> results,
                                        const Twine &what) {
  Block &block = region.front();
  if (failed(expectSize(op, arguments.size(), block.getNumArguments(),
                        "arguments of " + what)))
    return failure();
  for (auto [i, expected] : llvm::enumerate(arguments))
    if (failed(expectType(op, getScalarType(expected),
                          block.getArgument(i).getType(),
                          "argument " + Twine(i) + " of " + what)))
      return failure();
  FailureOr<ReturnOp> ret = expectReturn(op, region, what);
  if (failed(ret))
    return failure();
  if (failed(expectSize(op, results.size(), ret->getNumOperands(),
                        "values returned by " + what)))
    return failure();
  for (auto [i, expected] : llvm::enumerate(results))
    if (failed(expectType(op, getScalarType(expected),
                          ret->getOperand(i).getType(),
                          "value " + Twine(i) + " returned by " + what)))
      return failure();
  return success();
}

LogicalResult stablehlo::expectReducer(Operation *op, Region &region,
                                       ValueRange inputs, const Twine &what) {
  SmallVector<Type> elements, arguments;
  for (Value input : inputs)
    elements.push_back(getElementTypeOrSelf(input.getType()));
  llvm::append_range(arguments, elements);
  llvm::append_range(arguments, elements);
  return expectScalarRegion(op, region, arguments, elements, what);
}

/// Checks that the results of a region have these types.
static LogicalResult expectRegionResults(Operation *op, Region &region,
                                         TypeRange results, const Twine &what) {
  FailureOr<ReturnOp> ret = expectReturn(op, region, what);
  if (failed(ret))
    return failure();
  if (failed(expectSize(op, results.size(), ret->getNumOperands(),
                        "values returned by " + what)))
    return failure();
  for (auto [i, expected] : llvm::enumerate(results))
    if (failed(expectType(op, expected, ret->getOperand(i).getType(),
                          "value " + Twine(i) + " returned by " + what)))
      return failure();
  return success();
}

static LogicalResult expectScalarIndices(Operation *op, ValueRange indices) {
  for (Value index : indices)
    if (getType(index).getRank() != 0)
      return op->emitOpError("expected 0-d start indices but got ")
             << index.getType();
  for (Value index : indices.drop_front(indices.empty() ? 0 : 1))
    if (index.getType() != indices.front().getType())
      return op->emitOpError("expected start indices of one type but got ")
             << indices.front().getType() << " and " << index.getType();
  return success();
}

LogicalResult stablehlo::OpTrait::verifySameTypes(Operation *op) {
  if (op->getNumResults() != 1)
    return success();
  Type result = op->getResult(0).getType();
  for (Value operand : op->getOperands())
    if (operand.getType() != result)
      return op->emitOpError("expected operands and result of one type but "
                             "got ")
             << operand.getType() << " and " << result;
  return success();
}

LogicalResult stablehlo::OpTrait::verifySameShape(Operation *op) {
  auto getShape = [](Type type) -> ArrayRef<int64_t> {
    auto shaped = dyn_cast<RankedTensorType>(type);
    return shaped ? shaped.getShape() : ArrayRef<int64_t>();
  };
  Type result = op->getResult(0).getType();
  for (Value operand : op->getOperands())
    if (getShape(operand.getType()) != getShape(result))
      return op->emitOpError("expected operands and result of one shape but "
                             "got ")
             << operand.getType() << " and " << result;
  return success();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

LogicalResult BitcastConvertOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  int64_t fromBits = from.getElementTypeBitWidth(),
          toBits = to.getElementTypeBitWidth();
  // bitcast_convert_c1: equal widths keep the shape, others add or remove a
  // minor dimension of the ratio.
  if (std::max(fromBits, toBits) % std::min(fromBits, toBits) != 0)
    return emitOpError("expected element widths of which one divides the other "
                       "but got ")
           << fromBits << " and " << toBits;
  SmallVector<int64_t> narrow(fromBits >= toBits ? from.getShape()
                                                 : to.getShape());
  if (fromBits != toBits)
    narrow.push_back(std::max(fromBits, toBits) / std::min(fromBits, toBits));
  if (fromBits >= toBits)
    return expectType(*this, RankedTensorType::get(narrow, to.getElementType()),
                      to, "a result");
  return expectType(*this, RankedTensorType::get(narrow, from.getElementType()),
                    from, "an operand");
}

LogicalResult ClampOp::verify() {
  RankedTensorType type = getOperand().getType();
  Type scalar = getScalarType(type.getElementType());
  // clamp_c1, clamp_c2, clamp_c3
  for (Value bound : {getMin(), getMax()})
    if (bound.getType() != type && bound.getType() != scalar)
      return emitOpError("expected bounds of type ")
             << type << " or " << scalar << " but got " << bound.getType();
  // clamp_c4
  return expectType(*this, type, getType(), "a result");
}

void CompareOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                      Value rhs, ComparisonDirection direction,
                      ComparisonType type) {
  build(builder, state, withElementType(::getType(lhs), builder.getI1Type()),
        lhs, rhs, ComparisonDirectionAttr::get(builder.getContext(), direction),
        type == ComparisonType::NOTYPE
            ? ComparisonTypeAttr()
            : ComparisonTypeAttr::get(builder.getContext(), type));
}

LogicalResult CompareOp::verify() {
  // compare_c1, compare_c2
  if (failed(expectType(*this, getLhs().getType(), getRhs().getType(), "rhs")))
    return failure();
  std::optional<ComparisonType> type = getCompareType();
  if (!type || *type == ComparisonType::NOTYPE)
    return success();
  // compare_c3: the kind of comparison follows from the element type.
  Type element = getLhs().getType().getElementType();
  bool matches = false;
  StringRef expected;
  if (isa<FloatType>(element)) {
    expected = "FLOAT or TOTALORDER";
    matches =
        *type == ComparisonType::FLOAT || *type == ComparisonType::TOTALORDER;
  } else if (element.isUnsignedInteger() || element.isInteger(1)) {
    expected = "UNSIGNED";
    matches = *type == ComparisonType::UNSIGNED;
  } else {
    expected = "SIGNED";
    matches = *type == ComparisonType::SIGNED;
  }
  if (!matches)
    return emitOpError("expected compare_type ")
           << expected << " for " << element << " but got "
           << stringifyComparisonType(*type);
  return success();
}

void ConvertOp::build(OpBuilder &builder, OperationState &state, Value operand,
                      Type elementType) {
  build(builder, state,
        TypeRange(withElementType(::getType(operand), elementType)),
        ValueRange(operand));
}

void IsFiniteOp::build(OpBuilder &builder, OperationState &state, Value x) {
  build(builder, state,
        TypeRange(withElementType(::getType(x), builder.getI1Type())),
        ValueRange(x));
}

LogicalResult ReducePrecisionOp::verify() {
  // reduce_precision_c2
  if (getExponentBits() < 1)
    return emitOpError("expected exponent_bits of 1 or more but got ")
           << getExponentBits();
  // reduce_precision_c3
  if (static_cast<int32_t>(getMantissaBits()) < 0)
    return emitOpError("expected mantissa_bits of 0 or more but got ")
           << static_cast<int32_t>(getMantissaBits());
  return success();
}

LogicalResult SelectOp::verify() {
  // select_c1
  RankedTensorType pred = getPred().getType(), type = getType();
  if (pred.getRank() != 0 && pred.getShape() != type.getShape())
    return emitOpError("expected a predicate of type ")
           << withElementType(type, pred.getElementType()) << " or "
           << getScalarType(pred.getElementType()) << " but got " << pred;
  // select_c2
  if (failed(expectType(*this, type, getOnTrue().getType(), "on_true")))
    return failure();
  return expectType(*this, type, getOnFalse().getType(), "on_false");
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &builder, OperationState &state,
                       ElementsAttr value) {
  build(builder, state, cast<RankedTensorType>(value.getType()), value);
}

LogicalResult ConstantOp::verify() {
  // constant_c1
  return expectType(*this, getValue().getType(), getType(), "a result");
}

void ConstantOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOutput(),
          isa<FloatType>(getType().getElementType()) ? "cst" : "c");
}

LogicalResult IotaOp::verify() {
  // iota_c1
  return expectInRange(*this, static_cast<int64_t>(getIotaDimension()),
                       getType().getRank(), "iota_dimension");
}

LogicalResult RngBitGeneratorOp::verify() {
  // rng_bit_generator_c1
  if (failed(expectType(*this, getInitialState().getType(),
                        getOutputState().getType(), "output_state")))
    return failure();
  RankedTensorType state = getInitialState().getType();
  if (state.getRank() != 1 || !state.getElementType().isUnsignedInteger(64))
    return emitOpError("expected a state of type tensor<Nxui64> but got ")
           << state;
  // rng_bit_generator_c2: the algorithm fixes the state's size.
  int64_t size = state.getDimSize(0);
  switch (getRngAlgorithm()) {
  case RngAlgorithm::DEFAULT:
    return success();
  case RngAlgorithm::THREE_FRY:
    if (size != 2)
      return emitOpError("expected a state of size 2 for THREE_FRY but got ")
             << size;
    return success();
  case RngAlgorithm::PHILOX:
    if (size != 2 && size != 3)
      return emitOpError("expected a state of size 2 or 3 for PHILOX but got ")
             << size;
    return success();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Shape and data movement
//===----------------------------------------------------------------------===//

LogicalResult BroadcastInDimOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  ArrayRef<int64_t> dims = getBroadcastDimensions();
  // broadcast_in_dim_c1
  if (failed(expectType(*this, from.getElementType(), to.getElementType(),
                        "result elements")) ||
      // broadcast_in_dim_c2
      failed(expectSize(*this, from.getRank(), dims.size(),
                        "broadcast_dimensions")) ||
      // broadcast_in_dim_c3
      failed(
          expectInRange(*this, dims, to.getRank(), "broadcast_dimensions")) ||
      // broadcast_in_dim_c4
      failed(expectUnique(*this, dims, "broadcast_dimensions")))
    return failure();
  // broadcast_in_dim_c5
  for (auto [i, dim] : llvm::enumerate(dims)) {
    int64_t size = from.getDimSize(i);
    if (size != 1 && size != to.getDimSize(dim))
      return emitOpError("expected result dimension ")
             << dim << " of size " << size << " (operand dimension " << i
             << ") but got " << to.getDimSize(dim);
  }
  return success();
}

/// Returns the type of a concatenation; none if the inputs do not fit.
static RankedTensorType inferConcatenate(ValueRange inputs, int64_t dimension) {
  RankedTensorType first = ::getType(inputs.front());
  SmallVector<int64_t> shape(first.getShape());
  shape[dimension] = 0;
  for (Value input : inputs)
    shape[dimension] += ::getType(input).getDimSize(dimension);
  return RankedTensorType::get(shape, first.getElementType());
}

void ConcatenateOp::build(OpBuilder &builder, OperationState &state,
                          ValueRange inputs, int64_t dimension) {
  build(builder, state, inferConcatenate(inputs, dimension), inputs, dimension);
}

LogicalResult ConcatenateOp::verify() {
  // concatenate_c3
  if (getInputs().empty())
    return emitOpError("expected one input or more but got none");
  RankedTensorType first = ::getType(getInputs().front());
  // concatenate_c4
  int64_t dimension = getDimension();
  if (failed(expectInRange(*this, dimension, first.getRank(), "dimension")))
    return failure();
  for (Value input : getInputs()) {
    RankedTensorType type = ::getType(input);
    // concatenate_c1, concatenate_c2
    bool fits = type.getRank() == first.getRank() &&
                type.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < first.getRank(); ++i)
      fits = i == dimension || type.getDimSize(i) == first.getDimSize(i);
    if (!fits)
      return emitOpError("expected inputs like ")
             << first << " but for dimension " << dimension << " but got "
             << type;
  }
  // concatenate_c5, concatenate_c6
  return expectType(*this, inferConcatenate(getInputs(), dimension), getType(),
                    "a result");
}

LogicalResult DynamicSliceOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> sizes = getSliceSizes();
  // dynamic_slice_c2
  if (failed(expectSize(*this, type.getRank(), getStartIndices().size(),
                        "start_indices")) ||
      failed(expectSize(*this, type.getRank(), sizes.size(), "slice_sizes")) ||
      // dynamic_slice_c3
      failed(expectScalarIndices(*this, getStartIndices())))
    return failure();
  // dynamic_slice_c4
  for (auto [i, size] : llvm::enumerate(sizes))
    if (size < 0 || size > type.getDimSize(i))
      return emitOpError("expected slice size ")
             << i << " in [0, " << type.getDimSize(i) << "] but got " << size;
  // dynamic_slice_c1, dynamic_slice_c5
  return expectType(*this, RankedTensorType::get(sizes, type.getElementType()),
                    getType(), "a result");
}

LogicalResult DynamicUpdateSliceOp::verify() {
  RankedTensorType type = getOperand().getType(),
                   update = getUpdate().getType();
  // dynamic_update_slice_c1
  if (failed(expectType(*this, type, getType(), "a result")) ||
      // dynamic_update_slice_c2
      failed(expectType(*this, type.getElementType(), update.getElementType(),
                        "update elements")) ||
      // dynamic_update_slice_c3
      failed(expectSize(*this, type.getRank(), update.getRank(),
                        "dimensions of the update")) ||
      // dynamic_update_slice_c4
      failed(expectSize(*this, type.getRank(), getStartIndices().size(),
                        "start_indices")) ||
      // dynamic_update_slice_c5
      failed(expectScalarIndices(*this, getStartIndices())))
    return failure();
  // dynamic_update_slice_c6
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (update.getDimSize(i) > type.getDimSize(i))
      return emitOpError("expected update size ")
             << i << " in [0, " << type.getDimSize(i) << "] but got "
             << update.getDimSize(i);
  return success();
}

LogicalResult PadOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> low = getEdgePaddingLow(), high = getEdgePaddingHigh(),
                    interior = getInteriorPadding();
  // pad_c1
  if (failed(expectType(*this, getScalarType(type.getElementType()),
                        getPaddingValue().getType(), "a padding value")) ||
      // pad_c2
      failed(expectSize(*this, type.getRank(), low.size(), "low paddings")) ||
      failed(expectSize(*this, type.getRank(), high.size(), "high paddings")) ||
      failed(expectSize(*this, type.getRank(), interior.size(),
                        "interior paddings")))
    return failure();
  // pad_c3
  if (llvm::any_of(interior, [](int64_t value) { return value < 0; }))
    return emitOpError("expected interior paddings of 0 or more but got ")
           << toString(interior);
  // pad_c4
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t size = type.getDimSize(i);
    shape.push_back(low[i] + size +
                    std::max<int64_t>(size - 1, 0) * interior[i] + high[i]);
    if (shape.back() < 0)
      return emitOpError("expected a result size of 0 or more in dimension ")
             << i << " but got " << shape.back();
  }
  return expectType(*this, RankedTensorType::get(shape, type.getElementType()),
                    getType(), "a result");
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  // reshape_c1
  if (failed(expectType(*this, from.getElementType(), to.getElementType(),
                        "result elements")))
    return failure();
  // reshape_c2
  return expectSize(*this, from.getNumElements(), to.getNumElements(),
                    "elements in the result");
}

LogicalResult ReverseOp::verify() {
  // reverse_c2
  if (failed(expectUnique(*this, getDimensions(), "dimensions")))
    return failure();
  // reverse_c3
  return expectInRange(*this, getDimensions(), getType().getRank(),
                       "dimensions");
}

static RankedTensorType inferSlice(RankedTensorType type,
                                   ArrayRef<int64_t> start,
                                   ArrayRef<int64_t> limit,
                                   ArrayRef<int64_t> strides) {
  SmallVector<int64_t> shape;
  for (auto [from, to, step] : llvm::zip(start, limit, strides))
    shape.push_back((to - from + step - 1) / step);
  return RankedTensorType::get(shape, type.getElementType());
}

void SliceOp::build(OpBuilder &builder, OperationState &state, Value operand,
                    ArrayRef<int64_t> start, ArrayRef<int64_t> limit,
                    ArrayRef<int64_t> strides) {
  build(builder, state, inferSlice(::getType(operand), start, limit, strides),
        operand, start, limit, strides);
}

LogicalResult SliceOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> start = getStartIndices(), limit = getLimitIndices(),
                    strides = getStrides();
  // slice_c2
  if (failed(
          expectSize(*this, type.getRank(), start.size(), "start_indices")) ||
      failed(
          expectSize(*this, type.getRank(), limit.size(), "limit_indices")) ||
      failed(expectSize(*this, type.getRank(), strides.size(), "strides")))
    return failure();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    // slice_c3
    if (start[i] < 0 || start[i] > limit[i] || limit[i] > type.getDimSize(i))
      return emitOpError("expected a range within [0:")
             << type.getDimSize(i) << "] for dimension " << i << " but got ["
             << start[i] << ':' << limit[i] << ']';
    // slice_c4
    if (strides[i] <= 0)
      return emitOpError("expected positive strides but got ")
             << toString(strides);
  }
  // slice_c1, slice_c5
  return expectType(*this, inferSlice(type, start, limit, strides), getType(),
                    "a result");
}

LogicalResult SortOp::verify() {
  // sort_c1
  if (getInputs().empty())
    return emitOpError("expected one input or more but got none");
  if (failed(expectSize(*this, getInputs().size(), getNumResults(), "results")))
    return failure();
  RankedTensorType first = ::getType(getInputs().front());
  for (auto [in, out] : llvm::zip(getInputs(), getResults())) {
    // sort_c3
    if (::getType(in).getShape() != first.getShape())
      return emitOpError("expected inputs of one shape but got ")
             << first << " and " << in.getType();
    // sort_c2
    if (failed(expectType(*this, in.getType(), out.getType(), "a result")))
      return failure();
  }
  // sort_c4
  int64_t dimension = getDimension(), rank = first.getRank();
  if (dimension < -rank || dimension >= rank)
    return emitOpError("expected dimension in [")
           << -rank << ", " << rank << ") but got " << dimension;
  return success();
}

LogicalResult SortOp::verifyRegions() {
  // sort_c5: each input's two elements are adjacent.
  SmallVector<Type> arguments;
  for (Value input : getInputs())
    arguments.append(2, ::getType(input).getElementType());
  return expectScalarRegion(*this, getComparator(), arguments,
                            {IntegerType::get(getContext(), 1)},
                            "the comparator");
}

static RankedTensorType inferTranspose(RankedTensorType type,
                                       ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return RankedTensorType::get(shape, type.getElementType());
}

void TransposeOp::build(OpBuilder &builder, OperationState &state,
                        Value operand, ArrayRef<int64_t> permutation) {
  build(builder, state, inferTranspose(::getType(operand), permutation),
        operand, permutation);
}

LogicalResult TransposeOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> permutation = getPermutation();
  // transpose_c2
  if (failed(expectSize(*this, type.getRank(), permutation.size(),
                        "entries of the permutation")) ||
      failed(expectInRange(*this, permutation, type.getRank(),
                           "the permutation")) ||
      failed(expectUnique(*this, permutation, "entries of the permutation")))
    return failure();
  // transpose_c1, transpose_c3
  return expectType(*this, inferTranspose(type, permutation), getType(),
                    "a result");
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

LogicalResult DotGeneralOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  DotDimensionNumbersAttr dims = getDotDimensionNumbers();
  ArrayRef<int64_t> lhsBatching = dims.getLhsBatchingDimensions(),
                    rhsBatching = dims.getRhsBatchingDimensions(),
                    lhsContracting = dims.getLhsContractingDimensions(),
                    rhsContracting = dims.getRhsContractingDimensions();
  SmallVector<int64_t> lhsUsed(lhsBatching), rhsUsed(rhsBatching);
  llvm::append_range(lhsUsed, lhsContracting);
  llvm::append_range(rhsUsed, rhsContracting);
  // dot_general_c1
  if (failed(expectSize(*this, lhsBatching.size(), rhsBatching.size(),
                        "rhs batching dimensions")) ||
      // dot_general_c2
      failed(expectSize(*this, lhsContracting.size(), rhsContracting.size(),
                        "rhs contracting dimensions")) ||
      // dot_general_c3
      failed(expectUnique(*this, lhsUsed,
                          "lhs batching and contracting dimensions")) ||
      // dot_general_c4
      failed(expectUnique(*this, rhsUsed,
                          "rhs batching and contracting dimensions")) ||
      // dot_general_c5, dot_general_c6
      failed(expectInRange(*this, lhsUsed, lhs.getRank(),
                           "lhs batching and contracting dimensions")) ||
      // dot_general_c7, dot_general_c8
      failed(expectInRange(*this, rhsUsed, rhs.getRank(),
                           "rhs batching and contracting dimensions")))
    return failure();
  // dot_general_c9, dot_general_c10
  for (auto [i, pair] : llvm::enumerate(llvm::zip(lhsUsed, rhsUsed))) {
    auto [a, b] = pair;
    if (lhs.getDimSize(a) != rhs.getDimSize(b))
      return emitOpError("expected ")
             << (i < lhsBatching.size() ? "batching" : "contracting")
             << " dimensions of one size but got " << lhs.getDimSize(a)
             << " (lhs dimension " << a << ") and " << rhs.getDimSize(b)
             << " (rhs dimension " << b << ")";
  }
  // dot_general_c11
  if (std::optional<ArrayAttr> precision = getPrecisionConfig())
    if (!precision->empty() &&
        failed(expectSize(*this, 2, precision->size(),
                          "entries of the precision config")))
      return failure();
  // dot_general_c12: batching, then lhs, then rhs dimensions.
  SmallVector<int64_t> shape;
  for (int64_t dim : lhsBatching)
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t i = 0; i < lhs.getRank(); ++i)
    if (!llvm::is_contained(lhsUsed, i))
      shape.push_back(lhs.getDimSize(i));
  for (int64_t i = 0; i < rhs.getRank(); ++i)
    if (!llvm::is_contained(rhsUsed, i))
      shape.push_back(rhs.getDimSize(i));
  return expectType(*this,
                    RankedTensorType::get(shape, getType().getElementType()),
                    getType(), "a result");
}

namespace {
/// Sizes, strides, dilations and paddings of a window, with defaults filled in.
struct WindowSpec {
  SmallVector<int64_t> sizes, strides, baseDilations, windowDilations, low,
      high;
};
} // namespace

/// Fills in the defaults of a window and checks ranks and signs.
static FailureOr<WindowSpec>
getWindowSpec(Operation *op, ArrayRef<int64_t> sizes,
              std::optional<ArrayRef<int64_t>> strides,
              std::optional<ArrayRef<int64_t>> baseDilations,
              std::optional<ArrayRef<int64_t>> windowDilations,
              std::optional<DenseIntElementsAttr> padding) {
  int64_t rank = sizes.size();
  WindowSpec spec;
  spec.sizes.assign(sizes.begin(), sizes.end());
  auto fill = [&](SmallVector<int64_t> &to,
                  std::optional<ArrayRef<int64_t>> from,
                  StringRef what) -> LogicalResult {
    to = orOnes(from, rank);
    if (failed(expectSize(op, rank, to.size(), what)))
      return failure();
    return expectPositive(op, to, what);
  };
  if (failed(expectPositive(op, spec.sizes, "window dimensions")) ||
      failed(fill(spec.strides, strides, "window strides")) ||
      failed(fill(spec.baseDilations, baseDilations, "base dilations")) ||
      failed(fill(spec.windowDilations, windowDilations, "window dilations")))
    return failure();
  if (padding) {
    auto type = RankedTensorType::get({rank, 2},
                                      IntegerType::get(op->getContext(), 64));
    if (failed(expectType(op, type, padding->getType(), "paddings")))
      return failure();
  }
  for (auto [low, high] : paddings(padding, rank)) {
    spec.low.push_back(low);
    spec.high.push_back(high);
  }
  return spec;
}

/// Returns the number of window positions along each dimension.
static SmallVector<int64_t> getWindowedShape(ArrayRef<int64_t> shape,
                                             const WindowSpec &spec) {
  SmallVector<int64_t> result;
  auto dilate = [](int64_t size, int64_t by) {
    return size == 0 ? 0 : (size - 1) * by + 1;
  };
  for (auto [i, size] : llvm::enumerate(shape)) {
    int64_t padded =
        spec.low[i] + dilate(size, spec.baseDilations[i]) + spec.high[i];
    int64_t window = dilate(spec.sizes[i], spec.windowDilations[i]);
    bool empty = padded <= 0 || window > padded;
    result.push_back(empty ? 0 : (padded - window) / spec.strides[i] + 1);
  }
  return result;
}

/// Checks that the dimension numbers of a convolution are permutations
/// (convolution_c13, convolution_c18, convolution_c20).
static LogicalResult verifyDimensionNumbers(ConvolutionOp op, int64_t rank) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  auto checkDims = [&](int64_t a, int64_t b, ArrayRef<int64_t> spatial,
                       StringRef what) -> LogicalResult {
    SmallVector<int64_t> all(spatial);
    all.append({a, b});
    if (failed(expectSize(op, rank, all.size(), what)) ||
        failed(expectInRange(op, all, rank, what)))
      return failure();
    return expectUnique(op, all, what);
  };
  if (failed(checkDims(dims.getInputBatchDimension(),
                       dims.getInputFeatureDimension(),
                       dims.getInputSpatialDimensions(), "input dimensions")) ||
      failed(checkDims(dims.getKernelInputFeatureDimension(),
                       dims.getKernelOutputFeatureDimension(),
                       dims.getKernelSpatialDimensions(),
                       "kernel dimensions")) ||
      failed(checkDims(dims.getOutputBatchDimension(),
                       dims.getOutputFeatureDimension(),
                       dims.getOutputSpatialDimensions(), "output dimensions")))
    return failure();
  return success();
}

/// Checks the group counts of a convolution and the sizes that they divide
/// (convolution_c10, convolution_c11, convolution_c14 to convolution_c16,
/// convolution_c21 to convolution_c23).
static LogicalResult verifyGroups(ConvolutionOp op) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  RankedTensorType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
  int64_t features = op.getFeatureGroupCount(),
          batches = op.getBatchGroupCount();
  if (features <= 0 || batches <= 0 || (features > 1 && batches > 1))
    return op.emitOpError("expected positive group counts, one of them 1, but "
                          "got feature_group_count = ")
           << features << " and batch_group_count = " << batches;
  int64_t inputBatch = lhs.getDimSize(dims.getInputBatchDimension()),
          inputFeature = lhs.getDimSize(dims.getInputFeatureDimension()),
          kernelInput = rhs.getDimSize(dims.getKernelInputFeatureDimension()),
          kernelOutput = rhs.getDimSize(dims.getKernelOutputFeatureDimension());
  if (inputBatch % batches != 0 || kernelOutput % batches != 0)
    return op.emitOpError("expected batch_group_count to divide ")
           << inputBatch << " and " << kernelOutput << " but got " << batches;
  if (inputFeature % features != 0 || kernelOutput % features != 0)
    return op.emitOpError("expected feature_group_count to divide ")
           << inputFeature << " and " << kernelOutput << " but got "
           << features;
  return expectSize(op, inputFeature / features, kernelInput,
                    "kernel input features");
}

LogicalResult ConvolutionOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType(),
                   result = getType();
  ConvDimensionNumbersAttr dims = getDimensionNumbers();
  int64_t rank = lhs.getRank();
  // convolution_c1
  if (failed(expectSize(*this, rank, rhs.getRank(), "dimensions of rhs")) ||
      failed(expectSize(*this, rank, result.getRank(),
                        "dimensions of the result")) ||
      failed(verifyDimensionNumbers(*this, rank)))
    return failure();
  SmallVector<int64_t> sizes, spatial;
  for (int64_t dim : dims.getKernelSpatialDimensions())
    sizes.push_back(rhs.getDimSize(dim));
  for (int64_t dim : dims.getInputSpatialDimensions())
    spatial.push_back(lhs.getDimSize(dim));
  // An empty kernel is legal: its window has no element to multiply.
  SmallVector<int64_t> checked = llvm::map_to_vector(
      sizes, [](int64_t size) { return std::max<int64_t>(size, 1); });
  // convolution_c2 to convolution_c9
  FailureOr<WindowSpec> spec =
      getWindowSpec(*this, checked, getWindowStrides(), getLhsDilation(),
                    getRhsDilation(), getPadding());
  if (failed(spec))
    return failure();
  spec->sizes = sizes;
  if (std::optional<ArrayRef<bool>> reversal = getWindowReversal())
    if (failed(expectSize(*this, rank - 2, reversal->size(),
                          "entries of window_reversal")))
      return failure();
  if (failed(verifyGroups(*this)))
    return failure();
  // convolution_c24
  if (std::optional<ArrayAttr> precision = getPrecisionConfig())
    if (!precision->empty() &&
        failed(expectSize(*this, 2, precision->size(),
                          "entries of the precision config")))
      return failure();
  // convolution_c25
  SmallVector<int64_t> shape(rank);
  shape[dims.getOutputBatchDimension()] =
      lhs.getDimSize(dims.getInputBatchDimension()) /
      static_cast<int64_t>(getBatchGroupCount());
  shape[dims.getOutputFeatureDimension()] =
      rhs.getDimSize(dims.getKernelOutputFeatureDimension());
  for (auto [dim, size] : llvm::zip(dims.getOutputSpatialDimensions(),
                                    getWindowedShape(spatial, *spec)))
    shape[dim] = size;
  return expectType(*this,
                    RankedTensorType::get(shape, result.getElementType()),
                    result, "a result");
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Checks that inputs have one shape, and that init values are 0-d and have
/// their element types.
static LogicalResult verifyReduction(Operation *op, ValueRange inputs,
                                     ValueRange inits) {
  if (inputs.empty())
    return op->emitOpError("expected one input or more but got none");
  // An odd operand would belong to neither group.
  if (op->getNumOperands() != 2 * inputs.size())
    return op->emitOpError("expected an init value for each input but got ")
           << op->getNumOperands() << " operands";
  if (failed(expectSize(op, inputs.size(), op->getNumResults(), "results")))
    return failure();
  RankedTensorType first = getType(inputs.front());
  for (auto [input, init] : llvm::zip(inputs, inits)) {
    RankedTensorType type = getType(input);
    if (type.getShape() != first.getShape())
      return op->emitOpError("expected inputs of one shape but got ")
             << first << " and " << type;
    if (failed(expectType(op, getScalarType(type.getElementType()),
                          init.getType(), "an init value")))
      return failure();
  }
  return success();
}

LogicalResult ReduceOp::verify() {
  // reduce_c1, reduce_c2, reduce_c3
  if (failed(verifyReduction(*this, getInputs(), getInitValues())))
    return failure();
  RankedTensorType first = ::getType(getInputs().front());
  ArrayRef<int64_t> dims = getDimensions();
  // reduce_c4
  if (failed(expectInRange(*this, dims, first.getRank(), "dimensions")) ||
      // reduce_c5
      failed(expectUnique(*this, dims, "dimensions")))
    return failure();
  // reduce_c7, reduce_c8
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < first.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      shape.push_back(first.getDimSize(i));
  for (auto [input, result] : llvm::zip(getInputs(), getResults()))
    if (failed(expectType(
            *this,
            RankedTensorType::get(shape, ::getType(input).getElementType()),
            result.getType(), "a result")))
      return failure();
  return success();
}

LogicalResult ReduceOp::verifyRegions() {
  // reduce_c6
  return expectReducer(*this, getBody(), getInputs(), "the body");
}

LogicalResult ReduceWindowOp::verify() {
  // reduce_window_c1, reduce_window_c2, reduce_window_c3
  if (failed(verifyReduction(*this, getInputs(), getInitValues())))
    return failure();
  RankedTensorType first = ::getType(getInputs().front());
  // reduce_window_c4 to reduce_window_c12
  if (failed(expectSize(*this, first.getRank(), getWindowDimensions().size(),
                        "window dimensions")))
    return failure();
  FailureOr<WindowSpec> spec =
      getWindowSpec(*this, getWindowDimensions(), getWindowStrides(),
                    getBaseDilations(), getWindowDilations(), getPadding());
  if (failed(spec))
    return failure();
  // reduce_window_c15, reduce_window_c16
  SmallVector<int64_t> shape = getWindowedShape(first.getShape(), *spec);
  for (auto [input, result] : llvm::zip(getInputs(), getResults()))
    if (failed(expectType(
            *this,
            RankedTensorType::get(shape, ::getType(input).getElementType()),
            result.getType(), "a result")))
      return failure();
  return success();
}

LogicalResult ReduceWindowOp::verifyRegions() {
  // reduce_window_c13
  return expectReducer(*this, getBody(), getInputs(), "the body");
}

LogicalResult SelectAndScatterOp::verify() {
  RankedTensorType operand = getOperand().getType();
  Type element = operand.getElementType();
  // select_and_scatter_c3
  if (failed(expectType(*this, getScalarType(element), getInitValue().getType(),
                        "an init value")))
    return failure();
  // select_and_scatter_c4 to select_and_scatter_c8
  SmallVector<int64_t> ones(operand.getRank(), 1);
  ArrayRef<int64_t> sizes = getWindowDimensions().value_or(ones);
  if (failed(expectSize(*this, operand.getRank(), sizes.size(),
                        "window dimensions")))
    return failure();
  FailureOr<WindowSpec> spec =
      getWindowSpec(*this, sizes, getWindowStrides(), std::nullopt,
                    std::nullopt, getPadding());
  if (failed(spec))
    return failure();
  // select_and_scatter_c1, select_and_scatter_c2
  if (failed(
          expectType(*this,
                     RankedTensorType::get(
                         getWindowedShape(operand.getShape(), *spec), element),
                     getSource().getType(), "a source")))
    return failure();
  // select_and_scatter_c11, select_and_scatter_c12
  return expectType(*this, operand, getType(), "a result");
}

LogicalResult SelectAndScatterOp::verifyRegions() {
  Type element = getOperand().getType().getElementType();
  // select_and_scatter_c9
  if (failed(expectScalarRegion(*this, getSelect(), {element, element},
                                {IntegerType::get(getContext(), 1)},
                                "the selection")))
    return failure();
  // select_and_scatter_c10
  return expectScalarRegion(*this, getScatter(), {element, element}, {element},
                            "the scatter computation");
}

LogicalResult MapOp::verify() {
  // map_c1
  if (getInputs().empty())
    return emitOpError("expected one input or more but got none");
  for (Value input : getInputs())
    if (::getType(input).getShape() != getType().getShape())
      return emitOpError("expected inputs of the result's shape but got ")
             << input.getType() << " and " << getType();
  // map_c3
  if (!llvm::equal(getDimensions(), llvm::seq<int64_t>(0, getType().getRank())))
    return emitOpError("expected all dimensions in order but got ")
           << toString(getDimensions());
  return success();
}

LogicalResult MapOp::verifyRegions() {
  // map_c4
  SmallVector<Type> arguments;
  for (Value input : getInputs())
    arguments.push_back(::getType(input).getElementType());
  return expectScalarRegion(*this, getComputation(), arguments,
                            {getType().getElementType()}, "the computation");
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult WhileOp::verifyRegions() {
  // while_c3
  if (failed(expectSize(*this, getNumOperands(), getNumResults(), "results")))
    return failure();
  for (auto [operand, result] : llvm::zip(getOperandTypes(), getResultTypes()))
    if (failed(expectType(*this, operand, result, "a result")))
      return failure();
  for (Region *region : {&getCond(), &getBody()}) {
    StringRef what = region == &getCond() ? "the condition" : "the body";
    if (failed(expectSize(*this, getNumOperands(), region->getNumArguments(),
                          "arguments of " + what)))
      return failure();
    for (auto [i, type] : llvm::enumerate(getOperandTypes()))
      if (failed(expectType(*this, type, region->getArgument(i).getType(),
                            "argument " + Twine(i) + " of " + what)))
        return failure();
  }
  // while_c1
  Type pred = getScalarType(IntegerType::get(getContext(), 1));
  if (failed(expectRegionResults(*this, getCond(), pred, "the condition")))
    return failure();
  // while_c2
  return expectRegionResults(*this, getBody(), getOperandTypes(), "the body");
}

void WhileOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    setName(argument, "iterArg");
}

/// Checks that a branch has no arguments and returns the results.
static LogicalResult verifyBranch(Operation *op, Region &region,
                                  const Twine &what) {
  if (failed(
          expectSize(op, 0, region.getNumArguments(), "arguments of " + what)))
    return failure();
  return expectRegionResults(op, region, op->getResultTypes(), what);
}

LogicalResult IfOp::verify() {
  return expectType(*this, getScalarType(IntegerType::get(getContext(), 1)),
                    getPred().getType(), "a predicate");
}

LogicalResult IfOp::verifyRegions() {
  // if_c1, if_c2, if_c3
  if (failed(verifyBranch(*this, getTrueBranch(), "the true branch")))
    return failure();
  return verifyBranch(*this, getFalseBranch(), "the false branch");
}

LogicalResult CaseOp::verify() {
  if (failed(expectType(*this,
                        getScalarType(IntegerType::get(getContext(), 32)),
                        getIndex().getType(), "an index")))
    return failure();
  // case_c1
  if (getBranches().empty())
    return emitOpError("expected one branch or more but got none");
  return success();
}

LogicalResult CaseOp::verifyRegions() {
  // case_c2, case_c3, case_c4
  for (auto [i, branch] : llvm::enumerate(getBranches()))
    if (failed(verifyBranch(*this, branch, "branch " + Twine(i))))
      return failure();
  return success();
}

LogicalResult OptimizationBarrierOp::verify() {
  // optimization_barrier_c1
  if (failed(expectSize(*this, getNumOperands(), getNumResults(), "results")))
    return failure();
  for (auto [operand, result] : llvm::zip(getOperandTypes(), getResultTypes()))
    if (failed(expectType(*this, operand, result, "a result")))
      return failure();
  return success();
}

LogicalResult CompositeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // composite_c4
  auto function = symbols.lookupNearestSymbolFrom<func::FuncOp>(
      *this, getDecompositionAttr());
  if (!function)
    return emitOpError("expected a function named ")
           << getDecompositionAttr() << " but got none";
  auto type =
      FunctionType::get(getContext(), getOperandTypes(), getResultTypes());
  if (function.getFunctionType() != type)
    return (emitOpError("expected a decomposition of type ")
            << type << " but got " << function.getFunctionType())
               .attachNote(function.getLoc())
           << "decomposition defined here";
  return success();
}

void CustomCallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getHasSideEffect())
    return;
  // The op must not be removed, or moved across another one.
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

#define GET_OP_CLASSES
#include "fp8/Dialect/StableHLO/IR/StableHLOOps.cpp.inc"
