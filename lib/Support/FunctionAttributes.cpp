//===- FunctionAttributes.cpp - Attributes of all arguments ---------------===//

#include "fp8/Support/FunctionAttributes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

static void updateAll(SmallVectorImpl<DictionaryAttr> &all,
                      MLIRContext *context, UpdateAttributes update) {
  for (auto [i, attributes] : llvm::enumerate(all)) {
    NamedAttrList list(attributes);
    update(i, list);
    attributes = list.getDictionary(context);
  }
}

void fp8::updateArgAttrs(FunctionOpInterface function,
                         UpdateAttributes update) {
  SmallVector<DictionaryAttr> all;
  function.getAllArgAttrs(all);
  updateAll(all, function.getContext(), update);
  function.setAllArgAttrs(all);
}

void fp8::updateResultAttrs(FunctionOpInterface function,
                            UpdateAttributes update) {
  SmallVector<DictionaryAttr> all;
  function.getAllResultAttrs(all);
  updateAll(all, function.getContext(), update);
  function.setAllResultAttrs(all);
}
