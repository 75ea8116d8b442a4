//===- DotStages.cpp - Tiles of a dot's operands to shared memory ---------===//
//
// cp.async copies an operand that is neither converted nor transposed (PTX ISA,
// "Data Movement and Conversion Instructions: Asynchronous copy"). Others are
// copied through registers. The tiles have the swizzle of wgmma, or for FMA a
// gap behind each line.
//
//===----------------------------------------------------------------------===//

#include "DotEmitter.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The bytes that one cycle can read from all banks of shared memory.
static constexpr int64_t kBankBytes = 128;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Distributes the pieces of a stage over the threads. Adjacent threads get
/// pieces that are adjacent in global memory.
DotEmitter::Copy DotEmitter::planCopy(unsigned operand) {
  const OperandPlan &own = plan.operands[operand];
  int64_t rows = plan.extentOf(operand), depth = plan.stageDepth();
  Copy copy;
  copy.operand = operand;
  copy.isUnchanged =
      own.linesAlongK == own.alongK && (own.width > 1 || !own.alongK);
  if (copy.isUnchanged) {
    (own.alongK ? copy.pieceDepth : copy.pieceRows) = own.width;
  } else {
    // A piece fills one word of shared memory in each row.
    copy.pieceRows = own.alongK ? 1 : own.width;
    copy.pieceDepth = std::max<int64_t>(4 / plan.elementBytes(), 1);
  }
  int64_t alongRows = rows / copy.pieceRows, alongK = depth / copy.pieceDepth;
  copy.pieces = alongRows * alongK;
  for (int64_t i = 0; i < copy.pieces; i += plan.threads) {
    Value piece = add(thread, i);
    // Threads for which no piece is left load the last one again.
    if (i + plan.threads > copy.pieces)
      piece = arith::MinUIOp::create(b, loc, piece, cst(copy.pieces - 1));
    Value row = own.alongK ? div(piece, alongK) : rem(piece, alongRows);
    Value k = own.alongK ? rem(piece, alongK) : div(piece, alongRows);
    copy.row.push_back(mul(row, copy.pieceRows));
    copy.depth.push_back(mul(k, copy.pieceDepth));
  }
  return copy;
}

/// Converts elements to the type that they have in shared memory.
Value DotEmitter::convert(Value value, unsigned operand) {
  const OperandPlan &own = plan.operands[operand];
  auto type = cast<VectorType>(value.getType());
  if (own.from == own.to)
    return value;
  if (!own.from.isF32())
    value = arith::ExtFOp::create(b, loc, type.clone(b.getF32Type()), value);
  if (!own.to.isF32())
    value = arith::TruncFOp::create(b, loc, type.clone(own.to), value);
  return value;
}

/// Loads and converts one access. Elements outside the dot become zeros.
Value DotEmitter::loadVector(const Source &source, unsigned operand) {
  const OperandPlan &own = plan.operands[operand];
  auto type = VectorType::get({own.width}, own.from);
  auto read =
      vector::LoadOp::create(b, loc, type, source.ref.memref, source.ref.index);
  if (own.width > 1)
    read.setAlignment(own.width * own.from.getIntOrFloatBitWidth() / 8);
  Value value = convert(read, operand);
  if (!source.exists)
    return value;
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::SelectOp::create(b, loc, source.exists, value, zero);
}

/// Returns the access at `depth` of a piece in the stage that begins at k0.
/// Elements from kEnd on, counted from k0, are outside the dot (null: none
/// are); the access is then clamped to one inside.
DotEmitter::Source DotEmitter::sourceOf(const Copy &copy, size_t piece,
                                        int64_t depth, Places places, Value k0,
                                        Value kEnd) {
  unsigned operand = copy.operand;
  const OperandPlan &own = plan.operands[operand];
  // Threads without a piece read elements that they do not store.
  bool isForAll = copy.pieces >= static_cast<int64_t>(piece + 1) * plan.threads;
  Value row = copy.row[piece], k = add(copy.depth[piece], depth);
  Places place = atIndex(places, sideOf(operand), clamped(operand, row));
  Value isThere = exists(operand, row), from = add(k0, k);
  if (kEnd)
    isThere = conjunction(
        isThere,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, k, kEnd));
  if (kEnd || !isForAll)
    from = arith::MinUIOp::create(
        b, loc, from, cst(plan.k.size - (own.alongK ? own.width : 1)));
  return {moved(place, plan.k, from).data[operand], isThere};
}

