//===- SignatureExtension.h - Many new arguments and results ----*- C++ -*-===//
//
// A function's type and the attributes of its arguments are uniqued: to add one
// argument, all of them are copied and hashed. A step gets thousands.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SIGNATUREEXTENSION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SIGNATUREEXTENSION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// The prefix of the tree paths of state that belongs to a tensor of the step.
constexpr llvm::StringLiteral kStatePrefix = "fp8.";

/// Returns the name of the tensor to which a state belongs: its path without
/// the prefix.
inline StringRef getTensorName(StringRef state) {
  state.consume_front(kStatePrefix);
  return state;
}

/// Appends arguments and results to a function. The body has them at once, but
/// the function's type and attributes only when `apply` is called. Until then,
/// nothing may ask for attributes of the new ones.
class SignatureExtension {
public:
  explicit SignatureExtension(func::FuncOp function) : function(function) {}
  ~SignatureExtension() {
    assert(types.empty() && resultTypes.empty() && "expected a call of apply");
  }

  BlockArgument addArgument(Type type, DictionaryAttr attributes, Location loc);
  void addResult(Value value, DictionaryAttr attributes);
  /// Adds a state argument of a kind; with `startsAsZeros` there is no initial
  /// value. If ranks have parts of it, `part` says which.
  BlockArgument addStateArgument(Type type, const Twine &path, StringRef kind,
                                 Location loc, bool startsAsZeros = false,
                                 DictionaryAttr part = {});
  /// Adds the next value of the state argument with this path.
  void addStateResult(const Twine &path, Value value);

  /// Makes type and attributes of the function match its body.
  void apply();

private:
  func::FuncOp function;
  SmallVector<Type> types, resultTypes;
  SmallVector<DictionaryAttr> attributes, resultAttributes;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SIGNATUREEXTENSION_H
