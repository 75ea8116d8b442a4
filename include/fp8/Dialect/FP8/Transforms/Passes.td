//===- Passes.td - Passes of the fp8 dialect ---------------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FP8ResolveRecipe : Pass<"fp8-resolve-recipe", "::mlir::ModuleOp"> {
  let summary = "Attach the effective recipe to the module";
  let description = [{
    Loads a recipe by name or from a file, sets the keys that `set` names, and
    attaches the result to the module as `fp8.recipe`, a `#fp8.recipe`. All
    other passes of the fp8 stage read the recipe from this attribute alone. A
    mistake in the recipe is an error before any pass runs. A module that
    already has a recipe is an error, too, because its ops may already follow
    that recipe.

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
    of batch arguments) and holds the same state. The pass tracks how values
    differ between ranks. A value is replicated, made of rows, or partial: one
    rank's part of a sum, maximum or minimum over the rows of all ranks. A sum
    over rows is partial, and so is any linear function of it: transposed,
    scaled, summed over micro-batches, stacked by a loop. Where an op is not
    linear in a partial value (a norm, an optimizer, a comparison), or where a
    partial value is a result, the pass completes the value with one
    `fp8.all_reduce` where it is computed.

    Partial values that follow from parameters, reach the state, and follow from
    what the backward pass begins with are gradients. The pass averages them if
    it proves that the loss is a mean: a sum over rows divided by the number of
    its elements. It sums them if the loss is a sum divided by a count computed
    from the batch; the count is itself summed over the ranks. Otherwise the
    pass requires `loss-reduction`. One that contradicts the proof is an error.
    For every other partial value the pass has to prove whether it is part of a
    sum or of a mean. Where a completed sum is divided by the number of its
    elements, the division reads the rank's part instead, and the mean is
    completed.

    A step without state, or without a batch, is an error.

    A computation that does not work row by row is an error at the op: a
    normalization over the batch, contrastive scores, an ordering of the rows,
    positions along the batch. Conditions of branches and loops around a
    collective must be the same on all ranks, so that all ranks reach the same
    collectives in the same order.

    Each rank draws random numbers for its own rows (dropout): an index along
    the batch counts the rows of all ranks (`fp8.row_iota`, `fp8.row_state`),
    and keys are the same on all ranks.

    A step exported from `shard_map` says itself what each rank computes. The
    pass only gives each rank its rows of the batch and its parts of the state
    (`stablehlo.part` of the argument). An array of the state is split if all
    its readers slice the same parts off it and its new value is gathered from
    these parts, possibly with elementwise ops in between. Other state is whole
    on every rank. So is state that the recipe stores in a form that cannot be
    split (scales of earlier steps, scales of groups that span ranks, range
    expansion).

    With `global-batch=N` the batch of the step is that of N ranks together, and
    each gets 1/N of its rows: the pass also makes all dimensions that count
    rows shorter. The step then computes what one process computes, so nothing
    has to be proven about means and sums, and rows may read what follows from
    all rows (a normalization over the batch). An op that cannot be computed row
    by row reads the rows of all ranks (`fp8.exchange gather`), if they are in
    the order of the batch.

    With `global-amax` the pass marks on every dot which of its operands are
    made of rows (`fp8.rows`), for the passes that quantize them.

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
           "How the loss combines the rows of the batch, mean or sum, where the pass cannot prove it">,
    Option<"zero", "zero", "unsigned", "0",
           "1: each rank owns the masters and moments of some parameters (see fp8-deal-state)">,
    Option<"globalAmax", "global-amax", "bool", "false",
           "Current scales follow from the amaxes of all ranks, not of a rank's own rows">,
    Option<"globalBatch", "global-batch", "unsigned", "0",
           "The batch is that of this many ranks, which share its rows; 0: each rank has one of its own">
  ];
}

