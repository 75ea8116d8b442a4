//===- TraceAlignment.cpp - How alike the weights of gated units are ------===//
//
// Weight decay makes the gate weights a_i and the up weights b_i of a channel
// alike (or opposite). Then act(x a_i) * (x b_i) grows with the square of x,
// and outliers appear. |cos(a_i, b_i)| shows this before it happens.
//
//===----------------------------------------------------------------------===//

#include "Statistics.h"

#include "fp8/Analysis/LinearLayers/GatedUnits.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8TRACEALIGNMENT
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

/// Returns the vectors of the channels, as (layers..., vector, channel) in f64;
/// null if they do not lie in the parameter as `channels` says. In each
/// dimension in `fixed` they occupy one index.
static Value getVectors(StatisticBuilder &m, Value parameter,
                        const ParameterChannels &channels, int64_t count,
                        ArrayRef<int64_t> fixed) {
  RankedTensorType type = tensorOf(parameter);
  int64_t rank = type.getRank();
  if (static_cast<int64_t>(channels.start.size()) != rank)
    return {};
  Value value = parameter;
  SmallVector<int64_t> shape(type.getShape());
  if (!fixed.empty()) {
    SmallVector<int64_t> starts(rank, 0), limits(shape), strides(rank, 1);
    for (int64_t dim : fixed) {
      starts[dim] = channels.start[dim];
      limits[dim] = starts[dim] + 1;
      shape[dim] = 1;
    }
    value = stablehlo::SliceOp::create(m.b, m.loc, type.clone(shape), value,
                                       starts, limits, strides);
  }
  SmallVector<int64_t> order(channels.layers), result, permuted;
  int64_t length = 1, extent = 1, start = 0;
  for (int64_t dim : channels.layers)
    result.push_back(shape[dim]);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(channels.layers, dim) &&
        !llvm::is_contained(channels.dims, dim)) {
      order.push_back(dim);
      length *= shape[dim];
    }
  for (int64_t dim : channels.dims) {
    order.push_back(dim);
    start = start * shape[dim] + channels.start[dim];
    extent *= shape[dim];
  }
  int64_t limit = start + (count - 1) * channels.stride + 1;
  if (channels.stride < 1 || limit > extent)
    return {};
  value = m.convert(value, m.b.getF64Type());
  for (int64_t dim : order)
    permuted.push_back(shape[dim]);
  if (!llvm::is_sorted(order))
    value = stablehlo::TransposeOp::create(
        m.b, m.loc, RankedTensorType::get(permuted, m.b.getF64Type()), value,
        m.b.getDenseI64ArrayAttr(order));
  result.push_back(length);
  result.push_back(extent);
  value = m.reshape(value, result);
  SmallVector<int64_t> starts(result.size(), 0), limits(result),
      strides(result.size(), 1);
  starts.back() = start;
  limits.back() = limit;
  strides.back() = channels.stride;
  result.back() = count;
  return stablehlo::SliceOp::create(
      m.b, m.loc, RankedTensorType::get(result, m.b.getF64Type()), value,
      starts, limits, strides);
}

/// Makes a row of maximum, count and sum of |cos(a, b)| over the channels.
static Value makeRow(StatisticBuilder &m, Value gate, Value up) {
  int64_t layers = tensorOf(gate).getRank() - 2;
  int64_t count = tensorOf(gate).getShape().back();
  auto sum = [&](Value lhs, Value rhs) -> Value {
    // The vector is the last dimension but one.
    return m.reduce({m.mul(lhs, rhs)}, {false}, layers, layers + 1).front();
  };
  Value norms = m.mul(sum(gate, gate), sum(up, up));
  // Weights that are zero have no direction: avoid 0 / 0.
  norms = stablehlo::MaxOp::create(
      m.b, m.loc, norms, m.like(norms, std::numeric_limits<double>::min()));
  Value cosine =
      stablehlo::DivOp::create(m.b, m.loc, m.abs(sum(gate, up)),
                               stablehlo::SqrtOp::create(m.b, m.loc, norms));
  SmallVector<Value> both =
      m.reduce({cosine, cosine}, {true, false}, layers, layers + 1);
  return m.row({both[0], m.like(both[0], count), both[1]});
}

namespace {
struct TraceAlignment
    : public fp8::impl::FP8TraceAlignmentBase<TraceAlignment> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    LinearLayers layers(function);
    for (const GatedUnit &unit : findGatedUnits(function, layers))
      if (unit.isProven())
        trace(function, unit);
  }

  void trace(func::FuncOp function, const GatedUnit &unit) {
    BlockArgument gate = findArgument(function, unit.gateWeight.path);
    BlockArgument up = findArgument(function, unit.linearWeight.path);
    if (!gate || !up)
      return;
    OpBuilder builder(function.getContext());
    builder.setInsertionPoint(function.getBody().front().getTerminator());
    StatisticBuilder m{builder, function.getLoc()};
    // Gate and up weights may be two indices of one dimension.
    SmallVector<int64_t> fixed;
    if (gate == up)
      for (auto [dim, starts] : llvm::enumerate(
               llvm::zip(unit.gateWeight.start, unit.linearWeight.start)))
        if (std::get<0>(starts) != std::get<1>(starts) &&
            !llvm::is_contained(unit.gateWeight.dims, dim))
          fixed.push_back(dim);
    Value a = getVectors(m, gate, unit.gateWeight, unit.channels, fixed);
    Value b = getVectors(m, up, unit.linearWeight, unit.channels, fixed);
    if (a && b && a.getType() == b.getType())
      addStatistic(function, unit.gateWeight.path, ResultKind::TraceAlignment,
                   makeRow(m, a, b));
  }
};
} // namespace
