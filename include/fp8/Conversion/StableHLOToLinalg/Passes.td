//===- Passes.td - StableHLO to linalg ---------------------*- tablegen -*-===//

#ifndef FP8_CONVERSION_STABLEHLOTOLINALG_PASSES
#define FP8_CONVERSION_STABLEHLOTOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def FoldTransposes : Pass<"fp8-fold-transposes"> {
  let summary = "Fold transposes into adjacent dots";
  let description = [{
    A transpose that exchanges the rows and columns of a dot's result becomes
    the dot of the exchanged operands, and a transposed operand of a dot becomes
    other dimension numbers, also if a conversion (to bf16) is between the two.
    Both `stablehlo.dot_general` and `fp8.dot_general` read their operands in any
    layout, so no copy is left. JAX writes every weight gradient as the transpose
    of a dot; if the dot is rescaled (`fp8.rescale`), the factors follow the
    dimensions. The transpose of an operand of an attention that only dots read
    moves into its body.

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

def SplitPrefixSums : Pass<"fp8-split-prefix-sums"> {
  let summary = "Compute cumulative sums in blocks";
  let description = [{
    A cumulative sum (`jnp.cumsum`) along a dimension of n elements is written
    as windows of n elements over the padded dimension: n additions for each
    element. If there are more than 32, the pass divides the dimension into
    blocks of 16. An element becomes the sum of its block up to it, and of the
    blocks before, which are a cumulative sum of their totals. Sums of other
    windows stay as they are. Sums of bf16 and f16 are computed in f32.

    Example:

    ```mlir
    func.func @cumsum(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 0], [63, 0]]> : tensor<2x2xi64>,
          window_dimensions = array<i64: 1, 64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<4x64xf32>, tensor<f32>) -> tensor<4x64xf32>
      return %0 : tensor<4x64xf32>  // sums in four blocks, plus those of the blocks before
    }
    ```
  }];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of cumulative sums that are computed in blocks">
  ];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def SplitWindows : Pass<"fp8-split-windows"> {
  let summary = "Leave out the zeros between the elements of dilated images";
  let description = [{
    Windows of an image that is dilated by s (`interior` of `fp8.windows` is
    s - 1) hold an element of the image at every s-th tap, and zeros at the
    others. The windows whose numbers are equal modulo s, a phase, have them at
    the same taps: so the dot is computed phase by phase, from windows of the
    image without zeros and from every s-th tap, and the results, which lie
    between each other, are added as values that are padded with zeros. With
    several dilated dimensions there is a dot for each combination of their
    phases. Dots that save less than a hundred products per element of their
    result stay as they are, and so do those whose scales vary from tap to tap.

    Example: a transposed convolution with a stride of 2, of which every other
    window has two taps over elements, and the others have one.

    ```mlir
    func.func @transposed(%x: tensor<1x8x128xf32>, %w: tensor<3x128x16xf32>) -> tensor<1x16x16xf32> {
      %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1]
          low = [2] high = [1] interior = [1] reversed = [false]
          : tensor<1x8x128xf32> -> tensor<1x16x3x128xf32>
      %1 = stablehlo.dot_general %0, %w, contracting_dims = [2, 3] x [0, 1]
          : (tensor<1x16x3x128xf32>, tensor<3x128x16xf32>) -> tensor<1x16x16xf32>
      return %1 : tensor<1x16x16xf32>  // a sum of two padded dots
    }
    ```
  }];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of dots that are computed in phases">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
}

def ConvertStableHLOToSCF : Pass<"convert-stablehlo-to-scf"> {
  let summary = "Lower stablehlo control flow to scf on tensors";
  let description = [{
    Loops and branches become control flow of the schedule around their ops,
    which `convert-stablehlo-to-linalg` lowers afterwards.

    - A `while` whose counter starts, steps and ends at constants becomes an
      `scf.for` from 0 by 1 over its iterations. The counter is no longer
      carried: ops read it as `tensor.from_elements` of the induction variable,
      scaled and shifted as the counter was.
    - Any other `while` becomes an `scf.while` whose condition forwards all
      carried values in order.
    - `if` becomes `scf.if`; `case` becomes an `scf.index_switch` whose default
      is the last branch, which StableHLO takes for every index out of range.
    - A `dynamic_slice` of one contiguous part of a stack (leading dimensions
      cut, trailing ones whole) becomes a `tensor.extract_slice`, a view, if its
      offset depends on the counter of a loop and is known to lie inside of the
      stack; a `dynamic_update_slice` becomes a `tensor.insert_slice`.
      Dimensions of size one that an adjacent reshape drops or adds are left
      out.

    Example: the weight of each iteration is a view of the stack.

    ```mlir
    func.func @layers(%w: tensor<4x8x8xf32>, %x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %four = stablehlo.constant dense<4> : tensor<i32>
      %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<2x8xf32>
      cond {
        %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
        %2 = stablehlo.reshape %1 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
        %3 = stablehlo.dot_general %h, %2, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
        %4 = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %4, %3 : tensor<i32>, tensor<2x8xf32>
      }
      return %0#1 : tensor<2x8xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::stablehlo::StablehloDialect", "::mlir::tensor::TensorDialect"
  ];
}

def CanonicalizeStructured : Pass<"fp8-canonicalize-structured"> {
  let summary = "Canonicalize and keep the form of the structured stage";
  let description = [{
    Applies upstream's canonicalization patterns, without those of `scf.while`,
    `scf.if` and `scf.index_switch`, which select whole tensors and carry
    scalars. Folding makes the bodies of `linalg.generic` and of loops marked
    `fp8.irregular` read scalars of the schedule, such as the counter of a loop;
    the pass then passes these through tensors again, because later stages only
    pass tensors to kernels.

    Example: the body reads the counter, an index, from a tensor.

    ```mlir
    func.func @counters(%x: tensor<4xi32>) -> tensor<4xi32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %x) -> (tensor<4xi32>) {
        %n = arith.index_cast %i : index to i32
        %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
            ins(%t : tensor<4xi32>) outs(%t : tensor<4xi32>) {
        ^bb0(%in: i32, %out: i32):
          %2 = arith.addi %in, %n : i32
          linalg.yield %2 : i32
        } -> tensor<4xi32>
        scf.yield %1 : tensor<4xi32>
      }
      return %0 : tensor<4xi32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def ConvertStableHLOToLinalg : Pass<"convert-stablehlo-to-linalg"> {
  let summary = "Lower stablehlo and chlo to linalg on tensors";
  let description = [{
    Every op becomes one of a few structured forms, on which the kernel stage
    relies:

    - elementwise ops, rank 0 included: a `linalg.generic` of `arith` and `math`
      ops with identity maps;
    - transpose, broadcast_in_dim, slice and reverse: a copying generic whose
      input map moves the elements; concatenate and pad: generics on one
      destination, whose output maps place the parts; a sum of values that are
      padded with zeros (the elements of an associative scan): one such generic
      for all elements to which the same values contribute;
    - reshape: `tensor.collapse_shape` and `tensor.expand_shape`;
    - reduce: a generic with the parallel loops first; a sum of f16 or bf16
      accumulates in f32;
    - dot_general: one generic with loops batch, m, n, k (in this order) and
      maps into the operands in their own layouts, accumulating in f32 (f64,
      integers: in the result's type);
    - gather and dynamic_slice: a generic whose body clamps the indices and reads
      the operand with `tensor.extract`;
    - scatter and dynamic_update_slice: a nest of `scf.for` that carries the
      tensor through `tensor.insert`; out-of-bounds updates write back the old
      element. The loops of a nest are marked `fp8.irregular`: the nest is the
      code of one kernel, while other loops are control flow between kernels.

    `optimization_barrier` stays for `fp8-drop-barriers`. Integers become
    signless, also at function boundaries. Floats narrower than f32 are computed
    in f32 and rounded after every op. Conversions of floats to integers
    saturate, integer division by zero gives all ones, and shifts by the width
    or more are defined. Ops of the fp8 dialect stay as they are; this pass may
    run before or after `convert-fp8-to-linalg`.

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

def WidenElements : Pass<"fp8-widen-elements"> {
  let summary = "Store elements of less than a byte as bytes";
  let description = [{
    Tensors of integers and floats of 2 to 7 bits become tensors of bytes. The
    bodies of kernels truncate the bytes that they read to the type in which
    they compute, and extend what they write by zeros. (Booleans stay: later
    stages store them as bytes.)

    Example: the bytes of the result have the sums of the low bits.

    ```mlir
    #id = affine_map<(d0) -> (d0)>
    func.func @main(%x: tensor<4xi4>) -> tensor<4xi4> {
      %e = tensor.empty() : tensor<4xi4>
      %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<4xi4>) outs(%e : tensor<4xi4>) {
      ^bb0(%in: i4, %out: i4):
        %1 = arith.addi %in, %in : i4
        linalg.yield %1 : i4
      } -> tensor<4xi4>
      return %0 : tensor<4xi4>
    }
    ```
  }];
}

def DropBarriers : Pass<"fp8-drop-barriers"> {
  let summary = "Replace optimization barriers by marks";
  let description = [{
    Replaces each `stablehlo.optimization_barrier` by its operands. The ops that
    read its results, through reshapes, are marked `fp8.recompute`. An op with
    that attribute differs from the op without it, so later CSE does not merge a
    recomputation of `jax.checkpoint` with the original. The ops that compute the
    operands are marked `fp8.kept`, so that fusion does not recompute them.

    Example:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.optimization_barrier %x : tensor<4xf32>
      %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
          ins(%0 : tensor<4xf32>) outs(%x : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.addf %in, %in : f32
        linalg.yield %2 : f32
      } -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
}

def VerifyStructured : Pass<"fp8-verify-structured"> {
  let summary = "Check that only structured tensor ops are left";
  let description = [{
    The contract between this stage and kernel formation. A function holds only
    `func.func`, `func.return`, `arith.constant`, `tensor.empty`,
    `tensor.expand_shape`, `tensor.collapse_shape`, `linalg.generic`,
    `linalg.fill`, loop nests marked `fp8.irregular`, and control flow around
    these: `scf.for`, `scf.while` (whose condition forwards all carried values
    in order), `scf.if`, `scf.index_switch`, with the rank-0 `tensor.extract` of
    their conditions, rank-0 `tensor.from_elements` of their counters, `arith`
    on indices and integers, and `tensor.extract_slice` and
    `tensor.insert_slice` of contiguous parts. The bodies of `linalg.generic`,
    and nests marked `fp8.irregular`, hold `arith` and `math` ops on scalars,
    `linalg.index`, `tensor.extract`, and in loops `tensor.insert` and `scf`
    loops; scalars from outside must be constants. Integers are signless.
    Anything else is an error that names the op.

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
