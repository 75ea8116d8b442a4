//===- Decider.cpp - Which dots become FP8 --------------------------------===//

#include "Decider.h"

#include "../EffectiveRecipe.h"
#include "../Quantize/ComputeType.h"
#include "../Quantize/Quantizer.h"

#include "fp8/Binding/PathBinding.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Properties of dots
//===----------------------------------------------------------------------===//

/// Returns why a dot cannot become an fp8.dot_general; empty if it can.
static std::string getObstacle(stablehlo::DotGeneralOp dot) {
  for (auto [name, value] :
       {std::pair<StringRef, Value>("lhs", dot.getLhs()),
        std::pair<StringRef, Value>("rhs", dot.getRhs()),
        std::pair<StringRef, Value>("result", dot->getResult(0))}) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape())
      return ("expected " + name + " to have a static shape but got " +
              printType(value.getType()))
          .str();
    Type element = type.getElementType();
    if (!element.isF32() && !element.isBF16() && !element.isF16())
      return ("expected " + name + " of f32, bf16 or f16 but got " +
              printType(element))
          .str();
    if (type.getNumElements() == 0)
      return (name + " has no elements").str();
  }
  return "";
}

/// Returns the value that a loop has stored in the stack that `slice` reads;
/// null if it reads no stack of a loop.
static Value getStored(stablehlo::DynamicSliceOp slice) {
  auto stack = dyn_cast<OpResult>(slice.getOperand());
  auto loop = stack ? dyn_cast<stablehlo::WhileOp>(stack.getOwner())
                    : stablehlo::WhileOp();
  if (!loop)
    return nullptr;
  Operation *end = loop.getBody().front().getTerminator();
  auto update = end->getOperand(stack.getResultNumber())
                    .getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
  return update ? update.getUpdate() : Value();
}

bool fp8::isRescaled(Value operand) {
  while (operand) {
    Operation *op = operand.getDefiningOp();
    if (isa_and_nonnull<RescaleOp>(op))
      return true;
    if (auto slice = dyn_cast_or_null<stablehlo::DynamicSliceOp>(op)) {
      Value stored = getStored(slice);
      operand = stored ? stored : slice.getOperand();
    } else if (isa_and_nonnull<stablehlo::ConvertOp>(op)) {
      operand = op->getOperand(0);
    } else {
      operand = getLayoutSource(operand);
    }
  }
  return false;
}

/// Whether an operand that the recipe gives a delayed scale needs a current
/// one: the magnitude of a smoothed weight changes with its factors.
static bool needsCurrentScale(const OperandRecipe &recipe, OperandKind kind,
                              Value operand) {
  return recipe.scaling == Scaling::Delayed && kind == OperandKind::Weight &&
         isRescaled(operand);
}

static std::string describeSmoothing(const SmoothRecipe &smooth) {
  std::string text = "smoothed per ";
  text += smooth.granularity == Granularity::Token ? "token" : "channel";
  text += smooth.scale == ScaleRule::Pow2 ? ", pow2" : ", exact";
  text += smooth.scaling == Scaling::Delayed ? ", delayed" : ", current";
  return text;
}

/// Returns the number of the layer in a tree path: its first number, as in
/// `p['layers'][3]['wq']`, `p.block_3['wq']` or `p['h3.wq']` (a key that ends
/// in a number, with keys below it). The root is the name of an argument.
static std::optional<int64_t> getLayerNumber(StringRef path) {
  SmallVector<std::string> keys;
  for (const std::string &key : fp8binding::splitPath(path))
    // Trees without nesting have whole paths as keys.
    llvm::append_range(keys, fp8binding::splitPath(key));
  for (size_t i = 1; i < keys.size(); ++i) {
    StringRef key = keys[i];
    StringRef digits = key.take_back(
        key.size() -
        std::min(key.size(), key.find_last_not_of("0123456789") + 1));
    bool below = i + 1 < keys.size();
    int64_t number;
    if ((digits == key || below) && !digits.getAsInteger(10, number))
      return number;
  }
  return std::nullopt;
}

VerdictAttr DotDecision::getAttribute(MLIRContext *context) const {
  Builder b(context);
  SmallVector<StringRef> noteTexts(notes.begin(), notes.end());
  return VerdictAttr::get(
      context, kind, role, category,
      layer.empty() ? StringAttr() : b.getStringAttr(layer), lhs, rhs, batch, m,
      n, k, lhsFormat, rhsFormat, lhsTile, rhsTile, currentScale,
      loops.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(loops),
      inBranch, recomputed, rule, number, b.getStringAttr(reason),
      notes.empty() ? ArrayAttr() : b.getStrArrayAttr(noteTexts));
}

