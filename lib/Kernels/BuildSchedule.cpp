//===- BuildSchedule.cpp - The step as a schedule on buffers --------------===//
//
// Decides on values, where it is easy to see, which updates are in place: a
// tensor whose last use is an op lends that op its buffer. Every other value
// gets an allocation of its own and a copy, which ElideCopies may remove later.
//
//===----------------------------------------------------------------------===//

#include "BuildSchedule.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

MemRefType bufferType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get(tensor.getShape(), tensor.getElementType());
}

/// Returns true if `use`, in the block that defines its value, is the value's
/// last one. Uses of views count as uses. (Tensors do not alias, so uses are
/// enough.)
bool isLastUse(OpOperand &use) {
  Block *block = use.getOwner()->getBlock();
  if (use.get().getParentBlock() != block)
    return false;
  SmallVector<Value> views{use.get()};
  while (!views.empty())
    for (OpOperand &other : views.pop_back_val().getUses()) {
      if (&other == &use)
        continue;
      if (isTensorView(other.getOwner()) ||
          isa<tensor::ExtractSliceOp>(other.getOwner()))
        views.push_back(other.getOwner()->getResult(0));
      else if (!block->findAncestorOpInBlock(*other.getOwner())
                    ->isBeforeInBlock(use.getOwner()))
        return false;
    }
  return true;
}

class ScheduleBuilder {
public:
  ScheduleBuilder(func::FuncOp func, SymbolTable &symbols)
      : func(func), symbols(symbols), builder(func.getContext()) {}

  LogicalResult run();

private:
  LogicalResult convertBlock(Block &block);
  LogicalResult convertOp(Operation &op);
  void convertLaunch(LaunchOp launch);
  void convertAllReduce(AllReduceOp op);
  void convertExchange(ExchangeOp op);
  void convertConstant(arith::ConstantOp constant);
  void convertExpandShape(tensor::ExpandShapeOp expand);
  void convertCollapseShape(tensor::CollapseShapeOp collapse);
  LogicalResult convertExtract(tensor::ExtractOp extract);
  LogicalResult convertFromElements(tensor::FromElementsOp op);
  LogicalResult convertExtractSlice(tensor::ExtractSliceOp slice);
  LogicalResult convertInsertSlice(tensor::InsertSliceOp slice);
  LogicalResult convertFor(scf::ForOp loop);
  LogicalResult convertWhile(scf::WhileOp loop);
  LogicalResult convertIf(scf::IfOp branch);
  LogicalResult convertSwitch(scf::IndexSwitchOp branch);
  LogicalResult convertBranches(Operation *op, Operation *copy);
  void convertReturn(func::ReturnOp ret);

  template <typename SliceOp>
  FailureOr<Value> subbuffer(SliceOp slice, Value stack, Type type);
  Value bufferForUpdate(OpOperand &use);
  Value allocate(Location loc, Type type) {
    return memref::AllocOp::create(builder, loc, bufferType(type));
  }
  StringRef pathOf(Value buffer);
  void emitCopy(Location loc, Value source, Value target);
  void emitParallelCopies(Location loc, ArrayRef<Value> sources,
                          ArrayRef<Value> targets);
  KernelOp copyKernel(MemRefType type);
  Value bufferOf(Value tensor);
  SmallVector<Value> buffersOf(ValueRange tensors) {
    SmallVector<Value> buffers;
    for (Value tensor : tensors)
      buffers.push_back(bufferOf(tensor));
    return buffers;
  }

  func::FuncOp func;
  ScheduleOp schedule;
  SymbolTable &symbols;
  OpBuilder builder;
  IRMapping mapping;                    // tensor -> buffer, scalar -> scalar
  DenseMap<Type, KernelOp> copyKernels; // by what they copy
  unsigned numArguments = 0;
  SmallVector<DictionaryAttr> resultAttrs;
};

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

