//===- Reductions.cpp - How values are reduced over ranks -----------------===//

#include "Reductions.h"
#include "Means.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

//===----------------------------------------------------------------------===//
// Data flow
//===----------------------------------------------------------------------===//

/// Whether an operand only says which elements of the others an op takes.
static bool isIndex(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto gather = dyn_cast<stablehlo::GatherOp>(op))
    return &operand == &gather.getStartIndicesMutable();
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op))
    return &operand == &scatter.getScatterIndicesMutable();
  return false;
}

/// Visits all values that a value is computed from, each once; of loops and
/// branches only the carry or result. Continues behind a value if `visit`
/// returns true. Leaves indices out unless `withIndices`.
static void forEachAncestor(Value value, llvm::function_ref<bool(Value)> visit,
                            bool withIndices = true) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second || !visit(next))
      continue;
    Operation *op = next.getDefiningOp();
    unsigned index = 0;
    if (auto arg = dyn_cast<BlockArgument>(next)) {
      op = arg.getOwner()->getParentOp();
      index = arg.getArgNumber();
      if (!isa<stablehlo::WhileOp>(op))
        continue;
    } else {
      index = cast<OpResult>(next).getResultNumber();
    }
    auto yielded = [&](Region &region, unsigned i) {
      worklist.push_back(region.front().getTerminator()->getOperand(i));
    };
    if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
      worklist.push_back(loop->getOperand(index));
      yielded(loop.getBody(), index);
      yielded(loop.getCond(), 0);
    } else if (stablehlo::isBranch(op)) {
      worklist.push_back(op->getOperand(0));
      for (Region &region : op->getRegions())
        yielded(region, index);
    } else {
      for (OpOperand &operand : op->getOpOperands())
        if (withIndices || !isIndex(operand))
          worklist.push_back(operand.get());
    }
  }
}

/// Returns the values that are computed from a used value, directly.
static SmallVector<Value> followersOf(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
    return {loop.getCond().getArgument(index),
            loop.getBody().getArgument(index)};
  Operation *parent = op->getParentOp();
  if (isa<stablehlo::ReturnOp>(op)) {
    if (auto loop = dyn_cast<stablehlo::WhileOp>(parent)) {
      if (op->getParentRegion() == &loop.getCond())
        return {};
      return {loop->getResult(index), loop.getCond().getArgument(index),
              loop.getBody().getArgument(index)};
    }
    if (stablehlo::isBranch(parent))
      return {parent->getResult(index)};
    return {};
  }
  return SmallVector<Value>(op->getResults());
}

static bool isNear(double a, double b) {
  return std::abs(a - b) <= 1e-4 * std::abs(b);
}

/// Returns the elements of a constant that are none of 0, 1 and -1, each once
/// in a row.
static SmallVector<double> factorsIn(DenseElementsAttr elements) {
  SmallVector<double> factors;
  auto add = [&](double value) {
    double factor = std::abs(value);
    if (factor != 0 && factor != 1 &&
        (factors.empty() || factors.back() != factor))
      factors.push_back(factor);
  };
  if (isa<FloatType>(elements.getElementType())) {
    if (elements.isSplat())
      add(elements.getSplatValue<APFloat>().convertToDouble());
    else
      for (const APFloat &value : elements.getValues<APFloat>())
        add(value.convertToDouble());
  } else if (isa<IntegerType>(elements.getElementType())) {
    if (elements.isSplat())
      add(elements.getSplatValue<APInt>().roundToDouble(true));
    else
      for (const APInt &value : elements.getValues<APInt>())
        add(value.roundToDouble(true));
  }
  return factors;
}

/// Returns the factors in a constant, perhaps broadcast; nullopt if `value` is
/// none.
static std::optional<SmallVector<double>> constantFactors(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(stablehlo::skipBroadcasts(value), m_Constant(&elements)))
    return std::nullopt;
  return factorsIn(elements);
}

//===----------------------------------------------------------------------===//
// The loss
//===----------------------------------------------------------------------===//

Reductions::Reductions(func::FuncOp func, const Signature &signature,
                       const Propagation &layouts,
                       const llvm::SetVector<Value> &whole,
                       std::optional<Reduction> given)
    : func(func), signature(signature), layouts(layouts), whole(whole),
      given(given) {
  findSources();
  proveLoss();
  findLossFactors();
}

