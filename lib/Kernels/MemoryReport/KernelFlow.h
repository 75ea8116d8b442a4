//===- KernelFlow.h - Dependences of a kernel's outputs ---------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_MEMORYREPORT_KERNELFLOW_H
#define FP8_LIB_KERNELS_MEMORYREPORT_KERNELFLOW_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "llvm/ADT/BitVector.h"

#include <optional>

namespace mlir::fp8::memory {

/// The arguments that each output of a kernel depends on, by argument number.
struct KernelFlow {
  struct Output {
    /// The arguments that it depends on at all, on a path without the kernel's
    /// dot, and elementwise.
    llvm::BitVector any, withoutDot, elementwise;
    bool fromDot = false;

    Output() = default;
    explicit Output(unsigned numArguments)
        : any(numArguments), withoutDot(numArguments),
          elementwise(numArguments) {}
    void add(const Output &other);
  };
  struct Dot {
    llvm::BitVector lhs, rhs;
    int64_t batch = 1, m = 1, n = 1, k = 1;
  };
  SmallVector<std::optional<Output>> outputs; // by argument
  std::optional<Dot> dot;

  explicit KernelFlow(KernelOp kernel);
};

} // namespace mlir::fp8::memory

#endif // FP8_LIB_KERNELS_MEMORYREPORT_KERNELFLOW_H
