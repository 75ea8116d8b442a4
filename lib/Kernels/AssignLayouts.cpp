//===- AssignLayouts.cpp - FP8 payloads that are contiguous along k -------===//
//
// Tensor cores read FP8 operands that are contiguous along k, but the dots that
// read one payload contract different dimensions of it: a payload can only be
// contiguous along k for some of them. The others get a transposed copy, which
// the kernel that quantizes the payload writes, too.
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// An order of dimensions, from the outermost to the one that is contiguous:
/// dimension i of the transposed tensor is dimension `order[i]` of the tensor.
using Order = SmallVector<int64_t>;

/// The bytes of one access to an operand that is contiguous along k. The
/// product of its extents along k is a multiple of it, or no dot could use
/// such accesses.
constexpr int64_t kAccessBytes = 16;

/// Returns true for the formats that tensor cores multiply as they are.
bool isMultiplied(Value value) {
  Type element = cast<ShapedType>(value.getType()).getElementType();
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

/// Returns the order in which input `input` of a dot is contiguous along k. All
/// dimensions of k are then adjacent and in the order of their loops, so that
/// they are one dimension for operands in their orders. Returns nullopt if the
/// input is contiguous along k as it is, or if it need not be.
std::optional<Order> wantedOrder(linalg::GenericOp dot,
                                 const ContractionDims &dims, unsigned input) {
  AffineMap map = dot.getIndexingMapsArray()[input];
  SmallVector<int64_t> extents = dot.getStaticLoopRanges();
  Order order;
  SmallVector<std::pair<unsigned, int64_t>> along; // loops of k, positions
  int64_t depth = 1;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    if (!llvm::is_contained(dims.k, loop)) {
      order.push_back(position);
      continue;
    }
    along.push_back({loop, position});
    depth *= extents[loop];
  }
  bool isAlongK =
      !along.empty() && along.back().second + 1 == map.getNumResults();
  if (along.empty() || isAlongK || depth % kAccessBytes != 0)
    return std::nullopt;
  llvm::sort(along);
  for (auto [loop, position] : along)
    order.push_back(position);
  return order;
}

RankedTensorType permuted(Type type, ArrayRef<int64_t> order) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(applyPermutation(tensor.getShape(), order));
}

/// Returns the order of a stack whose slices have `order`.
Order orderOfStack(ArrayRef<int64_t> order) {
  Order result{0};
  for (int64_t position : order)
    result.push_back(position + 1);
  return result;
}

/// Returns the order of the slices of a stack that has `order`.
Order orderOfSlice(ArrayRef<int64_t> order) {
  Order result;
  for (int64_t position : order.drop_front())
    result.push_back(position - 1);
  return result;
}

/// Returns true if `op`, an extract_slice or an insert_slice, accesses one
/// whole slice of `stack` along its first dimension, which `slice` does not
/// have.
bool isSlice(OffsetSizeAndStrideOpInterface op, Value stack, Value slice) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(stack.getType()).getShape();
  ArrayRef<int64_t> own = cast<RankedTensorType>(slice.getType()).getShape();
  if (shape.empty() || own != shape.drop_front() || !op.hasUnitStride() ||
      op.getStaticSizes().front() != 1 ||
      op.getStaticSizes().drop_front() != own)
    return false;
  return llvm::all_of(op.getStaticOffsets().drop_front(),
                      [](int64_t offset) { return offset == 0; });
}

/// A stack that a loop fills slice by slice, and of which only slices are read,
/// after the loop.
struct Stack {
  scf::ForOp loop;
  unsigned index = 0;
  tensor::InsertSliceOp insert;
};

std::optional<Stack> stackOf(Value value) {
  auto loop = value.getDefiningOp<scf::ForOp>();
  if (!loop)
    return std::nullopt;
  Stack stack{loop, cast<OpResult>(value).getResultNumber(), {}};
  BlockArgument carry = loop.getRegionIterArg(stack.index);
  stack.insert = loop.getYieldedValues()[stack.index]
                     .getDefiningOp<tensor::InsertSliceOp>();
  if (!loop.getInitArgs()[stack.index].getDefiningOp<tensor::EmptyOp>() ||
      !stack.insert || !stack.insert->hasOneUse() ||
      stack.insert->getBlock() != loop.getBody() ||
      stack.insert.getDest() != carry || !carry.hasOneUse() ||
      !isSlice(stack.insert, carry, stack.insert.getSource()))
    return std::nullopt;
  return stack;
}

