//===- GatedUnits.h - Gated units (SwiGLU), found by data flow --*- C++ -*-===//
//
// A gated unit is a linear layer ("down") whose activation is the product of
// the results of two others: `act(x · gate) * (x · linear)`. It is found by
// what the product computes, not by its spelling: an expression of the results
// of two linear layers with the same input. The expression is linear in one
// result and, where that is one, a known activation of the other.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_LINEARLAYERS_GATEDUNITS_H
#define FP8_ANALYSIS_LINEARLAYERS_GATEDUNITS_H

#include "fp8/Analysis/LinearLayers/LinearLayers.h"

#include <optional>
#include <vector>

namespace mlir {
namespace fp8 {

/// The positions of the channels of a gated unit in a parameter: channel i is
/// the part at `start`, advanced by `i * stride` elements of the dimensions
/// `dims` (in row-major order).
struct ParameterChannels {
  std::string path;
  SmallVector<int64_t> dims, start;
  int64_t stride = 1;
  /// The dimensions that a loop over layers iterates over, the outermost first.
  SmallVector<int64_t> layers;
};

struct GatedUnit {
  /// The forward dot of the layer that reads the product, as an index into the
  /// dots of the analysis of linear layers.
  unsigned down = 0;
  /// The factors of the product: the results of the two layers, each with its
  /// bias, as the forward pass reads them. Null if not proven.
  Value gate, linear;
  /// The dots that read the product, as indices, each with the linear branch
  /// that is part of the product it reads: the backward pass may have
  /// recomputed both. Null if the product was stored.
  SmallVector<std::pair<unsigned, Value>, 4> readers;
  /// silu, gelu, gelu_tanh, quick_gelu, relu, sigmoid or identity.
  std::string activation;
  int64_t channels = 0;
  ParameterChannels gateWeight, linearWeight, downWeight;
  std::optional<ParameterChannels> linearBias;
  /// Why something that looks like a gated unit is none; empty if proven.
  std::string why;

  bool isProven() const { return why.empty(); }
};

/// Returns the gated units of a function, found from the forward dots of its
/// linear layers, without recomputed ones.
std::vector<GatedUnit> findGatedUnits(func::FuncOp function,
                                      const LinearLayers &layers);

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_LINEARLAYERS_GATEDUNITS_H
