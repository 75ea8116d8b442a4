//===- CostModel.h - Predicted time of a step on a machine ------*- C++ -*-===//
//
// Predicts the time of a step from what its schedule computes and moves, and
// from the peak rates of a machine.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_COSTMODEL_H
#define FP8_KERNELS_COSTMODEL_H

#include "fp8/Kernels/Communication.h"
#include "fp8/Kernels/CostReport.h"

#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// What can bound a launch: dots of each type, other arithmetic, memory
/// traffic, or the launch overhead.
enum class Bound { DotsF8, Dots16, DotsF32, Arithmetic, Memory, Launch };
inline constexpr unsigned kBounds = 6;
llvm::StringRef nameOf(Bound bound);

/// Peak rates of a machine, per second.
struct Machine {
  std::string name;
  /// Floating-point operations of dots on f8, on 16-bit types and on f32.
  std::array<double, 3> dotFlops = {0, 0, 0};
  /// F32 additions outside of dots, and bytes of memory traffic.
  double operations = 0, bytes = 0;
  /// Seconds from the end of a launch to the beginning of the next one.
  double launchSeconds = 0;
};

/// Returns the machine called `name`. The rates of `cpu` come from the file at
/// `limitsPath`, which `fp8-run --profile` wrote.
llvm::Expected<Machine> machineOf(llvm::StringRef name,
                                  llvm::StringRef limitsPath);

struct PredictedLaunch {
  const LaunchCost *launch = nullptr;
  /// Seconds of one run.
  double seconds = 0;
  Bound bound = Bound::Memory;
};

struct PredictedStep {
  Machine machine;
  Cost total;
  std::vector<PredictedLaunch> launches;
  double seconds = 0;
  /// Seconds of the launches that each bound limits.
  std::array<double, kBounds> secondsOf = {};
  /// Set for several ranks. Its `exposed` time comes on top of `seconds`.
  std::optional<Communication> communication;

  void printJSON(llvm::raw_ostream &os) const;
  void printTable(llvm::raw_ostream &os) const;
};

/// Predicts the step of `report`, which must outlive the result.
PredictedStep predict(const CostReport &report, const Machine &machine);

} // namespace mlir::fp8

#endif // FP8_KERNELS_COSTMODEL_H
