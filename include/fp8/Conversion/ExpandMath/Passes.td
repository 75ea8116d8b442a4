//===- Passes.td - Expansion of math functions -------------*- tablegen -*-===//

#ifndef FP8_CONVERSION_EXPANDMATH_PASSES
#define FP8_CONVERSION_EXPANDMATH_PASSES

include "mlir/Pass/PassBase.td"

def ExpandMath : Pass<"fp8-expand-math"> {
  let summary = "Expand math functions into arithmetic with explicit fma";
  let description = [{
    Replaces every function of the `math` dialect on f32 (scalar or vector) by
    straight-line arithmetic: polynomials with explicit `math.fma`, integer ops
    that split and assemble exponents, and selects for special values. There is
    no branch, table or library call, so the result vectorizes, and every target
    and thread count computes the same bits. In a module for a CPU with AVX-512
    one instruction (`llvm.ldexp`) multiplies by a power of two, with the
    same result.

    The results are within 2 ulp of the true value for all inputs: infinities,
    NaN, both zeros, subnormal inputs and subnormal results included. The
    functions that take most time in a training step (`exp`, `exp2`, `tanh`,
    `erf`) compute in f32; the others compute in f64, where rounding errors do
    not matter. f16 and bf16 are computed in f32 and rounded once more.

    A `powf` that may be approximated (`fastmath<afn>`) and whose base is the
    result of `absf` computes in f32, for a finite exponent above 0: its
    relative error is up to 2^-23 for each octave of the result, plus 2 ulp.

    These ops stay: `math.fma`, `sqrt`, `absf`, `copysign`, `floor`, `ceil`,
    `roundeven`, and the integer ops `absi`, `ctlz`, `cttz` and `ctpop`, all of
    which are single instructions or short sequences of them. In f64, `cbrt`,
    `erf`, `erfc`, `expm1`, `log1p`, `rsqrt` and the inverse hyperbolic
    functions are expanded, too (within 8 ulp), because LLVM has no accurate
    form of them; the other functions stay and become calls of the C library:
    `acos`, `asin`, `atan`, `atan2`, `cos`, `cosh`, `exp`, `exp2`, `log`,
    `log10`, `log2`, `powf`, `sin`, `sinh`, `tan`, `tanh`.

    Example:

    ```mlir
    func.func @sigmoid(%x: vector<16xf32>) -> vector<16xf32> {
      %one = arith.constant dense<1.0> : vector<16xf32>
      %n = arith.negf %x : vector<16xf32>
      %e = math.exp %n : vector<16xf32>  // becomes a polynomial
      %d = arith.addf %one, %e : vector<16xf32>
      %s = arith.divf %one, %d : vector<16xf32>
      return %s : vector<16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect"];
}

#endif // FP8_CONVERSION_EXPANDMATH_PASSES
