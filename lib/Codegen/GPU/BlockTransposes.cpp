//===- BlockTransposes.cpp - Transposed FP8 payloads of a block -----------===//
//
// A payload lies in shared memory as it was computed, in lines along its last
// dimension. Each thread reads words of four bytes from some lines, transposes
// them in registers and stores up to 16 bytes to each of four lines of the
// transposed payload. Adjacent threads store adjacent bytes.
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The bytes of a word of shared memory, and of the widest store.
static constexpr int64_t kWord = 4, kWidestStore = 16;
/// The bytes that global memory writes at once.
static constexpr int64_t kSector = 32;

/// Returns the last loop by which `map` indexes a buffer.
static unsigned lastLoop(AffineMap map) {
  return cast<AffineDimExpr>(map.getResults().back()).getPosition();
}

bool BlockLowering::isStaged(Value buffer) {
  return llvm::any_of(buffer.getUses(), [](OpOperand &use) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    return generic && isTranspose(generic) && generic.isDpsInput(&use);
  });
}

/// Lines have an odd number of words: then words of the same column in lines
/// whose numbers are multiples of the width of a store lie in different banks.
int64_t BlockLowering::stagedLine(int64_t bytes) {
  return kWord * (llvm::divideCeil(bytes, kWord) | 1);
}

/// Returns how many bytes a thread stores at once along loop `row` of `op`:
/// 1 if the words of a column cannot be read, or if stores of a word would not
/// be aligned.
int64_t BlockLowering::transposedWidth(linalg::GenericOp op,
                                       const Loops &loops) {
  AffineMap to = op.getIndexingMapsArray()[1];
  unsigned row = lastLoop(to);
  unsigned column = lastLoop(op.getIndexingMapsArray()[0]);
  auto output = cast<BlockArgument>(op.getOutputs()[0]);
  int64_t line = cast<MemRefType>(output.getType()).getShape().back();
  int64_t points = loops.extent[column] % kWord ? 0 : 1;
  for (int64_t extent : loops.extent)
    points *= extent;
  auto fits = [&](int64_t width) {
    for (auto [i, dim] : llvm::enumerate(lowering::taskDims(op)))
      if (dim == row && tile[i] != domain[i] && tile[i] % width != 0)
        return false;
    return points > 0 && loops.extent[row] % width == 0 && line % width == 0 &&
           alignments[output.getArgNumber()] % width == 0;
  };
  int64_t width = kWidestStore;
  while (width > kWord && (!fits(width) || points / (width * kWord) < threads))
    width /= 2;
  return fits(width) ? width : 1;
}

/// Transposes a square of words: returns the words of the columns.
static SmallVector<Value> transposeWords(OpBuilder &b, Location loc,
                                         ArrayRef<Value> rows) {
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> mask) -> Value {
    return vector::ShuffleOp::create(b, loc, x, y, mask);
  };
  Value ab = shuffle(rows[0], rows[1], {0, 4, 1, 5});
  Value cd = shuffle(rows[2], rows[3], {0, 4, 1, 5});
  Value efs = shuffle(rows[0], rows[1], {2, 6, 3, 7});
  Value ghs = shuffle(rows[2], rows[3], {2, 6, 3, 7});
  return {shuffle(ab, cd, {0, 1, 4, 5}), shuffle(ab, cd, {2, 3, 6, 7}),
          shuffle(efs, ghs, {0, 1, 4, 5}), shuffle(efs, ghs, {2, 3, 6, 7})};
}

/// Returns one vector with the elements of all `words`, a power of two.
static Value concatenate(OpBuilder &b, Location loc, SmallVector<Value> words) {
  while (words.size() > 1) {
    SmallVector<Value> longer;
    for (size_t i = 0; i < words.size(); i += 2) {
      int64_t count = 2 * cast<VectorType>(words[i].getType()).getNumElements();
      longer.push_back(vector::ShuffleOp::create(
          b, loc, words[i], words[i + 1],
          llvm::to_vector(llvm::seq<int64_t>(count))));
    }
    words = longer;
  }
  return words[0];
}

