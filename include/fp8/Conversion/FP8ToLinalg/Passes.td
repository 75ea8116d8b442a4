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
    and infinity, `fp8.compute_scale` scalar arithmetic in a generic without
    loops, `fp8.quantize` and `fp8.dequantize` elementwise, and
    `fp8.dot_general` one contraction of f8 operands into f32 (iterators
    batch, m, n, k; operands in their own layouts) followed by an elementwise
    product with both scales. The casts in the bodies are plain `arith.extf` and
    `arith.truncf`; clamping comes before the latter.

    Scales per tensor are lowered; a smaller tile is an error.

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
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP8_CONVERSION_FP8TOLINALG_PASSES
