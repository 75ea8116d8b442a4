//===- BufferizeKernels.cpp - Tensors to buffers, kernel by kernel --------===//

#include "fp8/Analysis/Signature.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BUFFERIZEKERNELS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

MemRefType bufferType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get(tensor.getShape(), tensor.getElementType());
}

/// One-shot bufferization of the kernels in a module of their own, and removal
/// of their results, which are destination arguments by construction.
LogicalResult bufferizeKernels(ArrayRef<func::FuncOp> kernels,
                               ModuleOp module) {
  OwningOpRef<ModuleOp> scratch(ModuleOp::create(module.getLoc()));
  for (func::FuncOp kernel : kernels) {
    kernel->remove();
    scratch->push_back(kernel);
  }
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.setFunctionBoundaryTypeConversion(
      bufferization::LayoutMapOption::IdentityLayoutMap);
  bufferization::BufferizationState state;
  LogicalResult result = bufferization::runOneShotModuleBufferize(
      scratch->getOperation(), options, state);
  for (func::FuncOp kernel : kernels) {
    kernel->remove();
    module.push_back(kernel);
  }
  if (failed(result))
    return failure();

  // A loop that carries a buffer hands the same one on: canonical loops do not
  // carry it at all.
  RewritePatternSet patterns(module.getContext());
  scf::ForOp::getCanonicalizationPatterns(patterns, module.getContext());
  FrozenRewritePatternSet frozen(std::move(patterns));
  for (func::FuncOp kernel : kernels)
    if (!kernel.getOps<scf::ForOp>().empty())
      if (failed(applyPatternsGreedily(kernel, frozen)))
        return failure();

  for (func::FuncOp kernel : kernels) {
    auto ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
    unsigned numInputs = kernel.getNumArguments() - ret.getNumOperands();
    for (auto [index, value] : llvm::enumerate(ret.getOperands()))
      if (value != kernel.getArgument(numInputs + index))
        return ret.emitOpError("expected result ")
               << index << " of a kernel to be written in place";
    OpBuilder builder(ret);
    func::ReturnOp::create(builder, ret.getLoc());
    ret.erase();
    kernel.setFunctionType(
        builder.getFunctionType(kernel.getArgumentTypes(), {}));
  }
  return success();
}

/// May argument `read` of a kernel share its buffer with `written`? Every read
/// must be of the element that the same iteration writes, and come first.
bool safeInPlace(func::FuncOp kernel, unsigned read, unsigned written) {
  BlockArgument source = kernel.getArgument(read);
  BlockArgument target = kernel.getArgument(written);
  linalg::GenericOp writer;
  for (OpOperand &use : target.getUses()) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic || !generic.isDpsInit(&use) || writer || !allParallel(generic))
      return false;
    writer = generic;
  }
  if (!writer)
    return false;
  AffineMap write = writer.getMatchingIndexingMap(&writer->getOpOperand(
      llvm::find(writer->getOperands(), target).getIndex()));
  if (!write.isPermutation())
    return false;
  return llvm::all_of(source.getUses(), [&](OpOperand &use) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    return generic && generic->getBlock() == writer->getBlock() &&
           (generic == writer || generic->isBeforeInBlock(writer)) &&
           generic.isDpsInput(&use) &&
           generic.getMatchingIndexingMap(&use) == write &&
           generic.getStaticLoopRanges() == writer.getStaticLoopRanges() &&
           generic->getAttr(kTaskDimsAttr) == writer->getAttr(kTaskDimsAttr);
  });
}

/// The buffer that reshapes of it lead to.
Value rootOf(Value buffer) {
  while (Operation *def = buffer.getDefiningOp()) {
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(def))
      break;
    buffer = def->getOperand(0);
  }
  return buffer;
}

/// Turns the public function into a schedule on buffers.
class ScheduleBuilder {
public:
  ScheduleBuilder(func::FuncOp func, SymbolTable &symbols)
      : func(func), symbols(symbols), builder(func.getContext()) {}

  LogicalResult run();

private:
  void convertArguments();
  LogicalResult convertOp(Operation &op);
  void convertCall(func::CallOp call);
  void convertConstant(arith::ConstantOp constant);
  void convertReturn(func::ReturnOp ret);
  bool takeOver(memref::AllocOp alloc, BlockArgument target);
  void emitCopy(Location loc, Value source, Value target);
  func::FuncOp copyKernel(MemRefType type);
  /// (A lookup by a typed value would want a buffer of the same type.)
  Value bufferOf(Value tensor) { return buffers.lookup(tensor); }

  func::FuncOp func;
  SymbolTable &symbols;
  OpBuilder builder;
  IRMapping buffers; // tensor -> memref
  unsigned numArguments = 0;
  SmallVector<DictionaryAttr> resultAttrs;
  SmallVector<Operation *> dead;
};

