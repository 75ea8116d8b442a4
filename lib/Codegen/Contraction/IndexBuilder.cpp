//===- IndexBuilder.cpp - Index arithmetic and loops ----------------------===//

#include "IndexBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

void IndexBuilder::forLoop(Value from, Value to, int64_t step,
                           function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, cst(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void IndexBuilder::forLoop(int64_t from, int64_t to, int64_t step,
                           function_ref<void(Value)> body) {
  if (from >= to)
    return;
  if (from + step >= to)
    return body(cst(from));
  forLoop(cst(from), cst(to), step, body);
}

void IndexBuilder::forChunks(Value end, int64_t extent, int64_t unit,
                             function_ref<void(Value, int64_t)> body) {
  int64_t wide = 4 * unit;
  auto roundDown = [&](int64_t step) -> Value {
    if (std::optional<int64_t> c = getConstantIntValue(end))
      return cst(llvm::alignDown(*c, step));
    Value rest = arith::RemUIOp::create(b, loc, end, cst(step));
    return arith::SubIOp::create(b, loc, end, rest);
  };
  auto loop = [&](Value from, Value to, int64_t step, int64_t lanes) {
    std::optional<int64_t> f = getConstantIntValue(from),
                           t = getConstantIntValue(to);
    if (f && t)
      forLoop(*f, *t, step, [&](Value i) { body(i, lanes); });
    else
      forLoop(from, to, step, [&](Value i) { body(i, lanes); });
  };
  Value done = cst(0);
  if (extent >= wide) {
    Value to = extent % wide ? roundDown(wide) : end;
    loop(done, to, wide, wide);
    done = to;
  }
  if (extent % wide >= unit) {
    Value to = extent % unit ? roundDown(unit) : end;
    loop(done, to, unit, unit);
    done = to;
  }
  // At most one iteration, and none in the blocks of k before the last.
  if (extent % unit)
    loop(done, end, unit, extent % unit);
}
