//===- MemoryReport.h - What a step keeps in memory, and why ----*- C++ -*-===//
//
// The plan of a schedule in numbers: bytes of state a parameter, bytes of saved
// activations a token and layer, and what is alive where the arena is fullest.
// Everything is found by data flow over the schedule's kernels; arguments are
// told apart by the marks of the import stage.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_MEMORYREPORT_H
#define FP8_KERNELS_MEMORYREPORT_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
namespace json {
class OStream;
} // namespace json
} // namespace llvm

namespace mlir::fp8 {

/// What a buffer of the arena is to the step.
enum class MemoryCategory {
  SavedActivation, ///< made in the forward pass, read in the backward pass
  Attention,       ///< likewise, of the size of attention's scores
  Gradient,        ///< of a parameter
  FP8Weight,       ///< an FP8 payload made from parameters alone
  OtherWeight,     ///< a parameter in another type or layout
  Table,           ///< depends on neither data nor parameters
  Temporary        ///< anything else
};
constexpr unsigned kNumMemoryCategories = 7;
StringRef stringify(MemoryCategory category);

/// What an argument of the step is in the account of bytes a parameter.
enum class StateCategory { Master, Moment1, Moment2, Scale, FP8Weight, Other };
constexpr unsigned kNumStateCategories = 6;
StringRef stringify(StateCategory category);

/// One buffer of the arena.
struct PlannedBuffer {
  Value alloc; ///< While it is planned.
  int64_t bytes = 0;
  unsigned begin = 0, end = 0; // schedule positions, both inclusive
  int64_t offset = 0;

  MemoryCategory category = MemoryCategory::Temporary;
  /// The share of it that grows with the number of tokens, and with that of
  /// layers.
  double tokenShare = 0, layerShare = 0;
  /// A saved payload that no dot of the forward pass reads: an activation that
  /// is quantized along its other dimension for wgrad (`wgrad.copy: saved`).
  bool isWgradCopy = false;
  std::string type, location;
};

/// One argument that a step keeps: state or frozen.
struct PlannedState {
  std::string path, type;
  StateCategory category = StateCategory::Other;
  int64_t bytes = 0, elements = 0;
  double layerShare = 0;
  /// With `--zero 1`: its shard, from 1, the slices that ranks own of it, and
  /// why a stack of layers has one owner.
  int64_t shard = 0, slices = 1;
  std::string wholeReason;
};

/// A size of the model that data flow tells, or the reason why it doesn't.
struct KnownSize {
  std::optional<int64_t> value;
  /// Where it comes from, or what is missing.
  std::string why;
};

struct MemoryReport {
  std::string function;
  std::vector<PlannedState> state;
  /// Arguments that are fed anew: batch, keys, constants.
  int64_t inputBytes = 0;
  /// Results with a buffer of their own, and constants of the program.
  int64_t resultBytes = 0, constantBytes = 0;

  std::vector<PlannedBuffer> buffers;
  /// The arena, and how much of it is alive where most is (the difference is
  /// lost between buffers).
  int64_t arenaBytes = 0, peakBytes = 0;
  unsigned peak = 0;
  /// Memory of one task of the largest kernel, which every thread has; unknown
  /// before codegen has divided kernels into tasks.
  std::optional<int64_t> scratchBytes;
  /// Where the backward pass begins: its first dot. None in a function that
  /// does not train.
  std::optional<unsigned> turn;

  /// Tokens that the forward pass works on at once, the width of what the last
  /// linear layer reads, and the number of layers.
  KnownSize tokens, width, layers;
  /// Bytes that one layer saves for the backward pass, attention's scores and
  /// all else; nothing where the layers are unknown.
  std::optional<double> savedPerLayer, attentionPerLayer;
  /// The part of what is saved that are payloads for wgrad alone.
  std::optional<double> wgradCopiesPerLayer;

  /// Bytes of payloads for wgrad alone where the backward pass begins.
  int64_t wgradCopyBytes() const;
  int64_t numParameters() const;
  int64_t stateBytes() const;
  int64_t stateBytes(StateCategory category) const;
  /// Bytes of a category that are alive at a position.
  int64_t bytesAt(unsigned position, MemoryCategory category) const;
  /// Most bytes of a category that are alive at once.
  int64_t mostBytes(MemoryCategory category) const;
  /// All that the step needs: state, inputs, results, constants, arena.
  int64_t totalBytes() const;
  /// B*S*H*2, the unit of activation memory.
  std::optional<double> unit() const;

  /// The bytes of the step with other numbers of tokens and layers, by the
  /// linear model: where `t` and `l` are the factors, every buffer grows by its
  /// shares, and so does, at every point of the schedule, what is alive.
  double predict(double tokenFactor, double layerFactor) const;
  /// The largest factor that fits, to 1e-6; 0 if none does.
  double largestFactor(double budget, bool ofLayers) const;

  /// The report for people. `budget`: bytes to answer for, 0 for none.
  void print(llvm::raw_ostream &os, double budget = 0) const;
  void printJSON(llvm::raw_ostream &os, double budget = 0) const;
  /// Every buffer with what it is and where it comes from, largest first.
  void printBuffers(llvm::raw_ostream &os) const;
};

/// What `buffers`, the plan of `schedule`, hold: fills in their categories.
/// `positionOf` tells where an op of the schedule stands.
MemoryReport
makeMemoryReport(ScheduleOp schedule, std::vector<PlannedBuffer> buffers,
                 int64_t arenaBytes,
                 llvm::function_ref<unsigned(Operation *)> positionOf);

/// `80GB`, `80 GiB`, `123456`: bytes; nothing for anything else.
std::optional<double> parseBytes(StringRef text);

} // namespace mlir::fp8

#endif // FP8_KERNELS_MEMORYREPORT_H
