//===- Passes.td - Passes on StableHLO steps ---------------*- tablegen -*-===//

#ifndef FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerCollectives : Pass<"stablehlo-lower-collectives", "::mlir::ModuleOp"> {
  let summary = "Lowers collectives to exchanges of parts and arithmetic";
  let description = [{
    In a module of several partitions (or replicas) the pass replaces every
    collective by an `fp8.exchange` between ranks, one rank per device, and by
    StableHLO that splits, reduces and joins parts. Reductions run in the order
    of the group, in the computation's own arithmetic. A small tensor is
    gathered and reduced by every rank; of a large one each rank reduces a part,
    and the results are gathered. The computation must be one add, maximum,
    minimum, and, or; groups must have one size and name every device. A rank
    receives its `partition_id` from the other ranks, because all ranks run the
    same code.

    Example: the sum becomes a gather and a reduction.

    ```mlir
    module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %1 = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %1 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
}

def OneRank : Pass<"stablehlo-one-rank", "::mlir::ModuleOp"> {
  let summary = "Turns a step in shard_map into the program of one rank";
  let description = [{
    In a module of several partitions the body of each `sdy.manual_computation`
    replaces the op. Values outside the op are whole and the same on all ranks:
    the pass slices this rank's parts of the operands (`partition_id`,
    `dynamic_slice`) and gathers those of the results (`all_gather`). So ops
    outside, such as an optimizer, run as they are written, and state is whole
    until `fp8-data-parallel`. Shardings must split dimensions over whole axes
    of a mesh of all devices, in any order; the computation must be manual over
    all axes. An argument of the step of which rank r reads only the r-th part
    of the rows is marked `stablehlo.rows`. The function gets the number of
    devices as `stablehlo.devices`. Both attributes stay until
    `fp8-data-parallel`, which also reads `stablehlo.part` of a slice: where the
    parts of all devices begin.

    A module of several partitions without a `sdy.manual_computation` is one
    that XLA would partition. If it splits nothing but the rows of arguments,
    these are marked `stablehlo.rows`, and the function gets the number of
    devices as `stablehlo.sharing`: they share its batch. Any other split
    argument or result is an error.

    Example: each rank reads 4 elements of 8.

    ```mlir
    module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
      sdy.mesh @mesh = <["data"=2]>
      func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
        %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"} ]>] out_shardings=[<@mesh, [{"data"} ]>] manual_axes={"data"} (%a: tensor<4xf32>) {
          %1 = stablehlo.add %a, %a : tensor<4xf32>
          sdy.return %1 : tensor<4xf32>
        } : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def DropSharding : Pass<"stablehlo-drop-sharding", "::mlir::ModuleOp"> {
  let summary = "Removes sharding, which a step for one device does not need";
  let description = [{
    Removes meshes, `sdy.sharding_constraint`, custom calls that only annotate
    (`@Sharding` and similar) and the attributes `sdy.*`, and `mhlo.*` on the
    module, the functions and their arguments. The body of a
    `sdy.manual_computation` over a mesh of one device replaces the op; a mesh
    of several devices is an error. A collective over groups of one device is
    replaced by its operands. In a module of one partition and one replica,
    `partition_id` and `replica_id` are replaced by 0. Other collectives stay,
    and the end of the import rejects them.

    Example: this function becomes one that returns its argument.

    ```mlir
    func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
}

def InlineCalls : Pass<"stablehlo-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Inlines all calls into the entry function";
  let description = [{
    JAX outlines helpers (`silu`, `_where`, `clip`) into private functions, and
    automatic differentiation splits them in halves. All later stages analyze
    data flow in one function. This pass therefore inlines every `func.call` and
    `stablehlo.composite` below the entry function, drops all other functions,
    and names the entry `main`. The location of an inlined op records the call.
    Recursion is an error.

    Example: `@main` gets the body of `@double`.

    ```mlir
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @double(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.add %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    // A file may hold several functions; JAX prints one.
    Option<"entry", "entry", "std::string", /*default=*/"\"\"",
           "Name of the function to keep; the only public one if empty">
  ];
}

def Simplify : Pass<"stablehlo-simplify"> {
  let summary = "Folds scalar constants and identities";
  let description = [{
    Applies rewrites that preserve every value bit for bit, except for the sign
    of zero: arithmetic on scalar (or splat) constants, `x * 1`, `x / 1`,
    `x - 0`, `x + 0` where x is a square, conversions and reshapes to the same
    type, chains of reshapes, of transposes and of broadcasts, sums over
    dimensions of size one, gathers and scatters whose one window is all of the
    tensor, and dots that contract nothing and whose one operand has batching
    dimensions alone. Constants that are not splats are never folded, but those of 64
    elements and more that follow from the positions of their elements are
    computed from iotas: integers that are a sum of multiples of indices, and
    two values of which one is a band (causal masks, windows).

    A gather or scatter of which an index counts rows (`x[jnp.arange(n), i]`) has
    the rows as batching dimensions instead, so later stages see that each row is
    read or written by itself.

    Example: the result is `%x`.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %two = stablehlo.constant dense<2.0> : tensor<f32>
      %one = stablehlo.divide %two, %two : tensor<f32>
      %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %0 = stablehlo.multiply %x, %ones : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
}

def ConvolutionsToDots : Pass<"stablehlo-convolutions-to-dots"> {
  let summary = "Rewrites convolutions as dots";
  let description = [{
    A convolution of floats becomes a dot, and so do its gradients: they are
    linear layers then, and are quantized. Along a spatial dimension whose window
    is one element (also with strides), covers the image, or is as long as the
    stride, the image is only reshaped; along others `fp8.windows` splits it, after
    its features became the last dimension. The order of sums may change.
    Groups become batches of the dot. Convolutions in groups of fewer than eight
    features of the image or the result stay, as those with a kernel for each
    channel, and so do those of integers and of f64.

    Example: patches of 4x4 pixels.

    ```mlir
    func.func @main(%x: tensor<2x8x8x3xf32>, %w: tensor<4x4x3x16xf32>) -> tensor<2x2x2x16xf32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [4, 4], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
        : (tensor<2x8x8x3xf32>, tensor<4x4x3x16xf32>) -> tensor<2x2x2x16xf32>
      return %0 : tensor<2x2x2x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::stablehlo::StablehloDialect"];
  let statistics = [
    Statistic<"numRewritten", "num-rewritten", "Number of convolutions that became dots">
  ];
}

def CanonicalizeLoops : Pass<"stablehlo-canonicalize-loops"> {
  let summary = "Brings loops and branches into the form that later stages expect";
  let description = [{
    On every `stablehlo.while`, inner ones first:

    - A carry that the body returns unchanged is read from outside instead.
      Carries that nobody reads, or that only feed themselves, are dropped. Of
      carries with the same start and step one is kept.
    - In a loop with a known trip count (its counter starts, steps and ends at
      constants) all other counters are computed from the first one, and
      counters that are read after the loop become constants.
    - A loop without iterations is removed; a loop of one iteration is replaced
      by its body.
    - A loop is unrolled if it has at most 16 iterations, yields at most 1024
      ops, and its body has only elementwise and data-movement ops: no dot, no
      reduction, no gather or dynamic slice, no loop or other region. The rounds
      of JAX's threefry are such loops. A loop over layers or micro-batches
      contains dots or slices of stacks and stays a loop.
    - An op that is the same in every iteration moves out if its result is small
      (1024 elements), or if it is a dot, a convolution, a reduction or similar
      and the loop runs at least once. Nothing moves across an
      `optimization_barrier`.

    A comparison, minimum, maximum, clamp or remainder of counters is replaced
    where the range of the counter determines its result: JAX wraps negative
    indices with `select(i < 0, i + n, i)`. A `scatter` of one window at a
    counter that stays inside the tensor becomes a `dynamic_update_slice`: JAX
    writes `x.at[i].set(...)` and `.add(...)` as such scatters.

    If one loop stacks a value that another loop can read from its origin, the
    other loop reads the origin: an index that follows from the counter, or a
    part of an array that existed before. JAX stacks both where a loop slices
    its weights itself (`params['w'][i]`). A stack of all slices of an array, in
    their order, is the array: Flax's NNX returns the weights of the layers that
    it scans. An element of `arange` is computed
    from its index, and indices bypass barriers.

    An `if` or `case` with a constant predicate is replaced by its branch, and a
    `case` on a boolean becomes an `if`. Results that nobody reads are dropped;
    results that no branch computes become a `select`.

    Between rounds constants are folded and equal ops are merged. Values are
    preserved bit for bit.

    Example: only five additions are left of the loop.

    ```mlir
    func.func @main(%x: tensor<4xui32>, %y: tensor<4xui32>) -> tensor<4xui32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %five = stablehlo.constant dense<5> : tensor<i32>
      %0:3 = stablehlo.while(%i = %zero, %h = %x, %k = %y) : tensor<i32>, tensor<4xui32>, tensor<4xui32>
      cond {
        %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.add %h, %k : tensor<4xui32>
        %2 = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %2, %1, %k : tensor<i32>, tensor<4xui32>, tensor<4xui32>
      }
      return %0#1 : tensor<4xui32>
    }
    ```
  }];
}

def AnalyzeSignature : Pass<"fp8-analyze-signature", "::mlir::ModuleOp"> {
  let summary = "Finds the roles of a step's arguments and results";
  let description = [{
    Pairs each state argument with the result that replaces it: by tree path and
    type and then by data flow, or by data flow alone if there are no names. An
    array that has a gradient is never replaced by its own old value, and no
    state by its negative. Among pairings that data flow cannot tell apart,
    names decide, then the order of arguments and results and
    `tf.aliasing_output` (JAX donates by shape), unless they contradict what
    data flow has decided elsewhere. The pass finds the loss, the result that
    gradients flow from, and marks other scalars that updates could follow from.
    It distinguishes parameters, moments, averages of weights and step counters
    by data flow, through loops and branches. Of the arguments that no result
    replaces, those that random bits are drawn from are keys, those that weights
    are applied to are batch, and those that are applied to data are frozen.
    Arguments that the run's initial values contain are frozen (floats) or
    constant (integers). The pass writes all of this as attributes:

    - on arguments `fp8.path`, `fp8.role` (state, frozen, batch, key, constant),
      for state `fp8.kind` (parameter, moment1, moment2, gradient,
      average, step, other), and for token arrays `fp8.vocabulary`, the rows of
      the smallest table they index, and on a batch of integers that only choose
      among what follows from data `fp8.labels`;
    - on results `fp8.path`, `fp8.state` (the path of the argument that it
      replaces) on state, and `fp8.kind` (loss, metric, output) on others;
      `fp8.trains` on a metric that gradients could flow from as from the loss.

    A function that does not train (an initializer, an evaluation) has no state:
    its float arguments are frozen, its integer arrays are the batch, and its
    loss is the scalar result named `loss`, or else the first one. An ambiguous guess is an error that lists
    the candidates; a step that updates no parameter is an error, too. The
    options overrule guesses.

    Example: `%p` becomes a parameter, `%x` and `%y` become the batch and the
    first result the loss.

    ```mlir
    func.func public @main(%p: tensor<4xf32>, %x: tensor<8x4xf32>, %y: tensor<8xf32>) -> (tensor<f32>, tensor<4xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %rate = stablehlo.constant dense<0.1> : tensor<4xf32>
      %z = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
      %d = stablehlo.subtract %z, %y : tensor<8xf32>
      %s = stablehlo.multiply %d, %d : tensor<8xf32>
      %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %g = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
      %u = stablehlo.multiply %g, %rate : tensor<4xf32>
      %new = stablehlo.subtract %p, %u : tensor<4xf32>
      return %loss, %new : tensor<f32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    // A function that does not train may look like a step, and a step like such
    // a function. The caller knows which it is.
    Option<"functionKind", "kind", "std::string", /*default=*/"\"auto\"",
           "auto, step, or function (nothing is state)">,
    ListOption<"roles", "roles", "std::string",
               "Roles that overrule the guess, each PATH=ROLE">,
    ListOption<"states", "states", "std::string",
               "State that overrules the guess, each ARGUMENT=RESULT">,
    Option<"loss", "loss", "std::string", /*default=*/"\"\"",
           "Path of the loss, to overrule the guess">,
    ListOption<"initialValues", "initial", "std::string",
               "Arrays of the initial values, each PATH=TYPE: an argument that "
               "is bound to one of them and that no result replaces is not data">,
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Print what was found, and why, to standard output">
  ];
}

def VerifyImport : Pass<"fp8-verify-import", "::mlir::ModuleOp"> {
  let summary = "Checks the contract of the import stage";
  let description = [{
    The module has one function, `@main`, which is public and has one block. All
    its ops are StableHLO and CHLO ops that run on one device; no calls are
    left. Every argument and result has the attributes of
    `fp8-analyze-signature`, with unique paths, and exactly one result replaces
    each state argument. The error names the op and what would be accepted.
    With `ops-alone` it checks nothing that follows from the signature, so that
    an op which is not supported is reported before an ambiguous signature.

    Example: this module passes.

    ```mlir
    func.func public @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "result", fp8.kind = "output"}) {
      %0 = stablehlo.add %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let options = [Option<"opsAlone", "ops-alone", "bool", "false",
                        "Check only the ops and the types">];
}

#endif // FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_TD
