//===- FP8CollectiveOps.td - Collectives of ranks ----------*- tablegen -*-===//
//
// A step runs on several ranks: processes with the same code and the same
// state, each with its own rows of the batch. Through these ops they exchange
// values. The ops work on tensors up to stage 3. From stage 4 on they work on
// buffers, and a start and a wait replace each of them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_FP8_IR_FP8COLLECTIVEOPS_TD
#define FP8_DIALECT_FP8_IR_FP8COLLECTIVEOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attrs.td"
include "fp8/Dialect/FP8/IR/FP8Types.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// The values are those of fp8_reduction and fp8_wire in fp8-c/Runtime.h.
class FP8_CollectiveEnum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::fp8";
  let genSpecializedAttr = 0;
}

def FP8_Reduction : FP8_CollectiveEnum<"Reduction", "How the values of all ranks become one", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"Min", 3, "min">,
    I32EnumAttrCase<"Owner", 4, "owner">
  ]>;

def FP8_Wire : FP8_CollectiveEnum<"Wire", "What travels between ranks", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"BF16", 1, "bf16">,
    I32EnumAttrCase<"F8E4M3FN", 2, "f8E4M3FN">,
    I32EnumAttrCase<"F8E5M2", 3, "f8E5M2">
  ]>;

def FP8_ReductionAttr : EnumAttr<FP8_Dialect, FP8_Reduction, "reduction"> {
  let summary = "How the values of all ranks become one";
  let description = [{
    `mean` is the sum divided by the number of ranks. If any rank has a NaN,
    maximum and minimum are NaN. `owner` takes the values of the rank that owns
    a shard of the state; those of other ranks are not read.

    Example:

    ```mlir
    func.func @count(%x: tensor<i32>) -> tensor<i32> {
      %0 = fp8.all_reduce sum %x : tensor<i32>
      return %0 : tensor<i32>
    }
    ```
  }];
  let assemblyFormat = "$value";
}

def FP8_WireAttr : EnumAttr<FP8_Dialect, FP8_Wire, "wire"> {
  let summary = "The format in which values travel between ranks";
  let description = [{
    `none` sends values as they are. The other formats narrow sums and means of
    floats: the contribution of each rank, and once more the sum. Sums are
    computed in f32.

    Example:

    ```mlir
    func.func @gradient(%x: tensor<64x32xf32>) -> tensor<64x32xf32> {
      %0 = fp8.all_reduce mean %x wire = bf16 : tensor<64x32xf32>
      return %0 : tensor<64x32xf32>
    }
    ```
  }];
  let assemblyFormat = "$value";
}

// The values are those of fp8_exchange_kind in fp8-c/Runtime.h.
def FP8_ExchangeKind : FP8_CollectiveEnum<"ExchangeKind", "What goes where between ranks", [
    I32EnumAttrCase<"AllToAll", 0, "all_to_all">,
    I32EnumAttrCase<"Gather", 1, "gather">,
    I32EnumAttrCase<"Permute", 2, "permute">
  ]>;

