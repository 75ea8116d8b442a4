//===- Outline.cpp - Outlining of a group of ops --------------------------===//

#include "Outline.h"

#include "../LaunchLabels.h"
#include "Work.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

class Outliner {
public:
  Outliner(func::FuncOp func, const llvm::StringMap<BlockArgument> &arguments,
           Block &block, const KernelGroups &groups, unsigned group)
      : func(func), arguments(arguments), block(block), groups(groups),
        group(groups.group(group)), order(groups.membersOf(group)),
        builder(func.getContext()) {}

  void run(StringRef name);

private:
  void collectOps();
  bool isInside(Operation *user) {
    return inside.contains(block.findAncestorOpInBlock(*user));
  }
  Value destinationOf(Value value);
  bool beginsPart(linalg::GenericOp op, OpOperand &init);
  void findResults();
  bool isUpdate(OpOperand &operand);
  bool startsFromInput(OpOperand &operand);
  void addInput(Value value);
  void findInputs();
  KernelOp createKernel(StringRef name);
  Value localCopy(OpOperand &init, Value value, ArrayRef<unsigned> loops);
  void cloneNode(unsigned node, IRMapping &mapping,
                 ArrayRef<BlockArgument> updated);
  void fillBody(KernelOp kernel);
  StringRef stateOf(ArrayRef<Value> results);
  LaunchOp createLaunch(KernelOp kernel);
  void moveViews(LaunchOp launch);
  void eraseOps();

  func::FuncOp func;
  const llvm::StringMap<BlockArgument> &arguments;
  Block &block;
  const KernelGroups &groups;
  const KernelGroup &group;
  SmallVector<unsigned> order;
  OpBuilder builder;

  /// All ops of the kernel; ops that are attached to a node come before it.
  SmallVector<Operation *> ops;
  llvm::SmallPtrSet<Operation *, 16> inside;
  /// Values that outside ops use, and the destination of each.
  SmallVector<Value> results, destinations;
  /// All values that are used but not defined inside, except constants.
  SetVector<Value> inputs;
  SetVector<Operation *> constants;
};

} // namespace

void Outliner::collectOps() {
  for (unsigned node : order) {
    for (Operation *attached : llvm::reverse(groups.node(node).attached))
      ops.push_back(attached);
    ops.push_back(groups.node(node).op);
  }
  inside.insert(ops.begin(), ops.end());
}

/// Returns the start of the chain of in-place updates that ends in `value`.
Value Outliner::destinationOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!inside.contains(def) || isa<tensor::EmptyOp>(def))
      break;
    auto result = cast<OpResult>(value);
    if (auto loop = dyn_cast<scf::ForOp>(def))
      value = loop.getInitArgs()[result.getResultNumber()];
    else
      value = cast<DestinationStyleOpInterface>(def)
                  .getTiedOpOperand(result)
                  ->get();
  }
  return value;
}

/// Returns true if `op` is the first op of this kernel that writes a part of a
/// result that another kernel has begun to write.
bool Outliner::beginsPart(linalg::GenericOp op, OpOperand &init) {
  Value result = op.getTiedOpResult(&init);
  bool isWrittenOn = llvm::any_of(result.getUses(), [](OpOperand &use) {
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    return user && user.isDpsInit(&use);
  });
  return !isWrittenOn && !op.payloadUsesValueFromOperand(&init) &&
         destinationOf(result).getDefiningOp<LaunchOp>();
}

void Outliner::findResults() {
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !isInside(user); }))
        results.push_back(result);
  // Parts of a result that another kernel has begun to write are results, too.
  // Otherwise bufferization would take the other parts for overwritten, and
  // give a value that is only used here memory of its own.
  for (Operation *op : ops)
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      for (OpOperand &init : generic.getDpsInitsMutable())
        if (Value result = generic.getTiedOpResult(&init);
            beginsPart(generic, init) && !llvm::is_contained(results, result))
          results.push_back(result);
  for (Value result : results)
    destinations.push_back(destinationOf(result));
}