/// Adds the values that results of a kind depend on, apart from values for
/// which `stops` returns true and what only these depend on.
static void addSources(
    func::FuncOp func, const Signature &signature, ResultKind kind,
    llvm::DenseSet<Value> &sources,
    llvm::function_ref<bool(Value)> stops = [](Value) { return false; }) {
  Operation *end = func.getBody().front().getTerminator();
  for (const SignatureResult &result : signature.results)
    if (result.kind == kind)
      forEachAncestor(end->getOperand(result.index), [&](Value value) {
        return !stops(value) && sources.insert(value).second;
      });
}

llvm::DenseSet<Value> fp8::sourcesOf(func::FuncOp func,
                                     const Signature &signature) {
  llvm::DenseSet<Value> sources;
  addSources(func, signature, ResultKind::State, sources);
  addSources(func, signature, ResultKind::Loss, sources);
  return sources;
}

void Reductions::findSources() {
  Operation *end = func.getBody().front().getTerminator();
  addSources(func, signature, ResultKind::State, stateSources);
  if (const SignatureResult *loss = signature.findLoss())
    forEachAncestor(end->getOperand(loss->index), [&](Value value) {
      if (!whole.contains(value))
        return true;
      if (layouts.partOf(value).learned)
        lossTerms.insert(value);
      return false;
    });
  // (Rows may read parameters that the step has updated before: the gradients
  // of these updates are no part of the loss.)
  addSources(func, signature, ResultKind::Loss, lossSources,
             [&](Value value) { return layouts.isUpdate(value); });
}

bool Reductions::isMean(Value value, const Layout &part) const {
  return (part.isMean && !part.byCount) || Means(layouts).isMean(value);
}

/// Finds out whether a partial value of the loss adds up means, and sums that
/// are divided by a count.
void Reductions::findTermsOf(Value value, bool &mean, bool &byCount) {
  forEachAncestor(value, [&](Value source) {
    Layout part = layouts.partOf(source);
    if (!part.isPartial(Reduction::Sum))
      return false;
    bool isMean = this->isMean(source, part);
    mean |= isMean;
    byCount |= part.byCount;
    return !isMean && !part.byCount;
  });
}

void Reductions::proveLoss() {
  bool mean = true, byCount = true, anyMean = false, anyByCount = false;
  isScaled = true;
  for (Value term : lossTerms) {
    Layout part = layouts.partOf(term);
    mean &= isMean(term, part);
    byCount &= part.byCount;
    isScaled &= part.isCounted && std::abs(part.factor) != 1;
    findTermsOf(term, anyMean, anyByCount);
  }
  if (lossTerms.empty())
    return;
  isMixed = anyMean && anyByCount;
  if (mean)
    proven = Reduction::Mean;
  else if (byCount)
    proven = Reduction::Sum;
}

/// Finds the constants that the backward pass begins with.
void Reductions::findLossFactors() {
  for (Value value : lossSources) {
    Layout part = layouts.partOf(value);
    bool isSum = part.isPartial(Reduction::Sum) || part.is(Kind::Replicated);
    if (isSum && part.isCounted && part.factor != 0 &&
        std::abs(part.factor) != 1 &&
        !llvm::is_contained(lossFactors, std::abs(part.factor)))
      lossFactors.push_back(std::abs(part.factor));
  }
  for (Value term : lossTerms)
    llvm::append_range(lossFactors, Means(layouts).factorsOf(term));
}

LogicalResult Reductions::emitMixedLoss() {
  return func.emitError(
             "expected all terms of the loss to be means over the batch, or "
             "all to be sums divided by a count that follows from the batch, "
             "but got both: neither loss-reduction=mean nor loss-reduction=sum "
             "is right for both; divide the means by a sum over a mask, "
             "too (result '")
         << signature.findLoss()->path << "')";
}