KernelOp ScheduleBuilder::copyKernel(MemRefType type) {
  KernelOp &known = copyKernels[type];
  if (known)
    return known;
  unsigned rank = type.getRank();
  // Tasks divide the first dimension; a vector is copied by one task.
  SmallVector<int64_t> domain, loops;
  if (rank > 1 && type.getDimSize(0) > 0) {
    domain.push_back(type.getDimSize(0));
    loops.push_back(0);
  }
  OpBuilder inner(func.getContext());
  auto kernel = KernelOp::create(inner, func.getLoc(), "copy",
                                 builder.getFunctionType({type, type}, {}),
                                 {Access::Read, Access::Write}, domain);
  kernel.setCopy(true);
  Block *block = kernel.addEntryBlock();
  inner.setInsertionPointToStart(block);
  AffineMap identity = inner.getMultiDimIdentityMap(rank);
  auto generic = linalg::GenericOp::create(
      inner, func.getLoc(), TypeRange{}, ValueRange{block->getArgument(0)},
      ValueRange{block->getArgument(1)},
      ArrayRef<AffineMap>{identity, identity},
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [](OpBuilder &b, Location l, ValueRange args) {
        linalg::YieldOp::create(b, l, args[0]);
      });
  generic->setAttr(FP8Dialect::kTaskDimsAttrName,
                   inner.getDenseI64ArrayAttr(loops));
  ReturnOp::create(inner, func.getLoc());
  kernel.setSymName(nameOfContents(kernel));
  // Another schedule of the module may have created it already.
  if (auto other = symbols.lookup<KernelOp>(kernel.getSymName())) {
    kernel.erase();
    return known = other;
  }
  symbols.insert(kernel);
  return known = kernel;
}

/// Returns the path of the argument that `buffer` is, or is a part of, or "".
StringRef ScheduleBuilder::pathOf(Value buffer) {
  auto arg = dyn_cast<BlockArgument>(memoryOf(buffer));
  if (!arg || arg.getOwner() != &schedule.getBody().front() ||
      arg.getArgNumber() >= numArguments)
    return "";
  auto path = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                FP8Dialect::kPathAttrName);
  return path ? path.getValue() : "";
}

void ScheduleBuilder::emitCopy(Location loc, Value source, Value target) {
  // A tensor of no elements needs no copy.
  if (source == target ||
      cast<MemRefType>(target.getType()).getNumElements() == 0)
    return;
  std::string label = "copy";
  for (Value buffer : {target, source})
    if (StringRef path = pathOf(buffer); !path.empty()) {
      label += " " + path.str();
      break;
    }
  LaunchOp::create(builder, loc, copyKernel(cast<MemRefType>(target.getType())),
                   ValueRange{source, target}, builder.getStringAttr(label));
}

/// Copies as if all at once: a source that is also the target of another value
/// passes through a temporary.
void ScheduleBuilder::emitParallelCopies(Location loc, ArrayRef<Value> sources,
                                         ArrayRef<Value> targets) {
  llvm::SmallDenseSet<Value> written;
  for (auto [source, target] : llvm::zip(sources, targets))
    if (source != target)
      written.insert(memoryOf(target));
  SmallVector<Value> safe(sources);
  for (auto [source, target] : llvm::zip(safe, targets))
    if (source != target && written.contains(memoryOf(source))) {
      Value temporary = memref::AllocOp::create(
          builder, loc, cast<MemRefType>(source.getType()));
      emitCopy(loc, source, temporary);
      source = temporary;
    }
  for (auto [source, target] : llvm::zip(safe, targets))
    emitCopy(loc, source, target);
}

/// Returns the buffer of a tensor. (IRMapping::lookup on a typed value would
/// return the tensor's type.) A tensor without contents gets one at each use:
/// most are only updated, and a buffer from another block might not dominate.
Value ScheduleBuilder::bufferOf(Value tensor) {
  if (tensor.getDefiningOp<tensor::EmptyOp>())
    return allocate(tensor.getLoc(), tensor.getType());
  return mapping.lookup(tensor);
}

/// Returns a buffer that holds the value of `use` and may be overwritten: the
/// value's own buffer if this is its last use, else a copy.
Value ScheduleBuilder::bufferForUpdate(OpOperand &use) {
  Value value = use.get();
  Location loc = use.getOwner()->getLoc();
  Value buffer = bufferOf(value);
  if (value.getDefiningOp<tensor::EmptyOp>())
    return buffer;
  // The step's arguments are only overwritten by results that replace them.
  if (buffer.getDefiningOp<memref::AllocOp>() && isLastUse(use))
    return buffer;
  Value copy = allocate(loc, value.getType());
  emitCopy(loc, buffer, copy);
  return copy;
}

//===----------------------------------------------------------------------===//
// Ops of a block
//===----------------------------------------------------------------------===//

