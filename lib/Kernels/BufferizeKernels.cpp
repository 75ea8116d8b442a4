//===- BufferizeKernels.cpp - Bufferization, kernel by kernel -------------===//

#include "BuildSchedule.h"

#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
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

/// Moves the body of `kernel` into a function, which upstream's bufferization
/// understands.
func::FuncOp toFunction(KernelOp kernel, OpBuilder &builder) {
  func::FuncOp func = moveToFunction(builder, kernel, kernel.getSymName());
  func.setPrivate();
  // Other ops read a read-only input, too: a loop that carries it must copy it.
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.getAccess(i) == Access::Read)
      func.setArgAttr(i, bufferization::BufferizationDialect::kWritableAttrName,
                      builder.getBoolAttr(false));
  return func;
}

/// Copies values of which ops write a part, as those of a concatenation do, if
/// they may not write them in place. Upstream takes such a value for one that
/// is overwritten, and would leave out the rest.
void copyPartlyWritten(func::FuncOp func) {
  auto isReadOnly = [&](Value value) {
    auto arg = dyn_cast<BlockArgument>(value);
    return arg && arg.getOwner()->getParentOp() == func &&
           func.getArgAttr(
               arg.getArgNumber(),
               bufferization::BufferizationDialect::kWritableAttrName);
  };
  func.walk([&](linalg::GenericOp op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      Value value = init.get();
      if (writesAll(op, init) || value.getDefiningOp<tensor::EmptyOp>() ||
          (value.hasOneUse() && !isReadOnly(value)))
        continue;
      OpBuilder builder(op);
      init.set(bufferization::AllocTensorOp::create(
          builder, op.getLoc(), cast<RankedTensorType>(value.getType()),
          /*dynamicSizes=*/ValueRange(), /*copy=*/value));
    }
  });
}

/// Gives `kernel` the body of its function on buffers. Drops the results, which
/// are destinations by construction.
LogicalResult takeBodyOf(func::FuncOp func, KernelOp kernel) {
  auto end = cast<func::ReturnOp>(func.getBody().front().getTerminator());
  SmallVector<Value> destinations;
  for (BlockArgument arg : func.getArguments())
    if (kernel.getAccess(arg.getArgNumber()) != Access::Read)
      destinations.push_back(arg);
  for (auto [index, value] : llvm::enumerate(end.getOperands()))
    if (value != destinations[index])
      return end.emitOpError("expected result ")
             << index << " of a kernel to be written in place";
  OpBuilder builder(end);
  ReturnOp::create(builder, end.getLoc());
  end.erase();
  kernel.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), {}));
  kernel.getBody().takeBody(func.getBody());
  for (Value destination : destinations) {
    auto arg = cast<BlockArgument>(destination);
    Access access = accessOf(arg);
    // The kernel must write its destination even if the body never does.
    kernel.setAccess(arg.getArgNumber(),
                     access == Access::Read ? Access::Update : access);
  }
  return success();
}

/// Gives the declaration of an external kernel buffers as arguments.
void declareOnBuffers(KernelOp kernel) {
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    types.push_back(
        tensor ? MemRefType::get(tensor.getShape(), tensor.getElementType())
               : type);
  }
  kernel.setFunctionType(
      FunctionType::get(kernel.getContext(), types, /*results=*/{}));
}

/// Runs one-shot bufferization on the kernels in a module of their own.
LogicalResult bufferizeKernels(ArrayRef<KernelOp> kernels, ModuleOp module) {
  OwningOpRef<ModuleOp> scratch(ModuleOp::create(module.getLoc()));
  OpBuilder builder = OpBuilder::atBlockBegin(scratch->getBody());
  SmallVector<func::FuncOp> functions;
  for (KernelOp kernel : kernels) {
    functions.push_back(toFunction(kernel, builder));
    copyPartlyWritten(functions.back());
  }
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.setFunctionBoundaryTypeConversion(
      bufferization::LayoutMapOption::IdentityLayoutMap);
  // Only loops inside of one task carry values, so that one task copies them.
  options.memCpyFn = [](OpBuilder &b, Location loc, Value from, Value to) {
    linalg::GenericOp copy = linalg::makeMemRefCopyOp(b, loc, from, to);
    copy->setAttr(FP8Dialect::kTaskDimsAttrName, b.getDenseI64ArrayAttr({}));
    return success();
  };
  bufferization::BufferizationState state;
  if (failed(bufferization::runOneShotModuleBufferize(scratch->getOperation(),
                                                      options, state)))
    return failure();
  // A loop that carries a buffer yields the same buffer: canonicalization
  // removes it from the carried values.
  RewritePatternSet patterns(module.getContext());
  scf::ForOp::getCanonicalizationPatterns(patterns, module.getContext());
  FrozenRewritePatternSet frozen(std::move(patterns));
  for (auto [func, kernel] : llvm::zip(functions, kernels))
    if ((!func.getOps<scf::ForOp>().empty() &&
         failed(applyPatternsGreedily(func, frozen))) ||
        failed(takeBodyOf(func, kernel)))
      return failure();
  return success();
}

class BufferizeKernels
    : public fp8::impl::BufferizeKernelsBase<BufferizeKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(verifyLaunches(module)))
      return signalPassFailure();
    SmallVector<KernelOp> kernels;
    for (auto kernel : module.getOps<KernelOp>()) {
      if (kernel.isExternal())
        declareOnBuffers(kernel);
      else if (llvm::any_of(kernel.getArgumentTypes(),
                            llvm::IsaPred<TensorType>))
        kernels.push_back(kernel);
    }
    if (failed(bufferizeKernels(kernels, module)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (!func.isDeclaration() && failed(buildSchedule(func, symbols)))
        return signalPassFailure();
  }
};

} // namespace
