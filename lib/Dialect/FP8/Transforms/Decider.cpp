//===- Decider.cpp - Which dots become FP8 --------------------------------===//

#include "Decider.h"

#include "ComputeType.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

const OperandRecipe *fp8::getOperandRecipe(const Recipe &recipe, DotRole role,
                                           OperandKind kind) {
  switch (role) {
  case DotRole::Forward:
    if (!recipe.forward)
      return nullptr;
    return kind == OperandKind::Weight ? &recipe.forward->weight
                                       : &recipe.forward->activation;
  case DotRole::Dgrad:
    if (!recipe.dgrad)
      return nullptr;
    return kind == OperandKind::Weight ? &recipe.dgrad->weight
                                       : &recipe.dgrad->gradient;
  case DotRole::Wgrad:
    if (!recipe.wgrad)
      return nullptr;
    return kind == OperandKind::Activation ? &recipe.wgrad->activation
                                           : &recipe.wgrad->gradient;
  default:
    return nullptr;
  }
}

//===----------------------------------------------------------------------===//
// Verdicts
//===----------------------------------------------------------------------===//

static std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type;
  return text;
}

/// Why a dot cannot become an fp8.dot_general; empty if it can.
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

/// What a loop has stored of what `slice` reads; null if it reads no stack that
/// a loop writes.
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

bool fp8::needsCurrentScale(const OperandRecipe &recipe, const DotInfo &info,
                            OperandKind kind) {
  return recipe.scaling == Scaling::Delayed && kind == OperandKind::Weight &&
         isRescaled(info.dot->getOperand(info.lhs == kind ? 0 : 1));
}

static std::string describeSmoothing(const SmoothRecipe &smooth) {
  std::string text = "smoothed per ";
  text += smooth.granularity == Granularity::Token ? "token" : "channel";
  text += smooth.scale == ScaleRule::Pow2 ? ", pow2" : ", exact";
  text += smooth.scaling == Scaling::Delayed ? ", delayed" : ", current";
  return text;
}

