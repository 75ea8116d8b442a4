//===- RandomBits.cpp - Lowering of rng_bit_generator ---------------------===//
//
// Threefry-2x32 with 20 rounds and Philox-4x32 with 10 (Salmon et al., Parallel
// random numbers: as easy as 1, 2, 3, SC 2011), with the keys, counters and
// order of words of XLA:
// - The state is the key (64 bits) and a counter (64 bits, or 128 for Philox,
//   low half first). A step advances the counter by the number of blocks used.
//   Philox's 128-bit counter is the key above a counter of 64 bits.
// - Philox's words follow one another in row-major order.
// - Threefry's two words are adjacent along the first dimension of even size
//   (the largest one if there is none); blocks are counted in row-major order
//   without that factor of two.
// - A 64-bit element is two words, low word first. An element of a narrower
// type
//   is the low bits of one word.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

using Words = SmallVector<Value, 4>;

/// Builds arithmetic on 32-bit words and pairs of them.
struct WordBuilder {
  ImplicitLocOpBuilder b;

  Value constant(Type type, uint64_t value) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), value)));
  }
  Value word(uint32_t value) { return constant(b.getI32Type(), value); }
  Value pair(uint64_t value) { return constant(b.getI64Type(), value); }
  Value add(Value l, Value r) { return arith::AddIOp::create(b, l, r); }
  Value exclusiveOr(Value l, Value r) { return arith::XOrIOp::create(b, l, r); }
  Value low(Value pair) {
    return arith::TruncIOp::create(b, b.getI32Type(), pair);
  }
  Value high(Value pair) {
    return low(arith::ShRUIOp::create(b, pair, this->pair(32)));
  }
  Value join(Value low, Value high) {
    Value l = arith::ExtUIOp::create(b, b.getI64Type(), low);
    Value h = arith::ExtUIOp::create(b, b.getI64Type(), high);
    return arith::OrIOp::create(b, l, arith::ShLIOp::create(b, h, pair(32)));
  }
  Value rotate(Value x, uint32_t by) {
    return arith::OrIOp::create(b, arith::ShLIOp::create(b, x, word(by)),
                                arith::ShRUIOp::create(b, x, word(32 - by)));
  }
};

Words threefry(WordBuilder w, Words key, Words x) {
  static constexpr uint32_t rotations[2][4] = {{13, 15, 26, 6},
                                               {17, 29, 16, 24}};
  key.push_back(
      w.exclusiveOr(w.exclusiveOr(key[0], key[1]), w.word(0x1BD11BDA)));
  x = {w.add(x[0], key[0]), w.add(x[1], key[1])};
  for (unsigned group = 0; group < 5; ++group) {
    for (uint32_t rotation : rotations[group % 2]) {
      x[0] = w.add(x[0], x[1]);
      x[1] = w.exclusiveOr(w.rotate(x[1], rotation), x[0]);
    }
    x[0] = w.add(x[0], key[(group + 1) % 3]);
    x[1] = w.add(w.add(x[1], key[(group + 2) % 3]), w.word(group + 1));
  }
  return x;
}

Words philox(WordBuilder w, Words key, Words x) {
  auto multiply = [&](Value word, uint64_t by) {
    return arith::MulIOp::create(
               w.b, arith::ExtUIOp::create(w.b, w.b.getI64Type(), word),
               w.pair(by))
        .getResult();
  };
  for (unsigned round = 0; round < 10; ++round) {
    if (round)
      key = {w.add(key[0], w.word(0x9E3779B9)),
             w.add(key[1], w.word(0xBB67AE85))};
    Value first = multiply(x[0], 0xD2511F53);
    Value second = multiply(x[2], 0xCD9E8D57);
    x = {w.exclusiveOr(w.exclusiveOr(w.high(second), x[1]), key[0]),
         w.low(second),
         w.exclusiveOr(w.exclusiveOr(w.high(first), x[3]), key[1]),
         w.low(first)};
  }
  return x;
}

/// The blocks of an output, and the positions of their elements.
struct Layout {
  /// The extents of the blocks, which are counted in row-major order.
  SmallVector<int64_t> blocks;
  /// The elements of a block are adjacent along a new dimension in front of
  /// this one. The output may lack the last element of the last block.
  unsigned dimension = 0;
  unsigned elementsPerBlock = 1;
  int64_t numBlocks() const { return ShapedType::getNumElements(blocks); }
};

