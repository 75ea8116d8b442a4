//===- Passes.td - Passes of the fp8 dialect ---------------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FP8ApplyRecipe : Pass<"fp8-apply-recipe", "::mlir::ModuleOp"> {
  let summary = "Compute the dots that a recipe names in FP8";
  let description = [{
    Finds the linear layers of a step by data flow (the dots with a parameter
    that the loss depends on, and the dots of their gradients) and rewrites the
    ones that the recipe quantizes: both operands become `!fp8.scaled` values,
    the dot an `fp8.dot_general`.

    A tensor that several dots read is quantized once per format, right after
    its definition (an argument: right before it is first read): forward and wgrad share the activation, forward and dgrad the
    weight, dgrad and wgrad the output gradient. Dots that read a tensor through
    reshapes, transposes or barriers share its payload too: with one scale for
    the whole tensor, another arrangement of the elements needs no other
    quantization, and the payload is rearranged instead.

    Every dot of the module gets a verdict with its reason: `report` writes them
    to a file (JSON if its name ends in `.json`, else a table; `-` is a table on
    the standard error stream), `emit-remarks` prints them at the dots. A dot
    that the recipe quantizes but that cannot be converted stays as it is, with
    the verdict `fallback`; `fail-on-fallback` makes that an error.

    The arguments' marks (`fp8.role`, `fp8.kind`, `fp8.path`) come from the
    import stage; without them no dot is found to be a linear layer.

    With `recipe=tensorwise`

    ```mlir
    func.func @main(%w: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
                    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                    %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<4x8xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
      %1 = stablehlo.dot_general %0, %head, contracting_dims = [1] x [0]
          : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
      return %1 : tensor<4x8xf32>
    }
    ```

    becomes (the head stays in high precision, as the recipe says)

    ```mlir
    func.func @main(%w: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
                    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                    %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<4x8xf32> {
      %amax_x = fp8.amax %x : tensor<4x32xf32> -> tensor<f32>
      %scale_x, %quantizer_x = fp8.compute_scale %amax_x {rule = #fp8.scale_rule<exact>, format = f8E4M3FN}
          : tensor<f32> -> tensor<f32>
      %xs = fp8.quantize %x, %scale_x, %quantizer_x rounding = nearest_even, overflow = saturate
          : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
      %amax_w = fp8.amax %w : tensor<32x16xf32> -> tensor<f32>
      %scale_w, %quantizer_w = fp8.compute_scale %amax_w {rule = #fp8.scale_rule<exact>, format = f8E4M3FN}
          : tensor<f32> -> tensor<f32>
      %ws = fp8.quantize %w, %scale_w, %quantizer_w rounding = nearest_even, overflow = saturate
          : tensor<32x16xf32> -> !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>
      %0 = fp8.dot_general %xs, %ws, contracting_dims = [1] x [0] {accumulator = f32}
          : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>,
             !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
      %1 = stablehlo.dot_general %0, %head, contracting_dims = [1] x [0]
          : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
      return %1 : tensor<4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"tensorwise\"",
           "The recipe: a name (tensorwise, rowwise, blockwise, ...) or the path of a .yaml file">,
    ListOption<"set", "set", "std::string",
               "Set a key of the recipe, e.g. forward.activation.format=f8E5M2">,
    Option<"printRecipe", "print-recipe", "bool", "false",
           "Print the effective recipe, defaults and all, to standard output">,
    Option<"report", "report", "std::string", "\"\"",
           "Write the verdict of every dot to this file (.json, else a table; - is stderr)">,
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Emit the verdict of every dot as a remark at the dot">,
    Option<"failOnFallback", "fail-on-fallback", "bool", "false",
           "Fail if a dot that the recipe quantizes cannot be converted">
  ];
  let statistics = [
    Statistic<"numDots", "num-dots", "Number of dots">,
    Statistic<"numFP8Dots", "num-fp8-dots", "Number of dots computed in FP8">,
    Statistic<"numQuantized", "num-quantized", "Number of tensors quantized">
  ];
}

def FP8SavePayloads : Pass<"fp8-save-payloads", "::mlir::func::FuncOp"> {
  let summary = "Stack payloads, not what they are quantized from";
  let description = [{
    A forward loop over layers writes what the backward loop will need into
    stacks. Where the backward loop reads a slot only to quantize it, the
    forward loop quantizes it (as a rule it has done so for its own dots) and
    stacks payload and scale instead: the same bits, in a quarter of the memory.
    A stack that is read in high precision too stays. Stochastically rounded
    payloads are left alone: their draws belong to the place where they are
    made.

    Example input: the first loop stacks `tensor<4x32xf32>`s that the second one
    quantizes.

    ```mlir
    func.func @main(%x: tensor<4x32xf32>, %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %empty = stablehlo.constant dense<0.0> : tensor<3x4x32xf32>
      %sum = stablehlo.constant dense<0.0> : tensor<4x16xf32>
      %0:3 = stablehlo.while(%i = %zero, %y = %x, %stack = %empty) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
      cond {
        %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.reshape %y : (tensor<4x32xf32>) -> tensor<1x4x32xf32>
        %2 = stablehlo.dynamic_update_slice %stack, %1, %i, %zero, %zero
            : (tensor<3x4x32xf32>, tensor<1x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x32xf32>
        %3 = stablehlo.sine %y : tensor<4x32xf32>
        %4 = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %4, %3, %2 : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
      }
      %5:2 = stablehlo.while(%i = %zero, %acc = %sum) : tensor<i32>, tensor<4x16xf32>
      cond {
        %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.dynamic_slice %0#2, %i, %zero, %zero, sizes = [1, 4, 32]
            : (tensor<3x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
        %2 = stablehlo.reshape %1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
        %amax = fp8.amax %2 : tensor<4x32xf32> -> tensor<f32>
        %scale, %quantizer = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
        %3 = fp8.quantize %2, %scale, %quantizer rounding = nearest_even, overflow = saturate
            : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
        %4 = fp8.dot_general %3, %w, contracting_dims = [1] x [0] {accumulator = f32}
            : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
        %6 = stablehlo.add %acc, %4 : tensor<4x16xf32>
        %7 = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %7, %6 : tensor<i32>, tensor<4x16xf32>
      }
      return %5#1 : tensor<4x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def FP8VerifyQuantized : Pass<"fp8-verify-quantized", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the fp8 stage";
  let description = [{
    Ends the `fp8-quantize` pipeline. It checks that

    - the operands of every `fp8.dot_general` come from a quantization or from
      outside of the function, through pack, unpack and layout ops alone;
    - no tensor is quantized twice in the same way;
    - every amax and every scale that is computed is used;
    - the scale and the quantizer of a quantization come from the same
      `fp8.compute_scale`.

    A violation is an error at the op. This passes:

    ```mlir
    func.func @main(%x: tensor<4x32xf32>) -> !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32> {
      %amax = fp8.amax %x : tensor<4x32xf32> -> tensor<f32>
      %scale, %quantizer = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E5M2}
          : tensor<f32> -> tensor<f32>
      %xs = fp8.quantize %x, %scale, %quantizer rounding = nearest_even, overflow = saturate
          : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>
      return %xs : !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>
    }
    ```
  }];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
