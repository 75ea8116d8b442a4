//===- MemoryReport.h - Report of a step's memory ---------------*- C++ -*-===//
//
// Describes the memory plan of a schedule: bytes of state per parameter, bytes
// of saved activations per token and layer, and what is live at the peak of the
// arena. Everything follows from data flow over the schedule's kernels; the
// attributes of the import stage tell the arguments apart.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_MEMORYREPORT_H
#define FP8_KERNELS_MEMORYREPORT_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <map>
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

/// The purpose of a buffer of the arena.
enum class MemoryCategory {
  SavedActivation, ///< made in the forward pass, read in the backward pass
  Attention,       ///< likewise, of the size of the attention scores
  Gradient,        ///< of a parameter
  FP8Weight,       ///< an FP8 payload made from parameters alone
  OtherWeight,     ///< a parameter in another type or layout
  Table,           ///< depends on neither data nor parameters
  Temporary        ///< anything else
};
StringRef stringify(MemoryCategory category);

/// The category of an argument in the report of bytes per parameter.
enum class StateCategory { Master, Moment1, Moment2, Scale, FP8Weight, Other };
StringRef stringify(StateCategory category);

/// One buffer of the arena.
struct PlannedBuffer {
  Value alloc; ///< Only set while memory is planned.
  int64_t bytes = 0;
  unsigned begin = 0, end = 0; // schedule positions, both inclusive
  int64_t offset = 0;

  MemoryCategory category = MemoryCategory::Temporary;
  /// The fractions of it that grow with the number of tokens and with the
  /// number of layers.
  double tokenShare = 0, layerShare = 0;
  /// True for a saved payload that no forward dot reads: an activation that is
  /// quantized along its other dimension for wgrad (`wgrad.copy: saved`).
  bool isWgradCopy = false;
  std::string type, location;
};

/// One argument that persists across steps: state or frozen.
struct PlannedState {
  std::string path, type;
  StateCategory category = StateCategory::Other;
  int64_t bytes = 0, elements = 0;
  double layerShare = 0;
  /// With `--zero 1`: its shard, from 1 (0: none), the number of slices of the
  /// shard, and the reason if a stack of layers has one owner.
  int64_t shard = 0, slices = 1;
  std::string wholeReason;
};

/// A size of the model that data flow determines, or the reason why it does
/// not.
struct KnownSize {
  std::optional<int64_t> value;
  /// How the value was found, or what is missing.
  std::string why;
};

struct MemoryReport {
  std::string function;
  std::vector<PlannedState> state;
  /// Bytes of arguments that each step gets anew: batch, keys, constants.
  int64_t inputBytes = 0;
  /// Bytes of results with a buffer of their own, and of the program's
  /// constants.
  int64_t resultBytes = 0, constantBytes = 0;

  std::vector<PlannedBuffer> buffers;
  /// The size of the arena, and the most bytes that are live at once.
  /// Fragmentation is the difference.
  int64_t arenaBytes = 0, peakBytes = 0;
  unsigned peak = 0;
  /// Scratch bytes of one task of the largest kernel, which every thread needs.
  /// Unknown before codegen has divided kernels into tasks.
  std::optional<int64_t> scratchBytes;
  /// The position at which the backward pass begins (its first dot). None in a
  /// function that does not train.
  std::optional<unsigned> turn;

  /// The number of tokens that the forward pass works on at once, the width of
  /// the last linear layer's input, and the number of layers.
  KnownSize tokens, width, layers;
  /// Bytes that one layer saves for the backward pass without attention scores,
  /// and those of attention scores; nullopt if the number of layers is unknown.
  std::optional<double> savedPerLayer, attentionPerLayer;
  /// The part of `savedPerLayer` that holds payloads for wgrad alone.
  std::optional<double> wgradCopiesPerLayer;

  /// Bytes of payloads for wgrad alone that are live where the backward pass
  /// begins.
  int64_t wgradCopyBytes() const;
  int64_t numParameters() const;
  int64_t stateBytes() const;
  int64_t stateBytes(StateCategory category) const;
  /// Bytes of a category that are live at a position.
  int64_t bytesAt(unsigned position, MemoryCategory category) const;
  /// The most bytes of a category that are live at once.
  int64_t mostBytes(MemoryCategory category) const;
  /// Returns the live bytes of a category, or of all, from each position on at
  /// which they change.
  std::map<unsigned, int64_t>
  liveBytes(std::optional<MemoryCategory> category = std::nullopt) const;
  /// All bytes that the step needs: state, inputs, results, constants, arena.
  int64_t totalBytes() const;
  /// Returns B*S*H*2, the unit of activation memory.
  std::optional<double> unit() const;

  /// Predicts the bytes of the step with `tokenFactor` times as many tokens and
  /// `layerFactor` times as many layers. The model is linear: every buffer
  /// grows by its shares, and with it the bytes that are live at a position.
  double predict(double tokenFactor, double layerFactor) const;
  /// Returns the largest factor that fits, to 1e-6; 0 if none does.
  double largestFactor(double budget, bool ofLayers) const;

  /// Prints the report for users. With a `budget` in bytes (0: none), it says
  /// what fits.
  void print(llvm::raw_ostream &os, double budget = 0) const;
  void printJSON(llvm::raw_ostream &os, double budget = 0) const;
  /// Prints every buffer with its category and source location, largest first.
  void printBuffers(llvm::raw_ostream &os) const;
};

/// Makes the report of `buffers`, the plan of `schedule`, and fills in their
/// categories. `positionOf` returns the position of an op in the schedule.
MemoryReport
makeMemoryReport(ScheduleOp schedule, std::vector<PlannedBuffer> buffers,
                 int64_t arenaBytes,
                 llvm::function_ref<unsigned(Operation *)> positionOf);

/// Parses bytes such as `80GB`, `80 GiB` or `123456`; nullopt for other text.
std::optional<double> parseBytes(StringRef text);

} // namespace mlir::fp8

#endif // FP8_KERNELS_MEMORYREPORT_H