void ScheduleBuilder::convertConstant(arith::ConstantOp constant) {
  auto type = bufferType(constant.getType());
  OpBuilder before(schedule);
  auto global = memref::GlobalOp::create(
      before, constant.getLoc(), "constant", builder.getStringAttr("private"),
      type, cast<ElementsAttr>(constant.getValue()), /*constant=*/true,
      IntegerAttr());
  symbols.insert(global);
  mapping.map(constant.getResult(),
              memref::GetGlobalOp::create(builder, constant.getLoc(), type,
                                          global.getSymName())
                  .getResult());
}

void ScheduleBuilder::convertLaunch(LaunchOp launch) {
  auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
  SmallVector<Value> operands(launch.getNumOperands());
  for (OpOperand &operand : launch->getOpOperands())
    if (launch.getAccess(operand.getOperandNumber()) == Access::Read)
      operands[operand.getOperandNumber()] = bufferOf(operand.get());
  for (auto [destination, result] :
       llvm::zip_equal(launch.getDestinations(), launch.getResults())) {
    Value buffer = bufferForUpdate(*destination);
    operands[destination->getOperandNumber()] = buffer;
    mapping.map(result, buffer);
  }
  auto copy = LaunchOp::create(builder, launch.getLoc(), kernel, operands,
                               launch.getLabelAttr());
  copy->setDiscardableAttrs(launch->getDiscardableAttrDictionary());
}

/// Emits a start and an immediate wait; fp8-slice-collectives and
/// fp8-overlap-collectives move the two apart.
void ScheduleBuilder::convertAllReduce(AllReduceOp op) {
  Location loc = op.getLoc();
  Value input = bufferOf(op.getInput());
  // The collective works in place if this is the last use of the operand.
  bool inPlace =
      input.getDefiningOp<memref::AllocOp>() && isLastUse(op.getInputMutable());
  Value result = inPlace ? input : allocate(loc, op.getResult().getType());
  mapping.map(op.getResult(), result);
  Value mu;
  if (op.getMu()) {
    mu = bufferForUpdate(op.getMuMutable()[0]);
    mapping.map(op.getNewMu(), mu);
  }
  auto start = StartAllReduceOp::create(
      builder, loc, builder.getIndexType(), op.getReduction(), input, result,
      mu, /*slice=*/Value(), /*collectives=*/Value(), op.getWire(),
      op.getBlockAttr(), op.getShardAttr(), op.getSlicesAttr(),
      op.getLabelAttr(), /*number=*/IntegerAttr());
  WaitOp::create(builder, loc, start.getHandle(), start.getBuffers());
}

void ScheduleBuilder::convertExchange(ExchangeOp op) {
  Location loc = op.getLoc();
  Value result = allocate(loc, op.getResult().getType());
  mapping.map(op.getResult(), result);
  auto start =
      StartExchangeOp::create(builder, loc, builder.getIndexType(),
                              op.getKind(), bufferOf(op.getInput()), result,
                              op.getRanks(), op.getSummed(), op.getLabelAttr(),
                              /*number=*/IntegerAttr());
  WaitOp::create(builder, loc, start.getHandle(), start->getOperands());
}

LogicalResult ScheduleBuilder::convertExtract(tensor::ExtractOp extract) {
  if (!extract.getIndices().empty())
    return extract.emitOpError("expected a scalar where the schedule reads a "
                               "value but got ")
           << extract.getTensor().getType();
  mapping.map(extract.getResult(),
              memref::LoadOp::create(builder, extract.getLoc(),
                                     bufferOf(extract.getTensor()))
                  .getResult());
  return success();
}

LogicalResult ScheduleBuilder::convertFromElements(tensor::FromElementsOp op) {
  if (op.getElements().size() != 1)
    return op.emitOpError("expected one element where the schedule writes a "
                          "value but got ")
           << op.getElements().size();
  Value buffer = allocate(op.getLoc(), op.getType());
  SmallVector<Value> zeros;
  for (int64_t i = 0; i < op.getType().getRank(); ++i)
    zeros.push_back(arith::ConstantIndexOp::create(builder, op.getLoc(), 0));
  memref::StoreOp::create(builder, op.getLoc(),
                          mapping.lookupOrDefault(op.getElements()[0]), buffer,
                          zeros);
  mapping.map(op.getResult(), buffer);
  return success();
}