void ScheduleBuilder::convertArguments() {
  numArguments = func.getNumArguments();
  Block &entry = func.getBody().front();
  for (unsigned i = 0; i < numArguments; ++i) {
    BlockArgument old = entry.getArgument(i);
    // The old argument keeps its uses until its users are converted.
    BlockArgument buffer =
        entry.addArgument(bufferType(old.getType()), old.getLoc());
    buffers.map(old, buffer);
  }
}

void ScheduleBuilder::convertConstant(arith::ConstantOp constant) {
  auto type = bufferType(constant.getType());
  OpBuilder before(func);
  auto global = memref::GlobalOp::create(
      before, constant.getLoc(), "constant", builder.getStringAttr("private"),
      type, cast<ElementsAttr>(constant.getValue()), /*constant=*/true,
      IntegerAttr());
  symbols.insert(global);
  buffers.map(constant.getResult(),
              memref::GetGlobalOp::create(builder, constant.getLoc(), type,
                                          global.getSymName())
                  .getResult());
}

func::FuncOp ScheduleBuilder::copyKernel(MemRefType type) {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << "copy_";
  llvm::interleave(type.getShape(), os, "x");
  os << "_" << type.getElementType();
  if (auto known = symbols.lookup<func::FuncOp>(name))
    return known;
  auto kernel = func::FuncOp::create(func.getLoc(), name,
                                     builder.getFunctionType({type, type}, {}));
  kernel.setPrivate();
  unsigned rank = type.getRank();
  // Leading index = task; a vector is one task.
  SmallVector<int64_t> domain, tile, loops;
  if (rank > 1 && type.getDimSize(0) > 0) {
    domain.push_back(type.getDimSize(0));
    tile.push_back(llvm::divideCeil(type.getDimSize(0), 16));
    loops.push_back(0);
  }
  kernel->setAttr(kDomainAttr, builder.getDenseI64ArrayAttr(domain));
  kernel->setAttr(kTileAttr, builder.getDenseI64ArrayAttr(tile));
  Block *block = kernel.addEntryBlock();
  OpBuilder inner = OpBuilder::atBlockBegin(block);
  AffineMap identity = inner.getMultiDimIdentityMap(rank);
  auto generic = linalg::GenericOp::create(
      inner, func.getLoc(), TypeRange{}, ValueRange{block->getArgument(0)},
      ValueRange{block->getArgument(1)},
      ArrayRef<AffineMap>{identity, identity},
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [](OpBuilder &b, Location l, ValueRange args) {
        linalg::YieldOp::create(b, l, args[0]);
      });
  generic->setAttr(kTaskDimsAttr, inner.getDenseI64ArrayAttr(loops));
  func::ReturnOp::create(inner, func.getLoc());
  symbols.insert(kernel);
  return kernel;
}

void ScheduleBuilder::emitCopy(Location loc, Value source, Value target) {
  func::CallOp::create(builder, loc,
                       copyKernel(cast<MemRefType>(target.getType())),
                       ValueRange{source, target});
}

void ScheduleBuilder::convertCall(func::CallOp call) {
  unsigned numInputs = call.getNumOperands() - call.getNumResults();
  SmallVector<Value> operands;
  for (Value input : call.getOperands().take_front(numInputs))
    operands.push_back(buffers.lookup(input));
  for (auto [index, result] : llvm::enumerate(call.getResults())) {
    Value destination = call.getOperand(numInputs + index);
    Value buffer;
    if (destination.getDefiningOp<tensor::EmptyOp>()) {
      buffer = memref::AllocOp::create(builder, call.getLoc(),
                                       bufferType(destination.getType()));
    } else {
      buffer = buffers.lookup(destination);
      // An update in place needs a value that nobody else will read.
      bool owned =
          buffer.getDefiningOp<memref::AllocOp>() && destination.hasOneUse();
      if (!owned) {
        Value copy = memref::AllocOp::create(builder, call.getLoc(),
                                             bufferType(destination.getType()));
        emitCopy(call.getLoc(), buffer, copy);
        buffer = copy;
      }
    }
    operands.push_back(buffer);
    buffers.map(result, buffer);
  }
  func::CallOp::create(builder, call.getLoc(), call.getCallee(), TypeRange{},
                       operands);
}

/// Lets `alloc` live in the buffer of `target`, an argument, if no value of the
/// argument is needed once the allocation is first written.
bool ScheduleBuilder::takeOver(memref::AllocOp alloc, BlockArgument target) {
  if (alloc.getType() != target.getType())
    return false;
  Operation *firstUse = nullptr;
  for (Operation *user : alloc->getUsers())
    if (!firstUse || user->isBeforeInBlock(firstUse))
      firstUse = user;
  auto call = dyn_cast_or_null<func::CallOp>(firstUse);
  if (!call)
    return false;
  auto operandOf = [&](Value value) {
    return llvm::find(call.getOperands(), value).getIndex();
  };
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  SmallVector<Value> views{target};
  while (!views.empty()) {
    Value view = views.pop_back_val();
    for (Operation *user : view.getUsers()) {
      if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(user)) {
        views.push_back(user->getResult(0));
        continue;
      }
      if (user->isBeforeInBlock(call))
        continue;
      if (user != call || view != target ||
          !safeInPlace(kernel, operandOf(target), operandOf(alloc)))
        return false;
    }
  }
  alloc.getResult().replaceAllUsesWith(target);
  alloc.erase();
  return true;
}

