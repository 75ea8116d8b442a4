//===- OperandTiles.h - Tiles that several dots read in place ---*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTS_OPERANDTILES_H
#define FP8_LIB_CODEGEN_GPU_DOTS_OPERANDTILES_H

#include "DotPlan.h"

namespace mlir::fp8::gpu_codegen {

/// A tile of an operand that TMA brings to shared memory, whole along k, for
/// all dots of a kernel that read it there. A block that runs the last loop of
/// its domain in order keeps tiles that do not move along that loop. The others
/// have a slot for the current step, and more for those that follow.
struct OperandTile {
  TensorMapAttr map;
  /// For each dimension of the map, the loops of the domain that move the tile
  /// along it, and by how many elements.
  SmallVector<SmallVector<std::pair<unsigned, int64_t>>> moves;
  /// The offsets of its boxes in the tensor map, in the order in which they lie
  /// in shared memory.
  SmallVector<SmallVector<int64_t>> boxes;
  int64_t bytes = 0;
  /// Where it begins, in the memory of the tiles that are kept or in a slot.
  int64_t offset = 0;

  bool movesAlong(unsigned loop) const;
  bool isSameAs(const OperandTile &other) const {
    return map == other.map && moves == other.moves && boxes == other.boxes;
  }
};

/// Returns the tile of an operand of a dot whose plan has its operands in
/// place. `loopOfDim` has the loop of the domain that divides each loop of the
/// dot, -1 if it is whole.
OperandTile makeOperandTile(const DotPlan &plan, unsigned operand,
                            ArrayRef<int64_t> loopOfDim);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTS_OPERANDTILES_H
