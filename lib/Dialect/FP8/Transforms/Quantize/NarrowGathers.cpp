//===- NarrowGathers.cpp - Quantize and round before a gather -------------===//
//
// An operand that a step gathers from several ranks is normally quantized, or
// rounded to bf16, after the gather. If nothing else reads the gathered value,
// each rank does that to its own part instead, with the same scales, and fewer
// bytes travel. FP8-LM (arXiv 2310.18313, section 2.3) does this for sequence
// parallelism; it works as well for weights that are split over several ranks.
//
//===----------------------------------------------------------------------===//

#include "../SmallTensors.h"
#include "RankGroups.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FP8NARROWGATHERS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// If a rank has fewer elements, a second exchange for the amax takes longer
/// than the saved bytes.
static constexpr int64_t kSmallShard = 1024;

namespace {

/// A gather that concatenates the parts of all ranks of a group along a
/// dimension, as `stablehlo-lower-collectives` makes it from an `all_gather`.
struct Gather {
  ExchangeOp exchange;
  SmallVector<Operation *> views; // after the exchange, in order
  Value whole;
  int64_t dim = 0;

  /// Matches the gather that begins with `exchange`.
  static std::optional<Gather> match(ExchangeOp exchange);
  /// Creates the same gather of another value of which this rank has a part.
  Value apply(OpBuilder &b, Location loc, Value part, StringRef reason);

  int64_t numRanks() { return exchange.getRanks().getType().getDimSize(1); }
};

class Narrowing {
public:
  explicit Narrowing(Gather gather) : gather(std::move(gather)) {}

  /// Narrows what travels. Returns the reason if this is impossible.
  std::optional<std::string> run();

private:
  bool isRounded();
  std::optional<std::string> findObstacle();
  void gatherRounded();
  bool isWholeAlong(ArrayRef<int64_t> tile) const {
    return tile.empty() || tile[gather.dim] == ScaledType::kWhole;
  }
  Value partOfAmax(OpBuilder &b, AmaxOp amax);
  void gatherAmax(AmaxOp amax);
  void gatherPayload(QuantizeOp quantize);

  Gather gather;
  SmallVector<AmaxOp> amaxes;
  SmallVector<QuantizeOp> quantizes;
};

} // namespace

//===----------------------------------------------------------------------===//
// The gather
//===----------------------------------------------------------------------===//

/// Returns the only reader of `value` if it is an `OpTy`; else null.
template <typename OpTy> static OpTy onlyReader(Value value) {
  return value.hasOneUse() ? dyn_cast<OpTy>(*value.user_begin()) : OpTy();
}

std::optional<Gather> Gather::match(ExchangeOp exchange) {
  if (exchange.getKind() != ExchangeKind::Gather)
    return std::nullopt;
  Gather gather{exchange, {}, exchange.getResult()};
  ArrayRef<int64_t> part = shapeOf(exchange.getInput());
  if (auto transpose =
          onlyReader<stablehlo::TransposeOp>(exchange.getResult())) {
    // The dimension of the ranks moves to its place; the others keep their
    // order.
    ArrayRef<int64_t> order = transpose.getPermutation();
    gather.dim = llvm::find(order, 0) - order.begin();
    for (int64_t i = 0, next = 1; i < static_cast<int64_t>(order.size()); ++i)
      if (i != gather.dim && order[i] != next++)
        return std::nullopt;
    gather.views.push_back(transpose);
    gather.whole = transpose.getResult();
  }
  auto reshape = onlyReader<stablehlo::ReshapeOp>(gather.whole);
  if (!reshape || gather.dim >= static_cast<int64_t>(part.size()))
    return std::nullopt;
  SmallVector<int64_t> merged(part);
  merged[gather.dim] *= gather.numRanks();
  if (shapeOf(reshape.getResult()) != ArrayRef<int64_t>(merged))
    return std::nullopt;
  gather.views.push_back(reshape);
  gather.whole = reshape.getResult();
  return gather;
}

