//===- Gradients.h - Matching of gradients and tensors ----------*- C++ -*-===//
//
// Differentiation leaves a pattern. If the forward pass has a product (a dot, a
// convolution, an elementwise product, a lookup) of a weight w and x, the
// backward pass has two: dw of x and dy, and dx of w and dy. The factors of a
// gradient, x and dy, are therefore the values that its weight is multiplied
// with. A bias shares the factors of the sum that it is added to. This alone
// tells layers of one shape apart, and a residual block, x + f(x), from an
// update.
//
// Values are compared by number. Copies, changes of shape or type, scalar or
// constant factors, barriers, stacks and recomputation do not change the
// number.
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

  /// Numbers of values, with a weight below 1 for distant ones.
  using Factors = SmallVector<std::pair<unsigned, double>>;
  /// Returns the values that a tensor is multiplied with.
  Factors partnersOf(Value tensor) const;
  /// Returns the factors of a possible gradient.
  Factors factorsOf(Value gradient) const;

  /// Returns how much the factors of `gradient` overlap with the partners of
  /// `tensor`; 0 if it is no gradient of it.
  double evidence(Value tensor, const Factors &partners, Value gradient) const;

  /// Returns the number of elements of a tensor, or of a rank's part of it.
  int64_t sizeOf(Value tensor) const {
    return forms[numbers.lookup(tensor)].elements;
  }

private:
  /// How a value is computed, and from which numbers.
  struct Form {
    enum Kind { Other, Product, Sum, Reduction };
    Kind kind = Other;
    SmallVector<unsigned, 2> operands;
    /// The elements of a concatenation, one by one.
    SmallVector<unsigned, 2> parts;
    /// False for scalars and constants, which occur in too many products to be
    /// evidence.
    bool isEvidence = true;
    bool isConstant = false;
    int64_t elements = 0;
  };

  void visit(Block &block);
  void visit(Operation &op);
  void visitLoop(Operation &loop);
  void visitBranches(Operation &op);
  bool visitPart(stablehlo::SliceOp slice);
  SmallVector<unsigned, 2> partsOf(stablehlo::ConcatenateOp op) const;
  /// Returns how `op` computes its results; notes the partners in a product.
  Form formOf(Operation &op);
  /// Notes a result that `op`, a sum or a selection, makes of `form`.
  void addTerms(Operation &op, const Form &form, unsigned result);
  unsigned fresh(Value value);
  unsigned numberOf(Value value);
  void define(Value value, Form form);
  Factors factorsOf(unsigned number) const;

  DenseMap<Value, unsigned> numbers;
  /// The number for each hash: values that are computed alike have the same
  /// one.
  std::unordered_map<size_t, unsigned> known;
  std::vector<Form> forms;
  /// For each number: the other factors of its products, the values that it is
  /// broadcast and added to, and the sums of its own shape.
  std::vector<SmallVector<unsigned, 2>> partners, terms, sums;
  /// Partners in inner products, which often only measure something: an
  /// optimizer may compute that of weights and their gradient.
  std::vector<SmallVector<unsigned, 2>> innerProductPartners;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_GRADIENTS_H
