//===- DataParallel.cpp - A step for one device on several ranks ----------===//

#include "../EffectiveRecipe.h"
#include "../OperandRows.h"
#include "BatchReading.h"
#include "GradientWire.h"
#include "ReductionLabels.h"
#include "Reductions.h"
#include "ShardArguments.h"
#include "ShareBatch.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <functional>

namespace mlir::fp8 {
#define GEN_PASS_DEF_FP8DATAPARALLEL
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

namespace {

/// Decides, for one function, which values are reduced over ranks, and how.
class DataParallelism {
public:
  /// `wire` is the wire format of gradients. With `globalAmax`, dots are marked
  /// so that current scales of their operands are those of all ranks' rows.
  /// `sharing` ranks share the batch; if it is 0, each has one of its own.
  DataParallelism(func::FuncOp func, const Signature &signature,
                  std::optional<Reduction> lossReduction,
                  const AllReduceRecipe &wire, bool globalAmax, int64_t sharing)
      : func(func), signature(signature), lossReduction(lossReduction),
        wire(func, wire), globalAmax(globalAmax), sharing(sharing) {}

  LogicalResult run();
  /// Marks the rows of operands on dots, for the passes that measure operands.
  void markRowsOfDots();

private:
  /// What became of the attempt to read the batch in some way.
  struct Trial {
    bool works = false, isCut = false;
    size_t gathers = 0;
    std::string error;
  };
  Trial tryReading(const BatchReading &each);
  void findReading();
  FailureOr<Layout> layoutOf(const SignatureArg &arg);
  LogicalResult setArguments(Propagation &propagation);
  LogicalResult drawForRows();
  LogicalResult propagate();
  LogicalResult propagateOnce();
  LogicalResult decide();
  void gatherFor(Operation *op);
  FailureOr<Reduction> reductionOf(Value value);
  FailureOr<bool> readParts();
  FailureOr<bool> readPartFor(Operation *op);
  bool findRoots(Value value, llvm::SetVector<Value> &roots);
  Value makePartOf(Value value, llvm::DenseMap<Value, Value> &made);
  void removeParts();
  LogicalResult verifyRoles();
  void insertForBooleans(Value value, Reduction reduction);
  LogicalResult insert(Value value, Reduction reduction);
  LogicalResult verifyOrder();

