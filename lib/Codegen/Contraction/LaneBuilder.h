//===- LaneBuilder.h - Vector loads, stores and shuffles --------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_LANEBUILDER_H
#define FP8_LIB_CODEGEN_CONTRACTION_LANEBUILDER_H

#include "IndexBuilder.h"

#include "fp8/Codegen/Target.h"

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8::contraction {

/// The bytes of a cache line, and of a page.
constexpr int64_t kLineBytes = 64, kPageBytes = 4096;

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
  static Type elementOf(Ref ref) {
    return cast<MemRefType>(ref.memref.getType()).getElementType();
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
  /// Prefetches the line that holds an element; to write it, this core has to
  /// own it.
  void prefetch(Ref ref, Cache cache, bool forWriting = false);
  /// Returns elements as the bits of bf16, which represents every bf16 and f8
  /// exactly.
  Value decodeToWords(Value v);
  /// Returns whether `decodeToWords` looks vectors of this type up in a table.
  bool isInTable(Type element) const;
  /// Looks up the bytes of 64 elements among 128 magnitudes in registers.
  /// Returns the lower bytes of their words, and the upper ones.
  std::pair<Value, Value> lookUpBytes(Value bytes, Type element);
  Value decodeByTable(Value bytes, Type element);
  /// Decodes two or four lines, of 64 elements in all, at once. Returns the
  /// words of each line as f32 lanes or, if they are `paired`, those of every
  /// two lines, interleaved.
  SmallVector<Value> decodeLines(ArrayRef<Value> lines, bool paired);
  /// Returns how many lines of this width share a lookup; 0 if none do.
  int64_t linesOfLookup(Ref line, int64_t width) const;
  SmallVector<Value> decodeGroups(ArrayRef<Ref> lines, int64_t lanes,
                                  int64_t width, bool paired);
  /// Loads pairs of adjacent elements of each line into f32 lanes, the first in
  /// the lower half.
  SmallVector<Value> loadPairs(ArrayRef<Ref> lines, int64_t lanes,
                               int64_t width);
  /// Loads the elements of every two lines into the halves of f32 lanes; the
  /// last line may be alone.
  SmallVector<Value> loadInterleaved(ArrayRef<Ref> lines, int64_t lanes,
                                     int64_t width);
  void transpose(SmallVectorImpl<Value> &rows);

  const TargetInfo &target;
};

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_LANEBUILDER_H
