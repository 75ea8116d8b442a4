//===- LaunchLabels.cpp - Labels of launches ------------------------------===//
//
// A label is made of what the ops compute, so that it is informative even in a
// step without names, and of the location of the op that does most of the work:
// the first dot, or else the last op. Without a name there, the label also has
// the type of the result. Dots are named after their layers; what is no dot has
// the parameter that it reads, or the dot that its result goes to.
//
//===----------------------------------------------------------------------===//

#include "LaunchLabels.h"

#include "fp8/Analysis/Signature.h"
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

/// Returns the argument of the step that `value` is a view of, or null.
static BlockArgument argumentOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isTensorView(def))
      return {};
    value = def->getOperand(0);
  }
  auto arg = cast<BlockArgument>(value);
  return isa<func::FuncOp>(arg.getOwner()->getParentOp()) ? arg
                                                          : BlockArgument();
}

static StringRef pathOf(BlockArgument arg) {
  auto func = cast<func::FuncOp>(arg.getOwner()->getParentOp());
  auto path = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                FP8Dialect::kPathAttrName);
  return path ? path.getValue() : "";
}

/// Returns true if an argument is a weight, trained or frozen.
static bool isParameter(BlockArgument arg) {
  return !pathOf(arg).empty() && (stateKindOf(arg) == StateKind::Parameter ||
                                  argRoleOf(arg) == ArgRole::Frozen);
}

/// Returns `forward params['w']` if the location of a dot has such a name, or
/// "".
static StringRef layerOfDot(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  auto name = generic && isDot(generic)
                  ? op->getLoc()->findInstanceOf<NameLoc>()
                  : NameLoc();
  if (!name)
    return "";
  StringRef text = name.getName().getValue();
  return symbolizeDotRole(text.split(' ').first) ? text : "";
}

/// Returns the path of the state that a result of the step replaces, or "".
static StringRef stateOf(OpOperand &returned) {
  auto func = dyn_cast<func::FuncOp>(returned.getOwner()->getParentOp());
  auto path =
      func ? func.getResultAttrOfType<StringAttr>(returned.getOperandNumber(),
                                                  FP8Dialect::kStateAttrName)
           : StringAttr();
  return path ? path.getValue() : "";
}

/// Returns the layer of the nearest dot that the results of `op` go to, or else
/// the state that they go to (the history of an amax), or "".
static StringRef nextLayer(Operation *op) {
  // Most results reach a dot in a few steps; sums of gradients reach none.
  constexpr unsigned kMaxOps = 64;
  llvm::SmallSetVector<Operation *, 32> ops;
  ops.insert(op);
  StringRef state;
  for (unsigned i = 0; i < ops.size() && i < kMaxOps; ++i) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : ops[i]->getUses())
      uses.push_back(&use);
    // The last use of a value comes first.
    for (OpOperand *use : llvm::reverse(uses)) {
      Operation *user = use->getOwner();
      if (StringRef layer = layerOfDot(user); !layer.empty())
        return layer;
      if (state.empty() && isa<func::ReturnOp>(user))
        state = stateOf(*use);
      ops.insert(user);
    }
  }
  return state;
}

/// Adds the parameter that `ops` read to their place, or the layer of the next
/// dot, or the state that they compute. The place of an op on weights may be
/// the parameter itself.
static std::string withLayer(std::string place, ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<ShapedType>(operand.getType());
      BlockArgument arg =
          type && type.getRank() > 0 ? argumentOf(operand) : BlockArgument();
      if (!arg || !isParameter(arg))
        continue;
      return StringRef(place).contains(pathOf(arg))
                 ? place
                 : place + " of " + pathOf(arg).str();
    }
  StringRef layer = nextLayer(ops.back());
  bool isKnown = layer.empty() || StringRef(place).contains(layer) ||
                 (symbolizeDotRole(layer.split(' ').first) &&
                  StringRef(place).contains(layer.split(' ').second));
  return isKnown ? place : place + " for " + layer.str();
}

static bool hasName(Operation *op) {
  return bool(op->getLoc()->findInstanceOf<NameLoc>());
}

/// Returns the type of what `op` computes, or of what it reduces to a scalar.
static std::string describeType(Operation *op) {
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
  return printShape(type);
}

/// Returns which part of the step `op` is: its location and, if that has no
/// name, its type.
static std::string describePlace(Operation *op) {
  std::string place = describeLocation(op->getLoc());
  std::string type = hasName(op) ? "" : describeType(op);
  if (type.empty())
    return place;
  bool isUnknown = !op->getLoc()->findInstanceOf<FileLineColLoc>();
  return isUnknown ? type : place + " " + type;
}

std::string fp8::placeOf(Operation *op) {
  return withLayer(describePlace(op), op);
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
  return llvm::join(parts, "_") + " " +
         (dot ? describePlace(dot) : withLayer(describePlace(ops.back()), ops));
}
