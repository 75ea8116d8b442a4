//===- StableHLO.h - StableHLO subset dialect -------------------*- C++ -*-===//
//
// A clean-room subset of StableHLO; class and accessor names are upstream's.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_STABLEHLO_H
#define FP8_DIALECT_STABLEHLO_IR_STABLEHLO_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir {
namespace stablehlo {
namespace OpTrait {

/// Implementation of `SameTypes`, kept out of the template.
LogicalResult verifySameTypes(Operation *op);

/// All operands and results have one type; the error prints both types.
template <typename ConcreteType>
class SameTypes : public ::mlir::OpTrait::TraitBase<ConcreteType, SameTypes> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return verifySameTypes(op);
  }
};

/// Implementation of `SameShape`, kept out of the template.
LogicalResult verifySameShape(Operation *op);

/// All operands and results have one shape; the error prints both types.
template <typename ConcreteType>
class SameShape : public ::mlir::OpTrait::TraitBase<ConcreteType, SameShape> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return verifySameShape(op);
  }
};

} // namespace OpTrait

/// Returns the error for an op, attribute or type that the subset does not
/// have. `what` is its full name, such as `stablehlo.fft`.
std::string getUnsupportedMessage(StringRef what);

} // namespace stablehlo
} // namespace mlir

#include "fp8/Dialect/StableHLO/IR/StableHLODialect.h.inc"
#include "fp8/Dialect/StableHLO/IR/StableHLOEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/StableHLO/IR/StableHLOAttrs.h.inc"

#define GET_OP_CLASSES
#include "fp8/Dialect/StableHLO/IR/StableHLOOps.h.inc"

namespace mlir::stablehlo {

/// Whether every element of the results is computed from the elements at the
/// same index of the operands (or from a scalar operand).
inline bool worksByElement(Operation *op) {
  return op->hasTrait<::mlir::OpTrait::Elementwise>() ||
         isa<ClampOp, SelectOp>(op);
}

/// Whether an op chooses one of its regions to run.
inline bool isBranch(Operation *op) { return isa<IfOp, CaseOp>(op); }

/// Returns a tensor with `low` and `high` zeros around it and `interior` zeros
/// between its elements along each dimension (negative numbers remove
/// elements); the tensor itself if there are none.
Value padWithZeros(OpBuilder &builder, Location loc, Value value,
                   ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                   ArrayRef<int64_t> interior);

/// Returns the strides or dilations of windows, which are 1 by default.
SmallVector<int64_t> orOnes(std::optional<ArrayRef<int64_t>> values,
                            unsigned rank);

/// Returns the low and high padding of each dimension, which are 0 by default.
SmallVector<std::pair<int64_t, int64_t>>
paddings(std::optional<DenseIntElementsAttr> attr, unsigned rank);

/// Returns the op that a reduction or a scatter applies, if its body consists
/// of that op alone; else null.
Operation *getCombiner(Region &body);

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_STABLEHLO_H
