//===- Alignment.cpp - Alignment of launch operands -----------------------===//

#include "Alignment.h"
#include "BlockLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Returns a number that divides `index` for all values of its variables.
static int64_t knownDivisor(Value index) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant;
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return knownDivisor(op->getOperand(0));
  if (isa_and_nonnull<arith::MulIOp>(op))
    return knownDivisor(op->getOperand(0)) * knownDivisor(op->getOperand(1));
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return std::gcd(knownDivisor(op->getOperand(0)),
                    knownDivisor(op->getOperand(1)));
  return 1;
}

int64_t gpu_codegen::alignmentOf(Value buffer) {
  if (auto part = buffer.getDefiningOp<SubbufferOp>()) {
    int64_t bytes =
        elementBytes(cast<MemRefType>(buffer.getType()).getElementType());
    int64_t offset = std::abs(knownDivisor(part.getOffset())) * bytes;
    return std::gcd(alignmentOf(part.getSource()),
                    std::gcd(offset, kLocalAlignment));
  }
  if (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    return std::min(kLocalAlignment, alignmentOf(view.getViewSource()));
  return kLocalAlignment;
}

LaunchAlignments::LaunchAlignments(ModuleOp module) {
  module.walk([&](LaunchOp launch) {
    SmallVector<int64_t> &least = known[launch.getKernel()];
    least.resize(launch.getAccesses().size(), kLocalAlignment);
    for (auto [index, operand] : llvm::enumerate(launch.getOperands())) {
      int64_t &ofArgument = least[launch.getArgument(index)];
      ofArgument = std::min(ofArgument, alignmentOf(operand));
    }
  });
}

SmallVector<int64_t> LaunchAlignments::of(KernelOp kernel) const {
  auto found = known.find(kernel.getSymName());
  return found == known.end()
             ? SmallVector<int64_t>(kernel.getNumArguments(), kLocalAlignment)
             : found->second;
}
