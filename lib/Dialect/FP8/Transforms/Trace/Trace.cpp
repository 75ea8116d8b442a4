//===- Trace.cpp - Statistics of what a step quantizes --------------------===//
//
// A statistic is a row of f64 values that combine by sum or maximum: over the
// elements of a tensor, over the iterations of a loop, over the branches taken.
// Readers compute fractions, decibels and kurtosis from them; docs/Runtime.md
// has the formulas.
//
//===----------------------------------------------------------------------===//

#include "../Quantize/Quantizations.h"
#include "Statistics.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8TRACE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// The statistics of a quantization
//===----------------------------------------------------------------------===//

/// Which values of a row of fp8.kind = "trace_quantization" are maxima. Their
/// order is that of fp8_trace_quantization in fp8-c/Runtime/Tensors.h.
static constexpr bool kQuantizationIsMax[] = {
    /*amax=*/true,       /*scale=*/true,      /*-scale=*/true,
    /*count=*/false,
    /*underflow=*/false, /*saturated=*/false, /*x=*/false,
    /*x^2=*/false,
    /*x^3=*/false,       /*x^4=*/false,       /*error^2=*/false};

/// Returns the factor by which a value may exceed the largest code and still be
/// rounded to it.
static double getReach(FloatType format) {
  const llvm::fltSemantics &semantics = format.getFloatSemantics();
  llvm::APFloat largest = llvm::APFloat::getLargest(semantics);
  double max = largest.convertToDouble();
  largest.next(/*nextDown=*/true);
  double step = max - largest.convertToDouble();
  return (max + step / 2) / max;
}

/// Makes the row of `op`; with `stacked`, one row for each index of the first
/// dimension.
static Value makeQuantizationRow(OpBuilder &b, QuantizeOp op, bool stacked) {
  using Direction = stablehlo::ComparisonDirection;
  StatisticBuilder m{b, op.getLoc()};
  auto scaled = cast<ScaledType>(op.getType());
  auto format = cast<FloatType>(scaled.getElementType());
  Type f32 = b.getF32Type(), f64 = b.getF64Type();
  int64_t keep = stacked ? 1 : 0;

  auto parts = UnpackOp::create(b, m.loc, scaled.getPayloadType(),
                                scaled.getScaleTensorType(), op.getResult());
  Value input = m.convert(op.getInput(), f32);
  Value code = m.convert(parts.getPayload(), f32);
  Value decoded =
      DequantizeOp::create(b, m.loc, tensorOf(input), op.getResult());
  // The tensor is what a range expansion reads; codes are of what it makes.
  Value x = input, back = decoded;
  if (auto expand = input.getDefiningOp<ExpandRangeOp>()) {
    x = expand.getInput();
    back = RestoreRangeOp::create(b, m.loc, tensorOf(input), decoded,
                                  expand.getCenter(), expand.getExponent(),
                                  expand.getTileAttr());
  }
  Value zero = m.like(x, 0);

  Value underflow = m.both(m.compare(x, Direction::NE, zero),
                           m.compare(code, Direction::EQ, zero));
  // Compare dequantized values, so that only the payload's own scale is needed.
  double max =
      llvm::APFloat::getLargest(format.getFloatSemantics()).convertToDouble();
  Value limit = m.mul(m.abs(decoded), m.like(x, getReach(format)));
  Value clamped = m.both(m.compare(m.abs(code), Direction::EQ, m.like(x, max)),
                         m.compare(m.abs(input), Direction::GT, limit));
  Value isLost = stablehlo::NotOp::create(b, m.loc, m.isFinite(code));
  Value saturated = m.both(m.isFinite(input), m.either(clamped, isLost));

  Value wide = m.convert(x, f64);
  Value square = m.mul(wide, wide);
  Value error =
      stablehlo::SubtractOp::create(b, m.loc, wide, m.convert(back, f64));
  SmallVector<Value> values{m.convert(m.abs(x), f64),
                            m.convert(underflow, f64),
                            m.convert(saturated, f64),
                            wide,
                            square,
                            m.mul(square, wide),
                            m.mul(square, square),
                            m.mul(error, error)};
  bool isMax[] = {true, false, false, false, false, false, false, false};
  values = m.reduceAll(values, isMax, keep);

  // The reciprocal of an E8M0 scale is exact.
  Value scale = parts.getScale();
  if (!tensorOf(scale).getElementType().isF32())
    scale = stablehlo::DivOp::create(b, m.loc, m.like(op.getQuantizer(), 1),
                                     op.getQuantizer());
  scale = m.convert(scale, f64);
  Value negated = stablehlo::NegOp::create(b, m.loc, scale);
  SmallVector<Value> scales = m.reduceAll({scale, negated}, {true, true}, keep);
  int64_t count = llvm::product_of(tensorOf(x).getShape().drop_front(keep));
  SmallVector<Value> row{values[0], scales[0], scales[1],
                         m.like(values[0], count)};
  llvm::append_range(row, ArrayRef(values).drop_front());
  return m.row(row);
}