def FP8_ExchangeKindAttr : EnumAttr<FP8_Dialect, FP8_ExchangeKind, "exchange_kind"> {
  let summary = "Which rank gets which part";
  let description = [{
    `all_to_all` sends part j of the operand to the j-th rank of the group.
    `gather` sends the operand to all ranks of the group. `permute` sends the
    operand along pairs of ranks.

    Example: the neighbours' values, in a ring of two.

    ```mlir
    func.func @ring(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = fp8.exchange permute %x ranks = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64> : tensor<8xf32> -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let assemblyFormat = "$value";
}

class FP8_Collective<string mnemonic, list<Trait> traits = []>
    : Op<FP8_Dialect, mnemonic, traits>;

def FP8_AllReduceOp : FP8_Collective<"all_reduce", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Reduce a tensor over all ranks";
  let description = [{
    Every rank gets the sum, mean, maximum or minimum of the ranks' inputs,
    element by element, and all ranks get the same bits. On one rank the result
    is the input.

    With a `wire` of f8 the ranks agree on a scale for each `block` of
    consecutive elements (without a `block`, for the whole tensor) and send
    codes. Their sum is rounded again. FP8-LM's automatic scaling decides how
    far the scale of the sum stays below the one that the largest possible sum
    needs. Its factor and age are `mu`, two f32 values that are state of the
    step: the op returns their new values, which are the same on all ranks.

    With a `shard` of the state (counted from 1; the number of ranks decides at
    run time which rank owns it) only the owner gets the sum, mean, maximum or
    minimum: on the other ranks the result is undefined. `owner` sends a value
    from the owner to all ranks. If the shard has slices, each with an owner,
    both hold for every slice.

    With `slices` the tensor is a stack, such as the gradients of all layers,
    with so many slices along its leading dimension. On an f8 wire each slice
    travels as a tensor of its own: `mu` has a row for each, and blocks do not
    cross slices. On other wires `slices` changes no bit. A schedule may reduce
    a slice as soon as the loop that makes the stack has written it.

    The op has no side effect that one rank can see, but all ranks must execute
    the same collectives in the same order: no branch or loop around them may
    have a condition that differs by rank. The `label` names the op in profiles
    and errors.

    Example:

    ```mlir
    func.func @reduce(%g: tensor<64x32xf32>, %amax: tensor<f32>, %mu: tensor<2xf32>)
        -> (tensor<64x32xf32>, tensor<f32>, tensor<64x32xf32>, tensor<2xf32>) {
      %0 = fp8.all_reduce mean %g label = "gradient params['w']" : tensor<64x32xf32>
      %1 = fp8.all_reduce max %amax : tensor<f32>
      %2, %mu_new = fp8.all_reduce sum %g mu %mu wire = f8E4M3FN block = 128 : tensor<64x32xf32>, tensor<2xf32> -> tensor<2xf32>
      %3 = fp8.all_reduce sum %g shard = 1 : tensor<64x32xf32>
      %4 = fp8.all_reduce owner %3 shard = 1 : tensor<64x32xf32>
      %5 = fp8.all_reduce mean %g slices = 64 : tensor<64x32xf32>
      return %0, %1, %2, %mu_new : tensor<64x32xf32>, tensor<f32>, tensor<64x32xf32>, tensor<2xf32>
    }
    ```
  }];
  let arguments = (ins FP8_ReductionAttr:$reduction, AnyStaticShapeTensor:$input,
                       Optional<FP8_F32Tensor>:$mu,
                       DefaultValuedAttr<FP8_WireAttr, "::mlir::fp8::Wire::None">:$wire,
                       OptionalAttr<I64Attr>:$block,
                       OptionalAttr<I64Attr>:$shard,
                       OptionalAttr<I64Attr>:$slices,
                       OptionalAttr<StrAttr>:$label);
  let results = (outs AnyStaticShapeTensor:$result, Optional<FP8_F32Tensor>:$new_mu);
  let assemblyFormat = [{
    `` $reduction $input (`mu` $mu^)? (`wire` `=` `` $wire^)? (`block` `=` $block^)?
    (`shard` `=` $shard^)? (`slices` `=` $slices^)? (`label` `=` $label^)? attr-dict `:` type($input) (`,` type($mu)^ `->` type($new_mu))?
  }];
  let builders = [
    // Reduces one tensor exactly, without a narrower wire format.
    OpBuilder<(ins "::mlir::fp8::Reduction":$reduction, "::mlir::Value":$input,
                   CArg<"::mlir::StringAttr", "{}">:$label,
                   CArg<"::mlir::IntegerAttr", "{}">:$shard)>
  ];
  let hasVerifier = 1;
}

def FP8_StartAllReduceOp : FP8_Collective<"start_all_reduce", [
    AllTypesMatch<["input", "result"]>, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Begin a reduction over all ranks, on buffers";
  let description = [{
    The form of `fp8.all_reduce` in a schedule: starts to reduce `input` into
    `result`, which may be the same buffer, and does not wait. The collective
    owns its buffers, including `mu`, until the `fp8.wait` for its handle, in
    the same block. The `number` identifies it among all collectives and
    launches of its schedule; the last pass of stage 4 assigns it.

    `slices` is as for `fp8.all_reduce`, until `fp8-slice-collectives` splits the
    op into those of its slices. `slice` is the index of such a slice: with a
    `shard`, its owner gets it. What a loop starts is `of` the collectives that
    one `fp8.wait` behind the loop ends (`fp8.collectives`).

    Example:

    ```mlir
    fp8.schedule @step(%g: memref<64xf32>) {
      %0 = fp8.start_all_reduce mean %g into %g label = "gradient params['w']" number = 0 : memref<64xf32>
      fp8.wait %0 (%g, %g) : memref<64xf32>, memref<64xf32>
      fp8.return
    }
    ```
  }];
  let arguments = (ins FP8_ReductionAttr:$reduction, AnyStaticShapeMemRef:$input,
                       AnyStaticShapeMemRef:$result, Optional<AnyStaticShapeMemRef>:$mu,
                       Optional<Index>:$slice, Optional<Index>:$collectives,
                       DefaultValuedAttr<FP8_WireAttr, "::mlir::fp8::Wire::None">:$wire,
                       OptionalAttr<I64Attr>:$block,
                       OptionalAttr<I64Attr>:$shard,
                       OptionalAttr<I64Attr>:$slices,
                       OptionalAttr<StrAttr>:$label,
                       OptionalAttr<I64Attr>:$number);
  let results = (outs Index:$handle);
  let assemblyFormat = [{
    `` $reduction $input `into` $result (`mu` $mu^ `:` type($mu))? (`slice` $slice^)? (`of` $collectives^)?
    (`wire` `=` `` $wire^)? (`block` `=` $block^)? (`shard` `=` $shard^)? (`slices` `=` $slices^)?
    (`label` `=` $label^)? (`number` `=` $number^)? attr-dict `:` type($input)
  }];
  let extraClassDeclaration = [{
    /// Returns the buffers: the input, the result, and mu if there is one.
    OperandRange getBuffers() {
      return getOperation()->getOperands().take_front(getMu() ? 3 : 2);
    }
  }];
  let hasVerifier = 1;
}

def FP8_CollectivesOp : FP8_Collective<"collectives", [Pure]> {
  let summary = "A handle for collectives that are started in a loop";
  let description = [{
    The op does nothing: it makes the handle by which one `fp8.wait` behind a
    loop waits for everything that an op of the loop has started `of` it. (If the
    loop is unrolled, the copies of that op have one number.) Each start has a
    slice of the buffers of the wait, which no other op may access between the
    start and the wait.

    Example:

    ```mlir
    fp8.schedule @step(%g: memref<4x64xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %all = fp8.collectives
      scf.for %i = %c0 to %c4 step %c1 {
        %offset = arith.muli %i, %c64 : index
        %part = fp8.subbuffer %g[%offset] : memref<4x64xf32> to memref<64xf32>
        %0 = fp8.start_all_reduce mean %part into %part slice %i of %all : memref<64xf32>
      }
      fp8.wait %all (%g, %g) : memref<4x64xf32>, memref<4x64xf32>
      fp8.return
    }
    ```
  }];
  let results = (outs Index:$handle);
  let assemblyFormat = "attr-dict";
}

def FP8_ExchangeOp : FP8_Collective<"exchange", [Pure]> {
  let summary = "Exchange parts between the ranks of a group";
  let description = [{
    Moves values between ranks and computes nothing. `ranks` has a row for each
    group; every rank is in one group.

    - `all_to_all`: part j (along dimension 0, which is as large as a group) goes
      to the j-th rank of the group; part j of the result comes from there.
    - `gather`: part j of the result is the operand of the j-th rank of the group.
    - `permute`: rows are pairs of a source and a target, and no rank is a target
      twice. The result is the operand of the source, and zeros on ranks that
      are no target.

    All other collectives over groups consist of this op and arithmetic: a
    reduction exchanges parts, reduces the received parts in the order of the
    group, and gathers the results.

    As for `fp8.all_reduce`, all ranks must execute the same ops in the same
    order. `summed` says that the parts will be added: then an infinity is as
    much a sign of an overflow as a NaN is, and messages about values that are
    not finite name the rank that sent it.

    Example:

    ```mlir
    func.func @exchange(%parts: tensor<2x8xf32>, %x: tensor<f32>) -> (tensor<2x8xf32>, tensor<2xf32>) {
      %0 = fp8.exchange all_to_all %parts ranks = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64> : tensor<2x8xf32> -> tensor<2x8xf32>
      %1 = fp8.exchange gather %x ranks = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64> label = "loss" : tensor<f32> -> tensor<2xf32>
      return %0, %1 : tensor<2x8xf32>, tensor<2xf32>
    }
    ```
  }];
  let arguments = (ins FP8_ExchangeKindAttr:$kind, AnyStaticShapeTensor:$input,
                       I64ElementsAttr:$ranks, UnitAttr:$summed, OptionalAttr<StrAttr>:$label);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    `` $kind $input `ranks` `=` $ranks (`summed` $summed^)? (`label` `=` $label^)? attr-dict
    `:` type($input) `->` type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::fp8::ExchangeKind":$kind,
                   "::mlir::Value":$input, "::mlir::DenseIntElementsAttr":$ranks,
                   "::mlir::StringAttr":$label), [{
      build($_builder, $_state, result, kind, input, ranks, /*summed=*/false, label);
    }]>
  ];
  let hasVerifier = 1;
}

def FP8_StartExchangeOp : FP8_Collective<"start_exchange", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Begin an exchange of parts, on buffers";
  let description = [{
    The form of `fp8.exchange` in a schedule: starts to bring `input` and the
    data that other ranks send into `result`, another buffer, and does not wait.
    All else is as for `fp8.start_all_reduce`.

    Example:

    ```mlir
    fp8.schedule @step(%x: memref<64xf32>, %all: memref<2x64xf32>) {
      %0 = fp8.start_exchange gather %x into %all ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "x" number = 0 : memref<64xf32> -> memref<2x64xf32>
      fp8.wait %0 (%x, %all) : memref<64xf32>, memref<2x64xf32>
      fp8.return
    }
    ```
  }];
  let arguments = (ins FP8_ExchangeKindAttr:$kind, AnyStaticShapeMemRef:$input,
                       AnyStaticShapeMemRef:$result, I64ElementsAttr:$ranks,
                       UnitAttr:$summed, OptionalAttr<StrAttr>:$label, OptionalAttr<I64Attr>:$number);
  let results = (outs Index:$handle);
  let assemblyFormat = [{
    `` $kind $input `into` $result `ranks` `=` $ranks (`summed` $summed^)? (`label` `=` $label^)?
    (`number` `=` $number^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Values that depend on the rank
//===----------------------------------------------------------------------===//

def FP8_RankOp : FP8_Collective<"rank", [Pure]> {
  let summary = "The number of this rank";
  let description = [{
    Returns 0 on the first rank, and where there is only one. The op exists from
    stage 3 on; before, the rank is implicit in the ops that depend on it.

    Example:

    ```mlir
    func.func @number() -> tensor<i64> {
      %0 = fp8.rank
      %1 = tensor.from_elements %0 : tensor<i64>
      return %1 : tensor<i64>
    }
    ```
  }];
  let results = (outs I64:$result);
  let assemblyFormat = "attr-dict";
}

def FP8_RowIotaOp : FP8_Collective<"row_iota", [Pure]> {
  let summary = "Count the rows of all ranks";
  let description = [{
    A `stablehlo.iota` whose dimension counts the rows of the batch on all
    ranks: the rows of rank r follow those of rank r - 1, so index i has the
    value `r * size + i`. `fp8-data-parallel` has random numbers drawn at these
    indices, with a key that is the same on all ranks.

    Example:

    ```mlir
    func.func @places() -> tensor<4x8xui64> {
      %0 = fp8.row_iota dim = 0 : tensor<4x8xui64>
      return %0 : tensor<4x8xui64>
    }
    ```
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def FP8_RowStateOp : FP8_Collective<"row_state", [Pure, AllTypesMatch<["state", "result"]>]> {
  let summary = "The state from which a rank draws random bits for its rows";
  let description = [{
    Returns the state of a `stablehlo.rng_bit_generator` with its counter,
    element 1, advanced by `blocks` for each rank before this one.

    Example:

    ```mlir
    func.func @own(%state: tensor<2xui64>) -> tensor<2xui64> {
      %0 = fp8.row_state %state blocks = 8 : tensor<2xui64>
      return %0 : tensor<2xui64>
    }
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$state, I64Attr:$blocks);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$state `blocks` `=` $blocks attr-dict `:` type($state)";
  let hasVerifier = 1;
}

def FP8_WaitOp : FP8_Collective<"wait", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Wait for a collective";
  let description = [{
    Returns when the collective with this handle, or all collectives of it
    (`fp8.collectives`), have ended. The operands are the buffers, the input first. Until the wait no other op may write the input, or
    read or write the other buffers.

    Example: see `fp8.start_all_reduce`.

    ```mlir
    fp8.schedule @step(%n: memref<i32>, %all: memref<i32>) {
      %0 = fp8.start_all_reduce sum %n into %all : memref<i32>
      fp8.wait %0 (%n, %all) : memref<i32>, memref<i32>
      fp8.return
    }
    ```
  }];
  let arguments = (ins Index:$handle, Variadic<AnyStaticShapeMemRef>:$buffers);
  let assemblyFormat = [{
    $handle `(` $buffers `)` attr-dict `:` type($buffers)
  }];
  let hasVerifier = 1;
}

#endif // FP8_DIALECT_FP8_IR_FP8COLLECTIVEOPS_TD