LogicalResult Reductions::verifyGiven() {
  if (!given)
    return success();
  if (isMixed)
    return emitMixedLoss();
  if (!proven || proven == given)
    return success();
  bool isMean = proven == Reduction::Mean;
  return func.emitError("expected loss-reduction=")
         << (isMean ? "mean" : "sum") << ", because the loss '"
         << signature.findLoss()->path << "' is "
         << (isMean ? "a sum over the batch divided by the number of its "
                      "elements"
                    : "a sum over the batch divided by a count that follows "
                      "from the batch")
         << ", but got loss-reduction=" << (isMean ? "sum" : "mean");
}

FailureOr<Reduction> Reductions::reductionOfLoss() {
  if (proven)
    return *proven;
  if (isMixed)
    return emitMixedLoss();
  if (given)
    return *given;
  const SignatureResult *loss = signature.findLoss();
  return func.emitError(
             "expected the loss to be a mean over the batch (its sum divided "
             "by the number of its elements, or by a count that follows from "
             "the batch) but could not prove it: say loss-reduction=mean, if "
             "the loss of two batches together is the mean of their losses, or "
             "loss-reduction=sum, if it is the sum (result '")
         << (loss ? loss->path : std::string("?")) << "')";
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Looks at the values of the backward pass that a value follows from. Rows of
/// the forward pass are its leaves: a gradient is linear in what the backward
/// pass begins with, so it has to get that by some other way. Booleans carry no
/// gradient, either.
Reductions::Seeds Reductions::seedsOf(Value value) {
  Seeds seeds;
  forEachAncestor(value, [&](Value source) {
    Type element = getElementTypeOrSelf(source.getType());
    Layout layout = layouts.layoutOf(source);
    bool isRows = layout.is(Kind::Rows);
    if (element.isInteger(1) ||
        (isRows && (isa<IntegerType>(element) || lossSources.contains(source))))
      return false;
    seeds.count |= layout.is(Kind::Replicated) && layout.byCount;
    // (What was completed before is no part of the backward pass of rows.)
    if (source != value && whole.contains(source))
      return false;
    DenseElementsAttr elements;
    if (!matchPattern(source, m_Constant(&elements)))
      return true;
    for (double factor : factorsIn(elements)) {
      seeds.factors.push_back(factor);
      for (double of : lossFactors)
        for (double by : {1., 2., 0.5}) // from squares
          seeds.ofLoss |= isNear(factor, by * of) || isNear(factor, by / of);
    }
    return false;
  });
  return seeds;
}

/// Whether a value reaches a parameter, or state of an optimizer, by other ways
/// than through new state of an unknown kind.
bool Reductions::reachesParameter(Value value) {
  Operation *end = func.getBody().front().getTerminator();
  llvm::DenseSet<Value> seen;
  for (const SignatureResult &result : signature.results) {
    const SignatureArg *arg = signature.findArg(result.statePath);
    if (result.kind == ResultKind::State && arg &&
        arg->kind == StateKind::Other)
      seen.insert(end->getOperand(result.index));
  }
  if (seen.contains(value))
    return false;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      if (use.getOwner() == end) {
        for (const SignatureResult &result : signature.results)
          if (result.index == use.getOperandNumber() &&
              result.kind == ResultKind::State)
            return true;
        continue;
      }
      llvm::append_range(worklist, followersOf(use));
    }
  }
  return false;
}

/// Whether a learned value that enters the state is a gradient of the loss.
Reductions::Answer Reductions::isGradient(Value value, const Layout &part) {
  Seeds seeds = seedsOf(value);
  if (proven == Reduction::Sum) {
    // (Gradients of a plain sum may be divided by the count in a later step.)
    bool isSum = !part.isMean && reachesParameter(value);
    return seeds.count || isSum ? Answer::Yes : Answer::No;
  }
  if (!proven && !(given == Reduction::Mean && isScaled)) {
    // The backward pass may begin with one.
    bool isMean = given == Reduction::Sum && part.isMean && !part.byCount;
    return isMean && seeds.factors.empty() ? Answer::No : Answer::Yes;
  }
  if (seeds.factors.empty())
    return Answer::No;
  if (seeds.ofLoss || reachesParameter(value))
    return Answer::Yes;
  return Answer::Unknown;
}

//===----------------------------------------------------------------------===//
// All values
//===----------------------------------------------------------------------===//

