//===- ControlFlow.cpp - StableHLO control flow to scf --------------------===//
//
// First looks up what is known of counters, before any loop changes. Then turns
// loops and branches into scf ops around their ops, and slices of stacks into
// views at an offset.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTSTABLEHLOTOSCF
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using fp8::constantIndex;
using stablehlo::CountedLoop;
using stablehlo::StackOffset;

namespace {

/// An original counted loop, and the index that counts its iterations from 0.
struct Counter {
  CountedLoop loop;
  Value iteration;
};

/// A dynamic_slice or dynamic_update_slice that becomes a view.
struct StackPart {
  Operation *op;
  /// The offsets; one that depends on a counter has its loop in `loops`.
  SmallVector<StackOffset> offsets;
  SmallVector<Operation *> loops;
};

/// Returns `index * scale + offset`.
Value affine(OpBuilder &b, Location loc, Value index, int64_t scale,
             int64_t offset) {
  if (scale != 1)
    index = arith::MulIOp::create(b, loc, index, constantIndex(b, loc, scale));
  if (offset != 0)
    index = arith::AddIOp::create(b, loc, index, constantIndex(b, loc, offset));
  return index;
}

/// Returns an index as a rank-0 tensor of integers of any signedness.
Value toTensor(OpBuilder &b, Location loc, Value index, RankedTensorType type) {
  Type element = b.getIntegerType(type.getElementTypeBitWidth());
  Value integer = arith::IndexCastOp::create(b, loc, element, index);
  Value tensor = tensor::FromElementsOp::create(
      b, loc, RankedTensorType::get(type.getShape(), element), integer);
  if (element == type.getElementType())
    return tensor;
  return stablehlo::BitcastConvertOp::create(b, loc, type, tensor);
}

/// Moves the ops of `from` to the end of `to`, except the terminator, whose
/// operands are returned.
SmallVector<Value> moveBody(Block &from, Block &to) {
  Operation *terminator = from.getTerminator();
  SmallVector<Value> values(terminator->getOperands());
  terminator->erase();
  to.getOperations().splice(to.end(), from.getOperations());
  return values;
}

class ControlFlowConverter {
public:
  explicit ControlFlowConverter(Operation *root) : root(root) {}

  void run() {
    collectStackParts();
    // Outer ops first: inner ones move along unchanged.
    SmallVector<Operation *> worklist;
    root->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<stablehlo::WhileOp, stablehlo::IfOp, stablehlo::CaseOp>(op))
        worklist.push_back(op);
    });
    // Match loops before anything changes, because an inner loop may start
    // where an outer one ends.
    for (Operation *op : worklist)
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
        if (std::optional<CountedLoop> counted = matchCountedLoop(loop))
          counters[op] = {*counted, {}};
    for (Operation *op : worklist) {
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
        if (counters.count(op))
          convertCounted(loop);
        else
          convertWhile(loop);
      } else if (auto branch = dyn_cast<stablehlo::IfOp>(op)) {
        convertIf(branch);
      } else {
        convertCase(cast<stablehlo::CaseOp>(op));
      }
    }
    for (StackPart &part : parts)
      convertStackPart(part);
    for (Operation *op : llvm::reverse(dead))
      op->erase();
  }

