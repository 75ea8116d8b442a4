//===- FunctionAttributes.h - Attributes of all arguments -------*- C++ -*-===//
//
// A function keeps the attributes of its arguments in one array, so setting one
// attribute takes as long as there are arguments. These functions change those
// of all arguments or results and set them once.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_FUNCTIONATTRIBUTES_H
#define FP8_SUPPORT_FUNCTIONATTRIBUTES_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::fp8 {

/// Changes the attributes of the argument or result of this number.
using UpdateAttributes = llvm::function_ref<void(unsigned, NamedAttrList &)>;

void updateArgAttrs(FunctionOpInterface function, UpdateAttributes update);
void updateResultAttrs(FunctionOpInterface function, UpdateAttributes update);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_FUNCTIONATTRIBUTES_H
