//===- TaskLowering.h - Lowering of a kernel to a CPU task ------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_TASKLOWERING_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_TASKLOWERING_H

#include "KernelLowering.h"

#include "fp8/Codegen/Target.h"

namespace mlir::fp8::lowering {

/// Lowers a kernel to the code of a CPU task, which runs its tile on one
/// thread, in vectors, with its own scratch.
class TaskLowering : public KernelLowering {
public:
  TaskLowering(FunctionOpInterface kernel, ArrayRef<int64_t> domain,
               ArrayRef<int64_t> tile, std::optional<int64_t> block,
               const TargetInfo &target)
      : KernelLowering(kernel, domain, tile, tile, block), target(target) {}

private:
  LogicalResult planScratch() override;
  Local *overwrittenBy(Value buffer);
  void shareScratch();
  Value prepareArguments() override;
  int64_t dotScratchBytes(linalg::GenericOp op,
                          ArrayRef<int64_t> sizes) override;
  Value placeLocal(Value buffer, const Local &local, MemRefType type) override;
  void forEachKeySetting(function_ref<void()> visit) override;
  LogicalResult emitPartsByKeys() override;
  int64_t openLimit() const;
  Value firstSeenKey();
  Value openEnd(Value seen, Value first);
  Value rowsSeeKeys(OpOperand &operand);
  unsigned partsBeforeCheck() const;
  FailureOr<Value> emitKeys(Value first, Value end);
  FailureOr<Value> emitCheckedParts();
  LogicalResult emitUntilDone(Value end);
  FailureOr<Value> emitIfOpen(Value seen);
  LogicalResult emitDot(linalg::GenericOp op) override;
  void emitFill(linalg::FillOp fill) override;
  void emitIrregular(Operation *nest) override { cloneIrregular(nest); }
  void emitParallelLoops(const Nest &nest, Loops &loops,
                         ArrayRef<unsigned> order) override;
  void emitEach(const Nest &nest, Loops &loops, unsigned loop,
                function_ref<void(int64_t)> body);
  void emitVectorReduction(const Nest &nest, Loops &loops);
  void emitRowBlocks(const Nest &nest, Loops &loops, unsigned rows);

  const TargetInfo &target;
  Value scratch;
};

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_TASKLOWERING_H
