//===- KeyBand.cpp - Keys that a mask of positions shows
//-------------------===//
//
// Comparisons of a query's index with a key's give the hypotheses: keys after
// query + last are hidden, and those before query + first. The bodies of all
// ops are then evaluated for a pair of query and key of each kind. Every row
// has to have a visible key, since a softmax over hidden keys alone would
// weight all of them equally. If each query has a key of the same position,
// that is the pair of the two; it is also visible to a mask that compares the
// segments of both. If it is not known to be visible, because data hide keys,
// too, the values of rows tell at run time whether a row has a visible key.
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/KeyBand.h"

#include "fp8/Kernels/ContractionDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Scores stay above this value; a constant at or below it hides a key: -1e9,
/// also in bf16.
constexpr double kHidden = -9.9e8;

/// What is known about a value at one kind of pair.
struct Known {
  enum Kind {
    Unknown,
    /// A number or a boolean.
    Constant,
    /// Computed from products of inputs, from indices, and from constants that
    /// hide nothing.
    Score,
    /// No larger than scores are, but possibly hidden: a bias, a mask of data.
    Bias,
    /// The same for all keys of a row.
    Row,
    /// At or below `kHidden`: a score to which a mask has been added.
    Hidden,
    /// A hidden score minus a value of its row: its exponential is 0.
    Lowest,
  };
  Kind kind = Unknown;
  double number = 0;

  static Known constant(double number) { return {Constant, number}; }
  bool is(double other) const { return kind == Constant && number == other; }
  bool isHidden() const {
    return kind == Hidden || (kind == Constant && number <= kHidden);
  }
  bool isFiniteScore() const {
    return kind == Score || (kind == Constant && std::abs(number) < -kHidden);
  }
  bool isBias() const {
    return isFiniteScore() || isHidden() || kind == Bias || kind == Row;
  }
  bool isOfRow() const { return kind == Row || kind == Constant; }
};

/// A value at pairs whose key is too late, at those whose key is too early, and
/// at visible pairs.
using Pair = std::array<Known, 3>;
constexpr unsigned kLatePair = 0, kEarlyPair = 1, kSeenPair = 2;
constexpr unsigned kHiddenPairs[] = {kLatePair, kEarlyPair};

/// From how many positions before its query to how many after it a key is.
struct Distances {
  static constexpr int64_t kAny = int64_t(1) << 40;
  int64_t low = -kAny, high = kAny;
};

/// Returns the number in a float or integer attribute.
std::optional<double> numberOf(Attribute attr) {
  if (auto value = dyn_cast_or_null<FloatAttr>(attr))
    return value.getValueAsDouble();
  if (auto value = dyn_cast_or_null<IntegerAttr>(attr))
    return value.getType().isInteger(1)
               ? static_cast<double>(!value.getValue().isZero())
               : static_cast<double>(value.getValue().getSExtValue());
  return std::nullopt;
}

class Finder {
public:
  Finder(Block &kernel, bool mayCheck) : kernel(kernel), mayCheck(mayCheck) {
    auto op = dyn_cast<KernelOp>(kernel.getParentOp());
    if (op && op.getBlock())
      orderedLoop = op.getDomain().size() - 1;
  }

  std::optional<KeyBand> run();

private:
  struct Mask;
  std::optional<Mask> asMask(linalg::GenericOp op, arith::CmpIOp compare) const;
  std::optional<Mask> maskOf(arith::CmpIOp compare) const;
  bool isQuery(linalg::GenericOp op, unsigned loop, unsigned other) const;
  std::optional<unsigned> loopOfRows(unsigned a, unsigned b) const;
  bool setLoops(linalg::GenericOp op, const Mask &mask);
  std::optional<unsigned> queriesOf(linalg::GenericOp op) const;
  bool findKeyLoops(linalg::GenericOp start, unsigned loop);
  SmallVector<int64_t> bounds() const;
  bool findBand();
  bool setBand(int64_t last, std::optional<int64_t> first);
  bool prove(bool withChecks);
  bool isOfPairs(linalg::GenericOp op, unsigned result);
  bool checkRow(linalg::GenericOp op, Value row);
  bool proveOp(linalg::GenericOp op);
  bool proveResult(linalg::GenericOp op, unsigned result, const Pair &yielded);

  Pair argumentOf(linalg::GenericOp op, BlockArgument argument) const;
  Known evaluate(Operation &op, unsigned which,
                 const DenseMap<Value, Pair> &values) const;
  Known compare(arith::CmpIOp op, unsigned which) const;
  bool areSame(linalg::GenericOp op, Value a, Value b) const;

