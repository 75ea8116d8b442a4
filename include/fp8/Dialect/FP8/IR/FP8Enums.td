//===- FP8Enums.td - Enums of recipes and the dialect ------*- tablegen -*-===//
//
// Recipes (include/fp8/Support/Recipe.h), analyses and the dialect's attributes
// share these enums. TableGen generates their C++ types and spellings; the
// spellings are those of recipe files, of reports and of the IR. Values count
// from 0 without a gap, because the recipe's parser enumerates them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_FP8_IR_FP8ENUMS_TD
#define FP8_DIALECT_FP8_IR_FP8ENUMS_TD

include "mlir/IR/EnumAttr.td"

class FP8_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::fp8";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// The signature of a step
//===----------------------------------------------------------------------===//

// State is replaced by a result after each step. What is frozen is a float
// tensor that is never replaced. A batch is training data, new in each step. A
// key of a random number generator is not returned. Constants are all other
// scalars, with the same value in each step.
def FP8_ArgRole : FP8_Enum<"ArgRole", "The role of an argument in a step", [
    I32EnumAttrCase<"State", 0, "state">,
    I32EnumAttrCase<"Frozen", 1, "frozen">,
    I32EnumAttrCase<"Batch", 2, "batch">,
    I32EnumAttrCase<"Key", 3, "key">,
    I32EnumAttrCase<"Constant", 4, "constant">
  ]>;

// A gradient accumulates those of several calls. An average follows the weights
// of a parameter, as an average or an occasional copy; no gradient reaches it.
def FP8_StateKind : FP8_Enum<"StateKind", "What the optimizer uses a state argument for", [
    I32EnumAttrCase<"Parameter", 0, "parameter">,
    I32EnumAttrCase<"Moment1", 1, "moment1">,
    I32EnumAttrCase<"Moment2", 2, "moment2">,
    I32EnumAttrCase<"Gradient", 3, "gradient">,
    I32EnumAttrCase<"Average", 4, "average">,
    I32EnumAttrCase<"Step", 5, "step">,
    I32EnumAttrCase<"Other", 6, "other">
  ]>;

// fp8-trace adds the last three; the user's step does not have them.
def FP8_ResultKind : FP8_Enum<"ResultKind", "The kind of a result of a step", [
    I32EnumAttrCase<"State", 0, "state">,
    I32EnumAttrCase<"Loss", 1, "loss">,
    I32EnumAttrCase<"Metric", 2, "metric">,
    I32EnumAttrCase<"Output", 3, "output">,
    I32EnumAttrCase<"TraceQuantization", 4, "trace_quantization">,
    I32EnumAttrCase<"TraceUpdate", 5, "trace_update">,
    I32EnumAttrCase<"TraceAlignment", 6, "trace_alignment">
  ]>;

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

def FP8_FormatEnum : FP8_Enum<"Format", "The floating-point format of a payload", [
    I32EnumAttrCase<"F8E4M3FN", 0, "f8E4M3FN">,
    I32EnumAttrCase<"F8E5M2", 1, "f8E5M2">,
    I32EnumAttrCase<"F8E4M3", 2, "f8E4M3">,
    I32EnumAttrCase<"F8E4M3FNUZ", 3, "f8E4M3FNUZ">,
    I32EnumAttrCase<"F8E5M2FNUZ", 4, "f8E5M2FNUZ">
  ]>;

// An operand is treated as a matrix whose rows lie along the contraction. One
// scale covers all of it (`tensor`), a row, 128 elements of a row, 128 rows by
// 128 elements, or 32 elements of a row; in the last case scales are f8E8M0FNU.
def FP8_TilingEnum : FP8_Enum<"Tiling", "The elements of an operand that share a scale", [
    I32EnumAttrCase<"Tensor", 0, "tensor">,
    I32EnumAttrCase<"Row", 1, "row">,
    I32EnumAttrCase<"Row128", 2, "1x128">,
    I32EnumAttrCase<"Block128", 3, "128x128">,
    I32EnumAttrCase<"MX", 4, "1x32">
  ]>;

def FP8_ScaleRule : FP8_Enum<"ScaleRule", "How a scale follows from an amax", [
    I32EnumAttrCase<"Exact", 0, "exact">,
    I32EnumAttrCase<"Pow2", 1, "pow2">,
    I32EnumAttrCase<"OCPFloor", 2, "ocp_floor">
  ]>;

def FP8_Rounding : FP8_Enum<"Rounding", "How a value is rounded to a code", [
    I32EnumAttrCase<"NearestEven", 0, "nearest_even">,
    I32EnumAttrCase<"Stochastic", 1, "stochastic">
  ]>;

def FP8_Overflow : FP8_Enum<"Overflow", "What becomes of a finite value out of range", [
    I32EnumAttrCase<"Saturate", 0, "saturate">,
    I32EnumAttrCase<"NaN", 1, "nan">
  ]>;

def FP8_Scaling : FP8_Enum<"Scaling", "Where the amax comes from: the tensor itself, or earlier steps", [
    I32EnumAttrCase<"Current", 0, "current">,
    I32EnumAttrCase<"Delayed", 1, "delayed">
  ]>;

def FP8_AmaxAlgorithm : FP8_Enum<"AmaxAlgorithm", "What delayed scaling takes of its history", [
    I32EnumAttrCase<"Max", 0, "max">,
    I32EnumAttrCase<"MostRecent", 1, "most_recent">
  ]>;

def FP8_InitialScale : FP8_Enum<"InitialScale", "The scale of delayed scaling before there is a history", [
    I32EnumAttrCase<"Current", 0, "current">,
    I32EnumAttrCase<"One", 1, "one">
  ]>;

