//===- BatchReading.cpp - What counts the rows of a batch -----------------===//

#include "BatchReading.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;

/// Whether a value, or one computed from it element by element, is sliced at
/// single indices of its leading dimension, as a loop over micro-batches does.
static bool isReadInParts(Value batch) {
  int64_t count = shapeOf(batch)[0];
  llvm::SetVector<Value> worklist;
  worklist.insert(batch);
  for (size_t i = 0; i < worklist.size(); ++i)
    for (Operation *user : worklist[i].getUsers()) {
      bool isSlice = isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(user);
      if (!isSlice && !stablehlo::worksByElement(user))
        continue;
      ArrayRef<int64_t> shape = shapeOf(user->getResult(0));
      if (isSlice && shape[0] == 1)
        return true;
      if (!shape.empty() && shape[0] == count)
        worklist.insert(user->getResult(0));
    }
  return false;
}

bool fp8::mayHaveMicroBatches(func::FuncOp func, const SignatureArg &arg) {
  auto type = cast<RankedTensorType>(arg.type);
  return arg.role == ArgRole::Batch && type.getRank() > 1 &&
         type.getDimSize(1) > 1 && isReadInParts(func.getArgument(arg.index));
}

namespace {

/// Collects how the operations of a step cut dimensions that have the extent of
/// a batch.
class Cuts {
public:
  explicit Cuts(int64_t extent) : extent(extent) {}
  void visit(Operation *op);
  SmallVector<BatchReading> readings() const;

private:
  void visitReshape(stablehlo::ReshapeOp op, int64_t dim);
  void visitSlice(Operation *op, int64_t dim);
  void addOuter(int64_t outer) {
    if (outer > 1 && outer < extent && extent % outer == 0)
      outers.insert(outer);
  }
  void addInner(int64_t inner) {
    if (inner > 1 && inner < extent && extent % inner == 0)
      inners.insert(inner);
  }

  int64_t extent;
  /// The numbers of micro-batches, and of the elements of a group.
  llvm::SetVector<int64_t> outers, inners;
  /// Whether some loop takes micro-batches one by one.
  bool hasLoops = false;
};

} // namespace

/// (What a shape `[k, B/k]` has may be micro-batches or groups, unless it is
/// taken one by one: a micro-batch has rows of all ranks.)
void Cuts::visitReshape(stablehlo::ReshapeOp op, int64_t dim) {
  int64_t before = llvm::product_of(shapeOf(op.getOperand()).take_front(dim));
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  while (before > 1 && !shape.empty() && before % shape.front() == 0) {
    before /= shape.front();
    shape = shape.drop_front();
  }
  if (before != 1 || shape.size() < 2 || shape[0] * shape[1] != extent)
    return;
  addOuter(shape[0]);
  if (isReadInParts(op.getResult()))
    hasLoops = true;
  else
    addInner(shape[1]);
}

void Cuts::visitSlice(Operation *op, int64_t dim) {
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op);
      slice && slice.getStrides()[dim] != 1)
    return addInner(slice.getStrides()[dim]);
  int64_t part = shapeOf(op->getResult(0))[dim];
  if (part > 0 && extent % part == 0)
    addOuter(extent / part);
}

void Cuts::visit(Operation *op) {
  auto reshape = dyn_cast<stablehlo::ReshapeOp>(op);
  if (!reshape && !isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(op))
    return;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(0))))
    if (size == extent)
      reshape ? visitReshape(reshape, dim) : visitSlice(op, dim);
}

SmallVector<BatchReading> Cuts::readings() const {
  SmallVector<BatchReading> micro, groups;
  auto add = [&](SmallVectorImpl<BatchReading> &to, int64_t outer,
                 int64_t inner) {
    BatchReading reading;
    reading.extent = extent;
    reading.outer = outer;
    reading.inner = inner;
    to.push_back(reading);
  };
  // Micro-batches of several sizes consist of parts that all of them have.
  int64_t all = 1;
  for (int64_t outer : outers) {
    add(micro, outer, 1);
    all = std::lcm(all, outer);
  }
  if (all > 1 && all < extent && !outers.contains(all))
    add(micro, all, 1);
  for (int64_t inner : inners)
    add(groups, 1, inner);
  SmallVector<BatchReading> &first = hasLoops ? micro : groups;
  SmallVector<BatchReading> &last = hasLoops ? groups : micro;
  first.append(last);
  return first;
}

/// Adds to each reading those with which one extent counts no rows: not that of
/// the most data, unless all of it is stacks, whose second dimension counts
/// them.
static void addWholes(SmallVectorImpl<BatchReading> &readings,
                      const llvm::MapVector<int64_t, int64_t> &elements,
                      const llvm::SmallDenseSet<int64_t> &stacks) {
  const auto *most = llvm::max_element(
      elements, [](auto &a, auto &b) { return a.second < b.second; });
  for (size_t i = 0, e = readings.size(); i < e; ++i)
    for (auto [extent, count] : elements)
      if (!readings[i].takesSingleRows && readings[i].extent != extent &&
          (extent != most->first || stacks.contains(extent))) {
        BatchReading reading = readings[i];
        reading.whole = extent;
        readings.push_back(reading);
      }
}

SmallVector<BatchReading> fp8::findBatchReadings(func::FuncOp func,
                                                 const Signature &signature,
                                                 BatchOf batch) {
  SmallVector<BatchReading> readings{BatchReading()};
  llvm::MapVector<int64_t, int64_t> elements;
  llvm::SmallDenseSet<int64_t> stacks, others;
  llvm::SetVector<int64_t> extents;
  for (const SignatureArg &arg : signature.args) {
    auto type = cast<RankedTensorType>(arg.type);
    if (arg.role != ArgRole::Batch || type.getRank() == 0)
      continue;
    elements[type.getDimSize(0)] += type.getNumElements();
    extents.insert(type.getDimSize(0));
    bool isStack = mayHaveMicroBatches(func, arg);
    (isStack ? stacks : others).insert(type.getDimSize(0));
    if (isStack)
      extents.insert(type.getDimSize(1));
  }
  if (!stacks.empty()) {
    BatchReading single;
    single.takesSingleRows = true;
    readings.push_back(single);
  }
  for (int64_t extent : extents) {
    Cuts cuts(extent);
    func.walk([&](Operation *op) { cuts.visit(op); });
    readings.append(cuts.readings());
  }
  // (Ranks that have batches of their own have no argument in common.)
  for (int64_t extent : others)
    stacks.erase(extent);
  if (batch == BatchOf::AllRanks && !elements.empty())
    addWholes(readings, elements, stacks);
  return readings;
}
