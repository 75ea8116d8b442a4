//===- Payload.cpp - Bodies of structured ops on vectors ------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

void KernelLowering::mapArguments(linalg::GenericOp op, const Nest &nest,
                                  Loops &loops, int64_t lanes,
                                  ValueRange running, IRMapping &mapping) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument arg = op.getBody()->getArgument(input->getOperandNumber());
    if (!arg.use_empty())
      mapping.map(
          arg, load(input->get(), indexingMap(op, *input), nest, loops, lanes));
  }
  for (auto [arg, value] : llvm::zip(op.getRegionOutputArgs(), running))
    if (value)
      mapping.map(arg, value);
}

/// Emits the index of a loop; along the vector loop it is a vector of
/// consecutive indices.
Value KernelLowering::emitIndex(unsigned dim, const Nest &nest, Loops &loops,
                                int64_t lanes) {
  Value scalar = loops.index[dim];
  if (lanes == 1 || dim != nest.vectorLoop)
    return scalar;
  auto type = VectorType::get({lanes}, builder.getIndexType());
  Value step = vector::StepOp::create(builder, loc, type);
  return arith::AddIOp::create(builder, loc, broadcast(scalar, lanes), step);
}

/// Emits loads at indices that differ between lanes. `hasLaneIndex` tells that
/// the last index is a vector of consecutive ones.
Value KernelLowering::emitGather(memref::LoadOp gather,
                                 SmallVector<Value> indices, bool hasLaneIndex,
                                 int64_t lanes) {
  auto isScalar = [](Value v) { return !isa<VectorType>(v.getType()); };
  Value memref = gather.getMemRef();
  Type type = gather.getType();
  if (llvm::all_of(indices, isScalar))
    return loadElement(memref, indices, type);
  auto vectorType = VectorType::get({lanes}, type);
  if (hasLaneIndex && llvm::all_of(ArrayRef(indices).drop_back(), isScalar) &&
      !type.isInteger(1)) {
    indices.back() = lane(indices.back(), 0);
    return vector::LoadOp::create(builder, loc, vectorType, memref, indices);
  }
  SmallVector<Value> elements;
  for (int64_t i = 0; i < lanes; ++i) {
    SmallVector<Value> at;
    for (Value index : indices)
      at.push_back(isScalar(index) ? index : lane(index, i));
    elements.push_back(loadElement(memref, at, type));
  }
  return vector::FromElementsOp::create(builder, loc, vectorType, elements);
}

/// Emits an op of a payload, on vectors if any operand is a vector.
void KernelLowering::emitPayloadOp(Operation &op, int64_t lanes,
                                   IRMapping &mapping) {
  bool vectors = llvm::any_of(op.getOperands(), [&](Value operand) {
    return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
  });
  if (!vectors) {
    builder.clone(op, mapping);
    return;
  }
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(broadcast(mapping.lookupOrDefault(operand), lanes));
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(VectorType::get({lanes}, type));
  Operation *copy = builder.create(loc, op.getName().getIdentifier(), operands,
                                   types, op.getAttrs());
  if (op.getPropertiesStorageSize())
    copy->copyProperties(op.getPropertiesStorage());
  mapping.map(op.getResults(), copy->getResults());
}

/// Emits one op of the nest at the current indices. `running` holds the current
/// values of its outputs; returns what it yields.
SmallVector<Value> KernelLowering::emitPayload(linalg::GenericOp op,
                                               const Nest &nest, Loops &loops,
                                               int64_t lanes,
                                               ValueRange running) {
  IRMapping mapping;
  mapArguments(op, nest, loops, lanes, running, mapping);
  llvm::SmallDenseSet<Value> laneIndices; // vectors of consecutive indices
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      Value value = emitIndex(index.getDim(), nest, loops, lanes);
      if (isa<VectorType>(value.getType()))
        laneIndices.insert(value);
      mapping.map(index.getResult(), value);
    } else if (auto gather = dyn_cast<memref::LoadOp>(inner)) {
      SmallVector<Value> indices;
      for (Value index : gather.getIndices())
        indices.push_back(mapping.lookupOrDefault(index));
      bool hasLaneIndex =
          !indices.empty() && laneIndices.contains(indices.back());
      mapping.map(gather.getResult(),
                  emitGather(gather, indices, hasLaneIndex, lanes));
    } else {
      emitPayloadOp(inner, lanes, mapping);
    }
  }
  SmallVector<Value> results;
  for (Value value : op.getBody()->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

/// Emits all ops of the nest at the current indices. Stores elementwise results
/// unless only this nest reads them; returns the new accumulators.
SmallVector<Value> KernelLowering::emitBody(const Nest &nest, Loops &loops,
                                            int64_t lanes,
                                            ValueRange accumulators) {
  SmallVector<Value> next;
  for (linalg::GenericOp op : nest.ops) {
    unsigned outputs = op.getOutputs().size();
    if (!allParallel(op)) {
      SmallVector<Value> results = emitPayload(
          op, nest, loops, lanes, accumulators.slice(next.size(), outputs));
      for (auto [value, acc] :
           llvm::zip(results, accumulators.slice(next.size(), outputs)))
        next.push_back(isa<VectorType>(acc.getType()) ? broadcast(value, lanes)
                                                      : value);
      continue;
    }
    SmallVector<Value> running;
    for (unsigned i = 0; i < outputs; ++i)
      running.push_back(op.getRegionOutputArgs()[i].use_empty()
                            ? Value()
                            : initialValue(op, i, nest, loops, lanes));
    SmallVector<Value> results = emitPayload(op, nest, loops, lanes, running);
    for (auto [value, init] : llvm::zip(results, op.getDpsInitsMutable())) {
      AffineMap map = indexingMap(op, init);
      forwarded[init.get()] = value;
      bool inNestOnly =
          locals.contains(init.get()) &&
          llvm::all_of(init.get().getUsers(), [&](Operation *user) {
            return llvm::is_contained(nest.ops, user);
          });
      if (!inNestOnly)
        store(value, init.get(), map, nest, loops, lanes);
    }
  }
  forwarded.clear();
  return next;
}
