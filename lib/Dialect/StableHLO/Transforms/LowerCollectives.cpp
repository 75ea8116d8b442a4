//===- LowerCollectives.cpp - Collectives as exchanges and arithmetic -----===//
//
// `fp8.exchange` moves parts between the ranks of a group. Everything else that
// a collective does is ordinary StableHLO, which all later stages support.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"
#include "fp8/Support/Shapes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_LOWERCOLLECTIVES
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;
using namespace mlir::stablehlo;
using fp8::tensorOf;

namespace {

/// If a rank has fewer elements, a second exchange is not worth it.
constexpr int64_t kSmallShard = 1024;

class CollectiveLowering {
public:
  CollectiveLowering(Operation *op, int64_t devices)
      : op(op), devices(devices), builder(op), loc(op->getLoc()) {}

  /// Returns the values that replace the results.
  FailureOr<SmallVector<Value>> run();

private:
  FailureOr<SmallVector<Value>> allReduce(AllReduceOp reduce);
  FailureOr<SmallVector<Value>> reduceScatter(ReduceScatterOp scatter);
  SmallVector<Value> allGather(AllGatherOp gather);
  SmallVector<Value> allToAll(AllToAllOp exchange);
  Value broadcast(CollectiveBroadcastOp broadcast);
  Value deviceNumber();

  LogicalResult checkGroups(DenseIntElementsAttr groups);
  FailureOr<Value> neutralElement(Region &computation, Type element);
  Value reduceParts(Value parts, Value init, Region &computation);
  Value splitOff(Value value, int64_t dim, int64_t count);
  Value mergeInto(Value parts, int64_t dim);
  Value exchange(fp8::ExchangeKind kind, Value value,
                 DenseIntElementsAttr ranks);
  Value reshape(Value value, ArrayRef<int64_t> shape);
  static int64_t sizeOf(DenseIntElementsAttr groups) {
    return groups.getType().getDimSize(1);
  }

  Operation *op;
  int64_t devices;
  OpBuilder builder;
  Location loc;
};

} // namespace

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

Value CollectiveLowering::reshape(Value value, ArrayRef<int64_t> shape) {
  if (tensorOf(value).getShape() == shape)
    return value;
  return ReshapeOp::create(builder, loc, tensorOf(value).clone(shape), value);
}

/// Splits a value into `count` parts along `dim`; the parts lie along a new
/// dimension 0.
Value CollectiveLowering::splitOff(Value value, int64_t dim, int64_t count) {
  SmallVector<int64_t> shape(tensorOf(value).getShape());
  shape[dim] /= count;
  shape.insert(shape.begin() + dim, count);
  Value split = reshape(value, shape);
  if (dim == 0)
    return split;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  order.erase(order.begin() + dim);
  order.insert(order.begin(), dim);
  return TransposeOp::create(builder, loc, split, order);
}

/// Concatenates parts, which lie along dimension 0, along `dim` of a part.
Value CollectiveLowering::mergeInto(Value parts, int64_t dim) {
  SmallVector<int64_t> shape(tensorOf(parts).getShape());
  if (dim > 0) {
    auto order = llvm::to_vector(llvm::seq<int64_t>(1, shape.size()));
    order.insert(order.begin() + dim, 0);
    parts = TransposeOp::create(builder, loc, parts, order);
  }
  int64_t count = shape.front();
  shape.erase(shape.begin());
  shape[dim] *= count;
  return reshape(parts, shape);
}

/// Returns whether a collective adds what it moves.
static bool addsParts(Operation *op) {
  return isa<AllReduceOp, ReduceScatterOp>(op) &&
         isa<AddOp>(op->getRegion(0).front().front());
}

Value CollectiveLowering::exchange(fp8::ExchangeKind kind, Value value,
                                   DenseIntElementsAttr ranks) {
  RankedTensorType type = tensorOf(value);
  if (kind == fp8::ExchangeKind::Gather) {
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), sizeOf(ranks));
    type = type.clone(shape);
  }
  auto label = builder.getStringAttr(op->getName().stripDialect());
  auto moved =
      fp8::ExchangeOp::create(builder, loc, type, kind, value, ranks, label);
  moved.setSummed(addsParts(op));
  return moved;
}

