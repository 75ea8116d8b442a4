//===- VerdictReport.h - The report of verdicts -----------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_TRANSFORMS_VERDICTREPORT_H
#define FP8_DIALECT_FP8_TRANSFORMS_VERDICTREPORT_H

#include "fp8/Analysis/LinearLayers/GatedUnits.h"
#include "fp8/Dialect/FP8/IR/FP8Enums.h"

#include "fp8/Support/Locations.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir {
namespace fp8 {

/// What became of one dot, and why.
struct DotVerdict {
  Verdict kind = Verdict::HighPrecision;
  std::string function;
  /// The tree path of the layer's parameter; empty without one.
  std::string layer;
  DotRole role = DotRole::Other;
  DotCategory category = DotCategory::Other;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  /// Element types of the operands as they are multiplied.
  std::string lhsFormat, rhsFormat;
  /// Tiles of the operands of an FP8 dot, in the recipe's spelling.
  std::string lhsTile, rhsTile;
  /// Trip counts of the loops that the dot is in, from the inside out; 0 where
  /// unknown.
  SmallVector<int64_t> loops;
  bool inBranch = false;
  /// The dot repeats a forward dot for the backward pass.
  bool recomputed = false;
  /// The number of the recipe's rule that decided; 0: none.
  int64_t rule = 0;
  std::string reason;
  /// `file:line:column (scope)`.
  std::string location;
  SmallVector<std::string> notes;
};

/// How one array of the state is stored, and why.
struct StateVerdict {
  std::string function;
  std::string path;
  /// parameter, master, moment1, moment2 or other.
  std::string kind;
  /// The path of the parameter that the array belongs to; empty without one.
  std::string parameter;
  int64_t elements = 0;
  /// Element types, in the exported step and as stored.
  std::string from, to;
  /// Which elements share a scale, in the recipe's spelling; none: no scale.
  std::string tile;
  /// Bytes of the stored array, including scales.
  int64_t bytes = 0;
  bool changed = false;
  std::string reason;
  std::vector<std::string> notes;
};

/// What became of one gated unit. If it has a granularity, its product h is
/// quantized as h / s, with a factor s for each channel or token, and s is
/// multiplied in again around the dot.
struct GatedUnitVerdict {
  std::string function;
  /// The tree path of the parameter of the layer that reads the product.
  std::string layer;
  /// `file:line:column (scope)` of that layer's dot.
  std::string location;
  /// Why the unit is not smoothed; empty if it is.
  std::string reason;

  /// The fields of `GatedUnit`, if the unit is proven.
  std::string activation;
  int64_t channels = 0;
  std::optional<ParameterChannels> gate, linear, linearBias, down;

  /// If the unit is smoothed: channel or token; pow2 or exact; current or
  /// delayed, and the tree path of the state that holds 1 / s, layers first (0:
  /// s is 1).
  std::string granularity, scale, scaling, state;

  DictionaryAttr getAttribute(MLIRContext *context) const;
  static GatedUnitVerdict get(DictionaryAttr attribute);
};

/// Whether the scores of one softmax are stored, and why.
struct SoftmaxVerdict {
  ScoreStorage kind = ScoreStorage::Tiled;
  std::string function;
  /// Whether the softmax sums over queries, in a backward pass.
  bool backward = false;
  int64_t batch = 1, queries = 1, keys = 1;
  /// As in `DotVerdict`, for the dot that makes the scores.
  SmallVector<int64_t> loops;
  bool inBranch = false, recomputed = false;
  std::string reason;
  /// `file:line:column (scope)` of the softmax, and of the op that needs its
  /// scores (empty if there is none).
  std::string location, obstacle;
};

/// The wire format of one collective, and why it was chosen.
struct CollectiveVerdict {
  std::string function;
  /// `gradient PATH`, the path of a metric, or another name.
  std::string what;
  /// sum, mean, max, min; or gather, all_to_all, permute.
  std::string operation;
  SmallVector<int64_t> shape;
  /// Element types, in the step and on the wire.
  std::string from, wire;
  /// The number of elements that share a scale on the wire; 0: all of them
  /// share it, or there is no scale.
  int64_t block = 0;
  /// Bytes that a rank sends each time. For a reduction this is the limit for
  /// many ranks; with N ranks it is (N - 1) / N of it.
  int64_t bytes = 0;
  /// As in `DotVerdict`.
  SmallVector<int64_t> loops;
  bool inBranch = false;
  std::string reason;
  std::string location;

  /// Returns the verdicts of a function's collectives, in program order.
  static std::vector<CollectiveVerdict> getAll(func::FuncOp function);
};

/// One row for every `stablehlo.dot_general` that the module had, one for every
/// softmax over scores, one for every collective, and one for every array of
/// floats in the state if the recipe says how they are stored.
struct VerdictReport {
  std::string recipe;
  std::vector<DotVerdict> dots;
  std::vector<StateVerdict> state;
  std::vector<GatedUnitVerdict> gatedUnits;
  std::vector<SoftmaxVerdict> softmaxes;
  std::vector<CollectiveVerdict> collectives;
  /// The convolutions that are no dots, and so have no verdict.
  int64_t convolutions = 0;

  /// Reads the report from the attributes of a module: after `fp8-decide` its
  /// dots in program order, after `fp8-form-attention` its softmaxes, and after
  /// `fp8-store-state` its state in the order of the arguments.
  static FailureOr<VerdictReport> get(ModuleOp module);

  int64_t count(Verdict kind) const;

  /// Returns one line: `42 of 57 dots in FP8; 12 attention, 3 head`.
  std::string getSummary() const;
  /// Returns one line:
  /// `12 of 20 arrays of state stored otherwise, 1.2 MB for 4.8 MB`.
  std::string getStateSummary() const;
  /// Returns one line: `12 of 13 softmaxes in tiles`.
  std::string getSoftmaxSummary() const;
  /// Returns one line: `12 of 15 collectives in fewer bits; 1200 bytes`.
  std::string getCollectiveSummary() const;
  /// Prints one line per dot, in columns, and the summary.
  void printTable(llvm::raw_ostream &os) const;
  /// Print the parts about softmaxes, collectives and state.
  void printSoftmaxTable(llvm::raw_ostream &os) const;
  void printCollectiveTable(llvm::raw_ostream &os) const;
  void printStateTable(llvm::raw_ostream &os) const;
  void printJSON(llvm::raw_ostream &os) const;
  /// Writes JSON to a file that ends in `.json`, a table to any other one, and
  /// to stderr for `-`. On failure `error` says why.
  LogicalResult write(StringRef file, std::string &error) const;

private:
  void read(func::FuncOp function);
};

} // namespace fp8
} // namespace mlir

#endif // FP8_DIALECT_FP8_TRANSFORMS_VERDICTREPORT_H
