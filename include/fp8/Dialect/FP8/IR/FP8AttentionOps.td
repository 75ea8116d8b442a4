//===- FP8AttentionOps.td - Attention ops ------------------*- tablegen -*-===//
//
// The ops of an attention whose scores are never stored, from stage 2 (fp8) to
// stage 4 (kernels).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_FP8_IR_FP8ATTENTIONOPS_TD
#define FP8_DIALECT_FP8_IR_FP8ATTENTIONOPS_TD

include "fp8/Dialect/FP8/IR/FP8Dialect.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class FP8_AttentionOfStep<string mnemonic>
    : Op<FP8_Dialect, mnemonic, [IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects,
                                 RecursivelySpeculatable]> {
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs attr-dict `:` functional-type($inputs, $outputs) $body
  }];
  let hasRegionVerifier = 1;
}

def FP8_AttentionOp : FP8_AttentionOfStep<"attention"> {
  let summary = "Attention whose scores stay inside";
  let description = [{
    Computes its body from the inputs: the scores `q kᵀ`, all elementwise and
    row-wise ops that the step applies to them (scaling, masks, biases, a soft
    cap, the softmax), and their product with `v`. The body has the step's own
    ops, so that its results are those of the step, also for rows with all keys
    masked, ties and infinities; only the division by the sums of rows may
    follow that product (`fp8-defer-division`). Dimensions of one element are left out, and
    scores have their dimensions in one order: batches and heads, queries, keys.

    No value that has queries and keys leaves the body, and stage 4 makes one
    kernel of it: at most a block of queries has its scores stored. The body is
    isolated like that of a function, so that ops that `fp8.attention_backward`
    recomputes are not merged with it.

    Example:

    ```mlir
    func.func @attend(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>, %v: tensor<16x8xf32>) -> tensor<16x8xf32> {
      %0 = fp8.attention %q, %k, %v
          : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32> {
      ^bb0(%a: tensor<16x8xf32>, %b: tensor<16x8xf32>, %c: tensor<16x8xf32>):
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
            : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
        %e = stablehlo.exponential %s : tensor<16x16xf32>
        %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
        %b0 = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<16xf32>) -> tensor<16x16xf32>
        %p = stablehlo.divide %e, %b0 : tensor<16x16xf32>
        %o = stablehlo.dot_general %p, %c, contracting_dims = [1] x [0]
            : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
        fp8.yield %o : tensor<16x8xf32>
      }
      return %0 : tensor<16x8xf32>
    }
    ```
  }];
}

def FP8_AttentionBackwardOp : FP8_AttentionOfStep<"attention_backward"> {
  let summary = "Gradients of an attention whose scores stay inside";
  let description = [{
    Recomputes the scores and their softmax from `q` and `k`, computes the
    gradient of the weights from `dO vᵀ`, and from both the gradients of `q`,
    `k` and `v`. Like `fp8.attention` it has the step's own ops, and no value
    that has batches, queries and keys leaves it. Sums over queries (the
    gradients of `k` and `v`) are accumulated block by block. The gradient of a
    bias, a sum of scores over batches or heads, is the only result of its op,
    accumulated batch by batch.

    Example: the gradients of a linear attention with weights `s²`.

    ```mlir
    func.func @gradients(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>, %v: tensor<16x8xf32>, %do: tensor<16x8xf32>)
        -> (tensor<16x8xf32>, tensor<16x8xf32>) {
      %0:2 = fp8.attention_backward %q, %k, %v, %do
          : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
      ^bb0(%a: tensor<16x8xf32>, %b: tensor<16x8xf32>, %c: tensor<16x8xf32>, %d: tensor<16x8xf32>):
        %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
            : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
        %p = stablehlo.multiply %s, %s : tensor<16x16xf32>
        %dv = stablehlo.dot_general %p, %d, contracting_dims = [0] x [0]
            : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
        %dp = stablehlo.dot_general %d, %c, contracting_dims = [1] x [1]
            : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
        %ds = stablehlo.multiply %dp, %s : tensor<16x16xf32>
        %dq = stablehlo.dot_general %ds, %b, contracting_dims = [1] x [0]
            : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
        fp8.yield %dq, %dv : tensor<16x8xf32>, tensor<16x8xf32>
      }
      return %0#0, %0#1 : tensor<16x8xf32>, tensor<16x8xf32>
    }
    ```
  }];
}

def FP8_YieldOp : Op<FP8_Dialect, "yield",
    [Pure, ReturnLike, Terminator, ParentOneOf<["AttentionOp", "AttentionBackwardOp"]>]> {
  let summary = "End of the body of an attention";
  let description = [{
    Its operands are the results of the op around it.

    Example: see `fp8.attention`.

    ```mlir
    func.func @same(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = fp8.attention %x : (tensor<8xf32>) -> tensor<8xf32> {
      ^bb0(%y: tensor<8xf32>):
        fp8.yield %y : tensor<8xf32>
      }
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // FP8_DIALECT_FP8_IR_FP8ATTENTIONOPS_TD
