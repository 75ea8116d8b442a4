//===- BlockLowering.cpp - Lowering of a kernel to a GPU block ------------===//

#include "BlockLowering.h"
#include "../Dots/DotEmitter.h"

#include "fp8/Codegen/GPU/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The number of blocks of a kernel that needs global memory: some for each
/// multiprocessor of the largest card, so that this memory does not grow with
/// the tensors.
static constexpr int64_t kMostScratchBlocks = 256;
/// The bytes of shared memory that the system keeps of each block.
static constexpr int64_t kSystemShared = 1 << 10;
/// The registers, at least, that a dot needs besides its sums.
static constexpr int64_t kOtherRegisters = 24;
/// The barrier of the warps that compute, beside the producer of TMA.
static constexpr int64_t kComputeBarrier = 1;

bool gpu_codegen::staysInNest(Value buffer, const lowering::TileParts &parts) {
  for (auto &part : parts) {
    const Nest *nest = std::get_if<Nest>(&part);
    if (!nest || !llvm::all_of(buffer.getUsers(), [&](Operation *user) {
          auto generic = dyn_cast<linalg::GenericOp>(user);
          return generic && llvm::is_contained(nest->ops, generic);
        }))
      continue;
    return llvm::all_of(buffer.getUses(), [](OpOperand &use) {
      auto generic = cast<linalg::GenericOp>(use.getOwner());
      return !generic.isDpsInit(&use) || allParallel(generic);
    });
  }
  return false;
}

/// Locals whose lifetimes do not overlap may share memory: shared memory as
/// long as there is room, then global memory.
LogicalResult BlockLowering::planScratch() {
  FirstFit inShared, inGlobal;
  if (dots.inPlace)
    planOperandTiles();
  findEpilogues();
  if (rows > 0 && !(scatter = findScatter()))
    return kernel->emitOpError("expected one scatter, because its plan says "
                               "how many rows a block owns");
  // Sums of columns use the memory of a dot, unless TMA brings the next tile's
  // operands there meanwhile.
  int64_t sumBytes = std::max(columnSumBytes(), scatterBytes());
  bool isApart = hasProducer() && sumBytes > 0;
  int64_t otherBytes = isApart
                           ? llvm::alignTo(dotBytes, kLocalAlignment) + sumBytes
                           : std::max(dotBytes, sumBytes);
  int64_t available =
      llvm::alignDown(target.sharedBytes - otherBytes, dotAlignment);
  for (auto &[buffer, local] : locals) {
    auto isResultOf = [buffer = buffer](Operation *op) {
      return cast<linalg::GenericOp>(op).getDpsInits()[0] == buffer;
    };
    bool isOnlySums =
        llvm::any_of(llvm::make_first_range(epilogues), isResultOf) ||
        llvm::any_of(llvm::make_first_range(heldDots), isResultOf);
    if (isOnlySums || staysInNest(buffer, parts)) {
      local.bytes = local.scratchOffset = 0;
      continue;
    }
    if (dots.inPlace) // Patterns of swizzles begin with each local.
      local.bytes = llvm::alignTo(local.bytes, kWgmmaAlignment);
    local.isStaged = isStaged(buffer);
    if (local.isStaged) {
      int64_t line = tileType(local, tile).getShape().back();
      local.bytes =
          llvm::alignTo(local.bytes / line * stagedLine(line), kLocalAlignment);
    }
    local.lifetime = lowering::lifetimeOf(buffer, parts, absorbedFills);
    // Some warps write it while others still multiply.
    if (isOfSums(local.lifetime.first))
      --local.lifetime.first;
    local.scratchOffset = inShared.find(local.lifetime, local.bytes);
    local.inShared = local.scratchOffset + local.bytes <= available;
    if (local.inShared)
      inShared.take(local.lifetime, local.scratchOffset, local.bytes);
    else
      local.scratchOffset = inGlobal.place(local.lifetime, local.bytes);
  }
  scratchBytes = inGlobal.size();
  dotOffset = llvm::alignTo(inShared.size(), dotAlignment);
  sharedBytes = dotOffset + otherBytes;
  sumOffset = isApart ? sharedBytes - sumBytes : dotOffset;
  if (sharedBytes > target.sharedBytes && dots.inPlace)
    whyNotInPlace = "they need too much shared memory";
  else if (sharedBytes > target.sharedBytes)
    return kernel->emitOpError("expected at most ")
           << target.sharedBytes << " bytes of shared memory but needs "
           << sharedBytes;
  return success();
}

LogicalResult BlockLowering::measure() {
  return failure(failed(findParts()) || failed(planScratch()));
}

int64_t BlockLowering::blocksTogether() const {
  int64_t blocks = target.sharedPerProcessor / (sharedBytes + kSystemShared);
  if (hasProducer())
    blocks = std::min(
        {blocks, target.warps * kWarp / getThreads(),
         target.registers / (getThreads() * (sumRegisters + kOtherRegisters))});
  return std::max<int64_t>(blocks, 1);
}