/// Whether a sum over rows adds up values of the batch, or counts them, without
/// constant factors.
bool Reductions::isPlainCount(Value value) {
  bool plain = true;
  auto visit = [&](Value source) {
    // (A boolean counts as one, whatever it follows from.)
    if (getElementTypeOrSelf(source.getType()).isInteger(1))
      return false;
    Operation *op = source.getDefiningOp();
    if (isa_and_nonnull<stablehlo::MulOp, stablehlo::DivOp,
                        stablehlo::DotGeneralOp, stablehlo::ScatterOp>(op))
      for (OpOperand &operand : op->getOpOperands()) {
        auto factors = constantFactors(operand.get());
        plain &= isIndex(operand) || !factors || factors->empty();
      }
    return plain;
  };
  forEachAncestor(value, visit, /*withIndices=*/false);
  return plain;
}

/// Returns the factor by which a value is multiplied, if it is a constant.
static std::optional<double> factorOf(Value value) {
  auto multiply = value.getDefiningOp<stablehlo::MulOp>();
  if (!multiply)
    return std::nullopt;
  for (Value operand : multiply->getOperands()) {
    if (!stablehlo::getSplat(stablehlo::skipBroadcasts(operand)))
      continue;
    auto factors = constantFactors(operand);
    if (factors && factors->size() == 1)
      return factors->front();
  }
  return std::nullopt;
}

/// Whether a sum over rows is the new part of a running average in the state:
/// its only constant is 1 - d, and state times d is added. Then the constant
/// counts no rows.
bool Reductions::isRunningAverage(Value value, const Layout &part) {
  if (!part.isCounted || part.byCount || !entersState(value))
    return false;
  std::optional<double> weight;
  for (Operation *user : value.getUsers()) {
    if (!isa<stablehlo::AddOp>(user))
      return false;
    Value old = user->getOperand(user->getOperand(0) == value);
    std::optional<double> decay = factorOf(old);
    if (!decay || *decay >= 1 || !layouts.layoutOf(old).isWhole() ||
        (weight && *weight != 1 - *decay))
      return false;
    weight = 1 - *decay;
  }
  if (!weight)
    return false;
  Seeds seeds = seedsOf(value);
  return !seeds.ofLoss && !seeds.count && !seeds.factors.empty() &&
         llvm::all_of(seeds.factors,
                      [&](double factor) { return isNear(factor, *weight); }) &&
         !reachesParameter(value);
}

bool Reductions::isSurelySum(Value value) {
  Layout part = layouts.partOf(value);
  if (!part.isPlainSum() || part.isMean || part.byCount)
    return false;
  if (!part.learned)
    return isPlainCount(value);
  if (!entersState(value))
    return true;
  Seeds seeds = seedsOf(value);
  return seeds.factors.empty() && !seeds.count;
}

/// Returns the constant by which an op multiplies or divides an operand; 1 if
/// it is another op on this operand and constants; none otherwise.
static std::optional<double> factorOn(OpOperand &use) {
  Operation *op = use.getOwner();
  if (!stablehlo::worksByElement(op) &&
      !isa<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp>(op))
    return std::nullopt;
  bool divides = isa<stablehlo::DivOp>(op) && use.getOperandNumber() == 0;
  double factor = 1;
  for (OpOperand &other : op->getOpOperands()) {
    if (&other == &use)
      continue;
    auto factors = constantFactors(other.get());
    if (!factors)
      return std::nullopt;
    if (factors->size() == 1 && (divides || isa<stablehlo::MulOp>(op)))
      factor = divides ? 1 / factors->front() : factors->front();
  }
  return factor;
}

LogicalResult Reductions::verifyDivisorsOf(Value sum) {
  double elements = layouts.partOf(sum).elements;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{sum};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *op = use.getOwner();
      std::optional<double> factor = factorOn(use);
      if (!factor || !layouts.layoutOf(op->getResult(0)).is(Kind::Replicated))
        continue;
      // (The quotient of integers is rounded.)
      bool isLinear = layouts.layoutOf(next).isCounted &&
                      isa<FloatType>(getElementTypeOrSelf(next));
      if (!isLinear && (isNear(*factor * elements, 1) ||
                        isNear(*factor * *factor * elements, 1)))
        return op->emitOpError(
                   "expected a sum over the rows to be divided by the number "
                   "of its elements before another function is applied: ")
               << static_cast<int64_t>(elements) << " is that of one rank";
      worklist.push_back(op->getResult(0));
    }
  }
  return success();
}

