//===- Masks.cpp - Comparisons of the positions of queries and keys -------===//

#include "KeyBandFinder.h"

#include "fp8/Kernels/ContractionDims.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A sum of indices of loops, each times a factor, and of a constant.
struct IndexSum {
  llvm::SmallMapVector<unsigned, int64_t, 2> factors;
  int64_t constant = 0;

  void add(const IndexSum &other, int64_t factor) {
    for (auto [loop, times] : other.factors)
      if ((factors[loop] += factor * times) == 0)
        factors.erase(loop);
    constant += factor * other.constant;
  }
};

} // namespace

/// Matches a sum that does not wrap around: positions fit into 32 bits.
static std::optional<IndexSum> asIndexSum(Value value) {
  IndexSum sum;
  if (!value.getType().isIndex() &&
      value.getType().getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  llvm::APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    sum.constant = constant.getSExtValue();
    return sum;
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    sum.factors[index.getDim()] = 1;
    return sum;
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return asIndexSum(op->getOperand(0));
  if (!isa<arith::SubIOp, arith::AddIOp>(op))
    return std::nullopt;
  std::optional<IndexSum> a = asIndexSum(op->getOperand(0)),
                          b = asIndexSum(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  a->add(*b, isa<arith::SubIOp>(op) ? -1 : 1);
  return a;
}

/// Returns the domain loop that divides `loop` of `op`; -1 if there is none.
static int domainLoopOf(linalg::GenericOp op, unsigned loop) {
  auto dims =
      op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  if (!dims)
    return -1;
  for (auto [i, dim] : llvm::enumerate(dims.asArrayRef()))
    if (dim == loop)
      return i;
  return -1;
}

/// Returns the predicate of `b predicate a` for that of `a predicate b`, if it
/// is a signed order.
static std::optional<arith::CmpIPredicate> swapped(arith::CmpIPredicate p) {
  using P = arith::CmpIPredicate;
  switch (p) {
  case P::sge:
    return P::sle;
  case P::sle:
    return P::sge;
  case P::sgt:
    return P::slt;
  case P::slt:
    return P::sgt;
  default:
    return std::nullopt;
  }
}

/// Returns the operands that the body subtracts from what it takes the
/// exponential of: maxima of rows, or logarithms of their sums.
static SmallVector<OpOperand *> subtractedRows(linalg::GenericOp op) {
  SmallVector<OpOperand *> rows;
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (!isa<math::ExpOp, math::Exp2Op>(inner))
      continue;
    auto difference =
        skipCasts(inner.getOperand(0)).getDefiningOp<arith::SubFOp>();
    if (!difference)
      continue;
    if (auto row = dyn_cast<BlockArgument>(skipCasts(difference.getRhs())))
      rows.push_back(&op->getOpOperand(row.getArgNumber()));
  }
  return rows;
}

/// Returns which of two domain loops has the values of rows, which run over
/// this loop and not over the other one: those that an exponential subtracts,
/// else any operand of ops on scores. (A mask of padding or a bias may have a
/// value for each key.) Returns nullopt if there are such operands of both
/// loops.
std::optional<unsigned> KeyBandFinder::loopOfRows(unsigned a,
                                                  unsigned b) const {
  bool subtracts[2] = {false, false}, has[2] = {false, false};
  for (auto op : kernel.getOps<linalg::GenericOp>()) {
    auto dims =
        op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
    if (isDot(op) || !dims || dims.size() <= std::max(a, b) || dims[a] < 0 ||
        dims[b] < 0)
      continue;
    auto note = [&](AffineMap map, bool (&found)[2]) {
      bool hasA = map.isFunctionOfDim(dims[a]),
           hasB = map.isFunctionOfDim(dims[b]);
      found[0] |= hasA && !hasB;
      found[1] |= hasB && !hasA;
    };
    for (OpOperand *row : subtractedRows(op))
      note(op.getMatchingIndexingMap(row), subtracts);
    for (AffineMap map : op.getIndexingMapsArray())
      note(map, has);
  }
  if (subtracts[0] != subtracts[1])
    return subtracts[0] ? a : b;
  if (has[0] && has[1])
    return std::nullopt;
  // Without values of rows no exponential is compared with a maximum, and it
  // does not matter which loop is called queries.
  return has[0] ? a : has[1] ? b : *orderedLoop;
}

/// Whether a loop, which is compared with `other`, runs over queries: over the
/// domain, and over rows if both do and one runs in order.
bool KeyBandFinder::isQuery(linalg::GenericOp op, unsigned loop,
                            unsigned other) const {
  int own = domainLoopOf(op, loop), second = domainLoopOf(op, other);
  if (!orderedLoop || own < 0)
    return own >= 0;
  int ordered = *orderedLoop;
  if (second < 0)
    return own == ordered;
  return (own == ordered || second == ordered) &&
         loopOfRows(own, second) == static_cast<unsigned>(own);
}

/// Returns the numbers x with `x predicate 0`, if it is a signed order.
static std::optional<Distances> solve(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::sge:
    return Distances{0, Distances::kAny};
  case P::sgt:
    return Distances{1, Distances::kAny};
  case P::sle:
    return Distances{-Distances::kAny, 0};
  case P::slt:
    return Distances{-Distances::kAny, -1};
  default:
    return std::nullopt;
  }
}

