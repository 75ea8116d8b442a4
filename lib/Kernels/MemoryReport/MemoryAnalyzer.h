//===- MemoryAnalyzer.h - What the buffers of a schedule hold ---*- C++ -*-===//
//
// The order of work:
//  1. every kernel is summed up once: which arguments each of its outputs is
//     made of, elementwise or through a dot (KernelFlow);
//  2. along the schedule this gives for every buffer whether data, parameters
//     or the update have a part in it, to a fixed point through loops
//     (BufferParts.cpp);
//  3. what the loss depends on is the forward pass; the first dot beyond it is
//     where the step turns to the backward pass: what was made before and is
//     read from there on is saved (Passes.cpp);
//  4. from what is written to parameters and moments, elementwise steps lead
//     back to the gradients (Passes.cpp);
//  5. the dots of the forward pass repeat once a layer (Layers.cpp);
//  6. from all of this, what each buffer is (Categories.cpp), what the state is
//     to the update (State.cpp), and what grows with tokens and layers
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

/// A buffer's type as the report has it: `8x128xf32`.
std::string printBufferType(Type type);

/// Does a buffer of this type hold payloads or scales of 8 bits?
bool isFP8Buffer(MemRefType type);

/// A write of a schedule's op to a buffer. `operand` is that of a call.
struct Write {
  Operation *op;
  unsigned operand;
};

/// A dot of the forward pass.
struct ForwardDot {
  LaunchOp call;
  const KernelFlow::Dot *dot;
  /// Which sides depend on data.
  bool lhs, rhs;
  bool ofActivations() const { return lhs && rhs; }
  bool ofWeight() const { return lhs != rhs; }
  int64_t numElements() const { return dot->batch * dot->m * dot->n; }
  /// What makes two dots the same in two layers.
  auto signature() const {
    return std::tuple(lhs, rhs, dot->batch, dot->m, dot->n, dot->k);
  }
};

/// Dots that repeat: the first, how many a layer has, how many layers.
struct Repetition {
  int first = 0, period = 0, repeats = 0;
  int size() const { return period * repeats; }
  bool contains(int dot) const { return dot >= first && dot < first + size(); }
};

/// What the dots before and after the turn read, and where the last one is.
struct DotReads {
  DenseSet<Value> forward, later;
  unsigned last = 0;
};

/// What is known of a buffer.
struct BufferState {
  /// What has a part in it.
  enum Part : unsigned { Data = 1, Parameter = 2, Update = 4 };
  unsigned parts = 0;
  /// Numbers of forward dots of two activations with no dot in between.
  llvm::BitVector scores;
  /// The last forward dot that has a part in it.
  int lastDot = -1;
  /// The parameters that it is made of, by argument number.
  llvm::BitVector parameters;

  void add(const BufferState &other);
  bool operator==(const BufferState &other) const {
    return parts == other.parts && lastDot == other.lastDot &&
           scores == other.scores && parameters == other.parameters;
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
  std::optional<ArgRole> roleOf(BlockArgument arg);
  std::optional<StateKind> kindOf(Value root);
  SmallVector<Value> operandsOf(Operation *op,
                                llvm::function_ref<bool(unsigned)> wanted);
  bool mayPrecede(Operation *write, Operation *read, Value root);
  void collectWrites();

  // Parts of buffers.
  BufferState emptyState();
  BufferState startOf(BlockArgument arg);
  BufferState readBy(const Write &write);
  BufferState readBy(LaunchOp call, const KernelFlow::Output &output);
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
  /// Of parameters by number of elements: the share that layers have.
  std::map<int64_t, std::pair<double, double>> parameterShares;
};

} // namespace mlir::fp8::memory

#endif // FP8_LIB_KERNELS_MEMORYREPORT_MEMORYANALYZER_H
