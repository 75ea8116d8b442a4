//===- DeviceControl.cpp - Control flow on a GPU --------------------------===//
//
// The runtime makes graph nodes of the loops and branches that a GPU decides,
// and orders the other nodes.
//
//===----------------------------------------------------------------------===//

#include "ScheduleLowering.h"

#include "fp8/Kernels/Accesses.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Tells the runtime which nodes the work of the next calls follows.
void ScheduleLowering::callOrder(Value node, Value after, Value count,
                                 Location loc) {
  Type i64 = builder.getI64Type();
  auto function = runtimeFunction("fp8_order",
                                  LLVM::LLVMVoidType::get(builder.getContext()),
                                  {pointer, i64, pointer, i64});
  LLVM::CallOp::create(builder, loc, function,
                       ValueRange{step, node, after, count});
}

/// Does that for `op`, if it is a node of a graph.
void ScheduleLowering::order(Operation *op) {
  if (op->hasAttr(FP8Dialect::kNodeAttrName))
    order(op->getAttr(FP8Dialect::kNodeAttrName),
          op->getAttr(FP8Dialect::kAfterAttrName), op->getLoc());
}

void ScheduleLowering::order(Attribute number, Attribute after, Location loc) {
  ArrayRef<int64_t> nodes = cast<DenseI64ArrayAttr>(after).asArrayRef();
  Value table = nodes.empty()
                    ? LLVM::ZeroOp::create(builder, loc, pointer).getResult()
                    : addressOf(constantTable(nodes, "after", loc), loc);
  callOrder(constant(cast<IntegerAttr>(number).getInt(), loc), table,
            constant(nodes.size(), loc), loc);
}

/// Tells the runtime which nodes complete each result.
void ScheduleLowering::fetchResults() {
  Location loc = schedule.getLoc();
  Type i64 = builder.getI64Type();
  builder.setInsertionPoint(schedule.getBody().front().getTerminator());
  // The last argument is the step, which has no attributes.
  for (unsigned i = 1; i + 1 < schedule.getBody().getNumArguments(); ++i) {
    Attribute number = schedule.getArgAttr(i, FP8Dialect::kNodeAttrName);
    if (!number)
      continue;
    order(number, schedule.getArgAttr(i, FP8Dialect::kAfterAttrName), loc);
    auto fetch = runtimeFunction("fp8_fetch",
                                 LLVM::LLVMVoidType::get(builder.getContext()),
                                 {pointer, i64});
    LLVM::CallOp::create(builder, loc, fetch,
                         ValueRange{step, constant(~int64_t(i - 1), loc)});
  }
}

/// Returns a constant table; null if all strides are 0.
Value ScheduleLowering::strideTable(ArrayRef<int64_t> strides, Location loc) {
  if (llvm::all_of(strides, [](int64_t by) { return by == 0; }))
    return LLVM::ZeroOp::create(builder, loc, pointer);
  return addressOf(constantTable(strides, "strides", loc), loc);
}

/// Returns the strides by which the address of a scalar moves in loops.
Value ScheduleLowering::strideTable(Value buffer, Operation *access) {
  return strideTable(*stridesOfBuffer(buffer, deviceLoopsAround(access)),
                     access->getLoc());
}

LogicalResult ScheduleLowering::lowerKeep(memref::LoadOp load) {
  builder.setInsertionPoint(load);
  order(load);
  Location loc = load.getLoc();
  FailureOr<OperandAddress> place = operandAddressOf(load.getMemRef());
  if (failed(place))
    return failure();
  Type i64 = builder.getI64Type();
  auto keep =
      runtimeFunction("fp8_keep", LLVM::LLVMVoidType::get(builder.getContext()),
                      {pointer, pointer, i64, i64, i64, pointer, i64});
  int64_t bytes = elementBytes(load.getType());
  LLVM::CallOp::create(
      builder, loc, keep,
      ValueRange{step, addressOf(descriptionOf(kKeepKernel, loc), loc),
                 constant(conditions.at(load), loc), constant(place->code, loc),
                 place->offset ? place->offset : constant(0, loc),
                 strideTable(load.getMemRef(), load), constant(bytes, loc)});
  // Its users refer to it by its number.
  SmallVector<Operation *> dead{load};
  for (size_t i = 0; i < dead.size(); ++i)
    llvm::append_range(dead, dead[i]->getUsers());
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  return success();
}

/// Calls `function` with the condition after `what`; returns its answer.
Value ScheduleLowering::callConditionFunction(const Condition &condition,
                                              StringRef function,
                                              ArrayRef<Value> what,
                                              Location loc) {
  Type i64 = builder.getI64Type();
  SmallVector<Value> arguments{step,
                               addressOf(descriptionOf(kTestKernel, loc), loc)};
  arguments.append(what.begin(), what.end());
  for (int64_t number : {conditions.at(condition.load), condition.low,
                         condition.high, int64_t(condition.inverted)})
    arguments.push_back(constant(number, loc));
  SmallVector<Type> types{pointer, pointer};
  types.append(arguments.size() - 2, i64);
  Value answer =
      LLVM::CallOp::create(builder, loc, runtimeFunction(function, i64, types),
                           arguments)
          .getResult();
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, answer,
                              constant(0, loc));
}

