//===- Signature.h - Roles of a step's arguments and results ----*- C++ -*-===//
//
// A training step is a function from (parameters, optimizer state, batch) to
// (parameters, optimizer state, loss, metrics) whose text does not say which is
// which. This analysis pairs state by tree path and type, then by data flow,
// and finds kinds by data flow alone. It stores its findings as attributes on
// the arguments and results of the function. All later stages rely on these,
// never on indices.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_SIGNATURE_H
#define FP8_ANALYSIS_SIGNATURE_H

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Enums.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <utility>

namespace mlir {
namespace fp8 {
class Dependence;

/// One argument of a step.
struct SignatureArg {
  std::string path;
  ArgRole role = ArgRole::Constant;
  /// Meaningful for state only.
  StateKind kind = StateKind::Other;
  /// The path of the parameter that a moment, a gradient or a master copy
  /// (which has no other kind) belongs to.
  std::string parameter;
  Type type;
  unsigned index = 0;
  /// For token arrays: the number of rows of the table that they index.
  std::optional<int64_t> vocabulary;
  /// For a batch of integers: whether they are labels (`areLabels`).
  bool labels = false;
  /// For state that the compiler added: it starts as zeros, not from the
  /// initializer.
  bool zeroInit = false;
  /// The reason for the role and kind, for users. Not stored as an attribute.
  std::string why;
};

/// One result of a step.
struct SignatureResult {
  std::string path;
  /// Path of the state argument that this result replaces; empty if none.
  std::string statePath;
  ResultKind kind = ResultKind::Output;
  /// For a metric: whether gradients could flow from it as from the loss, so
  /// that its computation is part of the forward pass.
  bool trains = false;
  Type type;
  unsigned index = 0;
  std::string why;
};

/// The signature of a step or of any other function.
struct Signature {
  llvm::SmallVector<SignatureArg> args;
  llvm::SmallVector<SignatureResult> results;

  /// Reads the attributes of `func`; fails if one is missing or malformed.
  static FailureOr<Signature> fromAttributes(func::FuncOp func);

  /// Writes the attributes of `func` and drops the hints they replace
  /// (`jax.result_info`, `tf.aliasing_output`, `jax.buffer_donor`).
  void toAttributes(func::FuncOp func) const;

  const SignatureArg *findArg(llvm::StringRef path) const;
  const SignatureResult *findResult(llvm::StringRef path) const;
  /// Returns the result that replaces the state argument `argPath`.
  const SignatureResult *findStateResult(llvm::StringRef argPath) const;
  /// Returns the loss, or null.
  const SignatureResult *findLoss() const;
  /// Returns true if the function replaces some of its arguments: a training
  /// step.
  bool isStep() const;
};

/// Returns the role of an argument of a function or a schedule, by its
/// attribute; nothing if `value` is no such argument or has none.
std::optional<ArgRole> argRoleOf(Value value);

/// Returns the kind of an argument that is state, in the same way.
std::optional<StateKind> stateKindOf(Value value);

/// Returns the argument of `func` with this path, or null.
BlockArgument findArgument(func::FuncOp func, llvm::StringRef path);

/// Returns the arguments of `func` that have a path, for repeated lookups.
llvm::StringMap<BlockArgument> argumentsByPath(func::FuncOp func);

/// Returns the numbers of the results that replace arguments, by the paths of
/// these, for repeated lookups.
DenseMap<StringAttr, unsigned> resultsByState(func::FuncOp func);

/// A leaf of a tree of tensors.
struct TreeLeaf {
  std::string path;
  Type type;
};

/// How to treat a function.
enum class FunctionKind {
  /// A step if it trains, that is, if gradients flow into its results.
  Auto,
  Step,
  Function
};

/// The user's choices, which override the guesses.
struct SignatureOptions {
  FunctionKind functionKind = FunctionKind::Auto;
  /// Argument path and role.
  llvm::SmallVector<std::pair<std::string, std::string>> roles;
  /// Argument path and the path of the result that replaces it.
  llvm::SmallVector<std::pair<std::string, std::string>> states;
  /// Path of the loss.
  std::string loss;
  /// The tensors of the run's initial values, if known: an argument that no
  /// result replaces and that has an initial value is no data.
  llvm::SmallVector<TreeLeaf> initialValues;
};

/// Finds the signature of `func`, a function over StableHLO tensors without
/// calls. Emits an error and fails if a guess would be ambiguous.
FailureOr<Signature> analyzeSignature(func::FuncOp func,
                                      const SignatureOptions &options = {});

/// Prints one line per argument and result: path, type, role, kind, reason.
void printSignature(const Signature &signature, llvm::raw_ostream &os);

/// Prints the same for a function that has its attributes. Recomputes the
/// reasons without the user's choices in `options`, unless the analysis needs
/// them. An attribute that differs from the guess is reported as the user's
/// choice.
LogicalResult printSignature(func::FuncOp func, llvm::raw_ostream &os,
                             SignatureOptions options = {});

/// Prints the signature as JSON: {"arguments": [{"path", "type", "role",
/// "kind", "result": the path of the result that replaces it, or null}],
/// "results": [{"path", "type", "kind", "state": the path of the argument that
/// it replaces, or null}]}, both in order.
void printSignatureJSON(const Signature &signature, llvm::raw_ostream &os);

/// Returns the paths of the state that a function with a signature returns
/// unchanged.
llvm::SmallVector<std::string> findUnchangedState(func::FuncOp func);

/// Returns the number of rows of the smallest table that the integer argument
/// `argIndex` indexes (through the clamps and reshapes that JAX emits for
/// `take` and `one_hot`), if it indexes one.
std::optional<int64_t> findVocabulary(func::FuncOp func, unsigned argIndex);

/// Returns whether the integer argument `argIndex` only chooses among values
/// that follow from data, as labels choose among the results of a model. Tokens
/// choose rows of a table first.
bool areLabels(func::FuncOp func, unsigned argIndex, const Dependence &onData);

/// Splits a tree path as JAX prints it into its root and its keys:
/// `p['layers'][0].w` gives `p`, `['layers']`, `[0]`, `.w`.
llvm::SmallVector<std::string> splitTreePath(llvm::StringRef path);

/// Scores how well result leaf `to` fits argument leaf `from`; 0 means not at
/// all.
using LeafScore = llvm::function_ref<double(unsigned from, unsigned to)>;

/// Pairs the leaves of two forests: subtrees of `from` with subtrees of `to`
/// that hold the same relative paths and types, in subtrees that are as large
/// as possible. If several subtrees fit, the better score wins. Names decide
/// without a score, and among pairings of equal score; then the order of both
/// sides and `hint` decide, as far as they agree with the pairs that are
/// already decided. Returns for each leaf of `from` its partner in `to` or
/// nullopt. Used for state, and to bind an initializer's results to a step's
/// arguments.
llvm::SmallVector<std::optional<unsigned>>
matchTrees(llvm::ArrayRef<TreeLeaf> from, llvm::ArrayRef<TreeLeaf> to,
           LeafScore score = nullptr, LeafScore hint = nullptr,
           llvm::SmallVectorImpl<std::string> *ambiguities = nullptr);

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_SIGNATURE_H