class LayoutAssignment {
public:
  explicit LayoutAssignment(func::FuncOp func) : func(func) {}

  void run();
  int64_t getNumCopies() const { return numCopies; }
  int64_t getNumStacks() const { return stacks.size(); }
  int64_t getNumOperands() const { return numOperands; }

private:
  void collectRequests();
  bool canProvide(Value value, ArrayRef<int64_t> order);
  bool isReadOnlyIn(Value stack, ArrayRef<int64_t> order);
  Value provide(Value value, const Order &order);
  Value copy(OpResult value, const Order &order);
  Value slice(tensor::ExtractSliceOp op, const Order &order);
  Value convert(const Stack &stack, const Order &order);

  func::FuncOp func;
  /// The operands of dots that should have another order.
  llvm::MapVector<OpOperand *, Order> requests;
  /// The values that exist in other orders.
  DenseMap<Value, SmallVector<std::pair<Order, Value>>> provided;
  /// The stacks that have other orders now.
  llvm::SmallDenseSet<Value> stacks;
  SetVector<Operation *> slices;
  int64_t numCopies = 0, numOperands = 0;
};

} // namespace

void LayoutAssignment::collectRequests() {
  func.walk<WalkOrder::PreOrder>([&](Operation *nested) {
    // The dots of an attention read what its own kernel computes.
    if (isa<FP8Dialect>(nested->getDialect()))
      return WalkResult::skip();
    auto op = dyn_cast<linalg::GenericOp>(nested);
    if (!op)
      return WalkResult::advance();
    if (!isDot(op) || !isMultiplied(op.getInputs()[0]) ||
        !isMultiplied(op.getInputs()[1]))
      return WalkResult::skip();
    ContractionDims dims = *inferContractionDims(op);
    for (unsigned input : {0, 1})
      if (std::optional<Order> order = wantedOrder(op, dims, input))
        requests[op.getDpsInputOperand(input)] = *order;
    return WalkResult::skip();
  });
}

/// Returns true if a value can exist in another order: if an elementwise op
/// computes it, or if it is a slice of such a value.
bool LayoutAssignment::canProvide(Value value, ArrayRef<int64_t> order) {
  if (auto op = value.getDefiningOp<linalg::GenericOp>()) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return allParallel(op) && op.getRegionOutputArgs()[number].use_empty() &&
           op.getOutputs()[number].getDefiningOp<tensor::EmptyOp>();
  }
  if (auto op = value.getDefiningOp<tensor::ExtractSliceOp>())
    return isSlice(op, op.getSource(), value) &&
           canProvide(op.getSource(), orderOfStack(order));
  std::optional<Stack> stack = stackOf(value);
  return stack && order.front() == 0 && isReadOnlyIn(value, order) &&
         canProvide(stack->insert.getSource(), orderOfSlice(order));
}

/// Returns true if all readers of a stack are dots that want its slices in the
/// same order.
bool LayoutAssignment::isReadOnlyIn(Value stack, ArrayRef<int64_t> order) {
  Order own = orderOfSlice(order);
  return llvm::all_of(stack.getUsers(), [&](Operation *user) {
    auto op = dyn_cast<tensor::ExtractSliceOp>(user);
    return op && !op->use_empty() && isSlice(op, stack, op.getResult()) &&
           llvm::all_of(op->getUses(), [&](OpOperand &use) {
             auto request = requests.find(&use);
             return request != requests.end() && request->second == own;
           });
  });
}

/// Returns `value` in another order.
Value LayoutAssignment::provide(Value value, const Order &order) {
  if (stacks.contains(value)) // It already has it.
    return value;
  auto &known = provided[value];
  auto it = llvm::find_if(
      known, [&](const auto &entry) { return entry.first == order; });
  if (it != known.end())
    return it->second;
  Value result;
  if (auto op = value.getDefiningOp<tensor::ExtractSliceOp>())
    result = slice(op, order);
  else if (std::optional<Stack> stack = stackOf(value))
    result = convert(*stack, order);
  else
    result = copy(cast<OpResult>(value), order);
  provided[value].push_back({order, result});
  return result;
}

