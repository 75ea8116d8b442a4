//===- FP8Attrs.cpp - Attributes of the fp8 dialect -----------------------===//

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

static ParseResult parseIntegers(AsmParser &parser,
                                 SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(values.emplace_back());
  });
}

static void printIntegers(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << '[' << values << ']';
}

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Attrs.cpp.inc"

LogicalResult
CPUTargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      StringRef, StringRef, StringRef, unsigned vectorBits) {
  if (vectorBits == 128 || vectorBits == 256 || vectorBits == 512)
    return success();
  return emitError() << "expected vector_bits to be 128, 256 or 512 but got "
                     << vectorBits;
}

LogicalResult
CPUPlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    ArrayRef<int64_t> tile) {
  for (int64_t extent : tile)
    if (extent <= 0)
      return emitError() << "expected a tile of positive extents but got "
                         << extent;
  return success();
}

void FP8Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/Dialect/FP8/IR/FP8Attrs.cpp.inc"
      >();
}
