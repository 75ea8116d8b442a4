//===- Scaling.cpp - Lowering of amax, scales and quantization ------------===//
//
// All the arithmetic of scaling is defined here once, in f32, so that fusion
// and vectorization cannot change any bit of it.
//
//===----------------------------------------------------------------------===//

#include "../Tensors.h"
#include "Scalars.h"

#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

linalg::GenericOp
fp8::elementwise(OpBuilder &b, Location loc, ArrayRef<RankedTensorType> results,
                 ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                 function_ref<SmallVector<Value>(Body &, ValueRange)> body) {
  int64_t rank = results.front().getRank();
  SmallVector<AffineMap> maps(inputMaps);
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  maps.resize(inputs.size() + results.size(), identity);
  SmallVector<Value> outs;
  SmallVector<Type> types;
  for (RankedTensorType type : results) {
    outs.push_back(emptyTensor(b, loc, type));
    types.push_back(type);
  }
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      b, loc, types, inputs, outs, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        Body builder{nested, loc};
        linalg::YieldOp::create(nested, loc, body(builder, args));
      });
}

SmallVector<AffineExpr> fp8::getScalePlace(ArrayRef<int64_t> shape,
                                           ArrayRef<int64_t> tile,
                                           ArrayRef<AffineExpr> place,
                                           MLIRContext *context) {
  SmallVector<AffineExpr> exprs;
  // A single scale for the whole tensor is a scalar.
  if (getScaleShape(shape, tile).empty())
    return exprs;
  for (auto [size, extent, at] : llvm::zip_equal(shape, tile, place)) {
    // An empty dimension has no scale.
    bool one = extent == ScaledType::kWhole || (extent >= size && size != 0);
    if (one)
      exprs.push_back(getAffineConstantExpr(0, context));
    else
      exprs.push_back(at.floorDiv(extent));
  }
  return exprs;
}

/// Returns the map of a value per tile, in an elementwise op over the elements.
static AffineMap getTileMap(ArrayRef<int64_t> shape, ArrayRef<int64_t> tile,
                            MLIRContext *context) {
  SmallVector<AffineExpr> place;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    place.push_back(getAffineDimExpr(dim, context));
  return AffineMap::get(shape.size(), 0,
                        getScalePlace(shape, tile, place, context), context);
}

static AffineMap getScaleMap(ScaledType type) {
  return getTileMap(type.getShape(), type.getTile(), type.getContext());
}

/// Returns the tile of an op; by default the whole tensor.
static SmallVector<int64_t>
getTileOrWhole(RankedTensorType type, std::optional<ArrayRef<int64_t>> tile) {
  if (tile)
    return SmallVector<int64_t>(*tile);
  return SmallVector<int64_t>(type.getRank(), ScaledType::kWhole);
}

//===----------------------------------------------------------------------===//
// Amax, amin
//===----------------------------------------------------------------------===//

namespace {

/// Returns the larger of two absolute values; maximumf propagates NaN.
Value combine(AmaxOp, Body &b, Value soFar, Value abs) {
  return b.binary<arith::MaximumFOp>(soFar, abs);
}

/// Returns the smaller of two absolute values, ignoring zero.
Value combine(AminOp, Body &b, Value soFar, Value abs) {
  Value isZero = b.cmp(arith::CmpFPredicate::OEQ, abs, b.f32(0.0));
  return b.binary<arith::MinimumFOp>(soFar,
                                     b.select(isZero, b.infinity(), abs));
}

/// Lowers to the extreme absolute value of every tile.
template <typename OpTy> struct ExtremeLowering : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getInput().getType();
    SmallVector<int64_t> tile = getTileOrWhole(type, op.getTile());