/// Matches a comparison of `key - query + constant` with 0, or of its negative,
/// or of its absolute value with a limit.
std::optional<KeyBandFinder::Mask>
KeyBandFinder::asMask(linalg::GenericOp op, arith::CmpIOp compare) const {
  std::optional<arith::CmpIPredicate> predicate = compare.getPredicate();
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  if (rhs.getDefiningOp<math::AbsIOp>()) {
    std::swap(lhs, rhs);
    predicate = swapped(*predicate);
  }
  auto absolute = lhs.getDefiningOp<math::AbsIOp>();
  auto sum = asIndexSum(absolute ? absolute.getOperand() : lhs),
       subtracted = asIndexSum(rhs);
  if (!predicate || !sum || !subtracted)
    return std::nullopt;
  int64_t limit = subtracted->constant;
  if (!absolute)
    sum->add(*subtracted, -1);
  else if (!subtracted->factors.empty())
    return std::nullopt;
  if (sum->factors.size() != 2)
    return std::nullopt;
  auto [a, b] = std::make_pair(sum->factors.front(), sum->factors.back());
  if (std::abs(a.second) != 1 || a.second + b.second != 0)
    return std::nullopt;
  bool isFirst = isQuery(op, a.first, b.first);
  if (isFirst == isQuery(op, b.first, a.first))
    return std::nullopt;
  const auto &query = isFirst ? a : b, &key = isFirst ? b : a;
  if (absolute) {
    // The keys within a limit are a band; those beyond it are not.
    bool isStrict = *predicate == arith::CmpIPredicate::slt;
    if (!isStrict && *predicate != arith::CmpIPredicate::sle)
      return std::nullopt;
    int64_t middle = -sum->constant * key.second, reach = limit - isStrict;
    return Mask{query.first, key.first, {middle - reach, middle + reach}};
  }
  if (query.second == 1)
    predicate = swapped(*predicate);
  std::optional<Distances> solved =
      predicate ? solve(*predicate) : std::nullopt;
  if (!solved)
    return std::nullopt;
  // The key's distance plus `shift` solves it.
  int64_t shift = sum->constant * key.second;
  for (int64_t *bound : {&solved->low, &solved->high})
    if (std::abs(*bound) != Distances::kAny)
      *bound -= shift;
  return Mask{query.first, key.first, *solved};
}

/// Returns the mask of a comparison in an op that has queries and keys.
std::optional<KeyBandFinder::Mask>
KeyBandFinder::maskOf(arith::CmpIOp compare) const {
  auto op = compare->getParentOfType<linalg::GenericOp>();
  auto keys = found.keyLoops.find(op);
  std::optional<Mask> mask = asMask(op, compare);
  if (!mask || keys == found.keyLoops.end() || keys->second != mask->keys ||
      domainLoopOf(op, mask->queries) != static_cast<int>(found.queryLoop))
    return std::nullopt;
  return mask;
}

