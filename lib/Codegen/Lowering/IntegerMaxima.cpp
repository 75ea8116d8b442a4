//===- IntegerMaxima.cpp - Maxima of absolute values as integers ----------===//
//
// `arith.maximumf` propagates NaN and orders zeros, for which x86 needs six
// instructions. The bits of floats without a sign have the order of integers,
// with all NaNs above infinity: one instruction has the same result.
//
//===----------------------------------------------------------------------===//

#include "fp8/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_INTEGERMAXIMA
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {

/// What is known of the sign bit of a float, or of all floats of a vector.
enum class Sign {
  Any,
  /// It may be set, but not that of a NaN.
  NoNegativeNaN,
  Clear,
};

/// Finds out what is known of signs in a function.
class Signs {
public:
  explicit Signs(func::FuncOp func);

  Sign of(Value value) const;

private:
  static Sign ofConstant(Attribute value);
  Sign ofMaximum(arith::MaximumFOp op) const;
  Sign ofResult(scf::ForOp loop, unsigned index) const;
  static bool runs(scf::ForOp loop);

  /// What loops carry. They begin as `Clear`, the best case, and are lowered
  /// until each of them follows from the others.
  DenseMap<Value, Sign> carried;
};

class IntegerMaxima : public fp8::impl::IntegerMaximaBase<IntegerMaxima> {
public:
  void runOnOperation() override;
};

} // namespace

Signs::Signs(func::FuncOp func) {
  SmallVector<scf::ForOp> loops;
  func.walk([&](scf::ForOp loop) {
    loops.push_back(loop);
    for (Value value : loop.getRegionIterArgs())
      carried[value] = Sign::Clear;
  });
  for (bool changed = true; std::exchange(changed, false);)
    for (scf::ForOp loop : loops)
      for (auto [value, init, next] :
           llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs(),
                           loop.getYieldedValues())) {
        Sign sign = std::min(of(init), of(next));
        changed |= sign != std::exchange(carried[value], sign);
      }
}

Sign Signs::ofConstant(Attribute value) {
  auto ofFloat = [](const APFloat &x) {
    if (!x.isNegative())
      return Sign::Clear;
    return x.isNaN() ? Sign::Any : Sign::NoNegativeNaN;
  };
  if (auto scalar = dyn_cast<FloatAttr>(value))
    return ofFloat(scalar.getValue());
  auto splat = dyn_cast<SplatElementsAttr>(value);
  return splat && isa<FloatType>(splat.getElementType())
             ? ofFloat(splat.getSplatValue<APFloat>())
             : Sign::Any;
}

Sign Signs::ofMaximum(arith::MaximumFOp op) const {
  auto [low, high] = std::minmax(of(op.getLhs()), of(op.getRhs()));
  return low == Sign::Any ? Sign::Any : high;
}

/// Returns whether a loop has an iteration.
bool Signs::runs(scf::ForOp loop) {
  std::optional<APInt> count = loop.getStaticTripCount();
  return count && !count->isZero();
}

Sign Signs::ofResult(scf::ForOp loop, unsigned index) const {
  Sign next = of(loop.getYieldedValues()[index]);
  return runs(loop) ? next : std::min(next, of(loop.getInitArgs()[index]));
}

Sign Signs::of(Value value) const {
  if (auto it = carried.find(value); it != carried.end())
    return it->second;
  Operation *def = value.getDefiningOp();
  if (!def)
    return Sign::Any;
  return llvm::TypeSwitch<Operation *, Sign>(def)
      .Case([](math::AbsFOp) { return Sign::Clear; })
      .Case([](arith::ConstantOp op) { return ofConstant(op.getValue()); })
      .Case([&](arith::MaximumFOp op) { return ofMaximum(op); })
      .Case([&](arith::SelectOp op) {
        return std::min(of(op.getTrueValue()), of(op.getFalseValue()));
      })
      .Case([&](scf::ForOp loop) {
        return ofResult(loop, cast<OpResult>(value).getResultNumber());
      })
      .Case<vector::BroadcastOp, vector::ExtractOp,
            vector::ExtractStridedSliceOp>(
          [&](Operation *op) { return of(op->getOperand(0)); })
      .Default(Sign::Any);
}

void IntegerMaxima::runOnOperation() {
  Signs signs(getOperation());
  // What is rewritten is collected first: its result has no sign that follows.
  SmallVector<arith::MaximumFOp> maxima;
  getOperation().walk([&](arith::MaximumFOp op) {
    if (isa<Float16Type, BFloat16Type, Float32Type>(
            getElementTypeOrSelf(op.getType())) &&
        signs.of(op) == Sign::Clear)
      maxima.push_back(op);
  });
  for (arith::MaximumFOp op : maxima) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Type type = op.getType(),
         bits = b.getIntegerType(
             getElementTypeOrSelf(type).getIntOrFloatBitWidth());
    if (auto vector = dyn_cast<VectorType>(type))
      bits = vector.clone(bits);
    Value larger = arith::MaxSIOp::create(
        b, arith::BitcastOp::create(b, bits, op.getLhs()),
        arith::BitcastOp::create(b, bits, op.getRhs()));
    op.replaceAllUsesWith(
        arith::BitcastOp::create(b, type, larger).getResult());
    op.erase();
  }
}