/// Returns the pattern of a line, with which the numbers of its pieces are
/// combined by XOR (PTX ISA, "Swizzling Modes"). It is the number of the 128
/// bytes in which the line lies, so that the same piece of eight adjacent lines
/// lies in different banks.
Value DotEmitter::swizzleOf(unsigned operand, Value line) {
  int64_t bytes = plan.lineBytes(operand);
  line = div(line, std::max<int64_t>(kBankBytes / bytes, 1));
  return rem(line, std::min(bytes, kBankBytes) / kPiece);
}

/// Returns the index in shared memory of the element at `row` and `depth` of an
/// operand's tile.
Value DotEmitter::sharedIndexOf(unsigned operand, Value row, Value depth,
                                Value stage) {
  bool alongK = plan.operands[operand].linesAlongK;
  Value line = alongK ? row : depth, place = alongK ? depth : row;
  int64_t bytes = plan.elementBytes(), inPiece = kPiece / bytes;
  if (plan.bands(operand) > 1) {
    line = add(line, mul(div(row, plan.bandRows(operand)), plan.stageDepth()));
    place = rem(row, plan.bandRows(operand));
  }
  if (plan.multiplier != Multiplier::FMA) {
    Value piece = arith::XOrIOp::create(b, loc, div(place, inPiece),
                                        swizzleOf(operand, line));
    place = add(mul(piece, inPiece), rem(place, inPiece));
  }
  Value tile = add(mul(stage, plan.stageSize() / bytes),
                   operand ? plan.stageSize(0) / bytes : 0);
  return add(add(mul(line, plan.lineDistance(operand) / bytes), place), tile);
}

/// Emits `body` under the condition that this thread has a piece of this
/// number.
void DotEmitter::ifOwned(const Copy &copy, int64_t piece,
                         function_ref<void()> body) {
  int64_t left = copy.pieces - piece * plan.threads;
  if (left >= plan.threads)
    return body();
  Value active = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       thread, cst(left));
  auto branch = scf::IfOp::create(b, loc, active);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

