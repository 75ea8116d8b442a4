//===- Signature.h - Roles of a step's arguments and results ----*- C++ -*-===//
//
// A training step is a function from (parameters, optimizer state, batch) to
// (parameters, optimizer state, loss, metrics) whose text says nothing about
// which is which. This analysis finds out: state is paired by tree path and
// type, then by data flow, and kinds are told by data flow alone. What it finds
// is kept as attributes on the arguments and results of the function, and all
// later stages find things through these, never by index.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_SIGNATURE_H
#define FP8_ANALYSIS_SIGNATURE_H

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <utility>

namespace mlir {
namespace fp8 {

/// Names of the attributes that hold the signature.
constexpr llvm::StringLiteral kPathAttr = FP8Dialect::kPathAttrName;
constexpr llvm::StringLiteral kRoleAttr = FP8Dialect::kRoleAttrName;
constexpr llvm::StringLiteral kKindAttr = FP8Dialect::kKindAttrName;
constexpr llvm::StringLiteral kStateAttr = FP8Dialect::kStateAttrName;
constexpr llvm::StringLiteral kVocabularyAttr = FP8Dialect::kVocabularyAttrName;
constexpr llvm::StringLiteral kParameterAttr = FP8Dialect::kParameterAttrName;
constexpr llvm::StringLiteral kTrainsAttr = FP8Dialect::kTrainsAttrName;
constexpr llvm::StringLiteral kZeroInitAttr = FP8Dialect::kZeroInitAttrName;

/// What a step does with an argument.
enum class ArgRole {
  /// A result replaces it after each step.
  State,
  /// A float tensor that is read and never replaced.
  Frozen,
  /// Training data, fed anew each step.
  Batch,
  /// A random number generator's key that is not returned.
  Key,
  /// Any other scalar: the same value each step.
  Constant
};

/// What a state argument is to the optimizer.
enum class StateKind {
  Parameter,
  Moment1,
  Moment2,
  /// Adds up the gradients of several calls.
  Gradient,
  /// Follows the weights of a parameter: their average, or a copy from time to
  /// time. No gradient reaches it.
  Average,
  Step,
  Other
};

/// What a result is.
enum class ResultKind {
  State,
  Loss,
  Metric,
  Output,
  /// Statistics that fp8-trace has added, which the user's step knows nothing
  /// of.
  TraceQuantization,
  TraceUpdate,
  TraceAlignment
};

llvm::StringRef stringify(ArgRole role);
llvm::StringRef stringify(StateKind kind);
llvm::StringRef stringify(ResultKind kind);
std::optional<ArgRole> symbolizeArgRole(llvm::StringRef text);
std::optional<StateKind> symbolizeStateKind(llvm::StringRef text);
std::optional<ResultKind> symbolizeResultKind(llvm::StringRef text);

/// One argument of a step.
struct SignatureArg {
  std::string path;
  ArgRole role = ArgRole::Constant;
  /// Meaningful for state only.
  StateKind kind = StateKind::Other;
  /// Of a moment, a gradient and a master copy (which is of no other kind): the
  /// path of its parameter.
  std::string parameter;
  Type type;
  unsigned index = 0;
  /// For token arrays: the number of rows of the table that they index.
  std::optional<int64_t> vocabulary;
  /// State that the compiler added: it begins as zeros, not with the
  /// initializer.
  bool zeroInit = false;
  /// The reason for the role and kind, for people. Not kept as an attribute.
  std::string why;
};

/// One result of a step.
struct SignatureResult {
  std::string path;
  /// Path of the state argument that this result replaces; empty if none.
  std::string statePath;
  ResultKind kind = ResultKind::Output;
  /// Of a metric: gradients could flow from it as from the loss, so that what
  /// it is computed from is part of the forward pass.
  bool trains = false;
  Type type;
  unsigned index = 0;
  std::string why;
};

/// The signature of a step or of any other function.
struct Signature {
  llvm::SmallVector<SignatureArg> args;
  llvm::SmallVector<SignatureResult> results;

  /// Reads the attributes of `func`; an error if one is missing or malformed.
  static FailureOr<Signature> fromAttributes(func::FuncOp func);

  /// Writes the attributes of `func` and drops the hints they replace
  /// (`jax.result_info`, `tf.aliasing_output`, `jax.buffer_donor`).
  void toAttributes(func::FuncOp func) const;