//===----------------------------------------------------------------------===//
// Names and layers
//===----------------------------------------------------------------------===//

namespace {
/// A quantized tensor.
struct Tensor {
  std::string name;
  SmallVector<LayerSlot> slots;
  bool stacked = false; ///< Its first dimension counts layers.
  /// The kind of dot that reads it. Several may: those of the kind in which the
  /// tensor appears first (an activation in forward) come before others.
  std::optional<DotRole> role;
  bool isFirst = false;
};

class Tracer {
public:
  explicit Tracer(func::FuncOp function)
      : function(function), builder(function.getContext()),
        statistics(function) {}

  void run();

private:
  void findDots();
  void addDot(DotGeneralOp dot);
  Tensor &getTensor(QuantizeOp op);
  void traceQuantization(QuantizeOp op);

  func::FuncOp function;
  OpBuilder builder;
  llvm::MapVector<Operation *, Tensor> tensors;
  /// The number of tensors that have a location's or a gradient's name.
  llvm::StringMap<unsigned> named;
  Statistics statistics;
};
} // namespace

/// Records what a dot shows about the tensors that it reads: their names, and
/// the layers of the loops around them.
void Tracer::addDot(DotGeneralOp dot) {
  auto tensorsOfDot =
      dot->getAttrOfType<DotTensorsAttr>(FP8Dialect::kTensorsAttrName);
  if (!tensorsOfDot)
    return;
  DotRole role = tensorsOfDot.getRole();
  SmallVector<LayerSlot> own;
  for (auto [index, operand] : llvm::enumerate(dot->getOperands()))
    if (tensorsOfDot.getKind(index) == OperandKind::Weight)
      own = getSlotsOfWeight(operand);
  if (role == DotRole::Wgrad)
    own = getSlotsOfGradient(dot->getResult(0));

  for (auto [index, operand] : llvm::enumerate(dot->getOperands())) {
    SmallVector<LayerSlot> slots(own);
    bool sliced = false;
    Operation *op = getQuantization(operand, [&](Operation *access) {
      if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(access)) {
        sliced = true;
        return;
      }
      // Another loop has filled this stack of payloads. Its slot counts as a
      // layer only if the dot has layers, too.
      auto update = cast<stablehlo::DynamicUpdateSliceOp>(access);
      sliced = false;
      if (own.empty())
        return;
      if (std::optional<LayerSlot> slot =
              matchSlot(update.getStartIndices().front(), update.getType()))
        slots.push_back(*slot);
    });
    auto quantize = dyn_cast_or_null<QuantizeOp>(op);
    if (!quantize)
      continue;
    llvm::erase_if(slots, [&](const LayerSlot &slot) {
      return !isAround(slot, quantize->getBlock());
    });
    Tensor &tensor = tensors[quantize];
    StringRef name = tensorsOfDot.getName(index);
    if (tensor.name.empty() || name < tensor.name)
      tensor.name = name.str();
    if (tensor.slots.empty())
      tensor.slots = slots;
    tensor.stacked |= sliced;
    bool isFirst = role == (tensorsOfDot.getKind(index) == OperandKind::Gradient
                                ? DotRole::Dgrad
                                : DotRole::Forward);
    if (!tensor.role || isFirst)
      tensor.role = role;
    tensor.isFirst |= isFirst;
  }
}

