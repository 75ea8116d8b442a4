//===- TurnScores.cpp - Scores of an attention as columns -----------------===//
//
// The task of an attention has few queries and all of their keys. If its scores
// are rows of keys, the first dot packs the keys to have vectors of them, and
// the dot with the values copies the weights, because rows that are a multiple
// of a page apart share a set of the cache. If they are columns, so that
// vectors run along queries, keys and weights are read where they lie, and
// maxima and sums of columns need no exchange between lanes.
//
//===----------------------------------------------------------------------===//

#include "LowerKernels/KernelLowering.h"

#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_TURNSCORES
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// The queries of a task are a multiple of this, and so are vectors of them.
static constexpr int64_t kQueries = 16;

namespace {

/// The buffers of one kernel that are turned.
class Scores {
public:
  explicit Scores(KernelOp kernel) : body(kernel.getBody().front()) {}

  /// Finds the buffers of scores; returns whether some dot writes one, another
  /// one reads it, and all ops may run along queries.
  bool find();
  void turn();

private:
  bool isScores(Value value) const { return buffers.contains(value); }
  static bool isRows(Value value);
  void collect();
  bool mayTurn(OpOperand &use) const;
  bool mayRunAlongQueries(linalg::GenericOp op) const;

  Block &body;
  SetVector<Value> buffers;
};

class TurnScores : public fp8::impl::TurnScoresBase<TurnScores> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (kernel.isExternal() || !isAttention(kernel))
      return;
    Scores scores(kernel);
    if (scores.find())
      scores.turn();
  }
};

} // namespace

/// Returns whether `value` is a buffer of which tasks have some rows, but whole
/// rows.
bool Scores::isRows(Value value) {
  auto alloc = value.getDefiningOp<memref::AllocOp>();
  if (!alloc)
    return false;
  MemRefType type = alloc.getType();
  if (type.getRank() < 2 || !type.getLayout().isIdentity())
    return false;
  SmallVector<int> loops = lowering::domainLoopsOf(alloc);
  return loops.end()[-1] < 0 && loops.end()[-2] >= 0 &&
         type.getShape().end()[-2] % kQueries == 0;
}

/// Returns the loop of each of the last two dimensions of an operand.
static std::optional<std::pair<unsigned, unsigned>>
lastLoops(linalg::GenericOp op, OpOperand &operand) {
  ArrayRef<AffineExpr> exprs = op.getMatchingIndexingMap(&operand).getResults();
  auto row = dyn_cast<AffineDimExpr>(exprs.end()[-2]);
  auto column = dyn_cast<AffineDimExpr>(exprs.end()[-1]);
  if (!row || !column)
    return std::nullopt;
  return std::pair(row.getPosition(), column.getPosition());
}

/// Returns whether vectors along queries can access all operands of an op that
/// accesses scores: these have the same loops, and nothing else has a value for
/// each key.
bool Scores::mayRunAlongQueries(linalg::GenericOp op) const {
  std::optional<std::pair<unsigned, unsigned>> loops;
  for (OpOperand &operand : op->getOpOperands())
    if (isScores(operand.get())) {
      auto found = lastLoops(op, operand);
      if (!found || (loops && loops != found))
        return false;
      loops = found;
    }
  auto [query, key] = *loops;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!isScores(operand.get()) &&
        (map.isFunctionOfDim(key) ||
         lowering::strideOf(map, query, 1) == lowering::Stride::Other))
      return false;
  }
  return op.getBody()->getOps<memref::LoadOp>().empty();
}

/// Returns whether a buffer can be turned for one of its uses.
bool Scores::mayTurn(OpOperand &use) const {
  if (isa<linalg::FillOp>(use.getOwner()))
    return true;
  auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!op || op->getBlock() != &body)
    return false;
  // Operands of other types are packed in any case, in pairs along k.
  if (isDot(op))
    return llvm::all_of(op->getOperandTypes(), [](Type type) {
      return getElementTypeOrSelf(type).isF32();
    });
  return mayRunAlongQueries(op);
}

/// Collects the buffers with a row for each query that dots read, and those
/// from which they are computed element by element. What a dot makes of scores
/// may have such rows, too.
void Scores::collect() {
  auto insertRows = [&](linalg::GenericOp op) {
    for (Value operand : op->getOperands())
      if (isRows(operand))
        buffers.insert(operand);
  };
  for (auto op : body.getOps<linalg::GenericOp>())
    if (isDot(op))
      for (Value input : op.getDpsInputs())
        if (isRows(input))
          buffers.insert(input);
  for (unsigned i = 0; i < buffers.size(); ++i)
    for (Operation *user : buffers[i].getUsers())
      if (auto op = dyn_cast<linalg::GenericOp>(user); op && !isDot(op))
        insertRows(op);
}

bool Scores::find() {
  collect();
  bool written = false, read = false;
  for (Value buffer : buffers)
    for (OpOperand &use : buffer.getUses()) {
      if (!mayTurn(use))
        return false;
      auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!op || !isDot(op))
        continue;
      (op.isDpsInit(&use) ? written : read) = true;
    }
  return written && read;
}

void Scores::turn() {
  for (Value buffer : buffers) {
    auto type = cast<MemRefType>(buffer.getType());
    auto order = llvm::to_vector(llvm::seq<unsigned>(type.getRank()));
    std::swap(order.end()[-1], order.end()[-2]);
    AffineMap turned = AffineMap::getPermutationMap(order, type.getContext());
    buffer.setType(MemRefType::get(turned.compose(type.getShape()),
                                   type.getElementType()));
    for (OpOperand &use : buffer.getUses())
      if (auto op = dyn_cast<linalg::GenericOp>(use.getOwner()))
        setIndexingMap(use, turned.compose(op.getMatchingIndexingMap(&use)));
  }
}
