//===- Statistics.cpp - Rows of statistics among the results --------------===//

#include "Statistics.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

SmallVector<Value> StatisticBuilder::reduce(ArrayRef<Value> values,
                                            ArrayRef<bool> isMax, int64_t first,
                                            int64_t end) {
  if (first == end)
    return SmallVector<Value>(values);
  SmallVector<int64_t> shape(tensorOf(values.front()).getShape());
  shape.erase(shape.begin() + first, shape.begin() + end);
  auto scalar = RankedTensorType::get({}, b.getF64Type());
  auto type = scalar.clone(shape);
  SmallVector<Value> inits;
  for (bool max : isMax)
    inits.push_back(
        constant(scalar, max ? -std::numeric_limits<double>::infinity() : 0.0));
  auto dims = llvm::to_vector(llvm::seq<int64_t>(first, end));
  SmallVector<Type> types(values.size(), type);
  auto op = stablehlo::ReduceOp::create(b, loc, types, values, inits,
                                        b.getDenseI64ArrayAttr(dims));
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> arguments(2 * values.size(), scalar);
  Block *body = b.createBlock(&op.getBody(), {}, arguments,
                              SmallVector<Location>(arguments.size(), loc));
  SmallVector<Value> results;
  for (auto [i, max] : llvm::enumerate(isMax)) {
    Value before = body->getArgument(i);
    Value element = body->getArgument(values.size() + i);
    results.push_back(
        max ? stablehlo::MaxOp::create(b, loc, before, element).getResult()
            : stablehlo::AddOp::create(b, loc, before, element).getResult());
  }
  stablehlo::ReturnOp::create(b, loc, results);
  return SmallVector<Value>(op->getResults());
}

SmallVector<Value> StatisticBuilder::reduceAll(ArrayRef<Value> values,
                                               ArrayRef<bool> isMax,
                                               int64_t keep) {
  constexpr int64_t kMinInner = 64;
  ArrayRef<int64_t> shape = tensorOf(values.front()).getShape();
  int64_t rows = keep, inner = llvm::product_of(shape.drop_front(keep));
  while (rows + 1 < static_cast<int64_t>(shape.size()) &&
         inner / shape[rows] >= kMinInner)
    inner /= shape[rows++];
  int64_t rank = shape.size();
  return reduce(reduce(values, isMax, rows, rank), isMax, keep, rows);
}

Value StatisticBuilder::row(ArrayRef<Value> values) {
  SmallVector<int64_t> shape(tensorOf(values.front()).getShape());
  shape.push_back(1);
  SmallVector<Value> parts;
  for (Value value : values)
    parts.push_back(reshape(value, shape));
  shape.back() = values.size();
  return stablehlo::ConcatenateOp::create(
      b, loc, RankedTensorType::get(shape, b.getF64Type()), parts,
      static_cast<uint64_t>(shape.size() - 1));
}

void fp8::addStatistic(func::FuncOp function, StringRef tensor, ResultKind kind,
                       Value row) {
  Builder builder(function.getContext());
  std::string path = stringifyEnum(kind).str();
  llvm::replace(path, '_', '.');
  path += "." + tensor.str();
  (void)function.insertResult(
      function.getNumResults(), row.getType(),
      builder.getDictionaryAttr(
          {builder.getNamedAttr(FP8Dialect::kPathAttrName,
                                builder.getStringAttr(path)),
           builder.getNamedAttr(FP8Dialect::kKindAttrName,
                                builder.getStringAttr(stringifyEnum(kind)))}));
  Operation *ret = function.getBody().front().getTerminator();
  ret->insertOperands(ret->getNumOperands(), row);
}

void Statistics::record(StringRef name, ResultKind kind, Value row,
                        Type quantized, ArrayRef<LayerSlot> slots,
                        ArrayRef<bool> isMax) {
  SmallVector<int64_t> shape;
  for (const LayerSlot &slot : slots)
    shape.push_back(slot.count);
  llvm::append_range(shape, tensorOf(row).getShape());
  RankedTensorType type = tensorOf(row).clone(shape);
  std::string unique = name.str();
  for (unsigned copy = 2;; ++copy) {
    auto known = llvm::find_if(entries, [&](const Entry &entry) {
      return entry.name == unique && entry.kind == kind;
    });
    if (known == entries.end())
      break;
    if (known->type == type && known->quantized == quantized) {
      accumulators.record(known->accumulator, row, slots);
      return;
    }
    unique = name.str() + "." + std::to_string(copy);
  }

  auto makeRow = [&](RankedTensorType type, auto &&value) {
    SmallVector<double> row;
    for (bool max : isMax)
      row.push_back(value(max));
    SmallVector<double> all;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      all.push_back(row[i % row.size()]);
    return DenseElementsAttr::get(type, ArrayRef(all));
  };
  // Amaxes and scales are not negative, negated scales not positive.
  DenseElementsAttr initial = makeRow(type, [&](bool max) {
    return max ? -std::numeric_limits<double>::infinity() : 0.0;
  });
  SmallVector<bool> mask(isMax);
  unsigned number = accumulators.add(
      initial,
      [mask](OpBuilder &b, Location loc, Value before, Value value) -> Value {
        SmallVector<bool> all;
        RankedTensorType type = tensorOf(value);
        for (int64_t i = 0; i < type.getNumElements(); ++i)
          all.push_back(mask[i % mask.size()]);
        Value isMax = stablehlo::ConstantOp::create(
            b, loc, DenseElementsAttr::get(type.clone(b.getI1Type()), all));
        return stablehlo::SelectOp::create(
            b, loc, isMax, stablehlo::MaxOp::create(b, loc, before, value),
            stablehlo::AddOp::create(b, loc, before, value));
      });
  entries.push_back({unique, type, quantized, kind, number});
  accumulators.record(number, row, slots);
}

void Statistics::addResults() {
  if (entries.empty())
    return;
  SmallVector<Value> values = accumulators.materialize();
  for (const Entry &entry : entries)
    addStatistic(function, entry.name, entry.kind, values[entry.accumulator]);
}
