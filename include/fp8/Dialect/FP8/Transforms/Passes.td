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
           "Fail if a dot that the recipe quantizes cannot be converted">,
    Option<"nameTensors", "name-tensors", "bool", "false",
           "Name the operands of the dots, for fp8-trace">
  ];
  let statistics = [
    Statistic<"numDots", "num-dots", "Number of dots">,
    Statistic<"numFP8Dots", "num-fp8-dots", "Number of dots computed in FP8">,
    Statistic<"numQuantized", "num-quantized", "Number of tensors quantized">,
    Statistic<"numGradients", "num-gradients",
              "Number of gradients and sums of them stored as the recipe says">
  ];
}

def FP8SmoothSwiGLU : Pass<"fp8-smooth-swiglu", "::mlir::ModuleOp"> {
  let summary = "Scale the product of gated units before it is quantized";
  let description = [{
    The product `h = act(x · gate) * (x · linear)` of a gated unit (SwiGLU,
    GeGLU, ReGLU, ...) has outliers in single channels, where the columns of the two
    weights have become alike, and one scale for the whole tensor cannot hold
    them. Where the recipe has `smooth_swiglu` and computes the dot that reads
    `h` in FP8, a factor `s` is moved out of `h`, and back in behind the
    quantization:

    | | per channel | per token |
    |---|---|---|
    | s from | max over tokens of `h` | max over channels of the linear branch |
    | forward | `y = (h/s) · (s w)` | `y = s ((h/s) · w)` |
    | dgrad | `dh = (dy · (s w)ᵀ) / s` | `dh = ((s dy) · wᵀ) / s` |
    | wgrad | `dw = s ((h/s)ᵀ · dy)` | `dw = (h/s)ᵀ · (s dy)` |

    No gradient flows through `s`. With `scale: pow2` all of this is exact while
    nothing overflows or becomes subnormal. With `scaling: delayed` the factor
    comes from earlier steps and is state: `fp8.<path of w>.smooth.quantizer`
    holds `1 / s`, 0 where it was never set.

    Gated units are found by data flow, in whatever way they are spelled (see
    `include/fp8/Analysis/GatedUnits.h`). What became of each one is left on its
    function as `fp8.gated_units`, which `fp8-apply-recipe` takes into its
    report.

    Example, with `set=smooth_swiglu.granularity=channel`: the activation of the
    last dot is divided by `s`, its weight multiplied.

    ```mlir
    func.func @main(%gate: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
                    %up: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
                    %down: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                    %x: tensor<4x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<4x8xf32> {
      %0 = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
          : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
      %1 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
          : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
      %2 = stablehlo.logistic %0 : tensor<4x32xf32>
      %3 = stablehlo.multiply %0, %2 : tensor<4x32xf32>
      %4 = stablehlo.multiply %3, %1 : tensor<4x32xf32>
      %5 = stablehlo.dot_general %4, %down, contracting_dims = [1] x [0]
          : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
      %6 = stablehlo.dot_general %5, %head, contracting_dims = [1] x [0]
          : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
      return %6 : tensor<4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"tensorwise\"",
           "The recipe: a name (tensorwise, rowwise, blockwise, ...) or the path of a .yaml file">,
    ListOption<"set", "set", "std::string",
               "Set a key of the recipe, e.g. smooth_swiglu.granularity=token">,
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Emit what becomes of every gated unit as a remark at the dot that reads its product">,
    Option<"allDots", "all-dots", "bool", "false",
           "Smooth for dots in high precision too: the transformation alone">
  ];
  let statistics = [
    Statistic<"numSmoothed", "num-smoothed", "Number of gated units smoothed">,
    Statistic<"numLeft", "num-left", "Number of gated units left alone">
  ];
}

def FP8StoreState : Pass<"fp8-store-state", "::mlir::ModuleOp"> {
  let summary = "Store the optimizer's state as the recipe says";
  let description = [{
    Every state argument of kind `moment1`, `moment2` or `parameter` (or the
    master copy of a parameter) changes its type to what the recipe's
    `optimizer` stores it in: `!fp8.scaled`, or another float type. Where the
    step reads it, it is dequantized; what the update makes of it is stored from
    the fresh f32 value. Range expansion adds two state arguments, the path with
    `.center` and `.exponent` behind it; a delayed scale adds its history.

    An update that is not taken stores nothing: where a branch or a select passes
    the old value on, or a factor of 0 cancels the update, payload and scale are
    passed on instead. A loop over whole steps carries them.

    Beside the step, two functions are left: `@fp8_store` (`fp8.entry = "store"`)
    makes what the step takes of what the user has, `@fp8_load` is its inverse.

    `report` and `emit-remarks` tell of every array what it is stored in and why.

    Example: with `set=optimizer.moment1.format=f8E4M3FN set=optimizer.moment1.tile=tensor set=optimizer.min_elements=1`
    the momentum of

    ```mlir
    func.func @main(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                    %m: tensor<64x32xf32> {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"},
                    %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
        -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"},
            tensor<64x32xf32> {fp8.path = "result[1]", fp8.state = "m"}) {
      %beta = stablehlo.constant dense<0.9> : tensor<64x32xf32>
      %0 = stablehlo.multiply %m, %beta : tensor<64x32xf32>
      %1 = stablehlo.add %0, %g : tensor<64x32xf32>
      %2 = stablehlo.subtract %p, %1 : tensor<64x32xf32>
      return %2, %1 : tensor<64x32xf32>, tensor<64x32xf32>
    }
    ```

    is stored in a byte an element:

    ```mlir
    func.func @main(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                    %m: !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
                        {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"},
                    %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
        -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"},
            !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {fp8.path = "result[1]", fp8.state = "m"}) {
      %beta = stablehlo.constant dense<0.9> : tensor<64x32xf32>
      %old = fp8.dequantize %m : !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> -> tensor<64x32xf32>
      %0 = stablehlo.multiply %old, %beta : tensor<64x32xf32>
      %1 = stablehlo.add %0, %g : tensor<64x32xf32>
      %2 = stablehlo.subtract %p, %1 : tensor<64x32xf32>
      %amax = fp8.amax %1 : tensor<64x32xf32> -> tensor<f32>
      %scale, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
      %new = fp8.quantize %1, %scale, %q rounding = nearest_even, overflow = saturate
          : tensor<64x32xf32> -> !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
      return %2, %new : tensor<64x32xf32>, !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"tensorwise\"",
           "The recipe: a name (coat, fp8_lm, ...) or the path of a .yaml file">,
    ListOption<"set", "set", "std::string",
               "Set a key of the recipe, e.g. optimizer.moment1.format=f8E4M3FN">,
    Option<"report", "report", "std::string", "\"\"",
           "Write what becomes of every array, and the verdicts of the dots, to "
           "this file (.json, else a table; - is stderr)">,
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Emit what becomes of every array as a remark at the argument">
  ];
  let statistics = [
    Statistic<"numArrays", "num-arrays", "Number of arrays of floats in the state">,
    Statistic<"numStored", "num-stored", "Number of them that are stored otherwise">
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

def FP8TraceAlignment : Pass<"fp8-trace-alignment", "::mlir::func::FuncOp"> {
  let summary = "Add to the results how alike the weights of gated units are";
  let description = [{
    For every gated unit `act(x a) * (x b)` a result of kind `trace_alignment`:
    the largest |cos(a_i, b_i)| over the channels i, their number and the sum,
    for each layer of a loop. It is called by the path of the gate weights. The
    pass runs on an imported step, before a recipe is applied.

    Example: the result has the fp8.path `trace.alignment.p['gate']`.

    ```mlir
    func.func @main(%gate: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
                    %up: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
                    %down: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                    %x: tensor<8x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<8x16xf32> {
      %0 = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
          : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
      %1 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
          : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
      %2 = stablehlo.logistic %0 : tensor<8x32xf32>
      %3 = stablehlo.multiply %0, %2 : tensor<8x32xf32>
      %4 = stablehlo.multiply %3, %1 : tensor<8x32xf32>
      %5 = stablehlo.dot_general %4, %down, contracting_dims = [1] x [0]
          : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
      return %5 : tensor<8x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def FP8TraceUpdates : Pass<"fp8-trace-updates", "::mlir::func::FuncOp"> {
  let summary = "Add to the results how large the updates of parameters are";
  let description = [{
    For every second moment (a state argument of kind `moment2`) whose update
    averages the square of a gradient g, and whose value v, with its bias
    corrected or not, a root is taken of, a result of kind `trace_update`: the
    number of elements and the sum of g^2 / v. It is called by the path of the
    parameter that is updated.

    Example: the result has the fp8.path `trace.update.p`.

    ```mlir
    func.func @main(%p: tensor<4xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p"},
                    %v: tensor<4xf32> {fp8.role = "state", fp8.kind = "moment2", fp8.path = "v"}, %g: tensor<4xf32>)
        -> (tensor<4xf32> {fp8.state = "p", fp8.path = "new_p"}, tensor<4xf32> {fp8.state = "v", fp8.path = "new_v"}) {
      %decay = stablehlo.constant dense<0.9> : tensor<4xf32>
      %rest = stablehlo.constant dense<0.1> : tensor<4xf32>
      %0 = stablehlo.multiply %g, %g : tensor<4xf32>
      %1 = stablehlo.multiply %0, %rest : tensor<4xf32>
      %2 = stablehlo.multiply %v, %decay : tensor<4xf32>
      %3 = stablehlo.add %1, %2 : tensor<4xf32>
      %4 = stablehlo.sqrt %3 : tensor<4xf32>
      %5 = stablehlo.divide %g, %4 : tensor<4xf32>
      %6 = stablehlo.subtract %p, %5 : tensor<4xf32>
      return %6, %3 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def FP8Trace : Pass<"fp8-trace", "::mlir::func::FuncOp"> {
  let summary = "Add statistics of what is quantized to the results";
  let description = [{
    Every quantized tensor gets a result of kind `trace_quantization`: a row of
    f64 numbers (`fp8_trace_quantization` in `fp8-c/Runtime.h` has their order),
    maxima and sums of the tensor's elements, from which the runtime makes
    amax, scale, the fractions that underflow and saturate, the signal-to-noise ratio
    and the kurtosis. Nothing that the step computes depends on them.

    In a loop over layers there is a row for each layer; over the iterations of
    other loops sums and maxima are combined; a branch counts if it is taken.

    Names come from the attribute `fp8.tensors` that
    `fp8-apply-recipe=name-tensors` leaves on the dots (and this pass
    removes); else from the result that the payload becomes, else from the location.
    A tensor that is quantized once more, for another kind of dot, has
    `.wgrad` or `.dgrad` after its name; whatever else would have the same name, `.2`.

    Example: the new result has the fp8.path `trace.quantization.p['w'].activation`.

    ```mlir
    func.func @main(%x: tensor<4x32xf32>, %scale: tensor<f32>, %quantizer: tensor<f32>,
                    %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
      %0 = fp8.quantize %x, %scale, %quantizer rounding = nearest_even, overflow = saturate
          : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
      %1 = fp8.dot_general %0, %w, contracting_dims = [1] x [0]
          {accumulator = f32, fp8.tensors = ["p['w'].activation", "p['w'].weight"]}
          : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>,
             !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
      return %1 : tensor<4x16xf32>
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
      `fp8.compute_scale`;
    - state is replaced by a result of its type, and the functions that store and
      load it are inverse to each other and fit the step.

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