Layout threefryLayout(ArrayRef<int64_t> shape, bool wide) {
  Layout layout;
  layout.blocks.assign(shape.begin(), shape.end());
  if (wide || shape.empty())
    return layout;
  const int64_t *split =
      llvm::find_if(shape, [](int64_t size) { return size % 2 == 0; });
  if (split == shape.end())
    split = llvm::max_element(shape);
  layout.dimension = split - shape.begin() + 1;
  layout.elementsPerBlock = 2;
  layout.blocks[split - shape.begin()] = llvm::divideCeil(*split, 2);
  return layout;
}

Layout philoxLayout(ArrayRef<int64_t> shape, bool wide) {
  Layout layout;
  layout.elementsPerBlock = wide ? 2 : 4;
  layout.dimension = 1;
  layout.blocks = {int64_t(llvm::divideCeil(ShapedType::getNumElements(shape),
                                            layout.elementsPerBlock))};
  return layout;
}

/// Returns `bits`, a word or pair, as an element.
Value asElement(ImplicitLocOpBuilder &b, Value bits, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  Type type = b.getIntegerType(width);
  if (bits.getType() != type)
    bits = arith::TruncIOp::create(b, type, bits);
  return type == element ? bits : arith::BitcastOp::create(b, element, bits);
}

struct RngBitGeneratorLowering
    : OpConversionPattern<stablehlo::RngBitGeneratorOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::RngBitGeneratorOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value state = adaptor.getInitialState();
    RankedTensorType type = convertedType(op.getOutput());
    // Philox is XLA's default on CPUs.
    bool isPhilox = op.getRngAlgorithm() != stablehlo::RngAlgorithm::THREE_FRY;
    if (tensorType(state).getNumElements() < 2)
      return emitRefusal(op, "expected a state of 2 or 3 elements but got ")
             << op.getInitialState().getType();
    bool wide = type.getElementTypeBitWidth() > 32;
    Layout layout = isPhilox ? philoxLayout(type.getShape(), wide)
                             : threefryLayout(type.getShape(), wide);
    Value next = advanced(rewriter, loc, state, layout.numBlocks());
    Value bits = emptyTensor(rewriter, loc, type);
    if (type.getNumElements() != 0)
      bits = reshapedBits(
          rewriter, loc,
          drawn(rewriter, loc, state, type.getElementType(), layout, isPhilox),
          type);
    rewriter.replaceOp(op, {next, bits});
    return success();
  }