    // Whole blocks and partial ones at an edge are different loops: every
    // combination over the dimensions writes its part of the result.
    SmallVector<unsigned> partial;
    for (auto [dim, extent] : llvm::enumerate(tile))
      if (extent != ScaledType::kWhole && extent < type.getDimSize(dim) &&
          type.getDimSize(dim) % extent != 0)
        partial.push_back(dim);
    Value result = makeInit(rewriter, op);
    if (type.getNumElements() == 0) {
      rewriter.replaceOp(op, result);
      return success();
    }
    for (unsigned edges = 0; edges < 1u << partial.size(); ++edges) {
      llvm::SmallDenseSet<unsigned> atEdge;
      for (auto [index, dim] : llvm::enumerate(partial))
        if (edges >> index & 1)
          atEdge.insert(dim);
      result = reduceTiles(rewriter, op.getLoc(), adaptor.getInput(), tile,
                           atEdge, result);
    }
    rewriter.replaceOp(op, result);
    return success();
  }

  static Value makeInit(OpBuilder &b, OpTy op) {
    RankedTensorType type = op.getResult().getType();
    if (std::is_same_v<OpTy, AmaxOp>)
      return filledWithZero(b, op.getLoc(), type);
    Value infinity = Body{b, op.getLoc()}.infinity();
    return linalg::FillOp::create(b, op.getLoc(), infinity,
                                  emptyTensor(b, op.getLoc(), type))
        .getResult(0);
  }

  /// Reduces blocks into `init`: whole ones, and along the dimensions in
  /// `atEdge` the last, partial ones.
  static Value reduceTiles(OpBuilder &b, Location loc, Value input,
                           ArrayRef<int64_t> tile,
                           const llvm::SmallDenseSet<unsigned> &atEdge,
                           Value init) {
    auto type = cast<RankedTensorType>(input.getType());
    SmallVector<AffineExpr> read, write;
    SmallVector<utils::IteratorType> iterators;
    SmallVector<std::pair<unsigned, int64_t>> extents;
    auto addLoop = [&](utils::IteratorType kind) {
      iterators.push_back(kind);
      return b.getAffineDimExpr(iterators.size() - 1);
    };
    auto parallel = utils::IteratorType::parallel;
    auto reduction = utils::IteratorType::reduction;
    for (auto [dim, size, extent] : llvm::enumerate(type.getShape(), tile)) {
      if (extent == ScaledType::kWhole || extent >= size) {
        read.push_back(addLoop(reduction));
        write.push_back(b.getAffineConstantExpr(0));
        continue;
      }
      if (extent == 1) {
        read.push_back(addLoop(parallel));
        write.push_back(read.back());
        continue;
      }
      int64_t blocks = size / extent;
      if (atEdge.contains(dim)) {
        AffineExpr within = addLoop(reduction);
        extents.push_back({iterators.size() - 1, size % extent});
        read.push_back(within + blocks * extent);
        write.push_back(b.getAffineConstantExpr(blocks));
        continue;
      }
      AffineExpr block = addLoop(parallel);
      extents.push_back({iterators.size() - 1, blocks});
      AffineExpr within = addLoop(reduction);
      extents.push_back({iterators.size() - 1, extent});
      read.push_back(block * extent + within);
      // This is how the structured form writes to the first part of a
      // dimension.
      write.push_back(size % extent ? block % (blocks + 1) : block);
    }
    if (cast<RankedTensorType>(init.getType()).getRank() == 0)
      write.clear();

    SmallVector<Value> inputs{input};
    unsigned loops = iterators.size();
    MLIRContext *context = b.getContext();
    SmallVector<AffineMap> maps{AffineMap::get(loops, 0, read, context)};
    // No other operand determines the extents of blocks. (They are constants,
    // because kernels drop values that are never written.)
    for (auto [loop, extent] : extents) {
      auto byte = RankedTensorType::get(extent, b.getI8Type());
      inputs.push_back(arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(byte, b.getI8IntegerAttr(0))));
      maps.push_back(AffineMap::get(loops, 0, b.getAffineDimExpr(loop)));
    }
    maps.push_back(AffineMap::get(loops, 0, write, context));
    return linalg::GenericOp::create(
               b, loc, init.getType(), inputs, init, maps, iterators,
               [](OpBuilder &nested, Location loc, ValueRange args) {
                 Body body{nested, loc};
                 Value abs = math::AbsFOp::create(nested, loc,
                                                  body.toF32(args.front()));
                 linalg::YieldOp::create(
                     nested, loc, combine(OpTy(), body, args.back(), abs));
               })
        .getResult(0);
  }
};

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Returns scale and quantizer as in Transformer Engine: the quantizer is max /
/// amax / 2^margin in f32, the largest float on overflow, and 1 for an amax
/// that is zero or not finite.
SmallVector<Value> exactScale(Body &b, Value amax, FloatType format,
                              int64_t margin) {
  Value q = b.binary<arith::DivFOp>(b.f32(getLargestFinite(format)), amax);
  if (margin != 0)
    q = b.binary<arith::MulFOp>(q, b.f32(std::ldexp(1.0, -margin)));
  Value largest = b.f32(APFloat::getLargest(APFloat::IEEEsingle()));
  q = b.select(b.cmp(arith::CmpFPredicate::OGT, q, largest), largest, q);
  Value valid = b.binary<arith::AndIOp>(
      b.cmp(arith::CmpFPredicate::OGT, amax, b.f32(0.0)),
      b.cmp(arith::CmpFPredicate::OLT, amax, b.infinity()));
  Value one = b.f32(1.0);
  q = b.select(valid, q, one);
  return {b.binary<arith::DivFOp>(one, q), q};
}