void DotEmitter::store(const Copy &copy, ValueRange values, Value stage) {
  int64_t each = copy.accesses();
  bool alongK = plan.operands[copy.operand].linesAlongK;
  // A vector that conversion has widened spans several pieces of the swizzle.
  auto write = [&](Value vector, Value row, Value depth) {
    int64_t count = cast<VectorType>(vector.getType()).getNumElements();
    int64_t each = std::min(count, kPiece / plan.elementBytes());
    for (int64_t i = 0; i < count; i += each) {
      Value part = vector;
      if (each < count)
        part = vector::ExtractStridedSliceOp::create(b, loc, vector, i, each,
                                                     /*strides=*/1);
      Value place = sharedIndexOf(copy.operand, add(row, alongK ? 0 : i),
                                  add(depth, alongK ? i : 0), stage);
      auto op =
          vector::StoreOp::create(b, loc, part, elements[copy.operand], place);
      op.setAlignment(each * plan.elementBytes());
    }
  };
  auto writePiece = [&](int64_t i) {
    ValueRange own = values.slice(i * each, each);
    if (copy.isUnchanged)
      return write(own[0], copy.row[i], copy.depth[i]);
    // Transpose: store the words of all rows.
    for (int64_t r = 0; r < copy.pieceRows; ++r) {
      Values word;
      for (Value line : own)
        word.push_back(vector::ExtractOp::create(b, loc, line, r));
      Value vector = vector::FromElementsOp::create(
          b, loc,
          VectorType::get({static_cast<int64_t>(word.size())},
                          word[0].getType()),
          word);
      write(vector, add(copy.row[i], r), copy.depth[i]);
    }
  };
  for (int64_t i = 0, e = copy.row.size(); i < e; ++i)
    ifOwned(copy, i, [&] { writePiece(i); });
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// Returns the end of the run, counted from `at`, or null if the run consists
/// of whole stages.
Value DotEmitter::endOf(const Run &run, Value at) {
  return run.extent % plan.stageDepth()
             ? Value(arith::SubIOp::create(b, loc, cst(run.extent), at))
             : Value();
}

/// Loads this thread's part of the stage that begins at k0 + at, as far as it
/// is copied through registers.
DotEmitter::Values DotEmitter::loadStage(Places places, const Run &run,
                                         Value at) {
  Value k0 = add(run.k0, at), kEnd = endOf(run, at);
  Values values;
  for (const Copy &copy : run.copies)
    if (!plan.operands[copy.operand].copied)
      for (size_t piece = 0; piece < copy.row.size(); ++piece)
        for (int64_t i = 0; i < copy.accesses(); ++i)
          values.push_back(loadVector(
              sourceOf(copy, piece, i, places, k0, kEnd), copy.operand));
  return values;
}

void DotEmitter::storeStage(const Run &run, ValueRange values, Value stage) {
  for (const Copy &copy : run.copies) {
    if (plan.operands[copy.operand].copied)
      continue;
    int64_t own = copy.row.size() * copy.accesses();
    store(copy, values.take_front(own), stage);
    values = values.drop_front(own);
  }
}

/// Starts to copy this thread's pieces of the stage at k0 + at to slot `stage`
/// of shared memory. Elements outside the dot become zeros.
void DotEmitter::startCopies(Places places, const Run &run, Value at,
                             Value stage) {
  Value k0 = add(run.k0, at), kEnd = endOf(run, at);
  for (const Copy &copy : run.copies) {
    unsigned operand = copy.operand;
    const OperandPlan &own = plan.operands[operand];
    if (!own.copied)
      continue;
    for (size_t i = 0; i < copy.row.size(); ++i)
      ifOwned(copy, i, [&] {
        Source source = sourceOf(copy, i, 0, places, k0, kEnd);
        Value count;
        if (source.exists)
          count = arith::SelectOp::create(b, loc, source.exists, cst(own.width),
                                          cst(0));
        nvgpu::DeviceAsyncCopyOp::create(
            b, loc, elements[operand],
            sharedIndexOf(operand, copy.row[i], copy.depth[i], stage),
            source.ref.memref, source.ref.index, APInt(64, own.width), count,
            /*bypassL1=*/b.getUnitAttr());
      });
  }
}

/// Starts to copy all stages but one before the first is multiplied. Each has a
/// group, even if it does not exist, because waitForCopies counts groups.
void DotEmitter::startFirstCopies(Places places, const Run &run) {
  for (int64_t i = 0; plan.isCopied() && i < plan.stages - 1; ++i) {
    if (i < run.stages)
      startCopies(places, run, cst(i * plan.stageDepth()), cst(i));
    NVVM::CpAsyncCommitGroupOp::create(b, loc);
  }
}

/// Starts to copy the next stage that has not been started. It overwrites the
/// stage before the one at `at`, which all threads have read.
void DotEmitter::startNextCopies(Places places, const Run &run, Value at) {
  int64_t ahead = plan.stages - 1, depth = plan.stageDepth();
  if (!plan.isCopied())
    return;
  if (run.stages > ahead) {
    Value following = add(at, ahead * depth);
    auto branch = scf::IfOp::create(b, loc, isStage(run, following));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    startCopies(places, run, following,
                rem(div(following, depth), plan.stages));
  }
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
}

/// Waits until the copies of the oldest stage that this thread has started are
/// complete.
void DotEmitter::waitForCopies() {
  if (plan.isCopied())
    NVVM::CpAsyncWaitGroupOp::create(b, loc, plan.stages - 2);
}

/// Returns the condition that the stage at `at` exists.
Value DotEmitter::isStage(const Run &run, Value at) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at,
                               cst(run.stages * plan.stageDepth()));
}

/// Returns the results of `body` if the stage at `at` exists, else `values`.
DotEmitter::Values DotEmitter::ifStage(const Run &run, Value at, Values values,
                                       function_ref<Values()> body) {
  auto branch = scf::IfOp::create(b, loc, ValueRange(values).getTypes(),
                                  isStage(run, at), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, loc, body());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, values);
  return Values(branch.getResults());
}
