//===- ApplyRecipe.cpp - Compute the dots that a recipe names in FP8 ------===//

#include "fp8/Analysis/LinearLayers.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8APPLYRECIPE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// From words of the recipe to words of the dialect
//===----------------------------------------------------------------------===//

static FloatType getFormatType(RecipeFormat format, MLIRContext *context) {
  switch (format) {
  case RecipeFormat::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case RecipeFormat::F8E5M2:
    return Float8E5M2Type::get(context);
  }
  return {};
}

static ScaleRule getScaleRule(RecipeScale scale) {
  switch (scale) {
  case RecipeScale::Exact:
    return ScaleRule::Exact;
  case RecipeScale::Pow2:
    return ScaleRule::Pow2;
  case RecipeScale::OcpFloor:
    return ScaleRule::OCPFloor;
  }
  return ScaleRule::Exact;
}

static Overflow getOverflow(RecipeOverflow overflow) {
  return overflow == RecipeOverflow::Saturate ? Overflow::Saturate
                                              : Overflow::NaN;
}

/// How the recipe quantizes an operand of a dot with this role; null if it
/// keeps the dot in high precision.
static const OperandRecipe *getOperandRecipe(const Recipe &recipe, DotRole role,
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

static DotVerdict getVerdict(const DotInfo &info, const Recipe &recipe,
                             bool hasParameters) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  DotVerdict verdict;
  verdict.function = dot->getParentOfType<func::FuncOp>().getName().str();
  verdict.layer = info.layer;
  verdict.role = stringifyDotRole(info.role).str();
  verdict.location = describeLocation(dot.getLoc());

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
  verdict.lhsFormat = printType(lhs.getElementType());
  verdict.rhsFormat = printType(rhs.getElementType());
  if (!info.loops.empty())
    verdict.notes.push_back(
        "in " + std::to_string(info.loops.size()) +
        (info.loops.size() == 1 ? " loop" : " nested loops"));
  if (info.inBranch)
    verdict.notes.push_back("in a branch");
  if (info.recomputed)
    verdict.notes.push_back("recomputed for the backward pass");

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
    if (!hasParameters)
      verdict.reason += " (no argument is marked as a parameter; expected the "
                        "marks of fp8-import)";
    return verdict;
  default:
    break;
  }

  verdict.category = info.head ? "head" : "linear";
  const OperandRecipe *lhsRecipe =
      getOperandRecipe(recipe, info.role, info.lhs);
  const OperandRecipe *rhsRecipe =
      getOperandRecipe(recipe, info.role, info.rhs);
  if (info.head && recipe.keep.head) {
    verdict.reason = "head: no other layer reads the layer's output";
    return verdict;
  }
  if (!lhsRecipe || !rhsRecipe) {
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
  verdict.reason = "linear layer";
  verdict.lhsFormat = stringifyFormat(lhsRecipe->format).str();
  verdict.rhsFormat = stringifyFormat(rhsRecipe->format).str();
  if (lhsRecipe->format == RecipeFormat::F8E5M2 &&
      rhsRecipe->format == RecipeFormat::F8E5M2)
    verdict.notes.push_back("f8E5M2 × f8E5M2 has no native dot on NVIDIA GPUs");
  return verdict;
}