/// Returns true for a value that is updated and read, too (an array scattered
/// into itself): it is both an input and a destination.
bool Outliner::isUpdate(OpOperand &operand) {
  return llvm::is_contained(destinations, operand.get()) &&
         isDestination(operand);
}

/// Returns true if an op of the kernel starts from the value of an input and
/// its result stays inside the kernel.
bool Outliner::startsFromInput(OpOperand &operand) {
  auto generic = dyn_cast<linalg::GenericOp>(operand.getOwner());
  return generic && generic.isDpsInit(&operand) && !isUpdate(operand) &&
         inputs.contains(operand.get()) &&
         generic.payloadUsesValueFromOperand(&operand);
}

/// Adds an input; scalar constants are cloned instead.
void Outliner::addInput(Value value) {
  Operation *def = value.getDefiningOp();
  if (def && inside.contains(def))
    return;
  if (isa_and_nonnull<arith::ConstantOp>(def) &&
      !isa<TensorType>(value.getType()))
    constants.insert(def);
  else
    inputs.insert(value);
}

void Outliner::findInputs() {
  for (Operation *op : ops) {
    for (OpOperand &operand : op->getOpOperands())
      if (!isUpdate(operand))
        addInput(operand.get());
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      addInput(value);
  }
}

/// Creates the kernel without a body. Its arguments are inputs, then
/// destinations.
KernelOp Outliner::createKernel(StringRef name) {
  builder.setInsertionPointToEnd(func->getBlock());
  SmallVector<Type> types(ValueRange(inputs.getArrayRef()).getTypes());
  llvm::append_range(types, ValueRange(destinations).getTypes());
  SmallVector<Access> accesses(inputs.size(), Access::Read);
  accesses.append(destinations.size(), Access::Update);
  return KernelOp::create(
      builder, ops.back()->getLoc(), name,
      builder.getFunctionType(types, ValueRange(results).getTypes()), accesses,
      group.domain);
}

/// Creates a copy of `value`, which other ops read, too, for an op that starts
/// from it and whose result stays inside. The copy's task dims are those of the
/// op: bufferization would insert a copy as well, but without task dims.
Value Outliner::localCopy(OpOperand &init, Value value,
                          ArrayRef<unsigned> loops) {
  AffineMap map =
      cast<linalg::GenericOp>(init.getOwner()).getMatchingIndexingMap(&init);
  linalg::GenericOp copy =
      createElementwise(builder, init.getOwner()->getLoc(), value,
                        getElementTypeOrSelf(value.getType()));
  SmallVector<int64_t> dims;
  for (unsigned loop : loops) {
    std::optional<unsigned> dim =
        map.getResultPosition(builder.getAffineDimExpr(loop));
    dims.push_back(dim ? static_cast<int64_t>(*dim) : -1);
  }
  copy->setAttr(FP8Dialect::kTaskDimsAttrName,
                builder.getDenseI64ArrayAttr(dims));
  return copy.getResult(0);
}

void Outliner::cloneNode(unsigned node, IRMapping &mapping,
                         ArrayRef<BlockArgument> updated) {
  const KernelNode &original = groups.node(node);
  SmallVector<unsigned> loops = group.loops.lookup(node);
  llvm::SmallDenseMap<unsigned, Value> locals;
  for (Operation *attached : llvm::reverse(original.attached))
    if (!mapping.contains(attached->getResult(0)))
      builder.clone(*attached, mapping);
  for (OpOperand &operand : original.op->getOpOperands())
    if (startsFromInput(operand))
      locals[operand.getOperandNumber()] =
          localCopy(operand, mapping.lookup(operand.get()), loops);
  Operation *copy = builder.clone(*original.op, mapping);
  for (auto [number, value] : locals)
    copy->setOperand(number, value);
  for (OpOperand &operand : original.op->getOpOperands())
    if (inputs.contains(operand.get()) && isUpdate(operand)) {
      auto place = llvm::find(destinations, operand.get());
      copy->setOperand(operand.getOperandNumber(),
                       updated[place - destinations.begin()]);
    }
  copy->setAttr(FP8Dialect::kTaskDimsAttrName,
                builder.getDenseI64ArrayAttr(
                    SmallVector<int64_t>(loops.begin(), loops.end())));
}