/// Returns power-of-two scales: the exponent of amax / max, rounded up (pow2)
/// or regardless of the significands (ocp_floor). Uses integers only: log2 and
/// division would round near powers of two.
SmallVector<Value> powerOfTwoScale(Body &b, Value amax, FloatType format,
                                   int64_t margin, bool roundUp,
                                   Type scaleType) {
  // Scale subnormals to normal numbers first.
  Value subnormal =
      b.cmp(arith::CmpFPredicate::OLT, amax, b.f32(std::ldexp(1.0, -126)));
  Value normal =
      b.select(subnormal,
               b.binary<arith::MulFOp>(amax, b.f32(std::ldexp(1.0, 32))), amax);
  Value bits = b.bits(normal);
  // amax >= 0, so there is no sign bit.
  Value exponent = b.binary<arith::ShRUIOp>(bits, b.i32(23));
  Value offset =
      b.select(subnormal, b.i32(margin - 127 - 32 - getLargestExponent(format)),
               b.i32(margin - 127 - getLargestExponent(format)));
  Value k = b.binary<arith::AddIOp>(exponent, offset);
  if (roundUp) {
    Value significand = b.binary<arith::AndIOp>(bits, b.i32(0x7fffff));
    APFloat max(static_cast<float>(getLargestFinite(format)));
    int32_t maxSignificand = max.bitcastToAPInt().getZExtValue() & 0x7fffff;
    Value above =
        b.cmp(arith::CmpIPredicate::ugt, significand, b.i32(maxSignificand));
    k = b.binary<arith::AddIOp>(
        k, arith::ExtUIOp::create(b.b, b.loc, b.b.getI32Type(), above));
  }
  // Keep both 2^k and 2^-k normal floats.
  k = b.binary<arith::MaxSIOp>(k, b.i32(-126));
  k = b.binary<arith::MinSIOp>(k, b.i32(126));
  Value valid = b.binary<arith::AndIOp>(
      b.cmp(arith::CmpFPredicate::OGT, amax, b.f32(0.0)),
      b.cmp(arith::CmpFPredicate::OLT, amax, b.infinity()));
  k = b.select(valid, k, b.i32(0));
  auto power = [&](Value biased) {
    return b.fromBits(b.binary<arith::ShLIOp>(biased, b.i32(23)));
  };
  Value biased = b.binary<arith::AddIOp>(b.i32(127), k);
  Value quantizer = power(b.binary<arith::SubIOp>(b.i32(127), k));
  if (scaleType.isF32())
    return {power(biased), quantizer};
  // The code of an f8E8M0FNU is the biased exponent.
  Value code =
      arith::TruncIOp::create(b.b, b.loc, b.b.getIntegerType(8), biased);
  return {arith::BitcastOp::create(b.b, b.loc, scaleType, code), quantizer};
}

