//===- FP8Ops.td - Operations of the fp8 dialect -----------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8OPS_TD
#define FP8_DIALECT_FP8_IR_FP8OPS_TD

include "fp8/Dialect/FP8/IR/FP8AttentionOps.td"
include "fp8/Dialect/FP8/IR/FP8Attrs.td"
include "fp8/Dialect/FP8/IR/FP8CollectiveOps.td"
include "fp8/Dialect/FP8/IR/FP8ScheduleOps.td"
include "fp8/Dialect/FP8/IR/FP8Types.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class FP8_Op<string mnemonic, list<Trait> traits = []>
    : Op<FP8_Dialect, mnemonic, !listconcat(traits, [Pure])>;

def FP8_FormatAttr : TypeAttrBase<"::mlir::FloatType", "FP8 or f16 element type"> {
  let predicate = And<[CPred<"::llvm::isa<::mlir::TypeAttr>($_self)">,
      CPred<"::mlir::fp8::isPayload(::llvm::cast<::mlir::TypeAttr>($_self).getValue())">]>;
}

def FP8_AmaxOp : FP8_Op<"amax"> {
  let summary = "Largest absolute value, tile by tile";
  let description = [{
    Computes `max |x|` over every tile of the input. A NaN or an infinity in a
    tile makes its amax NaN or infinite. Without a tile the amax is that of the
    whole tensor and the result has rank 0. With a tile the result has one
    element per tile, in the shape of the scale tensor of a `!fp8.scaled` with
    this tile.

    Example:

    ```mlir
    func.func @amax(%x: tensor<1024x256xf32>) -> (tensor<f32>, tensor<1024x2xf32>) {
      %0 = fp8.amax %x : tensor<1024x256xf32> -> tensor<f32>
      %1 = fp8.amax %x tile = [1, 128] : tensor<1024x256xf32> -> tensor<1024x2xf32>
      return %0, %1 : tensor<f32>, tensor<1024x2xf32>
    }
    ```
  }];
  let arguments = (ins FP8_RealTensor:$input, OptionalAttr<DenseI64ArrayAttr>:$tile);
  let results = (outs FP8_F32Tensor:$result);
  let assemblyFormat = [{
    $input (`tile` `=` custom<Tile>($tile)^)? attr-dict `:` type($input) `->` type($result)
  }];
  let builders = [
    // The amax that a quantization to this type needs.
    OpBuilder<(ins "::mlir::Value":$input, "::mlir::fp8::ScaledType":$type)>
  ];
  let hasVerifier = 1;
}

