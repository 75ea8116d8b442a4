//===- TmaRing.cpp - The ring of stages that TMA fills --------------------===//

#include "TmaRing.h"
#include "DotPlan.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

Value gpu_codegen::sharedPointer(OpBuilder &b, Location loc, Value buffer,
                                 Value offset) {
  Value address = arith::AddIOp::create(
      b, loc, memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer),
      offset);
  address = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  return LLVM::IntToPtrOp::create(b, loc, type, address);
}

Value TmaRing::number(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

TmaRing::TmaRing(OpBuilder &b, Location loc, Value barriers, int64_t stages,
                 ArrayRef<Value> maps, int64_t parts)
    : IndexBuilder(b, loc), barriers(barriers), stages(stages), parts(parts),
      maps(maps) {
  auto type = MemRefType::get({}, b.getI32Type());
  for (Value *variable : {&next, &parity}) {
    *variable = memref::AllocaOp::create(b, loc, type);
    memref::StoreOp::create(b, loc, number(0), *variable);
  }
}

Value TmaRing::get(Value variable) {
  return memref::LoadOp::create(b, loc, variable);
}

Value TmaRing::stage() {
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), get(next));
}

/// The barriers of full stages precede those of empty ones.
Value TmaRing::fullOf(Value stage, int64_t part) {
  return sharedPointer(b, loc, barriers,
                       mul(add(stage, part * stages), kBarrierBytes));
}

Value TmaRing::emptyOf(Value stage) { return fullOf(stage, parts); }

void TmaRing::makeBarriers(int64_t readers) {
  for (int64_t i = 0; i < countBarriers(stages, parts); ++i)
    NVVM::MBarrierInitOp::create(
        b, loc, sharedPointer(b, loc, barriers, cst(i * kBarrierBytes)),
        number(i < stages * parts ? 1 : readers), /*predicate=*/Value());
  // TMA uses the barriers through another proxy.
  NVVM::FenceMbarrierInitOp::create(b, loc);
}

/// Tries until the phase of this parity is complete.
void TmaRing::wait(Value barrier, Value parity) {
  scf::WhileOp::create(
      b, loc, TypeRange(), ValueRange(),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Value isComplete = NVVM::MBarrierTryWaitOp::create(
            b, loc, b.getI1Type(), barrier, parity, /*ticks=*/Value());
        Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
        Value tryAgain = arith::XOrIOp::create(b, loc, isComplete, one);
        scf::ConditionOp::create(b, loc, tryAgain, ValueRange());
      },
      [](OpBuilder &b, Location loc, ValueRange) {
        scf::YieldOp::create(b, loc);
      });
}

void TmaRing::waitUntilFull(int64_t part) {
  wait(fullOf(stage(), part), get(parity));
}

/// In the first round, the phase before the first one counts as complete.
void TmaRing::waitUntilEmpty() {
  Value before = arith::XOrIOp::create(b, loc, get(parity), number(1));
  wait(emptyOf(stage()), before);
}

Value TmaRing::expect(int64_t bytes, int64_t part) {
  Value barrier = fullOf(stage(), part);
  NVVM::MBarrierArriveExpectTxOp::create(
      b, loc, b.getI64Type(), barrier, number(bytes), NVVM::MemScopeKind::CTA,
      /*relaxed=*/false, /*predicate=*/Value());
  return barrier;
}

void TmaRing::copyBox(unsigned map, ArrayRef<Value> coordinates, Value shared,
                      Value offset, Value barrier) {
  SmallVector<Value> numbers;
  for (Value coordinate : coordinates)
    numbers.push_back(
        arith::IndexCastOp::create(b, loc, b.getI32Type(), coordinate));
  auto cluster = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  // A block is a cluster of its own.
  Value target = LLVM::AddrSpaceCastOp::create(
      b, loc, cluster, sharedPointer(b, loc, shared, offset));
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, loc, target, maps[map], numbers, barrier,
      /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
      /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
      NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
}

void TmaRing::arriveOnEmpty(Value stage) {
  NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), emptyOf(stage),
                                 number(1));
}

void TmaRing::release() { arriveOnEmpty(stage()); }

void TmaRing::releaseLast() {
  Value stage = get(next);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, stage, number(0));
  Value last = arith::SubIOp::create(b, loc, stage, number(1));
  last = arith::SelectOp::create(b, loc, isFirst, number(stages - 1), last);
  arriveOnEmpty(arith::IndexCastUIOp::create(b, loc, b.getIndexType(), last));
}

void TmaRing::advance() {
  Value stage = arith::AddIOp::create(b, loc, get(next), number(1));
  Value wraps = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, stage,
                                      number(stages));
  stage = arith::SelectOp::create(b, loc, wraps, number(0), stage);
  Value turned = arith::XOrIOp::create(
      b, loc, get(parity),
      arith::ExtUIOp::create(b, loc, b.getI32Type(), wraps));
  memref::StoreOp::create(b, loc, stage, next);
  memref::StoreOp::create(b, loc, turned, parity);
}