  Block &kernel;
  bool mayCheck;
  /// Whether values of rows are checked in this proof, and which maxima must be
  /// among them.
  bool isChecking = false;
  SmallVector<Value> maxima;
  /// The domain loop that runs in order, if any.
  std::optional<unsigned> orderedLoop;
  KeyBand found;
  int64_t numQueries = 0;
  /// Whether the seen pairs are those of a query and the key of its position.
  bool seesItself = false;
  /// The distances of each kind of pair.
  std::array<Distances, 3> distances;
  DenseMap<Value, Pair> buffers;
};

} // namespace

//===----------------------------------------------------------------------===//
// The hypothesis
//===----------------------------------------------------------------------===//

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
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>(kTaskDimsAttr);
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

/// A comparison of the index of a query with that of a key. It is true exactly
/// if the key is at one of these distances from the query.
struct Finder::Mask {
  unsigned queries, keys; // loops of the op
  Distances distances;
};

/// Returns which of two domain loops has the values of rows: operands of ops on
/// scores that run over this loop and not over the other one. Returns nullopt
/// if there are operands of both kinds.
std::optional<unsigned> Finder::loopOfRows(unsigned a, unsigned b) const {
  bool has[2] = {false, false};
  for (auto op : kernel.getOps<linalg::GenericOp>()) {
    auto dims = op->getAttrOfType<DenseI64ArrayAttr>(kTaskDimsAttr);
    if (isDot(op) || !dims || dims.size() <= std::max(a, b) || dims[a] < 0 ||
        dims[b] < 0)
      continue;
    for (AffineMap map : op.getIndexingMapsArray()) {
      bool hasA = map.isFunctionOfDim(dims[a]),
           hasB = map.isFunctionOfDim(dims[b]);
      has[0] |= hasA && !hasB;
      has[1] |= hasB && !hasA;
    }
  }
  if (has[0] && has[1])
    return std::nullopt;
  // Without values of rows no exponential is compared with a maximum, and it
  // does not matter which loop is called queries.
  return has[0] ? a : has[1] ? b : *orderedLoop;
}