struct ComputeScaleLowering : OpConversionPattern<ComputeScaleOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(ComputeScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto format = cast<FloatType>(op.getFormat());
    RankedTensorType scale = op.getScale().getType();
    int64_t margin = op.getMarginAttr().getInt();
    auto generic =
        elementwise(rewriter, op.getLoc(), {scale, op.getQuantizer().getType()},
                    adaptor.getAmax(), {}, [&](Body &b, ValueRange args) {
                      if (op.getRule() == ScaleRule::Exact)
                        return exactScale(b, args[0], format, margin);
                      return powerOfTwoScale(b, args[0], format, margin,
                                             op.getRule() == ScaleRule::Pow2,
                                             scale.getElementType());
                    });
    rewriter.replaceOp(op, generic);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Returns 64 well-mixed bits (the finalizer of SplitMix64).
Value mix64(Body &b, Value x) {
  auto shiftXor = [&](Value x, uint64_t by) {
    return b.binary<arith::XOrIOp>(x, b.binary<arith::ShRUIOp>(x, b.i64(by)));
  };
  x = b.binary<arith::MulIOp>(shiftXor(x, 30), b.i64(0xbf58476d1ce4e5b9));
  x = b.binary<arith::MulIOp>(shiftXor(x, 27), b.i64(0x94d049bb133111eb));
  return shiftXor(x, 31);
}

/// Returns the seed with number `counter` that derives from `seed`.
Value mixSeed(Body &b, Value seed, Value counter) {
  Value step = b.binary<arith::MulIOp>(
      b.binary<arith::AddIOp>(counter, b.i64(1)), b.i64(0x9e3779b97f4a7c15));
  return mix64(b, b.binary<arith::XOrIOp>(mix64(b, seed), step));
}

struct MixSeedLowering : OpConversionPattern<MixSeedOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(MixSeedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    rewriter.replaceOp(
        op, elementwise(rewriter, op.getLoc(), type, adaptor.getOperands(), {},
                        [](Body &b, ValueRange args) -> SmallVector<Value> {
                          Value counter = args[1];
                          Type i64 = b.b.getI64Type();
                          if (counter.getType() != i64)
                            counter = arith::ExtSIOp::create(b.b, b.loc, i64,
                                                             counter);
                          return {mixSeed(b, args[0], counter)};
                        }));
    return success();
  }
};

/// Returns a random integer of 24 bits for an element. Uses 32-bit arithmetic,
/// which vectorizes: a bijection of the element's index with three
/// multiplications (Wellons' triple32), keyed before and between them.
Value randomNumber(Body &b, Value seed, Value tensor, ArrayRef<int64_t> shape) {
  Value key = mixSeed(b, seed, tensor);
  Type i32 = b.b.getI32Type();
  auto low = [&](Value x) -> Value {
    return arith::TruncIOp::create(b.b, b.loc, i32, x);
  };
  Value place = b.i32(0);
  for (auto [dim, size] : llvm::enumerate(shape)) {
    Value index = arith::IndexCastOp::create(
        b.b, b.loc, i32, linalg::IndexOp::create(b.b, b.loc, dim));
    place = b.binary<arith::AddIOp>(b.binary<arith::MulIOp>(place, b.i32(size)),
                                    index);
  }
  auto shiftXor = [&](Value x, int64_t by) {
    return b.binary<arith::XOrIOp>(x, b.binary<arith::ShRUIOp>(x, b.i32(by)));
  };
  auto times = [&](Value x, int64_t factor) {
    return b.binary<arith::MulIOp>(x, b.i32(factor));
  };
  Value x = b.binary<arith::XOrIOp>(place, low(key));
  x = times(shiftXor(x, 17), 0xed5ad4bb);
  x = b.binary<arith::AddIOp>(shiftXor(x, 11),
                              low(b.binary<arith::ShRUIOp>(key, b.i64(32))));
  x = times(x, 0xac4c1b51);
  x = times(shiftXor(x, 15), 0x31848bab);
  x = shiftXor(x, 14);
  return b.binary<arith::ShRUIOp>(x, b.i32(8));
}

