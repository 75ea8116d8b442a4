//===- StableHLOBase.td - Dialect, types, enums, attributes -----*- tablegen -*-===//
//
// A clean-room subset of the StableHLO dialect: what JAX prints for training
// steps. docs/StableHLOSubset.md lists the ops.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_STABLEHLOBASE_TD
#define FP8_DIALECT_STABLEHLO_IR_STABLEHLOBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Stablehlo_Dialect : Dialect {
  let name = "stablehlo";
  let cppNamespace = "::mlir::stablehlo";
  let summary = "The subset of StableHLO that training steps use";
  let description = [{
    A clean-room subset of [StableHLO](https://openxla.org/stablehlo/spec), so
    that the text that JAX prints can be read without the StableHLO library.
    Op, attribute and accessor names are those of the original dialect; all
    tensors have static shapes. An op outside of the subset is one error that
    names the op and points to docs/StableHLOSubset.md.
  }];
  let useDefaultAttributePrinterParser = 0;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let extraClassDeclaration = [{
    /// Parses a pretty-form op that is not in the subset: always one error.
    std::optional<::mlir::Dialect::ParseOpHook>
    getParseOperationHook(::llvm::StringRef opName) const override;

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr,
                        ::mlir::DialectAsmPrinter &printer) const override;
    ::mlir::Type parseType(::mlir::DialectAsmParser &parser) const override;
    void printType(::mlir::Type type,
                   ::mlir::DialectAsmPrinter &printer) const override;

  private:
    void registerAttributes();
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def HLO_SInt : SignlessIntOfWidths<[2, 4, 8, 16, 32, 64]>;
def HLO_UInt : UnsignedIntOfWidths<[2, 4, 8, 16, 32, 64]>;
def HLO_Int : AnyTypeOf<[HLO_SInt, HLO_UInt], "integer">;
def HLO_PredOrInt : AnyTypeOf<[I1, HLO_SInt, HLO_UInt], "boolean or integer">;
def HLO_Float : AnyTypeOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3,
                           F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2,
                           F8E5M2FNUZ, F8E8M0FNU, BF16, F16, F32, F64],
                          "floating-point">;
def HLO_IntOrFloat : AnyTypeOf<[HLO_SInt, HLO_UInt, HLO_Float],
                               "integer or floating-point">;
def HLO_Element : AnyTypeOf<[I1, HLO_SInt, HLO_UInt, HLO_Float],
                            "boolean, integer or floating-point">;

def HLO_Tensor : StaticShapeTensorOf<[HLO_Element]>;
def HLO_PredTensor : StaticShapeTensorOf<[I1]>;
def HLO_IntTensor : StaticShapeTensorOf<[HLO_Int]>;
def HLO_PredOrIntTensor : StaticShapeTensorOf<[HLO_PredOrInt]>;
def HLO_FloatTensor : StaticShapeTensorOf<[HLO_Float]>;
def HLO_IntOrFloatTensor : StaticShapeTensorOf<[HLO_IntOrFloat]>;

/// All operands and results have one type; unlike the upstream trait that it
/// precedes, its error prints both types.
def HLO_SameTypes : NativeOpTrait<"SameTypes"> {
  let cppNamespace = "::mlir::stablehlo::OpTrait";
}

/// All operands and results have one shape; the error prints both types.
def HLO_SameShape : NativeOpTrait<"SameShape"> {
  let cppNamespace = "::mlir::stablehlo::OpTrait";
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class HLO_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}

def HLO_ComparisonDirection : HLO_Enum<"ComparisonDirection", "which relation to test", [
  I32EnumAttrCase<"EQ", 0>, I32EnumAttrCase<"NE", 1>, I32EnumAttrCase<"GE", 2>,
  I32EnumAttrCase<"GT", 3>, I32EnumAttrCase<"LE", 4>, I32EnumAttrCase<"LT", 5>]>;
def HLO_ComparisonDirectionAttr
    : EnumAttr<Stablehlo_Dialect, HLO_ComparisonDirection, "comparison_direction">;

def HLO_ComparisonType : HLO_Enum<"ComparisonType", "how values are ordered", [
  I32EnumAttrCase<"NOTYPE", 0>, I32EnumAttrCase<"FLOAT", 1>,
  I32EnumAttrCase<"TOTALORDER", 2>, I32EnumAttrCase<"SIGNED", 3>,
  I32EnumAttrCase<"UNSIGNED", 4>]>;
def HLO_ComparisonTypeAttr
    : EnumAttr<Stablehlo_Dialect, HLO_ComparisonType, "comparison_type">;

def HLO_Precision : HLO_Enum<"Precision", "requested precision of an operand", [
  I32EnumAttrCase<"DEFAULT", 0>, I32EnumAttrCase<"HIGH", 1>,
  I32EnumAttrCase<"HIGHEST", 2>]>;
def HLO_PrecisionAttr : EnumAttr<Stablehlo_Dialect, HLO_Precision, "precision">;
def HLO_PrecisionConfigAttr
    : TypedArrayAttrBase<HLO_PrecisionAttr, "precision of each operand">;

def HLO_RngAlgorithm : HLO_Enum<"RngAlgorithm", "bit generator", [
  I32EnumAttrCase<"DEFAULT", 0>, I32EnumAttrCase<"THREE_FRY", 1>,
  I32EnumAttrCase<"PHILOX", 2>]>;
def HLO_RngAlgorithmAttr
    : EnumAttr<Stablehlo_Dialect, HLO_RngAlgorithm, "rng_algorithm">;

def HLO_ResultAccuracyMode : HLO_Enum<"ResultAccuracyMode", "accuracy mode", [
  I32EnumAttrCase<"DEFAULT", 0>, I32EnumAttrCase<"HIGHEST", 1>,
  I32EnumAttrCase<"TOLERANCE", 2>]>;
def HLO_ResultAccuracyModeAttr
    : EnumAttr<Stablehlo_Dialect, HLO_ResultAccuracyMode, "result_accuracy_mode"> {
  let assemblyFormat = "`<` $value `>`";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class HLO_Attr<string name, string attrMnemonic> : AttrDef<Stablehlo_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def HLO_Dims : ArrayRefParameter<"int64_t", "dimensions">;

def HLO_ResultAccuracyAttr : HLO_Attr<"ResultAccuracy", "result_accuracy"> {
  let summary = "How accurate a transcendental must be";
  let description = [{
    The attribute is kept but has no effect: every transcendental function of
    this compiler meets the bounds in docs/StableHLOSubset.md.

    Example: `#stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>`
  }];
  let parameters = (ins APFloatParameter<"absolute tolerance">:$atol,
                        APFloatParameter<"relative tolerance">:$rtol,
                        "int64_t":$ulps,
                        "::mlir::stablehlo::ResultAccuracyModeAttr":$mode);
  let hasCustomAssemblyFormat = 1;
}

def HLO_DotDimensionNumbersAttr : HLO_Attr<"DotDimensionNumbers", "dot"> {
  let summary = "The batching and contracting dimensions of a dot";
  let description = [{
    Example: `#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>`
  }];
  let parameters = (ins HLO_Dims:$lhsBatchingDimensions,
                        HLO_Dims:$rhsBatchingDimensions,
                        HLO_Dims:$lhsContractingDimensions,
                        HLO_Dims:$rhsContractingDimensions);
  let hasCustomAssemblyFormat = 1;
}

def HLO_DotAlgorithmAttr : HLO_Attr<"DotAlgorithm", "dot_algorithm"> {
  let summary = "The types and number of passes a dot computes in";
  let description = [{
    Example: `#stablehlo.dot_algorithm<lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>`
  }];
  let parameters = (ins "::mlir::Type":$lhsPrecisionType,
                        "::mlir::Type":$rhsPrecisionType,
                        "::mlir::Type":$accumulationType,
                        "int64_t":$lhsComponentCount,
                        "int64_t":$rhsComponentCount,
                        "int64_t":$numPrimitiveOperations,
                        "bool":$allowImpreciseAccumulation);
  let hasCustomAssemblyFormat = 1;
}

def HLO_GatherDimensionNumbersAttr : HLO_Attr<"GatherDimensionNumbers", "gather"> {
  let summary = "How the dimensions of a gather correspond";
  let description = [{
    Example: `#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>`
  }];
  let parameters = (ins HLO_Dims:$offsetDims, HLO_Dims:$collapsedSliceDims,
                        HLO_Dims:$operandBatchingDims,
                        HLO_Dims:$startIndicesBatchingDims,
                        HLO_Dims:$startIndexMap, "int64_t":$indexVectorDim);
  let hasCustomAssemblyFormat = 1;
}

def HLO_ScatterDimensionNumbersAttr : HLO_Attr<"ScatterDimensionNumbers", "scatter"> {
  let summary = "How the dimensions of a scatter correspond";
  let description = [{
    Example: `#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>`
  }];
  let parameters = (ins HLO_Dims:$updateWindowDims, HLO_Dims:$insertedWindowDims,
                        HLO_Dims:$inputBatchingDims,
                        HLO_Dims:$scatterIndicesBatchingDims,
                        HLO_Dims:$scatterDimsToOperandDims,
                        "int64_t":$indexVectorDim);
  let hasCustomAssemblyFormat = 1;
}

def HLO_ConvDimensionNumbersAttr : HLO_Attr<"ConvDimensionNumbers", "conv"> {
  let summary = "The roles of a convolution's dimensions";
  let description = [{
    Example: `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`
  }];
  let parameters = (ins "int64_t":$inputBatchDimension,
                        "int64_t":$inputFeatureDimension,
                        HLO_Dims:$inputSpatialDimensions,
                        "int64_t":$kernelInputFeatureDimension,
                        "int64_t":$kernelOutputFeatureDimension,
                        HLO_Dims:$kernelSpatialDimensions,
                        "int64_t":$outputBatchDimension,
                        "int64_t":$outputFeatureDimension,
                        HLO_Dims:$outputSpatialDimensions);
  let hasCustomAssemblyFormat = 1;
}

def HLO_OutputOperandAliasAttr : HLO_Attr<"OutputOperandAlias", "output_operand_alias"> {
  let summary = "A custom call's result that reuses an operand's buffer";
  let description = [{
    Example: `#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>`
  }];
  let parameters = (ins HLO_Dims:$outputTupleIndices, "int64_t":$operandIndex,
                        HLO_Dims:$operandTupleIndices);
  let hasCustomAssemblyFormat = 1;
}

def HLO_ChannelHandleAttr : HLO_Attr<"ChannelHandle", "channel_handle"> {
  let summary = "The channel of a collective";
  let description = [{
    Example: `#stablehlo.channel_handle<handle = 1, type = 1>`
  }];
  let parameters = (ins "int64_t":$handle, "int64_t":$type);
  let hasCustomAssemblyFormat = 1;
}

#endif // FP8_DIALECT_STABLEHLO_IR_STABLEHLOBASE_TD
