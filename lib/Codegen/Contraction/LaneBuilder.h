//===- LaneBuilder.h - Vector loads, stores and shuffles --------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_LANEBUILDER_H
#define FP8_LIB_CODEGEN_CONTRACTION_LANEBUILDER_H

#include "IndexBuilder.h"

#include "fp8/Codegen/Target.h"

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8::contraction {

/// The bytes of a cache line.
constexpr int64_t kLineBytes = 64;

/// The cache that a line is brought into, by the locality of `llvm.prefetch`.
enum class Cache { L2 = 2, L1 = 3 };

/// Emits vector code: loads that decode, stores and shuffles.
class LaneBuilder : public IndexBuilder {
public:
  LaneBuilder(OpBuilder &b, Location loc, const TargetInfo &target)
      : IndexBuilder(b, loc), target(target) {}

protected:
  VectorType f32Vector(int64_t lanes) {
    return VectorType::get({lanes}, b.getF32Type());
  }
  Value zeroVector(int64_t lanes) {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(f32Vector(lanes)));
  }
  Value intConstant(Type like, int64_t value);
  Value slice(Value vector, int64_t from, int64_t count);
  Value concat(Value x, Value y);

  /// Loads `lanes` contiguous elements into a vector of `width`, padded with
  /// zeros.
  Value loadLanes(Ref ref, int64_t lanes, int64_t width);
  /// Decodes elements, scalar or vector, to f32.
  Value decode(Value v);
  Value load(Ref ref, int64_t lanes, int64_t width) {
    return decode(loadLanes(ref, lanes, width));
  }
  void store(Value vector, Ref ref, int64_t lanes);
  /// Prefetches the line that holds an element.
  void prefetch(Ref ref, Cache cache);
  /// Returns elements as the bits of bf16, which represents every bf16 and f8
  /// exactly.
  Value decodeToWords(Value v);
  Value decodeByTable(Value bytes, Type element);
  /// Loads pairs of adjacent elements into f32 lanes, the first in the lower
  /// half.
  Value loadPairs(Ref ref, int64_t lanes, int64_t width);
  /// Loads one element of `ref` and, if given, one of `second` into each lane.
  Value loadInterleaved(Ref ref, std::optional<Ref> second, int64_t lanes,
                        int64_t width);
  void transpose(SmallVectorImpl<Value> &rows);

  const TargetInfo &target;
};

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_LANEBUILDER_H