/// Copies a value behind the op that computes it.
Value LayoutAssignment::copy(OpResult value, const Order &order) {
  Operation *producer = value.getOwner();
  OpBuilder builder(producer->getContext());
  builder.setInsertionPointAfter(producer);
  Location loc = producer->getLoc();
  RankedTensorType type = permuted(value.getType(), order);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<unsigned> positions(order.begin(), order.end());
  AffineMap maps[] = {
      builder.getMultiDimIdentityMap(type.getRank()),
      AffineMap::getPermutationMap(positions, loc.getContext())};
  auto copy = linalg::GenericOp::create(
      builder, loc, TypeRange{type}, ValueRange{value}, ValueRange{empty}, maps,
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [](OpBuilder &b, Location l, ValueRange elements) {
        linalg::YieldOp::create(b, l, elements[0]);
      });
  // The ranks that have the value also have the copy.
  if (Attribute shard = producer->getAttr(FP8Dialect::kShardAttrName))
    copy->setAttr(FP8Dialect::kShardAttrName, shard);
  ++numCopies;
  return copy.getResult(0);
}

/// Reads a slice from the stack in another order.
Value LayoutAssignment::slice(tensor::ExtractSliceOp op, const Order &order) {
  Order ofStack = orderOfStack(order);
  Value source = provide(op.getSource(), ofStack);
  slices.insert(op);
  OpBuilder builder(op);
  return tensor::ExtractSliceOp::create(
      builder, op.getLoc(), permuted(op.getType(), order), source,
      applyPermutation(op.getMixedOffsets(), ofStack),
      applyPermutation(op.getMixedSizes(), ofStack),
      applyPermutation(op.getMixedStrides(), ofStack));
}

/// Gives a stack another order.
Value LayoutAssignment::convert(const Stack &stack, const Order &order) {
  scf::ForOp loop = stack.loop;
  tensor::InsertSliceOp insert = stack.insert;
  Value slot = provide(insert.getSource(), orderOfSlice(order));
  OpBuilder builder(loop);
  RankedTensorType type =
      permuted(loop.getResult(stack.index).getType(), order);
  loop.getInitArgsMutable()[stack.index].set(tensor::EmptyOp::create(
      builder, loop.getLoc(), type.getShape(), type.getElementType()));
  BlockArgument carry = loop.getRegionIterArg(stack.index);
  carry.setType(type);
  loop.getResult(stack.index).setType(type);
  builder.setInsertionPoint(insert);
  auto permutedInsert = tensor::InsertSliceOp::create(
      builder, insert.getLoc(), slot, carry,
      applyPermutation(insert.getMixedOffsets(), order),
      applyPermutation(insert.getMixedSizes(), order),
      applyPermutation(insert.getMixedStrides(), order));
  insert.replaceAllUsesWith(permutedInsert.getResult());
  insert.erase();
  stacks.insert(loop.getResult(stack.index));
  return loop.getResult(stack.index);
}

void LayoutAssignment::run() {
  collectRequests();
  // Decide first: a stack that has another order can no longer be asked.
  SmallVector<OpOperand *> granted;
  for (auto &[operand, order] : requests)
    if (canProvide(operand->get(), order))
      granted.push_back(operand);
  for (OpOperand *operand : granted) {
    const Order &order = requests[operand];
    auto dot = cast<linalg::GenericOp>(operand->getOwner());
    operand->set(provide(operand->get(), order));
    AffineMap map = dot.getMatchingIndexingMap(operand);
    setIndexingMap(*operand,
                   AffineMap::get(map.getNumDims(), 0,
                                  applyPermutation(map.getResults(), order),
                                  map.getContext()));
    ++numOperands;
  }
  for (Operation *op : slices)
    if (op->use_empty())
      op->erase();
}

namespace {

struct AssignLayouts : fp8::impl::AssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    LayoutAssignment assignment(getOperation());
    assignment.run();
    numCopies += assignment.getNumCopies();
    numStacks += assignment.getNumStacks();
    numOperands += assignment.getNumOperands();
  }
};

} // namespace
