//===- Nests.cpp - Structured ops that share a loop nest ------------------===//

#include "Nests.h"

#include "fp8/Kernels/ContractionDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// The lanes of an elementwise vector. They are the same on all targets, so
/// that sums are, too.
static constexpr int64_t kLanes = 16;
/// The lanes of a light reduction: four chains hide the latency of an addition.
static constexpr int64_t kWideLanes = 64;
/// A nest with fewer body ops than this counts as light.
static constexpr unsigned kLightOps = 10;

SmallVector<int64_t> lowering::taskDims(Operation *op) {
  auto attr =
      op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  return attr ? llvm::to_vector(attr.asArrayRef()) : SmallVector<int64_t>();
}

AffineMap lowering::indexingMap(linalg::GenericOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : map.getResults()) {
    auto mod = dyn_cast<AffineBinaryOpExpr>(expr);
    if (mod && mod.getKind() == AffineExprKind::Mod)
      if (auto dim = dyn_cast<AffineDimExpr>(mod.getLHS()))
        if (auto size = dyn_cast<AffineConstantExpr>(mod.getRHS());
            size && extents[dim.getPosition()] <= size.getValue())
          expr = dim;
    exprs.push_back(expr);
  }
  return AffineMap::get(map.getNumDims(), 0, exprs, map.getContext());
}

Stride lowering::strideOf(AffineMap map, unsigned dim, int64_t lanes) {
  auto isQuotient = [&](AffineExpr expr) {
    auto quotient = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!quotient || quotient.getKind() != AffineExprKind::FloorDiv)
      return false;
    auto divisor = dyn_cast<AffineConstantExpr>(quotient.getRHS());
    return lanes > 1 && isa<AffineDimExpr>(quotient.getLHS()) && divisor &&
           divisor.getValue() % lanes == 0;
  };
  Stride result = Stride::Invariant;
  for (auto [index, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(dim) || isQuotient(expr))
      continue;
    AffineExpr d = getAffineDimExpr(dim, map.getContext());
    AffineExpr step = simplifyAffineExpr(expr.replace(d, d + 1) - expr,
                                         map.getNumDims(), map.getNumSymbols());
    auto constant = dyn_cast<AffineConstantExpr>(step);
    if (index + 1 != map.getNumResults() || !constant ||
        constant.getValue() != 1)
      return Stride::Other;
    result = Stride::Contiguous;
  }
  return result;
}

/// Returns true if the payload can run on vectors.
static bool isVectorizable(linalg::GenericOp op) {
  return llvm::all_of(*op.getBody(), [](Operation &inner) {
    return isa<linalg::IndexOp, linalg::YieldOp, memref::LoadOp,
               arith::ConstantOp>(inner) ||
           OpTrait::hasElementwiseMappableTraits(&inner);
  });
}

