//===- DataParallel.cpp - A step for one device on several ranks ----------===//

#include "../EffectiveRecipe.h"
#include "../OperandRows.h"
#include "Propagation.h"
#include "StateParts.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FP8DATAPARALLEL
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

namespace {

/// Visits all values that a value is computed from, each once; of loops and
/// branches only the carry or result. Continues behind a value if `visit`
/// returns true.
void forEachSource(Value value, llvm::function_ref<bool(Value)> visit) {
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
    } else if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op)) {
      worklist.push_back(op->getOperand(0));
      for (Region &region : op->getRegions())
        yielded(region, index);
    } else {
      llvm::append_range(worklist, op->getOperands());
    }
  }
}

/// Decides, for one function, which values are reduced over ranks, and how.
class DataParallelism {
public:
  /// `wire` is the wire format of gradients. With `globalAmax`, dots are marked
  /// so that current scales of their operands are those of all ranks' rows.
  DataParallelism(func::FuncOp func, const Signature &signature,
                  std::optional<Reduction> lossReduction,
                  const AllReduceRecipe &wire, bool globalAmax)
      : func(func), signature(signature), lossReduction(lossReduction),
        wire(wire), globalAmax(globalAmax) {}

  LogicalResult run();
  /// Marks the rows of operands on dots, for the passes that measure operands.
  void markRowsOfDots();

private:
  FailureOr<Layout> layoutOf(const SignatureArg &arg);
  LogicalResult setArguments(Propagation &propagation);
  LogicalResult drawForRows();
  LogicalResult propagate();
  void findSources();
  bool isPlainCount(Value value);
  FailureOr<Reduction> reductionOf(Value value);
  FailureOr<Reduction> reductionOfLoss();
  std::string labelOf(Value value);
  StringRef getReasonNotNarrowed(Value value);
  Value addMu(AllReduceOp reduce);
  void insertForBooleans(Value value, Reduction reduction);
  LogicalResult insert(Value value, Reduction reduction);
  LogicalResult verifyOrder();

  func::FuncOp func;
  const Signature &signature;
  std::optional<Reduction> lossReduction;
  AllReduceRecipe wire;
  bool globalAmax;
  llvm::StringSet<> muNames;
  llvm::SetVector<Value> whole;
  std::unique_ptr<Propagation> layouts;
  /// The values that the new state, and the loss, depend on.
  llvm::DenseSet<Value> stateSources, lossSources;
};

} // namespace

/// Whether a batch, or a value computed from it element by element, is sliced
/// at single indices of its leading dimension, as a loop over micro-batches
/// does.
static bool isReadInParts(Value batch) {
  int64_t count = shapeOf(batch)[0];
  SmallVector<Value> worklist{batch};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      bool isSlice = isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(user);
      if (!isSlice && !stablehlo::worksByElement(user))
        continue;
      ArrayRef<int64_t> shape = shapeOf(user->getResult(0));
      if (isSlice && shape[0] == 1)
        return true;
      if (!shape.empty() && shape[0] == count)
        worklist.push_back(user->getResult(0));
    }
  return false;
}

FailureOr<Layout> DataParallelism::layoutOf(const SignatureArg &arg) {
  Layout layout = Layout::of(Kind::Replicated);
  layout.learned =
      arg.role == ArgRole::State && arg.kind == StateKind::Parameter;
  if (arg.role != ArgRole::Batch)
    return layout;
  auto type = cast<RankedTensorType>(arg.type);
  if (type.getRank() == 0 || type.getDimSize(0) < 2)
    return func.emitError("expected batch argument '")
           << arg.path << "' to have two or more rows, which its leading "
           << "dimension counts, to run on several ranks, but got " << type;
  layout.kind = Kind::Rows;
  layout.rows.push_back({0, 1, type.getDimSize(0)});
  // The dimensions are micro-batches, and rows in each.
  if (type.getRank() > 1 && type.getDimSize(1) > 1 &&
      isReadInParts(func.getArgument(arg.index)))
    layout.rows.push_back({1, 1, type.getDimSize(1)});
  return layout;
}

LogicalResult DataParallelism::setArguments(Propagation &propagation) {
  for (const SignatureArg &arg : signature.args) {
    FailureOr<Layout> layout = layoutOf(arg);
    if (failed(layout))
      return failure();
    propagation.set(func.getArgument(arg.index), *layout);
  }
  return success();
}

