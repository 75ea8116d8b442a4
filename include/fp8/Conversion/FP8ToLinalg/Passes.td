//===- Passes.td - fp8 to linalg ---------------------------*- tablegen -*-===//

#ifndef FP8_CONVERSION_FP8TOLINALG_PASSES
#define FP8_CONVERSION_FP8TOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def ConvertFP8ToLinalg : Pass<"convert-fp8-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower the fp8 dialect to linalg on payload and scale tensors";
  let description = [{
    Every `!fp8.scaled` value becomes two: the payload and the scale tensor. The
    names of function arguments and results follow: for a scaled tensor
    `<path>`, the payload is `<path>` and its scale `<path>.scale`, with the
    same role and kind. The `fp8.state` of a scale names the scale that it
    replaces.

    The ops become `linalg.generic`. `fp8.amax` is a reduction that propagates
    NaN and infinity; whole tiles and the partial ones at the edges are separate
    generics. `fp8.compute_scale`, `fp8.quantize` and `fp8.dequantize` are
    elementwise ops, which index the scale of an element by its index divided by
    the tile. `fp8.dot_general` is one contraction of f8 operands into f32
    (iterators batch, m, n, k; operands in their own layouts). Scales that are
    constant along the contraction multiply its result in an elementwise op.
    Other scales are inputs of the contraction, whose body multiplies the
    decoded operands by them, and which may apply them to partial sums. A limit
    on the length of partial sums becomes the attribute `fp8.promote_every` of
    the contraction; an accumulator of few bits makes it a plain reduction. The
    casts in the bodies are plain `arith.extf` and `arith.truncf`, with clamping
    before the latter. `fp8.transpose`, `fp8.reshape` and `fp8.slice` become the
    same ops of StableHLO on payload and scale. The module's recipe is no longer
    needed and is removed.

    Example:

    ```mlir
    func.func @quantize(%x: tensor<64x32xf32> {fp8.path = "w"}, %s: tensor<f32>, %q: tensor<f32>)
        -> (!fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {fp8.path = "w8"}) {
      // becomes a linalg.generic into a tensor<64x32xf8E4M3FN>; the function
      // returns it as "w8" and %s as "w8.scale"
      %0 = fp8.quantize %x, %s, %q rounding = nearest_even, overflow = saturate
          : tensor<64x32xf32> -> !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
      return %0 : !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::stablehlo::StablehloDialect", "::mlir::tensor::TensorDialect"];
}

#endif // FP8_CONVERSION_FP8TOLINALG_PASSES
