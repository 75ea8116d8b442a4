//===- LaunchLabels.cpp - Labels of launches ------------------------------===//
//
// A label is made of what the ops compute, so that it is informative even in a
// step without names, and of the location of the op that does most of the work:
// the first dot, or else the last op.
//
//===----------------------------------------------------------------------===//

#include "LaunchLabels.h"

#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Locations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

template <typename OpTy> bool contains(linalg::GenericOp op) {
  return !op.getBody()->getOps<OpTy>().empty();
}

/// Returns true if `op` computes the maximum of |x|.
bool isAmax(linalg::GenericOp op, Operation *combiner) {
  return isa<arith::MaximumFOp>(combiner) && contains<math::AbsFOp>(op);
}

StringRef nameOfReduction(linalg::GenericOp op) {
  Operation *combiner =
      op.getNumDpsInits() == 1 ? reductionCombiner(op, 0) : nullptr;
  if (!combiner)
    return "reduce";
  if (isAmax(op, combiner))
    return "amax";
  if (isa<arith::AddFOp, arith::AddIOp>(combiner))
    return "sum";
  if (isa<arith::MulFOp, arith::MulIOp>(combiner))
    return "product";
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp, arith::MaxUIOp>(
          combiner))
    return "max";
  if (isa<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp, arith::MinUIOp>(
          combiner))
    return "min";
  return "reduce";
}

bool writesF8(linalg::GenericOp op) {
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    return isPayload(cast<ShapedType>(type).getElementType()) &&
           !cast<ShapedType>(type).getElementType().isF16();
  });
}

} // namespace

/// Replaces the names of reductions that compute a softmax or a norm together
/// by its name.
static void mergeReductions(llvm::SmallSetVector<StringRef, 8> &parts,
                            bool hasExp, bool hasRoot) {
  bool hasSum = parts.contains("sum");
  bool isSoftmax = hasExp && hasSum && parts.contains("max");
  bool isNorm = hasRoot && hasSum && !isSoftmax;
  llvm::SmallSetVector<StringRef, 8> merged;
  for (StringRef part : parts)
    if (isSoftmax && part == "max")
      merged.insert("softmax");
    else if (isNorm && part == "sum")
      merged.insert("norm");
    else if (!isSoftmax || part != "sum")
      merged.insert(part);
  parts = merged;
}

std::string fp8::labelOf(ArrayRef<Operation *> ops, StringRef state) {
  llvm::SmallSetVector<StringRef, 8> parts;
  bool hasExp = false, hasRoot = false;
  Operation *dot = nullptr;
  for (Operation *op : ops) {
    if (isIrregular(op))
      parts.insert("loop");
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      continue;
    hasExp |= contains<math::ExpOp>(generic);
    hasRoot |= contains<math::RsqrtOp>(generic);
    if (isDot(generic)) {
      parts.insert("dot");
      if (!dot)
        dot = op;
    } else if (!allParallel(generic))
      parts.insert(nameOfReduction(generic));
    else if (writesF8(generic))
      parts.insert("quantize");
  }
  mergeReductions(parts, hasExp, hasRoot);
  if (!state.empty())
    parts.insert("update");
  if (parts.empty())
    parts.insert("elementwise");
  if (!state.empty())
    return llvm::join(parts, "_") + " " + state.str();
  Operation *main = dot ? dot : ops.back();
  return llvm::join(parts, "_") + " " + describeLocation(main->getLoc());
}