LogicalResult CollectiveLowering::checkGroups(DenseIntElementsAttr groups) {
  if (groups.getNumElements() == 0)
    return op->emitOpError("expected replica_groups that name all devices but "
                           "got none");
  llvm::SmallBitVector named(devices);
  for (int64_t device : groups.getValues<int64_t>()) {
    if (device < 0)
      return op->emitOpError("expected replica_groups of one size but got ")
             << groups;
    if (device >= devices)
      return op->emitOpError("expected device numbers below ")
             << devices
             << ", as mhlo.num_partitions and mhlo.num_replicas of the module "
                "say, but got "
             << device;
    named.set(device);
  }
  if (!named.all())
    return op->emitOpError("expected each of ")
           << devices << " devices in a group but got " << groups;
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Returns the neutral element of `computation`.
FailureOr<Value> CollectiveLowering::neutralElement(Region &computation,
                                                    Type element) {
  Block &body = computation.front();
  Operation *inner = &body.front();
  auto type = RankedTensorType::get({}, element);
  bool isBinary =
      inner->getNumOperands() == 2 && inner->getNumResults() == 1 &&
      inner->getNextNode() == body.getTerminator() &&
      body.getTerminator()->getOperand(0) == inner->getResult(0) &&
      llvm::all_of(inner->getOperands(),
                   [&](Value operand) {
                     return llvm::is_contained(body.getArguments(), operand);
                   }) &&
      inner->getOperand(0) != inner->getOperand(1);
  auto isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  auto integer = [&](const APInt &value) {
    return makeSplat(builder, loc, type,
                     builder.getIntegerAttr(element, value));
  };
  auto real = [&](const APFloat &value) {
    return makeSplat(builder, loc, type, builder.getFloatAttr(element, value));
  };
  auto extreme = [&](bool largest) {
    if (auto floats = dyn_cast<FloatType>(element))
      return real(APFloat::getInf(floats.getFloatSemantics(), !largest));
    unsigned width = element.getIntOrFloatBitWidth();
    if (isUnsigned)
      return integer(largest ? APInt::getMaxValue(width)
                             : APInt::getMinValue(width));
    return integer(largest ? APInt::getSignedMaxValue(width)
                           : APInt::getSignedMinValue(width));
  };
  auto ones = [&] {
    return integer(APInt::getAllOnes(element.getIntOrFloatBitWidth()));
  };
  if (isBinary && isa<AddOp>(inner) && isa<FloatType>(element))
    // -0 + x is x for every x, including 0.
    return real(APFloat::getZero(cast<FloatType>(element).getFloatSemantics(),
                                 /*Negative=*/true));
  if (isBinary && isa<AddOp, OrOp>(inner))
    return makeSplat(builder, loc, type, builder.getZeroAttr(element));
  if (isBinary && isa<MaxOp>(inner))
    return extreme(/*largest=*/false);
  if (isBinary && isa<MinOp>(inner))
    return extreme(/*largest=*/true);
  if (isBinary && isa<AndOp>(inner))
    return ones();
  return op->emitOpError("expected a computation of one add, maximum, minimum, "
                         "and, or of its two arguments but got ")
         << inner->getName();
}

/// Reduces over dimension 0, in order.
Value CollectiveLowering::reduceParts(Value parts, Value init,
                                      Region &computation) {
  RankedTensorType type = tensorOf(parts);
  auto reduce = ReduceOp::create(
      builder, loc, TypeRange{type.clone(type.getShape().drop_front())},
      ValueRange{parts}, ValueRange{init}, ArrayRef<int64_t>{0});
  IRMapping mapping;
  computation.cloneInto(&reduce.getBody(), mapping);
  return reduce.getResult(0);
}

FailureOr<SmallVector<Value>>
CollectiveLowering::allReduce(AllReduceOp reduce) {
  DenseIntElementsAttr groups = reduce.getReplicaGroups();
  Region &computation = reduce.getComputation();
  int64_t size = sizeOf(groups);
  SmallVector<Value> results;
  for (Value operand : reduce.getOperands()) {
    RankedTensorType type = tensorOf(operand);
    FailureOr<Value> init = neutralElement(computation, type.getElementType());
    if (failed(init))
      return failure();
    int64_t elements = type.getNumElements();
    if (elements < kSmallShard * size) {
      Value all = exchange(fp8::ExchangeKind::Gather, operand, groups);
      results.push_back(reduceParts(all, *init, computation));
      continue;
    }
    // Each rank reduces a part.
    Value flat = reshape(operand, {elements});
    int64_t part = (elements + size - 1) / size, rest = part * size - elements;
    if (rest > 0)
      flat = PadOp::create(builder, loc, type.clone({part * size}), flat, *init,
                           ArrayRef<int64_t>{0}, ArrayRef<int64_t>{rest},
                           ArrayRef<int64_t>{0});
    Value parts = exchange(fp8::ExchangeKind::AllToAll,
                           reshape(flat, {size, part}), groups);
    Value mine = reduceParts(parts, *init, computation);
    Value all = exchange(fp8::ExchangeKind::Gather, mine, groups);
    all = reshape(all, {part * size});
    if (rest > 0)
      all = SliceOp::create(builder, loc, type.clone({elements}), all,
                            ArrayRef<int64_t>{0}, ArrayRef<int64_t>{elements},
                            ArrayRef<int64_t>{1});
    results.push_back(reshape(all, type.getShape()));
  }
  return results;
}

FailureOr<SmallVector<Value>>
CollectiveLowering::reduceScatter(ReduceScatterOp scatter) {
  DenseIntElementsAttr groups = scatter.getReplicaGroups();
  RankedTensorType type = scatter.getOperand().getType();
  FailureOr<Value> init =
      neutralElement(scatter.getComputation(), type.getElementType());
  if (failed(init))
    return failure();
  Value parts = splitOff(scatter.getOperand(), scatter.getScatterDimension(),
                         sizeOf(groups));
  parts = exchange(fp8::ExchangeKind::AllToAll, parts, groups);
  return SmallVector<Value>{
      reduceParts(parts, *init, scatter.getComputation())};
}

//===----------------------------------------------------------------------===//
// Other collectives
//===----------------------------------------------------------------------===//

SmallVector<Value> CollectiveLowering::allGather(AllGatherOp gather) {
  SmallVector<Value> results;
  for (Value operand : gather.getOperands())
    results.push_back(mergeInto(
        exchange(fp8::ExchangeKind::Gather, operand, gather.getReplicaGroups()),
        gather.getAllGatherDim()));
  return results;
}

SmallVector<Value> CollectiveLowering::allToAll(AllToAllOp toAll) {
  SmallVector<Value> results;
  for (Value operand : toAll.getOperands()) {
    Value parts =
        splitOff(operand, toAll.getSplitDimension(), toAll.getSplitCount());
    parts =
        exchange(fp8::ExchangeKind::AllToAll, parts, toAll.getReplicaGroups());
    results.push_back(mergeInto(parts, toAll.getConcatDimension()));
  }
  return results;
}

/// Sends the operand of the first device of each group to the whole group.
Value CollectiveLowering::broadcast(CollectiveBroadcastOp broadcast) {
  DenseIntElementsAttr groups = broadcast.getReplicaGroups();
  auto devices = llvm::to_vector(groups.getValues<int64_t>());
  SmallVector<int64_t> pairs;
  for (auto [index, device] : llvm::enumerate(devices))
    llvm::append_values(pairs, devices[index - index % sizeOf(groups)], device);
  auto type = RankedTensorType::get({static_cast<int64_t>(devices.size()), 2},
                                    builder.getI64Type());
  return exchange(fp8::ExchangeKind::Permute, broadcast.getOperand(),
                  DenseIntElementsAttr::get(type, pairs));
}

/// Returns the number of the device: all devices send device i the number i.
Value CollectiveLowering::deviceNumber() {
  auto scalar = cast<RankedTensorType>(op->getResult(0).getType());
  Value numbers =
      IotaOp::create(builder, loc, scalar.clone({devices}), /*dimension=*/0);
  auto type = RankedTensorType::get({1, devices}, builder.getI64Type());
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, devices));
  Value mine = exchange(fp8::ExchangeKind::AllToAll, numbers,
                        DenseIntElementsAttr::get(type, all));
  mine = SliceOp::create(builder, loc, scalar.clone({1}), mine,
                         ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1},
                         ArrayRef<int64_t>{1});
  return reshape(mine, {});
}

