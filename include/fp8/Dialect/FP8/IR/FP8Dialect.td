//===- FP8Dialect.td - The fp8 dialect ---------------------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8DIALECT_TD
#define FP8_DIALECT_FP8_IR_FP8DIALECT_TD

include "mlir/IR/DialectBase.td"

def FP8_Dialect : Dialect {
  let name = "fp8";
  let cppNamespace = "::mlir::fp8";
  let summary = "Scaled 8-bit floating point tensors and what is computed with them";
  let description = [{
    A tensor in FP8 is two tensors: a **payload** of 8-bit codes and a
    **scale**, the multiplier that dequantizes, so that
    `real ≈ payload × scale`. The type `!fp8.scaled` holds both, and says in
    which **tiles** of the payload one scale is shared. The ops measure a
    tensor (`fp8.amax`), choose its scale (`fp8.compute_scale`), round
    (`fp8.quantize`), compute (`fp8.dot_general`) and go back
    (`fp8.dequantize`); `fp8.pack` and `fp8.unpack` change between the type and
    the pair of tensors it stands for.

    Example: a matrix product in FP8 with one current scale per tensor.

    ```mlir
    func.func @linear(%x: tensor<1024x256xf32>, %w: tensor<256x512xf32>)
        -> tensor<1024x512xf32> {
      %ax = fp8.amax %x : tensor<1024x256xf32> -> tensor<f32>
      %sx, %qx = fp8.compute_scale %ax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
      %x8 = fp8.quantize %x, %sx, %qx rounding = nearest_even, overflow = saturate
          : tensor<1024x256xf32> -> !fp8.scaled<1024x256xf8E4M3FN, tile = [*, *], scale = f32>
      %aw = fp8.amax %w : tensor<256x512xf32> -> tensor<f32>
      %sw, %qw = fp8.compute_scale %aw {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
      %w8 = fp8.quantize %w, %sw, %qw rounding = nearest_even, overflow = saturate
          : tensor<256x512xf32> -> !fp8.scaled<256x512xf8E4M3FN, tile = [*, *], scale = f32>
      %y = fp8.dot_general %x8, %w8, contracting_dims = [1] x [0] {accumulator = f32}
          : (!fp8.scaled<1024x256xf8E4M3FN, tile = [*, *], scale = f32>,
             !fp8.scaled<256x512xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<1024x512xf32>
      return %y : tensor<1024x512xf32>
    }
    ```

    Numbers: subnormals are IEEE's everywhere. Finite values saturate or
    overflow as an attribute says, NaN becomes the format's canonical NaN, and
    an infinite input never turns into the largest finite value silently: it
    leaves a NaN in the payload.
  }];

  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;

  let extraClassDeclaration = [{
    /// Registers the types and attributes; called by initialize().
    void registerTypes();
    void registerAttributes();

    /// Names of the discardable attributes on arguments and results of a step
    /// (see docs/Architecture.md): who a value is and what replaces it.
    static constexpr ::llvm::StringLiteral kPathAttrName = "fp8.path";
    static constexpr ::llvm::StringLiteral kRoleAttrName = "fp8.role";
    static constexpr ::llvm::StringLiteral kKindAttrName = "fp8.kind";
    static constexpr ::llvm::StringLiteral kStateAttrName = "fp8.state";
    /// The path of a scaled tensor's scale is the tensor's path and this.
    static constexpr ::llvm::StringLiteral kScaleSuffix = ".scale";

    /// On a function beside the step, "store" or "load": what turns the state
    /// into the form in which the step stores it, and back.
    static constexpr ::llvm::StringLiteral kEntryAttrName = "fp8.entry";

    /// On a quantization: made where it is read, not in the forward pass.
    static constexpr ::llvm::StringLiteral kRecomputedAttrName = "fp8.recomputed";

    /// On a dot whose operands are to be traced: an array of their names.
    static constexpr ::llvm::StringLiteral kTensorsAttrName = "fp8.tensors";

    /// On the module, while the fp8 stage runs: the effective recipe.
    static constexpr ::llvm::StringLiteral kRecipeAttrName = "fp8.recipe";

    /// On a dot, until the report is written: what becomes of it, and why.
    static constexpr ::llvm::StringLiteral kVerdictAttrName = "fp8.verdict";

    /// On an array of the state, until the report is written: what it is stored
    /// in, and why.
    static constexpr ::llvm::StringLiteral kStateVerdictAttrName = "fp8.state_verdict";

    /// On a function: what became of its gated units, for the verdict report.
    static constexpr ::llvm::StringLiteral kGatedUnitsAttrName = "fp8.gated_units";

    /// On a contraction in linalg: the largest number of products in a partial
    /// sum.
    static constexpr ::llvm::StringLiteral kPromoteEveryAttrName = "fp8.promote_every";
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8DIALECT_TD
