//===- RelaxMaxima.cpp - Maxima of a softmax without ordered zeros --------===//
//
// `arith.maximumf` puts -0 before 0. x86 needs three instructions more for
// that, and in a reduction each waits for the one before. The maximum of a
// softmax does not need it: e^(x - max) is 1 for each difference that is a
// zero.
//
//===----------------------------------------------------------------------===//

#include "fp8/Codegen/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_RELAXMAXIMA
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Returns whether all that is computed from a value is the exponential of its
/// difference to another one.
static bool isOnlyShift(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<arith::SubFOp>(user) &&
           llvm::all_of(user->getUsers(), llvm::IsaPred<math::ExpOp>);
  });
}

/// Returns whether all that `writer` leaves in a buffer only shifts the
/// arguments of exponentials.
static bool onlyShiftsExponents(Value buffer, linalg::GenericOp writer) {
  return llvm::all_of(buffer.getUses(), [&](OpOperand &use) {
    if (use.getOwner() == writer || isa<linalg::FillOp>(use.getOwner()))
      return true;
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    return reader && reader.isDpsInput(&use) &&
           isOnlyShift(reader.getMatchingBlockArgument(&use));
  });
}

namespace {

class RelaxMaxima : public fp8::impl::RelaxMaximaBase<RelaxMaxima> {
public:
  void runOnOperation() override {
    getOperation().walk([](linalg::GenericOp op) {
      if (allParallel(op))
        return;
      for (auto [i, init] : llvm::enumerate(op.getDpsInits()))
        if (init.getDefiningOp<memref::AllocOp>())
          if (auto maximum =
                  dyn_cast_or_null<arith::MaximumFOp>(reductionCombiner(op, i)))
            if (onlyShiftsExponents(init, op))
              relax(maximum, op.getRegionOutputArgs()[i]);
    });
  }

private:
  /// x86 tests the first operand for NaN: that should not be the running value.
  static void relax(arith::MaximumFOp maximum, Value running) {
    maximum.setFastmath(maximum.getFastmath() | arith::FastMathFlags::nsz);
    if (maximum.getLhs() == running) {
      maximum.getLhsMutable().assign(maximum.getRhs());
      maximum.getRhsMutable().assign(running);
    }
  }
};

} // namespace