private:
  /// Returns maps that read each element of the state in every iteration.
  static SmallVector<AffineMap> stateMaps(OpBuilder &b, unsigned loops,
                                          int64_t size) {
    SmallVector<AffineMap> maps;
    for (int64_t i = 0; i < size; ++i)
      maps.push_back(AffineMap::get(loops, 0, b.getAffineConstantExpr(i)));
    return maps;
  }

  /// Returns the state after `blocks` blocks; its counter has 64 or 128 bits.
  static Value advanced(OpBuilder &builder, Location loc, Value state,
                        int64_t blocks) {
    RankedTensorType type = tensorType(state);
    SmallVector<AffineMap> maps = {
        builder.getMultiDimIdentityMap(1),
        AffineMap::get(1, 0, builder.getAffineConstantExpr(1))};
    return elementwise(
        builder, loc, type, {state, state}, maps,
        [&](OpBuilder &b, Location at, ValueRange args) -> Value {
          WordBuilder w{ImplicitLocOpBuilder(at, b)};
          Value i = linalg::IndexOp::create(w.b, 0);
          auto isIndex = [&](int64_t index) -> Value {
            return arith::CmpIOp::create(w.b, arith::CmpIPredicate::eq, i,
                                         constantIndex(w.b, at, index));
          };
          Value amount = w.pair(blocks);
          Value low = w.add(args[1], amount);
          Value carry = arith::ExtUIOp::create(
              w.b, w.b.getI64Type(),
              arith::CmpIOp::create(w.b, arith::CmpIPredicate::ult, low,
                                    amount));
          Value high = w.add(args[0], carry);
          Value counter = arith::SelectOp::create(w.b, isIndex(1), low, high);
          return arith::SelectOp::create(w.b, isIndex(0), args[0], counter);
        });
  }

  /// Returns all elements of all blocks.
  static Value drawn(OpBuilder &builder, Location loc, Value state,
                     Type element, const Layout &layout, bool isPhilox) {
    unsigned rank = layout.blocks.size(), count = layout.elementsPerBlock;
    int64_t stateSize = tensorType(state).getNumElements();
    bool wide = element.getIntOrFloatBitWidth() > 32;
    auto blockType = RankedTensorType::get(layout.blocks, element);
    SmallVector<AffineMap> maps = stateMaps(builder, rank, stateSize);
    SmallVector<Value> inputs(stateSize, state), parts;
    for (unsigned i = 0; i < count; ++i) {
      parts.push_back(emptyTensor(builder, loc, blockType));
      maps.push_back(builder.getMultiDimIdentityMap(rank));
    }
    auto body = [&](OpBuilder &b, Location at, ValueRange args) {
      WordBuilder w{ImplicitLocOpBuilder(at, b)};
      Value number = constantIndex(b, at, 0);
      for (unsigned i = 0; i < rank; ++i)
        number = arith::AddIOp::create(
            w.b,
            arith::MulIOp::create(w.b, number,
                                  constantIndex(b, at, layout.blocks[i])),
            linalg::IndexOp::create(w.b, i));
      number = arith::IndexCastOp::create(w.b, w.b.getI64Type(), number);
      Value counter = w.add(args[1], number);
      Words key = {w.low(args[0]), w.high(args[0])};
      Words words = {w.low(counter), w.high(counter)};
      if (isPhilox) {
        Value carry = arith::ExtUIOp::create(
            w.b, w.b.getI64Type(),
            arith::CmpIOp::create(w.b, arith::CmpIPredicate::ult, counter,
                                  number));
        Value high = w.add(args[stateSize > 2 ? 2 : 0], carry);
        words.append({w.low(high), w.high(high)});
        words = philox(w, key, words);
      } else {
        words = threefry(w, key, words);
      }
      SmallVector<Value> results;
      for (unsigned i = 0; i < count; ++i)
        results.push_back(asElement(
            w.b, wide ? w.join(words[2 * i], words[2 * i + 1]) : words[i],
            element));
      linalg::YieldOp::create(w.b, results);
    };
    auto blocks =
        generic(builder, loc, inputs, parts, maps, iterators(rank), body);
    if (count == 1)
      return blocks.getResult(0);
    // Interleave the parts.
    SmallVector<int64_t> shape(layout.blocks);
    shape.insert(shape.begin() + layout.dimension, count);
    Value result =
        emptyTensor(builder, loc, RankedTensorType::get(shape, element));
    for (unsigned i = 0; i < count; ++i)
      result = place(builder, loc, blocks.getResult(i), result,
                     builder.getMultiDimIdentityMap(rank).insertResult(
                         builder.getAffineConstantExpr(i), layout.dimension));
    shape.erase(shape.begin() + layout.dimension);
    shape[layout.dimension - 1] *= count;
    return reshaped(builder, loc, result,
                    RankedTensorType::get(shape, element));
  }

  /// Returns the first elements of `bits` in the output's shape.
  static Value reshapedBits(OpBuilder &b, Location loc, Value bits,
                            RankedTensorType type) {
    RankedTensorType from = tensorType(bits);
    // Philox's elements are one row, which is reshaped later.
    SmallVector<int64_t> shape =
        from.getRank() == type.getRank()
            ? SmallVector<int64_t>(type.getShape())
            : SmallVector<int64_t>{type.getNumElements()};
    if (from.getShape() != ArrayRef(shape)) {
      SmallVector<AffineExpr> exprs;
      for (unsigned i = 0; i < shape.size(); ++i)
        exprs.push_back(placeOf(b, i, shape[i], from.getDimSize(i), 0));
      bits = copyThrough(b, loc, bits,
                         AffineMap::get(shape.size(), 0, exprs, b.getContext()),
                         from.clone(shape));
    }
    return reshaped(b, loc, bits, type);
  }
};

} // namespace

void fp8::populateRandomBitsPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<RngBitGeneratorLowering>(converter, patterns.getContext());
}
