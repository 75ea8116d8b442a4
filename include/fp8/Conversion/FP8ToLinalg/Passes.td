//===- Passes.td - fp8 to linalg ---------------------------*- tablegen -*-===//

#ifndef FP8_CONVERSION_FP8TOLINALG_PASSES
#define FP8_CONVERSION_FP8TOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def ConvertFP8ToLinalg : Pass<"convert-fp8-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower the fp8 dialect to linalg on payload and scale tensors";
  let description = [{
    Every `!fp8.scaled` value becomes two: the payload and the scale tensor.
    Arguments and results of functions keep their names: where the scaled
    tensor was `<path>`, the payload is `<path>` and its scale `<path>.scale`,
    with the same role and kind, and a scale's `fp8.state` names the scale it
    replaces.

    The ops become `linalg.generic`: `fp8.amax` a reduction that propagates NaN
    and infinity (whole tiles and the partial ones at the edges are generics of
    their own), `fp8.compute_scale`, `fp8.quantize` and `fp8.dequantize`
    elementwise ops, which find the scale of an element at its place divided by
    the tile, and `fp8.dot_general` one contraction of f8 operands into f32
    (iterators batch, m, n, k; operands in their own layouts). Scales that are
    constant along the contraction multiply its result in an elementwise op; the
    others are inputs of the contraction, whose body multiplies the decoded
    operands by them, and which may apply them to partial sums. A limit on the
    length of partial sums is the attribute `fp8.promote_every` on the
    contraction; an accumulator of few bits makes a plain reduction. The casts in
    the bodies are plain `arith.extf` and `arith.truncf`; clamping comes before
    the latter. `fp8.transpose`, `fp8.reshape` and `fp8.slice` become these ops of
    StableHLO on payload and scale. The module's recipe is done, and is removed.

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