/// Makes each rank draw random numbers for its own rows. Until all draws are
/// found, ops that read them, for example through a stack of a loop, may look
/// like errors: nothing is reported, and no other finding is kept.
LogicalResult DataParallelism::drawForRows() {
  for (bool drew = true; drew;) {
    llvm::SetVector<Value> unused = whole;
    Propagation tentative(func, unused);
    if (failed(setArguments(tentative)) ||
        failed(tentative.run(/*isQuiet=*/true)))
      return failure();
    drew = tentative.drawForRows();
  }
  return success();
}

LogicalResult DataParallelism::propagate() {
  // Run once more for each partial value that others have hidden.
  for (bool found = true; found;) {
    if (failed(drawForRows()))
      return failure();
    layouts = std::make_unique<Propagation>(func, whole);
    if (failed(setArguments(*layouts)) || failed(layouts->run()))
      return failure();
    found = layouts->hasFound();
    // A value that follows only from whole values is whole.
    SmallVector<Value> needless;
    for (Value value : whole)
      if (!layouts->partOf(value).is(Kind::Partial))
        needless.push_back(value);
    for (Value value : needless)
      whole.remove(value);
  }
  return success();
}

void DataParallelism::findSources() {
  Operation *end = func.getBody().front().getTerminator();
  for (const SignatureResult &result : signature.results) {
    bool isState = result.kind == ResultKind::State;
    if (isState || result.kind == ResultKind::Loss)
      forEachSource(end->getOperand(result.index), [&](Value value) {
        return (isState ? stateSources : lossSources).insert(value).second;
      });
  }
}

/// Whether a sum over rows adds up values of the batch, or counts them, without
/// constant factors.
bool DataParallelism::isPlainCount(Value value) {
  bool plain = true;
  forEachSource(value, [&](Value source) {
    // (A boolean counts as one, whatever it follows from.)
    if (getElementTypeOrSelf(source.getType()).isInteger(1))
      return false;
    Operation *op = source.getDefiningOp();
    if (isa_and_nonnull<stablehlo::MulOp, stablehlo::DivOp>(op))
      for (Value operand : op->getOperands()) {
        while (auto spread =
                   operand.getDefiningOp<stablehlo::BroadcastInDimOp>())
          operand = spread.getOperand();
        plain &= !matchPattern(operand, m_Constant());
      }
    return plain;
  });
  return plain;
}

FailureOr<Reduction> DataParallelism::reductionOfLoss() {
  if (lossReduction)
    return *lossReduction;
  const SignatureResult *loss = signature.findLoss();
  bool mean = loss, byCount = loss, any = false;
  if (loss)
    forEachSource(
        func.getBody().front().getTerminator()->getOperand(loss->index),
        [&](Value value) {
          if (!whole.contains(value))
            return true;
          Layout part = layouts->partOf(value);
          if (part.learned) {
            any = true;
            mean &= part.isMean && !part.byCount;
            byCount &= part.byCount;
          }
          return false;
        });
  if (any && mean)
    return *(lossReduction = Reduction::Mean);
  if (any && byCount)
    return *(lossReduction = Reduction::Sum);
  return func.emitError(
             "expected the loss to be a mean over the batch (its sum divided "
             "by the number of its elements, or by a count that follows from "
             "the batch) but could not prove it: say loss-reduction=mean, if "
             "the loss of two batches together is the mean of their losses, or "
             "loss-reduction=sum, if it is the sum (result '")
         << (loss ? loss->path : std::string("?")) << "')";
}

FailureOr<Reduction> DataParallelism::reductionOf(Value value) {
  Layout part = layouts->partOf(value);
  if (part.reduction != Reduction::Sum)
    return part.reduction;
  if (part.learned &&
      (stateSources.contains(value) || lossSources.contains(value)))
    return reductionOfLoss();
  if (part.isMean && !part.byCount)
    return Reduction::Mean;
  if (part.byCount)
    return Reduction::Sum;
  if (part.isPlainSum() && (part.learned || isPlainCount(value)))
    return Reduction::Sum;
  if (part.learned)
    return reductionOfLoss();
  return emitError(value.getLoc())
         << "expected a sum or a mean over the rows of the batch but cannot "
            "tell which: divide the sum by the number of its elements, after "
            "it is made, or by nothing";
}