void Tracer::findDots() {
  function.walk([&](DotGeneralOp dot) {
    addDot(dot);
    dot->removeAttr(FP8Dialect::kTensorsAttrName);
  });
  // A tensor that is quantized again for another kind of dot gets a suffix.
  llvm::StringMap<Type> first;
  for (auto &[op, tensor] : tensors)
    if (tensor.isFirst)
      first.try_emplace(tensor.name, op->getResult(0).getType());
  for (auto &[op, tensor] : tensors) {
    Type type = first.lookup(tensor.name);
    if (!tensor.isFirst && type && type != op->getResult(0).getType())
      tensor.name += ("." + stringifyDotRole(*tensor.role)).str();
  }
}

/// Returns the path of the result that `value` is passed to, or "".
static std::string getResultPath(func::FuncOp function, Value value) {
  SmallVector<Value> open{value};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (isa<func::ReturnOp>(user)) {
        for (StringRef attr :
             {FP8Dialect::kStateAttrName, FP8Dialect::kPathAttrName})
          if (auto path =
                  function.getResultAttrOfType<StringAttr>(number, attr))
            return path.str();
      } else if (isa<stablehlo::ReturnOp>(user)) {
        Operation *parent = user->getParentOp();
        if (number < parent->getNumResults())
          open.push_back(parent->getResult(number));
      } else if (isa<PackOp, UnpackOp, WindowsOp, stablehlo::ReshapeOp,
                     stablehlo::TransposeOp, stablehlo::SelectOp,
                     stablehlo::DynamicUpdateSliceOp>(user)) {
        llvm::append_range(open, user->getResults());
      }
    }
  }
  return "";
}

Tensor &Tracer::getTensor(QuantizeOp op) {
  Tensor &tensor = tensors[op];
  if (tensor.name.empty())
    tensor.name = getResultPath(function, op.getResult());
  if (tensor.name.empty()) {
    auto name = op->getAttrOfType<StringAttr>(FP8Dialect::kTensorAttrName);
    tensor.name = name ? name.str() : describeLocation(op.getLoc());
    // Several tensors may be made at one place, and sums have the name, too.
    if (unsigned number = ++named[tensor.name]; number > 1)
      tensor.name += "." + std::to_string(number);
  }
  op->removeAttr(FP8Dialect::kTensorAttrName);
  return tensor;
}

void Tracer::traceQuantization(QuantizeOp op) {
  if (tensorOf(op.getInput()).getNumElements() == 0)
    return;
  Tensor &tensor = getTensor(op);
  builder.setInsertionPointAfter(op);
  Value row = makeQuantizationRow(builder, op, tensor.stacked);
  statistics.record(tensor.name, ResultKind::TraceQuantization, row,
                    op.getType(), tensor.slots, kQuantizationIsMax);
}

void Tracer::run() {
  findDots();
  SmallVector<QuantizeOp> quantizations;
  function.walk([&](QuantizeOp op) { quantizations.push_back(op); });
  for (QuantizeOp op : quantizations)
    traceQuantization(op);
  statistics.addResults();
}

namespace {
struct Trace : public fp8::impl::FP8TraceBase<Trace> {
  void runOnOperation() override {
    // Functions that store and load the state are not the step.
    if (!getOperation()->hasAttr(FP8Dialect::kEntryAttrName))
      Tracer(getOperation()).run();
  }
};
} // namespace