/// Returns the part of `stack` that `slice` selects, as a buffer of tensor type
/// `type`.
template <typename SliceOp>
FailureOr<Value> ScheduleBuilder::subbuffer(SliceOp slice, Value stack,
                                            Type type) {
  auto stackType = cast<MemRefType>(stack.getType());
  Location loc = slice.getLoc();
  // The part is contiguous if all dimensions after the first one with several
  // elements are whole.
  bool inside = false;
  Value offset = arith::ConstantIndexOp::create(builder, loc, 0);
  int64_t stride = stackType.getNumElements();
  for (int64_t dim = 0; dim < stackType.getRank(); ++dim) {
    int64_t extent = stackType.getDimSize(dim);
    stride = extent == 0 ? 0 : stride / extent;
    auto size = getConstantIntValue(slice.getMixedSizes()[dim]);
    auto step = getConstantIntValue(slice.getMixedStrides()[dim]);
    if (!size || step != 1 || (inside && *size != extent))
      return slice.emitOpError("expected a contiguous part of ") << stackType;
    inside |= *size != 1;
    OpFoldResult first = slice.getMixedOffsets()[dim];
    if (getConstantIntValue(first) == 0)
      continue;
    if (auto value = dyn_cast<Value>(first))
      first = mapping.lookupOrDefault(value);
    Value scaled = builder.createOrFold<arith::MulIOp>(
        loc, getValueOrCreateConstantIndexOp(builder, loc, first),
        arith::ConstantIndexOp::create(builder, loc, stride));
    offset = builder.createOrFold<arith::AddIOp>(loc, offset, scaled);
  }
  return SubbufferOp::create(builder, loc, bufferType(type), stack, offset)
      .getResult();
}

LogicalResult
ScheduleBuilder::convertExtractSlice(tensor::ExtractSliceOp slice) {
  FailureOr<Value> part =
      subbuffer(slice, bufferOf(slice.getSource()), slice.getType());
  if (failed(part))
    return failure();
  mapping.map(slice.getResult(), *part);
  return success();
}

LogicalResult ScheduleBuilder::convertInsertSlice(tensor::InsertSliceOp slice) {
  Value stack = bufferForUpdate(slice.getDestMutable());
  FailureOr<Value> part = subbuffer(slice, stack, slice.getSourceType());
  if (failed(part))
    return failure();
  emitCopy(slice.getLoc(), bufferOf(slice.getSource()), *part);
  mapping.map(slice.getResult(), stack);
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Each loop-carried value is one buffer, which every iteration updates.
LogicalResult ScheduleBuilder::convertFor(scf::ForOp loop) {
  SmallVector<Value> carries;
  for (OpOperand &init : loop.getInitArgsMutable())
    carries.push_back(bufferForUpdate(init));
  auto bound = [&](Value value) { return mapping.lookupOrDefault(value); };
  auto copy =
      scf::ForOp::create(builder, loop.getLoc(), bound(loop.getLowerBound()),
                         bound(loop.getUpperBound()), bound(loop.getStep()));
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  for (auto [arg, carry] : llvm::zip(loop.getRegionIterArgs(), carries))
    mapping.map(arg, carry);
  for (auto [result, carry] : llvm::zip(loop.getResults(), carries))
    mapping.map(result, carry);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(copy.getBody()->getTerminator());
  if (failed(convertBlock(*loop.getBody())))
    return failure();
  emitParallelCopies(loop.getLoc(), buffersOf(loop.getYieldedValues()),
                     carries);
  return success();
}

LogicalResult ScheduleBuilder::convertWhile(scf::WhileOp loop) {
  Location loc = loop.getLoc();
  SmallVector<Value> carries;
  for (OpOperand &init : loop.getInitsMutable())
    carries.push_back(bufferForUpdate(init));
  for (auto [arg, carry] : llvm::zip(loop.getBeforeArguments(), carries))
    mapping.map(arg, carry);
  // The condition usually forwards a loop-carried value; any other value needs
  // a buffer that the body sees.
  SmallVector<Value> handed;
  llvm::SmallDenseSet<Value> taken;
  for (Value value : loop.getConditionOp().getArgs()) {
    auto arg = dyn_cast<BlockArgument>(value);
    bool carried = arg && arg.getOwner() == loop.getBeforeBody() &&
                   taken.insert(arg).second;
    handed.push_back(carried ? carries[arg.getArgNumber()]
                             : allocate(loc, value.getType()));
  }
  auto copy = scf::WhileOp::create(builder, loc, TypeRange{}, ValueRange{});
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&copy.getBefore());
  if (failed(convertBlock(*loop.getBeforeBody())))
    return failure();
  emitParallelCopies(loc, buffersOf(loop.getConditionOp().getArgs()), handed);
  scf::ConditionOp::create(
      builder, loc,
      mapping.lookupOrDefault(loop.getConditionOp().getCondition()),
      ValueRange{});
  builder.createBlock(&copy.getAfter());
  for (auto [arg, buffer] : llvm::zip(loop.getAfterArguments(), handed))
    mapping.map(arg, buffer);
  for (auto [result, buffer] : llvm::zip(loop.getResults(), handed))
    mapping.map(result, buffer);
  if (failed(convertBlock(*loop.getAfterBody())))
    return failure();
  emitParallelCopies(loc, buffersOf(loop.getYieldOp().getOperands()), carries);
  scf::YieldOp::create(builder, loc);
  return success();
}

