//===- Accumulators.cpp - Sums over the ops of a step ---------------------===//

#include "Accumulators.h"
#include "TakenUpdate.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

unsigned Accumulators::add(DenseElementsAttr initial, Combine combine) {
  accumulators.push_back({Attribute(initial), std::move(combine)});
  return accumulators.size() - 1;
}

unsigned Accumulators::add(BlockArgument initial, Combine combine) {
  accumulators.push_back({Value(initial), std::move(combine)});
  return accumulators.size() - 1;
}

void Accumulators::record(unsigned accumulator, Value value,
                          ArrayRef<LayerSlot> slots, RankedTensorType type) {
  Operation *op = value.getDefiningOp();
  if (!type)
    type = cast<RankedTensorType>(value.getType());
  records[op].push_back(
      {accumulator, value, SmallVector<LayerSlot>(slots), type});
}

void Accumulators::combine(const Record &record,
                           MutableArrayRef<Value> values) {
  Location loc = record.value.getLoc();
  builder.setInsertionPointAfterValue(record.value);
  Value &whole = values[record.accumulator];
  Value before = sliceSlots(builder, loc, whole, record.slots, record.type);
  Value after = accumulators[record.accumulator].combine(builder, loc, before,
                                                         record.value);
  whole = updateSlots(builder, loc, whole, record.slots, after);
}

void Accumulators::threadLoop(Operation *loop, ArrayRef<unsigned> touched,
                              MutableArrayRef<Value> values) {
  SmallVector<Value> operands(loop->getOperands());
  SmallVector<Type> results(loop->getResultTypes());
  unsigned first = results.size();
  for (unsigned number : touched) {
    operands.push_back(values[number]);
    results.push_back(values[number].getType());
    for (Region &region : loop->getRegions())
      region.addArgument(values[number].getType(), loop->getLoc());
  }
  Operation *old = loop;
  loop = cloneAroundRegions(builder, old, operands, results);
  old->erase();
  Block &body = loop->getRegion(1).front();
  SmallVector<Value> inside(values);
  for (auto [index, number] : llvm::enumerate(touched))
    inside[number] = body.getArgument(first + index);
  thread(body, inside);
  for (auto [index, number] : llvm::enumerate(touched)) {
    Operation *yield = body.getTerminator();
    yield->insertOperands(yield->getNumOperands(), inside[number]);
    values[number] = loop->getResult(first + index);
  }
}

void Accumulators::threadBranches(Operation *op, ArrayRef<unsigned> touched,
                                  MutableArrayRef<Value> values) {
  SmallVector<Type> results(op->getResultTypes());
  unsigned first = results.size();
  for (unsigned number : touched)
    results.push_back(values[number].getType());
  Operation *old = op;
  op = cloneAroundRegions(builder, old, SmallVector<Value>(old->getOperands()),
                          results);
  old->erase();
  for (Region &region : op->getRegions()) {
    SmallVector<Value> inside(values);
    thread(region.front(), inside);
    Operation *yield = region.front().getTerminator();
    for (unsigned number : touched)
      yield->insertOperands(yield->getNumOperands(), inside[number]);
  }
  for (auto [index, number] : llvm::enumerate(touched))
    values[number] = op->getResult(first + index);
}

/// Passes the accumulators through `block`, from op to op: `values` are their
/// values so far.
void Accumulators::thread(Block &block, MutableArrayRef<Value> values) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto found = records.find(&op); found != records.end())
      for (const Record &record : found->second)
        combine(record, values);
    auto found = nested.find(&op);
    if (found == nested.end())
      continue;
    SmallVector<unsigned> touched = llvm::to_vector(found->second);
    llvm::sort(touched);
    if (isa<stablehlo::WhileOp>(op))
      threadLoop(&op, touched, values);
    else
      threadBranches(&op, touched, values);
  }
}

SmallVector<Value> Accumulators::materialize() {
  // Do this only now, because loops may have been replaced before.
  for (auto &[op, found] : records)
    for (Operation *parent = op->getParentOp(); parent != function;
         parent = parent->getParentOp())
      for (const Record &record : found)
        nested[parent].insert(record.accumulator);
  Block &body = function.getBody().front();
  builder.setInsertionPointToStart(&body);
  SmallVector<Value> values;
  for (const Accumulator &accumulator : accumulators) {
    if (auto value = dyn_cast<Value>(accumulator.initial))
      values.push_back(value);
    else
      values.push_back(stablehlo::ConstantOp::create(
          builder, function.getLoc(),
          cast<ElementsAttr>(cast<Attribute>(accumulator.initial))));
  }
  thread(body, values);
  return values;
}
