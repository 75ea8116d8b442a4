//===- CostReport.h - What a schedule computes and moves --------*- C++ -*-===//
//
// Arithmetic and memory traffic of each launch, counted from its kernel. The
// numbers are of the program as it is written in the kernels stage, not of the
// machine: they say what has to be done, not what caches or vectors make of it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_COSTREPORT_H
#define FP8_KERNELS_COSTREPORT_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Support/LLVM.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir::fp8 {

/// What one run of a kernel does.
struct Cost {
  /// Floating-point additions, subtractions, multiplications and divisions, and
  /// one for each math function (exp, sqrt, ...); comparisons, selections and
  /// casts are none.
  double flops = 0;
  /// Of these, the multiplications and additions of dots: 2 M N K.
  double dotFlops = 0;
  /// Of these, by what both operands are multiplied as: f8, 16 bits, f32.
  std::array<double, 3> dotFlopsByType = {0, 0, 0};
  /// What the elements of everything else take, in additions: a function as
  /// many as its polynomial has, a cast to f8 as many as rounding it.
  double operations = 0;
  /// Every operand once, as far as the kernel may read or write it (both, of
  /// one that it updates).
  double bytes = 0;

  Cost &add(const Cost &other, double times);
};

/// A launch of the schedule.
struct LaunchCost {
  int64_t number = 0;
  std::string label;
  Cost cost;
  /// How often a step runs it; nothing where data decide.
  std::optional<int64_t> runs;
};

struct CostReport {
  /// By number.
  std::vector<LaunchCost> launches;

  /// One step; what data decide counts once.
  Cost total() const;
  /// Whether data decide how often some launch runs.
  bool isExact() const;
  void printJSON(llvm::raw_ostream &os) const;
};

/// Of a module after the kernels stage.
CostReport makeCostReport(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_KERNELS_COSTREPORT_H