/// Returns "gradient PATH" if a state of the same shape follows elementwise.
std::string DataParallelism::labelOf(Value value) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{value};
  auto shape = cast<ShapedType>(value.getType()).getShape();
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (cast<ShapedType>(next.getType()).getShape() != shape ||
        !seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      if (isa<func::ReturnOp>(use.getOwner())) {
        for (const SignatureResult &result : signature.results)
          if (result.index == use.getOperandNumber() &&
              result.kind == ResultKind::State) {
            const SignatureArg *state = signature.findArg(result.statePath);
            std::string path = state && !state->parameter.empty()
                                   ? state->parameter
                                   : result.statePath;
            return "gradient " + path;
          } else if (result.index == use.getOperandNumber()) {
            return result.path;
          }
      } else if (use.getOwner()->getNumResults() == 1) {
        worklist.push_back(use.getOwner()->getResult(0));
      }
    }
  }
  return "sum over rows";
}

/// Returns why a value travels without a narrower wire format; empty if it
/// travels as the recipe says.
StringRef DataParallelism::getReasonNotNarrowed(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!stateSources.contains(value) || !layouts->partOf(value).learned)
    return "no gradient: it travels as it is";
  if (wire.format == Wire::None)
    return "the recipe has no all_reduce";
  if (type.getNumElements() <= 1)
    return "a single number";
  if (!type.getElementType().isF32())
    return "not in f32";
  // (In a loop, mu would have no single state.)
  if (value.getParentBlock() != &func.getBody().front())
    return "made whole in a loop or a branch";
  return "";
}

/// Adds FP8-LM's automatic scale to the state, as zeros: it is not yet known.
Value DataParallelism::addMu(AllReduceOp reduce) {
  Builder builder(func.getContext());
  StringRef label = reduce.getLabel().value_or("");
  label.consume_front("gradient ");
  std::string base = "fp8." + label.str() + ".all_reduce", name = base;
  for (unsigned copy = 2; !muNames.insert(name).second; ++copy)
    name = base + "." + std::to_string(copy);
  StringAttr path = builder.getStringAttr(name + ".mu");
  auto type = RankedTensorType::get({2}, builder.getF32Type());
  unsigned index = func.getNumArguments();
  (void)func.insertArgument(
      index, type,
      builder.getDictionaryAttr(
          {builder.getNamedAttr(kPathAttr, path),
           builder.getNamedAttr(kRoleAttr, builder.getStringAttr("state")),
           builder.getNamedAttr(kKindAttr, builder.getStringAttr("other")),
           builder.getNamedAttr(kZeroInitAttr, builder.getUnitAttr())}),
      func.getLoc());
  (void)func.insertResult(
      func.getNumResults(), type,
      builder.getDictionaryAttr({builder.getNamedAttr(kPathAttr, path),
                                 builder.getNamedAttr(kStateAttr, path)}));
  return func.getArgument(index);
}

/// Booleans travel as bytes.
void DataParallelism::insertForBooleans(Value value, Reduction reduction) {
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value bytes = stablehlo::ConvertOp::create(
      builder, loc, type.clone(builder.getI8Type()), value);
  auto reduce = AllReduceOp::create(builder, loc, reduction, bytes,
                                    builder.getStringAttr(labelOf(value)));
  reduce->setAttr(FP8Dialect::kWireReasonAttrName,
                  builder.getStringAttr("a boolean, as a byte"));
  Value reduced =
      stablehlo::ConvertOp::create(builder, loc, type, reduce.getResult());
  value.replaceAllUsesExcept(reduced, bytes.getDefiningOp());
}

LogicalResult DataParallelism::insert(Value value, Reduction reduction) {
  Type element = getElementTypeOrSelf(value.getType());
  bool sums = reduction == Reduction::Sum || reduction == Reduction::Mean;
  if (element.isInteger(1)) {
    insertForBooleans(value, reduction);
    return success();
  }
  if (element.isUnsignedInteger() && !sums)
    return emitError(value.getLoc())
           << "expected floats or signed integers to be reduced over the "
              "ranks but got "
           << value.getType();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfterValue(value);
  auto reduce = AllReduceOp::create(builder, value.getLoc(), reduction, value,
                                    builder.getStringAttr(labelOf(value)));
  StringRef reason = getReasonNotNarrowed(value);
  if (reason.empty()) {
    reason = "a gradient, as all_reduce of the recipe says";
    IntegerAttr block = wire.tile == StorageTiling::Group128
                            ? builder.getI64IntegerAttr(128)
                            : IntegerAttr();
    Value mu = wire.isFP8() ? addMu(reduce) : Value();
    auto narrow = AllReduceOp::create(
        builder, value.getLoc(), value.getType(), mu ? mu.getType() : Type(),
        reduction, value, mu, wire.format, block, /*shard=*/IntegerAttr(),
        reduce.getLabelAttr());
    reduce.erase();
    reduce = narrow;
    if (mu)
      func.getBody().front().getTerminator()->insertOperands(
          func.getNumResults() - 1, reduce.getNewMu());
  }
  reduce->setAttr(FP8Dialect::kWireReasonAttrName,
                  builder.getStringAttr(reason));
  value.replaceAllUsesExcept(reduce.getResult(), reduce);
  return success();
}

