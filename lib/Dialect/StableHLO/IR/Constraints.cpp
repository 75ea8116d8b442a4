//===- Constraints.cpp - Constraints that several ops share ---------------===//

#include "Constraints.h"

using namespace mlir;
using namespace mlir::stablehlo;

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

/// Returns the terminator of a region; an error if it is not stablehlo.return.
static FailureOr<ReturnOp> expectReturn(Operation *op, Region &region,
                                        const Twine &what) {
  Block &block = region.front();
  auto ret = block.empty() ? ReturnOp() : dyn_cast<ReturnOp>(block.back());
  if (!ret)
    return op->emitOpError("expected stablehlo.return at the end of ") << what;
  return ret;
}

LogicalResult stablehlo::expectScalarRegion(Operation *op, Region &region,
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
  SmallVector<Type> scalars = llvm::map_to_vector(results, getScalarType);
  return expectRegionResults(op, region, scalars, what);
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

LogicalResult stablehlo::expectRegionResults(Operation *op, Region &region,
                                             TypeRange results,
                                             const Twine &what) {
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