static llvm::SmallBitVector reductionLoops(linalg::GenericOp op) {
  llvm::SmallBitVector loops(op.getNumLoops());
  for (auto [i, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      loops.set(i);
  return loops;
}

/// Returns true if `op` reads everything that the nest writes at the index at
/// which it is written.
static bool readsWhereWritten(const Nest &nest, linalg::GenericOp op) {
  for (linalg::GenericOp member : nest.ops)
    for (OpOperand &init : member.getDpsInitsMutable()) {
      AffineMap write = member.getMatchingIndexingMap(&init);
      for (OpOperand &operand : op->getOpOperands())
        if (operand.get() == init.get() &&
            (!allParallel(member) || !op.isDpsInput(&operand) ||
             op.getMatchingIndexingMap(&operand) != write))
          return false;
      bool captured = false;
      op.getBody()->walk([&](memref::LoadOp load) {
        captured |= load.getMemRef() == init.get();
      });
      if (captured)
        return false;
    }
  return true;
}

/// Returns whether an op is a float sum of all elements. In a shared nest its
/// order would depend on the other ops, which differ if ranks own parts of the
/// state.
static bool isWholeSum(linalg::GenericOp op) {
  if (op.getNumLoops() == 0 || op.getNumParallelLoops() > 0)
    return false;
  for (unsigned i = 0; i < op.getOutputs().size(); ++i)
    if (isa_and_nonnull<arith::AddFOp>(reductionCombiner(op, i)))
      return true;
  return false;
}

static bool canJoin(const Nest &nest, linalg::GenericOp op) {
  linalg::GenericOp first = nest.ops.front();
  if (isWholeSum(op) || isWholeSum(first))
    return false;
  if (op.getStaticLoopRanges() != nest.extents ||
      op->getAttr(FP8Dialect::kTaskDimsAttrName) !=
          first->getAttr(FP8Dialect::kTaskDimsAttrName) ||
      isVectorizable(op) != isVectorizable(first))
    return false;
  llvm::SmallBitVector loops = reductionLoops(op);
  if (loops.any() && nest.reduction.any() && loops != nest.reduction)
    return false;
  return readsWhereWritten(nest, op);
}

namespace {

/// Chooses the loop along which most accesses are contiguous.
class VectorLoopChooser {
public:
  VectorLoopChooser(Nest &nest, ArrayRef<int64_t> domain,
                    ArrayRef<int64_t> tile)
      : nest(nest), domain(domain), tile(tile) {}

  void run();

private:
  bool startsAligned(unsigned loop, int64_t lanes);
  bool isCombinable();
  unsigned costOf(unsigned loop);
  void setLanes(bool gathers);

  Nest &nest;
  ArrayRef<int64_t> domain, tile;
};

} // namespace

/// Returns true if all tiles start at a multiple of `lanes` along a loop.
bool VectorLoopChooser::startsAligned(unsigned loop, int64_t lanes) {
  for (auto [i, dim] : llvm::enumerate(taskDims(nest.ops.front())))
    if (dim == loop && tile[i] != domain[i] && tile[i] % lanes != 0)
      return false;
  return true;
}

/// Returns true if all reductions of the nest can be split into partial ones.
bool VectorLoopChooser::isCombinable() {
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (unsigned i = 0; i < op.getOutputs().size(); ++i)
        if (!reductionCombiner(op, i))
          return false;
  return true;
}

unsigned VectorLoopChooser::costOf(unsigned loop) {
  unsigned cost = nest.extents[loop] < 8;
  int64_t lanes = startsAligned(loop, kLanes) ? kLanes : 1;
  for (linalg::GenericOp op : nest.ops)
    for (OpOperand &operand : op->getOpOperands())
      if (strideOf(indexingMap(op, operand), loop, lanes) == Stride::Other)
        cost += op.isDpsInit(&operand) ? 3 : 2;
  return cost;
}

void VectorLoopChooser::setLanes(bool gathers) {
  unsigned bodyOps = 0;
  for (linalg::GenericOp op : nest.ops)
    bodyOps += op.getBody()->getOperations().size();
  int64_t extent = nest.extents[*nest.vectorLoop];
  bool wide = nest.reduction.any() && !gathers && bodyOps < kLightOps &&
              (extent % kWideLanes == 0 || extent >= 8 * kWideLanes);
  nest.lanes = wide ? kWideLanes : kLanes;
  nest.startsAligned = startsAligned(*nest.vectorLoop, nest.lanes);
}

void VectorLoopChooser::run() {
  if (!isVectorizable(nest.ops.front()))
    return;
  unsigned best = ~0u;
  for (unsigned loop = nest.extents.size(); loop-- > 0;) {
    if (nest.extents[loop] == 1 ||
        (nest.reduction.test(loop) && !isCombinable()))
      continue;
    unsigned cost = costOf(loop);
    if (cost < best) {
      best = cost;
      nest.vectorLoop = loop;
    }
  }
  if (nest.vectorLoop)
    setLanes(/*gathers=*/best >= 2);
}

TileParts
lowering::collectNests(Block &body, ArrayRef<int64_t> domain,
                       ArrayRef<int64_t> tile,
                       const llvm::SmallPtrSetImpl<Operation *> &absorbed) {
  TileParts parts, transposes;
  for (Operation &op : body) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    // A transpose writes what only other kernels read. As a nest of its own, at
    // the end, it does not affect the others.
    if (generic && isTranspose(generic)) {
      Nest nest;
      nest.ops.push_back(generic);
      nest.extents = generic.getStaticLoopRanges();
      nest.reduction.resize(nest.extents.size());
      transposes.push_back(nest);
      continue;
    }
    if (!generic || isDot(generic)) {
      if (generic || isa<linalg::FillOp, scf::ForOp>(op))
        if (!absorbed.contains(&op))
          parts.push_back(&op);
      continue;
    }
    Nest *last = parts.empty() ? nullptr : std::get_if<Nest>(&parts.back());
    if (!last || !canJoin(*last, generic)) {
      Nest nest;
      nest.extents = generic.getStaticLoopRanges();
      nest.reduction.resize(nest.extents.size());
      parts.push_back(nest);
      last = std::get_if<Nest>(&parts.back());
    }
    last->ops.push_back(generic);
    last->reduction |= reductionLoops(generic);
  }
  llvm::append_range(parts, transposes);
  for (auto &part : parts)
    if (Nest *nest = std::get_if<Nest>(&part))
      VectorLoopChooser(*nest, domain, tile).run();
  return parts;
}
