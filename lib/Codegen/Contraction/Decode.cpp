//===- Decode.cpp - Exact decoding to f32 and bf16 ------------------------===//

#include "LaneBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

Value LaneBuilder::decode(Value v) {
  Type type = v.getType(), element = getElementTypeOrSelf(type);
  if (element.isF32())
    return v;
  Type f32 = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    f32 = VectorType::get(vector.getShape(), f32);
  return arith::ExtFOp::create(b, loc, f32, v);
}

Value LaneBuilder::decodeToWords(Value v) {
  Type element = getElementTypeOrSelf(v.getType());
  auto like = [&](Type element) -> Type {
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      return VectorType::get(vector.getShape(), element);
    return element;
  };
  if (element.isBF16())
    return arith::BitcastOp::create(b, loc, like(b.getI16Type()), v);
  auto vector = dyn_cast<VectorType>(v.getType());
  // The table ignores the sign, which is part of the NaN of FNUZ formats.
  if (vector && target.hasVBMI &&
      !isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(element)) {
    int64_t n = vector.getDimSize(0);
    Value bytes = arith::BitcastOp::create(b, loc, like(b.getI8Type()), v);
    if (n > 64) {
      assert(n == 128 && "lines are cut into at most 128 elements");
      return concat(decodeByTable(slice(bytes, 0, 64), element),
                    decodeByTable(slice(bytes, 64, 64), element));
    }
    if (n < 64) {
      // The other elements are not used.
      SmallVector<int64_t> mask;
      for (int64_t i = 0; i < 64; ++i)
        mask.push_back(i < n ? i : vector::ShuffleOp::kPoisonIndex);
      bytes = vector::ShuffleOp::create(b, loc, bytes, bytes, mask);
    }
    return slice(decodeByTable(bytes, element), 0, n);
  }
  Type ints = like(b.getI32Type());
  Value bits = arith::BitcastOp::create(b, loc, ints, decode(v));
  return arith::TruncIOp::create(
      b, loc, like(b.getI16Type()),
      arith::ShRUIOp::create(b, loc, bits, intConstant(ints, 16)));
}

/// Looks up both bytes of the 128 magnitudes in registers.
Value LaneBuilder::decodeByTable(Value bytes, Type element) {
  auto type = cast<VectorType>(bytes.getType());
  auto table = [&](bool high, int64_t from) -> Value {
    SmallVector<int8_t> entries;
    for (int64_t code = from; code < from + 64; ++code) {
      APFloat value(cast<FloatType>(element).getFloatSemantics(),
                    APInt(8, code));
      bool inexact;
      value.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &inexact);
      uint64_t bits = value.bitcastToAPInt().getZExtValue();
      entries.push_back(int8_t(high ? bits >> 8 : bits));
    }
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(entries)));
  };
  auto lookUp = [&](bool high) -> Value {
    return LLVM::CallIntrinsicOp::create(
               b, loc, type,
               b.getStringAttr("llvm.x86.avx512.vpermi2var.qi.512"),
               ValueRange{table(high, 0), bytes, table(high, 64)})
        .getResult(0);
  };
  Value low = lookUp(false), high = lookUp(true);
  // The index has seven bits: the lookup ignores the sign.
  high = arith::OrIOp::create(
      b, loc, high,
      arith::AndIOp::create(b, loc, bytes, intConstant(type, -128)));
  Value both = vector::InterleaveOp::create(b, loc, low, high);
  return vector::BitCastOp::create(b, loc,
                                   VectorType::get({64}, b.getI16Type()), both);
}

Value LaneBuilder::loadPairs(Ref ref, int64_t lanes, int64_t width) {
  Value words = decodeToWords(loadLanes(ref, lanes, width));
  return vector::BitCastOp::create(b, loc, f32Vector(width / 2), words);
}

Value LaneBuilder::loadInterleaved(Ref ref, std::optional<Ref> second,
                                   int64_t lanes, int64_t width) {
  Value x = decodeToWords(loadLanes(ref, lanes, width));
  Value y = second ? decodeToWords(loadLanes(*second, lanes, width))
                   : intConstant(x.getType(), 0);
  return vector::BitCastOp::create(b, loc, f32Vector(width),
                                   vector::InterleaveOp::create(b, loc, x, y));
}
