//===- IndexBuilder.h - Index arithmetic and loops --------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_INDEXBUILDER_H
#define FP8_LIB_CODEGEN_CONTRACTION_INDEXBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlir::fp8::contraction {

/// A one-dimensional view and an index into it.
struct Ref {
  Value memref;
  Value index;
};

/// Emits folded index arithmetic, and loops.
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

protected:
  Value cst(int64_t v) { return arith::ConstantIndexOp::create(b, loc, v); }
  Value add(Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  }
  Value add(Value x, int64_t c) { return c == 0 ? x : add(x, cst(c)); }
  Value mul(Value x, int64_t c) {
    return c == 1 ? x : b.createOrFold<arith::MulIOp>(loc, x, cst(c));
  }
  Value div(Value x, int64_t c) {
    return c == 1 ? x : b.createOrFold<arith::DivUIOp>(loc, x, cst(c));
  }
  Value rem(Value x, int64_t c) {
    return b.createOrFold<arith::RemUIOp>(loc, x, cst(c));
  }
  /// Returns the largest multiple of `c` that is at most `x`.
  Value alignDown(Value x, int64_t c) {
    return b.createOrFold<arith::SubIOp>(loc, x, rem(x, c));
  }
  Ref at(Ref ref, Value i, int64_t stride) {
    return {ref.memref, add(ref.index, mul(i, stride))};
  }
  Ref at(Ref ref, int64_t offset) {
    return {ref.memref, add(ref.index, offset)};
  }

  void forLoop(Value from, Value to, int64_t step,
               function_ref<void(Value)> body);
  void forLoop(int64_t from, int64_t to, int64_t step,
               function_ref<void(Value)> body);
  /// Splits [0, end) into chunks of 4 vectors, single vectors and a static
  /// remainder. `extent` is a static number with the same remainders as `end`.
  void forChunks(Value end, int64_t extent, int64_t unit,
                 function_ref<void(Value, int64_t)> body);

  OpBuilder &b;
  Location loc;
};

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_INDEXBUILDER_H
