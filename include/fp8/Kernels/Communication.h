//===- Communication.h - Predicted time of collectives ----------*- C++ -*-===//
//
// Predicts the time of a schedule's collectives on a network, and how much of
// it computation hides.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_COMMUNICATION_H
#define FP8_KERNELS_COMMUNICATION_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// The network that joins the ranks.
struct Network {
  std::string name;
  int64_t ranks = 1;
  /// Bytes that a rank can send in a second while it receives as many, and
  /// seconds that a message takes from one rank to another.
  double bytes = 0, latency = 0;
};

/// Returns the network called `name` between `ranks` ranks. `name` may also be
/// `GB/s:microseconds`.
llvm::Expected<Network> networkOf(llvm::StringRef name, int64_t ranks);

struct PredictedCollective {
  std::string label, wire;
  int64_t runs = 1;
  /// Bytes that a rank sends in one run, and seconds that the run takes alone.
  double bytes = 0, seconds = 0;
};

struct Communication {
  Network network;
  std::vector<PredictedCollective> collectives;
  /// Totals of a step: bytes that a rank sends, seconds of transfer, and
  /// seconds that launches wait for it.
  double bytes = 0, seconds = 0, exposed = 0;
  /// Elements of the parameters that the step trains.
  int64_t parameters = 0;
};

/// Predicts the collectives of the schedules of `module`. They run on the
/// network one after another, each from its start op on, beside launches that
/// take `secondsOf`.
Communication
predictCommunication(ModuleOp module, const Network &network,
                     llvm::function_ref<double(LaunchOp)> secondsOf);

} // namespace mlir::fp8

#endif // FP8_KERNELS_COMMUNICATION_H