/// Whether a loop, which is compared with `other`, runs over queries: over the
/// domain, and over rows if both do and one runs in order.
bool Finder::isQuery(linalg::GenericOp op, unsigned loop,
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
std::optional<Finder::Mask> Finder::asMask(linalg::GenericOp op,
                                           arith::CmpIOp compare) const {
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
std::optional<Finder::Mask> Finder::maskOf(arith::CmpIOp compare) const {
  auto op = compare->getParentOfType<linalg::GenericOp>();
  auto keys = found.keyLoops.find(op);
  std::optional<Mask> mask = asMask(op, compare);
  if (!mask || keys == found.keyLoops.end() || keys->second != mask->keys ||
      domainLoopOf(op, mask->queries) != static_cast<int>(found.queryLoop))
    return std::nullopt;
  return mask;
}

/// Takes the loops of `mask` for those over queries and keys.
bool Finder::setLoops(linalg::GenericOp op, const Mask &mask) {
  found = KeyBand();
  found.queryLoop = domainLoopOf(op, mask.queries);
  if (int own = domainLoopOf(op, mask.keys); own >= 0)
    found.keyLoop = own;
  numQueries = op.getStaticLoopRanges()[mask.queries];
  found.numKeys = op.getStaticLoopRanges()[mask.keys];
  return findKeyLoops(op, mask.keys);
}

/// Returns the last distances before some mask changes, in ascending order.
SmallVector<int64_t> Finder::bounds() const {
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

/// Takes keys from `first` to `last` after a query for those that it sees.
/// Returns false if some query had none.
bool Finder::setBand(int64_t last, std::optional<int64_t> first) {
  if (last < 0 ||
      (first && (*first > last || numQueries + *first > found.numKeys)))
    return false;
  found.last = last;
  found.first = first;
  int64_t low = first.value_or(-Distances::kAny);
  seesItself = numQueries <= found.numKeys && low <= 0;
  Distances late = {last + 1, Distances::kAny};
  distances[kLatePair] = late;
  distances[kEarlyPair] =
      first ? Distances{-Distances::kAny, *first - 1} : late;
  distances[kSeenPair] = seesItself ? Distances{0, 0} : Distances{low, last};
  return true;
}

/// Finds the narrowest band that can be proved.
bool Finder::findBand() {
  SmallVector<int64_t> all = bounds();
  auto isProved = [&](int64_t last, std::optional<int64_t> first) {
    return setBand(last, first) &&
           (prove(/*withChecks=*/false) ||
            (mayCheck && !found.keyLoop && prove(/*withChecks=*/true)));
  };
  for (int64_t last : all) {
    for (int64_t before : llvm::reverse(all))
      if (before < last && isProved(last, before + 1))
        return true;
    if (isProved(last, std::nullopt))
      return true;
  }
  return false;
}

/// Returns the loop of `op` over queries, if it has one.
std::optional<unsigned> Finder::queriesOf(linalg::GenericOp op) const {
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>(kTaskDimsAttr);
  if (!dims || found.queryLoop >= static_cast<unsigned>(dims.size()) ||
      dims[found.queryLoop] < 0)
    return std::nullopt;
  return dims[found.queryLoop];
}

/// Follows the dimension of keys through local buffers that have queries, too,
/// to all ops.
bool Finder::findKeyLoops(linalg::GenericOp start, unsigned loop) {
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

//===----------------------------------------------------------------------===//
// Evaluation of bodies
//===----------------------------------------------------------------------===//

/// Returns true if two values in the body of `op` are equal where a key has the
/// position of its query: the segment of a token, or the chunk that its
/// position is in.
bool Finder::areSame(linalg::GenericOp op, Value a, Value b) const {
  if (a == b)
    return true;
  unsigned keys = found.keyLoops.lookup(op), queries = *queriesOf(op);
  auto first = dyn_cast<BlockArgument>(a), second = dyn_cast<BlockArgument>(b);
  if (first && second) {
    OpOperand &lhs = op->getOpOperand(first.getArgNumber()),
              &rhs = op->getOpOperand(second.getArgNumber());
    AffineExpr key = getAffineDimExpr(keys, op.getContext()),
               query = getAffineDimExpr(queries, op.getContext());
    auto atQuery = [&](OpOperand &operand) {
      return op.getMatchingIndexingMap(&operand).replace(key, query,
                                                         op.getNumLoops(), 0);
    };
    return lhs.get() == rhs.get() && atQuery(lhs) == atQuery(rhs);
  }
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || x->getName() != y->getName())
    return false;
  if (auto index = dyn_cast<linalg::IndexOp>(x)) {
    uint64_t other = cast<linalg::IndexOp>(y).getDim();
    return (index.getDim() == keys || index.getDim() == queries) &&
           (other == keys || other == queries);
  }
  return isPure(x) && x->getNumRegions() == 0 &&
         x->getAttrDictionary() == y->getAttrDictionary() &&
         x->getOperandTypes() == y->getOperandTypes() &&
         llvm::all_of(
             llvm::zip(x->getOperands(), y->getOperands()), [&](auto pair) {
               return areSame(op, std::get<0>(pair), std::get<1>(pair));
             });
}

Known Finder::compare(arith::CmpIOp op, unsigned which) const {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  if (which == kSeenPair && seesItself &&
      (predicate == P::eq || predicate == P::ne) &&
      areSame(op->getParentOfType<linalg::GenericOp>(), op.getLhs(),
              op.getRhs()))
    return Known::constant(predicate == P::eq);
  std::optional<Mask> mask = maskOf(op);
  if (!mask)
    return {};
  auto [low, high] = mask->distances;
  const Distances &own = distances[which];
  if (low <= own.low && own.high <= high)
    return Known::constant(true);
  if (own.high < low || high < own.low)
    return Known::constant(false);
  return {};
}

static Known compareNumbers(arith::CmpFPredicate predicate, double a,
                            double b) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
  case P::UEQ:
    return Known::constant(a == b);
  case P::ONE:
  case P::UNE:
    return Known::constant(a != b);
  case P::OGT:
  case P::UGT:
    return Known::constant(a > b);
  case P::OGE:
  case P::UGE:
    return Known::constant(a >= b);
  case P::OLT:
  case P::ULT:
    return Known::constant(a < b);
  case P::OLE:
  case P::ULE:
    return Known::constant(a <= b);
  default:
    return {};
  }
}

/// Compares booleans, the only integers that are known.
static Known compareNumbers(arith::CmpIOp op, double a, double b) {
  using P = arith::CmpIPredicate;
  if (!op.getLhs().getType().isInteger(1))
    return {};
  switch (op.getPredicate()) {
  case P::eq:
    return Known::constant(a == b);
  case P::ne:
    return Known::constant(a != b);
  case P::ugt:
    return Known::constant(a > b);
  case P::uge:
    return Known::constant(a >= b);
  case P::ult:
    return Known::constant(a < b);
  case P::ule:
    return Known::constant(a <= b);
  default:
    return {};
  }
}

static Known select(const Known &condition, const Known &a, const Known &b) {
  if (a.kind == Known::Constant && b.is(a.number))
    return a;
  if (condition.kind != Known::Constant)
    return a.isBias() && b.isBias() ? Known{Known::Bias} : Known();
  return condition.number != 0 ? a : b;
}

/// Returns what is known of a value that is computed from two others, and may
/// be a bias if both are.
static Known combine(const Known &a, const Known &b, bool mayBeBias) {
  if (a.isFiniteScore() && b.isFiniteScore())
    return {Known::Score};
  if (a.isOfRow() && b.isOfRow())
    return {Known::Row};
  return mayBeBias && a.isBias() && b.isBias() ? Known{Known::Bias} : Known();
}

/// Returns what is known of a product or quotient; zero times anything is zero.
static Known multiply(const Known &a, const Known &b, bool isQuotient) {
  if (a.is(0) || (!isQuotient && b.is(0)))
    return Known::constant(0);
  if (a.kind == Known::Constant && b.kind == Known::Constant)
    return Known::constant(isQuotient ? a.number / b.number
                                      : a.number * b.number);
  // A mask's constant has no known sign after a product.
  return combine(a, b, !a.isHidden() && !b.isHidden());
}

/// Returns what is known of a sum or difference.
static Known add(const Known &a, const Known &b, bool isDifference) {
  if (a.kind == Known::Constant && b.kind == Known::Constant)
    return Known::constant(isDifference ? a.number - b.number
                                        : a.number + b.number);
  if (a.isHidden() && isDifference && b.kind == Known::Row)
    return {Known::Lowest};
  // A mask of numbers: no score is large enough to change what it says.
  if (isDifference && b.kind == Known::Constant && b.number >= -kHidden &&
      a.isBias())
    return {Known::Hidden};
  if (!isDifference &&
      ((a.isHidden() && b.isBias()) || (b.isHidden() && a.isBias())))
    return {Known::Hidden};
  return combine(a, b, !(isDifference && b.isHidden()));
}

static Known exponentiate(const Known &x) {
  if (x.kind == Known::Lowest || x.isHidden())
    return Known::constant(0);
  return {};
}

static Known logic(Operation &op, const Known &a, const Known &b) {
  if (isa<arith::AndIOp>(op) && (a.is(0) || b.is(0)))
    return Known::constant(0);
  if (isa<arith::OrIOp>(op) && (a.is(1) || b.is(1)) &&
      op.getResult(0).getType().isInteger(1))
    return Known::constant(1);
  if (a.kind != Known::Constant || b.kind != Known::Constant ||
      !op.getResult(0).getType().isInteger(1))
    return {};
  bool x = a.number != 0, y = b.number != 0;
  return Known::constant(isa<arith::AndIOp>(op)  ? x && y
                         : isa<arith::OrIOp>(op) ? x || y
                                                 : x != y);
}

Known Finder::evaluate(Operation &op, unsigned which,
                       const DenseMap<Value, Pair> &values) const {
  auto known = [&](unsigned i) -> Known {
    Value operand = op.getOperand(i);
    Attribute attr;
    if (matchPattern(operand, m_Constant(&attr))) {
      std::optional<double> number = numberOf(attr);
      return number ? Known::constant(*number) : Known();
    }
    auto it = values.find(operand);
    return it == values.end() ? Known() : it->second[which];
  };
  return llvm::TypeSwitch<Operation *, Known>(&op)
      .Case([&](linalg::IndexOp) -> Known { return {Known::Score}; })
      .Case([&](arith::CmpIOp cmp) {
        Known a = known(0), b = known(1);
        if (a.kind == Known::Constant && b.kind == Known::Constant)
          return compareNumbers(cmp, a.number, b.number);
        return compare(cmp, which);
      })
      .Case([&](arith::CmpFOp cmp) -> Known {
        Known a = known(0), b = known(1);
        if (a.kind != Known::Constant || b.kind != Known::Constant)
          return {};
        return compareNumbers(cmp.getPredicate(), a.number, b.number);
      })
      .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
          [&](Operation *) { return logic(op, known(0), known(1)); })
      .Case<arith::SelectOp>(
          [&](Operation *) { return select(known(0), known(1), known(2)); })
      .Case<arith::ExtFOp, arith::TruncFOp, arith::UIToFPOp, arith::SIToFPOp,
            arith::ExtUIOp, arith::IndexCastOp>(
          [&](Operation *) { return known(0); })
      .Case<arith::MulFOp, arith::MulIOp>(
          [&](Operation *) { return multiply(known(0), known(1), false); })
      .Case<arith::DivFOp>(
          [&](Operation *) { return multiply(known(0), known(1), true); })
      .Case<arith::AddFOp, arith::AddIOp>(
          [&](Operation *) { return add(known(0), known(1), false); })
      .Case<arith::SubFOp, arith::SubIOp>(
          [&](Operation *) { return add(known(0), known(1), true); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
            arith::MinNumFOp>([&](Operation *) {
        return combine(known(0), known(1), /*mayBeBias=*/false);
      })
      .Case<arith::NegFOp>(
          [&](Operation *) { return add(Known::constant(0), known(0), true); })
      .Case<math::ExpOp, math::Exp2Op>(
          [&](Operation *) { return exponentiate(known(0)); })
      .Case<math::AbsFOp>([&](Operation *) -> Known {
        Known a = known(0);
        if (a.kind == Known::Constant)
          return Known::constant(std::abs(a.number));
        return a.kind == Known::Score || a.kind == Known::Row ? a : Known();
      })
      .Case<math::TanhOp>([&](Operation *) -> Known {
        return known(0).isFiniteScore() ? Known{Known::Score} : Known();
      })
      .Default([](Operation *) { return Known(); });
}

//===----------------------------------------------------------------------===//
// The proof
//===----------------------------------------------------------------------===//

/// Returns the number that a local buffer is filled with, if it is constant.
static std::optional<double> filledWith(Value buffer) {
  for (Operation *user : buffer.getUsers()) {
    Attribute attr;
    if (auto fill = dyn_cast<linalg::FillOp>(user))
      return matchPattern(fill.getInputs()[0], m_Constant(&attr))
                 ? numberOf(attr)
                 : std::nullopt;
  }
  return std::nullopt;
}

/// Returns true if the term of such a hidden pair does not change a reduction
/// that starts with `init`.
static bool isNeutral(Operation &combiner, const Pair &term, unsigned pair,
                      Value init) {
  const Known &hidden = term[pair];
  if (isa<arith::AddFOp>(combiner))
    return hidden.is(0);
  if (!isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    return false;
  if (hidden.isHidden() && term[kSeenPair].kind == Known::Score)
    return true;
  // The maximum over a row of weights starts at 0, and weights of hidden keys
  // are 0.
  std::optional<double> begin = filledWith(init);
  return hidden.kind == Known::Constant && begin && hidden.number <= *begin;
}

/// Returns what is known of an op's argument at both kinds of pairs.
Pair Finder::argumentOf(linalg::GenericOp op, BlockArgument argument) const {
  OpOperand &operand = op->getOpOperand(argument.getArgNumber());
  if (auto it = buffers.find(operand.get()); it != buffers.end())
    return it->second;
  bool isOfRow = !op.getMatchingIndexingMap(&operand).isFunctionOfDim(
      found.keyLoops.lookup(op));
  bool isFloat = isa<FloatType>(argument.getType());
  Pair pair;
  pair.fill({isOfRow ? Known::Row : isFloat ? Known::Bias : Known::Unknown});
  return pair;
}

/// Returns true if a result has an element for each pair. Other kernels may
/// read those of hidden pairs unless the result is local.
bool Finder::isOfPairs(linalg::GenericOp op, unsigned result) {
  AffineMap map = op.getMatchingIndexingMap(&op.getDpsInitsMutable()[result]);
  return map.isFunctionOfDim(found.keyLoops.lookup(op)) &&
         map.isFunctionOfDim(*queriesOf(op));
}

/// Returns true if hidden pairs do not change the values of a result that
/// anything else reads.
bool Finder::proveResult(linalg::GenericOp op, unsigned result,
                         const Pair &yielded) {
  OpOperand &init = op.getDpsInitsMutable()[result];
  AffineMap map = op.getMatchingIndexingMap(&init);
  if (map.isFunctionOfDim(found.keyLoops.lookup(op)) && allParallel(op)) {
    // Other kernels may read a buffer that is not local.
    buffers[init.get()] = yielded;
    return found.keyDims.contains(init.get());
  }
  return true;
}

bool Finder::proveOp(linalg::GenericOp op) {
  Block *body = op.getBody();
  DenseMap<Value, Pair> values;
  unsigned numInputs = op.getNumDpsInputs();
  for (BlockArgument argument : body->getArguments())
    if (argument.getArgNumber() < numInputs)
      values[argument] = argumentOf(op, argument);
  // A dot that writes a local buffer over keys computes scores, whatever its
  // operands are.
  bool makesScores = isDot(op) && found.keyDims.contains(op.getDpsInits()[0]);
  if (makesScores) {
    buffers[op.getDpsInits()[0]].fill({Known::Score});
    return true;
  }
  for (Operation &inner : body->without_terminator()) {
    if (isa<memref::LoadOp>(inner))
      return false;
    if (inner.getNumResults() == 1)
      values[inner.getResult(0)] = {evaluate(inner, kLatePair, values),
                                    evaluate(inner, kEarlyPair, values),
                                    evaluate(inner, kSeenPair, values)};
    // The maximum of the row is subtracted from the constant of hidden keys.
    // Their exponentials are zero only if that maximum is a score: it is if the
    // row's visible keys have scores; otherwise its value is checked.
    auto isLowest = [&](unsigned pair) {
      return values[inner.getResult(0)][pair].kind == Known::Lowest;
    };
    if (isa<arith::SubFOp>(inner) && llvm::any_of(kHiddenPairs, isLowest)) {
      auto it = values.find(inner.getOperand(0));
      bool isSeen =
          it != values.end() && it->second[kSeenPair].kind == Known::Score;
      if (!isSeen && !checkRow(op, inner.getOperand(1)))
        return false;
    }
  }
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    Value value = body->getTerminator()->getOperand(i);
    auto it = values.find(value);
    Pair yielded = it == values.end() ? Pair() : it->second;
    if (allParallel(op)) {
      if (!proveResult(op, i, yielded))
        return false;
      continue;
    }
    // The term of a reduction must be neutral.
    Operation *combiner = reductionCombiner(op, i);
    if (!combiner)
      return false;
    BlockArgument running = body->getArgument(numInputs + i);
    Value term = combiner->getOperand(combiner->getOperand(0) == running);
    auto known = values.find(term);
    Pair pair = known == values.end() ? Pair() : known->second;
    Value init = op.getDpsInits()[i];
    if (isOfPairs(op, i) && !found.keyDims.contains(init))
      return false;
    bool isMaximum = isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner);
    for (unsigned hidden : kHiddenPairs)
      if (isChecking && isMaximum && pair[hidden].isHidden())
        maxima.push_back(init);
      else if (!isNeutral(*combiner, pair, hidden, init))
        return false;
  }
  return true;
}

/// Lets `row`, from which the scores of a row are subtracted, be checked.
bool Finder::checkRow(linalg::GenericOp op, Value row) {
  while (Operation *cast = row.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(cast))
      return false;
    row = cast->getOperand(0);
  }
  OpOperand &operand =
      op->getOpOperand(cast<BlockArgument>(row).getArgNumber());
  if (isChecking && !llvm::is_contained(found.rowsToCheck, &operand))
    found.rowsToCheck.push_back(&operand);
  return isChecking;
}

bool Finder::prove(bool withChecks) {
  isChecking = withChecks;
  found.rowsToCheck.clear();
  maxima.clear();
  buffers.clear();
  bool hides = false;
  for (auto op : kernel.getOps<linalg::GenericOp>()) {
    if (!found.keyLoops.contains(op))
      continue;
    if (!proveOp(op))
      return false;
    hides |= isDot(op);
  }
  // Only rows that are checked are known to have a maximum of visible keys.
  return hides && llvm::all_of(maxima, [&](Value maximum) {
           return llvm::is_contained(
               llvm::map_range(found.rowsToCheck, std::mem_fn(&OpOperand::get)),
               maximum);
         });
}

std::optional<KeyBand> Finder::run() {
  for (auto op : kernel.getOps<linalg::GenericOp>())
    for (auto compare : op.getBody()->getOps<arith::CmpIOp>())
      if (std::optional<Mask> mask = asMask(op, compare);
          mask && setLoops(op, *mask) && findBand())
        return found;
  return std::nullopt;
}

std::optional<KeyBand> KeyBand::find(Block &kernel, bool mayCheck) {
  return Finder(kernel, mayCheck).run();
}
