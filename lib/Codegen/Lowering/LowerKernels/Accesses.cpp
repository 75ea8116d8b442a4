//===- Accesses.cpp - Loads and stores of a task --------------------------===//

#include "Booleans.h"
#include "KernelLowering.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Returns the memref behind `buffer`, and the indices that `map` gives at
/// `dims`.
Value KernelLowering::resolve(Value buffer, AffineMap map, ArrayRef<Value> dims,
                              SmallVectorImpl<Value> &indices) {
  auto it = locals.find(buffer);
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    SmallVector<OpFoldResult> operands;
    for (Value dim : dims)
      operands.push_back(dim);
    OpFoldResult folded = affine::makeComposedFoldedAffineApply(
        builder, loc, AffineMap::get(map.getNumDims(), 0, expr), operands);
    Value index = getValueOrCreateConstantIndexOp(builder, loc, folded);
    if (it != locals.end() && it->second.domainLoop[position] >= 0)
      index = arith::SubIOp::create(
          builder, loc, index, tileOffsets[it->second.domainLoop[position]]);
    if (it != locals.end() && it->second.keyDim == position && firstKey)
      index = arith::SubIOp::create(builder, loc, index, firstKey);
    indices.push_back(index);
  }
  return it == locals.end() ? buffer : it->second.memref;
}

Value KernelLowering::loadElement(Value memref, ValueRange indices, Type type) {
  Value value = memref::LoadOp::create(builder, loc, memref, indices);
  if (type.isInteger(1))
    value = arith::TruncIOp::create(builder, loc, type, value);
  return value;
}

void KernelLowering::storeElement(Value value, Value memref,
                                  ValueRange indices) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(builder, loc, type, value);
  memref::StoreOp::create(builder, loc, value, memref, indices);
}

/// Rewrites the accesses of a loop nest to boolean buffers, which are now
/// bytes.
void KernelLowering::accessBooleansAsBytes(Operation *nest) {
  SmallVector<Operation *> accesses;
  nest->walk([&](Operation *op) {
    if (isa<memref::LoadOp, memref::StoreOp>(op))
      accesses.push_back(op);
  });
  OpBuilder::InsertionGuard guard(builder);
  for (Operation *op : accesses) {
    builder.setInsertionPoint(op);
    if (auto read = dyn_cast<memref::LoadOp>(op)) {
      if (!read.getType().isInteger(1))
        continue;
      read.replaceAllUsesWith(
          loadElement(read.getMemRef(), read.getIndices(), read.getType()));
    } else {
      auto write = cast<memref::StoreOp>(op);
      if (!write.getValue().getType().isInteger(1))
        continue;
      storeElement(write.getValue(), write.getMemRef(), write.getIndices());
    }
    op->erase();
  }
}

Value KernelLowering::lane(Value vector, int64_t index) {
  return vector::ExtractOp::create(builder, loc, vector, index);
}

Value KernelLowering::broadcast(Value value, int64_t lanes) {
  if (lanes == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(
      builder, loc, VectorType::get({lanes}, value.getType()), value);
}

/// Returns true if the elements of `buffer` are booleans, which are stored as
/// bytes.
bool KernelLowering::holdsBooleans(Value buffer) {
  auto it = locals.find(buffer);
  if (it != locals.end())
    return it->second.type.getElementType().isInteger(1);
  return boolArguments.contains(buffer);
}

Stride KernelLowering::strideAt(AffineMap map, const Nest &nest,
                                int64_t lanes) {
  return lanes == 1 ? Stride::Invariant
                    : strideOf(map, *nest.vectorLoop,
                               nest.startsAligned ? nest.lanes : 1);
}

/// Does the same as `resolve` for one lane of a vector.
Value KernelLowering::placeOfLane(Value buffer, AffineMap map, const Nest &nest,
                                  Loops &loops, int64_t index,
                                  SmallVectorImpl<Value> &indices) {
  SmallVector<Value> dims = loops.index;
  dims[*nest.vectorLoop] = arith::AddIOp::create(
      builder, loc, loops.index[*nest.vectorLoop], constantIndex(index));
  return resolve(buffer, map, dims, indices);
}

Value KernelLowering::load(Value buffer, AffineMap map, const Nest &nest,
                           Loops &loops, int64_t lanes) {
  if (Value known = forwarded.lookup(buffer))
    return known;
  bool isBool = holdsBooleans(buffer);
  Type type =
      isBool ? builder.getI1Type() : getElementTypeOrSelf(buffer.getType());
  SmallVector<Value> indices;
  Stride stride = strideAt(map, nest, lanes);
  if (stride == Stride::Invariant) {
    Value memref = resolve(buffer, map, loops.index, indices);
    return loadElement(memref, indices, type);
  }
  if (stride == Stride::Contiguous) {
    Value memref = resolve(buffer, map, loops.index, indices);
    auto vectorType = VectorType::get({lanes}, storageType(type));
    auto value =
        vector::LoadOp::create(builder, loc, vectorType, memref, indices);
    if (auto bytes = alignmentOf(buffer, map, nest, lanes))
      value.setAlignment(*bytes);
    if (isBool)
      return arith::TruncIOp::create(builder, loc,
                                     VectorType::get({lanes}, type), value);
    return value;
  }
  SmallVector<Value> elements;
  for (int64_t i = 0; i < lanes; ++i) {
    indices.clear();
    Value memref = placeOfLane(buffer, map, nest, loops, i, indices);
    elements.push_back(loadElement(memref, indices, type));
  }
  return vector::FromElementsOp::create(
      builder, loc, VectorType::get({lanes}, type), elements);
}

void KernelLowering::store(Value value, Value buffer, AffineMap map,
                           const Nest &nest, Loops &loops, int64_t lanes) {
  SmallVector<Value> indices;
  Stride stride = strideAt(map, nest, lanes);
  if (stride == Stride::Invariant) {
    Value memref = resolve(buffer, map, loops.index, indices);
    storeElement(value, memref, indices);
    return;
  }
  value = broadcast(value, lanes);
  if (stride == Stride::Contiguous) {
    Value memref = resolve(buffer, map, loops.index, indices);
    Type type = cast<VectorType>(value.getType()).getElementType();
    if (type.isInteger(1))
      value = arith::ExtUIOp::create(
          builder, loc, VectorType::get({lanes}, storageType(type)), value);
    auto write = vector::StoreOp::create(builder, loc, value, memref, indices);
    if (auto bytes = alignmentOf(buffer, map, nest, lanes))
      write.setAlignment(*bytes);
    return;
  }
  for (int64_t i = 0; i < lanes; ++i) {
    indices.clear();
    Value memref = placeOfLane(buffer, map, nest, loops, i, indices);
    storeElement(lane(value, i), memref, indices);
  }
}

/// Returns the value of output `result` of `op` before the nest.
Value KernelLowering::initialValue(linalg::GenericOp op, unsigned result,
                                   const Nest &nest, Loops &loops,
                                   int64_t lanes) {
  if (Value constant = constantInit.lookup({op, result}))
    return broadcast(constant, lanes);
  return loadOutput(op, result, nest, loops, lanes);
}

/// Returns what output `result` of `op` holds in memory.
Value KernelLowering::loadOutput(linalg::GenericOp op, unsigned result,
                                 const Nest &nest, Loops &loops,
                                 int64_t lanes) {
  OpOperand &init = op.getDpsInitsMutable()[result];
  return broadcast(load(init.get(), indexingMap(op, init), nest, loops, lanes),
                   lanes);
}
