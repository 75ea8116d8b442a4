//===- KernelFlow.cpp - Dependences of a kernel's outputs -----------------===//

#include "KernelFlow.h"

#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

void KernelFlow::Output::add(const Output &other) {
  any |= other.any;
  withoutDot |= other.withoutDot;
  elementwise |= other.elementwise;
  fromDot |= other.fromDot;
}

namespace {

/// Follows the flow of data through the ops of a kernel in program order.
class FlowBuilder {
public:
  FlowBuilder(KernelOp kernel, KernelFlow &result)
      : kernel(kernel), result(result), size(kernel.getNumArguments()) {}

  /// Returns false if the accesses of some op are not known.
  bool run();

private:
  bool visit(Operation &op);
  KernelFlow::Output flowOf(ArrayRef<MemoryAccess> accesses,
                            linalg::GenericOp generic);
  KernelFlow::Dot dotOf(linalg::GenericOp generic);
  void write(Value memory, const KernelFlow::Output &flow);

  KernelOp kernel;
  KernelFlow &result;
  unsigned size;
  DenseMap<Value, KernelFlow::Output> flows;
  DenseSet<Value> written;
};

} // namespace

/// Merges the flow of the buffers that an op reads. `generic` is the op if it
/// is a linalg.generic, else null.
KernelFlow::Output FlowBuilder::flowOf(ArrayRef<MemoryAccess> accesses,
                                       linalg::GenericOp generic) {
  bool isElementwise = generic && allParallel(generic);
  KernelFlow::Output flow(size);
  for (auto [memory, reads, writes] : accesses) {
    auto it = flows.find(memory);
    if (!reads || it == flows.end())
      continue;
    flow.any |= it->second.any;
    flow.withoutDot |= it->second.withoutDot;
    flow.fromDot |= it->second.fromDot;
    if (isElementwise && cast<MemRefType>(memory.getType()).getNumElements() ==
                             iterationVolume(generic))
      flow.elementwise |= it->second.elementwise;
  }
  return flow;
}

/// Returns the operands and extents of a dot.
KernelFlow::Dot FlowBuilder::dotOf(linalg::GenericOp generic) {
  ContractionDims dims = *inferContractionDims(generic);
  SmallVector<int64_t> extents = generic.getStaticLoopRanges();
  KernelFlow::Dot dot{llvm::BitVector(size),
                      llvm::BitVector(size),
                      iterationsOf(dims.batch, extents),
                      iterationsOf(dims.m, extents),
                      iterationsOf(dims.n, extents),
                      iterationsOf(dims.k, extents)};
  for (OpOperand *input : generic.getDpsInputOperands()) {
    auto it = flows.find(memoryOf(input->get()));
    if (it == flows.end())
      continue;
    AffineMap map = generic.getMatchingIndexingMap(input);
    auto reads = [&](ArrayRef<unsigned> loops) {
      return llvm::any_of(
          loops, [&](unsigned loop) { return map.isFunctionOfDim(loop); });
    };
    if (reads(dims.m))
      dot.lhs |= it->second.any;
    if (reads(dims.n))
      dot.rhs |= it->second.any;
  }
  return dot;
}

void FlowBuilder::write(Value memory, const KernelFlow::Output &flow) {
  KernelFlow::Output &known = flows[memory];
  // Parts of a result may be written one after another.
  if (written.insert(memory).second)
    known = flow;
  else
    known.add(flow);
  auto arg = dyn_cast<BlockArgument>(memory);
  if (arg && arg.getOwner()->getParentOp() == kernel)
    result.outputs[arg.getArgNumber()] = known;
}

bool FlowBuilder::visit(Operation &op) {
  std::optional<SmallVector<MemoryAccess>> accesses = accessesOf(&op);
  if (!accesses)
    return false;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  KernelFlow::Output flow = flowOf(*accesses, generic);
  if (generic && isDot(generic)) {
    result.dot = dotOf(generic);
    flow.withoutDot.reset();
    flow.fromDot = true;
  }
  for (auto [memory, reads, writes] : *accesses)
    if (writes)
      write(memory, flow);
  return true;
}

bool FlowBuilder::run() {
  for (BlockArgument arg : kernel.getArguments()) {
    KernelFlow::Output flow(size);
    flow.any.set(arg.getArgNumber());
    flow.withoutDot.set(arg.getArgNumber());
    flow.elementwise.set(arg.getArgNumber());
    flows[arg] = flow;
  }
  return llvm::all_of(kernel.getBody().front(),
                      [&](Operation &op) { return visit(op); });
}

/// Assumes that each output of a kernel depends on all of its inputs.
static void assumeAll(KernelOp kernel, KernelFlow &result) {
  unsigned size = kernel.getNumArguments();
  KernelFlow::Output all(size);
  for (unsigned i = 0; i < size; ++i)
    if (kernel.getAccess(i) != Access::Write)
      all.any.set(i);
  all.withoutDot = all.any;
  for (unsigned i = 0; i < size; ++i)
    if (kernel.getAccess(i) != Access::Read)
      result.outputs[i] = all;
}

KernelFlow::KernelFlow(KernelOp kernel) : outputs(kernel.getNumArguments()) {
  if (kernel.isExternal() || !FlowBuilder(kernel, *this).run())
    assumeAll(kernel, *this);
}