Value Gather::apply(OpBuilder &b, Location loc, Value part, StringRef reason) {
  SmallVector<int64_t> shape(shapeOf(part));
  shape.insert(shape.begin(), numRanks());
  auto moved = ExchangeOp::create(b, loc, tensorOf(part).clone(shape),
                                  ExchangeKind::Gather, part,
                                  exchange.getRanks(), exchange.getLabelAttr());
  moved->setAttr(FP8Dialect::kWireReasonAttrName, b.getStringAttr(reason));
  Value all = moved.getResult();
  for (Operation *view : views)
    if (auto transpose = dyn_cast<stablehlo::TransposeOp>(view))
      all = stablehlo::TransposeOp::create(b, loc, all,
                                           transpose.getPermutation());
  shape.erase(shape.begin());
  shape[dim] *= numRanks();
  return makeReshape(b, loc, all, shape);
}

//===----------------------------------------------------------------------===//
// Amaxes
//===----------------------------------------------------------------------===//

/// Computes the amax of this rank's part, in the tiles of the whole.
Value Narrowing::partOfAmax(OpBuilder &b, AmaxOp amax) {
  IRMapping mapping;
  mapping.map(amax.getInput(), gather.exchange.getInput());
  auto part = cast<AmaxOp>(b.clone(*amax, mapping));
  SmallVector<int64_t> shape(shapeOf(amax.getResult()));
  if (!isWholeAlong(amax.getTile().value_or(ArrayRef<int64_t>())))
    shape[gather.dim] /= gather.numRanks();
  part.getResult().setType(tensorOf(amax.getResult()).clone(shape));
  return part.getResult();
}

/// Replaces an amax of the whole by exactly the same value: the maximum over
/// the ranks where a tile spans them, else the concatenation of the ranks'
/// amaxes.
void Narrowing::gatherAmax(AmaxOp amax) {
  OpBuilder b(amax);
  Location loc = amax.getLoc();
  Value part = partOfAmax(b, amax);
  StringRef reason = "the scale of a payload that is gathered";
  if (!isWholeAlong(amax.getTile().value_or(ArrayRef<int64_t>()))) {
    amax.getResult().replaceAllUsesWith(gather.apply(b, loc, part, reason));
    return amax.erase();
  }
  amax.getResult().replaceAllUsesWith(
      reduceMaxOverGroups(b, part, gather.exchange.getRanks(),
                          gather.exchange.getLabelAttr(), reason));
  amax.erase();
}

//===----------------------------------------------------------------------===//
// Payloads
//===----------------------------------------------------------------------===//

/// Gathers payloads. The scale and quantizer of this rank's part are those of
/// the whole where a tile spans the ranks; else they follow from its own
/// amaxes.
void Narrowing::gatherPayload(QuantizeOp quantize) {
  OpBuilder b(quantize);
  Location loc = quantize.getLoc();
  ScaledType type = quantize.getType();
  Value scale = quantize.getScale(), quantizer = quantize.getQuantizer();
  if (!isWholeAlong(type.getTile())) {
    auto compute = scale.getDefiningOp<ComputeScaleOp>();
    IRMapping mapping;
    mapping.map(compute.getAmax(),
                partOfAmax(b, compute.getAmax().getDefiningOp<AmaxOp>()));
    auto own = cast<ComputeScaleOp>(b.clone(*compute, mapping));
    for (auto [mine, all] : llvm::zip(own->getResults(), compute->getResults()))
      mine.setType(tensorOf(all).clone(shapeOf(own.getAmax())));
    scale = own.getScale();
    quantizer = own.getQuantizer();
  }
  Value part = gather.exchange.getInput();
  auto partType = ScaledType::get(
      RankedTensorType::get(shapeOf(part),
                            type.getPayloadType().getElementType()),
      type.getTile(), type.getScaleTensorType().getElementType());
  IRMapping mapping;
  mapping.map(quantize.getInput(), part);
  mapping.map(quantize.getScale(), scale);
  mapping.map(quantize.getQuantizer(), quantizer);
  auto own = cast<QuantizeOp>(b.clone(*quantize, mapping));
  own.getResult().setType(partType);
  auto unpacked =
      UnpackOp::create(b, loc, partType.getPayloadType(),
                       partType.getScaleTensorType(), own.getResult());
  Value payload = gather.apply(b, loc, unpacked.getPayload(),
                               "only quantizations read what is gathered");
  Value whole = PackOp::create(b, loc, type, payload, quantize.getScale());
  quantize.getResult().replaceAllUsesWith(whole);
  quantize.erase();
}

/// Whether the scale is current: it follows from the amax of the quantized
/// tensor.
static bool hasCurrentScale(QuantizeOp quantize) {
  auto compute = quantize.getScale().getDefiningOp<ComputeScaleOp>();
  auto amax = compute ? compute.getAmax().getDefiningOp<AmaxOp>() : AmaxOp();
  return amax && quantize.getQuantizer() == compute.getQuantizer() &&
         amax.getInput() == quantize.getInput();
}

