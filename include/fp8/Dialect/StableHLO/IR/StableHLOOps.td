//===- StableHLOOps.td - StableHLO subset ops -------------------*- tablegen -*-===//
//
// Constraint numbers in comments (add_c1, ...) are those of the StableHLO
// specification.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_STABLEHLOOPS_TD
#define FP8_DIALECT_STABLEHLO_IR_STABLEHLOOPS_TD

include "fp8/Dialect/StableHLO/IR/StableHLOBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class StableHLO_Op<string mnemonic, list<Trait> traits = []>
    : Op<Stablehlo_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

class StableHLO_UnaryOp<string mnemonic, string text, Type tensor, string example>
    : StableHLO_Op<mnemonic, [Pure, HLO_SameTypes, Elementwise,
                              SameOperandsAndResultType]> {
  let description = text # [{

    Example:

    ```mlir
    func.func @example(%x: tensor<4x}] # example # [{>) -> tensor<4x}] # example # [{> {
      %0 = stablehlo.}] # mnemonic # [{ %x : tensor<4x}] # example # [{>
      return %0 : tensor<4x}] # example # [{>
    }
    ```
  }];
  let arguments = (ins tensor:$operand);
  let results = (outs tensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` custom<SameTypes>(type($operand), type($result))
  }];
}

class StableHLO_TranscendentalOp<string mnemonic, string text>
    : StableHLO_UnaryOp<mnemonic, text, HLO_FloatTensor, "f32"> {
  let arguments = (ins HLO_FloatTensor:$operand,
                       OptionalAttr<HLO_ResultAccuracyAttr>:$result_accuracy);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand), [{
    build($_builder, $_state, operand.getType(), operand,
          ::mlir::stablehlo::ResultAccuracyAttr());
  }]>];
}

class StableHLO_BinaryOp<string mnemonic, string text, Type tensor,
                         string example, list<Trait> traits = []>
    : StableHLO_Op<mnemonic, !listconcat(
          [Pure, HLO_SameTypes, Elementwise, SameOperandsAndResultType], traits)> {
  let description = text # [{

    Example:

    ```mlir
    func.func @example(%x: tensor<4x}] # example # [{>, %y: tensor<4x}] # example # [{>) -> tensor<4x}] # example # [{> {
      %0 = stablehlo.}] # mnemonic # [{ %x, %y : tensor<4x}] # example # [{>
      return %0 : tensor<4x}] # example # [{>
    }
    ```
  }];
  let arguments = (ins tensor:$lhs, tensor:$rhs);
  let results = (outs tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict
      `:` custom<SameTypes>(type($lhs), type($rhs), type($result))
  }];
}

def StableHLO_AbsOp : StableHLO_UnaryOp<"abs", [{
    The absolute value; of the smallest signed integer, that integer itself.
  }], HLO_IntOrFloatTensor, "f32"> {
  let summary = "Absolute value";
  let hasFolder = 0;
}

def StableHLO_CeilOp : StableHLO_UnaryOp<"ceil", [{
    The smallest integer not below the operand.
  }], HLO_FloatTensor, "f32"> {
  let summary = "Round up";
  let hasFolder = 0;
}

def StableHLO_ClzOp : StableHLO_UnaryOp<"count_leading_zeros", [{
    The number of leading zero bits.
  }], HLO_IntTensor, "i32"> {
  let summary = "Leading zeros";
  let hasFolder = 0;
}

def StableHLO_FloorOp : StableHLO_UnaryOp<"floor", [{
    The largest integer not above the operand.
  }], HLO_FloatTensor, "f32"> {
  let summary = "Round down";
  let hasFolder = 0;
}

def StableHLO_NegOp : StableHLO_UnaryOp<"negate", [{
    The negated operand; wraps around for integers.
  }], HLO_IntOrFloatTensor, "f32"> {
  let summary = "Negation";
  let hasFolder = 1;
}

def StableHLO_NotOp : StableHLO_UnaryOp<"not", [{
    The logical (boolean) or bitwise (integer) complement.
  }], HLO_PredOrIntTensor, "i1"> {
  let summary = "Complement";
  let hasFolder = 1;
}

def StableHLO_PopulationCountOp : StableHLO_UnaryOp<"popcnt", [{
    The number of one bits.
  }], HLO_IntTensor, "i32"> {
  let summary = "Population count";
  let hasFolder = 0;
}

def StableHLO_RoundOp : StableHLO_UnaryOp<"round_nearest_afz", [{
    The nearest integer, ties away from zero.
  }], HLO_FloatTensor, "f32"> {
  let summary = "Round to nearest, ties away from zero";
  let hasFolder = 0;
}

def StableHLO_RoundNearestEvenOp : StableHLO_UnaryOp<"round_nearest_even", [{
    The nearest integer, ties to even.
  }], HLO_FloatTensor, "f32"> {
  let summary = "Round to nearest, ties to even";
  let hasFolder = 0;
}

def StableHLO_SignOp : StableHLO_UnaryOp<"sign", [{
    -1, 0 or 1; keeps signed zeros and NaN.
  }], HLO_IntOrFloatTensor, "f32"> {
  let summary = "Sign";
  let hasFolder = 0;
}

def StableHLO_CbrtOp : StableHLO_TranscendentalOp<"cbrt", [{
    The cube root.
  }]> {
  let summary = "Cube root";
}

def StableHLO_CosineOp : StableHLO_TranscendentalOp<"cosine", [{
    The cosine.
  }]> {
  let summary = "Cosine";
}

def StableHLO_ExpOp : StableHLO_TranscendentalOp<"exponential", [{
    e to the power of the operand.
  }]> {
  let summary = "Exponential";
}

def StableHLO_Expm1Op : StableHLO_TranscendentalOp<"exponential_minus_one", [{
    e to the power of the operand, minus one, accurate near zero.
  }]> {
  let summary = "Exponential minus one";
}

def StableHLO_LogOp : StableHLO_TranscendentalOp<"log", [{
    The natural logarithm.
  }]> {
  let summary = "Natural logarithm";
}

def StableHLO_Log1pOp : StableHLO_TranscendentalOp<"log_plus_one", [{
    The natural logarithm of one plus the operand, accurate near zero.
  }]> {
  let summary = "Logarithm plus one";
}

def StableHLO_LogisticOp : StableHLO_TranscendentalOp<"logistic", [{
    1 / (1 + exp(-x)).
  }]> {
  let summary = "Logistic function";
}

def StableHLO_RsqrtOp : StableHLO_TranscendentalOp<"rsqrt", [{
    1 / sqrt(x).
  }]> {
  let summary = "Reciprocal square root";
}

def StableHLO_SineOp : StableHLO_TranscendentalOp<"sine", [{
    The sine.
  }]> {
  let summary = "Sine";
}

def StableHLO_SqrtOp : StableHLO_TranscendentalOp<"sqrt", [{
    The square root.
  }]> {
  let summary = "Square root";
}

def StableHLO_TanOp : StableHLO_TranscendentalOp<"tan", [{
    The tangent.
  }]> {
  let summary = "Tangent";
}

def StableHLO_TanhOp : StableHLO_TranscendentalOp<"tanh", [{
    The hyperbolic tangent.
  }]> {
  let summary = "Hyperbolic tangent";
}

def StableHLO_AddOp : StableHLO_BinaryOp<"add", [{
    The sum; logical or for booleans, wraps around for integers.
  }], HLO_Tensor, "f32", [Commutative]> {
  let summary = "Addition";
  let hasFolder = 1;
}

def StableHLO_AndOp : StableHLO_BinaryOp<"and", [{
    Logical (boolean) or bitwise (integer) and.
  }], HLO_PredOrIntTensor, "i1", [Commutative]> {
  let summary = "Logical or bitwise and";
  let hasFolder = 1;
}

def StableHLO_Atan2Op : StableHLO_BinaryOp<"atan2", [{
    The angle of the point (rhs, lhs).
  }], HLO_FloatTensor, "f32"> {
  let summary = "Two-argument arctangent";
  let hasFolder = 0;
}

def StableHLO_DivOp : StableHLO_BinaryOp<"divide", [{
    The quotient, rounded towards zero for integers. Integer division by zero
    gives all ones (-1), as XLA does; the smallest signed integer divided by -1
    gives itself.
  }], HLO_IntOrFloatTensor, "f32"> {
  let summary = "Division";
  let hasFolder = 1;
}

def StableHLO_MaxOp : StableHLO_BinaryOp<"maximum", [{
    The larger operand; NaN if one is NaN; logical or for booleans.
  }], HLO_Tensor, "f32", [Commutative]> {
  let summary = "Maximum";
  let hasFolder = 1;
}

def StableHLO_MinOp : StableHLO_BinaryOp<"minimum", [{
    The smaller operand; NaN if one is NaN; logical and for booleans.
  }], HLO_Tensor, "f32", [Commutative]> {
  let summary = "Minimum";
  let hasFolder = 1;
}

def StableHLO_MulOp : StableHLO_BinaryOp<"multiply", [{
    The product; logical and for booleans, wraps around for integers.
  }], HLO_Tensor, "f32", [Commutative]> {
  let summary = "Multiplication";
  let hasFolder = 1;
}

def StableHLO_OrOp : StableHLO_BinaryOp<"or", [{
    Logical (boolean) or bitwise (integer) or.
  }], HLO_PredOrIntTensor, "i1", [Commutative]> {
  let summary = "Logical or bitwise or";
  let hasFolder = 1;
}

def StableHLO_PowOp : StableHLO_BinaryOp<"power", [{
    lhs to the power of rhs.
  }], HLO_IntOrFloatTensor, "f32"> {
  let summary = "Power";
  let hasFolder = 0;
}

def StableHLO_RemOp : StableHLO_BinaryOp<"remainder", [{
    The remainder of the division, with the sign of the dividend. By an
    integer zero: the dividend.
  }], HLO_IntOrFloatTensor, "f32"> {
  let summary = "Remainder";
  let hasFolder = 1;
}

def StableHLO_ShiftLeftOp : StableHLO_BinaryOp<"shift_left", [{
    lhs shifted left by rhs bits; 0 if rhs is not below the width.
  }], HLO_IntTensor, "i32"> {
  let summary = "Shift left";
  let hasFolder = 0;
}

def StableHLO_ShiftRightArithmeticOp : StableHLO_BinaryOp<"shift_right_arithmetic", [{
    lhs shifted right by rhs bits, filled with the sign bit.
  }], HLO_IntTensor, "i32"> {
  let summary = "Arithmetic shift right";
  let hasFolder = 0;
}

def StableHLO_ShiftRightLogicalOp : StableHLO_BinaryOp<"shift_right_logical", [{
    lhs shifted right by rhs bits, filled with zeros.
  }], HLO_IntTensor, "i32"> {
  let summary = "Logical shift right";
  let hasFolder = 0;
}

def StableHLO_SubtractOp : StableHLO_BinaryOp<"subtract", [{
    The difference; wraps around for integers.
  }], HLO_IntOrFloatTensor, "f32"> {
  let summary = "Subtraction";
  let hasFolder = 1;
}

def StableHLO_XorOp : StableHLO_BinaryOp<"xor", [{
    Logical (boolean) or bitwise (integer) exclusive or.
  }], HLO_PredOrIntTensor, "i1", [Commutative]> {
  let summary = "Logical or bitwise exclusive or";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise ops whose types differ
//===----------------------------------------------------------------------===//

def StableHLO_BitcastConvertOp : StableHLO_Op<"bitcast_convert", [Pure]> {
  let summary = "Reinterpret bits";
  let description = [{
    Reads the operand's bits as another element type. A narrower result element
    adds a minor dimension that holds the parts, a wider one removes it.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4x2xui16> {
      %0 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4x2xui16>
      return %0 : tensor<4x2xui16>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` functional-type($operand, $result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def StableHLO_ClampOp : StableHLO_Op<"clamp", [Pure]> {
  let summary = "Clamp to a range";
  let description = [{
    min(max(operand, min), max); `min` and `max` are of the operand's type or 0-d.

    Example:

    ```mlir
    func.func @example(%lo: tensor<f32>, %x: tensor<4xf32>, %hi: tensor<f32>) -> tensor<4xf32> {
      %0 = stablehlo.clamp %lo, %x, %hi : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$min, HLO_Tensor:$operand, HLO_Tensor:$max);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $min `,` $operand `,` $max attr-dict
      `:` custom<SameTypes>(type($min), type($operand), type($max), type($result))
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$min, "::mlir::Value":$operand, "::mlir::Value":$max), [{
    build($_builder, $_state, operand.getType(), min, operand, max);
  }]>];
}

def StableHLO_CompareOp : StableHLO_Op<"compare", [Pure, HLO_SameShape, Elementwise, SameOperandsAndResultShape]> {
  let summary = "Comparison";
  let description = [{
    Compares elementwise. `compare_type` says how: FLOAT (IEEE), TOTALORDER (IEEE
    totalOrder), SIGNED or UNSIGNED; absent, it follows from the element type.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
      %0 = stablehlo.compare LT, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      return %0 : tensor<4xi1>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
                       HLO_ComparisonDirectionAttr:$comparison_direction,
                       OptionalAttr<HLO_ComparisonTypeAttr>:$compare_type);
  let results = (outs HLO_PredTensor:$result);
  let assemblyFormat = [{
    `` custom<Direction>($comparison_direction) `,` $lhs `,` $rhs
      `` custom<CompareType>($compare_type) attr-dict
      `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
      "::mlir::stablehlo::ComparisonDirection":$comparison_direction,
      CArg<"::mlir::stablehlo::ComparisonType",
           "::mlir::stablehlo::ComparisonType::NOTYPE">:$compare_type)>];
}

def StableHLO_ConvertOp : StableHLO_Op<"convert", [Pure, HLO_SameShape, Elementwise, SameOperandsAndResultShape]> {
  let summary = "Element type conversion";
  let description = [{
    Converts elementwise: floats round to nearest even (f8 results follow the
    type's own overflow rule: NaN in E4M3FN, infinity in E5M2), floats become integers by truncation and
    saturate, NaN becomes 0, non-zero becomes true.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xbf16>) -> tensor<4xf32> {
      %0 = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` custom<SameTypes>(type($operand), type($result))
  }];
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Type":$element_type)>];
}

def StableHLO_IsFiniteOp : StableHLO_Op<"is_finite", [Pure, HLO_SameShape, Elementwise, SameOperandsAndResultShape]> {
  let summary = "Finiteness test";
  let description = [{
    True where the operand is neither infinite nor NaN.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xi1> {
      %0 = stablehlo.is_finite %x : (tensor<4xf32>) -> tensor<4xi1>
      return %0 : tensor<4xi1>
    }
    ```
  }];
  let arguments = (ins HLO_FloatTensor:$x);
  let results = (outs HLO_PredTensor:$y);
  let assemblyFormat = [{
    $x attr-dict `:` functional-type(operands, results)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$x)>];
}

def StableHLO_ReducePrecisionOp : StableHLO_Op<"reduce_precision", [Pure, HLO_SameTypes, Elementwise, SameOperandsAndResultType]> {
  let summary = "Round to a smaller format";
  let description = [{
    Rounds to a format of the given exponent and mantissa bits, and back.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.reduce_precision %x, format = e8m7 : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_FloatTensor:$operand,
                       I32Attr:$exponent_bits, I32Attr:$mantissa_bits);
  let results = (outs HLO_FloatTensor:$output);
  let assemblyFormat = [{
    $operand `,` `format` `=` custom<ExponentMantissa>($exponent_bits, $mantissa_bits)
      attr-dict `:` custom<SameTypes>(type($operand), type($output))
  }];
  let hasVerifier = 1;
}

def StableHLO_SelectOp : StableHLO_Op<"select", [Pure]> {
  let summary = "Selection";
  let description = [{
    Takes `on_true` where `pred` is true, else `on_false`; `pred` may be 0-d.

    Example:

    ```mlir
    func.func @example(%p: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.select %p, %x, %y : tensor<4xi1>, tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_PredTensor:$pred, HLO_Tensor:$on_true, HLO_Tensor:$on_false);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $pred `,` $on_true `,` $on_false attr-dict
      `:` custom<SelectTypes>(type($pred), type($on_true), type($on_false), type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$pred, "::mlir::Value":$on_true, "::mlir::Value":$on_false), [{
    build($_builder, $_state, on_true.getType(), pred, on_true, on_false);
  }]>];
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

def StableHLO_ConstantOp : StableHLO_Op<"constant", [Pure, ConstantLike, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Constant";
  let description = [{
    A constant tensor.

    Example:

    ```mlir
    func.func @example() -> tensor<2xf32> {
      %0 = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs HLO_Tensor:$output);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value)>];
}

def StableHLO_IotaOp : StableHLO_Op<"iota", [Pure]> {
  let summary = "Index along a dimension";
  let description = [{
    Every element holds its index along `iota_dimension`.

    Example:

    ```mlir
    func.func @example() -> tensor<4x2xi32> {
      %0 = stablehlo.iota dim = 0 : tensor<4x2xi32>
      return %0 : tensor<4x2xi32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$iota_dimension);
  let results = (outs HLO_IntOrFloatTensor:$output);
  let assemblyFormat = [{
    `dim` `=` $iota_dimension attr-dict `:` type($output)
  }];
  let hasVerifier = 1;
}

def StableHLO_RngBitGeneratorOp : StableHLO_Op<"rng_bit_generator", [Pure]> {
  let summary = "Random bits";
  let description = [{
    Draws uniform bits from a counter-based generator; a pure function of its state.

    Example:

    ```mlir
    func.func @example(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>) {
      %state, %bits = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
      return %state, %bits : tensor<2xui64>, tensor<4xui32>
    }
    ```
  }];
  let arguments = (ins HLO_RngAlgorithmAttr:$rng_algorithm, HLO_IntOrFloatTensor:$initial_state);
  let results = (outs HLO_IntOrFloatTensor:$output_state, HLO_IntOrFloatTensor:$output);
  let assemblyFormat = [{
    $initial_state `,` `algorithm` `=` custom<Generator>($rng_algorithm) attr-dict
      `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shape and data movement
//===----------------------------------------------------------------------===//

def StableHLO_BroadcastInDimOp : StableHLO_Op<"broadcast_in_dim", [Pure]> {
  let summary = "Broadcast";
  let description = [{
    Operand dimension `i` becomes result dimension `broadcast_dimensions[i]`; sizes
    of one are repeated, as are all other result dimensions.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<2x4xf32> {
      %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$broadcast_dimensions);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $broadcast_dimensions attr-dict
      `:` functional-type($operand, $result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def StableHLO_ConcatenateOp : StableHLO_Op<"concatenate", [Pure]> {
  let summary = "Concatenation";
  let description = [{
    Joins the inputs along a dimension.

    Example:

    ```mlir
    func.func @example(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) -> tensor<5x4xf32> {
      %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
      return %0 : tensor<5x4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, I64Attr:$dimension);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    custom<LeadingOperands>($inputs) `dim` `=` $dimension attr-dict
      `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "int64_t":$dimension)>];
}

def StableHLO_DynamicSliceOp : StableHLO_Op<"dynamic_slice", [Pure]> {
  let summary = "Slice at runtime indices";
  let description = [{
    A slice of size `slice_sizes` at runtime start indices, which are clamped so
    that the slice lies within the operand.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<1x8xf32> {
      %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
      return %0 : tensor<1x8xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, Variadic<HLO_IntTensor>:$start_indices,
                       DenseI64ArrayAttr:$slice_sizes);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` custom<LeadingOperands>($start_indices) `sizes` `=` $slice_sizes
      attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def StableHLO_DynamicUpdateSliceOp : StableHLO_Op<"dynamic_update_slice", [Pure]> {
  let summary = "Update at runtime indices";
  let description = [{
    Replaces a slice of the operand, at runtime start indices (clamped so that
    the slice lies within the operand), by `update`.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x8xf32>, %u: tensor<1x8xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<4x8xf32> {
      %0 = stablehlo.dynamic_update_slice %x, %u, %i, %j : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$update,
                       Variadic<HLO_IntTensor>:$start_indices);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def StableHLO_GatherOp : StableHLO_Op<"gather", [Pure]> {
  let summary = "Gather of slices";
  let description = [{
    Gathers slices of `operand` at `start_indices`, which are clamped so that
    slices lie within the operand.

    Example:

    ```mlir
    func.func @example(%table: tensor<64x32xf32>, %i: tensor<2x16x1xi32>) -> tensor<2x16x32xf32> {
      %0 = "stablehlo.gather"(%table, %i) <{
        dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0],
          start_index_map = [0], index_vector_dim = 2>,
        indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}>
        : (tensor<64x32xf32>, tensor<2x16x1xi32>) -> tensor<2x16x32xf32>
      return %0 : tensor<2x16x32xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_IntTensor:$start_indices,
                       HLO_GatherDimensionNumbersAttr:$dimension_numbers,
                       DenseI64ArrayAttr:$slice_sizes,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def StableHLO_PadOp : StableHLO_Op<"pad", [Pure]> {
  let summary = "Padding";
  let description = [{
    Pads with `padding_value` below, above and between elements; negative edge
    padding removes elements.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<10xf32> {
      %0 = stablehlo.pad %x, %v, low = [1], high = [2], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>
      return %0 : tensor<10xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$padding_value,
                       DenseI64ArrayAttr:$edge_padding_low,
                       DenseI64ArrayAttr:$edge_padding_high,
                       DenseI64ArrayAttr:$interior_padding);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` $padding_value `,` `low` `=` $edge_padding_low `,`
      `high` `=` $edge_padding_high `,` `interior` `=` $interior_padding attr-dict
      `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def StableHLO_ReshapeOp : StableHLO_Op<"reshape", [Pure]> {
  let summary = "Reshape";
  let description = [{
    The same elements in row-major order in another shape.

    Example:

    ```mlir
    func.func @example(%x: tensor<2x6xf32>) -> tensor<3x4xf32> {
      %0 = stablehlo.reshape %x : (tensor<2x6xf32>) -> tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def StableHLO_ReverseOp : StableHLO_Op<"reverse", [Pure, HLO_SameTypes, SameOperandsAndResultType]> {
  let summary = "Reversal";
  let description = [{
    Reverses the order of elements along dimensions.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = stablehlo.reverse %x, dims = [1] : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$dimensions);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $dimensions attr-dict
      `:` custom<SameTypes>(type($operand), type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def StableHLO_ScatterOp : StableHLO_Op<"scatter", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock,
    SameVariadicOperandSize]> {
  let summary = "Scatter of updates";
  let description = [{
    Combines slices of `updates` into the inputs at `scatter_indices`, with the
    update computation. Updates that lie outside the inputs are skipped.

    Example:

    ```mlir
    func.func @example(%x: tensor<64x32xf32>, %i: tensor<16x1xi32>, %u: tensor<16x32xf32>) -> tensor<64x32xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) <{
        scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
        indices_are_sorted = false, unique_indices = false}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<64x32xf32>, tensor<16x1xi32>, tensor<16x32xf32>) -> tensor<64x32xf32>
      return %0 : tensor<64x32xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, HLO_IntTensor:$scatter_indices,
                       Variadic<HLO_Tensor>:$updates,
                       HLO_ScatterDimensionNumbersAttr:$scatter_dimension_numbers,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$unique_indices);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$update_computation);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_SliceOp : StableHLO_Op<"slice", [Pure]> {
  let summary = "Static slice";
  let description = [{
    Elements from `start_indices` up to `limit_indices` in steps of `strides`.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x8xf32>) -> tensor<2x4xf32> {
      %0 = stablehlo.slice %x [1:3, 0:8:2] : (tensor<4x8xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$start_indices,
                       DenseI64ArrayAttr:$limit_indices, DenseI64ArrayAttr:$strides);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand custom<SliceRanges>($start_indices, $limit_indices, $strides)
      attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$start_indices,
      "::llvm::ArrayRef<int64_t>":$limit_indices, "::llvm::ArrayRef<int64_t>":$strides)>];
}

def StableHLO_SortOp : StableHLO_Op<"sort", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "Sort";
  let description = [{
    Sorts all inputs together along `dimension` by a comparator that says whether
    its first arguments come first.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs,
                       DefaultValuedOptionalAttr<I64Attr, "-1">:$dimension,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$is_stable);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$comparator);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_TransposeOp : StableHLO_Op<"transpose", [Pure]> {
  let summary = "Transposition";
  let description = [{
    Result dimension `i` is operand dimension `permutation[i]`.

    Example:

    ```mlir
    func.func @example(%x: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
      %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
      return %0 : tensor<2x4x3xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $permutation attr-dict
      `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$permutation)>];
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

def StableHLO_DotGeneralOp : StableHLO_Op<"dot_general", [Pure]> {
  let summary = "Batched contraction";
  let description = [{
    Sums products over the contracting dimensions, once per index of the batching
    dimensions. The result has the batching dimensions, then those of `lhs`, then
    those of `rhs` that remain.

    Example:

    ```mlir
    func.func @example(%x: tensor<8x4x16xf32>, %y: tensor<8x16x32xf32>) -> tensor<8x4x32xf32> {
      %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT]
        : (tensor<8x4x16xf32>, tensor<8x16x32xf32>) -> tensor<8x4x32xf32>
      return %0 : tensor<8x4x32xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
                       HLO_DotDimensionNumbersAttr:$dot_dimension_numbers,
                       OptionalAttr<HLO_PrecisionConfigAttr>:$precision_config,
                       OptionalAttr<HLO_DotAlgorithmAttr>:$algorithm);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` custom<DotDimensionNumbers>($dot_dimension_numbers)
      `` custom<PrecisionAndAlgorithm>($precision_config, $algorithm) attr-dict
      `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def StableHLO_ConvolutionOp : StableHLO_Op<"convolution", [Pure]> {
  let summary = "Convolution";
  let description = [{
    A general convolution: any layout, strides, padding, dilation, groups.

    Example:

    ```mlir
    func.func @example(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32> {
      %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
        : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
      return %0 : tensor<2x4x4x4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
                       OptionalAttr<DenseI64ArrayAttr>:$window_strides,
                       OptionalAttr<I64ElementsAttr>:$padding,
                       OptionalAttr<DenseI64ArrayAttr>:$lhs_dilation,
                       OptionalAttr<DenseI64ArrayAttr>:$rhs_dilation,
                       OptionalAttr<DenseBoolArrayAttr>:$window_reversal,
                       HLO_ConvDimensionNumbersAttr:$dimension_numbers,
                       I64Attr:$feature_group_count, I64Attr:$batch_group_count,
                       OptionalAttr<HLO_PrecisionConfigAttr>:$precision_config);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    `(` operands `)` `dim_numbers` `=` custom<ConvDimensions>($dimension_numbers) `,`
      `window` `=` `{` custom<ConvWindow>($window_strides, $padding, $lhs_dilation,
                                          $rhs_dilation, $window_reversal) `}`
      attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def StableHLO_ReduceOp : StableHLO_Op<"reduce", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock,
    SameVariadicOperandSize]> {
  let summary = "Reduction";
  let description = [{
    Reduces all inputs together over `dimensions` with a body, from init values.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x8xf32>, %init: tensor<f32>) -> tensor<4xf32> {
      %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, Variadic<HLO_Tensor>:$init_values,
                       DenseI64ArrayAttr:$dimensions);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_ReduceWindowOp : StableHLO_Op<"reduce_window", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock,
    SameVariadicOperandSize]> {
  let summary = "Windowed reduction";
  let description = [{
    Reduces all inputs together over sliding windows.

    Example:

    ```mlir
    func.func @example(%x: tensor<32xf32>, %init: tensor<f32>) -> tensor<32xf32> {
      %0 = "stablehlo.reduce_window"(%x, %init) <{
        base_dilations = array<i64: 1>, padding = dense<[[31, 0]]> : tensor<1x2xi64>,
        window_dilations = array<i64: 1>, window_dimensions = array<i64: 32>,
        window_strides = array<i64: 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
      return %0 : tensor<32xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, Variadic<HLO_Tensor>:$init_values,
                       DenseI64ArrayAttr:$window_dimensions,
                       OptionalAttr<DenseI64ArrayAttr>:$window_strides,
                       OptionalAttr<DenseI64ArrayAttr>:$base_dilations,
                       OptionalAttr<DenseI64ArrayAttr>:$window_dilations,
                       OptionalAttr<I64ElementsAttr>:$padding);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_SelectAndScatterOp : StableHLO_Op<"select_and_scatter", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "Gradient of a windowed selection";
  let description = [{
    Scatters `source` to the element of each window of `operand` that `select`
    prefers; the gradient of max pooling.

    Example:

    ```mlir
    func.func @example(%x: tensor<8xf32>, %s: tensor<4xf32>, %init: tensor<f32>) -> tensor<8xf32> {
      %0 = "stablehlo.select_and_scatter"(%x, %s, %init) <{
        window_dimensions = array<i64: 2>, window_strides = array<i64: 2>, padding = dense<0> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }, {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$source, HLO_Tensor:$init_value,
                       OptionalAttr<DenseI64ArrayAttr>:$window_dimensions,
                       OptionalAttr<DenseI64ArrayAttr>:$window_strides,
                       OptionalAttr<I64ElementsAttr>:$padding);
  let results = (outs HLO_Tensor:$result);
  let regions = (region SizedRegion<1>:$select, SizedRegion<1>:$scatter);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_MapOp : StableHLO_Op<"map", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "Elementwise computation";
  let description = [{
    Applies a computation to each element of the inputs.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.multiply %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, DenseI64ArrayAttr:$dimensions);
  let results = (outs HLO_Tensor:$result);
  let regions = (region SizedRegion<1>:$computation);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

def StableHLO_WhileOp : StableHLO_Op<"while", [RecursiveMemoryEffects, SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Loop";
  let description = [{
    Runs `body` on the loop values while `cond` returns true.

    Example:

    ```mlir
    func.func @example(%n: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %0:2 = stablehlo.while(%i = %n, %acc = %x) : tensor<i32>, tensor<f32>
      cond {
        %1 = stablehlo.compare GT, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.subtract %i, %one : tensor<i32>
        %2 = stablehlo.add %acc, %acc : tensor<f32>
        stablehlo.return %1, %2 : tensor<i32>, tensor<f32>
      }
      return %0#1 : tensor<f32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$operand);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$cond, SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_IfOp : StableHLO_Op<"if", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "Choice of two";
  let description = [{
    Runs one of two branches, which take no arguments.

    Example:

    ```mlir
    func.func @example(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.if"(%p) ({
        stablehlo.return %x : tensor<4xf32>
      }, {
        stablehlo.return %y : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_PredTensor:$pred);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$true_branch, SizedRegion<1>:$false_branch);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_CaseOp : StableHLO_Op<"case", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "Choice of many";
  let description = [{
    Runs the branch at `index`; the last one if the index is out of range.

    Example:

    ```mlir
    func.func @example(%i: tensor<i32>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.case"(%i) ({
        stablehlo.return %x : tensor<4xf32>
      }, {
        stablehlo.return %y : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_IntTensor:$index);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$branches);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_OptimizationBarrierOp : StableHLO_Op<"optimization_barrier", [Pure]> {
  let summary = "Fence against code motion";
  let description = [{
    Returns its operands. Ops after the barrier are not merged with ops before
    it or moved across it. JAX uses it so that CSE does not undo
    rematerialization.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>, %y: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
      %0:2 = stablehlo.optimization_barrier %x, %y : tensor<4xf32>, tensor<8xf32>
      return %0#0, %0#1 : tensor<4xf32>, tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$operand);
  let results = (outs Variadic<HLO_Tensor>:$result);
  let assemblyFormat = [{
    attr-dict ($operand^ `:` custom<PairwiseTypes>(type($operand), type($result))):(`(` `)`)?
  }];
  let hasVerifier = 1;
}

def StableHLO_ReturnOp : StableHLO_Op<"return", [Pure, Terminator]> {
  let summary = "Terminator";
  let description = [{
    Returns the values of a region.

    Example:

    ```mlir
    func.func @example(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = "stablehlo.if"(%p) ({
        stablehlo.return %x : tensor<f32>
      }, {
        stablehlo.return %x : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$results);
  let results = (outs );
  let assemblyFormat = [{
    $results attr-dict (`:` type($results)^)?
  }];
}

def StableHLO_CompositeOp : StableHLO_Op<"composite", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Named composition";
  let description = [{
    A call of `decomposition`, a function that computes what the name stands for.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.composite "my.double" %x {decomposition = @double, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.add %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, StrAttr:$name,
                       DefaultValuedOptionalAttr<DictionaryAttr, "{}">:$composite_attributes,
                       FlatSymbolRefAttr:$decomposition,
                       DefaultValuedOptionalAttr<I32Attr, "0">:$version,
                       OptionalAttr<ArrayAttr>:$composite_regions);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let assemblyFormat = [{
    $name $inputs attr-dict `:` functional-type(operands, results)
  }];
}

def StableHLO_CustomCallOp : StableHLO_Op<"custom_call", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Call of a named target";
  let description = [{
    A call of a target outside StableHLO. The import drops annotations without
    an effect on values (`@Sharding` and similar); other targets do not run
    here.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, StrAttr:$call_target_name,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$has_side_effect,
                       OptionalAttr<AnyAttrOf<[StrAttr, DictionaryAttr]>>:$backend_config,
                       DefaultValuedOptionalAttr<I32Attr, "1">:$api_version,
                       OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "functions">>:$called_computations,
                       OptionalAttr<ArrayAttr>:$operand_layouts,
                       OptionalAttr<ArrayAttr>:$result_layouts,
                       OptionalAttr<TypedArrayAttrBase<HLO_OutputOperandAliasAttr, "aliases">>:$output_operand_aliases);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let assemblyFormat = [{
    custom<CustomCallTarget>($call_target_name) `(` $inputs `)` attr-dict
      `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Collectives: stablehlo-lower-collectives replaces them
//===----------------------------------------------------------------------===//

/// Devices and channel of a collective.
defvar groups = (ins I64ElementsAttr:$replica_groups,
                     OptionalAttr<HLO_ChannelHandleAttr>:$channel_handle);

def StableHLO_AllGatherOp : StableHLO_Op<"all_gather"> {
  let summary = "Concatenation over devices";
  let description = [{
    Concatenates the operands of all devices of a group along `all_gather_dim`.

    Example:

    ```mlir
    func.func @example(%x: tensor<4x4xf32>) -> tensor<8x4xf32> {
      %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = !con((ins Variadic<HLO_Tensor>:$operands, I64Attr:$all_gather_dim),
                       groups, (ins UnitAttr:$use_global_device_ids));
  let results = (outs Variadic<HLO_Tensor>:$results);
  let hasVerifier = 1;
}

def StableHLO_AllReduceOp : StableHLO_Op<"all_reduce", [SingleBlock]> {
  let summary = "Reduction over devices";
  let description = [{
    Reduces the operands of all devices of a group element by element with
    `computation`.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = !con((ins Variadic<HLO_Tensor>:$operands), groups,
                       (ins UnitAttr:$use_global_device_ids));
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$computation);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_AllToAllOp : StableHLO_Op<"all_to_all"> {
  let summary = "Exchange of parts between devices";
  let description = [{
    Each device cuts its operands into `split_count` parts along
    `split_dimension`, sends part `i` to device `i` of its group, and
    concatenates the parts that it receives along `concat_dimension`.

    Example:

    ```mlir
    func.func @example(%x: tensor<2x4xf32>) -> tensor<4x2xf32> {
      %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
      return %0 : tensor<4x2xf32>
    }
    ```
  }];
  let arguments = !con((ins Variadic<HLO_Tensor>:$operands, I64Attr:$split_dimension,
                            I64Attr:$concat_dimension, I64Attr:$split_count), groups);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let hasVerifier = 1;
}

def StableHLO_CollectiveBroadcastOp : StableHLO_Op<"collective_broadcast", [HLO_SameTypes, SameOperandsAndResultType]> {
  let summary = "The operand of a group's first device";
  let description = [{
    Every device of a group gets the operand of the first.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = !con((ins HLO_Tensor:$operand), groups);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def StableHLO_CollectivePermuteOp : StableHLO_Op<"collective_permute", [HLO_SameTypes, SameOperandsAndResultType]> {
  let summary = "Operands sent from device to device";
  let description = [{
    Sends the operand of the first device of each pair to the second. A device
    that is in no pair as the second gets zeros.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, I64ElementsAttr:$source_target_pairs,
                       OptionalAttr<HLO_ChannelHandleAttr>:$channel_handle);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def StableHLO_PartitionIdOp : StableHLO_Op<"partition_id", [Pure]> {
  let summary = "The number of this device among the partitions";
  let description = [{
    Example:

    ```mlir
    func.func @example() -> tensor<ui32> {
      %0 = stablehlo.partition_id : tensor<ui32>
      return %0 : tensor<ui32>
    }
    ```
  }];
  let results = (outs 0DTensorOf<[UI32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def StableHLO_ReduceScatterOp : StableHLO_Op<"reduce_scatter", [SingleBlock]> {
  let summary = "Reduction over devices, each keeping a part";
  let description = [{
    Reduces the operands of all devices of a group element by element with
    `computation` and cuts the result along `scatter_dimension`; device `i`
    keeps part `i`.

    Example:

    ```mlir
    func.func @example(%x: tensor<4xf32>) -> tensor<2xf32> {
      %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    ```
  }];
  let arguments = !con((ins HLO_Tensor:$operand, I64Attr:$scatter_dimension), groups,
                       (ins UnitAttr:$use_global_device_ids));
  let results = (outs HLO_Tensor:$result);
  let regions = (region SizedRegion<1>:$computation);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_ReplicaIdOp : StableHLO_Op<"replica_id", [Pure]> {
  let summary = "The number of this device among the replicas";
  let description = [{
    Example:

    ```mlir
    func.func @example() -> tensor<ui32> {
      %0 = stablehlo.replica_id : tensor<ui32>
      return %0 : tensor<ui32>
    }
    ```
  }];
  let results = (outs 0DTensorOf<[UI32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // FP8_DIALECT_STABLEHLO_IR_STABLEHLOOPS_TD
