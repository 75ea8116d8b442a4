//===- Seeds.h - Seeds of stochastic rounding -------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SEEDS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SEEDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir {
namespace fp8 {

/// The seeds of stochastic rounding in the blocks of one function: of the
/// recipe's seed, the number of the step and the counters of all loops that a
/// block is in.
class Seeds {
public:
  Seeds(func::FuncOp function, int64_t seed)
      : function(function), seed(seed), builder(function.getContext()) {}

  /// The seed in `block`, made at its start. An error if no argument counts the
  /// steps, or if a loop has no counter.
  FailureOr<Value> get(Block *block);

private:
  func::FuncOp function;
  int64_t seed;
  OpBuilder builder;
  DenseMap<Block *, Value> seeds;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SEEDS_H