/// Moves the regions of `op`, an if or a switch, to `copy`, which has as many
/// empty ones. Each result is one buffer, which every branch writes.
LogicalResult ScheduleBuilder::convertBranches(Operation *op, Operation *copy) {
  SmallVector<Value> results;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(copy);
  for (Value result : op->getResults()) {
    results.push_back(allocate(op->getLoc(), result.getType()));
    mapping.map(result, results.back());
  }
  for (auto [source, target] :
       llvm::zip(op->getRegions(), copy->getRegions())) {
    if (source.empty())
      continue;
    builder.createBlock(&target);
    if (failed(convertBlock(source.front())))
      return failure();
    emitParallelCopies(op->getLoc(),
                       buffersOf(source.front().getTerminator()->getOperands()),
                       results);
    scf::YieldOp::create(builder, op->getLoc());
  }
  return success();
}

void ScheduleBuilder::convertReturn(func::ReturnOp ret) {
  Block &entry = *builder.getBlock();
  Location loc = ret.getLoc();
  llvm::StringMap<BlockArgument> arguments = argumentsByPath(func);
  SmallVector<Value> targets;
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    DictionaryAttr attrs = func.getResultAttrDict(index);
    BlockArgument target;
    if (StringAttr state =
            attrs ? attrs.getAs<StringAttr>(FP8Dialect::kStateAttrName)
                  : StringAttr())
      if (BlockArgument replaced = arguments.lookup(state.getValue()))
        target = entry.getArgument(replaced.getArgNumber());
    if (!target) {
      target = entry.addArgument(bufferType(value.getType()), loc);
      SmallVector<NamedAttribute> named;
      if (attrs)
        named.append(attrs.begin(), attrs.end());
      named.emplace_back(FP8Dialect::kOutputAttrName, builder.getUnitAttr());
      resultAttrs.push_back(builder.getDictionaryAttr(named));
    }
    targets.push_back(target);
  }
  emitParallelCopies(loc, buffersOf(ret.getOperands()), targets);
  ReturnOp::create(builder, loc);
}

void ScheduleBuilder::convertExpandShape(tensor::ExpandShapeOp expand) {
  mapping.map(expand.getResult(),
              memref::ExpandShapeOp::create(
                  builder, expand.getLoc(), bufferType(expand.getType()),
                  bufferOf(expand.getSrc()), expand.getReassociationIndices())
                  .getResult());
}

void ScheduleBuilder::convertCollapseShape(tensor::CollapseShapeOp collapse) {
  mapping.map(collapse.getResult(),
              memref::CollapseShapeOp::create(
                  builder, collapse.getLoc(), bufferOf(collapse.getSrc()),
                  collapse.getReassociationIndices())
                  .getResult());
}

LogicalResult ScheduleBuilder::convertIf(scf::IfOp branch) {
  auto copy = scf::IfOp::create(builder, branch.getLoc(), TypeRange{},
                                mapping.lookupOrDefault(branch.getCondition()),
                                /*addThenBlock=*/false, /*addElseBlock=*/false);
  return convertBranches(branch, copy);
}

