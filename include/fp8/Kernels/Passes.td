//===- Passes.td - From structured tensors to a planned schedule ----------===//

#ifndef FP8_KERNELS_PASSES
#define FP8_KERNELS_PASSES

include "mlir/Pass/PassBase.td"

def RecomputeElementwise : Pass<"fp8-recompute-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Recompute tensors instead of storing them across a whole reduction";
  let description = [{
    A tensor that is quantized by its own amax is needed twice: for the amax,
    and once the amax is known. Recomputing the tensor can cost less traffic
    than storing and reading it, as for an optimizer's new state, which is
    computed from payloads, or for the scaled input of a norm. The pass then
    clones the elementwise ops that compute it for the second reader. The
    attribute `fp8.sweep` keeps the clones apart from the original ops. The same
    ops on the same values give the same bits. Values that some reader needs in
    memory anyway stay as they are, and so do small ones.

    Example: the square of `%x` is not stored.

    ```mlir
    func.func @f(%x: tensor<128x128xbf16>) -> tensor<128x128xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<128x128xf32>
      %0 = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<128x128xbf16>) outs(%e : tensor<128x128xf32>) {
      ^bb0(%a: bf16, %o: f32):
        %w = arith.extf %a : bf16 to f32
        %s = arith.mulf %w, %w : f32
        linalg.yield %s : f32
      } -> tensor<128x128xf32>
      %e0 = tensor.empty() : tensor<f32>
      %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
      %max = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
          iterator_types = ["reduction", "reduction"]}
          ins(%0 : tensor<128x128xf32>) outs(%f : tensor<f32>) {
      ^bb0(%a: f32, %o: f32):
        %m = arith.maximumf %a, %o : f32
        linalg.yield %m : f32
      } -> tensor<f32>
      %1 = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%0, %max : tensor<128x128xf32>, tensor<f32>) outs(%e : tensor<128x128xf32>) {
      ^bb0(%a: f32, %m: f32, %o: f32):
        %d = arith.divf %a, %m : f32
        linalg.yield %d : f32
      } -> tensor<128x128xf32>
      return %1 : tensor<128x128xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"numSweeps", "num-sweeps", "Number of sweeps that compute again">
  ];
}

def FuseElementwise : Pass<"fp8-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Fuse elementwise producers and split whole-tensor reductions";
  let description = [{
    Prepares structured IR for kernel formation:

    - upstream elementwise fusion joins a producer with its only consumer, and
      copies producers that cost next to nothing (broadcasts, iotas) into each;
    - `tensor.expand_shape` folds into the indexing maps that read it;
    - splat constants used as tensors become `linalg.fill`;
    - a reduction with no parallel loop (a norm, an amax, the loss) is split
      into one partial per leading index and a small reduction of the partials,
      so that the first part can run inside the kernel of its producer; so is a
      long reduction of columns (the gradient of a norm's weight, the amax of
      each channel), by the outermost dimension. The order of the sum depends on
      shapes alone, never on threads or the target.

    Example input:

    ```mlir
    func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %e = tensor.empty() : tensor<8x16xf32>
      %0 = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      } -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ReadWindows : Pass<"fp8-read-windows", "::mlir::func::FuncOp"> {
  let summary = "Let dots read windows from where they are in the image";
  let description = [{
    A dot of copied windows (`fp8.windows`, a convolution) becomes a dot whose
    operand is indexed by sums of loops, which contractions on CPUs read in
    place. The copy, which has each element once for each of its windows, is
    never made. Kernels of GPUs read plain indices; there it stays. With at most
    16 columns, as a group of a convolution has, operands of fewer than 32 bits
    are decoded before: once, and not for each of their windows.

    Example input: windows of two elements.

    ```mlir
    func.func @f(%x: tensor<9x16xf32>, %w: tensor<2x16x4xf32>, %zero: tensor<8x4xf32>) -> tensor<8x4xf32> {
      %e = tensor.empty() : tensor<8x2x16xf32>
      %0 = linalg.generic {
          indexing_maps = [affine_map<(o, k, c) -> (o + k, c)>, affine_map<(o, k, c) -> (o, k, c)>],
          iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x : tensor<9x16xf32>) outs(%e : tensor<8x2x16xf32>) {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      } -> tensor<8x2x16xf32>
      %1 = linalg.generic {
          indexing_maps = [affine_map<(o, f, k, c) -> (o, k, c)>, affine_map<(o, f, k, c) -> (k, c, f)>,
                           affine_map<(o, f, k, c) -> (o, f)>],
          iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
          ins(%0, %w : tensor<8x2x16xf32>, tensor<2x16x4xf32>) outs(%zero : tensor<8x4xf32>) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b : f32
        %t = arith.addf %s, %p : f32
        linalg.yield %t : f32
      } -> tensor<8x4xf32>
      return %1 : tensor<8x4xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"numRead", "num-read", "Number of operands that are read in place">
  ];
}

def DealState : Pass<"fp8-deal-state", "::mlir::ModuleOp"> {
  let summary = "Deal the state to the ranks: ZeRO-1, stacks by layers";
  let description = [{
    In a module with `fp8.zero`, a parameter and the state that belongs to it
    (moments, summed gradients, their scales) form a shard, which one rank owns.
    The owner is chosen when the step runs: shards are distributed by their
    bytes over as many ranks as there are, so the code is the same on all ranks.

    A parameter is a stack if a loop reads it, or a value made from it slice by
    slice, layer by layer. The shard of a stack has one slice per layer
    (`fp8.slices`), each with an owner, if every op that owners run computes the
    slices of its results from the same slices of its operands. The ops do not
    change, only which rank runs which tasks of a kernel. All ranks compute a
    result of several slices (a sum of squares, an amax) from partial results
    that owners send, if these are small relative to the stack. A scale that all
    layers share is in no shard. If any other op reads several slices at once,
    the stack has one owner, and `fp8.whole_reason` says why.

    The pass tracks which ranks have a value: all of them, each rank a different
    one (values that depend on the batch), or the owner of a shard. If an op
    reads values of one owner, and otherwise only values that all ranks have,
    that owner alone runs it: `fp8.shard` marks such ops, and the state. A sum
    over ranks that becomes state of one shard only goes to its owner. If other
    ranks read a value of an owner, it is sent to them where it is computed
    (`fp8.all_reduce owner`).

    A weight that is read as FP8 payload and scale is therefore sent in that
    form, and its master stays with the owner. A parameter that others read
    unchanged, or in forms that take more bytes, is not part of the shard: all
    ranks have it and receive its new value. State whose parameter is not known
    belongs to an owner if nobody else reads it.

    Example: the gradient goes to the owner of `params['w']`, which updates the
    moment; all get the new parameter.

    ```mlir
    module attributes {fp8.zero = 1 : i64} {
      func.func public @main(
          %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
          %m: tensor<8xf32> {fp8.kind = "moment1", fp8.parameter = "params['w']", fp8.path = "m['w']", fp8.role = "state"},
          %x: tensor<8xf32> {fp8.path = "x", fp8.role = "batch"})
          -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "params['w']"},
              tensor<8xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m['w']"}) {
        %e = tensor.empty() : tensor<8xf32>
        %g = linalg.mul ins(%w, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        %0 = fp8.all_reduce sum %g : tensor<8xf32>
        %1 = linalg.add ins(%m, %0 : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        %2 = linalg.sub ins(%w, %1 : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        return %2, %1 : tensor<8xf32>, tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
}

def AssignLayouts : Pass<"fp8-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "Give dots FP8 operands that are contiguous along k";
  let description = [{
    Tensor cores multiply FP8 operands that are contiguous along k. A dot of a
    GPU has to transpose others on their way to shared memory, byte by byte in
    every block, and asynchronous copies cannot do that. But the dots that read
    one payload contract different dimensions of it: the forward dot and the
    dgrad of a weight, or the forward dot and the wgrad of an activation.

    For each operand in E4M3 or E5M2 that is not contiguous along k, this pass
    copies the payload into an order of dimensions in which it is, right behind
    the op that computes it. Kernel formation then puts both into one kernel,
    which writes the order that nobody else reads not at all, and both orders in
    one pass over the values if both are read. Other orders of slices of a stack
    are slices of another order of the stack. If a loop fills a stack with
    payloads, the stack itself has the order that its readers want, if all of
    them want the same.

    Values do not change, only where they lie: scales stay with their elements.
    Operands stay as they are if an extent along k is not a multiple of 16, and
    if no elementwise op computes the payload: arguments of the function, results
    of collectives, and stacks that are read in several orders.

    CPUs pack panels of both operands in any case. So only steps for GPUs run
    this pass: it is part of `fp8-kernels=layouts=along-k`.

    Example: `%w` is the weight of a forward dot, which contracts its rows.

    ```mlir
    func.func @forward(%x: tensor<16x64xf8E4M3FN>, %w: tensor<64x32xf32>) -> tensor<16x32xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<64x32xf8E4M3FN>
      %payload = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%w : tensor<64x32xf32>) outs(%e : tensor<64x32xf8E4M3FN>) {
      ^bb0(%a: f32, %o: f8E4M3FN):
        %q = arith.truncf %a : f32 to f8E4M3FN
        linalg.yield %q : f8E4M3FN
      } -> tensor<64x32xf8E4M3FN>
      %init = tensor.empty() : tensor<16x32xf32>
      %sums = linalg.fill ins(%zero : f32) outs(%init : tensor<16x32xf32>) -> tensor<16x32xf32>
      %y = linalg.generic {
          indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
          iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %payload : tensor<16x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>) outs(%sums : tensor<16x32xf32>) {
      ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
        %0 = arith.extf %a : f8E4M3FN to f32
        %1 = arith.extf %b : f8E4M3FN to f32
        %2 = arith.mulf %0, %1 : f32
        %3 = arith.addf %o, %2 : f32
        linalg.yield %3 : f32
      } -> tensor<16x32xf32>
      return %y : tensor<16x32xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"numOperands", "num-operands",
              "Number of operands of dots that have another order now">,
    Statistic<"numCopies", "num-copies", "Number of transposed payloads">,
    Statistic<"numStacks", "num-stacks",
              "Number of stacks that have another order now">
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitAttention : Pass<"fp8-split-attention", "::mlir::func::FuncOp"> {
  let summary = "Divide attentions into ops whose kernels need few keys or few queries at once";
  let description = [{
    An `fp8.attention_backward` sums over queries (the gradients of keys and
    values), and its softmax reduces over keys, so one kernel of it can divide
    neither among its tasks. This pass makes two ops of it. The first one has
    whole rows of scores: it computes the gradient of the queries, and returns
    all values that an op of the body reduces over keys (row maxima, row sums).
    The second one reads these values instead of reducing over keys: its tasks
    have some keys each, and run over the queries in order. Both compute the
    scores. GPUs, which need many blocks, run this pass.

    With more than 256 keys rows are too long for a block. Values of rows then
    have ops of their own, in the forward pass, too: one for those that need no
    other one (maxima), one for those that need these (sums of exponentials by
    which weights are divided), and so on. The op of the output, or of the
    gradient of the queries, reads them as well. So every op reduces over keys
    at its end only, and its tasks run over the keys in order. If an output
    follows element by element from sums over keys, as the quotient of two sums
    does, the op returns the sums, and what computes the output from them
    follows it. An op with another output keeps whole rows. Values that an
    earlier `fp8.attention` has computed in the same way, as the forward pass
    has those of the backward pass, are not computed again.

    Keys are the loops that a reduction whose result meets scores again runs
    over. An op stays as it is if it has no such reduction, at most 64 keys, row
    values of different shapes, or if it would still be one op.

    Example: the weights need the row sums of `%w`, and `%dv` sums over queries.

    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    func.func @gradient(%q: tensor<96x8xf32>, %k: tensor<128x8xf32>, %o: tensor<96x8xf32>) -> tensor<128x8xf32> {
      %0 = fp8.attention_backward %q, %k, %o : (tensor<96x8xf32>, tensor<128x8xf32>, tensor<96x8xf32>) -> tensor<128x8xf32> {
      ^bb0(%c: tensor<96x8xf32>, %e: tensor<128x8xf32>, %b: tensor<96x8xf32>):
        %zero = arith.constant 0.0 : f32
        %ep = tensor.empty() : tensor<96x128xf32>
        %fa = linalg.fill ins(%zero : f32) outs(%ep : tensor<96x128xf32>) -> tensor<96x128xf32>
        %a = linalg.generic {
            indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>],
            iterator_types = ["parallel", "parallel", "reduction"]}
            ins(%c, %e : tensor<96x8xf32>, tensor<128x8xf32>) outs(%fa : tensor<96x128xf32>) {
        ^bb0(%x: f32, %y: f32, %s: f32):
          %m = arith.mulf %x, %y : f32
          %t = arith.addf %s, %m : f32
          linalg.yield %t : f32
        } -> tensor<96x128xf32>
        %er = tensor.empty() : tensor<96xf32>
        %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<96xf32>) -> tensor<96xf32>
        %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
            ins(%a : tensor<96x128xf32>) outs(%fr : tensor<96xf32>) {
        ^bb0(%x: f32, %s: f32):
          %t = arith.addf %s, %x : f32
          linalg.yield %t : f32
        } -> tensor<96xf32>
        %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
            ins(%a, %sum : tensor<96x128xf32>, tensor<96xf32>) outs(%ep : tensor<96x128xf32>) {
        ^bb0(%x: f32, %s: f32, %d: f32):
          %t = arith.divf %x, %s : f32
          linalg.yield %t : f32
        } -> tensor<96x128xf32>
        %ed = tensor.empty() : tensor<128x8xf32>
        %fd = linalg.fill ins(%zero : f32) outs(%ed : tensor<128x8xf32>) -> tensor<128x8xf32>
        %dv = linalg.generic {
            indexing_maps = [affine_map<(j, d, i) -> (i, j)>, affine_map<(j, d, i) -> (i, d)>, affine_map<(j, d, i) -> (j, d)>],
            iterator_types = ["parallel", "parallel", "reduction"]}
            ins(%p, %b : tensor<96x128xf32>, tensor<96x8xf32>) outs(%fd : tensor<128x8xf32>) {
        ^bb0(%x: f32, %y: f32, %s: f32):
          %m = arith.mulf %x, %y : f32
          %t = arith.addf %s, %m : f32
          linalg.yield %t : f32
        } -> tensor<128x8xf32>
        fp8.yield %dv : tensor<128x8xf32>
      }
      return %0 : tensor<128x8xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of attentions that became two ops">
  ];
}

def FormKernels : Pass<"fp8-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group structured ops into kernels and outline them on tensors";
  let description = [{
    Each kernel is an `fp8.kernel` on tensors with destination operands, which an
    `fp8.launch` runs. Ops join the kernel of their producers when every task of
    the joined kernel reads only what it wrote itself: the loops that both share
    are the kernel's domain, which codegen divides into tasks; `fp8.task_dims` on
    an op says which of its loops run over the domain. A kernel holds at most one
    contraction, as its first op; the ops after it are its epilogue. Ops do not
    join if that would divide a large value into columns of few lines of the
    cache, or into columns at all for the sake of a few values (a scale, a bias).

    A task of a CPU can have whole rows of a dot, or whole batches, which stay in a
    cache; a few tasks are enough. A block of a GPU has little memory, and a card
    runs thousands. So with `for-blocks`, a sum over long rows or columns of a dot
    (a norm, a softmax) is a kernel of its own, so that the domain of the dot is
    all of its result. Nor do ops join if that leaves few blocks, or if a block
    would have to keep a very long row.

    Example input:

    ```mlir
    func.func @step(%x: tensor<8x16xf32>) -> tensor<8xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      %0 = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<8x16xf32>) outs(%f : tensor<8xf32>) {
      ^bb0(%a: f32, %o: f32):
        %s = arith.addf %o, %a : f32
        linalg.yield %s : f32
      } -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let options = [
    Option<"forBlocks", "for-blocks", "bool", "false",
           "Form kernels whose tasks are a GPU's blocks: many, each with few "
           "elements">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DeduplicateKernels : Pass<"fp8-deduplicate-kernels", "::mlir::ModuleOp"> {
  let summary = "Keep one of all structurally equal kernels";
  let description = [{
    Kernels whose bodies are equal but for locations and names become one, so
    compile time follows the number of distinct kernels and not the number of
    layers. The symbol of a kernel becomes the hash of what it computes
    (`structuralHash`); the labels of its launches tell its purpose.

    Example (a kernel of one task):

    ```mlir
    fp8.kernel @double(read %x: tensor<8xf32>, write %y: tensor<8xf32>) -> tensor<8xf32> domain = [8] {
      %0 = linalg.generic {
          indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
      ^bb0(%a: f32, %o: f32):
        %d = arith.addf %a, %a : f32
        linalg.yield %d : f32
      } -> tensor<8xf32>
      fp8.return %0 : tensor<8xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Number of kernels before">,
    Statistic<"numDistinct", "num-distinct", "Number of distinct kernels">
  ];
}

def BufferizeKernels : Pass<"fp8-bufferize-kernels", "::mlir::ModuleOp"> {
  let summary = "Bufferize each kernel alone, and the schedule around them";
  let description = [{
    One-shot bufferization of a whole step is superlinear in its length. This
    pass therefore bufferizes one kernel at a time. A function becomes an
    `fp8.schedule`, a tree of launches and control flow on buffers: one
    `memref.alloc` per intermediate tensor, and views for reshapes and slices of
    stacks. A loop-carried value is one buffer that every iteration updates; the
    result of a branch is one that every branch writes. A tensor whose last use
    is an update lends its buffer to that update; all others are copied by a
    kernel that is a `copy`. Results become the last arguments of the schedule;
    one that replaces a state argument is written into that argument.

    Example input:

    ```mlir
    func.func @step(%x: tensor<8xf32> {fp8.path = "x"}) -> (tensor<8xf32> {fp8.path = "y", fp8.state = "x"}) {
      %e = tensor.empty() : tensor<8xf32>
      %0 = fp8.launch @k(read %x, write %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    fp8.kernel @k(read tensor<8xf32>, write tensor<8xf32>) -> tensor<8xf32> domain = []
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect"];
}

def ElideCopies : Pass<"fp8-elide-copies", "::mlir::ModuleOp"> {
  let summary = "Compute values in place instead of copying them there";
  let description = [{
    Removes a copy from an allocation to a result, a loop-carried buffer, the
    result of a branch or a slot of a stack if the allocation can live in the
    copy's target from its first write on. That is so if nobody reads the
    target's old contents after that, except a kernel that reads each element
    right before it writes it. The copies that remain need two buffers.

    Example: `%t` becomes `%x`, and the copy goes.

    ```mlir
    fp8.schedule @step(%x: memref<8xf32>) {
      %t = memref.alloc() : memref<8xf32>
      fp8.launch @k(write %t) : (memref<8xf32>) -> ()
      fp8.launch @copy(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.return
    }
    fp8.kernel @k(write %t: memref<8xf32>) domain = [] {
      %one = arith.constant 1.0 : f32
      linalg.fill ins(%one : f32) outs(%t : memref<8xf32>)
      fp8.return
    }
    fp8.kernel @copy(read %a: memref<8xf32>, write %b: memref<8xf32>) domain = [] copy {
      linalg.generic {
          indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
          attrs = {fp8.task_dims = array<i64>} {
      ^bb0(%v: f32, %o: f32):
        linalg.yield %v : f32
      }
      fp8.return
    }
    ```
  }];
  let statistics = [
    Statistic<"numElided", "num-elided", "Number of copies removed">
  ];
}

def SliceCollectives : Pass<"fp8-slice-collectives", "::mlir::ModuleOp"> {
  let summary = "Reduce the slices of a stack as soon as a loop has written them";
  let description = [{
    Splits each `fp8.start_all_reduce` with `slices`, such as the gradients of
    all layers of a scan. If a loop before it writes one slice in each iteration,
    the loop starts to reduce the slice as soon as it is complete: the gradients
    of a layer travel while the layers before it are differentiated. The
    `fp8.wait` stays behind the loop. Otherwise the slices are reduced one after
    another on an f8 wire, where each has a scale of its own, and together on
    other wires.

    Example:

    ```mlir
    fp8.kernel @wgrad(write %y: memref<64xf32>) domain = []
    fp8.schedule @step(%g: memref<4x64xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      scf.for %i = %c0 to %c4 step %c1 {
        %offset = arith.muli %i, %c64 : index
        %part = fp8.subbuffer %g[%offset] : memref<4x64xf32> to memref<64xf32>
        fp8.launch @wgrad(write %part) : (memref<64xf32>) -> ()
      }
      %0 = fp8.start_all_reduce mean %g into %g slices = 4 : memref<4x64xf32>
      fp8.wait %0 (%g, %g) : memref<4x64xf32>, memref<4x64xf32>
      fp8.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def OverlapCollectives : Pass<"fp8-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Begin collectives early and wait for them late";
  let description = [{
    Moves each `fp8.start_all_reduce` up to behind the last op of its block that
    writes its input or uses what it writes, and its `fp8.wait` down to the
    first op that uses the result or writes the input. The ops between the two,
    the rest of the backward pass, run while values travel. Collectives stay in
    their blocks and keep their order, which is the same on every rank.

    Example: the launch of `@other` comes before the wait.

    ```mlir
    fp8.kernel @other(update %y: memref<8xf32>) domain = []
    fp8.schedule @step(%g: memref<8xf32>, %y: memref<8xf32>) {
      %0 = fp8.start_all_reduce mean %g into %g : memref<8xf32>
      fp8.wait %0 (%g, %g) : memref<8xf32>, memref<8xf32>
      fp8.launch @other(update %y) : (memref<8xf32>) -> ()
      fp8.launch @other(update %g) : (memref<8xf32>) -> ()
      fp8.return
    }
    ```
  }];
}

def BatchLaunches : Pass<"fp8-batch-launches", "::mlir::ModuleOp"> {
  let summary = "Make one launch of many that run the same small kernel";
  let description = [{
    Each layer has scales, amax histories and norms of its own, which the same
    few kernels update. The pass moves launches to where several of one kernel
    are possible at once, and makes one launch with many sets of operands of
    them. No arithmetic changes.

    - A launch may move up if the buffers that it writes are small (4 KiB, or
      1/16384 of the bytes that are live at once) or live anyway (arguments of
      the schedule, and what lives throughout a loop); it may move down if this
      also holds for the buffers that it reads. So no large buffer lives longer.
      If small ones let the live bytes grow by more than 1 % (and 4 KiB), the
      pass moves only launches with smaller buffers.
    - Everything else keeps its order: dots, collectives, loops and branches,
      and launches that only some ranks run (ZeRO-1) or whose operands have
      different addresses in each iteration of a loop.
    - A launch that may move down waits until something needs it. It then runs
      together with all launches of its kernel that are possible at that time,
      also with those that come later in the program. One that may only move up
      is their partner.

    Example: the second `@scale` moves up, to the first one.

    ```mlir
    fp8.kernel @amax(read %x: memref<8xf32>, write %y: memref<f32>) domain = []
    fp8.kernel @scale(read %x: memref<f32>, write %y: memref<f32>) domain = []
    fp8.schedule @step(%x: memref<8xf32>, %y: memref<8xf32>, %s: memref<f32>, %t: memref<f32>) {
      %0 = memref.alloc() : memref<f32>
      %1 = memref.alloc() : memref<f32>
      fp8.launch @amax(read %x, write %0) : (memref<8xf32>, memref<f32>) -> ()
      fp8.launch @scale(read %0, write %s) : (memref<f32>, memref<f32>) -> ()
      fp8.launch @amax(read %y, write %1) : (memref<8xf32>, memref<f32>) -> ()
      fp8.launch @scale(read %1, write %t) : (memref<f32>, memref<f32>) -> ()
      fp8.return
    }
    ```
  }];
  let statistics = [
    Statistic<"numBefore", "num-before", "Number of launches and other ops in changed blocks before">,
    Statistic<"numAfter", "num-after", "Their number after">
  ];
}

def PlanMemory : Pass<"fp8-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every intermediate buffer an offset in one arena";
  let description = [{
    Computes the live interval of every `memref.alloc` of the schedule and packs
    the buffers, largest first, into one arena, the first argument after this
    pass (`memref<Nxi8>`). A buffer that a loop uses but does not allocate is
    live for the whole loop; one that a loop's body allocates is live within the
    body. Allocations become `memref.view`s at constant offsets. The size of the
    arena is left on the schedule as `arena_bytes`. Launches and constants get
    the numbers by which code and runtime refer to them.

    The report says what the bytes are for, by data flow: it classifies state by
    how the update uses it, and buffers as saved for the backward pass,
    gradients, copies of weights or temporaries. docs/Memory.md explains it.

    Example output:

    ```mlir
    fp8.schedule @step(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64 {
      %c0 = arith.constant 0 : index
      %t = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
      fp8.launch @k(read %x, write %t) number = 0 : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.launch @k(read %t, write %x) number = 1 : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.return
    }
    fp8.kernel @k(read memref<8xf32>, write memref<8xf32>) domain = []
    ```
  }];
  let options = [
    Option<"printPlan", "print-plan", "bool", "false",
           "Print every buffer with offset, size and live interval to stderr">,
    Option<"report", "report", "std::string", "",
           "Write a report of the step's memory to this file: JSON if its name "
           "ends in .json, else a table; - is stdout">,
    Option<"printBuffers", "report-buffers", "bool", "false",
           "Add every buffer with its category and source location to the table">,
    Option<"budget", "budget", "std::string", "",
           "Report what fits in this much memory: 80GB, 512MiB, "
           "4096">
  ];
  let dependentDialects = ["::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect"];
}

def VerifyScheduled : Pass<"fp8-verify-scheduled", "::mlir::ModuleOp"> {
  let summary = "Check the contract between the kernels stage and codegen";
  let description = [{
    The module holds schedules, kernels and constants. A schedule holds only
    launches with distinct numbers, views of the arena and their parts, control
    flow, scalars, constants and `memref.get_global`. Every kernel holds
    structured ops, fills, copies, scalar loops and allocations of its own
    intermediates on buffers, and accesses its arguments as declared. No tensor
    is left.

    Example:

    ```mlir
    fp8.schedule @step(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64 {
      %c0 = arith.constant 0 : index
      %t = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
      fp8.launch @k(read %x, write %t) number = 0 : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.launch @k(read %t, write %x) number = 1 : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.return
    }
    fp8.kernel @k(read memref<8xf32>, write memref<8xf32>) domain = []
    ```
  }];
}

def ReportCost : Pass<"fp8-report-cost", "::mlir::ModuleOp"> {
  let summary = "Print the arithmetic and memory traffic of the launches of a schedule";
  let description = [{
    Writes JSON to the standard output: for each launch, and for the whole step,
    the floating-point operations (`flops`; of these `dot_flops` are the
    multiplications and additions of dots, 2MNK, and of those `dot_flops_f32`
    are of operands wider than 16 bits) and the bytes that have to move if every
    operand is read or written whole and once. `runs` is how often a
    step runs the launch. It is null, and counts as 1, where that depends on
    data: in a `while` loop or a branch. `exact` is false if there is such a
    launch. Comparisons, selections, casts and integer arithmetic do not count.

    With a `card`, the report predicts the least time of a step on it, and what
    bounds each launch: the time of a launch is the larger of the time of its
    arithmetic at the card's peak rates and the time of its bytes at the peak
    bandwidth, plus a launch overhead. Cards are `h100`, `h200` (SXM),
    `rtx4090`, `rtx5090`, with the rates of their data sheets (dense, sums in
    f32), and `cpu`, whose `limits` are those that `fp8-run --profile` has
    measured (`cost.json`). Dots of f8, of 16-bit types and of f32 have a rate
    each. Other arithmetic is counted in additions, including those of a
    polynomial or a cast.

    With `ranks`, the report says how much a rank sends, how long the transfer
    takes, and how much of that time the step waits: collectives follow one
    another on the `network` from their start op on, and launches go on until
    the wait.

    Example: 8 multiplications, 64 bytes.

    ```mlir
    fp8.schedule @step(%x: memref<8xf32>, %y: memref<8xf32>) {
      fp8.launch @square(read %x, write %y) number = 0 : (memref<8xf32>, memref<8xf32>) -> ()
      fp8.return
    }
    fp8.kernel @square(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [8] {
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
          ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %0 = arith.mulf %in, %in : f32
        linalg.yield %0 : f32
      }
      fp8.return
    }
    ```
  }];
  let options = [
    Option<"card", "card", "std::string", /*default=*/"",
           "Predict the time of a step on this card: h100, h200, rtx4090, rtx5090 or cpu">,
    Option<"limits", "limits", "std::string", /*default=*/"",
           "The cost.json of fp8-run --profile with the limits of the CPU">,
    Option<"ranks", "ranks", "int64_t", /*default=*/"1",
           "With a card: the number of ranks that run the step">,
    Option<"network", "network", "std::string", /*default=*/"\"infiniband-ndr\"",
           "The network between the ranks: nvlink4, nvlink5, infiniband-ndr, infiniband-hdr, ethernet-100g, or GB/s:microseconds">,
    Option<"asJSON", "json", "bool", /*default=*/"false",
           "Print the prediction as JSON, launch by launch">,
  ];
}

#endif // FP8_KERNELS_PASSES