/// Emits a branch with the ops of `region` before `op`.
void ScheduleLowering::branchOnGPU(const Condition &condition, Region &region,
                                   Operation *op) {
  if (region.empty() || llvm::hasSingleElement(region.front()))
    return;
  Location loc = op->getLoc();
  builder.setInsertionPoint(op);
  Value runs = callConditionFunction(condition, "fp8_branch", {}, loc);
  auto branch =
      scf::IfOp::create(builder, loc, TypeRange(), runs,
                        /*addThenBlock=*/false, /*addElseBlock=*/false);
  branch.getThenRegion().takeBody(region);
  builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  LLVM::CallOp::create(
      builder, loc,
      runtimeFunction("fp8_end", LLVM::LLVMVoidType::get(builder.getContext()),
                      {pointer}),
      step);
}

/// Lets the runtime say how many iterations of a loop the entry runs, from the
/// first one.
void ScheduleLowering::loopOnGPU(scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value trips =
      LLVM::CallOp::create(
          builder, loc,
          runtimeFunction("fp8_loop", builder.getI64Type(),
                          {pointer, pointer, builder.getI64Type()}),
          ValueRange{step, addressOf(descriptionOf(kCountKernel, loc), loc),
                     constant(loop.getStaticTripCount()->getSExtValue(), loc)})
          .getResult();
  Value count =
      arith::IndexCastOp::create(builder, loc, builder.getIndexType(), trips);
  Value end = arith::AddIOp::create(
      builder, loc, loop.getLowerBound(),
      arith::MulIOp::create(builder, loc, count, loop.getStep()));
  loop.getUpperBoundMutable().assign(end);
  builder.setInsertionPointAfter(loop);
  LLVM::CallOp::create(
      builder, loc,
      runtimeFunction("fp8_end", LLVM::LLVMVoidType::get(builder.getContext()),
                      {pointer}),
      step);
}

/// Turns loops and branches into calls of the runtime, which creates graph
/// nodes for them.
void ScheduleLowering::decideOnGPU() {
  schedule.walk([&](memref::LoadOp load) {
    conditions.try_emplace(load, conditions.size());
  });
  int64_t loops = 0;
  // Inner ops first, so that the moved regions are already lowered.
  schedule.walk([&](Operation *op) {
    Location loc = op->getLoc();
    builder.setInsertionPoint(op);
    if (op != schedule && op->getNumRegions() > 0)
      order(op);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Condition condition = *conditionOf(branch.getCondition());
      branchOnGPU(condition, branch.getThenRegion(), op);
      condition.inverted = !condition.inverted;
      branchOnGPU(condition, branch.getElseRegion(), op);
      op->erase();
    } else if (auto choice = dyn_cast<scf::IndexSwitchOp>(op)) {
      for (auto [number, region] : llvm::enumerate(choice->getRegions()))
        branchOnGPU(*conditionOf(choice, number), region, op);
      op->erase();
    } else if (isa<scf::WhileOp>(op) &&
               schedule->hasAttr(FP8Dialect::kGraphAttrName)) {
      // Its nodes have no order.
      callOrder(constant(-1, loc), LLVM::ZeroOp::create(builder, loc, pointer),
                constant(0, loc), loc);
    } else if (auto end = dyn_cast<scf::ConditionOp>(op)) {
      Condition condition = *conditionOf(end.getCondition());
      end.getConditionMutable().assign(callConditionFunction(
          condition, "fp8_while", {constant(loops++, loc)}, loc));
    } else if (auto loop = dyn_cast<scf::ForOp>(op);
               loop && loop->hasAttr(FP8Dialect::kDeviceLoopAttrName)) {
      loopOnGPU(loop);
    }
  });
}

/// Lowers a store of an integer that depends on a counter, or whose address
/// does. Returns false for other stores.
bool ScheduleLowering::lowerMovingStore(memref::StoreOp store,
                                        const OperandAddress &place) {
  SmallVector<scf::ForOp> loops = deviceLoopsAround(store);
  Value value = store.getValueToStore();
  if (loops.empty() || !value.getType().isSignlessInteger())
    return false;
  auto places = stridesOfBuffer(store.getMemRef(), loops),
       values = stridesOf(value, loops);
  auto moves = [](int64_t by) { return by != 0; };
  if (!llvm::any_of(*places, moves) && !llvm::any_of(*values, moves))
    return false;
  Location loc = store.getLoc();
  Type i64 = builder.getI64Type();
  int64_t bits = value.getType().getIntOrFloatBitWidth();
  if (bits == 1) // A boolean is a byte, 0 or 1.
    value = arith::ExtUIOp::create(builder, loc, i64, value);
  else if (bits < 64)
    value = arith::ExtSIOp::create(builder, loc, i64, value);
  auto put = runtimeFunction(
      "fp8_write_moving", LLVM::LLVMVoidType::get(builder.getContext()),
      {pointer, pointer, i64, i64, pointer, i64, i64, pointer});
  LLVM::CallOp::create(
      builder, loc, put,
      ValueRange{step, addressOf(descriptionOf(kPutKernel, loc), loc),
                 constant(place.code, loc),
                 place.offset ? place.offset : constant(0, loc),
                 strideTable(*places, loc),
                 constant(llvm::divideCeil(bits, 8), loc), value,
                 strideTable(*values, loc)});
  return true;
}