/// Checks that all ranks execute the same collectives in the same order: no
/// condition that decides whether, or how often, one runs may differ by rank.
LogicalResult DataParallelism::verifyOrder() {
  WalkResult result = func.walk([&](AllReduceOp reduce) {
    for (Operation *parent = reduce->getParentOp(); parent != func;
         parent = parent->getParentOp()) {
      Value decides =
          parent->getNumOperands() ? parent->getOperand(0) : Value();
      if (auto loop = dyn_cast<stablehlo::WhileOp>(parent))
        decides = loop.getCond().front().getTerminator()->getOperand(0);
      // (A predicate that was reduced is whole.)
      if (!decides.getDefiningOp<AllReduceOp>() &&
          !layouts->layoutOf(decides).isWhole()) {
        reduce.emitOpError("expected a collective below conditions that are "
                           "the same on all ranks");
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void DataParallelism::markRowsOfDots() {
  func.walk([&](stablehlo::DotGeneralOp dot) {
    auto dims = dot.getDotDimensionNumbers();
    auto rowsOf = [&](Value operand, ArrayRef<int64_t> contracting) {
      Layout layout = layouts->layoutOf(operand);
      if (!layout.is(Kind::Rows))
        return OperandRows::None;
      return llvm::all_of(layout.rows,
                          [&](const RowDim &row) {
                            return llvm::is_contained(contracting, row.dim);
                          })
                 ? OperandRows::Contracted
                 : OperandRows::Free;
    };
    setOperandRows(dot,
                   {rowsOf(dot.getLhs(), dims.getLhsContractingDimensions()),
                    rowsOf(dot.getRhs(), dims.getRhsContractingDimensions())});
  });
}

LogicalResult DataParallelism::run() {
  if (failed(propagate()))
    return failure();
  if (globalAmax)
    markRowsOfDots();
  findSources();
  // Decide about all values before anything changes.
  SmallVector<std::pair<Value, Reduction>> decided;
  for (Value value : whole) {
    FailureOr<Reduction> reduction = reductionOf(value);
    if (failed(reduction))
      return failure();
    decided.push_back({value, *reduction});
  }
  for (auto [value, reduction] : decided)
    if (failed(insert(value, reduction)))
      return failure();
  return verifyOrder();
}

namespace {

/// Whether a step was in jax.shard_map. It is then already the program of one
/// rank.
bool isShardMapStep(func::FuncOp func) {
  return func->hasAttr(stablehlo::kDevicesAttrName) ||
         func.walk([](ExchangeOp) { return WalkResult::interrupt(); })
             .wasInterrupted();
}

/// Gathers the rows of all ranks.
Value gatherRows(BlockArgument rows, RankedTensorType whole, StringRef path) {
  auto builder = OpBuilder::atBlockBegin(rows.getOwner());
  int64_t devices =
      whole.getDimSize(0) / cast<ShapedType>(rows.getType()).getDimSize(0);
  auto ranks = llvm::to_vector(llvm::seq<int64_t>(0, devices));
  auto group = DenseIntElementsAttr::get(
      RankedTensorType::get({1, devices}, builder.getI64Type()), ranks);
  SmallVector<int64_t> shape(cast<ShapedType>(rows.getType()).getShape());
  shape.insert(shape.begin(), devices);
  Value parts = ExchangeOp::create(
      builder, rows.getLoc(), whole.clone(shape), ExchangeKind::Gather, rows,
      group, builder.getStringAttr(("rows of " + path).str()));
  return stablehlo::ReshapeOp::create(builder, rows.getLoc(), whole, parts);
}

/// Gives each rank only its own rows of an argument. Ops that read rows of
/// other ranks gather them.
LogicalResult shardBatch(func::FuncOp func, const SignatureArg &arg,
                         int64_t devices) {
  BlockArgument rows = func.getArgument(arg.index);
  auto whole = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(whole.getShape());
  if (shape[0] % devices != 0)
    return emitError(rows.getLoc())
           << "expected as many rows of '" << arg.path << "' on each of "
           << devices << " ranks but got " << shape[0] << " for all";
  shape[0] /= devices;
  rows.setType(whole.clone(shape));
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().getArgumentTypes(),
                                 func.getResultTypes()));
  if (rows.use_empty())
    return success();
  Operation *reader = rows.hasOneUse() ? *rows.user_begin() : nullptr;
  if (func.getArgAttr(arg.index, stablehlo::kRowsAttrName) &&
      isa_and_nonnull<stablehlo::DynamicSliceOp>(reader) &&
      reader->getResult(0).getType() == rows.getType()) {
    reader->replaceAllUsesWith(ValueRange{rows});
    reader->erase();
    return success();
  }
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : rows.getUses())
    uses.push_back(&use);
  Value all = gatherRows(rows, whole, arg.path);
  for (OpOperand *use : uses)
    use->set(all);
  return success();
}

/// Changes arguments to what a rank has of them: rows of the batch, and parts
/// of the state or all of it.
LogicalResult shardArguments(func::FuncOp func, const Signature &signature,
                             const Recipe *recipe) {
  splitState(func, signature, recipe);
  auto devices = func->getAttrOfType<IntegerAttr>(stablehlo::kDevicesAttrName);
  for (auto [index, arg] : llvm::enumerate(signature.args)) {
    auto type = cast<RankedTensorType>(arg.type);
    if (devices && arg.role == ArgRole::Batch && type.getRank() > 0 &&
        failed(shardBatch(func, arg, devices.getInt())))
      return failure();
    func.removeArgAttr(index, stablehlo::kRowsAttrName);
  }
  func->removeAttr(stablehlo::kDevicesAttrName);
  // Erase the ops that computed where a rank's rows begin.
  IRRewriter rewriter(func.getContext());
  (void)runRegionDCE(rewriter, func->getRegions());
  return success();
}

class FP8DataParallel : public fp8::impl::FP8DataParallelBase<FP8DataParallel> {
public:
  using FP8DataParallelBase::FP8DataParallelBase;

  void runOnOperation() override {
    std::optional<Reduction> reduction;
    if (!lossReduction.empty()) {
      reduction = symbolizeReduction(lossReduction);
      if (reduction != Reduction::Mean && reduction != Reduction::Sum) {
        getOperation().emitError("expected loss-reduction 'mean' or 'sum' but "
                                 "got '")
            << lossReduction << "'";
        return signalPassFailure();
      }
    }
    AllReduceRecipe wire;
    std::optional<Recipe> recipe;
    if (getOperation()->hasAttr(FP8Dialect::kRecipeAttrName)) {
      FailureOr<Recipe> effective = getEffectiveRecipe(getOperation());
      if (failed(effective))
        return signalPassFailure();
      recipe = *effective;
      wire = recipe->allReduce;
    }
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isDeclaration() || !func.isPublic())
        continue;
      FailureOr<Signature> signature = Signature::fromAttributes(func);
      if (succeeded(signature) && isShardMapStep(func)) {
        if (failed(
                shardArguments(func, *signature, recipe ? &*recipe : nullptr)))
          return signalPassFailure();
        if (globalAmax) {
          func.emitError("expected a step for one device with global-amax but "
                         "got one that says what ranks do (shard_map)");
          return signalPassFailure();
        }
        continue;
      }
      if (failed(signature) ||
          failed(DataParallelism(func, *signature, reduction, wire, globalAmax)
                     .run()))
        return signalPassFailure();
    }
    getOperation()->setAttr(FP8Dialect::kDataParallelAttrName,
                            UnitAttr::get(&getContext()));
    if (zero > 1) {
      getOperation().emitError("expected zero=0 or zero=1 but got zero=")
          << zero << ": gradients and parameters are not dealt";
      return signalPassFailure();
    }
    if (zero == 1)
      getOperation()->setAttr(
          FP8Dialect::kZeroAttrName,
          IntegerAttr::get(IntegerType::get(&getContext(), 64), 1));
  }
};

} // namespace
