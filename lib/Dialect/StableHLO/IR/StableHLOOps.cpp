//===- StableHLOOps.cpp - Constants, and what ops share -------------------===//
//
// Constraint numbers in comments are those of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "AssemblyFormat.h"
#include "Constraints.h"

#include "mlir/IR/DialectImplementation.h"

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

#define GET_OP_CLASSES
#include "fp8/Dialect/StableHLO/IR/StableHLOOps.cpp.inc"
