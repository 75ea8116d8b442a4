//===- Passes.td - Passes on StableHLO steps ---------------*- tablegen -*-===//

#ifndef FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerCollectives : Pass<"stablehlo-lower-collectives", "::mlir::ModuleOp"> {
  let summary = "Makes collectives exchanges of parts, and arithmetic";
  let description = [{
    In a module of several partitions (or replicas) every collective becomes an
    `fp8.exchange` between ranks, one a device, and StableHLO that cuts, reduces
    and joins parts. Reductions are in the order of the group, in the
    computation's own arithmetic: a small tensor is gathered and reduced by every
    rank, of a large one each rank reduces a part, and the results are gathered.
    The computation is one add, maximum, minimum, and, or; groups have one size
    and name every device. `partition_id` is what a rank is sent by the others,
    since all ranks run the same code.

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
  let summary = "Makes a step in shard_map the program of one rank";
  let description = [{
    In a module of several partitions the body of each `sdy.manual_computation`
    replaces it. Values outside of them are whole and the same on all ranks; this
    rank's parts of operands are cut off (`partition_id`, `dynamic_slice`), and
    those of results are gathered (`all_gather`). So ops outside, an optimizer say,
    run as they are written, and state is whole until `fp8-data-parallel`. Shardings split
    dimensions over whole axes of a mesh of all devices, in any order; the
    computation is manual over all axes. An argument of the step of which rank r
    reads the r-th part of the rows alone is marked `stablehlo.rows`, and the
    function has the number of devices, `stablehlo.devices`, both until
    `fp8-data-parallel`, which asks `stablehlo.part` of a slice where the parts of
    all devices begin.

    A module of several partitions with shardings and without a
    `sdy.manual_computation`, which XLA would split by itself, is an error.

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
  let summary = "Removes what a step for one device does not need";
  let description = [{
    A step for one device does not need to know how it would be split over
    several. Removes meshes, `sdy.sharding_constraint`, custom calls that only
    annotate (`@Sharding` and the like) and the attributes `sdy.*`, and
    `mhlo.*` on the module, the functions and their arguments. The body of a
    `sdy.manual_computation` over a mesh of one device replaces it; over several
    devices it is an error. Collectives over groups of one device give their
    operands, and in a module of one partition and one replica these have the
    number 0; other collectives stay and are rejected at the end of the import.

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
    automatic differentiation splits them in halves. All later stages look at
    data flow in one function: inlines every `func.call` and
    `stablehlo.composite` below the entry function, drops all other functions,
    and names the entry `main`. An op that is inlined remembers the call in its
    location. Recursion is an error.

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
    Rewrites that leave every value as it is, bit for bit, except for the sign
    of zero: arithmetic on scalar (or spread scalar) constants, `x * 1`, `x / 1`,
    `x - 0`, `x + 0` where x is a square, conversions and reshapes to the same
    type, chains of reshapes, of transposes and of broadcasts, and sums over
    dimensions of size one. Tensors that are no splat are never folded.

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

def CanonicalizeLoops : Pass<"stablehlo-canonicalize-loops"> {
  let summary = "Brings loops and branches into the form that later stages expect";
  let description = [{
    On every `stablehlo.while`, inner ones first:

    - A carry that the body returns unchanged is read from outside instead;
      carries that nobody reads, or that only feed themselves, are dropped; of
      carries that start and step alike one is kept.
    - In a loop of a known number of iterations (its counter starts, steps and
      ends at constants) all other counters are computed from the first one, and
      counters read after the loop are constants.
    - A loop without iterations is gone, one iteration replaces the loop.
    - A loop is unrolled if it has at most 16 iterations, gives at most 1024 ops,
      and its body holds only ops on elements and their places: no dot, no
      reduction, no gather or dynamic slice, no loop or other region. Such are
      the rounds of JAX's threefry; a loop over layers or micro-batches, which
      holds dots or slices stacks, stays a loop.
    - What is the same in every iteration moves out if its result is small (1024
      elements), or if it is a dot, a convolution, a reduction or the like and
      the loop runs at least once. Nothing moves over an
      `optimization_barrier`.

    A comparison, minimum, maximum, clamp or remainder of counters is replaced
    where the range of the counter tells its result: JAX wraps negative indices
    with `select(i < 0, i + n, i)`. A `scatter` of one window at a counter that
    stays inside the tensor becomes a `dynamic_update_slice`; so JAX writes
    `x.at[i].set(...)` and `.add(...)`.

    What a loop stacks and another one could read elsewhere is read there: an
    index that follows from the counter, a part of an array that was there
    before. JAX stacks both where a loop cuts its weights itself
    (`params['w'][i]`). An element of `arange` is computed from its index, and
    indices pass barriers.

    An `if` or `case` with a constant predicate is replaced by its branch; a
    `case` on a boolean becomes an `if`; results that nobody reads are dropped,
    and those that no branch computes are selected.

    Constants are folded and what is equal is merged between rounds. Values stay
    what they were, bit for bit.

    Example: nothing of the loop is left but five additions.

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
  let summary = "Finds what a step's arguments and results are";
  let description = [{
    Pairs each state argument with the result that replaces it, by tree path and
    type and then by data flow, by data flow alone where there are no names.
    What has a gradient is never replaced by its own old value, and no state by
    its negative. Among pairings that data flow finds alike, names decide, then
    the order of arguments and results and `tf.aliasing_output` (JAX donates by
    shape), unless they contradict what data flow has decided elsewhere. The
    pass finds the loss, the one that gradients flow from, and marks other
    scalars that updates could follow from; it tells parameters, moments, averages
    of weights and step counters apart by data flow, through loops and branches.
    Of the
    arguments that no result replaces, those that random bits are drawn from are
    keys, what weights are applied to is batch, what is applied to data is
    frozen. What the run's initial values are known to hold is frozen (floats)
    or constant (integers). Writes it all as attributes:

    - on arguments `fp8.path`, `fp8.role` (state, frozen, batch, key, constant),
      for state `fp8.kind` (parameter, moment1, moment2, gradient,
      average, step, other), and for token arrays `fp8.vocabulary`, the rows of
      the smallest table they index;
    - on results `fp8.path`, `fp8.state` (the path of the argument that it
      replaces) on state, and `fp8.kind` (loss, metric, output) on others;
      `fp8.trains` on a metric that gradients could flow from as from the loss.

    A function that does not train (an initializer, an evaluation) has no state:
    its float arguments are frozen, its integer arrays are the batch, and its
    first scalar result is the loss. An ambiguous guess is an error that lists
    the candidates, and so is a step that makes no new parameter; the options
    overrule guesses.

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
    // A function that is not trained may look like a step and the other way
    // around; who runs it knows.
    Option<"functionKind", "kind", "std::string", /*default=*/"\"auto\"",
           "auto, step, or function (nothing is state)">,
    ListOption<"roles", "roles", "std::string",
               "Roles that overrule the guess, each PATH=ROLE">,
    ListOption<"states", "states", "std::string",
               "State that overrules the guess, each ARGUMENT=RESULT">,
    Option<"loss", "loss", "std::string", /*default=*/"\"\"",
           "Path of the loss, to overrule the guess">,
    ListOption<"initialValues", "initial", "std::string",
               "What the initial values hold, each PATH=TYPE: what no result "
               "replaces and is bound to one of them is no data">,
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Print what was found, and why, to standard output">
  ];
}

def VerifyImport : Pass<"fp8-verify-import", "::mlir::ModuleOp"> {
  let summary = "Checks the contract of the import stage";
  let description = [{
    The module has one function, `@main`, public, of one block; all its ops are
    StableHLO and CHLO ops that run on one device; no calls are left; and every
    argument and result has the attributes of `fp8-analyze-signature`, with
    unique paths and each state argument replaced by exactly one result. The
    error names the op and what would be accepted.

    Example: this module passes.

    ```mlir
    func.func public @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "result", fp8.kind = "output"}) {
      %0 = stablehlo.add %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
}

#endif // FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_TD