private:
  void collectStackParts() {
    root->walk([&](Operation *op) {
      std::optional<SmallVector<StackOffset>> offsets;
      if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op))
        offsets = matchStackPart(slice);
      else if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(op))
        offsets = matchStackPart(update);
      if (!offsets)
        return;
      StackPart part{op, *offsets, {}};
      for (StackOffset &offset : part.offsets)
        part.loops.push_back(
            offset.index ? offset.index->counter.getOwner()->getParentOp()
                         : nullptr);
      parts.push_back(std::move(part));
    });
  }

  /// Replaces an op, which is erased at the end, because other ops are looked
  /// up by it.
  void retire(Operation *op, ValueRange results) {
    op->replaceAllUsesWith(results);
    op->dropAllReferences();
    dead.push_back(op);
  }

  void convertCounted(stablehlo::WhileOp op) {
    Counter &counter = counters[op];
    const CountedLoop &counted = counter.loop;
    Location loc = op.getLoc();
    OpBuilder b(op);
    SmallVector<Value> inits;
    for (auto [i, init] : llvm::enumerate(op.getOperand()))
      if (i != counted.counter)
        inits.push_back(init);
    auto loop = scf::ForOp::create(b, loc, constantIndex(b, loc, 0),
                                   constantIndex(b, loc, counted.trips),
                                   constantIndex(b, loc, 1), inits);
    counter.iteration = loop.getInductionVar();

    Block &from = op.getBody().front(), &to = *loop.getBody();
    if (to.mightHaveTerminator())
      to.getTerminator()->erase();
    b.setInsertionPointToStart(&to);
    unsigned next = 0;
    for (BlockArgument argument : from.getArguments()) {
      if (argument.getArgNumber() != counted.counter) {
        argument.replaceAllUsesWith(loop.getRegionIterArg(next++));
        continue;
      }
      // The addition of the step is dead once the counter is not carried.
      Value value =
          affine(b, loc, loop.getInductionVar(), counted.step, counted.lower);
      auto type = cast<RankedTensorType>(argument.getType());
      argument.replaceAllUsesWith(toTensor(b, loc, value, type));
    }
    SmallVector<Value> yielded = moveBody(from, to);
    yielded.erase(yielded.begin() + counted.counter);
    b.setInsertionPointToEnd(&to);
    scf::YieldOp::create(b, loc, yielded);

    b.setInsertionPointAfter(loop);
    SmallVector<Value> results(loop.getResults());
    Value last;
    if (!op.getResult(counted.counter).use_empty()) {
      auto type =
          cast<RankedTensorType>(op.getResult(counted.counter).getType());
      last = stablehlo::ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(
              type, Attribute(IntegerAttr::get(
                        type.getElementType(),
                        APInt(type.getElementTypeBitWidth(), counted.upper,
                              /*isSigned=*/true, /*implicitTrunc=*/true)))));
    } else {
      last = op.getOperand()[counted.counter];
    }
    results.insert(results.begin() + counted.counter, last);
    retire(op, results);
  }

  void convertWhile(stablehlo::WhileOp op) {
    Location loc = op.getLoc();
    OpBuilder b(op);
    SmallVector<Location> locs(op.getNumOperands(), loc);
    auto loop =
        scf::WhileOp::create(b, loc, op.getOperandTypes(), op.getOperand());
    Block &before =
        *b.createBlock(&loop.getBefore(), {}, op.getOperandTypes(), locs);
    Block &after =
        *b.createBlock(&loop.getAfter(), {}, op.getOperandTypes(), locs);
    auto move = [&](Region &region, Block &to) {
      for (auto [argument, value] :
           llvm::zip(region.getArguments(), to.getArguments()))
        argument.replaceAllUsesWith(value);
      return moveBody(region.front(), to);
    };
    SmallVector<Value> condition = move(op.getCond(), before);
    b.setInsertionPointToEnd(&before);
    scf::ConditionOp::create(b, loc, extract(b, loc, condition[0]),
                             before.getArguments());
    SmallVector<Value> yielded = move(op.getBody(), after);
    b.setInsertionPointToEnd(&after);
    scf::YieldOp::create(b, loc, yielded);
    retire(op, loop.getResults());
  }

  Value extract(OpBuilder &b, Location loc, Value scalar) {
    return tensor::ExtractOp::create(b, loc, scalar, ValueRange());
  }

  void moveBranch(OpBuilder &b, Location loc, Region &from, Block &to) {
    SmallVector<Value> values = moveBody(from.front(), to);
    b.setInsertionPointToEnd(&to);
    scf::YieldOp::create(b, loc, values);
  }

  void convertIf(stablehlo::IfOp op) {
    Location loc = op.getLoc();
    OpBuilder b(op);
    Value predicate = extract(b, loc, op.getPred());
    auto branch =
        scf::IfOp::create(b, loc, op.getResultTypes(), predicate,
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    moveBranch(b, loc, op.getTrueBranch(), *branch.thenBlock());
    moveBranch(b, loc, op.getFalseBranch(), *branch.elseBlock());
    retire(op, branch.getResults());
  }

  void convertCase(stablehlo::CaseOp op) {
    Location loc = op.getLoc();
    OpBuilder b(op);
    // An index out of range, negative ones included, takes the last branch.
    Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                             extract(b, loc, op.getIndex()));
    unsigned last = op.getBranches().size() - 1;
    auto cases = llvm::to_vector(llvm::seq<int64_t>(0, last));
    auto choice = scf::IndexSwitchOp::create(b, loc, op.getResultTypes(), index,
                                             cases, last);
    auto move = [&](Region &from, Region &to) {
      moveBranch(b, loc, from, *b.createBlock(&to));
    };
    for (unsigned i = 0; i < last; ++i)
      move(op.getBranches()[i], choice.getCaseRegions()[i]);
    move(op.getBranches()[last], choice.getDefaultRegion());
    retire(op, choice.getResults());
  }

  void convertStackPart(StackPart &part) {
    Location loc = part.op->getLoc();
    OpBuilder b(part.op);
    SmallVector<OpFoldResult> offsets;
    for (auto [offset, loop] : llvm::zip(part.offsets, part.loops)) {
      if (!offset.index) {
        offsets.push_back(b.getIndexAttr(offset.constant));
        continue;
      }
      // scale * (lower + step * iteration) + offset
      const Counter &counter = counters[loop];
      int64_t scale = offset.index->scale;
      offsets.push_back(
          affine(b, loc, counter.iteration, scale * counter.loop.step,
                 scale * counter.loop.lower + offset.index->offset));
    }
    auto indices = [&](ArrayRef<int64_t> values) {
      return getAsIndexOpFoldResult(b.getContext(), values);
    };
    SmallVector<int64_t> ones(offsets.size(), 1);
    if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(part.op)) {
      auto type = cast<RankedTensorType>(slice.getType());
      // Leave out the dimensions of size one that the next op would drop.
      Operation *user = slice->hasOneUse() ? *slice->user_begin() : nullptr;
      if (isa_and_nonnull<stablehlo::ReshapeOp>(user) &&
          isRankReducedType(
              type, cast<RankedTensorType>(user->getResult(0).getType())) ==
              SliceVerificationResult::Success) {
        Value view = tensor::ExtractSliceOp::create(
            b, loc, cast<RankedTensorType>(user->getResult(0).getType()),
            slice.getOperand(), offsets, indices(type.getShape()),
            indices(ones));
        retire(user, view);
        retire(slice, slice->getResults());
        return;
      }
      Value view = tensor::ExtractSliceOp::create(
          b, loc, type, slice.getOperand(), offsets, indices(type.getShape()),
          indices(ones));
      retire(slice, view);
      return;
    }
    auto update = cast<stablehlo::DynamicUpdateSliceOp>(part.op);
    Value source = update.getUpdate();
    auto type = cast<RankedTensorType>(source.getType());
    if (Operation *def = source.getDefiningOp(); addsUnitDims(def))
      source = def->getOperand(0);
    Value stack = tensor::InsertSliceOp::create(
        b, loc, source, update.getOperand(), offsets, indices(type.getShape()),
        indices(ones));
    retire(update, stack);
  }

  /// Returns true for a reshape or broadcast that only adds dimensions of size
  /// one.
  static bool addsUnitDims(Operation *op) {
    if (!isa_and_nonnull<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp>(op))
      return false;
    auto from = cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op))
      if (!llvm::is_sorted(broadcast.getBroadcastDimensions()) ||
          from.getNumElements() != to.getNumElements())
        return false;
    return isRankReducedType(to, from) == SliceVerificationResult::Success;
  }

  Operation *root;
  SmallVector<StackPart> parts;
  DenseMap<Operation *, Counter> counters;
  SmallVector<Operation *> dead;
};

struct ConvertStableHLOToSCFPass
    : fp8::impl::ConvertStableHLOToSCFBase<ConvertStableHLOToSCFPass> {
  void runOnOperation() override { ControlFlowConverter(getOperation()).run(); }
};

} // namespace
