//===- CostReport.h - Arithmetic and traffic of launches --------*- C++ -*-===//
//
// Counts arithmetic and memory traffic of each launch from its kernel. The
// counts describe the program of the kernels stage, not a machine: they say
// what has to be done, regardless of caches and vectors.
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

/// The cost of one run of a kernel.
struct Cost {
  /// Floating-point additions, subtractions, multiplications and divisions, and
  /// one for each math function (exp, sqrt, ...). Comparisons, selections and
  /// casts do not count.
  double flops = 0;
  /// Of these, the multiplications and additions of dots: 2 M N K.
  double dotFlops = 0;
  /// `dotFlops` by the type in which operands are multiplied: f8, 16 bits, f32.
  std::array<double, 3> dotFlopsByType = {0, 0, 0};
  /// The cost of everything outside of dots in additions: a math function
  /// counts as the additions of its polynomial, a cast to or from f8 as those
  /// of its rounding.
  double operations = 0;
  /// Bytes of all operands, each counted once, or twice if the kernel updates
  /// it.
  double bytes = 0;

  Cost &add(const Cost &other, double times);
};

/// A launch of the schedule.
struct LaunchCost {
  int64_t number = 0;
  std::string label;
  Cost cost;
  /// How often a step runs it; nullopt if that depends on data.
  std::optional<int64_t> runs;
};

struct CostReport {
  /// Sorted by number.
  std::vector<LaunchCost> launches;

  /// The cost of one step. Launches whose number of runs depends on data count
  /// once.
  Cost total() const;
  /// Returns true if no launch's number of runs depends on data.
  bool isExact() const;
  void printJSON(llvm::raw_ostream &os) const;
};

/// Makes the report of a module after the kernels stage.
CostReport makeCostReport(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_KERNELS_COSTREPORT_H