std::optional<std::string> Narrowing::findObstacle() {
  RankedTensorType part = tensorOf(gather.exchange.getInput());
  Block *block = gather.exchange->getBlock();
  int64_t bytes = 0;
  for (OpOperand &use : gather.whole.getUses()) {
    Operation *user = use.getOwner();
    // All ranks must execute the same exchanges.
    if (user->getBlock() != block)
      return "what is gathered is read in another block";
    ArrayRef<int64_t> tile;
    auto quantize = dyn_cast<QuantizeOp>(user);
    if (quantize && &use == &quantize.getInputMutable()) {
      if (quantize.getRounding() != Rounding::NearestEven)
        return "it is rounded at random, by the place of an element";
      quantizes.push_back(quantize);
      tile = quantize.getType().getTile();
      bytes += part.getNumElements();
      if (!isWholeAlong(tile) && !hasCurrentScale(quantize))
        return "its scales do not follow from itself";
    } else if (auto amax = dyn_cast<AmaxOp>(user)) {
      amaxes.push_back(amax);
      tile = amax.getTile().value_or(ArrayRef<int64_t>());
    } else {
      return ("read by " + user->getName().getStringRef()).str();
    }
    if (!isWholeAlong(tile) && part.getDimSize(gather.dim) % tile[gather.dim])
      return "its tiles do not end where a rank's part does";
  }
  if (quantizes.empty())
    return "not quantized";
  if (part.getNumElements() < kSmallShard)
    return "small";
  if (bytes >= byteSize(part))
    return "payloads for " + std::to_string(quantizes.size()) +
           " tilings are no fewer bytes";
  return std::nullopt;
}

/// Whether the only reader of the gathered value rounds it to a narrower type.
bool Narrowing::isRounded() {
  Type wide = getElementTypeOrSelf(gather.whole.getType());
  auto convert = onlyReader<stablehlo::ConvertOp>(gather.whole);
  // In a loop it would be gathered in each iteration.
  if (!convert || convert->getBlock() != gather.exchange->getBlock())
    return false;
  Type narrow = getElementTypeOrSelf(convert.getType());
  return isa<FloatType>(narrow) &&
         narrow.getIntOrFloatBitWidth() < wide.getIntOrFloatBitWidth();
}

void Narrowing::gatherRounded() {
  auto convert = onlyReader<stablehlo::ConvertOp>(gather.whole);
  OpBuilder b(convert);
  Location loc = convert.getLoc();
  Value part = gather.exchange.getInput();
  Type narrow = getElementTypeOrSelf(convert.getType());
  Value rounded =
      stablehlo::ConvertOp::create(b, loc, tensorOf(part).clone(narrow), part);
  convert.replaceAllUsesWith(
      gather.apply(b, loc, rounded, "only a rounding reads what is gathered"));
  convert.erase();
}

std::optional<std::string> Narrowing::run() {
  if (isRounded()) {
    gatherRounded();
  } else {
    if (std::optional<std::string> obstacle = findObstacle())
      return obstacle;
    // Scales of parts are computed from the original amaxes.
    for (QuantizeOp quantize : quantizes)
      gatherPayload(quantize);
    for (AmaxOp amax : amaxes)
      gatherAmax(amax);
  }
  for (Operation *view : llvm::reverse(gather.views))
    view->erase();
  gather.exchange.erase();
  return std::nullopt;
}

namespace {
struct NarrowGathers : fp8::impl::FP8NarrowGathersBase<NarrowGathers> {
  void runOnOperation() override {
    SmallVector<ExchangeOp> exchanges;
    getOperation().walk(
        [&](ExchangeOp exchange) { exchanges.push_back(exchange); });
    for (ExchangeOp exchange : exchanges) {
      std::optional<Gather> gather = Gather::match(exchange);
      if (!gather || !isa<FloatType>(getElementTypeOrSelf(exchange.getType())))
        continue;
      if (std::optional<std::string> obstacle = Narrowing(*gather).run())
        exchange->setAttr(
            FP8Dialect::kWireReasonAttrName,
            StringAttr::get(&getContext(), "not narrower: " + *obstacle));
    }
  }
};
} // namespace
