//===- FP8ToLinalg.cpp - fp8 to linalg ------------------------------------===//
//
// Scaled tensors become payload and scale, in functions and in control flow;
// ops become linalg.generic (Scaling.cpp, DotGeneral.cpp, Windows.cpp).
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/FP8ToLinalg/FP8ToLinalg.h"

#include "Scalars.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTFP8TOLINALG
#include "fp8/Conversion/FP8ToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Functions and control flow
//===----------------------------------------------------------------------===//

namespace {

/// Returns the attributes of the `count` values that one value of a signature
/// becomes. A scale gets the fp8 attributes of its payload, under its own name;
/// other attributes (donation, layouts) stay with the payload.
void splitAttributes(DictionaryAttr attrs, size_t count,
                     SmallVectorImpl<DictionaryAttr> &result) {
  result.push_back(attrs);
  if (count < 2)
    return;
  SmallVector<NamedAttribute> scale;
  if (attrs)
    for (NamedAttribute attr : attrs) {
      if (!attr.getName().strref().starts_with("fp8."))
        continue;
      Attribute value = attr.getValue();
      if (attr.getName() == FP8Dialect::kPathAttrName ||
          attr.getName() == FP8Dialect::kStateAttrName)
        if (auto path = dyn_cast<StringAttr>(value))
          value = StringAttr::get(path.getContext(),
                                  path.getValue() + FP8Dialect::kScaleSuffix);
      scale.emplace_back(attr.getName(), value);
    }
  result.push_back(attrs ? DictionaryAttr::get(attrs.getContext(), scale)
                         : DictionaryAttr());
}

struct FuncLowering : OpConversionPattern<func::FuncOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(func::FuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FunctionType type = op.getFunctionType();
    const TypeConverter &converter = *getTypeConverter();
    TypeConverter::SignatureConversion inputs(type.getNumInputs());
    SmallVector<Type> results;
    SmallVector<DictionaryAttr> argAttrs, resultAttrs;
    auto orEmpty = [&](DictionaryAttr attrs) {
      return attrs ? attrs : rewriter.getDictionaryAttr({});
    };
    for (auto [index, input] : llvm::enumerate(type.getInputs())) {
      SmallVector<Type> types;
      if (failed(converter.convertType(input, types)))
        return failure();
      inputs.addInputs(index, types);
      splitAttributes(orEmpty(op.getArgAttrDict(index)), types.size(),
                      argAttrs);
    }
    for (auto [index, result] : llvm::enumerate(type.getResults())) {
      size_t before = results.size();
      if (failed(converter.convertType(result, results)))
        return failure();
      splitAttributes(orEmpty(op.getResultAttrDict(index)),
                      results.size() - before, resultAttrs);
    }
    if (!op.isExternal() &&
        failed(rewriter.convertRegionTypes(&op.getBody(), converter, &inputs)))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.setType(rewriter.getFunctionType(inputs.getConvertedTypes(), results));
      op.setAllArgAttrs(argAttrs);
      op.setAllResultAttrs(resultAttrs);
    });
    return success();
  }
};

SmallVector<Value> flatten(ArrayRef<ValueRange> values) {
  SmallVector<Value> result;
  for (ValueRange range : values)
    llvm::append_range(result, range);
  return result;
}

/// Converts calls and returns: scaled operands and results become two values
/// each. (Loops and branches of StableHLO carry no scaled tensors; upstream has
/// patterns for those of scf.)
struct ForwardingLowering : ConversionPattern {
  ForwardingLowering(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  static bool isForwarding(Operation *op) {
    return isa<func::ReturnOp, func::CallOp>(op);
  }

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isForwarding(op))
      return failure();
    SmallVector<Type> types;
    SmallVector<size_t> sizes;
    for (Type type : op->getResultTypes()) {
      size_t before = types.size();
      if (failed(getTypeConverter()->convertType(type, types)))
        return failure();
      sizes.push_back(types.size() - before);
    }
    OperationState state(op->getLoc(), op->getName(), flatten(operands), types,
                         op->getAttrs());
    Operation *copy = rewriter.create(state);
    SmallVector<SmallVector<Value>> results;
    ResultRange rest = copy->getResults();
    for (size_t size : sizes) {
      results.emplace_back(rest.take_front(size));
      rest = rest.drop_front(size);
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void fp8::populateFP8TypeConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](ScaledType type, SmallVectorImpl<Type> &results) -> LogicalResult {
        results.push_back(type.getPayloadType());
        results.push_back(type.getScaleTensorType());
        return success();
      });
}

void fp8::populateFP8ToLinalgPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  populateScalingPatterns(converter, patterns);
  populateDotPatterns(converter, patterns);
  populateRankPatterns(converter, patterns);
  populateWindowsPatterns(converter, patterns);
  patterns.add<FuncLowering, ForwardingLowering>(converter,
                                                 patterns.getContext());
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {

struct ConvertFP8ToLinalg
    : fp8::impl::ConvertFP8ToLinalgBase<ConvertFP8ToLinalg> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    populateFP8TypeConversions(converter);
    RewritePatternSet patterns(context);
    populateFP8ToLinalgPatterns(converter, patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<FP8Dialect>();
    // Stage 4 turns these into kernels and calls of collectives.
    target.addLegalOp<AttentionOp, AttentionBackwardOp, YieldOp, AllReduceOp,
                      ExchangeOp, RankOp>();
    target.addLegalDialect<arith::ArithDialect, linalg::LinalgDialect,
                           math::MathDialect, stablehlo::StablehloDialect,
                           tensor::TensorDialect>();
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
      return converter.isSignatureLegal(op.getFunctionType());
    });
    target.addDynamicallyLegalOp<func::ReturnOp, func::CallOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      return signalPassFailure();
    getOperation()->removeAttr(FP8Dialect::kRecipeAttrName);
  }
};

} // namespace
