//===- Reductions.cpp - Ops that combine elements -------------------------===//
//
// Constraint numbers in comments are those of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"
#include "Windows.h"

using namespace mlir;
using namespace mlir::stablehlo;

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
  RankedTensorType first = tensorOf(inputs.front());
  for (auto [input, init] : llvm::zip(inputs, inits)) {
    RankedTensorType type = tensorOf(input);
    if (type.getShape() != first.getShape())
      return op->emitOpError("expected inputs of one shape but got ")
             << first << " and " << type;
    if (failed(expectType(op, getScalarType(type.getElementType()),
                          init.getType(), "an init value")))
      return failure();
  }
  return success();
}

/// Checks that the results have this shape and the inputs' element types.
static LogicalResult expectReduced(Operation *op, ValueRange inputs,
                                   ArrayRef<int64_t> shape) {
  for (auto [input, result] : llvm::zip(inputs, op->getResults()))
    if (failed(expectType(op, tensorOf(input).clone(shape), result.getType(),
                          "a result")))
      return failure();
  return success();
}

LogicalResult ReduceOp::verify() {
  // reduce_c1, reduce_c2, reduce_c3
  if (failed(verifyReduction(*this, getInputs(), getInitValues())))
    return failure();
  RankedTensorType first = tensorOf(getInputs().front());
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
  return expectReduced(*this, getInputs(), shape);
}

LogicalResult ReduceOp::verifyRegions() {
  // reduce_c6
  return expectReducer(*this, getBody(), getInputs(), "the body");
}

LogicalResult ReduceWindowOp::verify() {
  // reduce_window_c1, reduce_window_c2, reduce_window_c3
  if (failed(verifyReduction(*this, getInputs(), getInitValues())))
    return failure();
  RankedTensorType first = tensorOf(getInputs().front());
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
  return expectReduced(*this, getInputs(), shape);
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
    if (tensorOf(input).getShape() != getType().getShape())
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
    arguments.push_back(tensorOf(input).getElementType());
  return expectScalarRegion(*this, getComputation(), arguments,
                            {getType().getElementType()}, "the computation");
}
