//===- Heads.cpp - Layers that no other layer reads -----------------------===//

#include "Analyzer.h"

#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// Finds the layers whose outputs other layers read, by following the forward
/// pass.
class ReadLayers {
public:
  ReadLayers(const Analyzer &analyzer) : analyzer(analyzer) {
    for (auto [i, layer] : llvm::enumerate(analyzer.layers))
      if (!analyzer.dots[layer.info].recomputed)
        layerOfOp[analyzer.dots[layer.info].dot] = i;
    read.resize(analyzer.layers.size());
    for (Operation *op : analyzer.forwardSlice)
      for (; op != analyzer.function; op = op->getParentOp())
        forward.insert(op);
    visit(analyzer.function.getBody());
  }

  bool contains(unsigned layer) const { return read.test(layer); }

private:
  void visit(Region &region);
  void visitLoop(Operation &loop);
  void visitBranch(Operation &branch);
  void visitOp(Operation &op);
  bool merge(Value from, Value into);

  const Analyzer &analyzer;
  DenseMap<Operation *, unsigned> layerOfOp;
  /// The ops of the forward pass, and the loops and branches that contain them.
  DenseSet<Operation *> forward;
  llvm::BitVector read;
  /// The layers that every value of the forward pass depends on.
  DenseMap<Value, llvm::BitVector> reached;
};
} // namespace

/// Adds the layers of `from` to those of `into`. Returns whether there are new
/// ones.
bool ReadLayers::merge(Value from, Value into) {
  llvm::BitVector bits = reached.lookup(into);
  bits.resize(read.size());
  llvm::BitVector before = bits;
  bits |= reached.lookup(from);
  bool changed = bits != before;
  reached[into] = std::move(bits);
  return changed;
}

void ReadLayers::visitLoop(Operation &loop) {
  Region &body = loop.getRegion(1);
  Operation &yield = body.front().back();
  for (unsigned i = 0; i < loop.getNumOperands(); ++i)
    merge(loop.getOperand(i), body.getArgument(i));
  for (bool changed = true; changed;) {
    visit(body);
    changed = false;
    for (unsigned i = 0; i < loop.getNumOperands(); ++i)
      changed |= merge(yield.getOperand(i), body.getArgument(i));
  }
  for (unsigned i = 0; i < loop.getNumOperands(); ++i)
    merge(body.getArgument(i), loop.getResult(i));
}

void ReadLayers::visitBranch(Operation &branch) {
  for (Region &region : branch.getRegions()) {
    visit(region);
    for (OpResult result : branch.getResults())
      merge(region.front().back().getOperand(result.getResultNumber()), result);
  }
}

void ReadLayers::visitOp(Operation &op) {
  llvm::BitVector bits(read.size());
  stablehlo::forEachRead(&op,
                         [&](Value value) { bits |= reached.lookup(value); });
  auto it = layerOfOp.find(&op);
  if (it != layerOfOp.end()) {
    read |= bits;
    bits.set(it->second);
  } else if (isa<stablehlo::ConvolutionOp>(op) && analyzer.inForwardPass(&op)) {
    read |= bits;
  }
  for (OpResult result : op.getResults())
    reached[result] = bits;
}

void ReadLayers::visit(Region &region) {
  for (Operation &op : region.front()) {
    if (analyzer.hasLoss && !forward.contains(&op))
      continue;
    if (isa<stablehlo::WhileOp>(op))
      visitLoop(op);
    else if (stablehlo::isBranch(&op))
      visitBranch(op);
    else if (isBarrier(&op))
      for (auto [result, operand] :
           llvm::zip_equal(op.getResults(), op.getOperands()))
        merge(operand, result);
    else
      visitOp(op);
  }
}

/// Marks the heads: layers whose output no other layer's input depends on.
void Analyzer::findHeads() {
  ReadLayers read(*this);
  auto isHead = [&](unsigned layer) { return !read.contains(layer); };
  for (auto [i, info] : llvm::enumerate(dots))
    info.head = !layersOfDot[i].empty() &&
                llvm::all_of(layersOfDot[i], [&](unsigned layer) {
                  // A recomputed dot represents its original.
                  unsigned dot = layers[layer].info;
                  return dots[dot].recomputed
                             ? llvm::all_of(layersOfDot[dot], isHead)
                             : isHead(layer);
                });
}