/// Emits the transpose of a piece of `width` lines and four columns that begins
/// at the current indices.
void BlockLowering::emitTransposedPiece(linalg::GenericOp op, Loops &loops,
                                        int64_t width) {
  AffineMap from = op.getIndexingMapsArray()[0];
  AffineMap to = op.getIndexingMapsArray()[1];
  Type element = cast<MemRefType>(op.getInputs()[0].getType()).getElementType();
  auto word = VectorType::get({kWord}, element);
  auto placeAt = [&](Value buffer, AffineMap map, unsigned loop, int64_t by,
                     SmallVectorImpl<Value> &indices) {
    SmallVector<Value> dims = loops.index;
    dims[loop] =
        arith::AddIOp::create(builder, loc, dims[loop], constantIndex(by));
    return resolve(buffer, map, dims, indices);
  };
  std::array<SmallVector<Value>, kWord> columns;
  for (int64_t first = 0; first < width; first += kWord) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < kWord; ++i) {
      SmallVector<Value> indices;
      Value buffer =
          placeAt(op.getInputs()[0], from, lastLoop(to), first + i, indices);
      auto read = vector::LoadOp::create(builder, loc, word, buffer, indices);
      read.setAlignment(kWord);
      rows.push_back(read);
    }
    for (auto [column, part] :
         llvm::zip(columns, transposeWords(builder, loc, rows)))
      column.push_back(part);
  }
  for (auto [i, column] : llvm::enumerate(columns)) {
    SmallVector<Value> indices;
    Value buffer = placeAt(op.getOutputs()[0], to, lastLoop(from), i, indices);
    vector::StoreOp::create(builder, loc, concatenate(builder, loc, column),
                            buffer, indices)
        .setAlignment(width);
  }
}

/// Distributes the pieces of a transpose over the threads. A warp stores whole
/// sectors of adjacent columns.
void BlockLowering::emitTranspose(linalg::GenericOp op, Loops &loops) {
  unsigned row = lastLoop(op.getIndexingMapsArray()[1]);
  unsigned column = lastLoop(op.getIndexingMapsArray()[0]);
  int64_t width = transposedWidth(op, loops);
  int64_t height = width == 1 ? 1 : kWord; // columns of a piece
  int64_t rows = loops.extent[row] / width;
  int64_t near = std::gcd(rows, kSector / width);
  // From the slowest to the fastest: other loops, sectors, columns, the pieces
  // of a sector.
  SmallVector<unsigned> others;
  SmallVector<int64_t> counts;
  for (unsigned loop = 0; loop < loops.extent.size(); ++loop)
    if (loop != row && loop != column) {
      others.push_back(loop);
      counts.push_back(loops.extent[loop]);
    }
  llvm::append_values(counts, rows / near, loops.extent[column] / height, near);
  int64_t points = 1;
  for (int64_t count : counts)
    points *= count;
  if (points == 0)
    return;
  forPoints(
      points, thread, threads, /*together=*/false, [&](Value point, Value) {
        SmallVector<Value> place = splitPoint(point, counts);
        auto scaled = [&](Value index, int64_t by) -> Value {
          return arith::MulIOp::create(builder, loc, index, constantIndex(by));
        };
        auto setIndex = [&](unsigned loop, Value index) {
          loops.index[loop] =
              arith::AddIOp::create(builder, loc, index, loops.lower[loop]);
        };
        Value nearRow = place.pop_back_val(), column4 = place.pop_back_val();
        Value sector = scaled(place.pop_back_val(), near);
        Value piece = arith::AddIOp::create(builder, loc, sector, nearRow);
        setIndex(row, scaled(piece, width));
        setIndex(column, scaled(column4, height));
        for (auto [loop, index] : llvm::zip(others, place))
          setIndex(loop, index);
        if (width > 1)
          return emitTransposedPiece(op, loops, width);
        Nest nest;
        AffineMap from = op.getIndexingMapsArray()[0];
        Value element = load(op.getInputs()[0], from, nest, loops, 1);
        store(element, op.getOutputs()[0], op.getIndexingMapsArray()[1], nest,
              loops, 1);
      });
}