FailureOr<SmallVector<Value>> CollectiveLowering::run() {
  if (auto permute = dyn_cast<CollectivePermuteOp>(op)) {
    for (int64_t device : permute.getSourceTargetPairs().getValues<int64_t>())
      if (device >= devices)
        return permute.emitOpError("expected device numbers below ")
               << devices << " but got " << device;
    return SmallVector<Value>{exchange(fp8::ExchangeKind::Permute,
                                       permute.getOperand(),
                                       permute.getSourceTargetPairs())};
  }
  if (isa<PartitionIdOp, ReplicaIdOp>(op))
    return SmallVector<Value>{deviceNumber()};
  auto groups = op->getAttrOfType<DenseIntElementsAttr>("replica_groups");
  if (failed(checkGroups(groups)))
    return failure();
  using Results = FailureOr<SmallVector<Value>>;
  return llvm::TypeSwitch<Operation *, Results>(op)
      .Case([&](AllReduceOp reduce) { return allReduce(reduce); })
      .Case([&](ReduceScatterOp scatter) { return reduceScatter(scatter); })
      .Case([&](AllGatherOp gather) { return Results(allGather(gather)); })
      .Case([&](AllToAllOp toAll) { return Results(allToAll(toAll)); })
      .Case([&](CollectiveBroadcastOp send) {
        return Results(SmallVector<Value>{broadcast(send)});
      });
}