/// Takes the loops of `mask` for those over queries and keys.
bool KeyBandFinder::setLoops(linalg::GenericOp op, const Mask &mask) {
  found = KeyBand();
  found.queryLoop = domainLoopOf(op, mask.queries);
  if (int own = domainLoopOf(op, mask.keys); own >= 0)
    found.keyLoop = own;
  numQueries = op.getStaticLoopRanges()[mask.queries];
  found.numKeys = op.getStaticLoopRanges()[mask.keys];
  return findKeyLoops(op, mask.keys);
}

/// Returns the last distances before some mask changes, in ascending order.
SmallVector<int64_t> KeyBandFinder::bounds() const {
  llvm::SmallSetVector<int64_t, 4> bounds;
  for (const auto &entry : found.keyLoops)
    for (auto compare : cast<linalg::GenericOp>(entry.first)
                            .getBody()
                            ->getOps<arith::CmpIOp>())
      if (std::optional<Mask> mask = maskOf(compare))
        for (int64_t bound : {mask->distances.low - 1, mask->distances.high})
          if (std::abs(bound) < Distances::kAny - 1)
            bounds.insert(bound);
  SmallVector<int64_t> sorted = bounds.takeVector();
  llvm::sort(sorted);
  return sorted;
}

/// Returns the loop of `op` over queries, if it has one.
std::optional<unsigned> KeyBandFinder::queriesOf(linalg::GenericOp op) const {
  auto dims =
      op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  if (!dims || found.queryLoop >= static_cast<unsigned>(dims.size()) ||
      dims[found.queryLoop] < 0)
    return std::nullopt;
  return dims[found.queryLoop];
}

/// Follows the dimension of keys through local buffers that have queries, too,
/// to all ops.
bool KeyBandFinder::findKeyLoops(linalg::GenericOp start, unsigned loop) {
  SmallVector<linalg::GenericOp> worklist{start};
  DenseMap<Operation *, unsigned> loops{{start, loop}};
  while (!worklist.empty()) {
    linalg::GenericOp op = worklist.pop_back_val();
    unsigned keys = loops.lookup(op);
    if (op.getStaticLoopRanges()[keys] != found.numKeys ||
        domainLoopOf(op, keys) !=
            (found.keyLoop ? static_cast<int>(*found.keyLoop) : -1))
      return false;
    std::optional<unsigned> queries = queriesOf(op);
    for (OpOperand &operand : op->getOpOperands()) {
      Value buffer = operand.get();
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (!buffer.getDefiningOp<memref::AllocOp>() ||
          !map.isFunctionOfDim(keys) || !queries ||
          !map.isFunctionOfDim(*queries))
        continue;
      std::optional<unsigned> place = plainPosition(map, keys);
      if (!place)
        return false;
      auto [it, isNew] = found.keyDims.try_emplace(buffer, *place);
      if (it->second != *place)
        return false;
      if (!isNew)
        continue;
      for (Operation *user : buffer.getUsers()) {
        auto generic = dyn_cast<linalg::GenericOp>(user);
        if (!generic && !isa<linalg::FillOp>(user))
          return false;
        if (!generic)
          continue;
        for (OpOperand &use : generic->getOpOperands()) {
          if (use.get() != buffer)
            continue;
          auto dim = dyn_cast<AffineDimExpr>(
              generic.getMatchingIndexingMap(&use).getResult(*place));
          if (!dim)
            return false;
          auto [known, added] = loops.try_emplace(generic, dim.getPosition());
          if (known->second != dim.getPosition())
            return false;
          if (added)
            worklist.push_back(generic);
        }
      }
    }
  }
  for (auto [op, keys] : loops)
    if (queriesOf(cast<linalg::GenericOp>(op)))
      found.keyLoops[op] = keys;
  return true;
}