int64_t BlockLowering::getBlocks() {
  if (rows > 0)
    return llvm::divideCeil(scatter->numRows, rows);
  int64_t blocks = countTasks();
  if (scratchBytes > 0)
    blocks = std::min(blocks, kMostScratchBlocks);
  if (!dots.tma)
    return blocks;
  return std::min(blocks, processors * blocksTogether());
}

/// Global memory, tensor maps and shared memory become trailing arguments.
Value BlockLowering::prepareArguments() {
  if (scratchBytes > 0)
    scratchArgument = body().addArgument(
        MemRefType::get({scratchBytes * getBlocks()}, builder.getI8Type()),
        loc);
  for (unsigned i = 0; i < maps.size(); ++i)
    mapArguments.push_back(body().addArgument(
        LLVM::LLVMPointerType::get(builder.getContext()), loc));
  if (sharedBytes > 0) {
    auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                            gpu::AddressSpace::Workgroup);
    sharedArgument =
        body().addArgument(MemRefType::get({sharedBytes}, builder.getI8Type(),
                                           MemRefLayoutAttrInterface(), space),
                           loc);
  }
  thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  return block;
}

/// Emits a barrier of the threads that compute.
void BlockLowering::emitBarrier() {
  if (!ring) {
    gpu::BarrierOp::create(builder, loc);
    return;
  }
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  NVVM::BarrierOp::create(builder, loc, TypeRange(), number(kComputeBarrier),
                          number(threads), NVVM::BarrierReductionAttr(),
                          Value());
}

/// Parts exchange data between the threads that compute, and with `wgmma`,
/// which reads through the async proxy.
void BlockLowering::emitPartEnd() {
  if (ring && ring->fills)
    return;
  if (std::exchange(hasWrittenLines, false))
    showToWgmma(builder, loc);
  emitBarrier();
}

/// A block runs one task, or every task whose number is congruent to its own
/// modulo the number of blocks.
Value BlockLowering::emitTaskLoop(Value first) {
  if (rows > 0 || getBlocks() == countTasks())
    return first;
  auto loop =
      scf::ForOp::create(builder, loc, first, constantIndex(countTasks()),
                         constantIndex(getBlocks()));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  // All threads must have finished reading the previous task's data. The
  // producer only needs room in the ring.
  if (!ring || !ring->fills)
    emitBarrier();
  return loop.getInductionVar();
}

LogicalResult BlockLowering::emitTasks(Value first) {
  if (!whyNotInPlace.empty())
    return kernel->emitOpError("expected dots that read their operands in "
                               "place, but ")
           << whyNotInPlace;
  // The last queries see the most keys of a causal mask: their blocks come
  // first, so that short ones fill the end.
  if (dots.inPlace && band && band->keyLoop == domain.size() - 1)
    first = arith::SubIOp::create(builder, loc, constantIndex(countTasks() - 1),
                                  first);
  if (hasProducer())
    return emitTasksWithTma(first);
  Value task = emitTaskLoop(first);
  checkRows(task);
  return emitTask(task);
}

/// One thread of the last warp, the producer, asks for the operands of all
/// tasks. The other warps compute, with barriers of their own.
LogicalResult BlockLowering::emitTasksWithTma(Value first) {
  auto memory = cast<MemRefType>(sharedArgument.getType());
  // The barriers are the last bytes of the memory for dots.
  auto barriersFromEnd = [&](int64_t first, int64_t count) -> Value {
    return memref::ViewOp::create(
        builder, loc,
        MemRefType::get({count * kBarrierBytes}, memory.getElementType(),
                        MemRefLayoutAttrInterface(), memory.getMemorySpace()),
        sharedArgument,
        constantIndex(dotOffset + dotBytes - first * kBarrierBytes),
        ValueRange{});
  };
  SmallVector<TmaRing *> rings;
  if (dots.inPlace) {
    makeRings(barriersFromEnd);
    rings = {ring.get(), keptRing.get()};
  } else {
    int64_t count = TmaRing::countBarriers(ringStages);
    ring = std::make_unique<TmaRing>(
        builder, loc, barriersFromEnd(count, count), ringStages,
        SmallVector<Value>(mapArguments.begin(), mapArguments.end()));
    rings = {ring.get()};
  }
  ifThen(isBelow(thread, 1), [&] {
    for (TmaRing *made : rings)
      made->makeBarriers(threads / kWarp);
  });
  gpu::BarrierOp::create(builder, loc); // of all threads
  checkRows(first);
  auto branch = scf::IfOp::create(builder, loc, isBelow(thread, threads),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.elseBlock()->getTerminator());
  Value isLeader = NVVM::ElectSyncOp::create(builder, loc, builder.getI1Type(),
                                             /*membermask=*/Value());
  auto leader = scf::IfOp::create(builder, loc, isLeader);
  builder.setInsertionPoint(leader.thenBlock()->getTerminator());
  for (BlockArgument map : mapArguments)
    NVVM::PrefetchOp::create(builder, loc, NVVM::PrefetchCacheLevelAttr(),
                             NVVM::CacheEvictionPriorityAttr(), map, Value(),
                             /*tensormap=*/true);
  ring->fills = true;
  LogicalResult result = emitTask(emitTaskLoop(first));
  ring->fills = false;
  builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  return failed(result) ? result : emitTask(emitTaskLoop(first));
}

