//===- Structure.cpp - Attributes and queries of kernels ------------------===//

#include "fp8/Kernels/Structure.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Support/StructuralHash.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fp8;

/// Checks that every reduction loop of an op reduces. (One that some outputs
/// have as an index and others do not is that of several fused ops.)
static LogicalResult verifyReductions(linalg::GenericOp op) {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  for (unsigned loop : loops)
    if (llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
          return op.getMatchingIndexingMap(&init).isFunctionOfDim(loop);
        }))
      return op.emitOpError("expected an output without an index of loop ")
             << loop << ", a reduction";
  return success();
}

/// Checks that a kernel divides into its slices.
static LogicalResult verifySlices(KernelOp kernel) {
  auto slices = kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kSlicesAttrName);
  ArrayRef<int64_t> domain = kernel.getDomain();
  if (!slices || domain.empty() || domain[0] % slices.getInt() == 0)
    return success();
  return kernel.emitOpError("expected attribute '")
         << FP8Dialect::kSlicesAttrName << "' to divide the leading dimension "
         << domain[0] << " of the domain but got " << slices.getInt();
}

LogicalResult fp8::verifyBody(KernelOp kernel) {
  if (failed(verifySlices(kernel)))
    return failure();
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (!isa<MemRefType>(type))
      return kernel.emitOpError("expected argument ")
             << index << " of a kernel to be a buffer but got " << type;
  if (kernel.isExternal())
    return success();
  for (Operation &op : kernel.getBody().front()) {
    if (!isa<linalg::GenericOp, linalg::FillOp, scf::ForOp, memref::AllocOp,
             ReturnOp>(op) &&
        !isa<arith::ArithDialect>(op.getDialect()))
      return op.emitOpError(
          "is not part of a kernel: expected linalg.generic, linalg.fill, "
          "scf.for, memref.alloc or arith ops");
    if (isa<linalg::GenericOp, scf::ForOp>(op) &&
        !op.hasAttr(FP8Dialect::kTaskDimsAttrName))
      return op.emitOpError("expected attribute '")
             << FP8Dialect::kTaskDimsAttrName << "'";
    if (auto generic = dyn_cast<linalg::GenericOp>(op);
        generic && failed(verifyReductions(generic)))
      return failure();
  }
  return success();
}

LogicalResult fp8::verifyLaunches(ModuleOp module) {
  SymbolTable symbols(module);
  WalkResult result = module.walk([&](LaunchOp launch) {
    if (symbols.lookup<KernelOp>(launch.getKernel()))
      return WalkResult::advance();
    launch.emitOpError() << "expected '@" << launch.getKernel()
                         << "' to be a fp8.kernel: the pass runs before "
                            "fp8-codegen";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

std::string fp8::nameOfContents(KernelOp kernel) {
  return "kernel_" + structuralHash(kernel);
}

func::FuncOp fp8::moveToFunction(OpBuilder &builder, FunctionOpInterface op,
                                 StringRef name) {
  Block &body = op.getFunctionBody().front();
  Operation *end = body.getTerminator();
  auto func = func::FuncOp::create(
      builder, op.getLoc(), name,
      builder.getFunctionType(body.getArgumentTypes(), end->getOperandTypes()));
  OpBuilder atEnd(end);
  func::ReturnOp::create(atEnd, end->getLoc(), end->getOperands());
  end->erase();
  func.getBody().takeBody(op.getFunctionBody());
  return func;
}

int64_t fp8::bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? byteSize(type) : 0;
}

int64_t fp8::elementsOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 0;
}

bool fp8::isTensorView(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool fp8::allParallel(linalg::LinalgOp op) {
  return op.getNumParallelLoops() == op.getNumLoops();
}

std::optional<unsigned> fp8::plainPosition(AffineMap map, unsigned dim) {
  std::optional<unsigned> position;
  for (auto [index, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(dim))
      continue;
    if (position || !isa<AffineDimExpr>(expr))
      return std::nullopt;
    position = index;
  }
  return position;
}

linalg::GenericOp
fp8::createElementwise(OpBuilder &builder, Location loc, Value value,
                       Type element,
                       function_ref<Value(OpBuilder &, Location, Value)> body) {
  auto type = cast<RankedTensorType>(value.getType()).clone(element);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  return linalg::GenericOp::create(
      builder, loc, type, value, empty, ArrayRef<AffineMap>{identity, identity},
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [&](OpBuilder &b, Location at, ValueRange elements) {
        linalg::YieldOp::create(b, at,
                                body ? body(b, at, elements[0]) : elements[0]);
      });
}

bool fp8::isCopy(linalg::GenericOp op) {
  Block *body = op.getBody();
  return op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 &&
         allParallel(op) &&
         body->getTerminator()->getOperand(0) == body->getArgument(0);
}

bool fp8::isTranspose(linalg::GenericOp op) {
  if (!isCopy(op) || !isFormat(op.getBody()->getArgument(0).getType()))
    return false;
  Value output = op.getOutputs()[0];
  bool isShared = llvm::any_of(output.getUsers(), [&](Operation *user) {
    return user != op && isa<linalg::LinalgOp>(user);
  });
  if (!isa<BlockArgument>(output) || isShared)
    return false;
  AffineMap from = op.getIndexingMapsArray()[0];
  AffineMap to = op.getIndexingMapsArray()[1];
  return from.isPermutation() && to.isPermutation() &&
         from.getResults().back() != to.getResults().back();
}

void fp8::setIndexingMap(OpOperand &operand, AffineMap map) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[operand.getOperandNumber()] = map;
  op.setIndexingMapsAttr(Builder(op).getAffineMapArrayAttr(maps));
}

int64_t fp8::iterationVolume(linalg::LinalgOp op) {
  return llvm::product_of(op.getStaticLoopRanges());
}

Operation *fp8::reductionCombiner(linalg::GenericOp op, unsigned index) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  Operation *combiner = yield.getOperand(index).getDefiningOp();
  BlockArgument running = op.getRegionOutputArgs()[index];
  if (!combiner || combiner->getNumOperands() != 2 ||
      combiner->getNumResults() != 1 || !running.hasOneUse() ||
      *running.user_begin() != combiner)
    return nullptr;
  return arith::getNeutralElement(combiner) ? combiner : nullptr;
}
