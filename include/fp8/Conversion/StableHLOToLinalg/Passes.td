//===- Passes.td - StableHLO to linalg ---------------------*- tablegen -*-===//

#ifndef FP8_CONVERSION_STABLEHLOTOLINALG_PASSES
#define FP8_CONVERSION_STABLEHLOTOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def FoldTransposes : Pass<"fp8-fold-transposes"> {
  let summary = "Fold transposes into the dots beside them";
  let description = [{
    A transpose that exchanges the rows and columns of a dot's result becomes
    the dot of the exchanged operands, and a transposed operand of a dot becomes
    other dimension numbers. Both `stablehlo.dot_general` and `fp8.dot_general`
    read their operands in any layout, so no copy is left. JAX writes every
    weight gradient as the transpose of a dot.

    Example:

    ```mlir
    func.func @wgrad(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>) -> tensor<4x2xf32> {
      %0 = stablehlo.dot_general %dy, %x, contracting_dims = [0] x [0]
          : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
      %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
      return %1 : tensor<4x2xf32>  // the dot of %x and %dy
    }
    ```
  }];
}

def ConvertStableHLOToLinalg : Pass<"convert-stablehlo-to-linalg"> {
  let summary = "Lower stablehlo and chlo to linalg on tensors";
  let description = [{
    Every op becomes one of a few structured forms, which the kernel stage relies
    on:

    - elementwise ops, rank 0 included: a `linalg.generic` of `arith` and `math`
      ops with identity maps;
    - transpose, broadcast_in_dim, slice and reverse: a copying generic whose
      input map does the work; concatenate and pad: generics on one destination,
      whose output maps place the parts;
    - reshape: `tensor.collapse_shape` and `tensor.expand_shape`;
    - reduce: a generic with the parallel loops first; a sum of f16 or bf16
      accumulates in f32;
    - dot_general: one generic with loops batch, m, n, k (in this order) and maps
      into the operands as they lie, accumulating in f32 (f64, integers: in the
      result's type);
    - gather and dynamic_slice: a generic whose body clamps the indices and reads
      the operand with `tensor.extract`;
    - scatter and dynamic_update_slice: a nest of `scf.for` that carries the
      tensor through `tensor.insert`; out-of-bounds updates write back what was
      there.

    Integers lose their sign, at function boundaries too. Floats narrower than
    f32 are computed in f32 and rounded after every op. Conversions of floats to
    integers saturate, integer division by zero gives all ones, shifts by the
    width or more are defined. Ops of the fp8 dialect are left alone; this pass
    may run before or after `convert-fp8-to-linalg`.

    Example:

    ```mlir
    func.func @silu(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %0 = stablehlo.logistic %x : tensor<8x16xf32>
      %1 = stablehlo.multiply %x, %0 : tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def VerifyStructured : Pass<"fp8-verify-structured"> {
  let summary = "Check that only structured tensor ops are left";
  let description = [{
    The contract between this stage and kernel formation: functions hold only
    `func.func`, `func.return`, `arith.constant`, `tensor.empty`,
    `tensor.expand_shape`, `tensor.collapse_shape`, `linalg.generic`,
    `linalg.fill` and `scf.for`; the bodies of the latter three `arith` and
    `math` ops on scalars, `linalg.index`, `tensor.extract`, and in loops
    `tensor.insert`. Integers are signless. Anything else is one error that names
    the op.

    Example:

    ```mlir
    func.func @zeros() -> tensor<4xf32> {
      %zero = arith.constant 0.0 : f32
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
}

#endif // FP8_CONVERSION_STABLEHLOTOLINALG_PASSES