/// Keeps the end of a tile's code by assembly without instructions, if there
/// are tiles of several sizes. LLVM would else let them share what they do
/// last, and with it the registers of their sums, for which CUDA's assembler
/// serializes wgmma.
void BlockLowering::keepEnd() {
  bool haveEdges = llvm::any_of(llvm::zip_equal(domain, tile), [](auto sizes) {
    auto [extent, size] = sizes;
    return extent % size != 0;
  });
  if (haveEdges)
    LLVM::InlineAsmOp::create(
        builder, loc, TypeRange{}, ValueRange{}, /*asm_string=*/"",
        /*constraints=*/"", /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
        ArrayAttr());
}

/// The producer only brings the operands of dots.
LogicalResult BlockLowering::emitParts() {
  if (dots.inPlace)
    return emitStep();
  if (!ring || !ring->fills) {
    LogicalResult result = KernelLowering::emitParts();
    keepEnd();
    return result;
  }
  for (const auto &part : parts)
    if (auto *op = std::get_if<Operation *>(&part))
      if (auto generic = dyn_cast<linalg::GenericOp>(*op))
        if (failed(emitDot(generic)))
          return failure();
  return success();
}

Value BlockLowering::placeLocal(Value buffer, const Local &local,
                                MemRefType type) {
  if (local.bytes == 0) // It stays in registers.
    return memref::AllocaOp::create(builder, loc, type);
  if (!local.isStaged) {
    Value memref = viewLocal(local, type);
    if (isInLines(buffer))
      linesOf[buffer] = viewLocal(
          local, MemRefType::get(type.getNumElements(), type.getElementType()));
    return memref;
  }
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = stagedLine(shape.back());
  SmallVector<OpFoldResult> zeros, sizes, ones;
  for (int64_t extent : type.getShape()) {
    zeros.push_back(builder.getIndexAttr(0));
    sizes.push_back(builder.getIndexAttr(extent));
    ones.push_back(builder.getIndexAttr(1));
  }
  Value lines = viewLocal(local, MemRefType::Builder(type).setShape(shape));
  return memref::SubViewOp::create(builder, loc, lines, zeros, sizes, ones);
}

/// Returns the memory of a local, in shared or global memory.
Value BlockLowering::viewLocal(const Local &local, MemRefType type) {
  Value offset = constantIndex(local.scratchOffset);
  if (!local.inShared) {
    Value first =
        arith::MulIOp::create(builder, loc, block, constantIndex(scratchBytes));
    offset = arith::AddIOp::create(builder, loc, first, offset);
    return memref::ViewOp::create(builder, loc, type, scratchArgument, offset,
                                  ValueRange{});
  }
  auto shared = MemRefType::get(
      type.getShape(), type.getElementType(), MemRefLayoutAttrInterface(),
      cast<MemRefType>(sharedArgument.getType()).getMemorySpace());
  return memref::ViewOp::create(builder, loc, shared, sharedArgument, offset,
                                ValueRange{});
}

/// Returns the alignment of a vector access that follows from those of the base
/// of the buffer, of its rows and of the vector itself: the size of the access,
/// or less where rows of shared memory are only aligned to words.
std::optional<int64_t> BlockLowering::alignmentOf(Value buffer, AffineMap map,
                                                  const Nest &nest,
                                                  int64_t lanes) {
  auto it = locals.find(buffer);
  auto type = cast<MemRefType>(
      it == locals.end() ? buffer.getType() : it->second.memref.getType());
  int64_t bytes = elementBytes(type.getElementType());
  if (!nest.startsAligned || !llvm::isPowerOf2_64(lanes * bytes))
    return std::nullopt;
  SmallVector<int64_t> strides;
  int64_t offset, aligned = lanes;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return std::nullopt;
  for (int64_t stride : ArrayRef(strides).drop_back(strides.empty() ? 0 : 1))
    aligned = std::gcd(aligned, stride);
  if (aligned != lanes && !(it != locals.end() && it->second.isStaged))
    return std::nullopt;
  // Without the vector loop, the last index must be a multiple of the lanes.
  AffineExpr last = map.getResults().back();
  AffineExpr loop = getAffineDimExpr(*nest.vectorLoop, map.getContext());
  AffineExpr rest =
      simplifyAffineExpr(last - loop, map.getNumDims(), map.getNumSymbols());
  if (!rest.isMultipleOf(lanes))
    return std::nullopt;
  int64_t base = 64;
  if (it != locals.end()) {
    int cut = it->second.domainLoop.back();
    if (cut >= 0 && tile[cut] != domain[cut] && tile[cut] % lanes != 0)
      return std::nullopt;
  } else if (auto argument = dyn_cast<BlockArgument>(buffer)) {
    base = alignments[argument.getArgNumber()];
  } else {
    return std::nullopt;
  }
  return std::min(base, aligned * bytes);
}
