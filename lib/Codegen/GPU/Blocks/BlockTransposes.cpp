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
  // Pairs of the rows of the first two columns, and of the last two.
  Value first01 = shuffle(rows[0], rows[1], {0, 4, 1, 5});
  Value first23 = shuffle(rows[2], rows[3], {0, 4, 1, 5});
  Value last01 = shuffle(rows[0], rows[1], {2, 6, 3, 7});
  Value last23 = shuffle(rows[2], rows[3], {2, 6, 3, 7});
  return {shuffle(first01, first23, {0, 1, 4, 5}),
          shuffle(first01, first23, {2, 3, 6, 7}),
          shuffle(last01, last23, {0, 1, 4, 5}),
          shuffle(last01, last23, {2, 3, 6, 7})};
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

/// Returns the places of a piece: in other loops, and of a sector, of columns,
/// and within the sector, from the slowest to the fastest. A warp then stores
/// whole sectors of adjacent columns.
static SmallVector<int64_t> countPlaces(ArrayRef<int64_t> others, int64_t rows,
                                        int64_t columns, int64_t inSector) {
  SmallVector<int64_t> counts(others);
  llvm::append_values(counts, rows / inSector, columns, inSector);
  return counts;
}

/// Distributes the pieces of a transpose over the threads.
void BlockLowering::emitTranspose(linalg::GenericOp op, Loops &loops) {
  AffineMap from = op.getIndexingMapsArray()[0];
  AffineMap to = op.getIndexingMapsArray()[1];
  unsigned row = lastLoop(to), column = lastLoop(from);
  int64_t width = transposedWidth(op, loops);
  int64_t columns = width == 1 ? 1 : kWord; // of a piece
  int64_t rows = loops.extent[row] / width;
  int64_t inSector = std::gcd(rows, kSector / width);
  SmallVector<unsigned> others;
  SmallVector<int64_t> extents;
  for (auto [loop, extent] : llvm::enumerate(loops.extent))
    if (loop != row && loop != column) {
      others.push_back(loop);
      extents.push_back(extent);
    }
  SmallVector<int64_t> counts =
      countPlaces(extents, rows, loops.extent[column] / columns, inSector);
  int64_t points = llvm::product_of(counts);
  auto setIndex = [&](unsigned loop, Value piece, int64_t size) {
    Value first =
        arith::MulIOp::create(builder, loc, piece, constantIndex(size));
    loops.index[loop] =
        arith::AddIOp::create(builder, loc, first, loops.lower[loop]);
  };
  auto emitPiece = [&](Value point, Value /*exists*/) {
    SmallVector<Value> places = splitPoint(point, counts);
    Value within = places.pop_back_val();
    setIndex(column, places.pop_back_val(), columns);
    Value sector = arith::MulIOp::create(builder, loc, places.pop_back_val(),
                                         constantIndex(inSector));
    setIndex(row, arith::AddIOp::create(builder, loc, sector, within), width);
    for (auto [loop, place] : llvm::zip_equal(others, places))
      setIndex(loop, place, 1);
    if (width > 1)
      return emitTransposedPiece(op, loops, width);
    Nest nest;
    Value element = load(op.getInputs()[0], from, nest, loops, /*lanes=*/1);
    store(element, op.getOutputs()[0], to, nest, loops, /*lanes=*/1);
  };
  if (points > 0)
    forPoints(points, thread, threads, /*together=*/false, emitPiece);
}
