//===- Seeds.h - Seeds of stochastic rounding -------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SEEDS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SEEDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir {
namespace fp8 {

/// The seeds of stochastic rounding in the blocks of one function. A seed is a
/// hash of the recipe's seed, the number of the call and the counters of all
/// loops around the block. The first argument of kind `step` that is proven to
/// advance in every call gives the number of the call. A step without one, such
/// as one whose optimizer counts only the updates that it takes, gets a counter
/// of its own: the state `fp8.step`.
class Seeds {
public:
  Seeds(func::FuncOp function, int64_t seed)
      : function(function), seed(seed), builder(function.getContext()) {}

  /// Gives the function the counter that it needs. Replaces operands of its
  /// terminator.
  void prepare() { (void)get(&function.getBody().front()); }

  /// Returns the seed for `block`, made at its start. It is an error if a loop
  /// has no counter. The first call prepares the function.
  FailureOr<Value> get(Block *block);

private:
  Value getOuter();

  func::FuncOp function;
  int64_t seed;
  OpBuilder builder;
  DenseMap<Block *, Value> seeds;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SEEDS_H
