//===- Quantizer.h - Dots on quantized operands -----------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_QUANTIZER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_QUANTIZER_H

#include "../Seeds.h"
#include "DelayedScaling.h"
#include "WeightCopies.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <vector>

namespace mlir {
namespace fp8 {

/// How an operand of a dot is quantized.
struct OperandPlan {
  OperandRecipe recipe;
  bool isWeight = false;
  /// How the activation of a wgrad dot gets its payload.
  SecondPayload copy = SecondPayload::Saved;
  /// Whether the operand's amaxes are over rows that differ by rank, and the
  /// amaxes of all ranks are wanted.
  bool overRanks = false;
  /// The name of the tensor's scale state.
  std::string name = {};
};

/// How a dot is rewritten.
struct DotPlan {
  stablehlo::DotGeneralOp dot;
  OperandPlan lhs, rhs;
  AccumulatorRecipe accumulator;
};

/// Rewrites dots of one function. All dots are added before any is rewritten,
/// because where a tensor is quantized depends on all dots that read it.
class Quantizer {
public:
  /// `seed` is the seed of stochastic rounding. With `nameTensors` a dot gets
  /// the names of its operands as an attribute. `weightCopies` says whether
  /// weights with delayed scales are quantized by the step that updates them.
  Quantizer(func::FuncOp function, int64_t seed, bool nameTensors = false,
            WeightCopyTime weightCopies = WeightCopyTime::Step)
      : function(function), nameTensors(nameTensors),
        builder(function.getContext()), seeds(function, seed),
        delayed(function), weightCopies(weightCopies),
        copies(function, delayed) {}

  void add(const DotPlan &plan);
  LogicalResult rewrite();

  int64_t getNumQuantized() const { return numQuantized; }

private:
  /// An operand of a dot: a value and what the dot does with its dimensions.
  struct Operand {
    Value value;
    SmallVector<int64_t> batching, contracting;
    unsigned group = 0;
    Value scaled = {};
  };
  /// Operands that share a quantization: their values are layouts of `point`.
  struct Group {
    OperandRecipe recipe;
    SmallVector<int64_t> tile;
    Value root, point;
    bool isWeight = false, overRanks = false;
    SecondPayload copy = SecondPayload::Saved;
    /// The name of its scale state, and what its dots show about the layer.
    std::string name;
    LayerLoops::Evidence layer;
    /// The dots that read it.
    SmallVector<Operation *> dots;
    Value quantized = {};
    /// Other layouts of the payload, made on demand.
    DenseMap<Value, Value> views;

    /// Quantizes another layout of the tensor, which has one scale.
    void moveTo(Value layout) {
      point = layout;
      tile.assign(cast<RankedTensorType>(layout.getType()).getRank(),
                  ScaledType::kWhole);
    }
  };
  struct Dot {
    DotPlan plan;
    Operand lhs, rhs;
  };
  /// The weights of all layers, quantized outside of the loop over them.
  struct Stack {
    Value source;
    Type type;
    OperandRecipe recipe;
    Value quantized;
  };

  void mergeDims(Dot &dot);
  Value permuteAndReshape(Value value, ArrayRef<int64_t> permutation,
                          ArrayRef<int64_t> shape);
  void arrange(Operand &operand, bool mergeFree);
  void addOperand(Operand &operand, const OperandPlan &plan, Operation *dot);
  Value getQuantized(Group &group);
  Value getAmax(Value value, ScaledType type, bool early, Location loc);
  Value getAmaxOfRanks(Value amax, StringRef name);
  std::optional<DelayedScaling::Amax>
  getSavedAmax(Value value, ArrayRef<LayerSlot> slots, bool early);
  Value quantize(Value value, const Group &group, ArrayRef<int64_t> tile,
                 Block *home, bool early, Location loc);
  Value getQuantizedStack(Group &group, Value source,
                          ArrayRef<Type> conversions);
  Value quantizeStack(Group &group, stablehlo::DynamicSliceOp slice,
                      ArrayRef<Type> conversions);
  Value quantizeAtReader(Group &group, Operation *first);
  Value getView(Group &group, Value value);
  Value getScaled(Operand &operand);
  Value rewriteDot(Dot &dot);
  void eraseUnread();

  func::FuncOp function;
  bool nameTensors;
  OpBuilder builder;
  std::vector<Dot> dots;
  std::vector<Group> groups;
  LayerLoops layerLoops;
  /// Layout ops between the quantized tensors and the dots.
  llvm::SetVector<Operation *> layouts;
  /// The existing amaxes, by value and tile.
  DenseMap<std::pair<Value, Attribute>, Value> amaxes;
  /// The amaxes that are reduced over ranks.
  DenseMap<Value, Value> amaxesOfRanks;
  std::vector<Stack> stacks;
  /// Operands arranged in the form that a tile needs.
  DenseMap<std::pair<Value, Attribute>, Value> arranged;
  /// For stochastic rounding: the seeds, and the numbers of the rounded
  /// tensors.
  Seeds seeds;
  DenseMap<Value, int64_t> tensors;
  DelayedScaling delayed;
  WeightCopyTime weightCopies;
  WeightCopies copies;
  int64_t numQuantized = 0;
};

/// Sets the insertion point to where a value is quantized: right after its
/// definition, or, if it is an argument, right before its first reader.
void setInsertionPointToQuantize(OpBuilder &builder, Value value);

/// Returns the element type of a format.
FloatType getFormatType(Format format, MLIRContext *context);

/// Returns the tile of an operand whose rows lie along the contraction.
SmallVector<int64_t> getTile(Tiling tile, ArrayRef<int64_t> shape,
                             ArrayRef<int64_t> batching,
                             ArrayRef<int64_t> contracting);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_QUANTIZER_H
