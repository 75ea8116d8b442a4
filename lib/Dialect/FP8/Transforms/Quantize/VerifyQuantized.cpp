//===- VerifyQuantized.cpp - Check the contract of the fp8 stage ----------===//

#include "../State/StateFunctions.h"
#include "Quantizations.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8VERIFYQUANTIZED
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

Operation *fp8::getQuantization(Value value,
                                function_ref<void(Operation *)> visit) {
  while (Operation *op = value.getDefiningOp()) {
    // A stack of payloads: look at the update that the loop writes.
    if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
      Operation *yield = loop.getBody().front().getTerminator();
      auto update = yield->getOperand(cast<OpResult>(value).getResultNumber())
                        .getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
      if (!update)
        return op;
      if (visit)
        visit(update);
      value = update.getUpdate();
      continue;
    }
    if (!isa<PackOp, UnpackOp, WindowsOp, ExchangeOp, stablehlo::ReshapeOp,
             stablehlo::TransposeOp, stablehlo::DynamicSliceOp>(op))
      return op;
    if (visit && isa<stablehlo::DynamicSliceOp>(op))
      visit(op);
    value = op->getOperand(0);
  }
  return nullptr;
}

static LogicalResult verifyDot(fp8::DotGeneralOp dot) {
  for (Value operand : {dot.getLhs(), dot.getRhs()}) {
    Operation *source = getQuantization(operand);
    if (source && !isa<QuantizeOp>(source)) {
      InFlightDiagnostic diag = dot.emitOpError()
                                << "expected operands that come from "
                                   "fp8.quantize but got one from "
                                << source->getName();
      diag.attachNote(source->getLoc()) << "defined here";
      return diag;
    }
  }
  return success();
}

static LogicalResult verifyScales(QuantizeOp quantize) {
  auto scale = quantize.getScale().getDefiningOp<ComputeScaleOp>();
  auto quantizer = quantize.getQuantizer().getDefiningOp<ComputeScaleOp>();
  if (!scale && !quantizer)
    return success();
  if (scale != quantizer || quantize.getScale() != scale.getScale() ||
      quantize.getQuantizer() != scale.getQuantizer())
    return quantize.emitOpError()
           << "expected scale and quantizer to be the first and the second "
              "result of one fp8.compute_scale";
  return success();
}

/// Checks that each state argument is replaced by a result of its type.
static LogicalResult verifyState(func::FuncOp function) {
  llvm::StringMap<Type> arguments;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (auto path = function.getArgAttrOfType<StringAttr>(
            index, FP8Dialect::kPathAttrName))
      arguments[path.getValue()] = type;
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    auto path = function.getResultAttrOfType<StringAttr>(
        index, FP8Dialect::kStateAttrName);
    if (path && arguments.lookup(path.getValue()) != type)
      return function.emitOpError()
             << "expected the result that replaces " << path << " to be "
             << arguments.lookup(path.getValue()) << " but got " << type;
  }
  return success();
}

/// Returns the types of a function's arguments or results, by path.
template <typename GetAttr>
static llvm::StringMap<Type> getTypes(TypeRange types, GetAttr getAttr) {
  llvm::StringMap<Type> byPath;
  for (auto [index, type] : llvm::enumerate(types))
    if (auto path = dyn_cast_or_null<StringAttr>(
            getAttr(index, FP8Dialect::kPathAttrName)))
      byPath[path.getValue()] = type;
  return byPath;
}

