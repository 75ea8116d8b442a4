//===- NestLoops.cpp - The loops of a nest --------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Reduction with whole accumulators per lane: the vector loop is parallel (or
/// there is none). Also the plain elementwise case, without accumulators.
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

/// The loops of `order` with lanes that hold partial results, brought together.
SmallVector<Value> KernelLowering::emitPartialReduction(
    const Nest &nest, Loops &loops, ArrayRef<ReductionLoop> order,
    ArrayRef<Operation *> combiners, int64_t width) {
  SmallVector<Value> accumulators;
  for (Operation *combiner : combiners) {
    Type type = combiner->getResult(0).getType();
    if (width > 1)
      type = VectorType::get({width}, type);
    accumulators.push_back(neutralValue(combiner, type));
  }
  SmallVector<Value> results = emitBlockedSums(
      loops, order, accumulators, combiners, [&](ValueRange running) {
        return emitBody(nest, loops, width, running);
      });
  for (auto [result, combiner] : llvm::zip(results, combiners))
    if (isa<VectorType>(result.getType()))
      result = reduceLanes(result, combiner);
  return results;
}

/// Reduction over the vector loop: lanes hold partial results.
void KernelLowering::emitVectorReduction(const Nest &nest, Loops &loops) {
  unsigned vectorLoop = *nest.vectorLoop;
  int64_t extent = loops.extent[vectorLoop];
  int64_t lanes = std::max<int64_t>(std::min(nest.lanes, extent), 1);
  int64_t whole = extent / lanes * lanes, rest = extent - whole;
  struct Output {
    linalg::GenericOp op;
    unsigned result;
  };
  SmallVector<Output> outputs;
  SmallVector<Operation *> combiners;
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (unsigned i = 0; i < op.getOutputs().size(); ++i) {
        outputs.push_back({op, i});
        combiners.push_back(reductionCombiner(op, i));
      }
  SmallVector<ReductionLoop> order;
  for (unsigned loop : nest.reduction.set_bits())
    if (loop != vectorLoop)
      order.push_back({loop, loops.extent[loop]});

  auto reduce = [&](int64_t width) {
    return emitPartialReduction(nest, loops, order, combiners, width);
  };
  // The whole vectors, then what is left of each row.
  order.push_back({vectorLoop, whole, lanes});
  SmallVector<Value> totals = reduce(lanes);
  if (rest) {
    order.pop_back();
    loops.index[vectorLoop] = arith::AddIOp::create(
        builder, loc, loops.lower[vectorLoop], constantIndex(whole));
    for (auto [total, part, combiner] :
         llvm::zip(totals, reduce(rest), combiners))
      total = combine(combiner, total, part);
  }
  for (auto [output, total, combiner] : llvm::zip(outputs, totals, combiners)) {
    // The vector loop is reduced away: no access below depends on it.
    Value init = initialValue(output.op, output.result, nest, loops, 1);
    total = combine(combiner, init, total);
    OpOperand &operand = output.op.getDpsInitsMutable()[output.result];
    store(total, operand.get(), indexingMap(output.op, operand), nest, loops,
          1);
  }
}

void KernelLowering::emitParallelLoops(const Nest &nest, Loops &loops,
                                       ArrayRef<unsigned> order) {
  auto emitInner = [&](int64_t lanes) {
    if (nest.vectorLoop && nest.reduction.test(*nest.vectorLoop))
      emitVectorReduction(nest, loops);
    else
      emitReduction(nest, loops, lanes);
  };
  if (order.empty())
    return emitInner(1);
  unsigned loop = order.front();
  int64_t extent = loops.extent[loop];
  bool isVector = nest.vectorLoop == loop;
  if (extent == 0)
    return;
  int64_t step = isVector ? std::min(nest.lanes, extent) : 1;
  int64_t whole = extent / step * step, rest = extent - whole;
  auto inner = [&](Value index, int64_t lanes) {
    loops.index[loop] = index;
    if (order.size() == 1)
      emitInner(isVector ? lanes : 1);
    else
      emitParallelLoops(nest, loops, order.drop_front());
  };
  auto forOp = scf::ForOp::create(builder, loc, constantIndex(0),
                                  constantIndex(whole), constantIndex(step));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(forOp.getBody()->getTerminator());
    inner(arith::AddIOp::create(builder, loc, forOp.getInductionVar(),
                                loops.lower[loop]),
          step);
  }
  if (rest)
    inner(arith::AddIOp::create(builder, loc, loops.lower[loop],
                                constantIndex(whole)),
          rest);
}

void KernelLowering::emitNest(const Nest &nest) {
  Loops loops;
  linalg::GenericOp first = nest.ops.front();
  loc = first.getLoc();
  loops.extent = nest.extents;
  loops.lower.assign(nest.extents.size(), constantIndex(0));
  for (auto [i, dim] : llvm::enumerate(taskDims(first)))
    if (dim >= 0) {
      loops.lower[dim] = tileOffsets[i];
      loops.extent[dim] = tileSizes[i];
    }
  loops.index = loops.lower;
  // Parallel loops outside, the vector loop the innermost of them.
  SmallVector<unsigned> order;
  for (unsigned loop = 0; loop < nest.extents.size(); ++loop)
    if (!nest.reduction.test(loop) && nest.vectorLoop != loop)
      order.push_back(loop);
  if (nest.vectorLoop && !nest.reduction.test(*nest.vectorLoop))
    order.push_back(*nest.vectorLoop);
  emitParallelLoops(nest, loops, order);
}