/// Returns x in `type`, rounded by `random` or, without it, to nearest even.
Value roundTo(Body &b, Value x, FloatType type, Value random) {
  return random ? expandStochasticCast(b.b, b.loc, x, type, random)
                : b.fromF32(x, type);
}

/// Adds the inputs of the random numbers of `op`, if it rounds stochastically:
/// a seed and the number of the tensor. The number is an input, not a constant
/// of the body, so that all layers share one kernel.
template <typename OpType>
void addRandomInputs(OpBuilder &builder, OpType op, Value seed,
                     SmallVectorImpl<Value> &inputs,
                     SmallVectorImpl<AffineMap> &maps) {
  if (!seed)
    return;
  auto type = RankedTensorType::get({}, builder.getI64Type());
  auto number = static_cast<int64_t>(op.getTensor().value_or(0));
  inputs.push_back(seed);
  inputs.push_back(arith::ConstantOp::create(
      builder, op.getLoc(), type, DenseElementsAttr::get(type, number)));
  maps.append(
      2, AffineMap::get(maps.front().getNumDims(), 0, builder.getContext()));
}

struct RoundLowering : OpConversionPattern<RoundOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(RoundOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    SmallVector<Value> inputs{adaptor.getInput()};
    SmallVector<AffineMap> maps{
        rewriter.getMultiDimIdentityMap(type.getRank())};
    addRandomInputs(rewriter, op, adaptor.getSeed(), inputs, maps);
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value random;
      if (op.getSeed())
        random = randomNumber(b, args[1], args[2], type.getShape());
      return {
          roundTo(b, args[0], cast<FloatType>(type.getElementType()), random)};
    };
    rewriter.replaceOp(
        op, elementwise(rewriter, op.getLoc(), type, inputs, maps, body));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Range expansion
//===----------------------------------------------------------------------===//

/// The largest range of a tile, in octaves, that can be centered in f32.
constexpr double kMaxRange = 254.0;

struct ComputeExpansionLowering : OpConversionPattern<ComputeExpansionOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(ComputeExpansionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    double max = getLargestFinite(cast<FloatType>(op.getFormat()));
    auto type = cast<RankedTensorType>(op.getCenter().getType());
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value amax = args[0], amin = args[1], one = b.f32(1.0);
      Value center = b.binary<arith::MulFOp>(
          math::SqrtOp::create(b.b, b.loc, amax).getResult(),
          math::SqrtOp::create(b.b, b.loc, amin).getResult());
      auto log2 = [&](Value x) -> Value {
        return math::Log2Op::create(b.b, b.loc, x);
      };
      // The ratio to a subnormal number may overflow in f32.
      Value ratio = b.binary<arith::DivFOp>(amax, amin);
      Value overflows = b.cmp(arith::CmpFPredicate::OEQ, ratio, b.infinity());
      Value range =
          b.select(overflows, b.binary<arith::SubFOp>(log2(amax), log2(amin)),
                   log2(ratio));
      Value steps = b.binary<arith::DivFOp>(
          b.f32(16.0 * std::log2(max * max / 2)), range);
      Value exponent = b.binary<arith::MulFOp>(
          math::FloorOp::create(b.b, b.loc, steps), b.f32(1.0 / 16));
      // The root of such a ratio overflows, too: 0 turns the expansion off.
      exponent =
          b.select(b.cmp(arith::CmpFPredicate::OGT, range, b.f32(kMaxRange)),
                   b.f32(0.0), exponent);
      // Only zeros (0 / infinity) and an infinite amax give 0, a NaN compares
      // false, and equal values give infinity.
      Value changes = b.binary<arith::AndIOp>(
          b.cmp(arith::CmpFPredicate::OGT, exponent, b.f32(0.0)),
          b.cmp(arith::CmpFPredicate::OLT, exponent, b.infinity()));
      return {b.select(changes, center, one), b.select(changes, exponent, one)};
    };
    rewriter.replaceOp(op, elementwise(rewriter, op.getLoc(), {type, type},
                                       {adaptor.getAmax(), adaptor.getAmin()},
                                       {}, body));
    return success();
  }
};

