//===- ReadWindows.cpp - Dots read windows where they are -----------------===//

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_READWINDOWS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether some index depends on several loops.
static bool hasSums(AffineMap map) {
  return llvm::any_of(map.getResults(), [&](AffineExpr expr) {
    return llvm::count_if(llvm::seq(map.getNumDims()), [&](unsigned loop) {
             return expr.isFunctionOfDim(loop);
           }) > 1;
  });
}

/// Returns the op that makes windows if `value` is such: copies of elements at
/// sums of indices.
static linalg::GenericOp getWindows(Value value) {
  auto copy = value.getDefiningOp<linalg::GenericOp>();
  if (!copy || !isCopy(copy))
    return nullptr;
  SmallVector<AffineMap> maps = copy.getIndexingMapsArray();
  return maps[1].isIdentity() && hasSums(maps[0]) ? copy : nullptr;
}

/// Lets the dot read the elements from where the windows are copied from.
static bool readInPlace(linalg::GenericOp dot, unsigned operand) {
  linalg::GenericOp windows = getWindows(dot.getDpsInputs()[operand]);
  if (!windows)
    return false;
  SmallVector<AffineMap> maps = dot.getIndexingMapsArray();
  maps[operand] = windows.getIndexingMapsArray()[0].compose(maps[operand]);
  // Each loop needs an operand that says how far it runs.
  if (!isLinearMap(maps[operand]) ||
      !inversePermutation(concatAffineMaps(maps, dot.getContext())))
    return false;
  dot->setOperand(operand, windows.getDpsInputs()[0]);
  setIndexingMap(dot->getOpOperand(operand), maps[operand]);
  if (windows->use_empty())
    windows.erase();
  return true;
}

/// With at most this many columns a dot spends more time on decoding windows,
/// in which each element of the image occurs several times, than on products.
static constexpr int64_t kFewColumns = 16;

/// Returns how many columns the rows of windows are multiplied with.
static int64_t columnsOf(linalg::GenericOp dot, unsigned operand) {
  ContractionDims dims = *inferContractionDims(dot);
  SmallVector<int64_t> extents = dot.getStaticLoopRanges();
  return iterationsOf(operand == 0 ? dims.n : dims.m, extents);
}

/// Decodes an operand of fewer than 32 bits before the dot, so that the dot
/// reads f32.
static void decode(linalg::GenericOp dot, unsigned operand) {
  Value narrow = dot.getDpsInputs()[operand];
  if (cast<RankedTensorType>(narrow.getType()).getElementTypeBitWidth() >= 32)
    return;
  OpBuilder builder(dot);
  Type f32 = builder.getF32Type();
  linalg::GenericOp decoded = createElementwise(
      builder, dot.getLoc(), narrow, f32,
      [&](OpBuilder &b, Location loc, Value element) -> Value {
        return arith::ExtFOp::create(b, loc, f32, element);
      });
  dot->setOperand(operand, decoded.getResult(0));
  BlockArgument element = dot.getBody()->getArgument(operand);
  element.setType(f32);
  for (Operation *extend : llvm::to_vector(element.getUsers())) {
    extend->replaceAllUsesWith(ValueRange{element});
    extend->erase();
  }
}

namespace {
struct ReadWindows : fp8::impl::ReadWindowsBase<ReadWindows> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> dots;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (isDot(op))
        dots.push_back(op);
    });
    for (linalg::GenericOp dot : dots)
      for (unsigned operand : {0, 1}) {
        if (!readInPlace(dot, operand))
          continue;
        ++numRead;
        if (columnsOf(dot, operand) <= kFewColumns)
          for (unsigned each : {0, 1})
            decode(dot, each);
      }
  }
};
} // namespace
