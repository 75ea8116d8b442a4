//===- BlockLowering.h - Lowering of a kernel to a GPU block ----*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_BLOCKS_BLOCKLOWERING_H
#define FP8_LIB_CODEGEN_GPU_BLOCKS_BLOCKLOWERING_H

#include "../../Lowering/LowerKernels/KernelLowering.h"
#include "../Dots/DotPlan.h"
#include "../Dots/OperandTiles.h"
#include "../Dots/TmaRing.h"

#include "fp8/Codegen/Target.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8::gpu_codegen {

using lowering::KernelLowering;
using lowering::Local;
using lowering::Loops;
using lowering::Nest;
using lowering::ReductionLoop;

/// The alignment of local buffers, in bytes.
inline constexpr int64_t kLocalAlignment = 64;

/// Returns true if `buffer` only passes values between ops of one nest, in
/// registers.
bool staysInNest(Value buffer, const lowering::TileParts &parts);

/// Lowers a kernel to the code of a GPU block, which runs its tile on many
/// threads. The points of a nest are distributed over threads, the partial sums
/// of one point over the threads of a group, which is a part of a warp. There
/// is a barrier between two parts of the tile. Sums are split and combined as
/// on the CPU, so that both compute the same bits.
class BlockLowering : public KernelLowering {
public:
  /// If `inOrder`, a block runs the last loop of the domain tile by tile.
  BlockLowering(FunctionOpInterface kernel, ArrayRef<int64_t> domain,
                GPUPlanAttr plan, bool inOrder, const GPUInfo &target,
                ArrayRef<int64_t> alignments)
      : KernelLowering(kernel, domain, plan.getTile(), plan.getSumTile(),
                       inOrder ? std::optional(plan.getTile().back())
                               : std::nullopt),
        target(target), threads(plan.getThreads()),
        dots{threads, plan.getStages(), plan.getWgmma(),
             /*tma=*/plan.getTma() && !inOrder,
             /*inPlace=*/plan.getTma() && inOrder},
        rows(plan.getRows()), processors(target.processors),
        alignments(alignments) {}

  /// Sets for how many multiprocessors blocks that run several tiles are
  /// counted.
  void setProcessors(int64_t number) { processors = number; }

  /// Finds out what memory the kernel needs, without emitting code.
  LogicalResult measure();

  /// Plans the only dot of a kernel with TMA, if TMA can bring its operands.
  /// `alignments` are those of the kernel's arguments.
  static FailureOr<DotPlan> planWithTma(KernelOp kernel, linalg::GenericOp dot,
                                        GPUPlanAttr plan,
                                        ArrayRef<int64_t> alignments);

