//===- IndexedAccess.cpp - Indices that depend on data --------------------===//
//
// Gather, scatter and dynamic slices read or write single elements at indices
// that depend on data.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Returns the result's dimension for each dimension of a gather's operand, and
/// -1 for those that are collapsed.
SmallVector<int>
resultDims(stablehlo::GatherDimensionNumbersAttr numbers, unsigned operandRank,
           const DenseMap<int64_t, unsigned> &resultDimOfIndexDim) {
  SmallVector<int> dims(operandRank, -1);
  unsigned nextOffset = 0;
  for (unsigned i = 0; i < operandRank; ++i) {
    if (llvm::is_contained(numbers.getCollapsedSliceDims(), i))
      continue;
    auto batching = llvm::find(numbers.getOperandBatchingDims(), i);
    if (batching != numbers.getOperandBatchingDims().end()) {
      unsigned position = batching - numbers.getOperandBatchingDims().begin();
      dims[i] = resultDimOfIndexDim.lookup(
          numbers.getStartIndicesBatchingDims()[position]);
    } else {
      dims[i] = numbers.getOffsetDims()[nextOffset++];
    }
  }
  return dims;
}

struct GatherLowering : OpConversionPattern<stablehlo::GatherOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::GatherOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto numbers = op.getDimensionNumbers();
    RankedTensorType type = convertedType(op.getResult());
    Value operand = adaptor.getOperand(), indices = adaptor.getStartIndices();
    RankedTensorType operandType = tensorType(operand);
    unsigned rank = type.getRank(), operandRank = operandType.getRank();
    int64_t indexRank = tensorType(indices).getRank();
    int64_t vectorDim = numbers.getIndexVectorDim();
    ArrayRef<int64_t> sizes = op.getSliceSizes();

    // The result's dimension for each dimension of the indices.
    SmallVector<unsigned> batchDims;
    for (unsigned i = 0; i < rank; ++i)
      if (!llvm::is_contained(numbers.getOffsetDims(), i))
        batchDims.push_back(i);
    SmallVector<AffineExpr> indexExprs;
    DenseMap<int64_t, unsigned> resultDimOfIndexDim;
    for (int64_t i = 0, next = 0; i < indexRank; ++i) {
      if (i == vectorDim) {
        indexExprs.push_back(nullptr);
        continue;
      }
      resultDimOfIndexDim[i] = batchDims[next];
      indexExprs.push_back(rewriter.getAffineDimExpr(batchDims[next++]));
    }
    SmallVector<int> plainDim =
        resultDims(numbers, operandRank, resultDimOfIndexDim);
    // A start index that can only be 0 is not read.
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    SmallVector<int> inputOf(operandRank, -1);
    for (auto [k, dim] : llvm::enumerate(numbers.getStartIndexMap())) {
      if (operandType.getDimSize(dim) == sizes[dim])
        continue;
      SmallVector<AffineExpr> exprs = indexExprs;
      if (vectorDim < indexRank)
        exprs[vectorDim] = rewriter.getAffineConstantExpr(k);
      inputOf[dim] = inputs.size();
      inputs.push_back(indices);
      maps.push_back(AffineMap::get(rank, 0, exprs, rewriter.getContext()));
    }
    Type indexType = getElementTypeOrSelf(op.getStartIndices().getType());
    Value result = elementwise(
        rewriter, op.getLoc(), type, inputs, maps,
        [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          SmallVector<Value> where;
          for (unsigned i = 0; i < operandRank; ++i) {
            Value index;
            if (inputOf[i] >= 0)
              index = clampIndex(b, loc,
                                 toIndex(b, loc, args[inputOf[i]], indexType),
                                 operandType.getDimSize(i) - sizes[i]);
            if (plainDim[i] >= 0 && operandType.getDimSize(i) != 1)
              index = addIndex(b, loc, index,
                               linalg::IndexOp::create(b, loc, plainDim[i]));
            where.push_back(index ? index : constantIndex(b, loc, 0));
          }
          return tensor::ExtractOp::create(b, loc, operand, where);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct DynamicSliceLowering : OpConversionPattern<stablehlo::DynamicSliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::DynamicSliceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    Value operand = adaptor.getOperand();
    RankedTensorType from = tensorType(operand);
    if (from == type) {
      rewriter.replaceOp(op, operand);
      return success();
    }
    unsigned rank = type.getRank();
    SmallVector<Value> inputs;
    SmallVector<int> inputOf(rank, -1);
    for (unsigned i = 0; i < rank; ++i) {
      if (from.getDimSize(i) == type.getDimSize(i))
        continue;
      inputOf[i] = inputs.size();
      inputs.push_back(adaptor.getStartIndices()[i]);
    }
    SmallVector<AffineMap> maps(inputs.size(), scalarMap(rewriter, rank));
    Value result = elementwise(
        rewriter, op.getLoc(), type, inputs, maps,
        [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          SmallVector<Value> where;
          for (unsigned i = 0; i < rank; ++i) {
            Value index = linalg::IndexOp::create(b, loc, i);
            if (inputOf[i] >= 0) {
              Type indexType =
                  getElementTypeOrSelf(op.getStartIndices()[i].getType());
              Value start = clampIndex(
                  b, loc, toIndex(b, loc, args[inputOf[i]], indexType),
                  from.getDimSize(i) - type.getDimSize(i));
              index = addIndex(b, loc, start, index);
            }
            where.push_back(index);
          }
          return tensor::ExtractOp::create(b, loc, operand, where);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Emits the code of a scatter.
class ScatterEmitter {
public:
  ScatterEmitter(stablehlo::ScatterOp op, stablehlo::ScatterOp::Adaptor adaptor)
      : op(op), numbers(op.getScatterDimensionNumbers()),
        body(op->getRegion(0).front()), inputs(adaptor.getInputs()),
        updates(adaptor.getUpdates()), indices(adaptor.getScatterIndices()),
        type(tensorType(inputs[0])), updateType(tensorType(updates[0])),
        rank(type.getRank()), updateRank(updateType.getRank()) {
    for (unsigned i = 0; i < updateRank; ++i) {
      bool isWindow = llvm::is_contained(numbers.getUpdateWindowDims(), i);
      (isWindow ? windowDims : scatterDims).push_back(i);
    }
  }

  /// Returns the results, or failure if the body has no lowering.
  FailureOr<SmallVector<Value>> emit(OpBuilder &b) {
    if (updateType.getNumElements() == 0)
      return llvm::to_vector(inputs);
    SmallVector<Value> results =
        updateType.getNumElements() == 1 ? emitOne(b) : emitAll(b);
    if (unsupported)
      return failure();
    return results;
  }

private:
  SmallVector<Value> emitOne(OpBuilder &builder);
  SmallVector<Value> emitAll(OpBuilder &builder);
  SmallVector<Value> updateElement(OpBuilder &b, Location loc,
                                   ValueRange tensors, ValueRange start,
                                   ValueRange scatterIndex,
                                   ValueRange windowIndex);
  SmallVector<Value> startOf(OpBuilder &b, Location loc,
                             ValueRange scatterIndex);
  SmallVector<Value> combine(OpBuilder &b, Location loc, ValueRange old,
                             ValueRange values);
  SmallVector<int64_t> extentsOf(ArrayRef<unsigned> dims) {
    return llvm::map_to_vector(
        dims, [&](unsigned dim) { return updateType.getDimSize(dim); });
  }
  /// Returns whether the windows extend along a dimension of the inputs.
  bool isInWindow(unsigned dim) {
    return !llvm::is_contained(numbers.getInsertedWindowDims(), dim) &&
           !llvm::is_contained(numbers.getInputBatchingDims(), dim);
  }

  stablehlo::ScatterOp op;
  stablehlo::ScatterDimensionNumbersAttr numbers;
  Block &body;
  ValueRange inputs, updates;
  Value indices;
  RankedTensorType type, updateType;
  unsigned rank, updateRank;
  SmallVector<unsigned> scatterDims, windowDims;
  bool unsupported = false;
};

/// Returns the start of the window of a scatter index in each dimension; null
/// stands for 0.
SmallVector<Value> ScatterEmitter::startOf(OpBuilder &b, Location loc,
                                           ValueRange scatterIndex) {
  int64_t indexRank = tensorType(indices).getRank();
  int64_t vectorDim = numbers.getIndexVectorDim();
  Type indexType = getElementTypeOrSelf(op.getScatterIndices().getType());
  SmallVector<Value> start(rank);
  for (auto [k, dim] : llvm::enumerate(numbers.getScatterDimsToOperandDims())) {
    SmallVector<Value> where;
    for (int64_t i = 0, next = 0; i < indexRank; ++i)
      where.push_back(i == vectorDim ? constantIndex(b, loc, k)
                                     : scatterIndex[next++]);
    start[dim] = toIndex(
        b, loc, tensor::ExtractOp::create(b, loc, indices, where), indexType);
  }
  for (auto [i, dim] : llvm::enumerate(numbers.getInputBatchingDims())) {
    int64_t indexDim = numbers.getScatterIndicesBatchingDims()[i];
    start[dim] =
        addIndex(b, loc, start[dim],
                 scatterIndex[indexDim > vectorDim ? indexDim - 1 : indexDim]);
  }
  return start;
}

SmallVector<Value> ScatterEmitter::combine(OpBuilder &b, Location loc,
                                           ValueRange old, ValueRange values) {
  SmallVector<Value> arguments(old);
  llvm::append_range(arguments, values);
  FailureOr<SmallVector<Value>> results = emitBody(b, loc, body, arguments);
  unsupported |= failed(results);
  return failed(results) ? SmallVector<Value>(old) : *results;
}

/// Updates a single element without a loop over updates: every element of the
/// inputs tests whether it is the one.
SmallVector<Value> ScatterEmitter::emitOne(OpBuilder &builder) {
  SmallVector<Value> destinations;
  SmallVector<AffineMap> maps(2 * inputs.size(),
                              builder.getMultiDimIdentityMap(rank));
  for (Value input : inputs)
    destinations.push_back(
        emptyTensor(builder, op.getLoc(), tensorType(input)));
  auto one = generic(
      builder, op.getLoc(), inputs, destinations, maps, iterators(rank),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        ValueRange old = args.take_front(inputs.size());
        Value zero = constantIndex(b, loc, 0);
        SmallVector<Value> zeros(updateRank, zero), values;
        SmallVector<Value> start =
            startOf(b, loc, SmallVector<Value>(scatterDims.size(), zero));
        Value hit = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
        for (unsigned i = 0; i < rank; ++i) {
          Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                             linalg::IndexOp::create(b, loc, i),
                                             start[i] ? start[i] : zero);
          hit = arith::AndIOp::create(b, loc, hit, here);
        }
        for (Value update : updates)
          values.push_back(tensor::ExtractOp::create(b, loc, update, zeros));
        SmallVector<Value> combined = combine(b, loc, old, values);
        for (auto [value, before] : llvm::zip(combined, old))
          value = arith::SelectOp::create(b, loc, hit, value, before);
        linalg::YieldOp::create(b, loc, combined);
      });
  return llvm::to_vector_of<Value>(one.getResults());
}

/// Combines one element of the updates with that of the inputs at which it
/// lands, unless that is outside of them. Returns the updated `tensors`.
SmallVector<Value> ScatterEmitter::updateElement(OpBuilder &b, Location loc,
                                                 ValueRange tensors,
                                                 ValueRange start,
                                                 ValueRange scatterIndex,
                                                 ValueRange windowIndex) {
  SmallVector<Value> where, from(updateRank), old, values, updated;
  for (auto [dim, index] : llvm::zip(scatterDims, scatterIndex))
    from[dim] = index;
  for (auto [dim, index] : llvm::zip(windowDims, windowIndex))
    from[dim] = index;
  Value inside;
  unsigned nextWindow = 0;
  for (unsigned i = 0; i < rank; ++i) {
    Value index = start[i];
    if (isInWindow(i))
      index = addIndex(b, loc, index, windowIndex[nextWindow++]);
    if (!index)
      index = constantIndex(b, loc, 0);
    if (start[i]) {
      Value size = constantIndex(b, loc, type.getDimSize(i));
      // One comparison is enough: negative numbers are large unsigned ones.
      Value fits =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, size);
      inside = inside ? arith::AndIOp::create(b, loc, inside, fits) : fits;
      index = clampIndex(b, loc, index, type.getDimSize(i) - 1);
    }
    where.push_back(index);
  }
  for (Value tensor : tensors)
    old.push_back(tensor::ExtractOp::create(b, loc, tensor, where));
  for (Value update : updates)
    values.push_back(tensor::ExtractOp::create(b, loc, update, from));
  SmallVector<Value> combined = combine(b, loc, old, values);
  for (auto [value, before, tensor] : llvm::zip(combined, old, tensors)) {
    if (inside)
      value = arith::SelectOp::create(b, loc, inside, value, before);
    updated.push_back(tensor::InsertOp::create(b, loc, value, tensor, where));
  }
  return updated;
}

/// Updates element after element: a loop over the windows, and in it one over
/// the elements of a window.
SmallVector<Value> ScatterEmitter::emitAll(OpBuilder &builder) {
  SmallVector<int64_t> scatterExtents = extentsOf(scatterDims);
  SmallVector<int64_t> windowExtents = extentsOf(windowDims);
  bool isOneWindow = ShapedType::getNumElements(scatterExtents) == 1;
  SmallVector<Value> scatterIndex, windowIndex;
  return loopNest(builder, op.getLoc(), scatterExtents, inputs, scatterIndex,
                  [&](OpBuilder &b, Location loc, ValueRange carried) {
                    // Loops of one iteration are folded, and then elements
                    // could not be read here.
                    SmallVector<Value> start;
                    if (!isOneWindow)
                      start = startOf(b, loc, scatterIndex);
                    return loopNest(
                        b, loc, windowExtents, carried, windowIndex,
                        [&](OpBuilder &in, Location inLoc, ValueRange tensors) {
                          if (isOneWindow)
                            start = startOf(in, inLoc, scatterIndex);
                          return updateElement(in, inLoc, tensors, start,
                                               scatterIndex, windowIndex);
                        });
                  });
}

struct ScatterLowering : OpConversionPattern<stablehlo::ScatterOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ScatterOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> results =
        ScatterEmitter(op, adaptor).emit(rewriter);
    if (failed(results))
      return failure();
    rewriter.replaceOp(op, *results);
    return success();
  }
};