void ScheduleBuilder::convertReturn(func::ReturnOp ret) {
  Block &entry = func.getBody().front();
  Location loc = ret.getLoc();
  auto pathOf = [](DictionaryAttr attrs, StringRef name) -> StringAttr {
    return attrs ? attrs.getAs<StringAttr>(name) : StringAttr();
  };
  struct Copy {
    Value source, target;
  };
  SmallVector<Copy> copies;
  llvm::SmallDenseSet<Value> taken;
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    DictionaryAttr attrs = func.getResultAttrDict(index);
    BlockArgument target;
    if (StringAttr state = pathOf(attrs, kStateAttr))
      for (unsigned i = 0; i < numArguments; ++i)
        if (func.getArgAttrOfType<StringAttr>(i, kPathAttr) == state)
          target = entry.getArgument(numArguments + i);
    if (!target) {
      target = entry.addArgument(bufferType(value.getType()), loc);
      SmallVector<NamedAttribute> named;
      if (attrs)
        named.append(attrs.begin(), attrs.end());
      named.emplace_back("fp8.output", builder.getUnitAttr());
      resultAttrs.push_back(builder.getDictionaryAttr(named));
    }
    Value source = buffers.lookup(value);
    if (source == target)
      continue;
    auto alloc = source.getDefiningOp<memref::AllocOp>();
    bool oldValueReturned = llvm::any_of(ret.getOperands(), [&](Value other) {
      return rootOf(buffers.lookup(other)) == target;
    });
    if (alloc && !oldValueReturned && !taken.contains(source) &&
        llvm::count_if(ret.getOperands(), [&](Value other) {
          return buffers.lookup(other) == source;
        }) == 1) {
      // The mapping of `value` is not asked for again.
      if (takeOver(alloc, target)) {
        buffers.map(value, target);
        continue;
      }
    }
    taken.insert(source);
    copies.push_back({source, target});
  }
  // An argument may be the source of one copy and the target of another: such
  // values pass through a temporary.
  for (Copy &copy : copies)
    if (isa<BlockArgument>(rootOf(copy.source))) {
      Value temporary = memref::AllocOp::create(
          builder, loc, cast<MemRefType>(copy.source.getType()));
      emitCopy(loc, copy.source, temporary);
      copy.source = temporary;
    }
  for (Copy &copy : copies)
    emitCopy(loc, copy.source, copy.target);
  func::ReturnOp::create(builder, loc);
}

LogicalResult ScheduleBuilder::convertOp(Operation &op) {
  builder.setInsertionPoint(&op);
  dead.push_back(&op);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (isa<TensorType>(constant.getType()))
      convertConstant(constant);
    return success();
  }
  if (isa<tensor::EmptyOp>(op))
    return success();
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    buffers.map(expand.getResult(),
                memref::ExpandShapeOp::create(
                    builder, op.getLoc(), bufferType(expand.getType()),
                    bufferOf(expand.getSrc()), expand.getReassociationIndices())
                    .getResult());
    return success();
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    buffers.map(collapse.getResult(),
                memref::CollapseShapeOp::create(
                    builder, op.getLoc(), bufferOf(collapse.getSrc()),
                    collapse.getReassociationIndices())
                    .getResult());
    return success();
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    convertCall(call);
    return success();
  }
  if (auto ret = dyn_cast<func::ReturnOp>(op)) {
    convertReturn(ret);
    return success();
  }
  return op.emitOpError("is not part of a schedule: expected calls of kernels, "
                        "reshapes, constants and return");
}

LogicalResult ScheduleBuilder::run() {
  convertArguments();
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
    if (llvm::is_contained(dead, &op) || failed(convertOp(op)))
      return failure();
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  SmallVector<DictionaryAttr> attrs;
  for (unsigned i = 0; i < numArguments; ++i)
    attrs.push_back(func.getArgAttrDict(i) ? func.getArgAttrDict(i)
                                           : builder.getDictionaryAttr({}));
  llvm::append_range(attrs, resultAttrs);
  Block &entry = func.getBody().front();
  entry.eraseArguments(0, numArguments);
  func.removeResAttrsAttr();
  func.removeArgAttrsAttr();
  func.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(), {}));
  func.setAllArgAttrs(attrs);
  return success();
}

class BufferizeKernels
    : public fp8::impl::BufferizeKernelsBase<BufferizeKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> kernels, schedules;
    for (auto func : module.getOps<func::FuncOp>())
      (func->hasAttr(kDomainAttr) ? kernels : schedules).push_back(func);
    if (failed(bufferizeKernels(kernels, module)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (func::FuncOp schedule : schedules)
      if (failed(ScheduleBuilder(schedule, symbols).run()))
        return signalPassFailure();
  }
};

} // namespace
