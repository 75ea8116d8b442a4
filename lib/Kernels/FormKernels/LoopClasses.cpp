//===- LoopClasses.cpp - Loops that run over the same elements ------------===//

#include "LoopClasses.h"

using namespace mlir;
using namespace mlir::fp8;

LoopClasses::LoopClasses(ArrayRef<linalg::GenericOp> generics) {
  llvm::SmallPtrSet<Operation *, 32> ops(generics.begin(), generics.end());
  for (linalg::GenericOp generic : generics)
    for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
      classes.insert({generic, loop});
  for (linalg::GenericOp generic : generics)
    for (OpOperand &operand : generic->getOpOperands())
      match(generic, operand, ops);
}

/// Unites the loops of the writer of `operand`, if it is one of `ops`, with the
/// loops of `reader`, which reads or updates it, that index it in the same way.
void LoopClasses::match(linalg::GenericOp reader, OpOperand &operand,
                        const llvm::SmallPtrSetImpl<Operation *> &ops) {
  auto writer = operand.get().getDefiningOp<linalg::GenericOp>();
  if (!writer || !ops.contains(writer))
    return;
  AffineMap write =
      writer.getIndexingMapMatchingResult(cast<OpResult>(operand.get()));
  AffineMap read = reader.getMatchingIndexingMap(&operand);
  for (auto [to, from] : llvm::zip(write.getResults(), read.getResults())) {
    auto writeDim = dyn_cast<AffineDimExpr>(to),
         readDim = dyn_cast<AffineDimExpr>(from);
    if (writeDim && readDim) {
      classes.unionSets({writer, writeDim.getPosition()},
                        {reader, readDim.getPosition()});
      continue;
    }
    for (unsigned dim = 0; dim < writer.getNumLoops(); ++dim)
      if (to.isFunctionOfDim(dim))
        uneven.insert({writer, dim});
    for (unsigned dim = 0; dim < reader.getNumLoops(); ++dim)
      if (from.isFunctionOfDim(dim))
        uneven.insert({reader, dim});
  }
}

SmallVector<unsigned> LoopClasses::loopsOf(linalg::GenericOp generic,
                                           const Loop &leader) const {
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
    if (areSame({generic, loop}, leader))
      loops.push_back(loop);
  return loops;
}

std::optional<unsigned> LoopClasses::loopOf(linalg::GenericOp generic,
                                            const Loop &leader) const {
  SmallVector<unsigned> loops = loopsOf(generic, leader);
  return loops.empty() ? std::nullopt : std::optional(loops.front());
}