// The second payload is made in the forward pass (`saved`), or in the backward
// pass: from the tensor (`recomputed`) or from the first payload
// (`requantized`).
def FP8_SecondPayload : FP8_Enum<"SecondPayload", "What becomes of the activation that forward and wgrad need in two tilings", [
    I32EnumAttrCase<"Saved", 0, "saved">,
    I32EnumAttrCase<"Recomputed", 1, "recomputed">,
    I32EnumAttrCase<"Requantized", 2, "requantized">
  ]>;

// Copies are made in every step, before the first dot (`step`), or where the
// optimizer updates the weights (`state`); in the second case they are state.
def FP8_WeightCopyTime : FP8_Enum<"WeightCopyTime", "When the weights' FP8 copies are made", [
    I32EnumAttrCase<"Step", 0, "step">,
    I32EnumAttrCase<"State", 1, "state">
  ]>;

//===----------------------------------------------------------------------===//
// Unquantized values and storage
//===----------------------------------------------------------------------===//

def FP8_ComputeFormat : FP8_Enum<"ComputeFormat", "What everything else computes in", [
    I32EnumAttrCase<"F32", 0, "f32">,
    I32EnumAttrCase<"BF16", 1, "bf16">
  ]>;

// `same` means the format of `compute.unquantized_dots`.
def FP8_AttentionFormat : FP8_Enum<"AttentionFormat", "What the dots of attention read", [
    I32EnumAttrCase<"Same", 0, "same">,
    I32EnumAttrCase<"F32", 1, "f32">,
    I32EnumAttrCase<"BF16", 2, "bf16">,
    I32EnumAttrCase<"F8", 3, "f8">
  ]>;

// `same` means the format of `compute.saved`.
def FP8_SavedFormat : FP8_Enum<"SavedFormat", "What some activations are kept in for the backward pass", [
    I32EnumAttrCase<"Same", 0, "same">,
    I32EnumAttrCase<"F8E4M3FN", 1, "f8E4M3FN">,
    I32EnumAttrCase<"F8E5M2", 2, "f8E5M2">
  ]>;

def FP8_StorageFormat : FP8_Enum<"StorageFormat", "What an array of the state is stored in", [
    I32EnumAttrCase<"F32", 0, "f32">,
    I32EnumAttrCase<"BF16", 1, "bf16">,
    I32EnumAttrCase<"F16", 2, "f16">,
    I32EnumAttrCase<"F8E4M3FN", 3, "f8E4M3FN">,
    I32EnumAttrCase<"F8E5M2", 4, "f8E5M2">
  ]>;

// An array has no scale (`none`: it is cast), one scale, or one scale for every
// 128 elements along the last dimension.
def FP8_StorageTiling : FP8_Enum<"StorageTiling", "The elements of a stored array that share a scale", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Tensor", 1, "tensor">,
    I32EnumAttrCase<"Group128", 2, "1x128">
  ]>;

def FP8_Granularity : FP8_Enum<"Granularity", "What shares a factor of Smooth-SwiGLU", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Channel", 1, "channel">,
    I32EnumAttrCase<"Token", 2, "token">
  ]>;

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

// A forward dot multiplies activation and weight, a dgrad dot output gradient
// and weight, a wgrad dot activation and output gradient; rules of recipes may
// name these three. One operand of an embedding dot is a one-hot selection. An
// attention dot multiplies two activations with batching dimensions.
def FP8_DotRole : FP8_Enum<"DotRole", "What a dot is to the layers of the model", [
    I32EnumAttrCase<"Forward", 0, "forward">,
    I32EnumAttrCase<"Dgrad", 1, "dgrad">,
    I32EnumAttrCase<"Wgrad", 2, "wgrad">,
    I32EnumAttrCase<"Embedding", 3, "embedding">,
    I32EnumAttrCase<"Attention", 4, "attention">,
    I32EnumAttrCase<"Other", 5, "other">
  ]>;

def FP8_OperandKind : FP8_Enum<"OperandKind", "What an operand of a dot is to its layer", [
    I32EnumAttrCase<"Activation", 0, "activation">,
    I32EnumAttrCase<"Weight", 1, "weight">,
    I32EnumAttrCase<"Gradient", 2, "gradient">,
    I32EnumAttrCase<"Other", 3, "other">
  ]>;

// A dot is not quantized if the recipe says so (`high_precision`), or if the
// recipe quantizes it but it cannot be converted (`fallback`).
def FP8_Verdict : FP8_Enum<"Verdict", "What becomes of a dot", [
    I32EnumAttrCase<"FP8", 0, "fp8">,
    I32EnumAttrCase<"HighPrecision", 1, "high_precision">,
    I32EnumAttrCase<"Fallback", 2, "fallback">
  ]>;

def FP8_ScoreStorage : FP8_Enum<"ScoreStorage", "Where the scores of a softmax are", [
    I32EnumAttrCase<"Tiled", 0, "tiled">,
    I32EnumAttrCase<"Stored", 1, "stored">
  ]>;

def FP8_DotCategory : FP8_Enum<"DotCategory", "What the summary of a report counts a dot as", [
    I32EnumAttrCase<"Linear", 0, "linear">,
    I32EnumAttrCase<"Head", 1, "head">,
    I32EnumAttrCase<"Attention", 2, "attention">,
    I32EnumAttrCase<"Embedding", 3, "embedding">,
    I32EnumAttrCase<"Other", 4, "other">
  ]>;

def FP8_ModelPart : FP8_Enum<"ModelPart", "The part of the model that a rule may name", [
    I32EnumAttrCase<"Head", 0, "head">,
    I32EnumAttrCase<"Linear", 1, "linear">
  ]>;

#endif // FP8_DIALECT_FP8_IR_FP8ENUMS_TD
