//===- DotWgmma.cpp - The products of a stage by wgmma --------------------===//
//
// A warpgroup multiplies 64 rows and all columns of a block's tile, 32 bytes
// along k at a time, directly from shared memory (PTX ISA, "Asynchronous
// Warpgroup Level Matrix Multiply-Accumulate Instructions"). A line of the
// swizzle is one stage of a row. For elements of 16 bits it can also be one
// element along k of a band of rows.
//
//===----------------------------------------------------------------------===//

#include "DotEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The size of the window of shared memory that a descriptor can address.
static constexpr int64_t kWindow = 1 << 18;

void gpu_codegen::showToWgmma(OpBuilder &b, Location loc) {
  MLIRContext *context = b.getContext();
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
}

/// Returns the matrix descriptor of the first 32 bytes along k of a stage, for
/// this warpgroup's rows or for all columns (PTX ISA, "Matrix Descriptor
/// Format").
Value DotEmitter::descriptorOf(unsigned operand, Value stage) {
  Value start;
  bool alongK = plan.operands[operand].linesAlongK;
  int64_t line = plan.lineBytes(operand);
  if (plan.inPlace) {
    start = add(starts[operand], mul(stage, alongK ? plan.stageSize(operand)
                                                   : line * plan.stageDepth()));
  } else {
    start = arith::AddIOp::create(
        b, loc, memref::ExtractAlignedPointerAsIndexOp::create(b, loc, shared),
        mul(stage, plan.stageSize()));
    start = add(start, operand ? plan.stageSize(0) : 0);
  }
  int64_t groupBytes =
      alongK ? kWgmmaRows * line
             : plan.bandDistance(0) * kWgmmaRows / plan.bandRows(0);
  if (operand == 0) {
    Value group = div(thread, kWarpgroup);
    // Descriptors of all stages would be computed once, and kept in registers
    // while the tile's epilogue needs them.
    if (plan.tileColumns == kWideColumns)
      group = knownFromHere(b, loc, group);
    start = add(start, mul(group, groupBytes));
  }
  start = div(rem(start, kWindow), kPiece);
  // Lines of 128, 64 and 32 bytes have swizzles 1, 2 and 3.
  uint64_t swizzle = 1 + llvm::Log2_64(kWgmmaStageBytes / line);
  // The stride is that of eight lines. The leading offset is that of two bands
  // of rows; it is ignored if lines are along k.
  uint64_t leading = alongK ? 1 : plan.bandDistance(operand) / kPiece;
  uint64_t layout =
      leading << 16 | uint64_t(8 * line / kPiece) << 32 | swizzle << 62;
  Value low = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), start);
  return arith::OrIOp::create(
      b, loc, low,
      arith::ConstantIntOp::create(b, loc, b.getI64Type(),
                                   static_cast<int64_t>(layout)));
}

static NVVM::WGMMATypesAttr wgmmaType(Type type) {
  NVVM::WGMMATypes kind = isa<Float8E5M2Type>(type)     ? NVVM::WGMMATypes::e5m2
                          : isa<Float8E4M3FNType>(type) ? NVVM::WGMMATypes::e4m3
                          : type.isBF16()               ? NVVM::WGMMATypes::bf16
                                                        : NVVM::WGMMATypes::f16;
  return NVVM::WGMMATypesAttr::get(type.getContext(), kind);
}

