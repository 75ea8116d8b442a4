//===- Communication.h - What ranks exchange in a step ----------*- C++ -*-===//
//
// The collectives of a schedule on a network, and what of them computing hides.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_COMMUNICATION_H
#define FP8_KERNELS_COMMUNICATION_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// What joins the ranks.
struct Network {
  std::string name;
  int64_t ranks = 1;
  /// Bytes that a rank sends in a second, while it receives as many; seconds
  /// from one rank to another.
  double bytes = 0, latency = 0;
};

/// The network of this name, or `GB/s:microseconds`, between `ranks` ranks.
llvm::Expected<Network> networkOf(llvm::StringRef name, int64_t ranks);

struct PredictedCollective {
  std::string label, wire;
  int64_t runs = 1;
  /// Of one run: what a rank sends, and how long it is on its way alone.
  double bytes = 0, seconds = 0;
};

struct Communication {
  Network network;
  std::vector<PredictedCollective> collectives;
  /// Of a step: sent by a rank; on their way; waited for.
  double bytes = 0, seconds = 0, exposed = 0;
};

/// The collectives of the schedules of `module`, one after another on the
/// network from when each is begun, beside launches that take `secondsOf`.
Communication
predictCommunication(ModuleOp module, const Network &network,
                     llvm::function_ref<double(LaunchOp)> secondsOf);

} // namespace mlir::fp8

#endif // FP8_KERNELS_COMMUNICATION_H
