//===- CHLODialect.cpp - CHLO subset dialect ------------------------------===//

#include "fp8/Dialect/StableHLO/IR/CHLO.h"

#include "UnsupportedOps.h"

#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace mlir::chlo;

#include "fp8/Dialect/StableHLO/IR/CHLODialect.cpp.inc"

namespace {

struct CHLOInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

/// CHLO ops outside of the subset.
struct UnsupportedCHLONames {
  static constexpr StringLiteral list[] = {
      "chlo._asin_acos_kernel",
      "chlo.broadcast_acos",
      "chlo.broadcast_acosh",
      "chlo.broadcast_add",
      "chlo.broadcast_and",
      "chlo.broadcast_atan2",
      "chlo.broadcast_compare",
      "chlo.broadcast_complex",
      "chlo.broadcast_divide",
      "chlo.broadcast_maximum",
      "chlo.broadcast_minimum",
      "chlo.broadcast_multiply",
      "chlo.broadcast_next_after",
      "chlo.broadcast_or",
      "chlo.broadcast_polygamma",
      "chlo.broadcast_power",
      "chlo.broadcast_remainder",
      "chlo.broadcast_select",
      "chlo.broadcast_shift_left",
      "chlo.broadcast_shift_right_arithmetic",
      "chlo.broadcast_subtract",
      "chlo.broadcast_shift_right_logical",
      "chlo.broadcast_xor",
      "chlo.broadcast_zeta",
      "chlo.conj",
      "chlo.constant",
      "chlo.constant_like",
      "chlo.dynamic_reshape",
      "chlo.minimum_broadcast_shapes",
      "chlo.ragged_dot",
      "chlo.scan",
  };
};

} // namespace

void ChloDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "fp8/Dialect/StableHLO/IR/CHLOOps.cpp.inc"
      >();
  stablehlo::addUnsupportedOps<UnsupportedCHLONames>(
      [&](auto *op) { addOperations<std::remove_pointer_t<decltype(op)>>(); },
      std::make_index_sequence<std::size(UnsupportedCHLONames::list)>());
  addInterfaces<CHLOInlinerInterface>();
}

std::optional<Dialect::ParseOpHook>
ChloDialect::getParseOperationHook(StringRef) const {
  return stablehlo::getUnknownOpHook();
}

//===----------------------------------------------------------------------===//
// TopKOp
//===----------------------------------------------------------------------===//

void TopKOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValues(), "values");
  setName(getIndices(), "indices");
}

LogicalResult TopKOp::verify() {
  RankedTensorType type = getOperand().getType();
  if (type.getRank() == 0)
    return emitOpError("expected an operand of rank 1 or more but got ")
           << type;
  int64_t k = getK();
  if (k < 0 || k > type.getShape().back())
    return emitOpError("expected k in [0, ")
           << type.getShape().back() << "] but got " << k;
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = k;
  auto values = RankedTensorType::get(shape, type.getElementType());
  if (getValues().getType() != values)
    return emitOpError("expected values of type ")
           << values << " but got " << getValues().getType();
  auto indices =
      RankedTensorType::get(shape, IntegerType::get(getContext(), 32));
  if (getIndices().getType() != indices)
    return emitOpError("expected indices of type ")
           << indices << " but got " << getIndices().getType();
  return success();
}

#define GET_OP_CLASSES
#include "fp8/Dialect/StableHLO/IR/CHLOOps.cpp.inc"
