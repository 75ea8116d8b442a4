//===- StableHLOToLinalg.cpp - StableHLO to linalg ------------------------===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTSTABLEHLOTOLINALG
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

//===----------------------------------------------------------------------===//
// Signless types
//===----------------------------------------------------------------------===//

/// Retypes a view of a stack of unsigned integers; other tensor ops that exist
/// before this pass have signless types.
template <typename OpTy> struct RetypeView : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<OpTy>(
        op, this->getTypeConverter()->convertType(op.getType()),
        adaptor.getOperands(), op->getAttrs());
    return success();
  }
};

/// Retypes an attention whose inputs, results or body have unsigned integers.
template <typename OpTy> struct RetypeAttention : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(this->getTypeConverter()->convertTypes(op->getResultTypes(),
                                                      types)))
      return failure();
    auto retyped =
        OpTy::create(rewriter, op.getLoc(), types, adaptor.getInputs());
    rewriter.inlineRegionBefore(op.getBody(), retyped.getBody(),
                                retyped.getBody().end());
    if (failed(rewriter.convertRegionTypes(&retyped.getBody(),
                                           *this->getTypeConverter())))
      return failure();
    rewriter.replaceOp(op, retyped);
    return success();
  }
};

template <typename OpT> struct RetypeCollective : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(this->getTypeConverter()->convertTypes(op->getResultTypes(),
                                                      types)))
      return failure();
    rewriter.replaceOpWithNewOp<OpT>(op, types, adaptor.getOperands(),
                                     op->getAttrs());
    return success();
  }
};

struct RetypeYield : OpConversionPattern<fp8::YieldOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(fp8::YieldOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.modifyOpInPlace(op,
                             [&] { op->setOperands(adaptor.getOperands()); });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct ConvertStableHLOToLinalgPass
    : fp8::impl::ConvertStableHLOToLinalgBase<ConvertStableHLOToLinalgPass> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    populateSignlessTypeConversions(converter);
    RewritePatternSet patterns(context);
    populateStableHLOToLinalgPatterns(converter, patterns);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                   converter);
    populateCallOpTypeConversionPattern(patterns, converter);
    populateReturnOpTypeConversionPattern(patterns, converter);

    ConversionTarget target(*context);
    target.addIllegalDialect("stablehlo", "chlo");
    target.addDynamicallyLegalOp<stablehlo::OptimizationBarrierOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
      return converter.isSignatureLegal(op.getFunctionType()) &&
             converter.isLegal(&op.getBody());
    });
    target.addDynamicallyLegalOp<func::CallOp, func::ReturnOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    patterns.add<RetypeView<tensor::ExtractSliceOp>,
                 RetypeView<tensor::InsertSliceOp>>(converter, context);
    target.addDynamicallyLegalOp<tensor::ExtractSliceOp, tensor::InsertSliceOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    patterns.add<RetypeAttention<fp8::AttentionOp>,
                 RetypeAttention<fp8::AttentionBackwardOp>,
                 RetypeCollective<fp8::AllReduceOp>,
                 RetypeCollective<fp8::ExchangeOp>, RetypeYield>(converter,
                                                                 context);
    target.addDynamicallyLegalOp<fp8::AttentionOp, fp8::AttentionBackwardOp>(
        [&](Operation *op) {
          return converter.isLegal(op) && converter.isLegal(&op->getRegion(0));
        });
    target
        .addDynamicallyLegalOp<fp8::YieldOp, fp8::AllReduceOp, fp8::ExchangeOp>(
            [&](Operation *op) { return converter.isLegal(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });

    if (failed(checkSupported(patterns)) ||
        failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }

  /// Emits one clear error for each op without a lowering, before anything
  /// changes.
  LogicalResult checkSupported(RewritePatternSet &patterns) {
    llvm::DenseSet<OperationName> known;
    for (auto &pattern : patterns.getNativePatterns())
      if (auto root = pattern->getRootKind())
        known.insert(*root);
    WalkResult result = getOperation()->walk<WalkOrder::PreOrder>(
        [&](Operation *op) -> WalkResult {
          StringRef dialect = op->getName().getDialectNamespace();
          if (dialect != "stablehlo" && dialect != "chlo")
            return WalkResult::advance();
          if (!known.contains(op->getName()) && !isElementwise(op)) {
            emitRefusal(op, "has no lowering to linalg; "
                            "docs/StableHLOSubset.md lists the ops that have");
            return WalkResult::interrupt();
          }
          // Bodies are checked when they are emitted.
          return op->getNumRegions() ? WalkResult::skip()
                                     : WalkResult::advance();
        });
    return failure(result.wasInterrupted());
  }
};

} // namespace

void fp8::populateSignlessTypeConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](RankedTensorType type) -> Type { return signlessType(type); });
  auto cast = [](OpBuilder &b, Type type, ValueRange inputs, Location loc) {
    return UnrealizedConversionCastOp::create(b, loc, type, inputs)
        .getResult(0);
  };
  converter.addSourceMaterialization(cast);
  converter.addTargetMaterialization(cast);
}

void fp8::populateStableHLOToLinalgPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  populateElementwisePatterns(converter, patterns);
  populateMovePatterns(converter, patterns);
  populateReductionPatterns(converter, patterns);
  populateContractionPatterns(converter, patterns);
  populateIndexedAccessPatterns(converter, patterns);
  populatePaddedSumPatterns(converter, patterns);
  populateRandomBitsPatterns(converter, patterns);
  populateSortPatterns(converter, patterns);
  populateTopKPatterns(converter, patterns);
  populateWindowScatterPatterns(converter, patterns);
}
