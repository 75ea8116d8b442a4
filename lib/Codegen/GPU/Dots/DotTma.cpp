//===- DotTma.cpp - Dots whose operands TMA brings ------------------------===//
//
// The producer's thread and the warpgroups run the same loops. Where the
// warpgroups multiply a stage, the producer asks for the boxes of both operands
// (PTX ISA, "Data Movement and Conversion Instructions:
// cp.async.bulk.tensor"). Boxes have the swizzle of wgmma, and elements outside
// of the tensor become zeros. Rows outside of the tile but inside of the tensor
// come, too; their sums are not stored.
//
//===----------------------------------------------------------------------===//

#include "DotEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Returns the coordinates of a tile's first elements in the tensor maps.
std::array<SmallVector<Value>, 2>
DotEmitter::firstCoordinates(const ContractionTile &tile) {
  std::array<SmallVector<Value>, 2> coordinates;
  for (unsigned i = 0; i < 2 && plan.tma; ++i) {
    const OperandBoxes &boxes = plan.boxes[i];
    coordinates[i].assign(boxes.map.getSizes().size(), cst(0));
    for (auto [loop, offset] : llvm::zip(boxes.loops, tile.offsets)) {
      auto [dimension, distance] = loop;
      if (distance)
        coordinates[i][dimension] =
            add(coordinates[i][dimension], mul(offset, distance));
    }
  }
  return coordinates;
}

Places DotEmitter::moved(Places places, const Dim &dim, Value i) {
  static_cast<contraction::Places &>(places) =
      PlaceBuilder::moved(places, dim, i);
  for (unsigned operand = 0; operand < 2 && plan.tma; ++operand) {
    auto [dimension, distance] =
        plan.boxes[operand].loops[dim.loops.front().first];
    Value &coordinate = places.coordinates[operand][dimension];
    if (distance)
      coordinate = add(coordinate, mul(i, distance));
  }
  return places;
}

/// Asks for the boxes of the stage at `k`, one for each band of rows.
void DotEmitter::fillStage(Places places, Value k) {
  ring->waitUntilEmpty();
  Value barrier = ring->expect(plan.stageSize());
  Value start = mul(ring->stage(), plan.stageSize());
  for (unsigned operand = 0; operand < 2; ++operand) {
    const OperandBoxes &boxes = plan.boxes[operand];
    for (int64_t band = 0; band < plan.bands(operand); ++band) {
      SmallVector<Value> coordinates = places.coordinates[operand];
      coordinates[boxes.k] = add(coordinates[boxes.k], k);
      Value &row = coordinates[boxes.rows];
      row = add(row, add(first[operand], band * plan.bandRows(operand)));
      int64_t offset = operand * plan.stageSize(0) +
                       band * plan.stageSize(operand) / plan.bands(operand);
      ring->copyBox(operand, coordinates, shared, add(start, offset), barrier);
    }
  }
  ring->advance();
}

/// Asks for the stages of `extent` elements of k, from k0 on.
void DotEmitter::fillRun(Places places, Value k0, int64_t extent) {
  int64_t depth = plan.stageDepth();
  forLoop(0, llvm::alignTo(extent, depth), depth,
          [&](Value at) { fillStage(places, add(k0, at)); });
}

/// Releases the last stage of which all products are complete, for this warp.
void DotEmitter::releaseStage(Value condition) {
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, cst(0));
  auto branch = scf::IfOp::create(b, loc, conjunction(isFirst, condition));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  ring->releaseLast();
}

/// Keeps sums in registers from here on, by assembly without instructions. LLVM
/// would otherwise write constants to them between a wgmma.fence and wgmma,
/// where CUDA's assembler then adds a fence, or serializes wgmma.
DotEmitter::Values DotEmitter::inRegisters(ValueRange sums) {
  Values kept;
  for (Value sum : sums)
    kept.push_back(throughAssembly(b, loc, sum, "=f,0"));
  return kept;
}

/// Waits for the next stage and starts its products. The products of the stage
/// before it run meanwhile; it is released afterwards, where `releases` holds.
DotEmitter::Values DotEmitter::multiplyStage(ValueRange sums, bool fromZero,
                                             Value releases) {
  ring->waitUntilFull();
  Value made = startProducts(ring->stage(), sums, fromZero);
  if (releases) {
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 1);
    releaseStage(releases);
  }
  ring->advance();
  return valuesOf(made, plan.sumsPerThread());
}

/// Multiplies the stages of `extent` elements of k. Partial sums begin with the
/// first products, without registers for zeros.
DotEmitter::Values DotEmitter::multiplyRun(int64_t extent, Values sums) {
  int64_t depth = plan.stageDepth(), end = llvm::alignTo(extent, depth);
  Values results;
  if (plan.hasParts()) {
    results = multiplyStage({}, /*fromZero=*/true, /*releases=*/Value());
    Value always = arith::ConstantIntOp::create(b, loc, 1, 1);
    if (end > depth)
      results = forValues(
          end - depth, depth, results, [&](Value, ValueRange carried) {
            return multiplyStage(carried, /*fromZero=*/false, always);
          });
  } else {
    results = forValues(
        end, depth, inRegisters(sums), [&](Value at, ValueRange carried) {
          Value releases;
          if (end > depth)
            releases = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                             at, cst(0));
          return multiplyStage(carried, /*fromZero=*/false, releases);
        });
  }
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
  releaseStage(Value());
  return results;
}
