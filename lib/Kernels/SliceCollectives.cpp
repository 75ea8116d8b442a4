//===- SliceCollectives.cpp - Reductions of stacks, slice by slice --------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SLICECOLLECTIVES
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A loop that accesses one slice of a stack in each iteration, and each slice
/// in one.
struct StackLoop {
  scf::ForOp loop;
  Value offset;              ///< Of the slice, in elements.
  Operation *last = nullptr; ///< The last op of the body that accesses it.
};

/// Splits one reduction.
class StackReduction {
public:
  explicit StackReduction(StartAllReduceOp start)
      : start(start), wait(cast<WaitOp>(*start.getHandle().user_begin())),
        stack(start.getInput()), slices(*start.getSlices()) {}

  LogicalResult split();

private:
  MemRefType stackType() const { return cast<MemRefType>(stack.getType()); }
  int64_t sliceElements() const {
    return stackType().getNumElements() / slices;
  }
  LogicalResult checkShard();
  std::optional<StackLoop> findLoop();
  scf::ForOp findLastAccess();
  std::optional<StackLoop> matchLoop(scf::ForOp loop);
  bool addPart(SubbufferOp part, StackLoop &found);
  Value sliceAt(OpBuilder &builder, Value buffer, Value offset);
  StartAllReduceOp startSlice(OpBuilder &builder, Value index, Value offset,
                              Value collectives);
  void startInLoop(const StackLoop &found);
  void startEach();

  StartAllReduceOp start;
  WaitOp wait;
  Value stack;
  int64_t slices;
};

} // namespace

//===----------------------------------------------------------------------===//
// The loop that makes a stack
//===----------------------------------------------------------------------===//

/// Returns the loop that accesses the stack last before the reduction does, in
/// its block; null if another op does.
scf::ForOp StackReduction::findLastAccess() {
  Value mu = start.getMu() ? memoryOf(start.getMu()) : Value();
  for (Operation *op = start->getPrevNode(); op; op = op->getPrevNode()) {
    std::optional<SmallVector<MemoryAccess>> accesses = accessesOf(op);
    if (!accesses)
      return {};
    auto accessed = [&](Value memory) {
      return llvm::any_of(*accesses, [&](const MemoryAccess &access) {
        return access.memory == memory;
      });
    };
    if (mu && accessed(mu))
      return {};
    if (accessed(stack))
      return dyn_cast<scf::ForOp>(op);
  }
  return {};
}

/// Notes a part of the stack that the body of the loop accesses. Returns false
/// if it is not the iteration's slice.
bool StackReduction::addPart(SubbufferOp part, StackLoop &found) {
  if (part->getBlock() != found.loop.getBody() ||
      part.getType().getNumElements() != sliceElements() ||
      (found.offset && found.offset != part.getOffset()))
    return false;
  found.offset = part.getOffset();
  auto strides = stridesOf(found.offset, {found.loop});
  return strides && std::abs(strides->front()) == sliceElements();
}

std::optional<StackLoop> StackReduction::matchLoop(scf::ForOp loop) {
  std::optional<APInt> trips = loop.getStaticTripCount();
  if (!trips || trips->getSExtValue() != slices)
    return std::nullopt;
  StackLoop found{loop, Value()};
  struct View {
    Value buffer;
    bool isSlice;
  };
  SmallVector<View> views{{stack, false}};
  while (!views.empty()) {
    View view = views.pop_back_val();
    for (Operation *user : view.buffer.getUsers()) {
      auto part = dyn_cast<SubbufferOp>(user);
      bool isInside = loop->isProperAncestor(user);
      if (isa<ViewLikeOpInterface>(user)) {
        bool isSlice = part && isInside && !view.isSlice;
        if (isSlice && !addPart(part, found))
          return std::nullopt;
        views.push_back({user->getResult(0), isSlice || view.isSlice});
        continue;
      }
      if (!isInside)
        continue;
      if (!view.isSlice)
        return std::nullopt;
      Operation *op = loop.getBody()->findAncestorOpInBlock(*user);
      if (!found.last || found.last->isBeforeInBlock(op))
        found.last = op;
    }
  }
  if (!found.last)
    return std::nullopt;
  return found;
}

