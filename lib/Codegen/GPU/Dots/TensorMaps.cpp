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
  /// Whether a tile has all that the last dimension has so far.
  bool isWhole = true;

  void add(int64_t size, int64_t stride, bool isRow) {
    sizes.push_back(size);
    strides.push_back(stride);
    areRows.push_back(isRow);
    isWhole = true;
  }
};

} // namespace

/// Returns the operand's loops for which `isWanted`, the one with the smallest
/// stride first.
static SmallVector<unsigned> loopsOf(ArrayRef<int64_t> strides,
                                     ArrayRef<int64_t> extents,
                                     function_ref<bool(unsigned)> isWanted) {
  SmallVector<unsigned> found;
  for (unsigned d = 0; d < strides.size(); ++d)
    if (strides[d] != 0 && extents[d] != 1 && isWanted(d))
      found.push_back(d);
  llvm::sort(found, [&](unsigned a, unsigned b) {
    return std::pair(strides[a], a) < std::pair(strides[b], b);
  });
  return found;
}

/// Adds dimensions for loops. Adjacent loops of rows, or of no rows, share a
/// dimension if they nest, unless a tile has a part of one and several
/// iterations of the other: a box has what follows one another.
static void addLoops(ArrayRef<unsigned> added,
                     const contraction::LoopInfo &loops, ArrayRef<int64_t> tile,
                     ArrayRef<unsigned> rowLoops, unsigned operand,
                     Dimensions &dims, OperandBoxes &boxes) {
  unsigned known = dims.sizes.size();
  for (unsigned d : added) {
    bool isRow = llvm::is_contained(rowLoops, d);
    int64_t stride = loops.strides[operand][d];
    bool nests = dims.sizes.size() > known && dims.areRows.back() == isRow &&
                 stride == dims.strides.back() * dims.sizes.back() &&
                 (dims.isWhole || tile[d] == 1);
    if (!nests)
      dims.add(1, stride, isRow);
    boxes.loops[d] = {dims.sizes.size() - 1, dims.sizes.back()};
    dims.sizes.back() *= loops.extents[d];
    dims.isWhole &= tile[d] == loops.extents[d];
  }
}

/// Adds the dimension along the inner k, which no other loop shares: what lies
/// beyond its end must be zeros.
static void addK(const contraction::Dim &k, ArrayRef<int64_t> extents,
                 unsigned operand, Dimensions &dims, OperandBoxes &boxes) {
  boxes.k = dims.sizes.size();
  int64_t size = 1; // that of the tensor, of which k may be a part
  for (auto [d, distance] : k.loops) {
    boxes.loops[d] = {boxes.k, distance};
    size = std::max(size, distance * extents[d]);
  }
  dims.add(size, k.strides[operand], /*isRow=*/false);
}

/// Finds the dimension along which the rows of a tile lie one after another.
static LogicalResult findRows(ArrayRef<unsigned> rows, ArrayRef<int64_t> tile,
                              Dimensions &dims, OperandBoxes &boxes) {
  std::optional<unsigned> found;
  int64_t distance = 1;
  for (unsigned d : rows) {
    if (tile[d] == 1)
      continue;
    auto [dimension, own] = boxes.loops[d];
    if (own != distance || found.value_or(dimension) != dimension)
      return failure();
    found = dimension;
    distance *= tile[d];
  }
  for (unsigned i = 0; i < dims.sizes.size() && !found; ++i)
    if (dims.areRows[i])
      found = i;
  if (!found) { // The only row of a tile.
    found = dims.sizes.size();
    dims.add(1, dims.sizes.back() * dims.strides.back(), /*isRow=*/true);
  }
  boxes.rows = *found;
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
  SmallVector<int64_t> unused;
  if (failed(type.getStridesAndOffset(unused, offset)) || offset != 0) {
    why = "it begins within its buffer";
    return failure();
  }
  ContractionDims dims = *inferContractionDims(dot);
  ArrayRef<unsigned> rowLoops = operand ? dims.n : dims.m;
  OperandBoxes boxes;
  boxes.loops.resize(tile.size(), {0, 0});
  Dimensions found;
  auto isRow = [&](unsigned d) { return llvm::is_contained(rowLoops, d); };
  auto isOther = [&](unsigned d) {
    return llvm::none_of(plan.k.loops,
                         [&](const auto &loop) { return loop.first == d; });
  };
  ArrayRef<int64_t> own = loops.strides[operand];
  SmallVector<unsigned> rows = loopsOf(own, loops.extents, isRow);
  bool alongK = plan.operands[operand].alongK;
  // Dimensions lie in the order of their strides, so that all dots which read
  // the same tile have the same map.
  auto addOthers = [&](bool before) {
    addLoops(loopsOf(own, loops.extents,
                     [&](unsigned d) {
                       return isOther(d) &&
                              (own[d] < plan.k.strides[operand]) == before;
                     }),
             loops, tile, rowLoops, operand, found, boxes);
  };
  addOthers(/*before=*/true);
  addK(plan.k, loops.extents, operand, found, boxes);
  addOthers(/*before=*/false);
  if (failed(findRows(rows, tile, found, boxes)) ||
      (!alongK && (boxes.rows != 0 || found.strides[0] != 1))) {
    why = "the rows of a tile do not follow one another";
    return failure();
  }
  SmallVector<int64_t> strides, box(found.sizes.size(), 1);
  box[boxes.k] = plan.depthTogether(operand);
  box[boxes.rows] = plan.bandRows(operand);
  for (int64_t stride : ArrayRef(found.strides).drop_front())
    strides.push_back(stride * plan.elementBytes());
  Type element = type.getElementType();
  int64_t swizzle = plan.lineBytes(operand);
  why = TensorMapAttr::findMistake(element, found.sizes, strides, box, swizzle);
  if (!why.empty())
    return failure();
  boxes.map = TensorMapAttr::get(dot.getContext(),
                                 cast<BlockArgument>(input).getArgNumber(),
                                 element, found.sizes, strides, box, swizzle);
  return boxes;
}
