//===- Builders.cpp - Builders for lowerings ------------------------------===//

#include "Builders.h"

#include "ScalarOps.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

RankedTensorType fp8::tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

RankedTensorType fp8::convertedType(Value value) {
  return cast<RankedTensorType>(signlessType(value.getType()));
}

SmallVector<utils::IteratorType> fp8::iterators(unsigned parallel,
                                                unsigned reduction) {
  SmallVector<utils::IteratorType> list(parallel,
                                        utils::IteratorType::parallel);
  list.append(reduction, utils::IteratorType::reduction);
  return list;
}

AffineMap fp8::leadingDims(Builder &b, unsigned loops, unsigned count) {
  return b.getMultiDimIdentityMap(loops).getSliceMap(0, count);
}

AffineExpr fp8::placeOf(Builder &b, unsigned dim, int64_t extent, int64_t size,
                        int64_t offset, int64_t step) {
  if (extent == 1 && size != 1)
    return b.getAffineConstantExpr(offset);
  AffineExpr expr = b.getAffineDimExpr(dim);
  if (offset == 0 && step == 1)
    return extent == size ? expr : expr % size;
  return expr * step + offset;
}

AffineMap fp8::scalarMap(OpBuilder &b, unsigned loops) {
  return AffineMap::get(loops, 0, b.getContext());
}

linalg::GenericOp fp8::generic(OpBuilder &b, Location loc, ValueRange inputs,
                               ValueRange outputs, ArrayRef<AffineMap> maps,
                               ArrayRef<utils::IteratorType> loops,
                               BodyBuilder body) {
  return linalg::GenericOp::create(b, loc, TypeRange(outputs), inputs, outputs,
                                   maps, loops, body);
}

Value fp8::elementwise(
    OpBuilder &b, Location loc, RankedTensorType type, ValueRange inputs,
    ArrayRef<AffineMap> inputMaps,
    function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(b.getMultiDimIdentityMap(type.getRank()));
  return generic(b, loc, inputs, emptyTensor(b, loc, type), maps,
                 iterators(type.getRank()),
                 [&](OpBuilder &inner, Location innerLoc, ValueRange args) {
                   linalg::YieldOp::create(inner, innerLoc,
                                           body(inner, innerLoc, args));
                 })
      .getResult(0);
}

Value fp8::copyThrough(OpBuilder &b, Location loc, Value input, AffineMap map,
                       RankedTensorType type) {
  return elementwise(
      b, loc, type, input, map,
      [](OpBuilder &, Location, ValueRange args) { return args[0]; });
}

Value fp8::place(OpBuilder &b, Location loc, Value input, Value destination,
                 AffineMap map) {
  unsigned rank = tensorType(input).getRank();
  return generic(b, loc, input, destination,
                 {b.getMultiDimIdentityMap(rank), map}, iterators(rank),
                 [](OpBuilder &inner, Location innerLoc, ValueRange args) {
                   linalg::YieldOp::create(inner, innerLoc, args[0]);
                 })
      .getResult(0);
}

TypedAttr fp8::splatElement(Value tensor) {
  return cast_or_null<TypedAttr>(stablehlo::getSplat(tensor));
}

Value fp8::splatConstant(OpBuilder &b, Location loc, RankedTensorType type,
                         TypedAttr element) {
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, Attribute(element)));
}

Value fp8::filled(OpBuilder &b, Location loc, RankedTensorType type,
                  Value scalar) {
  if (TypedAttr element = splatElement(scalar)) {
    Value constant = arith::ConstantOp::create(b, loc, element);
    return linalg::FillOp::create(b, loc, constant, emptyTensor(b, loc, type))
        .getResult(0);
  }
  return copyThrough(b, loc, scalar, scalarMap(b, type.getRank()), type);
}

Value fp8::constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value fp8::addIndex(OpBuilder &b, Location loc, Value l, Value r) {
  if (!l)
    return r;
  return r ? arith::AddIOp::create(b, loc, l, r).getResult() : l;
}