/// The number of the layer in a tree path: its first number, as in
/// `p['layers'][3]['wq']`, `p['block_3']['wq']` or `p['h3']['wq']` (a key that
/// ends in a number, with keys below it).
static std::optional<int64_t> getLayerNumber(StringRef path) {
  SmallVector<StringRef> keys;
  path.split(keys, '[');
  for (size_t i = 1; i < keys.size(); ++i) {
    StringRef key = keys[i].rtrim("]").trim("'\"");
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

Decider::Decider(const Recipe &recipe, func::FuncOp function)
    : recipe(recipe), layers(function), used(recipe.rules.size()) {
  for (const DotInfo &info : layers.getDots())
    if (std::optional<int64_t> number = getLayerNumber(info.layer))
      numLayers = std::max(numLayers, *number + 1);
}

/// What is said of a dot whatever becomes of it.
void Decider::describe(const DotInfo &info, DotVerdict &verdict) const {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  verdict.function = dot->getParentOfType<func::FuncOp>().getName().str();
  verdict.layer = info.layer;
  verdict.role = stringifyDotRole(info.role).str();
  verdict.location = describeLocation(dot.getLoc());
  verdict.recomputed = info.recomputed;
  verdict.inBranch = info.inBranch;

  auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
  auto rhs = cast<RankedTensorType>(dot.getRhs().getType());
  auto dims = dot.getDotDimensionNumbers();
  for (int64_t dim : dims.getLhsBatchingDimensions())
    verdict.batch *= lhs.getDimSize(dim);
  for (int64_t dim : dims.getLhsContractingDimensions())
    verdict.k *= lhs.getDimSize(dim);
  for (auto [dim, size] : llvm::enumerate(lhs.getShape()))
    if (!llvm::is_contained(dims.getLhsBatchingDimensions(), dim) &&
        !llvm::is_contained(dims.getLhsContractingDimensions(), dim))
      verdict.m *= size;
  for (auto [dim, size] : llvm::enumerate(rhs.getShape()))
    if (!llvm::is_contained(dims.getRhsBatchingDimensions(), dim) &&
        !llvm::is_contained(dims.getRhsContractingDimensions(), dim))
      verdict.n *= size;
  bool bf16 =
      recipe.compute.unquantizedDots == ComputeFormat::BF16 && canReadBF16(dot);
  verdict.lhsFormat = bf16 ? "bf16" : printType(lhs.getElementType());
  verdict.rhsFormat = bf16 ? "bf16" : printType(rhs.getElementType());

  for (Operation *loop : info.loops) {
    auto counted = stablehlo::matchCountedLoop(cast<stablehlo::WhileOp>(loop));
    verdict.loops.push_back(counted ? counted->trips : 0);
  }
  if (!info.loops.empty()) {
    std::string note =
        info.loops.size() == 1 ? "in a loop of " : "in loops of ";
    llvm::raw_string_ostream os(note);
    // As one reads it: the outer loop first.
    llvm::interleave(
        llvm::reverse(verdict.loops), os,
        [&](int64_t trips) {
          trips ? os << trips : os << "an unknown number of";
        },
        " x ");
    verdict.notes.push_back(note + " iterations");
  }
  if (info.inBranch)
    verdict.notes.push_back("in a branch");
  if (isRescaled(dot.getLhs()) || isRescaled(dot.getRhs()))
    verdict.notes.push_back(describeSmoothing(recipe.smooth));
  if (info.recomputed)
    verdict.notes.push_back("recomputed for the backward pass");
}

FailureOr<bool> Decider::matches(const RecipeRule &rule, const DotInfo &info,
                                 const DotVerdict &verdict) const {
  if (rule.part && (*rule.part == ModelPart::Head) != info.head)
    return false;
  if (rule.role && *rule.role != info.role)
    return false;
  if (!rule.path.empty() && !matchesPath(rule.path, info.layer))
    return false;
  if (!rule.m.contains(verdict.m) || !rule.n.contains(verdict.n) ||
      !rule.k.contains(verdict.k))
    return false;
  if (!rule.hasLayerNumber())
    return true;
  std::optional<int64_t> number = getLayerNumber(info.layer);
  if (!number) {
    if (info.loops.empty() && numLayers > 0)
      return false;
    if (info.loops.empty()) {
      InFlightDiagnostic diag =
          info.dot->emitError()
          << "a rule names layers by number, but no parameter of the step has "
             "a number in its tree path; expected paths such as "
             "p['layers'][3]['wq'], or a rule without layers, first and last";
      diag.attachNote(rule.loc) << "the rule is here";
      return diag;
    }
    // One dot for all layers of a loop: no single layer can be told apart.
    InFlightDiagnostic diag =
        info.dot->emitError()
        << "a rule names layers by number, but this dot serves all layers of a "
           "loop; expected a rule without layers, first and last, or a model "
           "without a loop over its layers";
    diag.attachNote(rule.loc) << "the rule is here";
    return diag;
  }
  return (rule.layers.empty() || llvm::is_contained(rule.layers, *number)) &&
         (!rule.first || *number < *rule.first) &&
         (!rule.last || *number >= numLayers - *rule.last);
}

/// The first rule that matches a dot, or null.
FailureOr<const RecipeRule *> Decider::findRule(const DotInfo &info,
                                                const DotVerdict &verdict) {
  for (auto [i, rule] : llvm::enumerate(recipe.rules)) {
    FailureOr<bool> match = matches(rule, info, verdict);
    if (failed(match))
      return failure();
    if (!*match)
      continue;
    used.set(i);
    return &rule;
  }
  return static_cast<const RecipeRule *>(nullptr);
}

static std::string describeRule(const RecipeRule &rule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (rule.keep ? "kept by rule " : "quantized by rule ") << rule.number
     << " (line " << rule.loc.getLine() << "): ";
  rule.print(os);
  return text;
}

FailureOr<DotVerdict> Decider::getVerdict(const DotInfo &info) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  DotVerdict verdict;
  describe(info, verdict);

  switch (info.role) {
  case DotRole::Embedding:
    verdict.category = "embedding";
    verdict.reason = "embedding lookup by a one-hot operand";
    return verdict;
  case DotRole::Attention:
    verdict.category = "attention";
    verdict.reason = "attention: a batched product of two activations";
    return verdict;
  case DotRole::Other:
    verdict.category = "other";
    verdict.reason = info.why;
    if (!layers.hasParameters())
      verdict.reason += " (no argument is marked as a parameter; expected the "
                        "marks of fp8-import)";
    return verdict;
  default:
    break;
  }

  verdict.category = info.head ? "head" : "linear";
  verdict.reason = info.head ? "head: no other layer reads the layer's output"
                             : "linear layer";
  const OperandRecipe *lhs = getOperandRecipe(recipe, info.role, info.lhs);
  const OperandRecipe *rhs = getOperandRecipe(recipe, info.role, info.rhs);
  FailureOr<const RecipeRule *> rule = findRule(info, verdict);
  if (failed(rule))
    return failure();
  if (*rule) {
    verdict.rule = (*rule)->number;
    verdict.notes.push_back(describeRule(**rule));
    if ((*rule)->keep)
      return verdict;
  }
  if (!lhs || !rhs) {
    verdict.reason =
        "recipe '" + recipe.name + "' has no '" + verdict.role + "' key";
    return verdict;
  }
  if (std::string obstacle = getObstacle(dot); !obstacle.empty()) {
    verdict.kind = DotVerdict::Kind::Fallback;
    verdict.reason = obstacle;
    return verdict;
  }
  verdict.kind = DotVerdict::Kind::FP8;
  verdict.lhsFormat = stringifyFormat(lhs->format).str();
  verdict.rhsFormat = stringifyFormat(rhs->format).str();
  verdict.lhsTile = stringifyTiling(lhs->tile).str();
  verdict.rhsTile = stringifyTiling(rhs->tile).str();
  if (needsCurrentScale(*lhs, info, info.lhs) ||
      needsCurrentScale(*rhs, info, info.rhs))
    verdict.notes.push_back("the smoothed weight has a current scale");
  if (lhs->format == Format::F8E5M2 && rhs->format == Format::F8E5M2)
    verdict.notes.push_back(
        "f8E5M2 x f8E5M2 has no native dot in cuBLASLt (NVIDIA GPUs)");
  if (lhs->tile == Tiling::Block128 && rhs->tile == Tiling::Block128)
    verdict.notes.push_back(
        "128x128 x 128x128 has no native dot in cuBLASLt (NVIDIA GPUs)");
  return verdict;
}