LogicalResult Reductions::verifyDivisors() {
  for (Value value : whole)
    if (layouts.partOf(value).elements > 1 && isSurelySum(value) &&
        failed(verifyDivisorsOf(value)))
      return failure();
  return success();
}

/// Decides about a value that is no gradient in the state, and no term of the
/// loss.
std::optional<Reduction> Reductions::reductionOfOther(Value value,
                                                      const Layout &part) {
  if (isMean(value, part))
    return Reduction::Mean;
  if (part.byCount)
    return Reduction::Sum;
  if (part.isPlainSum() && (part.learned || isPlainCount(value)))
    return Reduction::Sum;
  return std::nullopt;
}

/// Whether a gradient is divided by the number of rows, although the loss is
/// said to be a sum. The divisor would be that of one rank.
bool Reductions::isMeanOfSum(Value value, const Layout &part) {
  return !proven && given == Reduction::Sum && part.isMean && !part.byCount &&
         entersState(value) && !seedsOf(value).ofLoss;
}

/// Whether the backward pass of some gradient begins with the reciprocal of a
/// count.
bool Reductions::hasGradientByCount() {
  if (!gradientByCount)
    gradientByCount = llvm::any_of(whole, [&](Value value) {
      Layout part = layouts.partOf(value);
      return part.isPartial(Reduction::Sum) && part.learned &&
             entersState(value) && seedsOf(value).count;
    });
  return *gradientByCount;
}

/// Whether a gradient is that of another loss. If the loss is a mean, the
/// backward pass begins with the reciprocal of a count and with no constant of
/// the loss. If the loss is divided by a count, it begins with a constant and
/// with no count, though that of other gradients does.
bool Reductions::isOfOtherLoss(Value value) {
  if (!proven)
    return false;
  Seeds seeds = seedsOf(value);
  if (proven == Reduction::Mean)
    return seeds.count && !seeds.ofLoss;
  return !seeds.count && !seeds.factors.empty() && hasGradientByCount();
}

LogicalResult Reductions::emitOtherLoss(Value value, StringRef label) {
  bool isMean = proven == Reduction::Mean;
  const char *byCount = "divided by a count that follows from the batch";
  return emitError(value.getLoc())
         << "expected all losses of the step to be "
         << (isMean ? "means over the batch" : byCount) << ", as '"
         << signature.findLoss()->path
         << "' is, but got a gradient of one that "
         << (isMean ? "is " : "may be a mean, since it is not ") << byCount
         << ": divide both by such a count ('" << label << "')";
}

FailureOr<Reduction> Reductions::reductionOf(Value value, StringRef label) {
  Layout part = layouts.partOf(value);
  if (part.reduction != Reduction::Sum)
    return part.reduction;
  if (lossTerms.contains(value))
    return reductionOfLoss();
  if (isRunningAverage(value, part))
    return Reduction::Sum;
  Answer gradient = Answer::No;
  if (part.learned && entersState(value)) {
    gradient = isGradient(value, part);
  } else if (part.learned && !part.isMean && !part.byCount) {
    // A gradient that only metrics read.
    Seeds seeds = seedsOf(value);
    if (proven == Reduction::Sum ? seeds.count : seeds.ofLoss)
      gradient = Answer::Yes;
  }
  if (gradient == Answer::Yes && isMeanOfSum(value, part))
    return emitError(value.getLoc())
           << "expected a gradient of a loss that is a sum but got one that is "
              "divided by the number of its rows: divide the loss by it, or "
              "the update ('"
           << label << "')";
  if (gradient == Answer::Yes && isOfOtherLoss(value))
    return emitOtherLoss(value, label);
  if (gradient == Answer::Yes)
    return reductionOfLoss();
  std::optional<Reduction> found = reductionOfOther(value, part);
  if (found && (gradient == Answer::No || *found == Reduction::Mean))
    return *found;
  return emitError(value.getLoc())
         << "expected a sum or a mean over the rows of the batch but cannot "
            "tell which: divide the sum by the number of its elements, after "
            "it is made, or by nothing; any other constant may count rows, too "
            "('"
         << label << "')";
}