  /// Bytes of shared memory, and of global memory per block.
  int64_t getSharedBytes() const { return sharedBytes; }
  int64_t getScratchBytes() const { return scratchBytes; }
  /// A loop nest that updates rows of its results, and the loop over their
  /// columns. Dimension `dim` of the results counts the rows.
  struct Scatter {
    Operation *nest;
    scf::ForOp columns;
    unsigned dim;
    int64_t numRows;
  };
  std::optional<Scatter> findScatter() const;
  /// Returns whether groups of threads share sums along the vector loop.
  bool hasGroupSums() const;
  /// Returns whether the tile divides lines, whose points are adjacent in
  /// memory, into pieces of less than a warp's, because ops have more loops
  /// than the domain.
  bool readsAcross() const;
  /// Returns whether several threads can share the sums of a column.
  bool hasColumnSums() const;
  /// The threads of a block. With TMA, one more warp than those that compute.
  int64_t getThreads() const { return threads + (hasProducer() ? kWarp : 0); }
  /// Returns why the dots cannot read their operands in place, if the plan says
  /// that they do; an empty string if they can.
  StringRef getWhyNotInPlace() const { return whyNotInPlace; }
  /// The tensor maps that are the kernel's last parameters.
  ArrayRef<TensorMapAttr> getTensorMaps() const { return maps; }
  /// The alignment that shared memory needs.
  int64_t getSharedAlignment() const { return dotAlignment; }
  /// Returns how many blocks a multiprocessor can run at once, at most.
  int64_t blocksTogether() const;
  /// Returns the number of blocks: less than that of tiles if blocks need
  /// global memory, or if one warp can bring the next tile's operands
  /// meanwhile.
  int64_t getBlocks();
  /// The argument for shared memory that the lowering has added; null if none
  /// is needed.
  BlockArgument getSharedArgument() const { return sharedArgument; }

private:
  /// Whether one warp asks TMA for operands.
  bool hasProducer() const { return dots.tma || dots.inPlace; }
  LogicalResult planScratch() override;
  Value prepareArguments() override;
  LogicalResult emitTasks(Value first) override;
  LogicalResult emitParts() override;
  LogicalResult emitPartsByKeys() override;
  LogicalResult emitFewKeys(Value seen, ArrayRef<int64_t> counts);
  // Rows that may have no visible key.
  struct TaskRange {
    Value first; // null if it is 0
    int64_t count;
  };
  TaskRange rangeOfTask(linalg::GenericOp op, unsigned loop,
                        ArrayRef<Value> tileIndex);
  Value threadSeesKeys(OpOperand &operand, ArrayRef<Value> tileIndex);
  void checkRows(Value task);
  int64_t dotScratchBytes(linalg::GenericOp op,
                          ArrayRef<int64_t> sizes) override;
  std::array<int64_t, 2> alignmentsOf(linalg::GenericOp op) const;
  FailureOr<DotPlan> planDot(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                             ArrayRef<int64_t> outStrides,
                             std::array<Type, 2> localInputs);
  Value placeLocal(Value buffer, const Local &local, MemRefType type) override;
  Value viewLocal(const Local &local, MemRefType type);
  LogicalResult emitDot(linalg::GenericOp op) override;
  LogicalResult beginBlocks(ArrayRef<int64_t> largest) override;
  LogicalResult endBlocks(ArrayRef<int64_t> largest) override;
  FailureOr<std::pair<ContractionTile, DotPlan>>
  tileOfDot(linalg::GenericOp op);
  std::optional<int64_t> keptSums(linalg::GenericOp op,
                                  ArrayRef<int64_t> largest);
  void emitFill(linalg::FillOp fill) override;
  void emitIrregular(Operation *nest) override;
  // Scatters whose blocks own rows.
  int64_t scatterBytes() const;
  Value ownsRow(Value row);
  Value ownRow(Value number);
  void keepOwnRows(Value row);
  Value emitIteration(ArrayRef<scf::ForOp> loops, Value number, Value row,
                      bool isWhole);
  void noteOwnUpdates(ArrayRef<scf::ForOp> loops, Value row, int64_t updates,
                      Value first, Value bits);
  void emitOwnUpdates(ArrayRef<scf::ForOp> loops, Value row, Value first,
                      Value word);
  void emitUpdates(ArrayRef<scf::ForOp> loops, Value row);
  void emitParallelLoops(const Nest &nest, Loops &loops,
                         ArrayRef<unsigned> order) override;
  void emitPartEnd() override;
  void keepEnd();
  std::optional<int64_t> alignmentOf(Value buffer, AffineMap map,
                                     const Nest &nest, int64_t lanes) override;

  // Operands in place.
  bool isInLines(Value buffer) const;
  std::string planTilesOf(linalg::GenericOp dot);
  void planOperandTiles();
  void makeRings(function_ref<Value(int64_t, int64_t)> barriers);
  void bringTiles(TmaRing &own, ArrayRef<OperandTile> tiles, Value start);
  Value startOfStep();
  void beginWithTiles();
  LogicalResult emitStep();
  std::array<Value, 2> placesOf(linalg::GenericOp dot);
  Value resolve(Value buffer, AffineMap map, ArrayRef<Value> dims,
                SmallVectorImpl<Value> &indices) override;

