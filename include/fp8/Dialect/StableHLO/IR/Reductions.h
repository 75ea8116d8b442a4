//===- Reductions.h - Reductions along dimensions ---------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_REDUCTIONS_H
#define FP8_DIALECT_STABLEHLO_IR_REDUCTIONS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

namespace mlir::fp8 {

/// Reduces `value` along `dims` by `Combiner` (stablehlo.add,
/// stablehlo.maximum, ...), starting from the scalar `init`.
template <typename Combiner>
Value makeReduction(OpBuilder &b, Location loc, Value value, Value init,
                    ArrayRef<int64_t> dims) {
  RankedTensorType type = tensorOf(value);
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      kept.push_back(size);
  auto reduce = stablehlo::ReduceOp::create(b, loc, TypeRange{type.clone(kept)},
                                            ValueRange{value}, ValueRange{init},
                                            b.getDenseI64ArrayAttr(dims));
  OpBuilder::InsertionGuard guard(b);
  Type scalar = init.getType();
  Block *body =
      b.createBlock(&reduce.getBody(), {}, {scalar, scalar}, {loc, loc});
  Value combined =
      Combiner::create(b, loc, body->getArgument(0), body->getArgument(1));
  stablehlo::ReturnOp::create(b, loc, ValueRange{combined});
  return reduce->getResult(0);
}

} // namespace mlir::fp8

#endif // FP8_DIALECT_STABLEHLO_IR_REDUCTIONS_H
