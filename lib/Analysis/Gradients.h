//===- Gradients.h - Which gradient belongs to which tensor -----*- C++ -*-===//
//
// Differentiation leaves a mark. Where the forward pass has a product (a dot, a
// convolution, an elementwise one, a lookup) of a weight w and x, the backward
// pass has two: dw of x and dy, and dx of w and dy. So the factors of a
// gradient are the values that its weight is multiplied with, x and dy; a bias
// shares those of the sum it is added to. Layers of one shape are told apart by
// this alone, and so is a residual block, x + f(x), from an update.
//
// Values are compared by number: copies, changes of shape or type, factors
// that are scalar or constant, barriers, stacks and recomputation do not change
// it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_ANALYSIS_GRADIENTS_H
#define FP8_LIB_ANALYSIS_GRADIENTS_H

#include "fp8/Analysis/DataFlow.h"

#include <unordered_map>

namespace mlir {
namespace fp8 {

class Gradients {
public:
  explicit Gradients(func::FuncOp func);

  /// Numbers with a weight below 1 for what is further away.
  using Factors = SmallVector<std::pair<unsigned, double>>;
  /// What a tensor is multiplied with.
  Factors partnersOf(Value tensor) const;
  /// What a possible gradient is a product of.
  Factors factorsOf(Value gradient) const;

  /// How much of the factors of `gradient` are partners of `tensor`; 0 if it is
  /// no gradient of it.
  double evidence(Value tensor, const Factors &partners, Value gradient) const;

private:
  /// How a value is computed: of which numbers.
  struct Form {
    enum Kind { Other, Product, Sum, Reduction };
    Kind kind = Other;
    SmallVector<unsigned, 2> operands;
    /// Scalars and constants are in too many products to tell something.
    bool says = true;
    bool isConstant = false;
    int64_t elements = 0;
  };

  void visit(Block &block);
  void visit(Operation &op);
  void visitLoop(Operation &loop);
  unsigned fresh(Value value);
  unsigned numberOf(Value value);
  void define(Value value, Form form);
  Factors factorsOf(unsigned number) const;

  DenseMap<Value, unsigned> numbers;
  /// By hash: what is computed alike has one number.
  std::unordered_map<size_t, unsigned> known;
  std::vector<Form> forms;
  /// By number: the other factors of its products, what it is spread over
  /// and added to, and the sums of its own shape.
  std::vector<SmallVector<unsigned, 2>> partners, terms, sums;
  /// Partners in inner products, which measure more often than they use: an
  /// optimizer may take that of weights and their gradient.
  std::vector<SmallVector<unsigned, 2>> measured;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_GRADIENTS_H
