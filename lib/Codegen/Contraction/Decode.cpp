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

/// The table ignores the sign, which is part of the NaN of FNUZ formats.
bool LaneBuilder::isInTable(Type element) const {
  return target.hasVBMI && element.getIntOrFloatBitWidth() == 8 &&
         !isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(element);
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
  if (vector && isInTable(element)) {
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

std::pair<Value, Value> LaneBuilder::lookUpBytes(Value bytes, Type element) {
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
  return {low, high};
}

Value LaneBuilder::decodeByTable(Value bytes, Type element) {
  auto [low, high] = lookUpBytes(bytes, element);
  Value both = vector::InterleaveOp::create(b, loc, low, high);
  return vector::BitCastOp::create(b, loc,
                                   VectorType::get({64}, b.getI16Type()), both);
}

SmallVector<Value> LaneBuilder::decodeLines(ArrayRef<Value> lines,
                                            bool paired) {
  Type element = getElementTypeOrSelf(lines[0].getType());
  int64_t width = 64 / lines.size();
  SmallVector<Value> parts;
  for (Value line : lines)
    parts.push_back(arith::BitcastOp::create(
        b, loc, VectorType::get({width}, b.getI8Type()), line));
  while (parts.size() > 1) {
    for (unsigned i = 0; i < parts.size() / 2; ++i)
      parts[i] = concat(parts[2 * i], parts[2 * i + 1]);
    parts.resize(parts.size() / 2);
  }
  auto [low, high] = lookUpBytes(parts[0], element);
  SmallVector<Value> results;
  for (int64_t from = 0; from < 64; from += paired ? 2 * width : width) {
    SmallVector<int64_t> mask;
    for (int64_t i = from; i < from + width; ++i) {
      llvm::append_values(mask, i, 64 + i);
      if (paired)
        llvm::append_values(mask, i + width, 64 + i + width);
    }
    Value words = vector::ShuffleOp::create(b, loc, low, high, mask);
    results.push_back(vector::BitCastOp::create(
        b, loc, f32Vector(paired ? width : width / 2), words));
  }
  return results;
}

int64_t LaneBuilder::linesOfLookup(Ref line, int64_t width) const {
  bool isShort = width == 16 || width == 32;
  return isShort && isInTable(elementOf(line)) ? 64 / width : 0;
}

SmallVector<Value> LaneBuilder::decodeGroups(ArrayRef<Ref> lines, int64_t lanes,
                                             int64_t width, bool paired) {
  SmallVector<Value> results;
  for (; !lines.empty(); lines = lines.drop_front(64 / width)) {
    SmallVector<Value> loaded;
    for (Ref line : lines.take_front(64 / width))
      loaded.push_back(loadLanes(line, lanes, width));
    llvm::append_range(results, decodeLines(loaded, paired));
  }
  return results;
}

SmallVector<Value> LaneBuilder::loadPairs(ArrayRef<Ref> lines, int64_t lanes,
                                          int64_t width) {
  int64_t group = linesOfLookup(lines[0], width);
  if (group && lines.size() % group == 0)
    return decodeGroups(lines, lanes, width, /*paired=*/false);
  SmallVector<Value> results;
  for (Ref line : lines) {
    Value words = decodeToWords(loadLanes(line, lanes, width));
    results.push_back(
        vector::BitCastOp::create(b, loc, f32Vector(width / 2), words));
  }
  return results;
}

SmallVector<Value> LaneBuilder::loadInterleaved(ArrayRef<Ref> lines,
                                                int64_t lanes, int64_t width) {
  int64_t group = linesOfLookup(lines[0], width);
  if (group && lines.size() % group == 0)
    return decodeGroups(lines, lanes, width, /*paired=*/true);
  SmallVector<Value> results;
  for (; !lines.empty();
       lines = lines.drop_front(std::min<size_t>(2, lines.size()))) {
    Value x = decodeToWords(loadLanes(lines[0], lanes, width));
    Value y = lines.size() > 1
                  ? decodeToWords(loadLanes(lines[1], lanes, width))
                  : intConstant(x.getType(), 0);
    Value both = vector::InterleaveOp::create(b, loc, x, y);
    results.push_back(
        vector::BitCastOp::create(b, loc, f32Vector(width), both));
  }
  return results;
}
