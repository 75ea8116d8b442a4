//===- Passes.td - Passes of the fp8 dialect ---------------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FP8ResolveRecipe : Pass<"fp8-resolve-recipe", "::mlir::ModuleOp"> {
  let summary = "Attach the effective recipe to the module";
  let description = [{
    Loads a recipe by its name or from a file, sets the keys that `set` names,
    and puts the result on the module as `fp8.recipe`, a `#fp8.recipe`. All
    passes of the fp8 stage read it there, and no other place says what is
    quantized. A mistake in the recipe is an error before any pass runs; a module
    that has a recipe is one too, since its ops may follow that already.

    Example: with `recipe=tensorwise set=rules=[] set=seed=7`, the module

    ```mlir
    module {}
    ```

    gets the settings that `print-recipe` prints, among them

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = tensorwise,
        forward = {accumulator = {bits = 32, promote = 0},
                   activation = {format = f8E4M3FN, margin = 0, overflow = saturate, rounding = nearest_even,
                                 scale = exact, scaling = current, tile = tensor},
                   weight = {format = f8E4M3FN, margin = 0, overflow = saturate, rounding = nearest_even,
                             scale = exact, scaling = current, tile = tensor}},
        seed = 7}>} {}
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"tensorwise\"",
           "The recipe: a name (tensorwise, rowwise, blockwise, ...) or the path of a .yaml file">,
    ListOption<"set", "set", "std::string",
               "Set a key of the recipe, e.g. forward.activation.format=f8E5M2">,
    Option<"printRecipe", "print-recipe", "bool", "false",
           "Print the effective recipe, defaults and all, to standard output">
  ];
}

