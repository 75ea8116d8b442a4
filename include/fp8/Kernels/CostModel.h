//===- CostModel.h - How long a step takes on a machine ---------*- C++ -*-===//
//
// What a schedule computes and moves, beside what a machine can do at most.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_COSTMODEL_H
#define FP8_KERNELS_COSTMODEL_H

#include "fp8/Kernels/Communication.h"
#include "fp8/Kernels/CostReport.h"

#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// What can bound a launch: the dots of each type, other arithmetic, bytes, and
/// that it is launched at all.
enum class Bound { DotsF8, Dots16, DotsF32, Arithmetic, Memory, Launch };
inline constexpr unsigned kBounds = 6;
llvm::StringRef nameOf(Bound bound);

/// Rates of a machine, in a second.
struct Machine {
  std::string name;
  /// Floating-point operations of dots: of f8, of 16 bits, of f32.
  std::array<double, 3> dotFlops = {0, 0, 0};
  /// Additions in f32 beside dots; bytes.
  double operations = 0, bytes = 0;
  /// From the end of a launch to the beginning of the next one.
  double launchSeconds = 0;
};

/// The machine of this name. That of `cpu` has the rates in a file that
/// `fp8-run --profile` wrote.
llvm::Expected<Machine> machineOf(llvm::StringRef name,
                                  llvm::StringRef limitsPath);

struct PredictedLaunch {
  const LaunchCost *launch = nullptr;
  /// Of one run.
  double seconds = 0;
  Bound bound = Bound::Memory;
};

struct PredictedStep {
  Machine machine;
  Cost total;
  std::vector<PredictedLaunch> launches;
  double seconds = 0;
  /// Of the launches that each bounds.
  std::array<double, kBounds> secondsOf = {};
  /// Of several ranks; what is waited for comes on top of `seconds`.
  std::optional<Communication> communication;

  void printJSON(llvm::raw_ostream &os) const;
  void printTable(llvm::raw_ostream &os) const;
};

/// The step of `report`, which has to live as long as the result.
PredictedStep predict(const CostReport &report, const Machine &machine);

} // namespace mlir::fp8

#endif // FP8_KERNELS_COSTMODEL_H
