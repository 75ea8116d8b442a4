//===- FP8Types.td - Types of the fp8 dialect --------------*- tablegen -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8TYPES_TD
#define FP8_DIALECT_FP8_IR_FP8TYPES_TD

include "fp8/Dialect/FP8/IR/FP8Dialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonTypeConstraints.td"

def FP8_ScaledType : TypeDef<FP8_Dialect, "Scaled"> {
  let mnemonic = "scaled";
  let summary = "Payload of few bits and the scales that dequantize it";
  let description = [{
    A ranked, static tensor of FP8 codes together with one scale for every tile
    of it. The tile gives, for each dimension, the extent of a block of elements
    that share a scale; `*` is the whole dimension. The tile alone distinguishes
    per-tensor, per-row, per-column, block-wise and MX scaling:

    ```mlir
    func.func private @f(!fp8.scaled<4096x1024xf8E4M3FN, tile = [*, *], scale = f32>)         // per tensor
    func.func private @g(!fp8.scaled<4096x1024xf8E4M3FN, tile = [1, *], scale = f32>)         // per row
    func.func private @h(!fp8.scaled<4096x1024xf8E4M3FN, tile = [1, 128], scale = f32>)       // 1x128 blocks
    func.func private @i(!fp8.scaled<4096x1024xf8E4M3FN, tile = [128, 128], scale = f32>)     // 128x128 blocks
    func.func private @j(!fp8.scaled<4096x1024xf8E5M2, tile = [1, 32], scale = f8E8M0FNU>)    // MXFP8
    func.func private @k(!fp8.scaled<4096x1024xf16, tile = [*, *], scale = f32>)              // stored weights
    ```

    The scale tensor has the shape `ceil(dim / tile)` (partial tiles at the
    edges are fine), except that one scale for the whole tensor is a scalar:
    `tensor<f32>` when every extent of the tile is `*`.

    The payload is one of f8E4M3FN, f8E5M2, f8E4M3, f8E4M3FNUZ, f8E5M2FNUZ, or
    f16 with one scale for the whole tensor. Weights that are stored in scaled
    f16 keep its 11 significant bits without its narrow range, but no dot reads
    them. A scale is f32, or f8E8M0FNU for MX, which has blocks of 32 elements
    along one dimension and an OCP payload (f8E4M3FN or f8E5M2).
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        ArrayRefParameter<"int64_t">:$tile, "::mlir::Type":$scaleType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$payload,
        "::llvm::ArrayRef<int64_t>":$tile, "::mlir::Type":$scaleType), [{
      return $_get(payload.getContext(), payload.getShape(), payload.getElementType(), tile, scaleType);
    }]>
  ];
  let extraClassDeclaration = [{
    /// The extent of a tile that spans its whole dimension (`*`).
    static constexpr int64_t kWhole = ::mlir::ShapedType::kDynamic;

    /// Returns the type with one f32 scale for the whole payload.
    static ScaledType getPerTensor(::mlir::RankedTensorType payload);

    int64_t getRank() const { return getShape().size(); }
    ::mlir::RankedTensorType getPayloadType() const;
    ::mlir::RankedTensorType getScaleTensorType() const;

    /// Whether one scale serves the whole payload.
    bool isPerTensor() const;

    /// Whether the scale varies along a dimension.
    bool variesAlong(int64_t dim) const {
      return getTile()[dim] != kWhole && getTile()[dim] < getShape()[dim];
    }
  }];
}

def FP8_Format : Type<CPred<"::mlir::fp8::isFormat($_self)">, "FP8 element type",
                      "::mlir::FloatType">;

def FP8_Payload : Type<CPred<"::mlir::fp8::isPayload($_self)">, "FP8 or f16 element type",
                       "::mlir::FloatType">;

def FP8_PayloadTensor : StaticShapeTensorOf<[FP8_Payload]>;
def FP8_NarrowTensor : StaticShapeTensorOf<[F16, BF16]>;
def FP8_RealTensor : StaticShapeTensorOf<[F32, F16, BF16]>;
def FP8_F32Tensor : StaticShapeTensorOf<[F32]>;
def FP8_ScaleTensor : StaticShapeTensorOf<[F32, F8E8M0FNU]>;
def FP8_SeedTensor : Type<And<[0DTensorOf<[I64]>.predicate]>, "scalar tensor of i64", "::mlir::TensorType">,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;
def FP8_CounterTensor : 0DTensorOf<[I32, I64]>;

#endif // FP8_DIALECT_FP8_IR_FP8TYPES_TD
