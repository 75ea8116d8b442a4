//===- FP8Types.cpp - Types of the fp8 dialect ----------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

#define GET_TYPEDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Types.cpp.inc"

void FP8Dialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fp8/Dialect/FP8/IR/FP8Types.cpp.inc"
      >();
}

bool fp8::isFormat(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3Type,
             Float8E4M3FNUZType, Float8E5M2FNUZType>(type);
}

bool fp8::isPayload(Type type) { return isFormat(type) || type.isF16(); }

double fp8::getLargestFinite(FloatType format) {
  return APFloat::getLargest(format.getFloatSemantics()).convertToDouble();
}

int fp8::getLargestExponent(FloatType format) {
  return ilogb(APFloat::getLargest(format.getFloatSemantics()));
}

SmallVector<int64_t> fp8::getScaleShape(ArrayRef<int64_t> shape,
                                        ArrayRef<int64_t> tile) {
  if (llvm::all_of(tile, [](int64_t t) { return t == ScaledType::kWhole; }))
    return {};
  SmallVector<int64_t> result;
  for (auto [dim, extent] : llvm::zip_equal(shape, tile))
    result.push_back(
        extent == ScaledType::kWhole ? 1 : llvm::divideCeilSigned(dim, extent));
  return result;
}

RankedTensorType fp8::getQuantizerType(ScaledType type) {
  return RankedTensorType::get(getScaleShape(type.getShape(), type.getTile()),
                               Float32Type::get(type.getContext()));
}

ScaledType ScaledType::getPerTensor(RankedTensorType payload) {
  SmallVector<int64_t> tile(payload.getRank(), kWhole);
  return get(payload, tile, Float32Type::get(payload.getContext()));
}

RankedTensorType ScaledType::getPayloadType() const {
  return RankedTensorType::get(getShape(), getElementType());
}

RankedTensorType ScaledType::getScaleTensorType() const {
  return RankedTensorType::get(getScaleShape(getShape(), getTile()),
                               getScaleType());
}

bool ScaledType::isPerTensor() const {
  return llvm::all_of(getTile(), [](int64_t t) { return t == kWhole; });
}

LogicalResult ScaledType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType,
                                 ArrayRef<int64_t> tile, Type scaleType) {
  if (!isPayload(elementType))
    return emitError() << "expected a payload of f8E4M3FN, f8E5M2, f8E4M3, "
                          "f8E4M3FNUZ, f8E5M2FNUZ or f16 but got "
                       << elementType;
  for (int64_t dim : shape)
    if (dim < 0)
      return emitError() << "expected a static shape but got a dynamic one";
  if (failed(verifyTile(emitError, shape, tile)))
    return failure();
  bool perTensor =
      llvm::all_of(tile, [](int64_t extent) { return extent == kWhole; });
  if (elementType.isF16() && !(perTensor && scaleType.isF32()))
    return emitError() << "expected one f32 scale for the whole tensor (a tile "
                          "of * along every dimension) with a payload of f16";
  if (scaleType.isF32())
    return success();
  if (!isa<Float8E8M0FNUType>(scaleType))
    return emitError() << "expected a scale of f32 or f8E8M0FNU but got "
                       << scaleType;
  // An MX block has 32 elements along one dimension and 1 along the others.
  int64_t blocks = llvm::count(tile, 32), ones = llvm::count(tile, 1);
  if (blocks != 1 || blocks + ones != static_cast<int64_t>(tile.size())) {
    InFlightDiagnostic diag = emitError();
    diag << "expected a tile of 32 along one dimension and 1 along the others "
            "with f8E8M0FNU scales but got [";
    llvm::interleave(
        tile,
        [&](int64_t extent) {
          if (extent == kWhole)
            diag << "*";
          else
            diag << extent;
        },
        [&] { diag << ", "; });
    return diag << "]";
  }
  if (!isa<Float8E4M3FNType, Float8E5M2Type>(elementType))
    return emitError() << "expected a payload of f8E4M3FN or f8E5M2 with "
                          "f8E8M0FNU scales but got "
                       << elementType;
  return success();
}

Type ScaledType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape, tile;
  Type elementType, scaleType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseKeyword("tile") || parser.parseEqual() ||
      parseTileList(parser, tile) || parser.parseComma() ||
      parser.parseKeyword("scale") || parser.parseEqual() ||
      parser.parseType(scaleType) || parser.parseGreater())
    return {};
  return parser.getChecked<ScaledType>(loc, parser.getContext(), shape,
                                       elementType, tile, scaleType);
}

void ScaledType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t dim : getShape())
    printer << dim << "x";
  printer << getElementType() << ", tile = ";
  printTileList(printer, getTile());
  printer << ", scale = " << getScaleType() << ">";
}

ParseResult fp8::parseTileList(AsmParser &parser,
                               SmallVectorImpl<int64_t> &tile) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        if (succeeded(parser.parseOptionalStar())) {
          tile.push_back(ScaledType::kWhole);
          return success();
        }
        return parser.parseInteger(tile.emplace_back());
      });
}

void fp8::printTileList(AsmPrinter &printer, ArrayRef<int64_t> tile) {
  printer << "[";
  llvm::interleaveComma(tile, printer.getStream(), [&](int64_t extent) {
    if (extent == ScaledType::kWhole)
      printer << "*";
    else
      printer << extent;
  });
  printer << "]";
}

LogicalResult fp8::verifyTile(function_ref<InFlightDiagnostic()> emitError,
                              ArrayRef<int64_t> shape, ArrayRef<int64_t> tile) {
  if (tile.size() != shape.size())
    return emitError() << "expected a tile of rank " << shape.size()
                       << " but got rank " << tile.size();
  for (int64_t extent : tile)
    if (extent != ScaledType::kWhole && extent <= 0)
      return emitError() << "expected positive tile extents or * but got "
                         << extent;
  return success();
}