struct DynamicUpdateSliceLowering
    : OpConversionPattern<stablehlo::DynamicUpdateSliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::DynamicUpdateSliceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value operand = adaptor.getOperand(), update = adaptor.getUpdate();
    RankedTensorType type = tensorType(operand), part = tensorType(update);
    unsigned rank = type.getRank();
    if (type == part || part.getNumElements() == 0) {
      rewriter.replaceOp(op, type == part ? update : operand);
      return success();
    }
    auto start = [&](OpBuilder &b, Location at, unsigned i) -> Value {
      int64_t room = type.getDimSize(i) - part.getDimSize(i);
      if (room == 0)
        return {};
      Value element = tensor::ExtractOp::create(
          b, at, adaptor.getStartIndices()[i], ValueRange());
      Type indexType = getElementTypeOrSelf(op.getStartIndices()[i].getType());
      return clampIndex(b, at, toIndex(b, at, element, indexType), room);
    };
    Value result;
    if (part.getNumElements() == 1) {
      result = elementwise(
          rewriter, loc, type, operand, rewriter.getMultiDimIdentityMap(rank),
          [&](OpBuilder &b, Location at, ValueRange args) -> Value {
            Value zero = constantIndex(b, at, 0);
            Value hit;
            for (unsigned i = 0; i < rank; ++i) {
              Value first = start(b, at, i);
              if (!first)
                continue;
              Value here = arith::CmpIOp::create(
                  b, at, arith::CmpIPredicate::eq,
                  linalg::IndexOp::create(b, at, i), first);
              hit = hit ? arith::AndIOp::create(b, at, hit, here) : here;
            }
            Value value = tensor::ExtractOp::create(
                b, at, update, SmallVector<Value>(rank, zero));
            return arith::SelectOp::create(b, at, hit, value, args[0]);
          });
    } else {
      SmallVector<Value> index;
      result = loopNest(
          rewriter, loc, part.getShape(), operand, index,
          [&](OpBuilder &b, Location at, ValueRange carried) {
            SmallVector<Value> where;
            for (unsigned i = 0; i < rank; ++i)
              where.push_back(addIndex(b, at, start(b, at, i), index[i]));
            Value element = tensor::ExtractOp::create(b, at, update, index);
            return SmallVector<Value>{
                tensor::InsertOp::create(b, at, element, carried[0], where)};
          })[0];
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void fp8::populateIndexedAccessPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<DynamicSliceLowering, DynamicUpdateSliceLowering, GatherLowering,
               ScatterLowering>(converter, patterns.getContext());
}
