//===- NestLoops.cpp - The loops of a nest --------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

SmallVector<ReductionLoop> lowering::sumLoops(const Nest &nest,
                                              ArrayRef<int64_t> extents) {
  SmallVector<ReductionLoop> order;
  for (unsigned loop : nest.reduction.set_bits())
    order.push_back({loop, extents[loop]});
  return order;
}

SmallVector<ReductionLoop> lowering::sumLoops(const Nest &nest,
                                              const Loops &loops) {
  SmallVector<ReductionLoop> order = sumLoops(nest, loops.extent);
  for (ReductionLoop &loop : order)
    loop.open = loops.openEnd(loop.loop);
  return order;
}

/// Emits a reduction whose vector loop is parallel or missing, so that each
/// lane has a whole accumulator. Without accumulators, this is the elementwise
/// case.
void KernelLowering::emitReduction(const Nest &nest, Loops &loops,
                                   int64_t lanes, bool resumes) {
  Accumulators accumulators = accumulatorsOf(nest);
  SmallVector<Value> start;
  for (auto [op, output] : accumulators.outputs)
    start.push_back(resumes ? loadOutput(op, output, nest, loops, lanes)
                            : initialValue(op, output, nest, loops, lanes));
  SmallVector<Value> results =
      emitBlockedSums(loops, sumLoops(nest, loops), start,
                      accumulators.combiners, [&](ValueRange running) {
                        return emitBody(nest, loops, lanes, running);
                      });
  storeResults(nest, loops, lanes, accumulators, results);
}

/// Stores what reductions start with.
void KernelLowering::storeStart(const Nest &nest, Loops &loops, int64_t lanes) {
  Accumulators accumulators = accumulatorsOf(nest);
  SmallVector<Value> start;
  for (auto [op, output] : accumulators.outputs)
    start.push_back(initialValue(op, output, nest, loops, lanes));
  storeResults(nest, loops, lanes, accumulators, start);
}

/// Stores the results of reductions that include the initial values.
void KernelLowering::storeResults(const Nest &nest, Loops &loops, int64_t lanes,
                                  const Accumulators &accumulators,
                                  ValueRange results) {
  for (auto [output, result] : llvm::zip_equal(accumulators.outputs, results)) {
    auto [op, number] = output;
    OpOperand &init = op.getDpsInitsMutable()[number];
    store(result, init.get(), indexingMap(op, init), nest, loops, lanes);
  }
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