def FP8SliceLogits : Pass<"fp8-slice-logits", "::mlir::ModuleOp"> {
  let summary = "Compute large logits and their loss in slices of rows";
  let description = [{
    Logits of a large vocabulary, and their gradients, are the largest tensors
    of a step. Every row of logits is used independently: the loss of its token
    follows from it, and its gradient flows back to the token's activation and,
    summed over tokens, to the weight. This pass finds the ops between the last
    layer's dot and the small values that follow from the logits (losses, the
    gradients of activations and weight). It moves these ops into a loop over
    slices of the rows, so that only one slice is alive at a time. The loop
    stacks values that have rows and carries sums over rows, in f32 if they are
    narrower. Only these sums change: they are accumulated slice by slice.

    Logits are the results of forward dots of a layer whose output no other
    layer reads, if they take more bytes in f32 than the recipe's
    `compute.logits_bytes`. The sliced dimension is the first one along which
    every op that reads a tensor of that size works independently or sums. If
    gradients follow from a sum over all rows, a second loop computes the logits
    again, from operands behind barriers. If a loss reads a slice of the rows
    that cannot be cut, it works on all rows first, and its sums leave out those
    that are not in the slice. If the number of rows has no suitable divisor,
    rows of zeros are added in the same way. The pass leaves logits alone that are
    results, sorted, or compared with those of other rows; `emit-remarks` names
    the op that prevents slicing. Masks and one-hot labels are computed in
    slices, too.

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
           "Emit a remark at each large dot: the number of slices, or why it is not sliced">
  ];
  let statistics = [
    Statistic<"numSliced", "num-sliced", "Number of dots computed in slices">
  ];
}

