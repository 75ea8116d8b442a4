//===- Loops.cpp - Merged loops of a contraction --------------------------===//

#include "Loops.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

SmallVector<int64_t> contraction::stridesOfLoops(AffineMap map,
                                                 ArrayRef<int64_t> strides) {
  SmallVector<int64_t> result(map.getNumDims(), 0);
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    LinearIndex index = *getLinearIndex(expr, map.getNumDims());
    for (auto [loop, coefficient] : llvm::enumerate(index.coefficients))
      result[loop] += coefficient * strides[i];
  }
  return result;
}

int64_t contraction::offsetOf(AffineMap map, ArrayRef<int64_t> strides) {
  int64_t offset = 0;
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    offset += getLinearIndex(expr, map.getNumDims())->offset * strides[i];
  return offset;
}

SmallVector<ScaleStep> contraction::stepsOfLoops(AffineMap map,
                                                 ArrayRef<int64_t> strides) {
  SmallVector<ScaleStep> result(map.getNumDims());
  for (auto [i, place] : llvm::enumerate(map.getResults())) {
    AffineExpr expr = place;
    if (isa<AffineConstantExpr>(expr))
      continue;
    int64_t tile = 1;
    if (auto quotient = dyn_cast<AffineBinaryOpExpr>(expr)) {
      tile = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
      expr = quotient.getLHS();
    }
    result[cast<AffineDimExpr>(expr).getPosition()] =
        ScaleStep{strides[i], tile};
  }
  return result;
}

LogicalResult contraction::stridesOf(Type type, SmallVector<int64_t> &strides) {
  auto shaped = cast<ShapedType>(type);
  if (!shaped.hasStaticShape())
    return failure();
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref) {
    strides = computeStrides(shaped.getShape());
    return success();
  }
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return failure();
  return success(!llvm::any_of(strides, ShapedType::isDynamic));
}

FailureOr<LoopInfo> LoopInfo::of(linalg::GenericOp op,
                                 const ContractionDims &dims,
                                 ArrayRef<int64_t> sizes,
                                 std::array<Type, 2> localInputs,
                                 ArrayRef<int64_t> outStrides,
                                 const std::optional<OpenLoop> &open) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  LoopInfo loops;
  loops.sizes.assign(sizes.begin(), sizes.end());
  loops.extents = op.getStaticLoopRanges();
  loops.open = open;
  for (unsigned i = 0; i < 2; ++i) {
    SmallVector<int64_t> own, ofScales;
    Type type =
        localInputs[i] ? localInputs[i] : op.getDpsInputs()[i].getType();
    if (failed(stridesOf(type, own)))
      return failure();
    loops.strides[i] = stridesOfLoops(maps[i], own);
    loops.scales[i].resize(sizes.size());
    std::optional<unsigned> scale = dims.scales[i];
    if (!scale)
      continue;
    if (failed(stridesOf(op.getDpsInputs()[*scale].getType(), ofScales)))
      return failure();
    loops.scales[i] = stepsOfLoops(maps[*scale], ofScales);
  }
  loops.strides[2] = stridesOfLoops(maps.back(), outStrides);
  return loops;
}

/// Returns the step of two dimensions that are merged, if there is one.
static std::optional<ScaleStep> mergeSteps(ScaleStep outer, ScaleStep inner,
                                           int64_t innerSize, bool innerWhole) {
  if (inner.stride == 0)
    return ScaleStep{outer.stride,
                     outer.stride == 0 ? 1 : outer.tile * innerSize};
  if (innerWhole && innerSize % inner.tile == 0 && outer.tile == 1 &&
      outer.stride == innerSize / inner.tile * inner.stride)
    return inner;
  return std::nullopt;
}

/// Returns the dimensions of a group with more than one iteration, sorted by
/// stride.
static SmallVector<Dim> collectDims(ArrayRef<unsigned> dims,
                                    const LoopInfo &loops,
                                    unsigned sortOperand) {
  SmallVector<Dim> group;
  for (unsigned d : dims)
    if (loops.sizes[d] != 1) {
      Dim dim;
      dim.size = loops.sizes[d];
      dim.isOpen = loops.open && loops.open->loop == d;
      for (int j = 0; j < 3; ++j)
        dim.strides[j] = loops.strides[j][d];
      for (int j = 0; j < 2; ++j)
        dim.scales[j] = loops.scales[j][d];
      dim.loops.push_back({d, 1});
      group.push_back(dim);
    }
  // Insertion sort keeps the order of loops with equal strides.
  for (unsigned i = 1; i < group.size(); ++i)
    for (unsigned j = i; j > 0 && group[j - 1].strides[sortOperand] <
                                      group[j].strides[sortOperand];
         --j)
      std::swap(group[j - 1], group[j]);
  return group;
}

/// Merges `outer` into `inner` if they nest in every operand.
static bool mergeInto(Dim &inner, const Dim &outer, const LoopInfo &loops) {
  if (inner.isOpen || outer.isOpen)
    return false;
  bool innerWhole = true;
  for (int j = 0; j < 3; ++j)
    if (outer.strides[j] != inner.strides[j] * inner.size)
      return false;
  for (auto [loop, stride] : inner.loops)
    innerWhole &= loops.sizes[loop] == loops.extents[loop];
  std::array<ScaleStep, 2> scales;
  for (int j = 0; j < 2; ++j) {
    std::optional<ScaleStep> step =
        mergeSteps(outer.scales[j], inner.scales[j], inner.size, innerWhole);
    if (!step)
      return false;
    scales[j] = *step;
  }
  for (auto [loop, stride] : outer.loops)
    inner.loops.push_back({loop, stride * inner.size});
  inner.size *= outer.size;
  inner.scales = scales;
  return true;
}

SmallVector<Dim> contraction::mergeDims(ArrayRef<unsigned> dims,
                                        const LoopInfo &loops,
                                        unsigned sortOperand) {
  SmallVector<Dim> merged = collectDims(dims, loops, sortOperand);
  for (int64_t i = int64_t(merged.size()) - 2; i >= 0; --i)
    if (mergeInto(merged[i + 1], merged[i], loops))
      merged.erase(merged.begin() + i);
  return merged;
}