/// Lowers to an elementwise op on the magnitude of the input, with the center
/// and the exponent of the element's tile. The sign stays.
template <typename OpTy> struct RangeLowering : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getResult().getType();
    SmallVector<int64_t> tile = getTileOrWhole(type, op.getTile());
    AffineMap tiles = getTileMap(type.getShape(), tile, op.getContext());
    AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value abs = math::AbsFOp::create(b.b, b.loc, args[0]);
      Value y = apply(op, b, abs, args[1], args[2]);
      return {math::CopySignOp::create(b.b, b.loc, y, args[0])};
    };
    rewriter.replaceOp(op, elementwise(rewriter, op.getLoc(), type,
                                       adaptor.getOperands(),
                                       {identity, tiles, tiles}, body));
    return success();
  }

  /// Returns the power of a magnitude. It may be approximated: its error is far
  /// below that of FP8. The abs tells that the base is not negative.
  static Value power(Body &b, Value x, Value exponent) {
    return math::PowFOp::create(b.b, b.loc, math::AbsFOp::create(b.b, b.loc, x),
                                exponent, arith::FastMathFlags::afn);
  }

  static Value apply(ExpandRangeOp, Body &b, Value x, Value center,
                     Value exponent) {
    return power(b, b.binary<arith::DivFOp>(x, center), exponent);
  }
  static Value apply(RestoreRangeOp, Body &b, Value y, Value center,
                     Value exponent) {
    Value root = b.binary<arith::DivFOp>(b.f32(1.0), exponent);
    return b.binary<arith::MulFOp>(power(b, y, root), center);
  }
};

struct RescaleLowering : OpConversionPattern<RescaleOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(RescaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getResult().getType();
    SmallVector<AffineExpr> place;
    for (int64_t dim : op.getDims())
      place.push_back(rewriter.getAffineDimExpr(dim));
    AffineMap maps[] = {rewriter.getMultiDimIdentityMap(type.getRank()),
                        AffineMap::get(type.getRank(), 0, place, getContext())};
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value product = b.binary<arith::MulFOp>(b.toF32(args[0]), args[1]);
      return {b.fromF32(product, cast<FloatType>(type.getElementType()))};
    };
    rewriter.replaceOp(op, elementwise(rewriter, op.getLoc(), type,
                                       adaptor.getOperands(), maps, body));
    return success();
  }
};

struct QuantizeLowering : OpConversionPattern<QuantizeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(QuantizeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto scaled = cast<ScaledType>(op.getType());
    RankedTensorType type = scaled.getPayloadType();
    auto format = cast<FloatType>(type.getElementType());
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value x = b.toF32(args[0]);
      Value y = b.binary<arith::MulFOp>(x, args[1]);
      Value keep;
      if (op.getOverflow() == Overflow::Saturate) {
        // A finite x whose product overflows saturates, too: test x, not y. The
        // comparisons are those of x86 min and max, which let a NaN through.
        Value abs = math::AbsFOp::create(b.b, b.loc, x);
        keep = b.cmp(arith::CmpFPredicate::OLT, abs, b.infinity());
        Value max = b.f32(getLargestFinite(format));
        Value min = b.f32(-getLargestFinite(format));
        y = b.select(b.cmp(arith::CmpFPredicate::OGT, y, max), max, y);
        y = b.select(b.cmp(arith::CmpFPredicate::OLT, y, min), min, y);
      } else {
        keep = b.cmp(arith::CmpFPredicate::ORD, y, y);
      }
      Value random;
      if (op.getRounding() == Rounding::Stochastic)
        random = randomNumber(b, args[2], args[3], type.getShape());
      return {roundTo(b, b.select(keep, y, b.nan()), format, random)};
    };
    SmallVector<Value> inputs{adaptor.getInput(), adaptor.getQuantizer()};
    SmallVector<AffineMap> maps = {
        rewriter.getMultiDimIdentityMap(type.getRank()), getScaleMap(scaled)};
    addRandomInputs(rewriter, op, adaptor.getSeed(), inputs, maps);
    auto generic = elementwise(rewriter, op.getLoc(), type, inputs, maps, body);
    SmallVector<SmallVector<Value>> results = {
        {generic.getResult(0), adaptor.getScale()}};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct DequantizeLowering : OpConversionPattern<DequantizeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(DequantizeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value x = b.binary<arith::MulFOp>(b.toF32(args[0]), b.toF32(args[1]));
      return {b.fromF32(x, type.getElementType())};
    };
    SmallVector<AffineMap> maps = {
        rewriter.getMultiDimIdentityMap(type.getRank()),
        getScaleMap(op.getInput().getType())};
    rewriter.replaceOp(op, elementwise(rewriter, op.getLoc(), type,
                                       adaptor.getInput(), maps, body));
    return success();
  }
};