namespace {
struct LowerCollectives
    : public stablehlo::impl::LowerCollectivesBase<LowerCollectives> {
  void runOnOperation() override {
    int64_t partitions = countOf("mhlo.num_partitions");
    int64_t replicas = countOf("mhlo.num_replicas");
    // On one device stablehlo-drop-sharding replaces them.
    if (partitions * replicas <= 1)
      return;
    SmallVector<Operation *> collectives;
    getOperation().walk([&](Operation *op) {
      if (isa<AllGatherOp, AllReduceOp, AllToAllOp, CollectiveBroadcastOp,
              CollectivePermuteOp, PartitionIdOp, ReduceScatterOp, ReplicaIdOp>(
              op))
        collectives.push_back(op);
    });
    for (Operation *op : collectives) {
      if (partitions > 1 && replicas > 1) {
        op->emitOpError("expected several partitions or several replicas but "
                        "got ")
            << partitions << " partitions of " << replicas << " replicas";
        return signalPassFailure();
      }
      // The only partition, or replica, has number 0.
      if (isa<PartitionIdOp>(op) ? partitions == 1
                                 : isa<ReplicaIdOp>(op) && replicas == 1) {
        OpBuilder builder(op);
        auto type = cast<RankedTensorType>(op->getResult(0).getType());
        auto zero = builder.getIntegerAttr(type.getElementType(), 0);
        op->replaceAllUsesWith(ConstantOp::create(
            builder, op->getLoc(), DenseElementsAttr::get(type, zero)));
        op->erase();
        continue;
      }
      FailureOr<SmallVector<Value>> results =
          CollectiveLowering(op, partitions * replicas).run();
      if (failed(results))
        return signalPassFailure();
      op->replaceAllUsesWith(*results);
      op->erase();
    }
  }

  int64_t countOf(StringRef name) {
    auto count = getOperation()->getAttrOfType<IntegerAttr>(name);
    return count ? count.getInt() : 1;
  }
};
} // namespace
