//===- DotMma.cpp - The products of a stage by mma.sync -------------------===//
//
// A warp multiplies 16 rows, 8 columns and 32 bytes along k at a time.
// Fragments have the same layout in bytes for all types (PTX ISA, "Matrix
// Fragments for mma.m16n8k32"): each of the four threads of a row has four
// bytes along k, and four more 16 bytes further on. ldmatrix loads fragments
// from lines along k. It can also transpose 16-bit elements from lines along
// the rows.
//
//===----------------------------------------------------------------------===//

#include "DotEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The rows of a matrix of ldmatrix, and the 16-bit elements of each row.
static constexpr int64_t kMatrix = 8;

/// Returns the index, in 16-bit elements, of the matrix line that this lane
/// passes to ldmatrix. Together, the lanes load 16 rows (8 if the warp has no
/// more columns) and 32 bytes along k of an operand, as matrices of 8 by 8
/// elements: first those with the first 16 bytes along k, rows 0 to 7 before
/// rows 8 to 15, then those with the second 16 bytes.
Value DotEmitter::matrixLine(unsigned operand, Value stage, int64_t tile,
                             int64_t step) {
  bool alongK = plan.operands[operand].linesAlongK;
  Value line = rem(lane, kMatrix), matrix = div(lane, kMatrix);
  bool isWhole = matricesOf(operand) == 4;
  Value rowHalf = isWhole ? rem(matrix, 2) : cst(0);
  Value kHalf = rem(isWhole ? div(matrix, 2) : matrix, 2);
  Value first = operand ? warpColumn : warpRow;
  // The XOR with the tile or step adds it, because its bits are disjoint from
  // those of the half and of the warp, whose first row is a multiple of its
  // number of rows, a power of two.
  Value piece = alongK ? kHalf : add(div(first, kMatrix), rowHalf);
  piece = arith::XOrIOp::create(b, loc, piece, swizzleOf(operand, line));
  piece = arith::XOrIOp::create(b, loc, piece, cst(2 * (alongK ? step : tile)));
  line = add(line, mul(alongK ? rowHalf : kHalf, kMatrix));
  if (alongK)
    line = add(line, first);
  line = add(line, 2 * kMatrix * (alongK ? tile : step));
  Value index =
      add(mul(line, plan.lineDistance(operand) / 2), mul(piece, kPiece / 2));
  index = add(index, mul(stage, plan.stageSize() / 2));
  return add(index, operand ? plan.stageSize(0) / 2 : 0);
}

/// Returns the number of 8x8 matrices that the warp loads at once.
int64_t DotEmitter::matricesOf(unsigned operand) const {
  return operand && plan.mmaColumns() == 1 ? 2 : 4;
}

/// Loads one word of each matrix (PTX ISA, "ldmatrix"): two 16-bit or four f8
/// elements that are adjacent along k, which is the layout of a fragment.
DotEmitter::Values DotEmitter::loadFragments(unsigned operand, Value stage,
                                             int64_t tile, int64_t step) {
  int64_t matrices = matricesOf(operand);
  Value loaded = nvgpu::LdMatrixOp::create(
      b, loc, VectorType::get({matrices, 2}, b.getI16Type()), halves,
      matrixLine(operand, stage, tile, step),
      /*transpose=*/!plan.operands[operand].linesAlongK, matrices);
  Values words;
  for (int64_t i = 0; i < matrices; ++i) {
    Value word =
        vector::BitCastOp::create(b, loc, VectorType::get({1}, b.getI32Type()),
                                  vector::ExtractOp::create(b, loc, loaded, i));
    words.push_back(vector::ExtractOp::create(b, loc, word, 0));
  }
  return words;
}

/// Returns the PTX name of an element type.
static StringRef nameOf(Type type) {
  return isa<Float8E5M2Type>(type) ? "e5m2" : "e4m3";
}

DotEmitter::Values DotEmitter::mma(ValueRange lhs, ValueRange rhs, Value sum) {
  Type f32 = b.getF32Type(), to = plan.operands[0].to;
  std::string name = "llvm.nvvm.mma.";
  if (to.isBF16())
    name += "m16n8k16.row.col.bf16";
  else if (to.isF16())
    name += "m16n8k16.row.col.f32.f32";
  else
    name += ("m16n8k32.row.col.f32." + nameOf(to) + "." +
             nameOf(plan.operands[1].to) + ".f32")
                .str();
  Values operands;
  for (Value word : lhs)
    operands.push_back(word);
  for (Value word : rhs)
    operands.push_back(word);
  if (to.isF16())
    for (Value &word : operands)
      word = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, to), word);
  for (int64_t i = 0; i < 4; ++i)
    operands.push_back(vector::ExtractOp::create(b, loc, sum, i));
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                               SmallVector<Type>(4, f32));
  Value result = LLVM::CallIntrinsicOp::create(b, loc, type,
                                               b.getStringAttr(name), operands)
                     .getResult(0);
  Values sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, loc, result, i));
  return sums;
}

/// Adds the products of a stage to the sums of this thread's warp.
DotEmitter::Values DotEmitter::multiplyFragments(Value stage, Values sums) {
  for (int64_t step = 0; step < plan.stageBytes / kMmaBytes; ++step) {
    SmallVector<Values> lhs, rhs;
    for (int64_t i = 0; i < plan.mmaRows(); ++i)
      lhs.push_back(loadFragments(0, stage, i, step));
    for (int64_t j = 0; j < plan.mmaColumns(); j += 2) {
      Values words = loadFragments(1, stage, j / 2, step);
      int64_t columns = words.size() / 2;
      for (int64_t i = 0; i < columns; ++i)
        rhs.push_back({words[i], words[columns + i]});
    }
    for (int64_t i = 0; i < plan.mmaRows(); ++i)
      for (int64_t j = 0; j < plan.mmaColumns(); ++j) {
        auto own = MutableArrayRef<Value>(sums).slice(
            (i * plan.mmaColumns() + j) * 4, 4);
        Value sum = vector::FromElementsOp::create(
            b, loc, VectorType::get({4}, b.getF32Type()), ValueRange(own));
        llvm::copy(mma(lhs[i], rhs[j], sum), own.begin());
      }
  }
  return sums;
}