  // Nests on the sums of a dot.
  void findEpilogues();
  bool isEmittedBefore(const Nest &nest) const override {
    return llvm::is_contained(llvm::make_second_range(epilogues), &nest);
  }
  bool isOfSums(unsigned part) const;
  int64_t countAccesses(const Nest &nest, linalg::GenericOp dot) const;
  bool isOnlyReader(const Nest &nest, linalg::GenericOp dot) const;
  bool fitsSums(const Nest &nest,
                std::array<std::optional<unsigned>, 2> loops) const;
  void findHeldDots(linalg::GenericOp dot, const Nest &nest);
  void forwardSums(linalg::GenericOp dot, ArrayRef<Value> sums);
  void emitEpilogue(linalg::GenericOp dot, int64_t number, Value row,
                    Value column, ArrayRef<Value> sums);

  // Values that the nest behind a dot reduces for each row.
  /// For each row of which a thread has sums, the results of its columns. They
  /// stay in registers, like the sums that are kept.
  struct RowValues {
    Accumulators accumulators;
    /// For each row, a variable for each result, and the values while the nest
    /// is emitted.
    SmallVector<Value> variables, values;
    /// The sums that a thread has of each two rows.
    int64_t sumsOfRows = 0;
    MutableArrayRef<Value> ofRow(int64_t number) {
      int64_t row = number / sumsOfRows * 2 + number % 4 / 2,
              count = accumulators.outputs.size();
      return MutableArrayRef(values).slice(row * count, count);
    }
  };
  linalg::FillOp fillBefore(Value buffer) const;
  bool isOfRows(linalg::FillOp fill) const;
  std::optional<unsigned> rowLoopOf(linalg::GenericOp dot,
                                    const Nest &nest) const;
  Value variableOf(Type type, ArrayRef<int64_t> shape = {});
  void beginRows(linalg::GenericOp dot, ArrayRef<int64_t> largest);
  LogicalResult storeRows(linalg::GenericOp dot, const RowValues &rows);

  // Points of a nest, distributed over threads or groups of threads.
  int64_t lanesPerThread(const Nest &nest, ArrayRef<unsigned> order,
                         const Loops &loops);
  bool startsAligned(const Nest &nest, int64_t lanes);
  /// Calls `body` with the number of each point of `worker`, one of `workers`.
  /// If `together`, all workers run equally many iterations, and `body` is also
  /// told whether its point exists.
  void forPoints(int64_t points, Value worker, int64_t workers, bool together,
                 function_ref<void(Value, Value)> body);
  /// Splits the number of a point into indices that run up to `counts`.
  SmallVector<Value> splitPoint(Value point, ArrayRef<int64_t> counts);
  void setIndices(Value point, ArrayRef<unsigned> order,
                  ArrayRef<int64_t> counts, int64_t lanes, Loops &loops);
  /// Returns whether any order of the combiner gives the same bits.
  static bool isExact(Operation *combiner);
  static int64_t lanesOfRow(const Nest &nest, int64_t extent,
                            ArrayRef<Operation *> combiners);
  void emitGroupReduction(const Nest &nest, Loops &loops,
                          ArrayRef<unsigned> order);
  // Sums whose columns have several threads each.
  struct ColumnSums;
  static bool isColumnSum(const Nest &nest);
  int64_t columnSumBytes() const;
  static int64_t bytesOfSum(const Nest &nest);
  int64_t sumsInTurn(const Nest &nest) const;
  bool emitColumnSums(const Nest &nest, Loops &loops, ArrayRef<unsigned> order);
  SmallVector<Value> emitSumRounds(const Nest &nest, const Loops &loops,
                                   const lowering::SumBlocks &blocks,
                                   const ColumnSums &sums, ValueRange carried);
  SmallVector<Value> startColumnSums(const Nest &nest, Loops &loops,
                                     ArrayRef<unsigned> order,
                                     ArrayRef<int64_t> counts,
                                     ColumnSums &sums);
  Value setBlockIndices(const lowering::SumBlocks &blocks, Value number,
                        Loops &loops);
  void storeColumnSums(const Nest &nest, const Loops &outer,
                       const lowering::SumBlocks &blocks,
                       const ColumnSums &sums, Value number, Value place);
  void storeSumsInTurn(const Nest &nest, const Loops &loops,
                       const lowering::SumBlocks &blocks,
                       const ColumnSums &sums, Value first);
  SmallVector<Value> addColumnSums(const ColumnSums &sums, Value count,
                                   ValueRange carried);
  Value placeOfSum(const ColumnSums &sums, Value number);

