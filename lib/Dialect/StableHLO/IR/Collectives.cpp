//===- Collectives.cpp - Verifiers of the collectives ---------------------===//
//
// Constraint numbers in comments are those of the StableHLO specification. The
// number of devices is not known here, so device numbers have no upper bound.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

using namespace mlir;
using namespace mlir::stablehlo;

/// Returns the numbers of groups or pairs. Those of a splat, of which there may
/// be more than fit into memory, are cut: the first show what is wrong.
static SmallVector<int64_t> numbersOf(DenseIntElementsAttr attr) {
  auto numbers = attr.getValues<int64_t>();
  size_t count =
      attr.isSplat() ? std::min<size_t>(numbers.size(), 4) : numbers.size();
  return {numbers.begin(), numbers.begin() + count};
}

/// Checks that groups are a matrix of unique device numbers with one row per
/// group; -1 pads groups of different sizes.
static LogicalResult expectGroups(Operation *op, DenseIntElementsAttr groups) {
  if (groups.getType().getRank() != 2)
    return op->emitOpError("expected replica_groups of rank 2 but got ")
           << groups.getType();
  SmallVector<int64_t> ids;
  for (int64_t id : numbersOf(groups))
    if (id != -1)
      ids.push_back(id);
  for (int64_t id : ids)
    if (id < 0)
      return op->emitOpError("expected device numbers from 0 up in "
                             "replica_groups but got ")
             << id;
  return expectUnique(op, ids, "device numbers in replica_groups");
}

static LogicalResult expectChannel(Operation *op,
                                   std::optional<ChannelHandleAttr> channel,
                                   bool globalIds) {
  if (!globalIds || (channel && channel->getHandle() > 0))
    return success();
  return op->emitOpError("expected a channel_handle with use_global_device_ids "
                         "but got none");
}

/// Returns the number of devices in a group, or 0 if the attribute does not
/// say.
static int64_t groupSize(DenseIntElementsAttr groups) {
  return groups.getType().getNumElements() == 0
             ? 0
             : groups.getType().getDimSize(1);
}

/// Checks that there are as many results as operands, and that each result has
/// the shape that `infer` gives.
static LogicalResult
expectResults(Operation *op,
              function_ref<SmallVector<int64_t>(RankedTensorType)> infer) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("expected one operand or more but got none");
  if (failed(
          expectSize(op, op->getNumOperands(), op->getNumResults(), "results")))
    return failure();
  for (auto [operand, result] :
       llvm::zip(op->getOperandTypes(), op->getResultTypes())) {
    auto type = cast<RankedTensorType>(operand);
    if (failed(expectType(op, type.clone(infer(type)), result, "a result")))
      return failure();
  }
  return success();
}

static int64_t smallestRank(Operation *op) {
  int64_t rank = std::numeric_limits<int64_t>::max();
  for (Type type : op->getOperandTypes())
    rank = std::min(rank, cast<RankedTensorType>(type).getRank());
  return rank;
}

LogicalResult AllGatherOp::verify() {
  int64_t dim = getAllGatherDim();
  // all_gather_c1
  if (failed(
          expectInRange(*this, dim, smallestRank(*this), "all_gather_dim")) ||
      // all_gather_c2, all_gather_c4
      failed(expectGroups(*this, getReplicaGroups())) ||
      // all_gather_c5
      failed(expectChannel(*this, getChannelHandle(), getUseGlobalDeviceIds())))
    return failure();
  // all_gather_c6
  int64_t devices = groupSize(getReplicaGroups());
  return expectResults(*this, [&](RankedTensorType type) {
    auto shape = llvm::to_vector(type.getShape());
    if (devices)
      shape[dim] *= devices;
    else
      shape[dim] =
          cast<RankedTensorType>(getResult(0).getType()).getDimSize(dim);
    return shape;
  });
}

LogicalResult AllReduceOp::verify() {
  // all_reduce_c1, all_reduce_c3
  if (failed(expectGroups(*this, getReplicaGroups())) ||
      // all_reduce_c4
      failed(expectChannel(*this, getChannelHandle(), getUseGlobalDeviceIds())))
    return failure();
  // all_reduce_c6, all_reduce_c7
  return expectResults(*this, [](RankedTensorType type) {
    return llvm::to_vector(type.getShape());
  });
}

