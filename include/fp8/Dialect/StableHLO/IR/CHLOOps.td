//===- CHLOOps.td - CHLO subset ---------------------------------*- tablegen -*-===//
//
// Client-level functions that JAX keeps whole, beside StableHLO.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_CHLOOPS_TD
#define FP8_DIALECT_STABLEHLO_IR_CHLOOPS_TD

include "fp8/Dialect/StableHLO/IR/StableHLOBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Chlo_Dialect : Dialect {
  let name = "chlo";
  let cppNamespace = "::mlir::chlo";
  let summary = "The subset of CHLO that JAX emits";
  let description = [{
    Special functions and `top_k`, which JAX leaves to the compiler. Names are
    those of the original dialect; tensors have static shapes.
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
  let extraClassDeclaration = [{
    /// Parses a pretty-form op that is not in the subset: always one error.
    std::optional<::mlir::Dialect::ParseOpHook>
    getParseOperationHook(::llvm::StringRef opName) const override;
  }];
}

class CHLO_Op<string mnemonic, list<Trait> traits = []>
    : Op<Chlo_Dialect, mnemonic, traits>;

class CHLO_UnaryOp<string mnemonic, string text, Type tensor = HLO_FloatTensor>
    : CHLO_Op<mnemonic, [Pure, HLO_SameTypes, Elementwise, SameOperandsAndResultType]> {
  let description = text # [{

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = chlo.}] # mnemonic # [{ %x : tensor<4xf32> -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins tensor:$operand);
  let results = (outs tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}

class CHLO_TestOp<string mnemonic, string text>
    : CHLO_Op<mnemonic, [Pure, HLO_SameShape, Elementwise, SameOperandsAndResultShape]> {
  let description = text # [{

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xi1> {
      %0 = chlo.}] # mnemonic # [{ %x : tensor<4xf32> -> tensor<4xi1>
      return %0 : tensor<4xi1>
    }
    ```
  }];
  let arguments = (ins HLO_FloatTensor:$operand);
  let results = (outs HLO_PredTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}

class CHLO_BinaryOp<string mnemonic, string text, string first, string second>
    : CHLO_Op<mnemonic, [Pure, HLO_SameTypes, Elementwise, SameOperandsAndResultType]> {
  let description = text # [{

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = chlo.}] # mnemonic # [{ %x, %y : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let results = (outs HLO_FloatTensor:$result);
  let assemblyFormat = "$" # first # " `,` $" # second # " attr-dict `:` type($" # first # ") `,` type($" # second # ") `->` type($result)";
}

def CHLO_AcosOp : CHLO_UnaryOp<"acos", [{
    The inverse cosine.
  }]> {
  let summary = "Inverse cosine";
}

def CHLO_AcoshOp : CHLO_UnaryOp<"acosh", [{
    The inverse hyperbolic cosine.
  }]> {
  let summary = "Inverse hyperbolic cosine";
}

def CHLO_AsinOp : CHLO_UnaryOp<"asin", [{
    The inverse sine.
  }]> {
  let summary = "Inverse sine";
}

def CHLO_AsinhOp : CHLO_UnaryOp<"asinh", [{
    The inverse hyperbolic sine.
  }]> {
  let summary = "Inverse hyperbolic sine";
}

def CHLO_AtanOp : CHLO_UnaryOp<"atan", [{
    The inverse tangent.
  }]> {
  let summary = "Inverse tangent";
}

def CHLO_AtanhOp : CHLO_UnaryOp<"atanh", [{
    The inverse hyperbolic tangent.
  }]> {
  let summary = "Inverse hyperbolic tangent";
}

def CHLO_BesselI1eOp : CHLO_UnaryOp<"bessel_i1e", [{
    exp(-|x|) times the modified Bessel function of order 1.
  }]> {
  let summary = "Scaled Bessel function";
}

def CHLO_CoshOp : CHLO_UnaryOp<"cosh", [{
    The hyperbolic cosine.
  }]> {
  let summary = "Hyperbolic cosine";
}

def CHLO_DigammaOp : CHLO_UnaryOp<"digamma", [{
    The derivative of lgamma.
  }]> {
  let summary = "Digamma";
}

def CHLO_ErfOp : CHLO_UnaryOp<"erf", [{
    The error function.
  }]> {
  let summary = "Error function";
}

def CHLO_ErfInvOp : CHLO_UnaryOp<"erf_inv", [{
    The inverse of the error function.
  }]> {
  let summary = "Inverse error function";
}

def CHLO_ErfcOp : CHLO_UnaryOp<"erfc", [{
    1 - erf(x), accurate for large x.
  }]> {
  let summary = "Complementary error function";
}

def CHLO_LgammaOp : CHLO_UnaryOp<"lgamma", [{
    The logarithm of the absolute value of the gamma function.
  }]> {
  let summary = "Logarithm of gamma";
}

def CHLO_SinhOp : CHLO_UnaryOp<"sinh", [{
    The hyperbolic sine.
  }]> {
  let summary = "Hyperbolic sine";
}

def CHLO_SquareOp : CHLO_UnaryOp<"square", [{
    x * x.
  }], HLO_IntOrFloatTensor> {
  let summary = "Square";
}

def CHLO_TanOp : CHLO_UnaryOp<"tan", [{
    The tangent.
  }]> {
  let summary = "Tangent";
}

def CHLO_IsInfOp : CHLO_TestOp<"is_inf", [{
    True for infinities.
  }]> {
  let summary = "Test for infinity";
}

def CHLO_IsNegInfOp : CHLO_TestOp<"is_neg_inf", [{
    True for negative infinity.
  }]> {
  let summary = "Test for infinity";
}

def CHLO_IsPosInfOp : CHLO_TestOp<"is_pos_inf", [{
    True for positive infinity.
  }]> {
  let summary = "Test for infinity";
}

def CHLO_NextAfterOp : CHLO_BinaryOp<"next_after", [{
    The value after x towards y.
  }], "x", "y"> {
  let summary = "Next value";
  let arguments = (ins HLO_FloatTensor:$x, HLO_FloatTensor:$y);
}

def CHLO_PolygammaOp : CHLO_BinaryOp<"polygamma", [{
    The n-th derivative of digamma at x.
  }], "n", "x"> {
  let summary = "Polygamma";
  let arguments = (ins HLO_FloatTensor:$n, HLO_FloatTensor:$x);
}

def CHLO_ZetaOp : CHLO_BinaryOp<"zeta", [{
    The Hurwitz zeta function.
  }], "x", "q"> {
  let summary = "Hurwitz zeta";
  let arguments = (ins HLO_FloatTensor:$x, HLO_FloatTensor:$q);
}

def CHLO_TopKOp : CHLO_Op<"top_k", [Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Largest values and their indices";
  let description = [{
    The `k` largest values along the last dimension in descending order, and
    their indices; equal values keep their order.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
      %values, %indices = chlo.top_k(%x, k = 2) : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
      return %values, %indices : tensor<4x2xf32>, tensor<4x2xi32>
    }
    ```
  }];
  let arguments = (ins HLO_IntOrFloatTensor:$operand, I64Attr:$k);
  let results = (outs HLO_IntOrFloatTensor:$values, HLO_IntTensor:$indices);
  let assemblyFormat = [{
    `(` $operand `,` `k` `=` $k `)` attr-dict
      `:` type($operand) `->` `(` type($values) `,` type($indices) `)`
  }];
  let hasVerifier = 1;
}

#endif // FP8_DIALECT_STABLEHLO_IR_CHLOOPS_TD