  // Sums of a group of threads.
  SmallVector<Value> emitGroupSums(const Nest &nest, Loops &loops,
                                   ArrayRef<ReductionLoop> order,
                                   ArrayRef<Operation *> combiners,
                                   int64_t from, int64_t count, int64_t lanes,
                                   Value exists);
  // Transposed payloads.
  /// Returns true if a transpose reads `buffer`.
  static bool isStaged(Value buffer);
  /// Returns the distance of the lines of such a buffer, in bytes.
  static int64_t stagedLine(int64_t bytes);
  int64_t transposedWidth(linalg::GenericOp op, const Loops &loops);
  void emitTransposedPiece(linalg::GenericOp op, Loops &loops, int64_t width);
  void emitTranspose(linalg::GenericOp op, Loops &loops);
  Value reduceGroup(Value part, int64_t lanes, Operation *combiner);
  Value shuffleDown(Value value, int64_t threads);
  /// Returns the results of `body` if `condition` holds or is null, else
  /// `otherwise`.
  SmallVector<Value> ifThen(Value condition, ValueRange otherwise,
                            function_ref<SmallVector<Value>()> body);
  SmallVector<Value> ifThenElse(Value condition, TypeRange types,
                                function_ref<SmallVector<Value>()> body,
                                function_ref<SmallVector<Value>()> otherwise);
  void ifThen(Value condition, function_ref<void()> body);
  void emitBarrier();
  Value emitTaskLoop(Value first);
  LogicalResult emitTasksWithTma(Value first);
  Value isBelow(Value index, int64_t bound);

  const GPUInfo &target;
  /// The threads that compute.
  int64_t threads;
  DotOptions dots;
  /// The rows of a scatter's result that a block owns; 0 if there is one block.
  int64_t rows;
  /// The only scatter of the kernel, if blocks own rows.
  std::optional<Scatter> scatter;
  int64_t processors;
  /// The alignment of each argument, in bytes.
  SmallVector<int64_t> alignments;
  int64_t sharedBytes = 0, scratchBytes = 0;
  /// The offset of the memory for dots in shared memory.
  int64_t dotOffset = 0;
  /// The offset of the memory for sums of columns.
  int64_t sumOffset = 0;
  /// The alignment of that offset.
  int64_t dotAlignment = kLocalAlignment;
  BlockArgument sharedArgument, scratchArgument;
  /// The elementwise nest that the threads of a dot compute on their sums.
  llvm::MapVector<Operation *, const Nest *> epilogues;
  /// The dots whose sums stay in registers until the nest behind another dot
  /// reads them, with that dot; and these sums in the current step.
  llvm::MapVector<Operation *, linalg::GenericOp> heldDots;
  DenseMap<Operation *, SmallVector<Value>> heldSums;
  /// The sums that stay in registers while a block runs the last loop of its
  /// domain, by the dot that computes them.
  llvm::MapVector<Operation *, Value> kept;
  llvm::MapVector<Operation *, RowValues> rowValues;
  // With TMA.
  SmallVector<TensorMapAttr> maps;
  SmallVector<BlockArgument> mapArguments;
  int64_t ringStages = 0, sumRegisters = 0;
  std::unique_ptr<TmaRing> ring;
  // With operands in place.
  std::string whyNotInPlace;
  SmallVector<OperandTile> keptTiles, steppedTiles;
  /// For each operand that TMA brings, whether it moves from step to step, and
  /// its number in one of the lists above.
  DenseMap<std::pair<Operation *, unsigned>, std::pair<bool, unsigned>>
      placeOfOperand;
  /// Which tiles of the current step have been waited for.
  SmallVector<bool> awaited;
  std::unique_ptr<TmaRing> keptRing;
  /// The memory of locals in lines, with one dimension.
  DenseMap<Value, Value> linesOf;
  /// Whether this part has accessed such a local.
  bool hasWrittenLines = false;
  Value block, thread; // indices
  /// The threads that share the sums of one point, in the current nest.
  int64_t groupThreads = 1;
  Value threadInGroup;
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_BLOCKS_BLOCKLOWERING_H