def FP8DataParallel : Pass<"fp8-data-parallel", "::mlir::ModuleOp"> {
  let summary = "Run a step for one device on several ranks, each with its own rows";
  let description = [{
    Every rank runs the step on its own rows of the batch (the leading dimension
    of batch arguments) and has the same state. The pass follows how values
    differ between ranks: they are replicated, made of rows, or a part of a sum,
    maximum or minimum over the rows of all ranks. Sums over rows are parts, and
    so is what is linear in them: transposed, scaled, summed over micro-batches,
    stacked by a loop. Where something is not linear in a part (a norm, an
    optimizer, a comparison), or is a result, the part is made whole by one
    `fp8.all_reduce` where it is computed.

    Parts that follow from parameters and reach the state are gradients. They are
    averaged where the loss is proved to be a mean: a sum over rows divided by
    the number of its elements. They are summed where the loss is a sum divided
    by a count that follows from the batch, which is itself summed over the
    ranks. Otherwise the pass asks for `loss-reduction`. Other parts are sums or
    means as they are themselves proved to be.

    What cannot be computed row by row is an error at the op: a normalization
    over the batch, contrastive scores, an order of the rows, positions along the
    batch. Conditions of branches and loops around a
    collective are the same on all ranks, so that all meet the same collectives
    in the same order.

    Random numbers for rows (dropout) are drawn by each rank for its own rows: what
    counts the places of a batch counts those of all ranks (`fp8.row_iota`,
    `fp8.row_state`), with keys that are the same everywhere.

    A step that was in shard_map says itself what ranks do. A rank is fed its rows
    of the batch, and has its part of the state (`stablehlo.part` of the argument)
    where all that reads an array cuts the same parts off it, and the new value is
    gathered from these parts, perhaps with ops between that work element by
    element. Other state is whole on every rank, and so is what the recipe stores
    in a form that parts cannot have (scales of earlier steps, of groups that span
    ranks, range expansion).

    With `global-amax` every dot says which of its operands are of rows
    (`fp8.rows`), for the passes that quantize them.

    Example: the gradient of `params['w']` is averaged over the ranks.

    ```mlir
    func.func public @main(
        %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
        %x: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"})
        -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
            tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %four = stablehlo.constant dense<4.0> : tensor<f32>
      %fours = stablehlo.constant dense<4.0> : tensor<8xf32>
      %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
      %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %loss = stablehlo.divide %s, %four : tensor<f32>
      %d = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      %g = stablehlo.divide %d, %fours : tensor<8xf32>
      %new = stablehlo.subtract %w, %g : tensor<8xf32>
      return %new, %loss : tensor<8xf32>, tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let options = [
    Option<"lossReduction", "loss-reduction", "std::string", "\"\"",
           "mean or sum: what the loss is over the rows of the batch, where that cannot be proved">,
    Option<"zero", "zero", "unsigned", "0",
           "1: each rank is to have the masters and moments of some parameters alone (see fp8-deal-state)">,
    Option<"globalAmax", "global-amax", "bool", "false",
           "Current scales follow from the amaxes of all ranks, not of a rank's own rows">
  ];
}

def FP8SliceLogits : Pass<"fp8-slice-logits", "::mlir::ModuleOp"> {
  let summary = "Compute large logits and their loss in slices of rows";
  let description = [{
    Logits of a large vocabulary, and their gradients, are the largest tensors of
    a step. Each row of them is used by itself: the loss of a token is computed
    from it, and its gradient goes back to the token's activation and to the
    weight, summed over tokens. This pass finds the ops between the last layer's
    dot and what is small again (losses, the gradient of the activations, that of
    the weight) and puts them into a loop over slices of the rows, so that no
    more than one slice is alive. What is of rows is stacked, sums over rows are
    carried, in f32 if they are narrower. Only these sums change: they are summed
    slice by slice.

    Logits are results of forward dots of a layer whose output no other layer
    reads, if they take more bytes as f32 than the recipe's `compute.logits_bytes`. The rows are the first
    dimension along which every op that reads something as large works by itself,
    or sums. Logits that are results, sorted, or compared with those of other
    rows are left as they are, and so are those whose gradients follow from a sum
    over all rows; `emit-remarks` says which op it is. Masks and one-hot
    labels are computed in slices, too.

    Example: two slices of 64 of the 128 rows.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
    func.func public @main(
        %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
        %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
        -> (tensor<16x512xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
            tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
          : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
      %e = stablehlo.exponential %logits : tensor<128x512xf32>
      %sums = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
          : (tensor<128x512xf32>, tensor<f32>) -> tensor<128xf32>
      %loss = stablehlo.reduce(%sums init: %zero) applies stablehlo.add across dimensions = [0]
          : (tensor<128xf32>, tensor<f32>) -> tensor<f32>
      %dw = stablehlo.dot_general %h, %e, contracting_dims = [0] x [0]
          : (tensor<128x16xf32>, tensor<128x512xf32>) -> tensor<16x512xf32>
      %new = stablehlo.subtract %w, %dw : tensor<16x512xf32>
      return %new, %loss : tensor<16x512xf32>, tensor<f32>
    }
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Say at each large dot how many slices there are, or why it is one">
  ];
  let statistics = [
    Statistic<"numSliced", "num-sliced", "Number of dots computed in slices">
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

    Where ranks have some of the channels each (`fp8.exchange` sums the results of
    the forward dot over them), a token's current `s` is from the largest value of
    those ranks, by one more exchange; a channel's is its rank's.

    Gated units are found by data flow, in whatever way they are spelled (see
    `include/fp8/Analysis/GatedUnits.h`). What became of each one is left on its
    function as `fp8.gated_units`, for `fp8-report-verdicts`.

    Example: the activation of the last dot is divided by `s`, its weight
    multiplied.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = mine,
        forward = {activation = {format = f8E4M3FN}, weight = {format = f8E4M3FN}},
        rules = [{keep = {part = head}}],
        smooth_swiglu = {granularity = channel}}>} {
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
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let options = [
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

def FP8Decide : Pass<"fp8-decide", "::mlir::ModuleOp"> {
  let summary = "Decide which dots become FP8";
  let description = [{
    Finds the linear layers of a step by data flow (the dots with a parameter
    that the loss depends on, and the dots of their gradients), and puts a
    `#fp8.verdict` on every `stablehlo.dot_general`: whether it becomes FP8, or
    why not. Nothing else changes; the passes that follow do what the verdicts
    say.

    The arguments' marks (`fp8.role`, `fp8.kind`, `fp8.path`) come from the
    import stage; without them no dot is found to be a linear layer. The recipe
    comes from `fp8-resolve-recipe`.

    Example: the first dot gets the verdict `fp8`, the head `high_precision`,
    since a rule keeps it.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = mine,
        forward = {activation = {format = f8E4M3FN}, weight = {format = f8E4M3FN}},
        rules = [{keep = {part = head}}]}>} {
      func.func @main(%w: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
                      %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                      %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<4x8xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
        %1 = stablehlo.dot_general %0, %head, contracting_dims = [1] x [0]
            : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
        return %1 : tensor<4x8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Emit the verdict of every dot as a remark at the dot">
  ];
  let statistics = [
    Statistic<"numDots", "num-dots", "Number of dots">,
    Statistic<"numFP8Dots", "num-fp8-dots", "Number of dots that become FP8">
  ];
}

def FP8ReportVerdicts : Pass<"fp8-report-verdicts", "::mlir::ModuleOp"> {
  let summary = "Write the report of dots, gated units, collectives and state";
  let description = [{
    Writes what the verdicts say: `fp8.verdict` of the dots, `fp8.gated_units` of
    the functions, `fp8.wire_reason` of collectives and `fp8.state_verdict` of the
    arguments, in the order of the program. The module stays as it is.

    Example, with `file=-`: the table has one row, and its last line is
    `recipe mine: 1 of 1 dots in FP8`.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = mine,
        forward = {activation = {format = f8E4M3FN}, weight = {format = f8E4M3FN}},
        rules = [{keep = {part = head}}]}>} {
      func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']",
                                        lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32,
                                        lhs_format = f8E4M3FN, rhs_format = f8E4M3FN,
                                        lhs_tile = tensor, rhs_tile = tensor, reason = "linear layer">}
            : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
        return %0 : tensor<4x16xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let options = [
    Option<"file", "file", "std::string", "\"\"",
           "Where the report goes: JSON if it ends in .json, else a table; - is stderr">,
    Option<"update", "update", "bool", "false",
           "Add what is said of the state to a report that has the dots already">,
    Option<"dotsAlone", "dots-alone", "bool", "false",
           "Leave out collectives: those of quantized dots are not there yet">
  ];
}

def FP8CheckVerdicts : Pass<"fp8-check-verdicts", "::mlir::ModuleOp"> {
  let summary = "Check that the verdicts are what the recipe's author meant";
  let description = [{
    A rule of the recipe that decides about no dot of a training step is an error
    at the rule. With `fail-on-fallback`, so is every dot that the recipe
    quantizes but that cannot be converted.

    Example: this passes, for the only rule has decided. With a rule
    `{keep = {path = "*['q']"}}` it would not.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = mine,
        forward = {activation = {format = f8E4M3FN}, weight = {format = f8E4M3FN}},
        rules = [{keep = {part = head}}]}>} {
      func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            {fp8.verdict = #fp8.verdict<high_precision, role = forward, category = head, layer = "p['head']",
                                        lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32,
                                        lhs_format = f32, rhs_format = f32, rule = 1, reason = "head">}
            : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
        return %0 : tensor<4x16xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let options = [
    Option<"failOnFallback", "fail-on-fallback", "bool", "false",
           "Fail if a dot that the recipe quantizes cannot be converted">
  ];
}

def FP8RecomputeAttention : Pass<"fp8-recompute-attention", "::mlir::ModuleOp"> {
  let summary = "Compute scores again in the backward pass";
  let description = [{
    Autodiff saves what the backward pass of a softmax reads, as large as the
    scores of all heads. This pass has it computed again: the dot that makes the
    scores and all that follows from it, up to what the backward pass reads, is
    cloned in front of its first reader there, behind an optimization barrier. What is
    saved then are the operands of the dot, which the backward pass reads anyway.

    Scores are found by data flow. Dots of two activations (by their verdicts)
    make them, elementwise ops, transposes and reductions over the keys of a
    query work on them, and other dots of two activations contract them. The copies of dots
    are marked with `fp8.recompute`: the report of verdicts lists the user's dots.

    Example: from `%s` on, what the backward pass reads of the scores is computed
    from a second dot of `%q` and `%k`.

    ```mlir
    func.func @scores(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>) -> tensor<16x16xf32> {
      %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1]
          {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation,
              rhs = activation, batch = 1, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32,
              reason = "attention">}
          : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
      return %s : tensor<16x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let statistics = [
    Statistic<"numRecomputed", "num-recomputed", "Number of dots computed a second time">
  ];
}

def FP8FormAttention : Pass<"fp8-form-attention", "::mlir::ModuleOp"> {
  let summary = "Make ops of softmaxes over scores and their dots";
  let description = [{
    Finds scores as `fp8-recompute-attention` does and moves the dots that make
    them, the ops between and the dots that contract them into the body of one
    `fp8.attention`, or of an `fp8.attention_backward` where queries are summed over. The arithmetic
    stays the step's own. Masks and biases that are computed from iotas and
    smaller tensors move in too.

    Scores that anything else reads stay outside, as they are; `emit-remarks` says
    for each what is in the way. Every softmax gets a `#fp8.softmax_verdict` for
    the report: on the op, or on the dot that makes the scores. With
    `store-scores` all of them stay.

    Example: see `fp8.attention`.

    ```mlir
    func.func @main(%q: tensor<16x8xf32>) -> tensor<16x8xf32> {
      return %q : tensor<16x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Emit a remark where scores are stored, with the reason">,
    Option<"storeScores", "store-scores", "bool", "false",
           "Leave all softmaxes as they are">
  ];
  let statistics = [
    Statistic<"numFormed", "num-formed", "Number of softmaxes that became ops">,
    Statistic<"numLeft", "num-left", "Number of softmaxes whose scores are stored">
  ];
}

def FP8SaveActivations : Pass<"fp8-save-activations", "::mlir::ModuleOp"> {
  let summary = "Narrow what the backward pass reads of the forward pass";
  let description = [{
    Does what the recipe's `compute` says of `saved`, `saved_norms` and
    `saved_gated`: what the forward pass keeps for the backward pass is stored in
    bf16, or as payloads in groups of 1x16, and restored where it is read. What
    follows elementwise from other saved values is computed again instead. Values
    that only dots with the verdict `fp8` read stay: their payloads are kept.

    The pass runs behind `fp8-decide` and before `fp8-quantize-dots`.

    Example input: `%0` is read by the backward pass, so it is rounded to bf16
    behind its definition, and converted back in front of the multiplication.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {saved = bf16}}>} {
      func.func @main(%w: tensor<64x32xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
                      %x: tensor<64x32xf32> {fp8.role = "batch", fp8.path = "x"})
          -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "w"},
              tensor<f32> {fp8.kind = "loss", fp8.path = "result[1]"}) {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.multiply %w, %x : tensor<64x32xf32>
        %1 = stablehlo.sine %0 : tensor<64x32xf32>
        %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1]
            : (tensor<64x32xf32>, tensor<f32>) -> tensor<f32>
        %3 = stablehlo.cosine %0 : tensor<64x32xf32>
        %4 = stablehlo.multiply %3, %x : tensor<64x32xf32>
        %5 = stablehlo.subtract %w, %4 : tensor<64x32xf32>
        return %5, %2 : tensor<64x32xf32>, tensor<f32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
}

def FP8QuantizeDots : Pass<"fp8-quantize-dots", "::mlir::ModuleOp"> {
  let summary = "Compute dots in FP8";
  let description = [{
    Rewrites every dot with the verdict `fp8`: both operands become `!fp8.scaled`
    values, the dot an `fp8.dot_general`, which keeps the verdict. How operands
    are quantized is what the recipe says of their kind and the dot's role.

    A tensor that several dots read is quantized once per format, right after
    its definition (an argument: right before it is first read): forward and wgrad share the activation, forward and dgrad the
    weight, dgrad and wgrad the output gradient. Dots that read a tensor through
    reshapes, transposes or barriers share its payload too: with one scale for
    the whole tensor, another arrangement of the elements needs no other
    quantization, and the payload is rearranged instead. Delayed scales and
    copies of weights that are state become arguments and results.

    Example:

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = mine,
        forward = {activation = {format = f8E4M3FN}, weight = {format = f8E4M3FN}},
        rules = [{keep = {part = head}}]}>} {
      func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']",
                                        lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32,
                                        lhs_format = f8E4M3FN, rhs_format = f8E4M3FN,
                                        lhs_tile = tensor, rhs_tile = tensor, reason = "linear layer">}
            : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
        return %0 : tensor<4x16xf32>
      }
    }
    ```

    becomes, without the recipe and the verdict,

    ```mlir
    func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
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
      return %0 : tensor<4x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"nameTensors", "name-tensors", "bool", "false",
           "Name the operands of the dots, for fp8-trace">
  ];
  let statistics = [
    Statistic<"numQuantized", "num-quantized", "Number of tensors quantized">
  ];
}

def FP8StoreGradients : Pass<"fp8-store-gradients", "::mlir::ModuleOp"> {
  let summary = "Store the gradients of weights as the recipe says";
  let description = [{
    Where the recipe has `gradients`, what the wgrad dots compute is stored in
    that format between the backward pass and the optimizer, in the stacks of
    loops over layers and in the sums of loops over micro-batches. Gradients of
    layers that a rule keeps stay.

    Wgrad dots are known by their verdicts. The pass runs behind
    `fp8-quantize-dots`.

    Example: with `gradients = {format = bf16}`, `%0` is rounded to bf16 and
    converted back before it is subtracted.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{name = mine, gradients = {format = bf16}}>} {
      func.func @main(%x: tensor<4x32xf32>, %dy: tensor<4x16xf32>, %w: tensor<32x16xf32>) -> tensor<32x16xf32> {
        %0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0]
            {fp8.verdict = #fp8.verdict<high_precision, role = wgrad, category = linear, layer = "p['w']",
                                        lhs = activation, rhs = gradient, batch = 1, m = 32, n = 16, k = 4,
                                        lhs_format = f32, rhs_format = f32, reason = "recipe 'mine' has no 'wgrad' key">}
            : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
        %1 = stablehlo.subtract %w, %0 : tensor<32x16xf32>
        return %1 : tensor<32x16xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let statistics = [
    Statistic<"numGradients", "num-gradients",
              "Number of gradients and sums of them stored as the recipe says">
  ];
}

def FP8ComputeTypes : Pass<"fp8-compute-types", "::mlir::ModuleOp"> {
  let summary = "Compute the other dots in what the recipe says";
  let description = [{
    With `unquantized_dots = bf16` in the recipe's `compute`, every
    `stablehlo.dot_general` of f32 operands reads them rounded to bf16; sums and
    results stay f32. A value that several dots read is rounded once. With
    `attention` in the recipe's `compute` this is said apart for the dots of
    attention (by their verdicts): `f32`, `bf16`, or `f8`. With `f8` the operands
    of a softmax's dots are rounded to E4M3 before: queries, keys, values and the
    gradient of the output in blocks of 64 tokens of a head, weights row by row.
    Scales are powers of two, so that the dots read these numbers as bf16. The
    pass runs behind `fp8-quantize-dots`.

    Example: both operands are rounded.

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {unquantized_dots = bf16}}>} {
      func.func @main(%a: tensor<4x32xf32>, %b: tensor<32x16xf32>) -> tensor<4x16xf32> {
        %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
            : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
        return %0 : tensor<4x16xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
}

def FP8NarrowGathers : Pass<"fp8-narrow-gathers", "::mlir::func::FuncOp"> {
  let summary = "Quantize and round before a gather, not behind it";
  let description = [{
    An `fp8.exchange gather` whose result, in the order of the ranks along one
    dimension, only `fp8.amax` and `fp8.quantize` read: each rank quantizes its
    own part, and payloads are gathered. Scales are those of the whole, bit for
    bit: where a tile spans the ranks the amax is the largest of theirs, and
    where it does not each rank's scales follow from its own amaxes. If all that
    reads it is one `stablehlo.convert` to a narrower type, that is gathered.

    An exchange stays, with the reason in its verdict, where something else reads
    what is gathered, where it is rounded at random, where a tile has elements of
    several ranks and not of all, where a rank has fewer than 1024 elements, or
    where payloads of several tilings are no fewer bytes.

    Example: payloads of `%x` travel, and one amax of each rank.

    ```mlir
    func.func @main(%x: tensor<64x32xf32>) -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32> {
      %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> : tensor<64x32xf32> -> tensor<2x64x32xf32>
      %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
      %2 = fp8.amax %1 : tensor<128x32xf32> -> tensor<f32>
      %scale, %quantizer = fp8.compute_scale %2 {format = f8E4M3FN, rule = #fp8.scale_rule<exact>} : tensor<f32> -> tensor<f32>
      %3 = fp8.quantize %1, %scale, %quantizer rounding = nearest_even, overflow = saturate
          : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>
      return %3 : !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
}

def FP8DropVerdicts : Pass<"fp8-drop-verdicts", "::mlir::ModuleOp"> {
  let summary = "Take the verdicts off the program";
  let description = [{
    Removes `fp8.verdict`, `fp8.gated_units` and `fp8.state_verdict`, once they
    are reported and done: dots that compute the same are one to `cse` only if
    they have the same attributes, and their verdicts may differ (one may repeat
    the other for the backward pass). Role and layer stay as the outermost name
    of the dot's location, which does not tell dots apart.

    Example:

    ```mlir
    func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          {fp8.verdict = #fp8.verdict<high_precision, role = other, category = other,
                                      batch = 1, m = 4, n = 16, k = 32, lhs_format = f32, rhs_format = f32,
                                      reason = "no operand is a parameter">}
          : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
      return %0 : tensor<4x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
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

    Every array of floats gets a `#fp8.state_verdict` that says what it is stored
    in and why.

    Example: the momentum of

    ```mlir
    module attributes {fp8.recipe = #fp8.recipe<{
        name = mine, optimizer = {moment1 = {format = f8E4M3FN, tile = tensor}, min_elements = 1}}>} {
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
    }
    ```

    is stored in a byte an element (recipe and verdicts left out):

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
    `fp8-quantize-dots=name-tensors` leaves on the dots (and this pass
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