Decider::Decider(const Recipe &recipe, func::FuncOp function)
    : recipe(recipe), layers(function) {
  for (const DotInfo &info : layers.getDots()) {
    if (std::optional<int64_t> number = getLayerNumber(info.layer))
      numLayers = std::max(numLayers, *number + 1);
    if (info.role == DotRole::Forward && info.readsWholeParameter)
      single.insert(info.layer);
  }
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

/// Returns the product of the sizes of an operand's dimensions.
static int64_t getSize(RankedTensorType type, ArrayRef<int64_t> dims) {
  int64_t size = 1;
  for (int64_t dim : dims)
    size *= type.getDimSize(dim);
  return size;
}

/// Whether the recipe has a dot that is not quantized read bf16.
static bool wantsBF16(const DotInfo &info, const ComputeRecipe &compute) {
  bool others = compute.unquantizedDots == ComputeFormat::BF16;
  switch (info.role) {
  case DotRole::Attention:
    return info.ofSoftmax ? compute.getAttention() != AttentionFormat::F32
                          : others;
  case DotRole::Embedding:
    // Data that one-hot rows select, such as the log probabilities of labels,
    // keep their bits.
    return others && !info.layer.empty();
  default:
    return others;
  }
}

/// Returns the facts about a dot that are reported whatever its verdict is.
DotDecision Decider::describe(const DotInfo &info) const {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  DotDecision decision;
  decision.role = info.role;
  decision.layer = info.layer;
  decision.lhs = info.lhs;
  decision.rhs = info.rhs;
  decision.inBranch = info.inBranch;
  decision.recomputed = info.recomputed;

  auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
  auto rhs = cast<RankedTensorType>(dot.getRhs().getType());
  stablehlo::OperandDims lhsDims = stablehlo::getOperandDims(dot, 0);
  decision.batch = getSize(lhs, lhsDims.batching);
  decision.k = getSize(lhs, lhsDims.contracting);
  decision.m = getSize(lhs, lhsDims.free);
  decision.n = getSize(rhs, stablehlo::getOperandDims(dot, 1).free);
  bool isBF16 = canReadBF16(dot) && wantsBF16(info, recipe.compute);
  Type bf16 = BFloat16Type::get(dot.getContext());
  decision.lhsFormat = isBF16 ? bf16 : lhs.getElementType();
  decision.rhsFormat = isBF16 ? bf16 : rhs.getElementType();

  for (Operation *loop : info.loops) {
    auto counted = stablehlo::matchCountedLoop(cast<stablehlo::WhileOp>(loop));
    decision.loops.push_back(counted ? counted->trips : 0);
  }
  addNotes(info, decision);
  return decision;
}

static std::string describeLoops(ArrayRef<int64_t> loops) {
  std::string text = loops.size() == 1 ? "in a loop of " : "in loops of ";
  llvm::raw_string_ostream os(text);
  // The outer loop comes first.
  llvm::interleave(
      llvm::reverse(loops), os,
      [&](int64_t trips) {
        trips ? os << trips : os << "an unknown number of";
      },
      " x ");
  os << " iterations";
  return text;
}

void Decider::addNotes(const DotInfo &info, DotDecision &decision) const {
  if (!decision.loops.empty())
    decision.notes.push_back(describeLoops(decision.loops));
  if (info.inBranch)
    decision.notes.push_back("in a branch");
  if (isRescaled(info.dot->getOperand(0)) ||
      isRescaled(info.dot->getOperand(1)))
    decision.notes.push_back(describeSmoothing(recipe.smooth));
  if (info.recomputed)
    decision.notes.push_back("recomputed for the backward pass");
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Whether a rule that names layers by number names the dot's.
FailureOr<bool> Decider::matchesLayer(const RecipeRule &rule,
                                      const DotInfo &info) const {
  if (std::optional<int64_t> number = getLayerNumber(info.layer))
    return (rule.layers.empty() || llvm::is_contained(rule.layers, *number)) &&
           (!rule.first || *number < *rule.first) &&
           (!rule.last || *number >= numLayers - *rule.last);
  bool isOne = info.loops.empty() || single.contains(info.layer);
  if (isOne && numLayers > 0)
    return false;
  InFlightDiagnostic diag = info.dot->emitError();
  if (isOne)
    diag << "a rule names layers by number, but no parameter of the step has "
            "a number in its tree path; expected paths such as "
            "p['layers'][3]['wq'], or a rule without layers, first and last";
  else
    // One dot serves all layers of a loop, so a rule cannot select one of them.
    diag << "a rule names layers by number, but this dot serves all layers of "
            "a loop; expected a rule without layers, first and last, or a "
            "model without a loop over its layers";
  diag.attachNote(rule.loc) << "the rule is here";
  return diag;
}

FailureOr<bool> Decider::matches(const RecipeRule &rule, const DotInfo &info,
                                 const DotDecision &decision) const {
  if (rule.part && (*rule.part == ModelPart::Head) != info.head)
    return false;
  if (rule.role && *rule.role != info.role)
    return false;
  if (!rule.path.empty() && !fp8binding::matchesPath(rule.path, info.layer))
    return false;
  if (!rule.m.contains(decision.m) || !rule.n.contains(decision.n) ||
      !rule.k.contains(decision.k))
    return false;
  return rule.hasLayerNumber() ? matchesLayer(rule, info)
                               : FailureOr<bool>(true);
}

/// Returns the first rule that matches a dot, or null.
FailureOr<const RecipeRule *>
Decider::findRule(const DotInfo &info, const DotDecision &decision) const {
  for (const RecipeRule &rule : recipe.rules) {
    FailureOr<bool> match = matches(rule, info, decision);
    if (failed(match))
      return failure();
    if (*match)
      return &rule;
  }
  return static_cast<const RecipeRule *>(nullptr);
}

static std::string describeRule(const RecipeRule &rule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (rule.keep ? "kept by rule " : "quantized by rule ") << rule.number
     << " (line " << rule.loc.getLine() << "): " << rule.getConditions();
  return text;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// Makes the dot FP8, with the recipe's settings for its operands.
void Decider::quantize(const DotInfo &info, DotDecision &decision) const {
  const OperandRecipe &lhs = *getOperandRecipe(recipe, info.role, info.lhs);
  const OperandRecipe &rhs = *getOperandRecipe(recipe, info.role, info.rhs);
  MLIRContext *context = info.dot->getContext();
  decision.kind = Verdict::FP8;
  decision.lhsFormat = getFormatType(lhs.format, context);
  decision.rhsFormat = getFormatType(rhs.format, context);
  decision.lhsTile = lhs.tile;
  decision.rhsTile = rhs.tile;
  decision.currentScale =
      needsCurrentScale(lhs, info.lhs, info.dot->getOperand(0)) ||
      needsCurrentScale(rhs, info.rhs, info.dot->getOperand(1));
  if (decision.currentScale)
    decision.notes.push_back("the smoothed weight has a current scale");
  if (lhs.format == Format::F8E5M2 && rhs.format == Format::F8E5M2)
    decision.notes.push_back(
        "f8E5M2 x f8E5M2 has no native dot in cuBLASLt (NVIDIA GPUs)");
  if (lhs.tile == Tiling::Block128 && rhs.tile == Tiling::Block128)
    decision.notes.push_back(
        "128x128 x 128x128 has no native dot in cuBLASLt (NVIDIA GPUs)");
}

/// Decides about a dot of a linear layer.
FailureOr<DotDecision> Decider::decideLayer(const DotInfo &info,
                                            DotDecision decision) const {
  decision.category = info.head ? DotCategory::Head : DotCategory::Linear;
  decision.reason = info.head ? "head: no other layer reads the layer's output"
                              : "linear layer";
  FailureOr<const RecipeRule *> rule = findRule(info, decision);
  if (failed(rule))
    return failure();
  if (*rule) {
    decision.rule = (*rule)->number;
    decision.notes.push_back(describeRule(**rule));
    if ((*rule)->keep)
      return decision;
  }
  if (!getOperandRecipe(recipe, info.role, info.lhs)) {
    decision.reason = ("recipe '" + recipe.name + "' has no '" +
                       stringifyDotRole(info.role) + "' key")
                          .str();
    return decision;
  }
  std::string obstacle = getObstacle(cast<stablehlo::DotGeneralOp>(info.dot));
  if (obstacle.empty()) {
    quantize(info, decision);
    return decision;
  }
  decision.kind = Verdict::Fallback;
  decision.reason = std::move(obstacle);
  return decision;
}

FailureOr<DotDecision> Decider::decide(const DotInfo &info) const {
  DotDecision decision = describe(info);
  switch (info.role) {
  case DotRole::Embedding:
    decision.category = DotCategory::Embedding;
    decision.reason = "embedding lookup by a one-hot operand";
    return decision;
  case DotRole::Attention:
    decision.category = DotCategory::Attention;
    decision.reason = "attention: a batched product of two activations";
    if (recipe.compute.attention == AttentionFormat::F8)
      decision.reason += info.ofSoftmax ? ", in f8 blocks if its softmax can "
                                          "be followed"
                                        : ", of no softmax";
    return decision;
  case DotRole::Other:
    decision.reason = info.why;
    if (!layers.hasParameters())
      decision.reason += " (no argument is a parameter)";
    return decision;
  default:
    return decideLayer(info, std::move(decision));
  }
}