def FP8_AminOp : FP8_Op<"amin"> {
  let summary = "Smallest absolute value that is not zero, tile by tile";
  let description = [{
    Computes the smallest `|x|` over every tile of the input, leaving out zeros;
    the result for a tile of zeros is infinity. A NaN in a tile makes its result
    NaN. The tile means the same as in `fp8.amax`. Amin and amax together give
    the range of a tile.

    Example:

    ```mlir
    func.func @amin(%x: tensor<1024x256xf32>) -> (tensor<f32>, tensor<1024x2xf32>) {
      %0 = fp8.amin %x : tensor<1024x256xf32> -> tensor<f32>
      %1 = fp8.amin %x tile = [1, 128] : tensor<1024x256xf32> -> tensor<1024x2xf32>
      return %0, %1 : tensor<f32>, tensor<1024x2xf32>
    }
    ```
  }];
  let arguments = (ins FP8_RealTensor:$input, OptionalAttr<DenseI64ArrayAttr>:$tile);
  let results = (outs FP8_F32Tensor:$result);
  let assemblyFormat = [{
    $input (`tile` `=` custom<Tile>($tile)^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FP8_ComputeScaleOp : FP8_Op<"compute_scale", [AllTypesMatch<["amax", "quantizer"]>]> {
  let summary = "Scale and quantizer for a measured amax";
  let description = [{
    Returns the scale, which dequantizes, and its reciprocal, the quantizer,
    which multiplies before rounding. One op returns both because the `exact`
    rule rounds each separately (`q = max / amax`, `scale = 1 / q` in f32). The
    `margin` leaves room above the amax: the quantizer is divided by `2^margin`.

    An amax of zero, or one that is not finite, gives scale 1 and quantizer 1 (a
    NaN or infinity then reaches the payload itself). A quantizer that would
    overflow for a subnormal amax is clamped to the largest finite f32.

    A scale of type f8E8M0FNU needs a rule that gives powers of two. The format
    f16 (largest value 65504) is for tensors stored in f16.

    Example:

    ```mlir
    func.func @scale(%amax: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %scale, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, margin = 0, format = f8E4M3FN}
          : tensor<f32> -> tensor<f32>
      return %scale, %q : tensor<f32>, tensor<f32>
    }
    ```
  }];
  let arguments = (ins FP8_F32Tensor:$amax, FP8_ScaleRuleAttr:$rule,
                       DefaultValuedAttr<I64Attr, "0">:$margin, FP8_FormatAttr:$format);
  let results = (outs FP8_ScaleTensor:$scale, FP8_F32Tensor:$quantizer);
  let assemblyFormat = [{
    $amax attr-dict `:` type($amax) `->` type($scale)
  }];
  let builders = [
    // Builds an f32 scale.
    OpBuilder<(ins "::mlir::Value":$amax, "::mlir::fp8::ScaleRule":$rule,
                   "::mlir::Type":$format, CArg<"int64_t", "0">:$margin)>
  ];
  let hasVerifier = 1;
}

def FP8_QuantizeOp : FP8_Op<"quantize", [
    TypesMatchWith<"scale has the scale tensor type of the result", "result", "scale",
      "::llvm::cast<::mlir::fp8::ScaledType>($_self).getScaleTensorType()">,
    TypesMatchWith<"quantizer has the scale's shape in f32", "result", "quantizer",
      "::mlir::fp8::getQuantizerType(::llvm::cast<::mlir::fp8::ScaledType>($_self))">]> {
  let summary = "Round a tensor to FP8 under a scale";
  let description = [{
    The payload is `cast(x × quantizer)`, element by element, with the quantizer
    of the element's tile; the result carries the scale. The product is computed
    in f32. `rounding` and `overflow` say how the cast rounds and what finite
    values out of range become. NaN becomes the canonical NaN of the format. An
    infinite input never becomes the largest finite value: it becomes NaN, or
    with `overflow = nan` the result of a plain cast.

    Scale and quantizer usually come from one `fp8.compute_scale`.

    Stochastic rounding takes the upper or the lower neighbour of the product,
    by comparing a random number with the product's distance from the lower one.
    The random number is a hash of the `seed`, of the number `tensor` and of the
    element's row-major index, and of nothing else. A tensor that is recomputed
    therefore gets the same random numbers, in any order and with any number of
    threads. `fp8.mix_seed` makes seeds that differ by step, micro-batch and
    iteration.

    Example:

    ```mlir
    func.func @quantize(%x: tensor<64x32xf32>, %scale: tensor<f32>, %q: tensor<f32>)
        -> !fp8.scaled<64x32xf8E5M2, tile = [*, *], scale = f32> {
      %0 = fp8.quantize %x, %scale, %q rounding = nearest_even, overflow = saturate
          : tensor<64x32xf32> -> !fp8.scaled<64x32xf8E5M2, tile = [*, *], scale = f32>
      return %0 : !fp8.scaled<64x32xf8E5M2, tile = [*, *], scale = f32>
    }
    func.func @stochastic(%x: tensor<64x32xf32>, %scale: tensor<f32>, %q: tensor<f32>, %seed: tensor<i64>)
        -> !fp8.scaled<64x32xf8E5M2, tile = [*, *], scale = f32> {
      %0 = fp8.quantize %x, %scale, %q seed = %seed rounding = stochastic, overflow = saturate {tensor = 7}
          : tensor<64x32xf32> -> !fp8.scaled<64x32xf8E5M2, tile = [*, *], scale = f32>
      return %0 : !fp8.scaled<64x32xf8E5M2, tile = [*, *], scale = f32>
    }
    ```
  }];
  let arguments = (ins FP8_RealTensor:$input, FP8_ScaleTensor:$scale, FP8_F32Tensor:$quantizer,
                       Optional<FP8_SeedTensor>:$seed,
                       FP8_RoundingAttr:$rounding, FP8_OverflowAttr:$overflow,
                       OptionalAttr<I64Attr>:$tensor);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat = [{
    $input `,` $scale `,` $quantizer (`seed` `=` $seed^)? `rounding` `=` `` $rounding `,` `overflow` `=` `` $overflow
    attr-dict `:` type($input) `->` qualified(type($result))
  }];
  let builders = [
    // Rounds to nearest even and saturates.
    OpBuilder<(ins "::mlir::fp8::ScaledType":$type, "::mlir::Value":$input,
                   "::mlir::Value":$scale, "::mlir::Value":$quantizer)>,
    // Takes no seed, so the rounding is not stochastic.
    OpBuilder<(ins "::mlir::fp8::ScaledType":$type, "::mlir::Value":$input,
                   "::mlir::Value":$scale, "::mlir::Value":$quantizer,
                   "::mlir::fp8::Rounding":$rounding, "::mlir::fp8::Overflow":$overflow)>
  ];
  let hasVerifier = 1;
}

def FP8_RoundOp : FP8_Op<"round"> {
  let summary = "Round f32 to bf16 or f16";
  let description = [{
    Casts to a narrow type without a scale, with explicit rounding.
    `nearest_even` is the plain cast; `stochastic` takes one of the two
    neighbours, the nearer one with the higher probability. The random numbers
    are those of `fp8.quantize`: a hash of `seed`, `tensor` and the element's
    index. As in a plain cast, finite values beyond the range overflow to
    infinity; NaN stays NaN, and infinity does not change.

    Example:

    ```mlir
    func.func @round(%x: tensor<64x32xf32>, %seed: tensor<i64>)
        -> (tensor<64x32xf16>, tensor<64x32xbf16>) {
      %0 = fp8.round %x rounding = nearest_even : tensor<64x32xf32> -> tensor<64x32xf16>
      %1 = fp8.round %x seed = %seed rounding = stochastic {tensor = 3} : tensor<64x32xf32> -> tensor<64x32xbf16>
      return %0, %1 : tensor<64x32xf16>, tensor<64x32xbf16>
    }
    ```
  }];
  let arguments = (ins FP8_F32Tensor:$input, Optional<FP8_SeedTensor>:$seed,
                       FP8_RoundingAttr:$rounding, OptionalAttr<I64Attr>:$tensor);
  let results = (outs FP8_NarrowTensor:$result);
  let assemblyFormat = [{
    $input (`seed` `=` $seed^)? `rounding` `=` `` $rounding attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FP8_ComputeExpansionOp : FP8_Op<"compute_expansion", [
    AllTypesMatch<["amax", "amin", "center", "exponent"]>]> {
  let summary = "Center and exponent that widen the range of a tile";
  let description = [{
    COAT's dynamic range expansion: the values of a group of an optimizer's
    moment span a smaller range than the format does. Raised to a power, around
    their geometric mean, they fill it. For every tile, from its largest and its
    smallest absolute value (leaving out zeros):

        center   = sqrt(amax) * sqrt(amin)
        exponent = floor(16 * log2(R) / log2(amax / amin)) / 16    R = max^2 / 2

    where `max` is the largest value of the format (R is 100352 for f8E4M3FN).
    An exponent below 1 narrows a range that is wider than the format's, so that
    its small values do not become zero. If amin is subnormal and amax / amin
    overflows f32, the logarithm is computed as a difference of logarithms.
    Center and exponent are 1 for a tile of zeros, for a tile whose values all
    have the same magnitude, for a tile with a NaN or an infinity, and for a
    tile that spans more than 254 octaves.

    Example:

    ```mlir
    func.func @expansion(%amax: tensor<64x2xf32>, %amin: tensor<64x2xf32>) -> (tensor<64x2xf32>, tensor<64x2xf32>) {
      %center, %exponent = fp8.compute_expansion %amax, %amin {format = f8E4M3FN} : tensor<64x2xf32>
      return %center, %exponent : tensor<64x2xf32>, tensor<64x2xf32>
    }
    ```
  }];
  let arguments = (ins FP8_F32Tensor:$amax, FP8_F32Tensor:$amin, FP8_FormatAttr:$format);
  let results = (outs FP8_F32Tensor:$center, FP8_F32Tensor:$exponent);
  let assemblyFormat = "$amax `,` $amin attr-dict `:` type($amax)";
}

class FP8_RangeOp<string mnemonic> : FP8_Op<mnemonic, [
    AllTypesMatch<["center", "exponent"]>]> {
  let arguments = (ins FP8_F32Tensor:$input, FP8_F32Tensor:$center, FP8_F32Tensor:$exponent,
                       OptionalAttr<DenseI64ArrayAttr>:$tile);
  let results = (outs FP8_F32Tensor:$result);
  let assemblyFormat = [{
    $input `,` $center `,` $exponent (`tile` `=` custom<Tile>($tile)^)?
    attr-dict `:` type($input) `,` type($center) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FP8_ExpandRangeOp : FP8_RangeOp<"expand_range"> {
  let summary = "Raise values to their tile's exponent";
  let description = [{
    Computes `sign(x) * (|x| / center)^exponent`, element by element, with
    center and exponent of the element's tile (see `fp8.compute_expansion`). The
    result is quantized with an ordinary scale.

    Example: a moment in groups of 128 with range expansion.

    ```mlir
    func.func @store(%m: tensor<64x200xf32>)
        -> (!fp8.scaled<64x200xf8E4M3FN, tile = [1, 128], scale = f32>, tensor<64x2xf32>, tensor<64x2xf32>) {
      %amax = fp8.amax %m tile = [1, 128] : tensor<64x200xf32> -> tensor<64x2xf32>
      %amin = fp8.amin %m tile = [1, 128] : tensor<64x200xf32> -> tensor<64x2xf32>
      %center, %exponent = fp8.compute_expansion %amax, %amin {format = f8E4M3FN} : tensor<64x2xf32>
      %wide = fp8.expand_range %m, %center, %exponent tile = [1, 128]
          : tensor<64x200xf32>, tensor<64x2xf32> -> tensor<64x200xf32>
      %largest = fp8.amax %wide tile = [1, 128] : tensor<64x200xf32> -> tensor<64x2xf32>
      %scale, %q = fp8.compute_scale %largest {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<64x2xf32> -> tensor<64x2xf32>
      %stored = fp8.quantize %wide, %scale, %q rounding = nearest_even, overflow = saturate
          : tensor<64x200xf32> -> !fp8.scaled<64x200xf8E4M3FN, tile = [1, 128], scale = f32>
      return %stored, %center, %exponent : !fp8.scaled<64x200xf8E4M3FN, tile = [1, 128], scale = f32>, tensor<64x2xf32>, tensor<64x2xf32>
    }
    ```
  }];
}

def FP8_RestoreRangeOp : FP8_RangeOp<"restore_range"> {
  let summary = "Undo the expansion of a range";
  let description = [{
    Computes `sign(y) * center * |y|^(1 / exponent)`, element by element: the
    inverse of `fp8.expand_range`, up to rounding (so the two never fold).

    Example:

    ```mlir
    func.func @load(%m: !fp8.scaled<64x200xf8E4M3FN, tile = [1, 128], scale = f32>,
                    %center: tensor<64x2xf32>, %exponent: tensor<64x2xf32>) -> tensor<64x200xf32> {
      %wide = fp8.dequantize %m : !fp8.scaled<64x200xf8E4M3FN, tile = [1, 128], scale = f32> -> tensor<64x200xf32>
      %0 = fp8.restore_range %wide, %center, %exponent tile = [1, 128]
          : tensor<64x200xf32>, tensor<64x2xf32> -> tensor<64x200xf32>
      return %0 : tensor<64x200xf32>
    }
    ```
  }];
}

def FP8_MixSeedOp : FP8_Op<"mix_seed"> {
  let summary = "Derive a new seed from a seed and a counter";
  let description = [{
    Hashes a seed with a counter: the step, the micro-batch or the iteration of
    a loop in which roundings must differ. A chain of these ops gives a seed
    that depends on all counters. Equal seeds and counters give equal seeds.

    Example:

    ```mlir
    func.func @seed(%seed: tensor<i64>, %step: tensor<i32>) -> tensor<i64> {
      %0 = fp8.mix_seed %seed, %step : tensor<i32>
      return %0 : tensor<i64>
    }
    ```
  }];
  let arguments = (ins FP8_SeedTensor:$seed, FP8_CounterTensor:$counter);
  let results = (outs FP8_SeedTensor:$result);
  let assemblyFormat = "$seed `,` $counter attr-dict `:` type($counter)";
}

def FP8_DequantizeOp : FP8_Op<"dequantize"> {
  let summary = "Payload times scale";
  let description = [{
    Returns `payload × scale`, element by element, computed in f32. It never
    folds with the quantize that made its operand, because that would remove the
    rounding.

    Example:

    ```mlir
    func.func @dequantize(%x: !fp8.scaled<64x32xf8E4M3FN, tile = [1, *], scale = f32>) -> tensor<64x32xf32> {
      %0 = fp8.dequantize %x : !fp8.scaled<64x32xf8E4M3FN, tile = [1, *], scale = f32> -> tensor<64x32xf32>
      return %0 : tensor<64x32xf32>
    }
    ```
  }];
  let arguments = (ins FP8_ScaledType:$input);
  let results = (outs FP8_RealTensor:$result);
  let assemblyFormat = [{
    $input attr-dict `:` qualified(type($input)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FP8_RescaleOp : FP8_Op<"rescale", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Multiply rows, columns or other parts of a tensor by a factor each";
  let description = [{
    Multiplies every element by its factor; dimension `i` of the factor
    corresponds to dimension `dims[i]` of the input. The product is computed in
    f32 and rounded to the input's type. With powers of two it is exact unless a
    value overflows or becomes subnormal.

    Smooth-SwiGLU uses this op to move a factor from one tensor to another. To
    the analyses the result is the same activation, weight or gradient as the
    input: a linear layer on a rescaled weight still belongs to that weight.

    Example:

    ```mlir
    func.func @columns(%x: tensor<8x64x32xbf16>, %s: tensor<32xf32>) -> tensor<8x64x32xbf16> {
      %0 = fp8.rescale %x, %s dims = [2] : tensor<8x64x32xbf16>, tensor<32xf32>
      return %0 : tensor<8x64x32xbf16>
    }
    ```
  }];
  let arguments = (ins FP8_RealTensor:$input, FP8_F32Tensor:$factor, DenseI64ArrayAttr:$dims);
  let results = (outs FP8_RealTensor:$result);
  let assemblyFormat = [{
    $input `,` $factor `dims` `=` $dims attr-dict `:` type($input) `,` type($factor)
  }];
  let hasVerifier = 1;
}

def FP8_PackOp : FP8_Op<"pack", [
    TypesMatchWith<"payload has the payload type of the result", "result", "payload",
      "::llvm::cast<::mlir::fp8::ScaledType>($_self).getPayloadType()">,
    TypesMatchWith<"scale has the scale tensor type of the result", "result", "scale",
      "::llvm::cast<::mlir::fp8::ScaledType>($_self).getScaleTensorType()">]> {
  let summary = "A scaled tensor from its payload and its scale";
  let description = [{
    Combines a payload and a scale; no value changes.

    Example:

    ```mlir
    func.func @pack(%payload: tensor<64x32xf8E4M3FN>, %scale: tensor<f32>)
        -> !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {
      %0 = fp8.pack %payload, %scale : !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
      return %0 : !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
    }
    ```
  }];
  let arguments = (ins FP8_PayloadTensor:$payload, FP8_ScaleTensor:$scale);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat = "$payload `,` $scale attr-dict `:` qualified(type($result))";
  let hasFolder = 1;
}

def FP8_UnpackOp : FP8_Op<"unpack", [
    TypesMatchWith<"payload has the payload type of the input", "input", "payload",
      "::llvm::cast<::mlir::fp8::ScaledType>($_self).getPayloadType()">,
    TypesMatchWith<"scale has the scale tensor type of the input", "input", "scale",
      "::llvm::cast<::mlir::fp8::ScaledType>($_self).getScaleTensorType()">]> {
  let summary = "Payload and scale of a scaled tensor";
  let description = [{
    Splits a scaled tensor into its payload and its scale; no value changes.

    Example:

    ```mlir
    func.func @unpack(%x: !fp8.scaled<64x32xf8E4M3FN, tile = [1, 16], scale = f32>)
        -> (tensor<64x32xf8E4M3FN>, tensor<64x2xf32>) {
      %payload, %scale = fp8.unpack %x : !fp8.scaled<64x32xf8E4M3FN, tile = [1, 16], scale = f32>
      return %payload, %scale : tensor<64x32xf8E4M3FN>, tensor<64x2xf32>
    }
    ```
  }];
  let arguments = (ins FP8_ScaledType:$input);
  let results = (outs FP8_PayloadTensor:$payload, FP8_ScaleTensor:$scale);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input))";
  let hasFolder = 1;
}

def FP8_TransposeOp : FP8_Op<"transpose"> {
  let summary = "Permute the dimensions of a scaled tensor";
  let description = [{
    Permutes payload, scales and tile alike; no value changes. The transpose of
    a tensor quantized by rows is quantized by columns: scales along the other
    dimension need another quantization of the high-precision tensor.

    Example:

    ```mlir
    func.func @transpose(%x: !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>)
        -> !fp8.scaled<256x64xf8E4M3FN, tile = [128, 1], scale = f32> {
      %0 = fp8.transpose %x, [1, 0] : !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
          -> !fp8.scaled<256x64xf8E4M3FN, tile = [128, 1], scale = f32>
      return %0 : !fp8.scaled<256x64xf8E4M3FN, tile = [128, 1], scale = f32>
    }
    ```
  }];
  let arguments = (ins FP8_ScaledType:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat = [{
    $input `,` $permutation attr-dict `:` qualified(type($input)) `->` qualified(type($result))
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$permutation)>
  ];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def FP8_ReshapeOp : FP8_Op<"reshape"> {
  let summary = "Give a scaled tensor another shape";
  let description = [{
    Keeps the elements of payload and scales in row-major order; no value
    changes. The tile of the result must give every element the same scale as
    before. Where dimensions are merged or split, the tile must span the inner
    ones, or have extent 1 along the outer ones and divide the inner one.

    Example:

    ```mlir
    func.func @reshape(%x: !fp8.scaled<8x64x256xf8E4M3FN, tile = [1, 1, 128], scale = f32>)
        -> !fp8.scaled<512x256xf8E4M3FN, tile = [1, 128], scale = f32> {
      %0 = fp8.reshape %x : !fp8.scaled<8x64x256xf8E4M3FN, tile = [1, 1, 128], scale = f32>
          -> !fp8.scaled<512x256xf8E4M3FN, tile = [1, 128], scale = f32>
      return %0 : !fp8.scaled<512x256xf8E4M3FN, tile = [1, 128], scale = f32>
    }
    ```
  }];
  let arguments = (ins FP8_ScaledType:$input);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat = [{
    $input attr-dict `:` qualified(type($input)) `->` qualified(type($result))
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def FP8_SliceOp : FP8_Op<"slice"> {
  let summary = "Slice a scaled tensor, with its scales";
  let description = [{
    Returns the elements from `starts` to `limits` (exclusive), with the scales
    of their tiles; no value changes. A slice must start at the start of a tile.

    Example:

    ```mlir
    func.func @slice(%x: !fp8.scaled<64x300xf8E4M3FN, tile = [1, 128], scale = f32>)
        -> !fp8.scaled<16x172xf8E4M3FN, tile = [1, 128], scale = f32> {
      %0 = fp8.slice %x, [16, 128] to [32, 300] : !fp8.scaled<64x300xf8E4M3FN, tile = [1, 128], scale = f32>
          -> !fp8.scaled<16x172xf8E4M3FN, tile = [1, 128], scale = f32>
      return %0 : !fp8.scaled<16x172xf8E4M3FN, tile = [1, 128], scale = f32>
    }
    ```
  }];
  let arguments = (ins FP8_ScaledType:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat = [{
    $input `,` $starts `to` $limits attr-dict `:` qualified(type($input)) `->` qualified(type($result))
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$starts,
                   "::llvm::ArrayRef<int64_t>":$limits)>
  ];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def FP8_WindowsOp : FP8_Op<"windows"> {
  let summary = "The windows that a convolution reads";
  let description = [{
    Splits each dimension of `dims` into two: the windows along it, and the
    elements of each, its taps. With the attributes at the dimension's position
    in `dims`, element `(..., o, k, ...)` of the result is that at `o * stride +
    k * dilation` of the input, or at `o * stride + (size - 1 - k) * dilation` if
    the taps are reversed. Before, `interior` zeros are added between the
    elements of the input, and `low` and `high` zeros around them (negative
    numbers remove elements), as by `stablehlo.pad`.

    A convolution is a dot of windows and its kernel, which contracts taps and
    features. Windows overlap, so elements occur several times; stage 4 lets the
    dot read them from where they are in the input. To the analyses the result
    is the same activation or gradient as the input, and quantization takes
    place before.

    Example: windows of 3x3 around every pixel, and those of every other column.

    ```mlir
    func.func @windows(%x: tensor<2x8x8x16xf32>) -> (tensor<2x8x3x8x3x16xf32>, tensor<2x8x3x3x16xf32>) {
      %0 = fp8.windows %x dims = [1, 2] sizes = [3, 3] strides = [1, 1] dilations = [1, 1]
          low = [1, 1] high = [1, 1] interior = [0, 0] reversed = [false, false]
          : tensor<2x8x8x16xf32> -> tensor<2x8x3x8x3x16xf32>
      %1 = fp8.windows %x dims = [2] sizes = [3] strides = [2] dilations = [1]
          low = [0] high = [0] interior = [0] reversed = [false]
          : tensor<2x8x8x16xf32> -> tensor<2x8x3x3x16xf32>
      return %0, %1 : tensor<2x8x3x8x3x16xf32>, tensor<2x8x3x3x16xf32>
    }
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[AnyFloat]>:$input, DenseI64ArrayAttr:$dims,
                       DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior,
                       DenseBoolArrayAttr:$reversed);
  let results = (outs StaticShapeTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $input `dims` `=` $dims `sizes` `=` $sizes `strides` `=` $strides `dilations` `=` $dilations
    `low` `=` $low `high` `=` $high `interior` `=` $interior `reversed` `=` $reversed
    attr-dict `:` type($input) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Returns the dimension of the result that dimension `dim` of the input
    /// becomes; that of its windows, before that of its taps, if it is split.
    int64_t getResultDim(int64_t dim);
    /// Whether dimension `dim` of the result is that of the taps of windows.
    bool isTap(int64_t dim);
  }];
  let hasVerifier = 1;
}

def FP8_DotGeneralOp : FP8_Op<"dot_general"> {
  let summary = "Contraction of two scaled tensors";
  let description = [{
    Multiplies the dequantized operands and sums over the contracting
    dimensions: the payloads are multiplied and accumulated in `accumulator`,
    and the scales are applied to the sums. Result dimensions are the batching
    dimensions, then the free dimensions of the left operand, then those of the
    right, as in `stablehlo.dot_general`. The operands may have different
    formats.

    Scales may vary along the contraction in blocks. The products of a block
    give a partial sum, which is scaled and added in f32. There must be a
    contracting dimension along which both scales are constant for a multiple of
    32 elements or for the whole dimension. Along the other contracting
    dimensions they may vary freely.

    The sums are f32 sums in any order. With `promote_every` = N, a partial sum
    has at most N products before it is added to the total. `accumulator_bits` =
    B emulates a narrower accumulator, for studies: products are added one after
    another, and the significand is cut off after B bits (14 is what tensor
    cores of the Hopper generation keep). Promotion then adds the partial sum to
    an f32 total.

    Example:

    ```mlir
    func.func @dot(%x: !fp8.scaled<8x64x32xf8E5M2, tile = [*, *, *], scale = f32>,
                   %w: !fp8.scaled<8x16x32xf8E4M3FN, tile = [*, *, *], scale = f32>) -> tensor<8x64x16xf32> {
      %0 = fp8.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [2] {accumulator = f32}
          : (!fp8.scaled<8x64x32xf8E5M2, tile = [*, *, *], scale = f32>,
             !fp8.scaled<8x16x32xf8E4M3FN, tile = [*, *, *], scale = f32>) -> tensor<8x64x16xf32>
      return %0 : tensor<8x64x16xf32>
    }
    func.func @blocks(%x: !fp8.scaled<64x512xf8E4M3FN, tile = [1, 128], scale = f32>,
                      %w: !fp8.scaled<512x256xf8E4M3FN, tile = [128, 128], scale = f32>) -> tensor<64x256xf32> {
      %0 = fp8.dot_general %x, %w, contracting_dims = [1] x [0] {accumulator = f32, accumulator_bits = 14, promote_every = 128}
          : (!fp8.scaled<64x512xf8E4M3FN, tile = [1, 128], scale = f32>,
             !fp8.scaled<512x256xf8E4M3FN, tile = [128, 128], scale = f32>) -> tensor<64x256xf32>
      return %0 : tensor<64x256xf32>
    }
    ```
  }];
  let arguments = (ins FP8_ScaledType:$lhs, FP8_ScaledType:$rhs,
                       DenseI64ArrayAttr:$lhs_batching_dims, DenseI64ArrayAttr:$rhs_batching_dims,
                       DenseI64ArrayAttr:$lhs_contracting_dims, DenseI64ArrayAttr:$rhs_contracting_dims,
                       TypeAttr:$accumulator, OptionalAttr<I64Attr>:$promote_every,
                       OptionalAttr<I64Attr>:$accumulator_bits);
  let results = (outs FP8_RealTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` custom<DotDims>($lhs_batching_dims, $rhs_batching_dims,
                                      $lhs_contracting_dims, $rhs_contracting_dims)
    attr-dict `:` `(` qualified(type($lhs)) `,` qualified(type($rhs)) `)` `->` type($result)
  }];
  let builders = [
    // Accumulates in f32.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                   "::llvm::ArrayRef<int64_t>":$lhsBatchingDims, "::llvm::ArrayRef<int64_t>":$rhsBatchingDims,
                   "::llvm::ArrayRef<int64_t>":$lhsContractingDims, "::llvm::ArrayRef<int64_t>":$rhsContractingDims)>
  ];
  let hasVerifier = 1;
}

#endif // FP8_DIALECT_FP8_IR_FP8OPS_TD
