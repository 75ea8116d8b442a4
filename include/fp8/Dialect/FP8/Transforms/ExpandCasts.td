//===- ExpandCasts.td - f8 casts in integer arithmetic -----*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_TRANSFORMS_EXPANDCASTS
#define FP8_DIALECT_FP8_TRANSFORMS_EXPANDCASTS

include "mlir/Pass/PassBase.td"

def FP8ExpandCasts : Pass<"fp8-expand-casts"> {
  let summary = "Expand f8 and bf16 casts into integer and f32 arithmetic";
  let description = [{
    LLVM has no f8 types, and upstream leaves f8 casts unlowered. This pass
    rewrites `arith.extf` and `arith.truncf` from and to f8E4M3FN, f8E5M2,
    f8E4M3, f8E4M3FNUZ and f8E5M2FNUZ, on scalars and vectors, into a few
    branch-free integer and f32 operations, and the same casts of bf16; so do
    comparisons of f8 and conversions between f8 and integers. Values keep their
    f8 type in memory and between ops: `arith.bitcast` changes to and from i8.

    Rounding is to nearest even, directly from the source (never twice, also
    from f64). Subnormals are exact and need no particular floating-point mode.
    Overflow is that of a plain cast: infinity where the format has one, else
    NaN; a saturating quantization clamps before. NaN becomes the quiet NaN
    with its sign.

    In a module for a CPU with F16C, casts from f8E4M3FN and f8E5M2 take the way
    of f16, which one instruction converts to f32, with the same results (but
    other bits of a NaN).

    Other arithmetic on f8 is an error.

    Example:

    ```mlir
    func.func @encode(%x: vector<16xf32>) -> vector<16xf8E4M3FN> {
      // becomes an f32 addition that rounds at the last bit of the code, and
      // integer operations around it
      %0 = arith.truncf %x : vector<16xf32> to vector<16xf8E4M3FN>
      return %0 : vector<16xf8E4M3FN>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_EXPANDCASTS