  func::FuncOp func;
  const Signature &signature;
  std::optional<Reduction> lossReduction;
  GradientWire wire;
  bool globalAmax;
  int64_t sharing;
  BatchOf batch = sharing > 0 ? BatchOf::AllRanks : BatchOf::OneRank;
  BatchReading reading;
  /// Why a loop that takes one index of a batch at a time takes no rows, if it
  /// cannot take micro-batches either.
  std::string singleRowsError;
  llvm::SetVector<Value> whole;
  /// Reshapes that read such a value before it is reduced.
  llvm::DenseSet<Operation *> parts;
  /// Reshapes that stand for the rows of all ranks.
  llvm::SetVector<Operation *> gathers;
  std::unique_ptr<Propagation> layouts;
  std::unique_ptr<Reductions> reductions;
};

} // namespace

/// Propagates through a copy, because a propagation changes the step.
DataParallelism::Trial DataParallelism::tryReading(const BatchReading &each) {
  Trial trial;
  OwningOpRef<func::FuncOp> copy(func.clone());
  ScopedDiagnosticHandler quiet(func.getContext(), [&](Diagnostic &found) {
    trial.error = found.str();
    return success();
  });
  DataParallelism inside(*copy, signature, lossReduction, wire.getRecipe(),
                         globalAmax, sharing);
  inside.reading = each;
  trial.works = succeeded(inside.propagate());
  trial.gathers = inside.gathers.size();
  trial.isCut = !trial.works && inside.layouts && inside.layouts->isCut();
  return trial;
}

/// A batch may be read in several ways. Takes the first one with which each row
/// is computed by itself; else the first with which it can be computed from the
/// rows of all ranks.
void DataParallelism::findReading() {
  SmallVector<BatchReading> readings =
      findBatchReadings(func, signature, batch);
  if (readings.size() == 1)
    return;
  // Those whose rows divide among the ranks that share them come first.
  auto divides = [&](const BatchReading &each) {
    return sharing == 0 || each.rows() % sharing == 0;
  };
  SmallVector<BatchReading> others;
  llvm::copy_if(readings, std::back_inserter(others), std::not_fn(divides));
  llvm::erase_if(readings, std::not_fn(divides));
  readings.append(others);
  std::optional<BatchReading> found, ofCut;
  bool isCut = false;
  for (const BatchReading &each : readings) {
    if (found && (!divides(each) || each.whole > 0))
      break;
    Trial trial = tryReading(each);
    if (trial.works && (!found || trial.gathers == 0))
      found = each;
    if (trial.works && trial.gathers == 0)
      break;
    if (!trial.works && each.takesSingleRows)
      singleRowsError = trial.error;
    if (each.extent > 0 && !ofCut)
      ofCut = each;
    isCut |= trial.isCut && each.extent == 0;
  }
  // If none works, the error is about what cannot be computed from the parts
  // into which the step cuts its batch.
  reading = found ? *found : isCut && ofCut ? *ofCut : BatchReading();
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
  bool isStack = !reading.takesSingleRows && mayHaveMicroBatches(func, arg);
  bool isWhole = type.getDimSize(0) == reading.whole;
  if (isWhole && !isStack)
    return Layout::of(Kind::Replicated);
  auto rowsOf = [&](int64_t dim) {
    int64_t size = type.getDimSize(dim);
    return size == reading.extent ? RowDim{dim, reading.outer, reading.rows()}
                                  : RowDim{dim, 1, size};
  };
  // The dimensions are micro-batches, and rows in each.
  if (!isWhole && !(isStack && type.getDimSize(1) == reading.extent))
    layout.rows.push_back(rowsOf(0));
  if (isStack)
    layout.rows.push_back(rowsOf(1));
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
  while (true) {
    llvm::SetVector<Value> unused = whole;
    Propagation tentative(func, batch, unused, parts, gathers,
                          sourcesOf(func, signature));
    if (failed(setArguments(tentative)) ||
        failed(tentative.run(/*isQuiet=*/true)))
      return failure();
    FailureOr<bool> drew = tentative.drawForRows();
    if (failed(drew))
      return failure();
    if (!*drew)
      return success();
  }
}

/// Makes an op read the rows of all ranks. A dot of rows with rows keeps those
/// of its left operand.
void DataParallelism::gatherFor(Operation *op) {
  OpBuilder builder(op);
  auto hasRows = [&](Value value) {
    return layouts->layoutOf(value).is(Kind::Rows);
  };
  bool isDot = isa<stablehlo::DotGeneralOp>(op);
  for (OpOperand &operand : llvm::reverse(op->getOpOperands())) {
    if (!hasRows(operand.get()) || isOutput(operand))
      continue;
    auto all = stablehlo::ReshapeOp::create(
        builder, op->getLoc(), operand.get().getType(), operand.get());
    gathers.insert(all);
    operand.set(all);
    if (isDot)
      return;
  }
}

LogicalResult DataParallelism::propagateOnce() {
  // Run once more for each partial value that others have hidden.
  for (bool found = true; found;) {
    if (failed(drawForRows()))
      return failure();
    layouts = std::make_unique<Propagation>(func, batch, whole, parts, gathers,
                                            sourcesOf(func, signature));
    if (failed(setArguments(*layouts)))
      return failure();
    if (failed(layouts->run())) {
      if (!layouts->getUngathered())
        return failure();
      gatherFor(layouts->getUngathered());
      continue;
    }
    found = layouts->hasFound();
    // A value that follows only from whole values is whole.
    SmallVector<Value> needless;
    for (Value value : whole)
      if (!layouts->partOf(value).is(Kind::Partial))
        needless.push_back(value);
    for (Value value : needless)
      whole.remove(value);
  }
  reductions = std::make_unique<Reductions>(func, signature, *layouts, whole,
                                            lossReduction);
  return success();
}

/// Finds the completed sums that a value follows from linearly. Returns false
/// if a loop or a branch is in between.
bool DataParallelism::findRoots(Value value, llvm::SetVector<Value> &roots) {
  if (whole.contains(value)) {
    roots.insert(value);
    return true;
  }
  if (!layouts->layoutOf(value).isCounted)
    return true;
  Operation *op = value.getDefiningOp();
  return op && (!op->getNumRegions() || isa<stablehlo::ReduceOp>(op)) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return findRoots(operand, roots); });
}

/// Computes the rank's part of a value that follows linearly from completed
/// sums.
Value DataParallelism::makePartOf(Value value,
                                  llvm::DenseMap<Value, Value> &made) {
  bool isRoot = whole.contains(value);
  if (!isRoot && !layouts->layoutOf(value).isCounted)
    return value;
  if (Value part = made.lookup(value))
    return part;
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfterValue(value);
  if (isRoot) {
    auto part = stablehlo::ReshapeOp::create(builder, value.getLoc(),
                                             value.getType(), value);
    parts.insert(part);
    return made[value] = part;
  }
  IRMapping mapping;
  for (Value operand : value.getDefiningOp()->getOperands())
    mapping.map(operand, makePartOf(operand, made));
  builder.clone(*value.getDefiningOp(), mapping);
  return made[value] = mapping.lookup(value);
}

