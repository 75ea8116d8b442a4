//===- MemoryAnalyzer.h - Analysis of a schedule's buffers ------*- C++ -*-===//
//
// The analysis works in this order:
//  1. It summarizes every kernel once: which arguments each of its outputs
//     depends on, elementwise or through a dot (KernelFlow).
//  2. Along the schedule, it finds for every buffer whether data, parameters or
//     the update contribute to it, to a fixed point through loops
//     (BufferParts.cpp).
//  3. The forward pass is what the loss depends on. The first dot after it is
//  the
//     turn to the backward pass: buffers that are written before the turn and
//     read after it are saved (Passes.cpp).
//  4. From the values written to parameters and moments, elementwise steps lead
//     back to the gradients (Passes.cpp).
//  5. The dots of the forward pass repeat in each layer (Layers.cpp).
//  6. All of this gives the category of each buffer (Categories.cpp), the
//     category of the state (State.cpp), and the growth with tokens and layers
//     (Growth.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MEMORYREPORT_MEMORYANALYZER_H
#define FP8_LIB_KERNELS_MEMORYREPORT_MEMORYANALYZER_H

#include "KernelFlow.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Kernels/MemoryReport.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace mlir::fp8::memory {

/// Returns true if a buffer of this type holds 8-bit payloads or scales.
bool isFP8Buffer(MemRefType type);

/// A write of an op of the schedule to a buffer. For a launch, `operand` is the
/// index of that buffer.
struct Write {
  Operation *op;
  unsigned operand;

  /// Returns the operand of a launch that is argument `argument` of the kernel
  /// in the run that writes.
  Value operandAt(unsigned argument) const {
    auto call = cast<LaunchOp>(op);
    return call.getOperand(call.getFirstOfSet(operand) + argument);
  }
};

/// A dot of the forward pass.
struct ForwardDot {
  LaunchOp call;
  const KernelFlow::Dot *dot;
  /// Whether each side depends on data.
  bool lhs, rhs;
  bool ofActivations() const { return lhs && rhs; }
  bool ofWeight() const { return lhs != rhs; }
  int64_t numElements() const { return dot->batch * dot->m * dot->n; }
  /// Dots with equal signatures may be the same dot in two layers.
  auto signature() const {
    return std::tuple(lhs, rhs, dot->batch, dot->m, dot->n, dot->k);
  }
};

/// Repeating dots: the first one, the number of dots per layer, and the number
/// of layers.
struct Repetition {
  int first = 0, period = 0, repeats = 0;
  int size() const { return period * repeats; }
  bool contains(int dot) const { return dot >= first && dot < first + size(); }
};

/// The buffers that dots before and after the turn read, and the position of
/// the last dot.
struct DotReads {
  DenseSet<Value> forward, later;
  unsigned last = 0;
};

/// What contributes to the contents of a buffer.
struct BufferState {
  /// The kinds of contributions.
  enum Part : unsigned { Data = 1, Parameter = 2, Update = 4, Random = 8 };
  unsigned parts = 0;
  /// Random numbers are data of the step's own.
  bool hasData() const { return parts & (Data | Random); }
  /// The numbers of the forward dots of two activations that reach this buffer
  /// without another dot in between.
  llvm::BitVector scores;
  /// Whether a dot contributes, and the number of the last forward dot that
  /// does.
  bool ofDot = false;
  int lastDot = -1;
  /// The parameters that contribute, by argument number.
  llvm::BitVector parameters;

  void add(const BufferState &other);
  bool operator==(const BufferState &other) const {
    return parts == other.parts && ofDot == other.ofDot &&
           lastDot == other.lastDot && scores == other.scores &&
           parameters == other.parameters;
  }
};

class MemoryAnalyzer {
public:
  MemoryAnalyzer(ScheduleOp schedule, MemoryReport &report,
                 llvm::function_ref<unsigned(Operation *)> positionOf)
      : schedule(schedule), report(report), positionOf(positionOf),
        symbols(schedule->getParentOfType<ModuleOp>()) {}

  void run();

private:
  // The schedule.
  const KernelFlow &flowOf(LaunchOp call);
  /// Returns what an operand of a launch depends on if the launch writes it.
  const std::optional<KernelFlow::Output> &outputOf(LaunchOp call,
                                                    unsigned operand) {
    return flowOf(call).outputs[call.getArgument(operand)];
  }
  SmallVector<Value> readBuffersOf(const Write &write);
  bool mayPrecede(Operation *write, Operation *read, Value root);
  void collectWrites();

  // Parts of buffers.
  BufferState emptyState();
  BufferState startOf(BlockArgument arg);
  bool isNoisyWeight(Value root);
  BufferState readBy(const Write &write);
  BufferState readByLaunch(const Write &write);
  void propagate();

  // Passes.
  SmallVector<std::pair<Value, Operation *>> findLosses();
  void findForwardPass();
  void findForwardDots();
  void findTurn();
  void findGradients();
  void followElementwise(const Write &write, SetVector<Value> &found);

  // Layers.
  void findLayers();
  const ForwardDot *findTokens();
  bool findLoopOfLayers();
  void findRepeatedLayers();
  bool isInLayer(unsigned dot);
  void findLayerParameters();
  Operation *loopAround(Operation *op, Operation *without);

  // Categories.
  llvm::BitVector findScores();
  DotReads findDotReads();
  bool isCarried(const PlannedBuffer &buffer);
  bool isSaved(const PlannedBuffer &buffer);
  bool isScore(const PlannedBuffer &buffer, const llvm::BitVector &scores);
  MemoryCategory categoryOf(const PlannedBuffer &buffer, unsigned lastDot,
                            const llvm::BitVector &scores);
  void categorize();

  // State.
  llvm::StringSet<> pathsOfArguments();
  PlannedState describe(BlockArgument arg, const llvm::StringSet<> &paths);
  StateCategory categoryOf(BlockArgument arg, StringRef path,
                           const llvm::StringSet<> &paths);
  void fillState();
  void findUnreadParameters();
  void shareParameters();
  double shareOfParameters(int64_t elements) const;

  // Growth.
  double tokenShareOf(const PlannedBuffer &buffer);
  int layerOf(const PlannedBuffer &buffer);
  void fillSavedPerLayer();
  void fillGrowth();

  ScheduleOp schedule;
  MemoryReport &report;
  llvm::function_ref<unsigned(Operation *)> positionOf;
  SymbolTable symbols;
  DenseMap<Operation *, KernelFlow> flows;
  llvm::MapVector<Value, SmallVector<Write>> writesOf;
  DenseMap<Value, BufferState> states;
  DenseSet<std::pair<Operation *, unsigned>> forward;
  SmallVector<ForwardDot> dots;
  DenseMap<Operation *, int> dotOf;
  DenseSet<Value> gradients;
  unsigned lastForwardDot = 0;
  Operation *turn = nullptr, *stepLoop = nullptr, *layerLoop = nullptr;
  Repetition repeated;
  llvm::BitVector layerParameters;
  /// By number of elements: the parameters that belong to layers, and all.
  std::map<int64_t, std::pair<double, double>> parameterShares;
};

} // namespace mlir::fp8::memory

#endif // FP8_LIB_KERNELS_MEMORYREPORT_MEMORYANALYZER_H