/// Checks that the function that stores returns state as the step takes it, and
/// that the function that loads returns what the one that stores takes.
static LogicalResult verifyEntries(ModuleOp module) {
  func::FuncOp step, store, load;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto entry =
        function->getAttrOfType<StringAttr>(FP8Dialect::kEntryAttrName);
    if (!entry && function.isPublic())
      step = function;
    else if (entry && (entry == "store" || entry == "load"))
      (entry == "store" ? store : load) = function;
    else if (entry)
      return function.emitOpError() << "expected " << FP8Dialect::kEntryAttrName
                                    << " store or load but got " << entry;
  }
  if (!store && !load)
    return success();
  if (!step || !store || !load)
    return module.emitError() << "expected a public function, and one with "
                              << FP8Dialect::kEntryAttrName
                              << " = \"store\" and one with \"load\"";
  auto inputs = [](func::FuncOp function) {
    SmallVector<Type> types;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      types.push_back(getWholeType(function, i));
    return getTypes(types, [=](unsigned i, StringRef name) {
      return func::FuncOp(function).getArgAttr(i, name);
    });
  };
  auto outputs = [](func::FuncOp function) {
    return getTypes(function.getResultTypes(), [=](unsigned i, StringRef name) {
      return func::FuncOp(function).getResultAttr(i, name);
    });
  };
  auto contain = [](func::FuncOp function, StringRef what,
                    const llvm::StringMap<Type> &types,
                    const llvm::StringMap<Type> &all) -> LogicalResult {
    for (const auto &entry : types)
      if (all.lookup(entry.getKey()) != entry.getValue())
        return function.emitOpError()
               << "expected " << what << " '" << entry.getKey() << "' to be "
               << all.lookup(entry.getKey()) << " but got " << entry.getValue();
    return success();
  };
  // A weight copy is stored beside its weight, which the step takes as it is,
  // so nothing loads it.
  llvm::StringMap<Type> had = inputs(step);
  for (const auto &entry : outputs(load))
    had[entry.getKey()] = entry.getValue();
  return success(
      succeeded(contain(store, "the stored", outputs(store), inputs(step))) &&
      succeeded(contain(load, "the stored", inputs(load), outputs(store))) &&
      succeeded(contain(load, "the loaded", outputs(load), inputs(store))) &&
      succeeded(contain(store, "the loaded", inputs(store), had)));
}

namespace {
struct VerifyQuantized
    : public fp8::impl::FP8VerifyQuantizedBase<VerifyQuantized> {
  void runOnOperation() override {
    using Key = std::pair<std::pair<Value, Value>, std::pair<Type, Attribute>>;
    DenseMap<Key, QuantizeOp> seen;
    WalkResult result = getOperation()->walk([&](Operation *op) -> WalkResult {
      if (auto dot = dyn_cast<fp8::DotGeneralOp>(op))
        return verifyDot(dot);
      if (auto amax = dyn_cast<AmaxOp>(op)) {
        if (amax->use_empty())
          return amax.emitOpError("expected its result to be used");
        return WalkResult::advance();
      }
      if (auto scale = dyn_cast<ComputeScaleOp>(op)) {
        // One result is enough: delayed scaling keeps only the quantizer.
        if (scale->use_empty())
          return scale.emitOpError("expected one of its results to be used");
        return WalkResult::advance();
      }
      auto quantize = dyn_cast<QuantizeOp>(op);
      if (!quantize)
        return WalkResult::advance();
      if (failed(verifyScales(quantize)))
        return WalkResult::interrupt();
      // Two quantizations differ by type, rounding, overflow or the scale's
      // rule, or by a scale that does not follow from the tensor.
      Value state;
      SmallVector<Attribute> way{op->getAttrDictionary()};
      if (auto scale = quantize.getScale().getDefiningOp<ComputeScaleOp>())
        way.push_back(scale->getAttrDictionary());
      else
        state = quantize.getScale();
      Key key{
          {quantize.getInput(), state},
          {quantize.getResult().getType(), ArrayAttr::get(&getContext(), way)}};
      auto [it, inserted] = seen.try_emplace(key, quantize);
      // (Two branches cannot share the payload of either.)
      if (!inserted && it->second->getParentRegion()->isAncestor(
                           quantize->getParentRegion())) {
        InFlightDiagnostic diag =
            quantize.emitOpError()
            << "quantizes a tensor that is already quantized in the same way";
        diag.attachNote(it->second.getLoc()) << "quantized here first";
        return diag;
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted() || failed(verifyEntries(getOperation())))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(verifyState(function)))
        return signalPassFailure();
  }
};
} // namespace