void Outliner::fillBody(KernelOp kernel) {
  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToStart(body);
  ArrayRef<BlockArgument> arguments = body->getArguments();
  ArrayRef<BlockArgument> updated = arguments.drop_front(inputs.size());
  IRMapping mapping;
  mapping.map(destinations, updated);
  // The mapping of inputs wins; cloneNode redirects updates.
  mapping.map(inputs.getArrayRef(), arguments.take_front(inputs.size()));
  for (Operation *constant : constants)
    builder.clone(*constant, mapping);
  for (unsigned node : order)
    cloneNode(node, mapping, updated);
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(mapping.lookup(result));
  ReturnOp::create(builder, kernel.getLoc(), returned);
  for (BlockArgument argument : updated)
    if (accessOf(argument) == Access::Write)
      kernel.setAccess(argument.getArgNumber(), Access::Write);
}

/// Returns the path of the state that one of `results` replaces; that of a
/// parameter, if there is one.
StringRef Outliner::stateOf(ArrayRef<Value> results) {
  StringRef found;
  for (Value result : results)
    for (OpOperand &use : result.getUses()) {
      if (!isa<func::ReturnOp>(use.getOwner()))
        continue;
      auto path = func.getResultAttrOfType<StringAttr>(
          use.getOperandNumber(), FP8Dialect::kStateAttrName);
      if (!path)
        continue;
      if (found.empty())
        found = path.getValue();
      BlockArgument arg = arguments.lookup(path.getValue());
      if (arg && stateKindOf(arg) == StateKind::Parameter)
        return path.getValue();
    }
  return found;
}

/// The launch takes the place of the last op.
LaunchOp Outliner::createLaunch(KernelOp kernel) {
  for (Value destination : destinations)
    if (Operation *def = destination.getDefiningOp();
        def && inside.contains(def))
      def->moveBefore(ops.back());
  builder.setInsertionPoint(ops.back());
  SmallVector<Value> operands(inputs.begin(), inputs.end());
  llvm::append_range(operands, destinations);
  auto launch =
      LaunchOp::create(builder, kernel.getLoc(), kernel, operands,
                       builder.getStringAttr(labelOf(ops, stateOf(results))));
  if (group.shard)
    launch->setAttr(FP8Dialect::kShardAttrName, group.shard);
  for (auto [result, value] : llvm::zip(results, launch.getResults()))
    result.replaceUsesWithIf(
        value, [&](OpOperand &use) { return !isInside(use.getOwner()); });
  return launch;
}

/// Moves reshapes of the kernel's results behind the launch.
void Outliner::moveViews(LaunchOp launch) {
  Operation *last = launch;
  std::function<void(Value)> moveViewsOf = [&](Value value) {
    for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
      if (!isTensorView(user) || user->getBlock() != &block)
        continue;
      user->moveAfter(last);
      last = user;
      moveViewsOf(user->getResult(0));
    }
  };
  for (Value value : launch.getResults())
    moveViewsOf(value);
}

void Outliner::eraseOps() {
  for (Operation *op : llvm::reverse(ops))
    if (!llvm::is_contained(destinations, op->getNumResults() == 1
                                              ? op->getResult(0)
                                              : Value()))
      op->erase();
}

void Outliner::run(StringRef name) {
  collectOps();
  findResults();
  findInputs();
  KernelOp kernel = createKernel(name);
  fillBody(kernel);
  moveViews(createLaunch(kernel));
  eraseOps();
}

void fp8::outlineKernel(func::FuncOp func,
                        const llvm::StringMap<BlockArgument> &arguments,
                        Block &block, const KernelGroups &groups,
                        unsigned group, StringRef name) {
  Outliner(func, arguments, block, groups, group).run(name);
}