LogicalResult AllReduceOp::verifyRegions() {
  // all_reduce_c5
  return expectReducer(*this, getComputation(), getOperands().front(),
                       "the computation");
}

LogicalResult AllToAllOp::verify() {
  int64_t split = getSplitDimension(), concat = getConcatDimension();
  int64_t count = getSplitCount(), rank = smallestRank(*this);
  // all_to_all_c1, all_to_all_c3
  if (failed(expectInRange(*this, split, rank, "split_dimension")) ||
      failed(expectInRange(*this, concat, rank, "concat_dimension")) ||
      // all_to_all_c5, all_to_all_c7
      failed(expectGroups(*this, getReplicaGroups())))
    return failure();
  // all_to_all_c4
  if (count <= 0)
    return emitOpError("expected a positive split_count but got ") << count;
  // all_to_all_c8
  if (int64_t devices = groupSize(getReplicaGroups());
      devices && devices != count)
    return emitOpError("expected groups of ")
           << count << " devices but got " << devices;
  // all_to_all_c2
  for (Value operand : getOperands())
    if (cast<RankedTensorType>(operand.getType()).getDimSize(split) % count)
      return emitOpError("expected a size of dimension ")
             << split << " that " << count << " divides but got "
             << operand.getType();
  // all_to_all_c9
  return expectResults(*this, [&](RankedTensorType type) {
    auto shape = llvm::to_vector(type.getShape());
    shape[split] /= count;
    shape[concat] *= count;
    return shape;
  });
}

LogicalResult CollectiveBroadcastOp::verify() {
  // collective_broadcast_c1, collective_broadcast_c2
  return expectGroups(*this, getReplicaGroups());
}

LogicalResult CollectivePermuteOp::verify() {
  DenseIntElementsAttr pairs = getSourceTargetPairs();
  ArrayRef<int64_t> shape = pairs.getType().getShape();
  // collective_permute_c1
  if (shape.size() != 2 || shape[1] != 2)
    return emitOpError("expected source_target_pairs of type tensor<Nx2xi64> "
                       "but got ")
           << pairs.getType();
  SmallVector<int64_t> ends[2];
  for (auto [i, id] : llvm::enumerate(numbersOf(pairs)))
    ends[i % 2].push_back(id);
  for (ArrayRef<int64_t> ids : {ends[0], ends[1]})
    // collective_permute_c4
    if (failed(expectInRange(*this, ids, std::numeric_limits<int64_t>::max(),
                             "device numbers")))
      return failure();
  // collective_permute_c2, collective_permute_c3
  return failure(failed(expectUnique(*this, ends[0], "sources")) ||
                 failed(expectUnique(*this, ends[1], "targets")));
}

LogicalResult ReduceScatterOp::verify() {
  RankedTensorType type = getOperand().getType();
  int64_t dim = getScatterDimension();
  // reduce_scatter_c2
  if (failed(expectInRange(*this, dim, type.getRank(), "scatter_dimension")) ||
      // reduce_scatter_c3, reduce_scatter_c5
      failed(expectGroups(*this, getReplicaGroups())) ||
      // reduce_scatter_c6
      failed(expectChannel(*this, getChannelHandle(), getUseGlobalDeviceIds())))
    return failure();
  int64_t devices = groupSize(getReplicaGroups());
  // reduce_scatter_c1
  if (devices && type.getDimSize(dim) % devices)
    return emitOpError("expected a size of dimension ")
           << dim << " that " << devices << " divides but got " << type;
  // reduce_scatter_c8, reduce_scatter_c9
  return expectResults(*this, [&](RankedTensorType operand) {
    auto shape = llvm::to_vector(operand.getShape());
    shape[dim] =
        devices ? shape[dim] / devices : getResult().getType().getDimSize(dim);
    return shape;
  });
}

LogicalResult ReduceScatterOp::verifyRegions() {
  // reduce_scatter_c7
  return expectReducer(*this, getComputation(), getOperand(),
                       "the computation");
}