def FP8SmoothSwiGLU : Pass<"fp8-smooth-swiglu", "::mlir::ModuleOp"> {
  let summary = "Scale the product of gated units before it is quantized";
  let description = [{
    The product `h = act(x · gate) * (x · linear)` of a gated unit (SwiGLU,
    GeGLU, ReGLU, ...) has outliers in single channels, where the columns of the
    two weights have become alike. One scale for the whole tensor cannot
    represent them. Where the recipe has `smooth_swiglu` and computes the dot
    that reads `h` in FP8, this pass divides `h` by a factor `s` before it is
    quantized and multiplies by `s` elsewhere:

    | | per channel | per token |
    |---|---|---|
    | s from | max over tokens of `h` | max over channels of the linear branch |
    | forward | `y = (h/s) · (s w)` | `y = s ((h/s) · w)` |
    | dgrad | `dh = (dy · (s w)ᵀ) / s` | `dh = ((s dy) · wᵀ) / s` |
    | wgrad | `dw = s ((h/s)ᵀ · dy)` | `dw = (h/s)ᵀ · (s dy)` |

    No gradient flows through `s`. With `scale: pow2` all of this is exact
    unless a value overflows or becomes subnormal. With `scaling: delayed` the
    factor comes from earlier steps and is state:
    `fp8.<path of w>.smooth.quantizer` holds `1 / s`, or 0 if it was never set.

    If each rank has some of the channels (`fp8.exchange` sums the results of
    the forward dot over them), a token's current `s` follows from the largest
    value on all these ranks, which takes one more exchange. A channel's `s` is
    local to its rank.

    The pass finds gated units by data flow, however they are written (see
    `include/fp8/Analysis/LinearLayers/GatedUnits.h`). It records what became of each unit in
    the attribute `fp8.gated_units` of its function, for `fp8-report-verdicts`.

    Example: the pass divides the activation of the last dot by `s` and
    multiplies its weight by `s`.

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
           "Emit a remark for every gated unit at the dot that reads its product">,
    Option<"allDots", "all-dots", "bool", "false",
           "Smooth products that high-precision dots read, too, to test the transformation alone">
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
    import stage; a public function none of whose arguments has a role is an
    error. The recipe comes from `fp8-resolve-recipe`.

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
    Writes the verdicts in program order: `fp8.verdict` of dots,
    `fp8.gated_units` of functions, `fp8.wire_reason` of collectives and
    `fp8.state_verdict` of arguments. Does not change the module.

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
           "Add the verdicts on the state to a report that already has the dots">,
    Option<"dotsAlone", "dots-alone", "bool", "false",
           "Leave out collectives, because those of quantized dots do not exist yet">
  ];
}

def FP8CheckVerdicts : Pass<"fp8-check-verdicts", "::mlir::ModuleOp"> {
  let summary = "Check that every rule of the recipe decides about a dot";
  let description = [{
    It is an error at the rule if a rule of the recipe decides about no dot of a
    training step. With `fail-on-fallback`, it is an error at the dot if the
    recipe quantizes a dot that cannot be converted.

    Example: this passes, because the only rule decides about the dot. With a
    rule `{keep = {path = "*['q']"}}` it would fail.

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

def FP8SplitHeads : Pass<"fp8-split-heads", "::mlir::ModuleOp"> {
  let summary = "Compute what follows from scores with the dimensions of the dots";
  let description = [{
    Between the dots of an attention, reshapes may merge groups of heads, or heads
    and batches, and split them again: a bias has one dimension of heads, dots of
    grouped queries have two. This pass moves such reshapes behind all elementwise
    ops, reductions, broadcasts and transposes that follow from scores, and through
    the dots, so that the passes behind it find the same dimensions everywhere. It
    changes no arithmetic. Blocks in which no reshape of scores splits or merges
    dimensions stay as they are.

    Scores that are reshaped for elementwise ops (to add the mask of shifted
    windows) and then back keep their shape; the mask is reshaped instead.

    If each row of scores has one more element beside its keys (a sink), which
    is concatenated before the softmax and dropped after it, the pass computes
    the two apart. Sums over a row then add the sink's element at the end.

    Example: the exponential has two dimensions of heads, and `%m` is merged only
    for its other readers.

    ```mlir
    func.func @scores(%q: tensor<2x3x16x8xf32>, %k: tensor<2x16x8xf32>) -> tensor<6x16x16xf32> {
      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [3] x [2]
          {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation,
              rhs = activation, batch = 2, m = 48, n = 16, k = 8, lhs_format = f32, rhs_format = f32,
              reason = "attention">}
          : (tensor<2x3x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x3x16x16xf32>
      %m = stablehlo.reshape %s : (tensor<2x3x16x16xf32>) -> tensor<6x16x16xf32>
      %e = stablehlo.exponential %m : tensor<6x16x16xf32>
      return %e : tensor<6x16x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of ops whose dimensions were split or kept">
  ];
}

def FP8RecomputeAttention : Pass<"fp8-recompute-attention", "::mlir::ModuleOp"> {
  let summary = "Compute scores again in the backward pass";
  let description = [{
    Autodiff saves the values that the backward pass of a softmax reads, which
    are as large as the scores of all heads. This pass recomputes them: it
    clones the dot that makes the scores, and all ops from there to the values
    that the backward pass reads, in front of the first reader in the backward
    pass, behind an optimization barrier. The step then saves only the operands
    of the dot, which the backward pass reads anyway. If loops save scores in
    stacks, or branches as results, it clones the ops to where the backward pass
    reads these. Scores that a checkpointed layer saves no longer pass the
    barrier behind which its backward pass reads them.

    The pass finds scores by data flow. Dots of two activations (by their
    verdicts) make them; elementwise ops, transposes and reductions over the
    keys of a query transform them; other dots of two activations contract them.
    The cloned dots are marked with `fp8.recompute`, so that the report of
    verdicts lists only the user's dots.

    Example: from `%s` on, the values that the backward pass reads are computed
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
  let summary = "Form attention ops from softmaxes over scores and their dots";
  let description = [{
    Finds scores as `fp8-recompute-attention` does. Moves the dots that make
    them, the dots that contract them, and the ops in between into the body of
    one `fp8.attention`, or of one `fp8.attention_backward` if they sum over
    queries. The arithmetic stays the step's own. Masks and biases that are
    computed from iotas and smaller tensors move in, too. So do sums of scores:
    the gradient of a bias, a sum over batches or heads, is an op of its own;
    other sums have a part for each batch and head, and are finished outside.

    Scores that any other op reads stay outside, unchanged; `emit-remarks` says
    for each what prevents the move. Every softmax gets a `#fp8.softmax_verdict`
    for the report, on the attention op or on the dot that makes the scores.
    With `store-scores` no attention op is formed.

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

def FP8DeferDivision : Pass<"fp8-defer-division", "::mlir::ModuleOp"> {
  let summary = "Divide the results of an attention instead of its weights";
  let description = [{
    A softmax divides each weight of a row by the sum of the row. Where the only
    reader of the weights is a dot over all of the row, perhaps behind a cast, a
    dropout or a mask of zeros, the dot reads undivided weights and its result
    is divided, which has fewer elements. Undivided weights must be exponentials
    of a row minus its maximum, so that they are at most one and their sums do
    not overflow. If the dot's result has less than 32 bits, it becomes f32, and
    the quotient is rounded.

    The pass runs after `fp8-form-attention`, on `fp8.attention` alone: the
    gradients of an attention need the weights themselves.

    Example: the result of the second dot is divided.

    ```mlir
    func.func @attend(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>, %v: tensor<16x8xf32>) -> tensor<16x8xf32> {
      %0 = fp8.attention %q, %k, %v
          : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32> {
      ^bb0(%a: tensor<16x8xf32>, %b: tensor<16x8xf32>, %c: tensor<16x8xf32>):
        %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
            : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
        %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1]
            : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
        %b0 = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<16xf32>) -> tensor<16x16xf32>
        %d = stablehlo.subtract %s, %b0 : tensor<16x16xf32>
        %e = stablehlo.exponential %d : tensor<16x16xf32>
        %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
        %b1 = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<16xf32>) -> tensor<16x16xf32>
        %p = stablehlo.divide %e, %b1 : tensor<16x16xf32>
        %o = stablehlo.dot_general %p, %c, contracting_dims = [1] x [0]
            : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
        fp8.yield %o : tensor<16x8xf32>
      }
      return %0 : tensor<16x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let statistics = [
    Statistic<"numDeferred", "num-deferred", "Number of attentions whose results are divided">
  ];
}

def FP8SaveActivations : Pass<"fp8-save-activations", "::mlir::ModuleOp"> {
  let summary = "Store saved activations in fewer bits";
  let description = [{
    Applies `saved`, `saved_norms`, `saved_gated` and `attention` of the recipe's
    `compute`.
    Values that the forward pass saves for the backward pass are stored in bf16,
    or as payloads in groups of 1x16, and restored where they are read. Values
    that follow elementwise from other saved values are recomputed instead, and
    values that are repeated (keys for a group of queries) are saved before that.
    If `attention` is `f8`, values that only attention dots read are stored as
    the payloads in blocks of 64 tokens that these dots will read.
    Values that only dots with the verdict `fp8` read stay, because their
    payloads are saved.

    The pass runs after `fp8-decide` and before `fp8-quantize-dots`.

    Example input: the backward pass reads `%0`, so the pass rounds it to bf16
    after its definition and converts it back before the multiplication.

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
    Rewrites every dot with the verdict `fp8`: both operands become
    `!fp8.scaled` values, and the dot becomes an `fp8.dot_general`, which keeps
    the verdict. The recipe decides how an operand is quantized, by the
    operand's kind and the dot's role.

    A tensor that several dots read is quantized once per format, right after
    its definition (an argument: right before its first reader). Forward and
    wgrad share the activation, forward and dgrad the weight, dgrad and wgrad
    the output gradient. Dots that read a tensor through reshapes, transposes or
    barriers share its payload, too: with one scale for the whole tensor the
    pass rearranges the payload instead of quantizing again. Delayed scales, and
    copies of weights that are state, become arguments and results.

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
    If the recipe has `gradients`, the results of wgrad dots are stored in that
    format between the backward pass and the optimizer, also in the stacks of
    loops over layers and in the sums of loops over micro-batches. Gradients of
    layers that a rule keeps in high precision do not change.

    The pass recognizes wgrad dots by their verdicts. It runs after
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
  let options = [
    Option<"nameTensors", "name-tensors", "bool", "false",
           "Name the stored gradients, for fp8-trace">
  ];
  let statistics = [
    Statistic<"numGradients", "num-gradients",
              "Number of gradients and sums of them stored as the recipe says">
  ];
}

def FP8ComputeTypes : Pass<"fp8-compute-types", "::mlir::ModuleOp"> {
  let summary = "Set the compute type of dots that are not quantized";
  let description = [{
    With `unquantized_dots = bf16` in the recipe's `compute`, every
    `stablehlo.dot_general` with f32 operands reads them rounded to bf16;
    accumulators and results stay f32. A value that several dots read is rounded
    once. `attention` in `compute` sets this separately for the dots of
    attention (recognized by their verdicts): `f32`, `bf16`, or `f8`. With `f8`
    the operands of a softmax's dots are rounded to E4M3 first: queries, keys,
    values and the gradient of the output in blocks of 64 tokens of a head,
    weights row by row. Scales are powers of two, so that bf16 holds the rounded
    values exactly. The pass runs after `fp8-quantize-dots`.

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
  let summary = "Quantize and round before a gather, not after it";
  let description = [{
    Matches an `fp8.exchange gather` that concatenates the ranks' parts in order
    along one dimension, if only `fp8.amax` and `fp8.quantize` read the result.
    Each rank then quantizes its own part, and the ranks gather payloads. The
    scales are those of the whole tensor, bit for bit: the amax of a tile that
    spans the ranks is the largest of theirs; if no tile does, each rank's
    scales follow from its own amaxes. If the only reader is one
    `stablehlo.convert` to a narrower type, the ranks gather its result.

    An exchange stays, with the reason in its verdict, if another op reads the
    result, if the rounding is stochastic, if a tile has elements of several
    ranks but not of all, if a rank has fewer than 1024 elements, or if the
    payloads of several tilings take no fewer bytes.

    Example: the ranks gather payloads of `%x` and one amax each.

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
  let summary = "Remove the verdicts";
  let description = [{
    Removes `fp8.verdict`, `fp8.softmax_verdict`, `fp8.state_verdict`,
    `fp8.gated_units`, `fp8.wire_reason` and `fp8.rows` after the last pass that
    reads them. `cse` merges dots only if they have equal attributes, but the
    verdicts of equal dots may differ (one dot may repeat the other for the
    backward pass). Role and layer stay as the outermost name of the dot's
    location, which `cse` ignores.

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
    Changes the type of every state argument of kind `moment1`, `moment2` or
    `parameter` (or of the master copy of a parameter) to the type in which the
    recipe's `optimizer` stores it: `!fp8.scaled`, or another float type. The
    step dequantizes such an argument where it reads it, and stores its next
    value from the f32 result of the update. Range expansion adds two state
    arguments, whose paths have the suffixes `.center` and `.exponent`; a
    delayed scale adds its history.

    An update that is not taken stores nothing: where a branch or a select
    passes the old value on, or a factor of 0 cancels the update, the step
    passes on the old payload and scale. A loop over whole steps carries them.

    The pass adds two functions beside the step: `@fp8_store`
    (`fp8.entry = "store"`) converts the user's state to the form that the step
    takes, `@fp8_load` is its inverse.

    Every array of floats gets a `#fp8.state_verdict` that says how it is stored
    and why.

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

    is stored in one byte per element (recipe and verdicts omitted):

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
           "Emit a remark at the argument that says how each array is stored">
  ];
  let statistics = [
    Statistic<"numArrays", "num-arrays", "Number of arrays of floats in the state">,
    Statistic<"numStored", "num-stored", "Number of arrays whose stored type changes">
  ];
}

def FP8SavePayloads : Pass<"fp8-save-payloads", "::mlir::func::FuncOp"> {
  let summary = "Stack payloads instead of the tensors they are quantized from";
  let description = [{
    A forward loop over layers writes the values that the backward loop needs
    into stacks. Where the backward loop reads a slot only to quantize it, this
    pass makes the forward loop quantize it (usually it already does so for its
    own dots) and stack payload and scale instead: the same bits, in a quarter
    of the memory. A stack that is also read in high precision stays.
    Stochastically rounded payloads stay, too, because their random numbers
    depend on where they are made.

    Example input: the first loop stacks `tensor<4x32xf32>` values that the
    second loop quantizes.

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
  let summary = "Add results that measure how alike the weights of gated units are";
  let description = [{
    Adds a result of kind `trace_alignment` for every gated unit
    `act(x a) * (x b)`. For each layer of a loop it holds the maximum of
    |cos(a_i, b_i)| over the channels i, the number of channels, and the sum.
    The path of the gate weights names the result. The pass runs on an imported
    step, before a recipe is applied.

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
  let summary = "Add results that measure the updates of parameters";
  let description = [{
    Adds a result of kind `trace_update` for every second moment (a state
    argument of kind `moment2`) whose update averages the square of a gradient
    g, and whose value v, bias-corrected or not, enters a square root. The
    result holds the number of elements and the sum of g^2 / v. The path of the
    updated parameter names the result.

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
  let summary = "Add statistics of quantized tensors to the results";
  let description = [{
    Adds a result of kind `trace_quantization` for every quantized tensor: a row
    of f64 values, maxima and sums over the tensor's elements
    (`fp8_trace_quantization` in `fp8-c/Runtime/Tensors.h` defines their order).
    From these the runtime computes amax, scale, the fractions that underflow and
    saturate, the signal-to-noise ratio and the kurtosis. Nothing that the step
    computes depends on them.

    A loop over layers gives one row per layer. Other loops combine sums and
    maxima over their iterations. A branch counts only if it is taken.

    A tensor's name comes from the attribute `fp8.tensors` that
    `fp8-quantize-dots=name-tensors` leaves on the dots (this pass removes it),
    else from the result that the payload becomes, else from the attribute
    `fp8.tensor` of a stored gradient, else from the location. A
    tensor that is quantized again for another kind of dot gets the suffix
    `.wgrad` or `.dgrad`; any other duplicate name gets `.2`.

    Example: the new result has the fp8.path `trace.quantization.p['w'].activation`.

    ```mlir
    func.func @main(%x: tensor<4x32xf32>, %scale: tensor<f32>, %quantizer: tensor<f32>,
                    %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
      %0 = fp8.quantize %x, %scale, %quantizer rounding = nearest_even, overflow = saturate
          : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
      %1 = fp8.dot_general %0, %w, contracting_dims = [1] x [0]
          {accumulator = f32, fp8.tensors = #fp8.dot_tensors<role = forward, lhs = activation, rhs = weight,
                                                             lhs_name = "p['w'].activation", rhs_name = "p['w'].weight">}
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
      outside the function, only through pack, unpack, layout ops, exchanges and
      the stacks of loops;
    - no tensor is quantized twice in the same way;
    - every amax and every scale that is computed is used;
    - the scale and the quantizer of a quantization come from the same
      `fp8.compute_scale`;
    - every result that replaces state has the type of that state, and the
      functions that store and load the state have matching types and fit the
      step.

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