std::optional<StackLoop> StackReduction::findLoop() {
  // Elsewhere the input of a slice may still be read when its result arrives.
  // (The offset of an empty slice does not tell its index.)
  if (start.getResult() != stack || memoryOf(stack) != stack ||
      stackType().getNumElements() == 0)
    return std::nullopt;
  scf::ForOp loop = findLastAccess();
  return loop ? matchLoop(loop) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reductions of slices
//===----------------------------------------------------------------------===//

/// Returns one slice of a buffer, which begins `offset` elements into it.
Value StackReduction::sliceAt(OpBuilder &builder, Value buffer, Value offset) {
  auto type = cast<MemRefType>(buffer.getType());
  return SubbufferOp::create(
      builder, start.getLoc(),
      MemRefType::get(type.getShape().drop_front(), type.getElementType()),
      buffer, offset);
}

StartAllReduceOp StackReduction::startSlice(OpBuilder &builder, Value index,
                                            Value offset, Value collectives) {
  Location loc = start.getLoc();
  Value input = sliceAt(builder, stack, offset), result = input, mu;
  if (start.getResult() != stack)
    result = sliceAt(builder, start.getResult(), offset);
  if (start.getMu()) {
    Value two = arith::ConstantIndexOp::create(builder, loc, 2);
    mu = sliceAt(builder, start.getMu(),
                 arith::MulIOp::create(builder, loc, index, two));
  }
  return StartAllReduceOp::create(
      builder, loc, builder.getIndexType(), start.getReduction(), input, result,
      mu, index, collectives, start.getWire(), start.getBlockAttr(),
      start.getShardAttr(), /*slices=*/IntegerAttr(), start.getLabelAttr(),
      /*number=*/IntegerAttr());
}

/// Starts to reduce each slice in the loop, as soon as the slice is complete.
void StackReduction::startInLoop(const StackLoop &found) {
  Location loc = start.getLoc();
  OpBuilder builder(found.loop);
  Value all = CollectivesOp::create(builder, loc, builder.getIndexType());
  builder.setInsertionPointAfter(found.last);
  Value elements =
      arith::ConstantIndexOp::create(builder, loc, sliceElements());
  Value index = arith::DivUIOp::create(builder, loc, found.offset, elements);
  startSlice(builder, index, found.offset, all);
  wait.getHandleMutable().set(all);
  start.erase();
}

/// Starts to reduce the slices one after another.
void StackReduction::startEach() {
  Location loc = start.getLoc();
  OpBuilder builder(start);
  for (int64_t i = 0; i < slices; ++i) {
    Value index = arith::ConstantIndexOp::create(builder, loc, i);
    Value offset =
        arith::ConstantIndexOp::create(builder, loc, i * sliceElements());
    StartAllReduceOp part = startSlice(builder, index, offset, Value());
    OpBuilder after(wait);
    WaitOp::create(after, loc, part.getHandle(), part.getBuffers());
  }
  wait.erase();
  start.erase();
}

/// The slices of a shard are those of its stack, or a single one.
LogicalResult StackReduction::checkShard() {
  if (!start.getShard())
    return success();
  auto schedule = start->getParentOfType<ScheduleOp>();
  for (unsigned i = 0; i < schedule.getNumArguments(); ++i) {
    auto shard =
        schedule.getArgAttrOfType<IntegerAttr>(i, FP8Dialect::kShardAttrName);
    auto count =
        schedule.getArgAttrOfType<IntegerAttr>(i, FP8Dialect::kSlicesAttrName);
    if (shard && shard.getInt() == static_cast<int64_t>(*start.getShard()) &&
        count && count.getInt() != slices)
      return start.emitOpError("expected ")
             << slices << " slices of shard " << shard.getInt() << " but got "
             << count.getInt();
  }
  return success();
}

LogicalResult StackReduction::split() {
  if (failed(checkShard()))
    return failure();
  if (std::optional<StackLoop> found = findLoop())
    startInLoop(*found);
  else if (start.getMu())
    startEach();
  else
    start.removeSlicesAttr();
  return success();
}

namespace {
class SliceCollectives
    : public fp8::impl::SliceCollectivesBase<SliceCollectives> {
public:
  void runOnOperation() override {
    SmallVector<StartAllReduceOp> starts;
    getOperation().walk([&](StartAllReduceOp start) {
      if (start.getSlices())
        starts.push_back(start);
    });
    for (StartAllReduceOp start : starts)
      if (failed(StackReduction(start).split()))
        return signalPassFailure();
  }
};
} // namespace
