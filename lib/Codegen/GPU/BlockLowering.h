//===- BlockLowering.h - One kernel to the code of a GPU's block -*- C++
//-*-===//

#ifndef FP8_LIB_CODEGEN_GPU_BLOCKLOWERING_H
#define FP8_LIB_CODEGEN_GPU_BLOCKLOWERING_H

#include "../Lowering/LowerKernels/KernelLowering.h"

#include "fp8/Codegen/Target.h"

namespace mlir::fp8::gpu_codegen {

using lowering::KernelLowering;
using lowering::Local;
using lowering::Loops;
using lowering::Nest;
using lowering::ReductionLoop;

/// Where buffers start, in bytes.
inline constexpr int64_t kLocalAlignment = 64;

/// A block of a GPU runs its tile on many threads. Points of a nest are dealt
/// out to threads, partial sums of one point to the threads of a group, which
/// is a part of a warp; between two parts of the tile stands a barrier. Sums
/// are cut and put together as on the CPU, so that both compute the same bits.
class BlockLowering : public KernelLowering {
public:
  /// Where `inOrder`, a block runs the last loop of the domain tile by tile.
  BlockLowering(FunctionOpInterface kernel, ArrayRef<int64_t> domain,
                GPUPlanAttr plan, bool inOrder, const GPUInfo &target,
                ArrayRef<int64_t> alignments)
      : KernelLowering(kernel, domain, plan.getTile(), plan.getSumTile(),
                       inOrder ? std::optional(plan.getTile().back())
                               : std::nullopt),
        target(target), threads(plan.getThreads()), stages(plan.getStages()),
        wgmma(plan.getWgmma()), alignments(alignments) {}

  /// Finds out what memory the kernel needs, and emits nothing.
  LogicalResult measure();

  /// Bytes of shared memory, and of global memory a block.
  int64_t getSharedBytes() const { return sharedBytes; }
  int64_t getScratchBytes() const { return scratchBytes; }
  /// What shared memory begins at a multiple of.
  int64_t getSharedAlignment() const { return dotAlignment; }
  /// Fewer than tiles where each needs global memory.
  int64_t getBlocks();
  /// The arguments that the lowering has added; null if there is no need.
  BlockArgument getSharedArgument() const { return sharedArgument; }

private:
  LogicalResult planScratch() override;
  Value prepareArguments() override;
  int64_t dotScratchBytes(linalg::GenericOp op,
                          ArrayRef<int64_t> sizes) override;
  std::array<int64_t, 2> alignmentsOf(linalg::GenericOp op) const;
  Value placeLocal(const Local &local, MemRefType type) override;
  LogicalResult emitDot(linalg::GenericOp op) override;
  void emitFill(linalg::FillOp fill) override;
  void emitIrregular(Operation *nest) override;
  void emitParallelLoops(const Nest &nest, Loops &loops,
                         ArrayRef<unsigned> order) override;
  void emitPartEnd() override;
  std::optional<int64_t> alignmentOf(Value buffer, AffineMap map,
                                     const Nest &nest, int64_t lanes) override;

  // Points of a nest, dealt out to threads or groups of threads.
  int64_t lanesPerThread(const Nest &nest, ArrayRef<unsigned> order,
                         const Loops &loops);
  bool startsAligned(const Nest &nest, int64_t lanes);
  /// Calls `body` with the number of each point that `worker` of `workers` has.
  /// Where `together`, every worker comes as often as any other: `body` is also
  /// told whether its point exists.
  void forPoints(int64_t points, Value worker, int64_t workers, bool together,
                 function_ref<void(Value, Value)> body);
  void setIndices(Value point, ArrayRef<unsigned> order,
                  ArrayRef<int64_t> counts, int64_t lanes, Loops &loops);
  void emitGroupReduction(const Nest &nest, Loops &loops,
                          ArrayRef<unsigned> order);
  SmallVector<Value> emitGroupSums(const Nest &nest, Loops &loops,
                                   ArrayRef<ReductionLoop> order,
                                   ArrayRef<Operation *> combiners,
                                   int64_t from, int64_t count, int64_t lanes,
                                   Value exists);
  Value reduceGroup(Value part, int64_t lanes, Operation *combiner);
  Value shuffleDown(Value value, int64_t threads);
  /// The results of `body` where `condition` holds (null: always), else what
  /// `otherwise` has.
  SmallVector<Value> ifThen(Value condition, ValueRange otherwise,
                            function_ref<SmallVector<Value>()> body);
  void ifThen(Value condition, function_ref<void()> body);
  Value isBelow(Value index, int64_t bound);

  const GPUInfo &target;
  int64_t threads;
  /// Of operands that `cp.async` copies.
  int64_t stages;
  /// Dots may be computed by `wgmma`.
  bool wgmma;
  /// Of each argument, in bytes.
  SmallVector<int64_t> alignments;
  int64_t sharedBytes = 0, scratchBytes = 0;
  /// Where the memory of dots begins in shared memory.
  int64_t dotOffset = 0;
  /// What it is to be a multiple of.
  int64_t dotAlignment = kLocalAlignment;
  BlockArgument sharedArgument, scratchArgument;
  Value block, thread; // indices
  /// The threads that share the sums of one point, of the nest being emitted.
  int64_t groupThreads = 1;
  Value threadInGroup;
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_BLOCKLOWERING_H