  const SignatureArg *findArg(llvm::StringRef path) const;
  const SignatureResult *findResult(llvm::StringRef path) const;
  /// The result that replaces the state argument `argPath`.
  const SignatureResult *findStateResult(llvm::StringRef argPath) const;
  /// The loss, or null.
  const SignatureResult *findLoss() const;
  /// True if the function replaces some of its arguments: a training step.
  bool isStep() const;
};

/// The argument of `func` at this path, or null.
BlockArgument findArgument(func::FuncOp func, llvm::StringRef path);

/// The arguments of `func` that have a path, for those who look for many.
llvm::StringMap<BlockArgument> argumentsByPath(func::FuncOp func);

/// A leaf of a tree of tensors.
struct TreeLeaf {
  std::string path;
  Type type;
};

/// How to take a function.
enum class FunctionKind {
  /// A step if it trains (a gradient flows into what it returns), else not.
  Auto,
  Step,
  Function
};

/// What the user says about a step that overrules the guesses.
struct SignatureOptions {
  FunctionKind functionKind = FunctionKind::Auto;
  /// Argument path and role.
  llvm::SmallVector<std::pair<std::string, std::string>> roles;
  /// Argument path and the path of the result that replaces it.
  llvm::SmallVector<std::pair<std::string, std::string>> states;
  /// Path of the loss.
  std::string loss;
  /// What the run's initial values hold, if that is known: what no result
  /// replaces and they have a value for is no data.
  llvm::SmallVector<TreeLeaf> initialValues;
};

/// Finds the signature of `func`: a function over StableHLO tensors without
/// calls. Emits an error and fails when a guess would be ambiguous.
FailureOr<Signature> analyzeSignature(func::FuncOp func,
                                      const SignatureOptions &options = {});

/// Prints one line an argument and one a result: path, type, role, kind, why.
void printSignature(const Signature &signature, llvm::raw_ostream &os);

/// The same of a function that has its attributes: the reasons are found anew,
/// with `initialValues` if they are known, and what the attributes say against
/// the guess is called the user's choice.
LogicalResult printSignature(func::FuncOp func, llvm::raw_ostream &os,
                             llvm::ArrayRef<TreeLeaf> initialValues = {});

/// Prints the signature as JSON: {"arguments": [{"path", "type", "role",
/// "kind", "result": the path of what replaces it, or null}], "results":
/// [{"path", "type", "kind", "state": the path of the argument that it
/// replaces, or null}]}, both in order.
void printSignatureJSON(const Signature &signature, llvm::raw_ostream &os);

/// The paths of the state that a function with a signature returns as it came.
llvm::SmallVector<std::string> findUnchangedState(func::FuncOp func);

/// The number of rows of the smallest table that the integer argument
/// `argIndex` indexes (through the clamps and reshapes that JAX prints for
/// `take` and `one_hot`), if it indexes one.
std::optional<int64_t> findVocabulary(func::FuncOp func, unsigned argIndex);

/// Splits a tree path as JAX prints it into its root and its keys:
/// `p['layers'][0].w` gives `p`, `['layers']`, `[0]`, `.w`.
llvm::SmallVector<std::string> splitTreePath(llvm::StringRef path);

/// How well result leaf `to` fits argument leaf `from`; 0 is not at all.
using LeafScore = llvm::function_ref<double(unsigned from, unsigned to)>;

/// Pairs the leaves of two forests: subtrees of `from` with subtrees of `to`
/// that hold the same relative paths and types, as whole as possible. Where
/// several subtrees fit, the better score wins. Without a score, names decide.
/// Among pairings that score alike names decide, then the order of both sides
/// and `hint`, as far as what is decided already agrees with them.
/// Returns for each leaf of `from` its partner in `to` or nothing. Used for
/// state, and to bind an initializer's results to a step's arguments.
llvm::SmallVector<std::optional<unsigned>>
matchTrees(llvm::ArrayRef<TreeLeaf> from, llvm::ArrayRef<TreeLeaf> to,
           LeafScore score = nullptr, LeafScore hint = nullptr,
           llvm::SmallVectorImpl<std::string> *ambiguities = nullptr);

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_SIGNATURE_H