LogicalResult ScheduleBuilder::convertSwitch(scf::IndexSwitchOp branch) {
  auto copy =
      scf::IndexSwitchOp::create(builder, branch.getLoc(), TypeRange{},
                                 mapping.lookupOrDefault(branch.getArg()),
                                 branch.getCases(), branch.getNumCases());
  return convertBranches(branch, copy);
}

LogicalResult ScheduleBuilder::convertOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && isa<TensorType>(constant.getType())) {
    convertConstant(constant);
    return success();
  }
  if (isa<RankOp>(op) || isa<arith::ArithDialect>(op.getDialect())) {
    builder.clone(op, mapping);
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](tensor::EmptyOp) { return success(); })
      .Case([&](tensor::ExpandShapeOp expand) {
        convertExpandShape(expand);
        return success();
      })
      .Case([&](tensor::CollapseShapeOp collapse) {
        convertCollapseShape(collapse);
        return success();
      })
      .Case([&](LaunchOp launch) {
        convertLaunch(launch);
        return success();
      })
      .Case([&](AllReduceOp reduce) {
        convertAllReduce(reduce);
        return success();
      })
      .Case([&](ExchangeOp exchange) {
        convertExchange(exchange);
        return success();
      })
      .Case([&](tensor::ExtractOp extract) { return convertExtract(extract); })
      .Case([&](tensor::FromElementsOp elements) {
        return convertFromElements(elements);
      })
      .Case([&](tensor::ExtractSliceOp slice) {
        return convertExtractSlice(slice);
      })
      .Case([&](tensor::InsertSliceOp slice) {
        return convertInsertSlice(slice);
      })
      .Case([&](scf::ForOp loop) { return convertFor(loop); })
      .Case([&](scf::WhileOp loop) { return convertWhile(loop); })
      .Case([&](scf::IfOp branch) { return convertIf(branch); })
      .Case([&](scf::IndexSwitchOp branch) { return convertSwitch(branch); })
      .Default([](Operation *op) {
        return op->emitOpError("is not part of a schedule: expected launches, "
                               "reshapes, slices, control flow and constants");
      });
}

LogicalResult ScheduleBuilder::convertBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(convertOp(op)))
      return failure();
  return success();
}

/// Checks that a function takes and returns tensors of static shapes.
static LogicalResult verifyTensors(func::FuncOp func) {
  auto verify = [&](StringRef what, TypeRange types) -> LogicalResult {
    for (auto [index, type] : llvm::enumerate(types)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape())
        return func.emitError("expected ")
               << what << " " << index
               << " to be a tensor of a static shape but got " << type;
    }
    return success();
  };
  return success(succeeded(verify("argument", func.getArgumentTypes())) &&
                 succeeded(verify("result", func.getResultTypes())));
}

LogicalResult ScheduleBuilder::run() {
  if (failed(verifyTensors(func)))
    return failure();
  Block &old = func.getBody().front();
  numArguments = old.getNumArguments();
  builder.setInsertionPoint(func);
  schedule = ScheduleOp::create(builder, func.getLoc(), func.getSymName(),
                                builder.getFunctionType({}, {}));
  Block *entry = &schedule.getBody().emplaceBlock();
  for (BlockArgument arg : old.getArguments())
    mapping.map(arg,
                entry->addArgument(bufferType(arg.getType()), arg.getLoc()));
  builder.setInsertionPointToEnd(entry);
  if (failed(convertBlock(old)))
    return failure();
  convertReturn(cast<func::ReturnOp>(old.getTerminator()));

  SmallVector<DictionaryAttr> attrs;
  for (unsigned i = 0; i < numArguments; ++i)
    attrs.push_back(func.getArgAttrDict(i) ? func.getArgAttrDict(i)
                                           : builder.getDictionaryAttr({}));
  llvm::append_range(attrs, resultAttrs);
  schedule.setFunctionType(
      builder.getFunctionType(entry->getArgumentTypes(), {}));
  schedule.setAllArgAttrs(attrs);
  for (NamedAttribute attr : func->getDiscardableAttrs())
    schedule->setDiscardableAttr(attr.getName(), attr.getValue());
  symbols.erase(func);
  symbols.insert(schedule);
  return success();
}

} // namespace

LogicalResult fp8::buildSchedule(func::FuncOp func, SymbolTable &symbols) {
  return ScheduleBuilder(func, symbols).run();
}
