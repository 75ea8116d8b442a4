//===- FP8Attrs.td - Attributes of the fp8 dialect ---------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8ATTRS_TD
#define FP8_DIALECT_FP8_IR_FP8ATTRS_TD

include "fp8/Dialect/FP8/IR/FP8Dialect.td"
include "fp8/Dialect/FP8/IR/FP8Enums.td"
include "mlir/IR/AttrTypeBase.td"

def FP8_ScaleRuleAttr : EnumAttr<FP8_Dialect, FP8_ScaleRule, "scale_rule"> {
  let summary = "How a scale follows from an amax";
  let description = [{
    With `max` the largest finite value of the format and `emax` its exponent:

    - `exact`: the quantizer is `max / amax` in f32, the scale its reciprocal
      (Transformer Engine's arithmetic, bit for bit);
    - `pow2`: the scale is `2^ceil(log2(amax / max))`, the smallest power of
      two with which nothing saturates (MXFP8's round-up);
    - `ocp_floor`: the scale is `2^(floor(log2(amax)) - emax)`, as OCP MX
      writes it; the largest elements of a tile may saturate.

    Example:

    ```mlir
    func.func @scale(%amax: tensor<f32>) -> tensor<f32> {
      %scale, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<pow2>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
      return %scale : tensor<f32>
    }
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

def FP8_RoundingAttr : EnumAttr<FP8_Dialect, FP8_Rounding, "rounding"> {
  let summary = "How a value is rounded to a code";
  let description = [{
    `nearest_even` takes the nearest code, and the even one of two equally near;
    `stochastic` takes one of the two neighbours with the probability of its
    nearness, so that the mean is exact.

    Example:

    ```mlir
    module attributes {example.rounding = #fp8<rounding nearest_even>} {}
    ```
  }];
}

def FP8_OverflowAttr : EnumAttr<FP8_Dialect, FP8_Overflow, "overflow"> {
  let summary = "What becomes of a finite value out of range";
  let description = [{
    `saturate` clamps finite values to the largest finite code; `nan` lets what
    rounds beyond it become NaN (infinity in formats that have one). Non-finite
    inputs stay non-finite either way.

    Example:

    ```mlir
    module attributes {example.overflow = #fp8<overflow saturate>} {}
    ```
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8ATTRS_TD