/// Makes an op that divides completed sums by the number of their elements read
/// them before they are reduced, so that the mean is reduced behind it. Returns
/// false if there is nothing to do: a gradient is already a mean.
FailureOr<bool> DataParallelism::readPartFor(Operation *op) {
  llvm::SetVector<Value> roots;
  bool isFound = true;
  for (Value operand : op->getOperands())
    isFound &= findRoots(operand, roots);
  if (llvm::none_of(roots,
                    [&](Value root) { return reductions->isSurelySum(root); }))
    return false;
  if (!isFound)
    return op->emitOpError("expected a sum over the rows to be divided by the "
                           "number of its elements where it is made, or in no "
                           "other loop or branch, since it is also read as a "
                           "sum");
  llvm::DenseMap<Value, Value> made;
  for (OpOperand &operand : op->getOpOperands())
    operand.set(makePartOf(operand.get(), made));
  return true;
}

FailureOr<bool> DataParallelism::readParts() {
  bool any = false;
  for (Operation *op : layouts->getDivided()) {
    FailureOr<bool> changed = readPartFor(op);
    if (failed(changed))
      return failure();
    any |= *changed;
  }
  return any;
}

LogicalResult DataParallelism::propagate() {
  while (true) {
    if (failed(propagateOnce()))
      return failure();
    // (The sums of a batch of all ranks are divided by the number of all rows.)
    if (batch == BatchOf::AllRanks)
      return success();
    FailureOr<bool> changed = readParts();
    if (failed(changed))
      return failure();
    if (!*changed)
      return success();
  }
}

void DataParallelism::removeParts() {
  for (Operation *part : parts) {
    part->getResult(0).replaceAllUsesWith(part->getOperand(0));
    part->erase();
  }
}

/// Returns the number of slices along the leading dimension of a stack that a
/// loop makes, one in each iteration; 1 if `value` is none.
static int64_t slicesOf(Value value) {
  auto loop = value.getDefiningOp<stablehlo::WhileOp>();
  ArrayRef<int64_t> shape = shapeOf(value);
  if (!loop || shape.empty())
    return 1;
  Block &body = loop.getBody().front();
  unsigned carry = cast<OpResult>(value).getResultNumber();
  auto update = body.getTerminator()
                    ->getOperand(carry)
                    .getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
  BlockArgument stack = body.getArgument(carry);
  if (!update || update.getOperand() != stack || !stack.hasOneUse() ||
      shapeOf(update.getUpdate())[0] != 1 ||
      shapeOf(update.getUpdate()).drop_front() != shape.drop_front())
    return 1;
  std::optional<LayerSlot> slot =
      matchSlot(update.getStartIndices()[0], value.getType());
  bool isEach = slot && slot->counter.getOwner() == &body &&
                std::abs(slot->scale) == 1 && slot->count == shape[0];
  return isEach ? shape[0] : 1;
}

/// Booleans travel as bytes.
void DataParallelism::insertForBooleans(Value value, Reduction reduction) {
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value bytes = stablehlo::ConvertOp::create(
      builder, loc, type.clone(builder.getI8Type()), value);
  auto reduce = AllReduceOp::create(
      builder, loc, reduction, bytes,
      builder.getStringAttr(labelOfReduction(signature, value)));
  reduce->setAttr(FP8Dialect::kWireReasonAttrName,
                  builder.getStringAttr("a boolean, as a byte"));
  Value reduced =
      stablehlo::ConvertOp::create(builder, loc, type, reduce.getResult());
  value.replaceAllUsesExcept(reduced, bytes.getDefiningOp());
}

LogicalResult DataParallelism::insert(Value value, Reduction reduction) {
  if (cast<RankedTensorType>(value.getType()).getNumElements() == 0)
    return success(); // nothing to send
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
  auto reduce = AllReduceOp::create(
      builder, value.getLoc(), reduction, value,
      builder.getStringAttr(labelOfReduction(signature, value)));
  value.replaceUsesWithIf(reduce.getResult(), [&](OpOperand &use) {
    return use.getOwner() != reduce && !parts.contains(use.getOwner());
  });
  if (int64_t slices = slicesOf(value); sums && slices > 1)
    reduce.setSlices(slices);
  wire.choose(reduce,
              reductions->entersState(value) && layouts->partOf(value).learned);
  return success();
}