struct PackLowering : OpConversionPattern<PackOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(PackOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<SmallVector<Value>> results = {
        {adaptor.getPayload(), adaptor.getScale()}};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct UnpackLowering : OpConversionPattern<UnpackOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(UnpackOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getInput());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// Replaces a layout op by its payload and scale.
LogicalResult replaceByPair(ConversionPatternRewriter &rewriter, Operation *op,
                            Value payload, Value scale) {
  SmallVector<SmallVector<Value>> results = {{payload, scale}};
  rewriter.replaceOpWithMultiple(op, std::move(results));
  return success();
}

struct ScaledTransposeLowering : OpConversionPattern<TransposeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(TransposeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = op.getResult().getType();
    Value payload = stablehlo::TransposeOp::create(
        rewriter, op.getLoc(), type.getPayloadType(), adaptor.getInput()[0],
        op.getPermutation());
    Value scale = adaptor.getInput()[1];
    if (!type.isPerTensor())
      scale = stablehlo::TransposeOp::create(rewriter, op.getLoc(),
                                             type.getScaleTensorType(), scale,
                                             op.getPermutation());
    return replaceByPair(rewriter, op, payload, scale);
  }
};

struct ScaledReshapeLowering : OpConversionPattern<ReshapeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(ReshapeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto reshape = [&](Value value, RankedTensorType type) -> Value {
      if (value.getType() == type)
        return value;
      return stablehlo::ReshapeOp::create(rewriter, op.getLoc(), type, value);
    };
    auto type = op.getResult().getType();
    return replaceByPair(
        rewriter, op, reshape(adaptor.getInput()[0], type.getPayloadType()),
        reshape(adaptor.getInput()[1], type.getScaleTensorType()));
  }
};

struct ScaledSliceLowering : OpConversionPattern<SliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(SliceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ScaledType from = op.getInput().getType(), to = op.getResult().getType();
    SmallVector<int64_t> strides(from.getRank(), 1);
    Value payload = stablehlo::SliceOp::create(
        rewriter, op.getLoc(), to.getPayloadType(), adaptor.getInput()[0],
        op.getStarts(), op.getLimits(), strides);
    Value scale = adaptor.getInput()[1];
    RankedTensorType type = to.getScaleTensorType();
    if (scale.getType() != type) {
      SmallVector<int64_t> starts, limits;
      for (auto [dim, start] : llvm::enumerate(op.getStarts())) {
        starts.push_back(from.variesAlong(dim) ? start / from.getTile()[dim]
                                               : 0);
        limits.push_back(starts.back() + type.getDimSize(dim));
      }
      scale = stablehlo::SliceOp::create(rewriter, op.getLoc(), type, scale,
                                         starts, limits, strides);
    }
    return replaceByPair(rewriter, op, payload, scale);
  }
};

} // namespace

void fp8::populateScalingPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns
      .add<ExtremeLowering<AmaxOp>, ExtremeLowering<AminOp>,
           ComputeScaleLowering, MixSeedLowering, RoundLowering,
           ComputeExpansionLowering, RangeLowering<ExpandRangeOp>,
           RangeLowering<RestoreRangeOp>, ScaledTransposeLowering,
           ScaledReshapeLowering, ScaledSliceLowering, RescaleLowering,
           QuantizeLowering, DequantizeLowering, PackLowering, UnpackLowering>(
          converter, patterns.getContext());
}