Value fp8::bitcastTo(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::BitcastOp::create(b, loc, type, value);
}

Value fp8::toIndex(OpBuilder &b, Location loc, Value value, Type type) {
  if (type.isUnsignedInteger(64)) {
    // A value that does not fit an index is as far out of bounds as the largest
    // index.
    Value most = arith::ConstantOp::create(
        b, loc,
        b.getIntegerAttr(value.getType(), std::numeric_limits<int64_t>::max()));
    value = arith::MinUIOp::create(b, loc, value, most);
  }
  if (type.isUnsignedInteger())
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

Value fp8::clampIndex(OpBuilder &b, Location loc, Value index, int64_t high) {
  index = arith::MaxSIOp::create(b, loc, index, constantIndex(b, loc, 0));
  return arith::MinSIOp::create(b, loc, index, constantIndex(b, loc, high));
}

Value fp8::convertFloats(OpBuilder &b, Location loc, Value tensor,
                         Type element) {
  RankedTensorType type = tensorType(tensor);
  if (type.getElementType() == element)
    return tensor;
  if (TypedAttr splat = splatElement(tensor)) {
    APFloat value = cast<FloatAttr>(splat).getValue();
    bool loses;
    value.convert(cast<FloatType>(element).getFloatSemantics(),
                  APFloat::rmNearestTiesToEven, &loses);
    return splatConstant(b, loc, type.clone(element),
                         FloatAttr::get(element, value));
  }
  return elementwise(b, loc, type.clone(element), tensor,
                     b.getMultiDimIdentityMap(type.getRank()),
                     [&](OpBuilder &inner, Location innerLoc, ValueRange args) {
                       return emitConvert(inner, innerLoc, args[0],
                                          type.getElementType(), element);
                     });
}

static Value bitcastTensor(OpBuilder &b, Location loc, Value tensor,
                           Type element) {
  RankedTensorType type = tensorType(tensor);
  if (type.getElementType() == element)
    return tensor;
  if (auto constant = tensor.getDefiningOp<arith::ConstantOp>())
    if (auto attr = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(b, loc, attr.bitcast(element));
  return elementwise(b, loc, type.clone(element), tensor,
                     b.getMultiDimIdentityMap(type.getRank()),
                     [&](OpBuilder &inner, Location at, ValueRange args) {
                       return bitcastTo(inner, at, args[0], element);
                     });
}

Value fp8::asCarried(OpBuilder &b, Location loc, Value tensor) {
  Type element = tensorType(tensor).getElementType();
  return bitcastTensor(b, loc, tensor,
                       element.isBF16() ? b.getI16Type() : element);
}

Value fp8::fromCarried(OpBuilder &b, Location loc, Value tensor, Type element) {
  return bitcastTensor(b, loc, tensor, element);
}

Value fp8::padded(OpBuilder &b, Location loc, Value input, Value scalar,
                  RankedTensorType type, ArrayRef<int64_t> low,
                  ArrayRef<int64_t> interior) {
  RankedTensorType inputType = tensorType(input);
  unsigned rank = type.getRank();
  // Elements that negative padding cuts off are not read.
  SmallVector<int64_t> sizes;
  SmallVector<AffineExpr> from, to;
  bool cut = false;
  for (unsigned i = 0; i < rank; ++i) {
    int64_t step = interior[i] + 1;
    int64_t begin = low[i] < 0 ? llvm::divideCeil(-low[i], step) : 0;
    int64_t room = type.getDimSize(i) - low[i];
    int64_t end = std::min(inputType.getDimSize(i),
                           room <= 0 ? int64_t(0)
                                     : int64_t(llvm::divideCeil(room, step)));
    end = std::max(end, begin);
    cut |= end - begin != inputType.getDimSize(i);
    sizes.push_back(end - begin);
    int64_t extent = end - begin;
    from.push_back(placeOf(b, i, extent, inputType.getDimSize(i), begin));
    to.push_back(
        placeOf(b, i, extent, type.getDimSize(i), low[i] + begin * step, step));
  }
  Value destination = filled(b, loc, type, scalar);
  if (llvm::is_contained(sizes, 0))
    return destination;
  if (cut)
    input = copyThrough(b, loc, input,
                        AffineMap::get(rank, 0, from, b.getContext()),
                        inputType.clone(sizes));
  return place(b, loc, input, destination,
               AffineMap::get(rank, 0, to, b.getContext()));
}

Value fp8::reshaped(OpBuilder &b, Location loc, Value input,
                    RankedTensorType type) {
  RankedTensorType from = tensorType(input);
  if (from == type)
    return input;
  ArrayRef<int64_t> source = from.getShape(), target = type.getShape();
  if (llvm::is_contained(source, 0))
    return emptyTensor(b, loc, type);
  if (target.empty())
    return tensor::CollapseShapeOp::create(b, loc, type, input,
                                           ArrayRef<ReassociationIndices>());
  if (source.empty())
    return tensor::ExpandShapeOp::create(b, loc, type, input,
                                         ArrayRef<ReassociationIndices>());
  SmallVector<ReassociationIndices> collapse, expand;
  SmallVector<int64_t> common;
  size_t i = 0, j = 0;
  while (i < source.size() && j < target.size()) {
    ReassociationIndices left = {int64_t(i)}, right = {int64_t(j)};
    int64_t p = source[i++], q = target[j++];
    while (p != q) {
      if (p < q) {
        left.push_back(i);
        p *= source[i++];
      } else {
        right.push_back(j);
        q *= target[j++];
      }
    }
    collapse.push_back(left);
    expand.push_back(right);
    common.push_back(p);
  }
  // Only extents of 1 are left.
  for (; i < source.size(); ++i)
    collapse.back().push_back(i);
  for (; j < target.size(); ++j)
    expand.back().push_back(j);
  if (common.size() != source.size())
    input = tensor::CollapseShapeOp::create(b, loc, from.clone(common), input,
                                            collapse);
  if (common.size() != target.size())
    input = tensor::ExpandShapeOp::create(b, loc, type, input, expand);
  return input;
}

Value fp8::dilated(OpBuilder &b, Location loc, Value input, Value scalar,
                   ArrayRef<std::pair<int64_t, int64_t>> pad,
                   ArrayRef<int64_t> dilation) {
  RankedTensorType from = tensorType(input);
  SmallVector<int64_t> shape, low, interior;
  for (int64_t i = 0; i < from.getRank(); ++i) {
    int64_t size = from.getDimSize(i);
    int64_t spread = size == 0 ? 0 : (size - 1) * dilation[i] + 1;
    shape.push_back(
        std::max<int64_t>(spread + pad[i].first + pad[i].second, 0));
    low.push_back(pad[i].first);
    interior.push_back(dilation[i] - 1);
  }
  auto isZero = [](int64_t size) { return size == 0; };
  // (Dilated elements and a negative padding may have the input's shape, too.)
  if (ArrayRef(shape) == from.getShape() && llvm::all_of(low, isZero) &&
      llvm::all_of(interior, isZero))
    return input;
  return padded(b, loc, input, scalar, from.clone(shape), low, interior);
}

SmallVector<Value> fp8::loopNest(
    OpBuilder &b, Location loc, ArrayRef<int64_t> extents, ValueRange inits,
    SmallVector<Value> &indices,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)> body) {
  if (extents.empty())
    return body(b, loc, inits);
  auto loop = scf::ForOp::create(
      b, loc, constantIndex(b, loc, 0), constantIndex(b, loc, extents[0]),
      constantIndex(b, loc, 1), inits,
      [&](OpBuilder &inner, Location innerLoc, Value index,
          ValueRange carried) {
        indices.push_back(index);
        scf::YieldOp::create(inner, innerLoc,
                             loopNest(inner, innerLoc, extents.drop_front(),
                                      carried, indices, body));
        indices.pop_back();
      });
  // Mark each loop of the nest, because an outer loop of one iteration is
  // folded.
  markIrregular(loop);
  return SmallVector<Value>(loop.getResults());
}
