//===- GatedUnits.h - SwiGLU and its kin, found by data flow ----*- C++ -*-===//
//
// A gated unit is a linear layer ("down") whose activation is the product of
// two others' results: `act(x · gate) * (x · linear)`. It is found by what the
// product computes, not by its spelling: an expression of two results of linear
// layers with the same input that is linear in one of them and, for a value of
// one there, one of the known activations of the other.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_GATEDUNITS_H
#define FP8_ANALYSIS_GATEDUNITS_H

#include "fp8/Analysis/LinearLayers.h"

#include <optional>
#include <vector>

namespace mlir {
namespace fp8 {

/// Where the channels of a gated unit lie in a parameter: channel i is the part
/// at `start`, moved on by `i * stride` elements of the dimensions `dims` (in
/// row-major order).
struct ParameterChannels {
  std::string path;
  SmallVector<int64_t> dims, start;
  int64_t stride = 1;
  /// The dimensions that a loop over layers runs over, the outermost first.
  SmallVector<int64_t> layers;
};

struct GatedUnit {
  /// The forward dot of the layer that reads the product, by its place among
  /// the dots of the analysis of linear layers.
  unsigned down = 0;
  /// What the product is made of: the results of the two layers, each with its
  /// bias, as the forward pass reads them. Null if not proven.
  Value gate, linear;
  /// The dots that read the product, by their places, and the linear branch as
  /// the product that each one reads does: the backward pass may have computed
  /// both again. Null where the product was stored.
  SmallVector<std::pair<unsigned, Value>, 4> readers;
  /// silu, gelu, gelu_tanh, quick_gelu, relu, sigmoid or identity.
  std::string activation;
  int64_t channels = 0;
  ParameterChannels gateWeight, linearWeight, downWeight;
  std::optional<ParameterChannels> linearBias;
  /// Why what looks like a gated unit is none; empty for a proven one.
  std::string why;

  bool isProven() const { return why.empty(); }
};

/// The gated units of a function, by the forward dots of its linear layers (not
/// those that are computed again for the backward pass).
std::vector<GatedUnit> findGatedUnits(func::FuncOp function,
                                      const LinearLayers &layers);

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_GATEDUNITS_H