/// Checks that all ranks execute the same collectives in the same order: no
/// condition that decides whether, or how often, one runs may differ by rank.
LogicalResult DataParallelism::verifyOrder() {
  WalkResult result = func.walk([&](Operation *op) {
    if (!isa<AllReduceOp>(op) && !gathers.contains(op))
      return WalkResult::advance();
    for (Operation *parent = op->getParentOp(); parent != func;
         parent = parent->getParentOp()) {
      Value decides =
          parent->getNumOperands() ? parent->getOperand(0) : Value();
      if (auto loop = dyn_cast<stablehlo::WhileOp>(parent))
        decides = loop.getCond().front().getTerminator()->getOperand(0);
      // A predicate that was reduced is whole; a boolean is, as a byte.
      Value reduced = decides;
      if (auto asBoolean = decides.getDefiningOp<stablehlo::ConvertOp>())
        reduced = asBoolean.getOperand();
      if (!reduced.getDefiningOp<AllReduceOp>() &&
          !layouts->layoutOf(decides).isWhole()) {
        op->emitOpError("expected a collective below conditions that are "
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
      // (One process has scales of single rows, too.)
      if (!layout.is(Kind::Rows) || layout.turn)
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

/// Returns how a partial value is reduced. Sums over a batch of all ranks are
/// sums of its parts, whatever they are divided by.
FailureOr<Reduction> DataParallelism::reductionOf(Value value) {
  if (batch == BatchOf::AllRanks)
    return layouts->partOf(value).reduction;
  return reductions->reductionOf(value, labelOfReduction(signature, value));
}

/// Decides about all values before anything changes, and reduces them.
LogicalResult DataParallelism::decide() {
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
  return success();
}

/// Checks that there is something to train with rows: else ranks would repeat
/// each other's work.
LogicalResult DataParallelism::verifyRoles() {
  auto has = [&](ArgRole role) {
    return llvm::any_of(signature.args, [&](const SignatureArg &arg) {
      return arg.role == role;
    });
  };
  for (ArgRole role : {ArgRole::State, ArgRole::Batch})
    if (!has(role))
      return func.emitError(
                 "expected a step with state and a batch, to run "
                 "on several ranks, but got no argument of the role '")
             << stringifyEnum(role) << "'";
  return success();
}

LogicalResult DataParallelism::run() {
  if (lossReduction && batch == BatchOf::AllRanks)
    return func.emitError(
        "expected no loss-reduction with a batch that ranks share "
        "(global-batch): the loss is that of all its rows");
  findReading();
  ScopedDiagnosticHandler explains(func.getContext(), [&](Diagnostic &error) {
    if (!singleRowsError.empty() && reading.extent == 0)
      error.attachNote() << "a loop takes parts of the batch: this is for "
                            "micro-batches; for single rows: "
                         << singleRowsError;
    return failure();
  });
  if (failed(propagate()))
    return failure();
  if (globalAmax)
    markRowsOfDots();
  if (failed(verifyRoles()) ||
      (batch == BatchOf::OneRank && (failed(reductions->verifyGiven()) ||
                                     failed(reductions->verifyDivisors()))) ||
      failed(decide()))
    return failure();
  removeParts();
  if (failed(verifyOrder()) ||
      (batch == BatchOf::AllRanks &&
       failed(shareBatch(func, *layouts, gathers.getArrayRef(), sharing))))
    return failure();
  // Loops that mu passes through are replaced.
  wire.addMus();
  return success();
}

namespace {

/// Returns how many ranks share the batch: as many as the option says, or as
/// the devices over which a jit splits it. Removes what import noted of these.
FailureOr<int64_t> takeSharing(func::FuncOp func, const Signature &signature,
                               int64_t option) {
  auto devices = func->getAttrOfType<IntegerAttr>(stablehlo::kSharingAttrName);
  func->removeAttr(stablehlo::kSharingAttrName);
  for (const SignatureArg &arg : signature.args)
    if (func.removeArgAttr(arg.index, stablehlo::kRowsAttrName) &&
        arg.role != ArgRole::Batch)
      return func.emitError("expected a jit to split nothing but the rows of "
                            "its batch over devices, to run on ranks, but it "
                            "splits '")
             << arg.path
             << "': write the step in jax.shard_map, which says what each "
                "device does, or leave its state whole";
  return option > 0 || !devices ? option : devices.getInt();
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
        if (globalAmax || globalBatch) {
          func.emitError("expected a step for one device with ")
              << (globalAmax ? "global-amax" : "global-batch")
              << " but got one that says what ranks do (shard_map)";
          return signalPassFailure();
        }
        continue;
      }
      if (failed(signature))
        return signalPassFailure();
      FailureOr<int64_t> sharing = takeSharing(func, *signature, globalBatch);
      if (failed(sharing) || failed(DataParallelism(func, *signature, reduction,
                                                    wire, globalAmax, *sharing)
                                        .run()))
        return signalPassFailure();
    }
    getOperation()->setAttr(FP8Dialect::kDataParallelAttrName,
                            UnitAttr::get(&getContext()));
    if (zero > 1) {
      getOperation().emitError("expected zero=0 or zero=1 but got zero=")
          << zero.getValue() << ": gradients and parameters are not dealt";
      return signalPassFailure();
    }
    if (zero == 1)
      getOperation()->setAttr(
          FP8Dialect::kZeroAttrName,
          IntegerAttr::get(IntegerType::get(&getContext(), 64), 1));
  }
};

} // namespace
