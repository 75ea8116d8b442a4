//===- NestLoops.cpp - The loops of a nest --------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Emits a reduction whose vector loop is parallel or missing, so that each
/// lane has a whole accumulator. Without accumulators, this is the elementwise
/// case.
void KernelLowering::emitReduction(const Nest &nest, Loops &loops,
                                   int64_t lanes) {
  SmallVector<Value> accumulators;
  SmallVector<Operation *> combiners;
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (unsigned i = 0; i < op.getOutputs().size(); ++i) {
        accumulators.push_back(initialValue(op, i, nest, loops, lanes));
        combiners.push_back(reductionCombiner(op, i));
      }
  SmallVector<ReductionLoop> order;
  for (unsigned loop : nest.reduction.set_bits())
    order.push_back({loop, loops.extent[loop]});
  SmallVector<Value> results = emitBlockedSums(
      loops, order, accumulators, combiners, [&](ValueRange running) {
        return emitBody(nest, loops, lanes, running);
      });
  unsigned next = 0;
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (OpOperand &init : op.getDpsInitsMutable())
        store(results[next++], init.get(), indexingMap(op, init), nest, loops,
              lanes);
}

/// Returns partial results of `width` lanes (or one scalar) along the loops of
/// `order`.
SmallVector<Value> KernelLowering::emitPartialSums(
    const Nest &nest, Loops &loops, ArrayRef<ReductionLoop> order,
    ArrayRef<Operation *> combiners, int64_t width) {
  SmallVector<Value> accumulators;
  for (Operation *combiner : combiners) {
    Type type = combiner->getResult(0).getType();
    if (width > 1)
      type = VectorType::get({width}, type);
    accumulators.push_back(neutralValue(combiner, type));
  }
  return emitBlockedSums(loops, order, accumulators, combiners,
                         [&](ValueRange running) {
                           return emitBody(nest, loops, width, running);
                         });
}

/// Does the same, and combines the lanes.
SmallVector<Value> KernelLowering::emitPartialReduction(
    const Nest &nest, Loops &loops, ArrayRef<ReductionLoop> order,
    ArrayRef<Operation *> combiners, int64_t width) {
  SmallVector<Value> results =
      emitPartialSums(nest, loops, order, combiners, width);
  for (auto [result, combiner] : llvm::zip(results, combiners))
    if (isa<VectorType>(result.getType()))
      result = reduceLanes(result, combiner);
  return results;
}

KernelLowering::Accumulators KernelLowering::accumulatorsOf(const Nest &nest) {
  Accumulators accumulators;
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (unsigned i = 0; i < op.getOutputs().size(); ++i) {
        accumulators.outputs.push_back({op, i});
        accumulators.combiners.push_back(reductionCombiner(op, i));
      }
  return accumulators;
}

/// Stores the results of reductions over the vector loop. No access depends on
/// that loop any more.
void KernelLowering::storeTotals(const Nest &nest, Loops &loops,
                                 const Accumulators &accumulators,
                                 ArrayRef<Value> totals) {
  for (auto [output, total, combiner] :
       llvm::zip(accumulators.outputs, totals, accumulators.combiners)) {
    auto [op, result] = output;
    Value init = initialValue(op, result, nest, loops, 1);
    OpOperand &operand = op.getDpsInitsMutable()[result];
    store(combine(combiner, init, total), operand.get(),
          indexingMap(op, operand), nest, loops, 1);
  }
}

void KernelLowering::emitNest(const Nest &nest) {
  linalg::GenericOp first = nest.ops.front();
  loc = first.getLoc();
  Loops loops = loopsOf(first);
  // The parallel loops are outside; the vector loop is the innermost of them.
  SmallVector<unsigned> order;
  for (unsigned loop = 0; loop < nest.extents.size(); ++loop)
    if (!nest.reduction.test(loop) && nest.vectorLoop != loop)
      order.push_back(loop);
  if (nest.vectorLoop && !nest.reduction.test(*nest.vectorLoop))
    order.push_back(*nest.vectorLoop);
  emitParallelLoops(nest, loops, order);
}
