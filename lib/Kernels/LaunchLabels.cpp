//===- LaunchLabels.cpp - Labels of launches ------------------------------===//
//
// A label is made of what the ops compute, so that it is informative even in a
// step without names, and of the location of the op that does most of the work:
// the first dot, or else the last op. Without a name there, the label also has
// the type of the result, and what a quantization is of or for.
//
//===----------------------------------------------------------------------===//

#include "LaunchLabels.h"

#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Locations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// Returns the path of the argument of the step that `value` is a view of, or
/// "".
static StringRef pathOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isTensorView(def))
      return "";
    value = def->getOperand(0);
  }
  auto arg = cast<BlockArgument>(value);
  auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
  auto path = func ? func.getArgAttrOfType<StringAttr>(
                         arg.getArgNumber(), FP8Dialect::kPathAttrName)
                   : StringAttr();
  return path ? path.getValue() : "";
}

/// Returns a dot that reads `value` or a view of it, or null.
static Operation *dotThatReads(Value value) {
  SmallVector<Value> views{value};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      auto generic = dyn_cast<linalg::GenericOp>(user);
      if (generic && isDot(generic))
        return user;
      if (isTensorView(user))
        views.push_back(user->getResult(0));
    }
  return nullptr;
}

static bool hasName(Operation *op) {
  return bool(op->getLoc()->findInstanceOf<NameLoc>());
}

/// Returns what `op` computes as far as types and data flow tell: the type of
/// its result, or of what it reduces to a scalar; for a quantization, the
/// argument that it is of, or else the dot that it is for.
static std::string describeValues(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  auto type = op->getNumResults() == 0
                  ? ShapedType()
                  : dyn_cast<ShapedType>(op->getResult(0).getType());
  if (!type)
    return "";
  if (type.getRank() == 0 && generic && generic.getNumDpsInputs() > 0)
    if (auto input =
            dyn_cast<ShapedType>(generic.getDpsInputs().front().getType()))
      type = input;
  std::string text = printShape(type);
  if (!generic || !allParallel(generic) || !writesF8(generic))
    return text;
  for (Value input : generic.getDpsInputs()) {
    auto from = dyn_cast<ShapedType>(input.getType());
    StringRef path = pathOf(input);
    if (from && !path.empty() && from.getShape() == type.getShape())
      return text + " of " + path.str();
  }
  for (Value result : op->getResults())
    if (Operation *dot = dotThatReads(result))
      return text + " for dot " +
             (hasName(dot)
                  ? describeLocation(dot->getLoc())
                  : printShape(cast<ShapedType>(dot->getResult(0).getType())));
  return text;
}

/// Returns which part of the step `op` is: its location and, if that has no
/// name, what its values tell.
static std::string describePlace(Operation *op) {
  std::string place = describeLocation(op->getLoc());
  std::string values = hasName(op) ? "" : describeValues(op);
  if (values.empty())
    return place;
  bool isUnknown = !op->getLoc()->findInstanceOf<FileLineColLoc>();
  return isUnknown ? values : place + " " + values;
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
  return llvm::join(parts, "_") + " " + describePlace(main);
}
