//===- TensorMaps.cpp - How TMA brings the operands of a dot --------------===//

#include "DotPlan.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

namespace {

/// A tensor map in the making: the dimensions of one operand.
struct Dimensions {
  SmallVector<int64_t> sizes, strides; // in elements
  SmallVector<bool> areRows;

  void add(int64_t size, int64_t stride, bool isRow) {
    sizes.push_back(size);
    strides.push_back(stride);
    areRows.push_back(isRow);
  }
};

} // namespace

/// Returns the operand's loops that are not along the inner k, the one with the
/// smallest stride first.
static SmallVector<unsigned> otherLoops(ArrayRef<int64_t> strides,
                                        ArrayRef<int64_t> extents,
                                        const contraction::Dim &k) {
  SmallVector<unsigned> others;
  for (unsigned d = 0; d < strides.size(); ++d)
    if (strides[d] != 0 && extents[d] != 1 &&
        llvm::none_of(k.loops,
                      [&](const auto &loop) { return loop.first == d; }))
      others.push_back(d);
  llvm::sort(others, [&](unsigned a, unsigned b) {
    return std::pair(strides[a], a) < std::pair(strides[b], b);
  });
  return others;
}

/// Adds dimensions for loops. Adjacent loops of rows, or of no rows, share a
/// dimension if they nest.
static void addLoops(ArrayRef<unsigned> others,
                     const contraction::LoopInfo &loops,
                     ArrayRef<unsigned> rowLoops, unsigned operand,
                     Dimensions &dims, OperandBoxes &boxes) {
  for (unsigned d : others) {
    bool isRow = llvm::is_contained(rowLoops, d);
    int64_t stride = loops.strides[operand][d];
    unsigned last = dims.sizes.size() - 1;
    bool nests = last > 0 && dims.areRows[last] == isRow &&
                 stride == dims.strides[last] * dims.sizes[last];
    if (!nests) {
      dims.add(1, stride, isRow);
      ++last;
    }
    boxes.loops[d] = {last, dims.sizes[last]};
    dims.sizes[last] *= loops.extents[d];
  }
}

/// Finds the dimension along which the rows of a tile lie one after another.
static LogicalResult findRows(ArrayRef<unsigned> others,
                              ArrayRef<unsigned> rowLoops,
                              ArrayRef<int64_t> tile, Dimensions &dims,
                              OperandBoxes &boxes) {
  int64_t distance = 1;
  for (unsigned d : others) {
    if (!llvm::is_contained(rowLoops, d) || tile[d] == 1)
      continue;
    auto [dimension, own] = boxes.loops[d];
    if (own != distance || (boxes.rows != 0 && boxes.rows != dimension))
      return failure();
    boxes.rows = dimension;
    distance *= tile[d];
  }
  for (unsigned i = 1; i < dims.sizes.size() && boxes.rows == 0; ++i)
    if (dims.areRows[i])
      boxes.rows = i;
  if (boxes.rows == 0) { // The only row of a tile.
    boxes.rows = dims.sizes.size();
    dims.add(1, dims.sizes.back() * dims.strides.back(), /*isRow=*/true);
  }
  return success();
}

FailureOr<OperandBoxes>
gpu_codegen::planBoxes(linalg::GenericOp dot,
                       const contraction::LoopInfo &loops,
                       ArrayRef<int64_t> tile, const DotPlan &plan,
                       unsigned operand, std::string &why) {
  Value input = dot.getDpsInputs()[operand];
  auto type = cast<MemRefType>(input.getType());
  int64_t offset;
  SmallVector<int64_t> own;
  if (failed(type.getStridesAndOffset(own, offset)) || offset != 0) {
    why = "it begins within its buffer";
    return failure();
  }
  ContractionDims dims = *inferContractionDims(dot);
  ArrayRef<unsigned> rowLoops = operand ? dims.n : dims.m;
  OperandBoxes boxes;
  boxes.loops.resize(tile.size(), {0, 0});
  for (auto [d, distance] : plan.k.loops)
    boxes.loops[d] = {0, distance};
  Dimensions found;
  found.add(plan.k.size, 1, /*isRow=*/false);
  SmallVector<unsigned> others =
      otherLoops(loops.strides[operand], loops.extents, plan.k);
  addLoops(others, loops, rowLoops, operand, found, boxes);
  if (failed(findRows(others, rowLoops, tile, found, boxes))) {
    why = "the rows of a tile do not follow one another";
    return failure();
  }
  SmallVector<int64_t> strides, box(found.sizes.size(), 1);
  box[0] = plan.stageDepth();
  box[boxes.rows] = plan.extentOf(operand);
  for (int64_t stride : ArrayRef(found.strides).drop_front())
    strides.push_back(stride * plan.elementBytes());
  Type element = type.getElementType();
  why = TensorMapAttr::findMistake(element, found.sizes, strides, box,
                                   plan.stageBytes);
  if (!why.empty())
    return failure();
  boxes.map = TensorMapAttr::get(
      dot.getContext(), cast<BlockArgument>(input).getArgNumber(), element,
      found.sizes, strides, box, plan.stageBytes);
  return boxes;
}