/// Starts to add the products of a stage to the sums of this thread. The result
/// must not be used before waitForProducts. If `fromZero`, there are no sums
/// yet.
Value DotEmitter::startProducts(Value stage, ValueRange sums, bool fromZero) {
  MLIRContext *context = b.getContext();
  auto type = LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(plan.sumsPerThread(), b.getF32Type()));
  Value made = LLVM::PoisonOp::create(b, loc, type);
  for (auto [i, sum] : llvm::enumerate(sums))
    made = LLVM::InsertValueOp::create(b, loc, made, sum, i);
  std::array<Value, 2> descriptors = {descriptorOf(0, stage),
                                      descriptorOf(1, stage)};
  auto shape = NVVM::MMAShapeAttr::get(context, kWgmmaRows, plan.tileColumns,
                                       kMmaBytes / plan.elementBytes());
  auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  auto layoutOf = [&](unsigned operand) {
    bool isRow = plan.operands[operand].linesAlongK == (operand == 0);
    return NVVM::MMALayoutAttr::get(context, isRow ? NVVM::MMALayout::row
                                                   : NVVM::MMALayout::col);
  };
  for (int64_t byte = 0; byte < plan.stageBytes; byte += kMmaBytes) {
    std::array<Value, 2> at;
    for (unsigned i = 0; i < 2; ++i) {
      int64_t offset = plan.operands[i].linesAlongK
                           ? byte
                           : byte / plan.elementBytes() * plan.lineBytes(i);
      at[i] =
          arith::AddIOp::create(b, loc, descriptors[i],
                                arith::ConstantIntOp::create(
                                    b, loc, b.getI64Type(), offset / kPiece));
    }
    made = NVVM::WgmmaMmaAsyncOp::create(
        b, loc, type, made, at[0], at[1], shape, wgmmaType(plan.operands[0].to),
        wgmmaType(plan.operands[1].to),
        NVVM::WGMMATypesAttr::get(context, NVVM::WGMMATypes::f32),
        NVVM::WGMMAScaleOutAttr::get(context, fromZero && byte == 0
                                                  ? NVVM::WGMMAScaleOut::zero
                                                  : NVVM::WGMMAScaleOut::one),
        one, one, layoutOf(0), layoutOf(1), NVVM::MMAIntOverflowAttr());
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  return made;
}

/// Returns the sums of this thread. Before a wait, only `wgmma` may use them.
DotEmitter::Values DotEmitter::valuesOf(Value made, unsigned count) {
  Values sums;
  for (unsigned i = 0; i < count; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, loc, made, i));
  return sums;
}

DotEmitter::Values DotEmitter::waitForProducts(Value made, unsigned count) {
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
  return valuesOf(made, count);
}

/// Multiplies a stage while cp.async copies later ones, or while the next one
/// is stored to shared memory and the one after it is loaded. The memory that a
/// copy overwrites was read by earlier products, for which all warps have
/// waited before the barrier.
DotEmitter::Values DotEmitter::sumRunByWgmma(Places places, const Run &run,
                                             Values sums) {
  int64_t depth = plan.stageDepth();
  startFirstCopies(places, run);
  Values carried = loadStage(places, run, cst(0));
  unsigned loaded = carried.size();
  storeStage(run, carried, cst(0));
  if (run.stages > 1)
    carried = loadStage(places, run, cst(depth));
  auto multiply = [&](Value at, ValueRange staged, ValueRange sums) {
    Value number = div(at, depth);
    waitForCopies();
    showToWgmma(b, loc);
    gpu::BarrierOp::create(b, loc);
    Value made = startProducts(rem(number, plan.stages), sums,
                               /*fromZero=*/sums.empty());
    startNextCopies(places, run, at);
    Values next = llvm::to_vector(staged);
    if (loaded && run.stages > 1)
      next = ifStage(run, add(at, depth), next, [&] {
        storeStage(run, next, rem(add(number, 1), plan.stages));
        Value following = add(at, 2 * depth);
        return ifStage(run, following, next,
                       [&] { return loadStage(places, run, following); });
      });
    llvm::append_range(next, waitForProducts(made, plan.sumsPerThread()));
    return next;
  };
  // Sums of nothing begin with the first products. LLVM would write zeros
  // between a fence and wgmma, for which CUDA's assembler serializes it.
  int64_t first = llvm::all_of(
      sums, [](Value sum) { return matchPattern(sum, m_AnyZeroFloat()); });
  if (first)
    carried = multiply(cst(0), carried, {});
  else
    llvm::append_range(carried, inRegisters(sums));
  Values results = carried;
  if (run.stages > first)
    results = forValues((run.stages - first) * depth, depth, carried,
                        [&](Value at, ValueRange carried) {
                          return multiply(add(at, first * depth),
                                          carried.take_front(loaded),
                                          carried.drop_front(loaded));
                        });
  results.erase(results.begin(), results.begin() + loaded);
  return results;
}

/// Multiplies operands that lie in shared memory.
DotEmitter::Values DotEmitter::multiplyInPlace(Values sums) {
  Values carried;
  if (kept)
    carried = inRegisters(sums);
  Value made;
  for (int64_t stage = 0; stage < plan.stagesInPlace(); ++stage) {
    made = startProducts(cst(stage), carried,
                         /*fromZero=*/!kept && stage == 0);
    carried = valuesOf(made, sums.size());
  }
  return waitForProducts(made, sums.size());
}
