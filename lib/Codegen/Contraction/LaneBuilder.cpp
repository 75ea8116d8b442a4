//===- LaneBuilder.cpp - Vector loads, stores and shuffles ----------------===//

#include "LaneBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

Value LaneBuilder::intConstant(Type like, int64_t value) {
  Type element = getElementTypeOrSelf(like);
  TypedAttr attr = b.getIntegerAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(like))
    attr = DenseElementsAttr::get(vector, attr);
  return arith::ConstantOp::create(b, loc, attr);
}

Value LaneBuilder::slice(Value vector, int64_t from, int64_t count) {
  auto type = cast<VectorType>(vector.getType());
  if (from == 0 && type.getDimSize(0) == count)
    return vector;
  SmallVector<int64_t> mask;
  for (int64_t i = 0; i < count; ++i)
    mask.push_back(from + i);
  return vector::ShuffleOp::create(b, loc, vector, vector, mask);
}

Value LaneBuilder::concat(Value x, Value y) {
  int64_t n = cast<VectorType>(x.getType()).getDimSize(0) +
              cast<VectorType>(y.getType()).getDimSize(0);
  auto mask = llvm::to_vector(llvm::seq<int64_t>(0, n));
  return vector::ShuffleOp::create(b, loc, x, y, mask);
}

Value LaneBuilder::loadLanes(Ref ref, int64_t lanes, int64_t width) {
  Type element = cast<MemRefType>(ref.memref.getType()).getElementType();
  VectorType type = VectorType::get({width}, element);
  if (lanes == width)
    return vector::LoadOp::create(b, loc, type, ref.memref, ref.index);
  // The zero of an f8 type is made from integers, which every lowering
  // supports.
  auto zero = [&](VectorType type) -> Value {
    Type bits = b.getIntegerType(element.getIntOrFloatBitWidth());
    VectorType bitsType = VectorType::get(type.getShape(), bits);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(bitsType));
    return arith::BitcastOp::create(b, loc, type, zero);
  };
  if (target.vectorBits == 512) {
    Value mask = vector::ConstantMaskOp::create(
        b, loc, VectorType::get({width}, b.getI1Type()),
        ArrayRef<int64_t>{lanes});
    return vector::MaskedLoadOp::create(
        b, loc, type, ref.memref, ValueRange{ref.index}, mask, zero(type));
  }
  VectorType part = VectorType::get({lanes}, element);
  Value loaded = vector::LoadOp::create(b, loc, part, ref.memref, ref.index);
  SmallVector<int64_t> indices;
  for (int64_t i = 0; i < width; ++i)
    indices.push_back(std::min(i, lanes));
  return vector::ShuffleOp::create(b, loc, loaded, zero(part), indices);
}

void LaneBuilder::store(Value vector, Ref ref, int64_t lanes) {
  int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
  if (lanes == width) {
    vector::StoreOp::create(b, loc, vector, ref.memref, ref.index);
    return;
  }
  Value mask = vector::ConstantMaskOp::create(
      b, loc, VectorType::get({width}, b.getI1Type()),
      ArrayRef<int64_t>{lanes});
  vector::MaskedStoreOp::create(b, loc, ref.memref, ValueRange{ref.index}, mask,
                                vector);
}

void LaneBuilder::prefetch(Ref ref, Cache cache, bool forWriting) {
  memref::PrefetchOp::create(b, loc, ref.memref, ValueRange{ref.index},
                             forWriting, int(cache), /*isDataCache=*/true);
}

/// Transposes square blocks in registers: unpacks within 128 bits, then moves
/// the 128-bit parts.
void LaneBuilder::transpose(SmallVectorImpl<Value> &rows) {
  int64_t n = rows.size();
  auto shuffle = [&](Value x, Value y, function_ref<int64_t(int64_t)> lane) {
    SmallVector<int64_t> mask;
    for (int64_t i = 0; i < n; ++i)
      mask.push_back(lane(i));
    return Value(vector::ShuffleOp::create(b, loc, x, y, mask));
  };
  auto unpack = [&](Value x, Value y, int64_t group, bool high) {
    return shuffle(x, y, [&](int64_t i) {
      int64_t part = i / 4 * 4, in = i % 4;
      int64_t from = group == 1 ? in / 2 + 2 * high : in % 2 + 2 * high;
      bool second = group == 1 ? in % 2 : in / 2;
      return part + from + (second ? n : 0);
    });
  };
  SmallVector<Value> t(n), u(n);
  for (int64_t i = 0; i < n; i += 2) {
    t[i] = unpack(rows[i], rows[i + 1], 1, false);
    t[i + 1] = unpack(rows[i], rows[i + 1], 1, true);
  }
  for (int64_t i = 0; i < n; i += 4) {
    u[i] = unpack(t[i], t[i + 2], 2, false);
    u[i + 1] = unpack(t[i], t[i + 2], 2, true);
    u[i + 2] = unpack(t[i + 1], t[i + 3], 2, false);
    u[i + 3] = unpack(t[i + 1], t[i + 3], 2, true);
  }
  // Part q of u[4g + c] holds column 4q + c of the rows 4g .. 4g+3.
  auto parts = [&](Value x, Value y, bool odd) {
    int64_t half = n / 2;
    return shuffle(x, y, [&](int64_t i) {
      int64_t part = i % half / 4 * 2 + odd;
      return part * 4 + i % 4 + (i >= half ? n : 0);
    });
  };
  for (int64_t c = 0; c < 4; ++c) {
    if (n == 4) {
      rows[c] = u[c];
    } else if (n == 8) {
      rows[c] = parts(u[c], u[4 + c], false);
      rows[4 + c] = parts(u[c], u[4 + c], true);
    } else {
      for (bool odd : {false, true}) {
        Value x = parts(u[c], u[4 + c], odd);
        Value y = parts(u[8 + c], u[12 + c], odd);
        rows[4 * odd + c] = parts(x, y, false);
        rows[8 + 4 * odd + c] = parts(x, y, true);
      }
    }
  }
}