static void emitVerdictRemark(Operation *dot, const DotVerdict &verdict) {
  InFlightDiagnostic diag = dot->emitRemark();
  diag << stringifyVerdict(verdict.kind) << ": " << verdict.role;
  if (!verdict.layer.empty())
    diag << " of " << verdict.layer;
  diag << " (batch " << verdict.batch << ", M " << verdict.m << ", N "
       << verdict.n << ", K " << verdict.k << "; " << verdict.lhsFormat << " x "
       << verdict.rhsFormat << "): " << verdict.reason;
  for (const std::string &note : verdict.notes)
    diag << "; " << note;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {
/// Rewrites dots of one function. All dots are added before any is rewritten:
/// where a tensor is quantized depends on every dot that reads it.
class Quantizer {
public:
  Quantizer(func::FuncOp function) : builder(function.getContext()) {}

  void add(stablehlo::DotGeneralOp dot, const OperandRecipe &lhs,
           const OperandRecipe &rhs);
  void rewrite();

  int64_t getNumQuantized() const { return numQuantized; }

private:
  struct Use {
    Value value;
    unsigned group;
  };
  /// Uses that share a quantization: their values are layouts of `point`.
  struct Group {
    OperandRecipe recipe;
    Value root, point;
    Value quantized;
    /// Other layouts of the payload, made on demand.
    DenseMap<Value, Value> views;
  };
  struct Dot {
    stablehlo::DotGeneralOp op;
    Use lhs, rhs;
    /// What the new dot is made of.
    Value lhsOperand = {}, rhsOperand = {};
    SmallVector<int64_t> lhsBatching = {}, rhsBatching = {};
    SmallVector<int64_t> lhsContracting = {}, rhsContracting = {};
  };

  Use addUse(Value value, const OperandRecipe &recipe);
  Value getQuantized(Group &group);
  Value getView(Group &group, Value value);
  Value getOperand(const Use &use, SmallVectorImpl<int64_t> &batching,
                   SmallVectorImpl<int64_t> &contracting);

  OpBuilder builder;
  std::vector<Dot> dots;
  std::vector<Group> groups;
  /// Layout ops between the quantized tensors and the dots.
  llvm::SetVector<Operation *> layouts;
  DenseMap<Value, Value> amaxes;
  int64_t numQuantized = 0;
};
} // namespace

/// The value and what it is a layout of, from the root on.
static SmallVector<Value> getLayoutChain(Value value) {
  SmallVector<Value> chain{value};
  while (Value source = getLayoutSource(chain.back()))
    chain.push_back(source);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Quantizer::Use Quantizer::addUse(Value value, const OperandRecipe &recipe) {
  SmallVector<Value> chain = getLayoutChain(value);
  auto it = llvm::find_if(groups, [&](const Group &group) {
    return group.root == chain.front() && group.recipe == recipe;
  });
  if (it == groups.end()) {
    Group &group = groups.emplace_back();
    group.recipe = recipe;
    group.root = chain.front();
    group.point = value;
    return {value, static_cast<unsigned>(groups.size() - 1)};
  }
  // The last value that both chains go through: quantizing the root instead
  // would rearrange payloads where a layout op is common to all uses.
  SmallVector<Value> common = getLayoutChain(it->point);
  size_t length = 0;
  while (length < common.size() && length < chain.size() &&
         common[length] == chain[length])
    ++length;
  it->point = common[length - 1];
  return {value, static_cast<unsigned>(it - groups.begin())};
}

void Quantizer::add(stablehlo::DotGeneralOp dot, const OperandRecipe &lhs,
                    const OperandRecipe &rhs) {
  Use lhsUse = addUse(dot.getLhs(), lhs);
  Use rhsUse = addUse(dot.getRhs(), rhs);
  dots.push_back({dot, lhsUse, rhsUse});
}

/// Where a value is quantized: right after its definition, or, if it is an
/// argument, right before the first op that reads it.
static void setInsertionPointToQuantize(OpBuilder &builder, Value value) {
  builder.setInsertionPointAfterValue(value);
  auto arg = dyn_cast<BlockArgument>(value);
  if (!arg)
    return;
  Operation *first = nullptr;
  for (Operation *user : arg.getUsers()) {
    Operation *ancestor = arg.getOwner()->findAncestorOpInBlock(*user);
    if (ancestor && (!first || ancestor->isBeforeInBlock(first)))
      first = ancestor;
  }
  if (first)
    builder.setInsertionPoint(first);
}

Value Quantizer::getQuantized(Group &group) {
  if (group.quantized)
    return group.quantized;
  Value value = group.point;
  const OperandRecipe &recipe = group.recipe;
  auto type = cast<RankedTensorType>(value.getType());
  FloatType format = getFormatType(recipe.format, builder.getContext());
  auto scaled =
      ScaledType::getPerTensor(RankedTensorType::get(type.getShape(), format));
  Location loc = value.getLoc();

  Value &amax = amaxes[value];
  if (!amax) {
    setInsertionPointToQuantize(builder, value);
    amax = AmaxOp::create(builder, loc, value, scaled);
  }
  builder.setInsertionPointAfterValue(amax);
  auto scale = ComputeScaleOp::create(
      builder, loc, amax, getScaleRule(recipe.scale), format, recipe.margin);
  group.quantized = QuantizeOp::create(
      builder, loc, scaled, value, scale.getScale(), scale.getQuantizer(),
      Rounding::NearestEven, getOverflow(recipe.overflow));
  ++numQuantized;
  return group.quantized;
}

/// The payload of the group, arranged as `value` is.
Value Quantizer::getView(Group &group, Value value) {
  if (value == group.point)
    return getQuantized(group);
  auto [it, inserted] = group.views.try_emplace(value);
  if (!inserted)
    return it->second;
  Value source = getView(group, getLayoutSource(value));
  Operation *layout = value.getDefiningOp();
  Value result = source;
  // Barriers order the high-precision values; the payload needs none.
  if (!isa<stablehlo::OptimizationBarrierOp>(layout)) {
    builder.setInsertionPointAfter(layout);
    auto scaled = cast<ScaledType>(source.getType());
    auto unpacked =
        UnpackOp::create(builder, layout->getLoc(), scaled.getPayloadType(),
                         scaled.getScaleTensorType(), source);
    IRMapping mapping;
    mapping.map(layout->getOperand(0), unpacked.getPayload());
    Operation *view = builder.clone(*layout, mapping);
    auto payload = RankedTensorType::get(
        cast<RankedTensorType>(value.getType()).getShape(),
        scaled.getElementType());
    view->getResult(0).setType(payload);
    result = PackOp::create(builder, layout->getLoc(),
                            ScaledType::getPerTensor(payload),
                            view->getResult(0), unpacked.getScale());
  }
  // The recursion may have moved the entry.
  group.views[value] = result;
  return result;
}

/// The quantized operand for a use. Transposes that the dot can express by its
/// dimension numbers are not repeated on the payload.
Value Quantizer::getOperand(const Use &use, SmallVectorImpl<int64_t> &batching,
                            SmallVectorImpl<int64_t> &contracting) {
  Group &group = groups[use.group];
  Value value = use.value;
  while (value != group.point) {
    Operation *layout = value.getDefiningOp();
    if (auto transpose = dyn_cast<stablehlo::TransposeOp>(layout)) {
      ArrayRef<int64_t> permutation = transpose.getPermutation();
      // The free dimensions give the result's: their order must not change.
      int64_t last = -1;
      bool ordered = true;
      for (auto [dim, source] : llvm::enumerate(permutation)) {
        if (llvm::is_contained(batching, dim) ||
            llvm::is_contained(contracting, dim))
          continue;
        ordered &= source > last;
        last = source;
      }
      if (!ordered)
        break;
      for (int64_t &dim : batching)
        dim = permutation[dim];
      for (int64_t &dim : contracting)
        dim = permutation[dim];
    } else if (!isa<stablehlo::OptimizationBarrierOp>(layout)) {
      break;
    }
    value = getLayoutSource(value);
  }
  return getView(group, value);
}

void Quantizer::rewrite() {
  // All operands first: a dot's result may be the tensor that another one
  // quantizes, and is replaced only after.
  for (Dot &dot : dots) {
    auto dims = dot.op.getDotDimensionNumbers();
    dot.lhsBatching = llvm::to_vector(dims.getLhsBatchingDimensions());
    dot.rhsBatching = llvm::to_vector(dims.getRhsBatchingDimensions());
    dot.lhsContracting = llvm::to_vector(dims.getLhsContractingDimensions());
    dot.rhsContracting = llvm::to_vector(dims.getRhsContractingDimensions());
    dot.lhsOperand = getOperand(dot.lhs, dot.lhsBatching, dot.lhsContracting);
    dot.rhsOperand = getOperand(dot.rhs, dot.rhsBatching, dot.rhsContracting);
    for (const Use &use : {dot.lhs, dot.rhs})
      for (Value value = use.value; Value source = getLayoutSource(value);
           value = source)
        layouts.insert(value.getDefiningOp());
  }
  for (Dot &dot : dots) {
    builder.setInsertionPoint(dot.op);
    Value result = fp8::DotGeneralOp::create(
        builder, dot.op.getLoc(), dot.op->getResult(0).getType(),
        dot.lhsOperand, dot.rhsOperand, dot.lhsBatching, dot.rhsBatching,
        dot.lhsContracting, dot.rhsContracting);
    dot.op->getResult(0).replaceAllUsesWith(result);
    dot.op->erase();
  }
  // Layout ops that only the dots read: their payload has its own.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : llvm::to_vector(layouts))
      if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp>(op) &&
          op->use_empty()) {
        layouts.remove(op);
        op->erase();
        changed = true;
      }
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ApplyRecipe : public fp8::impl::FP8ApplyRecipeBase<ApplyRecipe> {
  using FP8ApplyRecipeBase::FP8ApplyRecipeBase;
  ApplyRecipe(FP8ApplyRecipeOptions options, VerdictReport *sink)
      : FP8ApplyRecipeBase(std::move(options)), sink(sink) {}

  LogicalResult initialize(MLIRContext *context) override {
    FailureOr<Recipe> loaded = loadRecipe(this->recipe, context);
    if (failed(loaded))
      return failure();
    effective = std::move(*loaded);
    return success();
  }

  void runOnOperation() override {
    VerdictReport verdicts;
    verdicts.recipe = effective.name;
    bool failedFallback = false;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      LinearLayers layers(function);
      Quantizer quantizer(function);
      for (const DotInfo &info : layers.getDots()) {
        DotVerdict verdict =
            getVerdict(info, effective, layers.hasParameters());
        auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
        ++numDots;
        if (emitRemarks)
          emitVerdictRemark(dot, verdict);
        if (verdict.kind == DotVerdict::Kind::FP8) {
          ++numFP8Dots;
          quantizer.add(dot, *getOperandRecipe(effective, info.role, info.lhs),
                        *getOperandRecipe(effective, info.role, info.rhs));
        } else if (verdict.kind == DotVerdict::Kind::Fallback &&
                   failOnFallback) {
          dot.emitError() << "recipe '" << effective.name << "' quantizes this "
                          << verdict.role << " dot of layer '" << verdict.layer
                          << "', but it cannot be converted: "
                          << verdict.reason;
          failedFallback = true;
        }
        verdicts.dots.push_back(std::move(verdict));
      }
      if (!failedFallback)
        quantizer.rewrite();
      numQuantized += quantizer.getNumQuantized();
    }
    if (failedFallback)
      signalPassFailure();
    if (!report.empty()) {
      std::string error;
      if (failed(verdicts.write(report, error))) {
        emitError(UnknownLoc::get(&getContext())) << error;
        signalPassFailure();
      }
    }
    if (sink)
      *sink = std::move(verdicts);
  }

  Recipe effective;
  VerdictReport *sink = nullptr;
};
} // namespace

std::unique_ptr<Pass> fp8::createApplyRecipePass(FP8ApplyRecipeOptions options,
                                                 VerdictReport *sink) {
  return std::make_unique<ApplyRecipe>(std::move(options), sink);
}
