//===- SignatureExtension.cpp - Many new arguments and results ------------===//

#include "SignatureExtension.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

BlockArgument SignatureExtension::addArgument(Type type, DictionaryAttr attrs,
                                              Location loc) {
  types.push_back(type);
  attributes.push_back(attrs);
  return function.getBody().front().addArgument(type, loc);
}

void SignatureExtension::addResult(Value value, DictionaryAttr attrs) {
  resultTypes.push_back(value.getType());
  resultAttributes.push_back(attrs);
  Operation *ret = function.getBody().front().getTerminator();
  ret->insertOperands(ret->getNumOperands(), value);
}

BlockArgument SignatureExtension::addStateArgument(Type type, const Twine &path,
                                                   StringRef kind, Location loc,
                                                   bool startsAsZeros,
                                                   DictionaryAttr part) {
  Builder builder(function.getContext());
  NamedAttrList attrs;
  attrs.set(FP8Dialect::kPathAttrName, builder.getStringAttr(path));
  attrs.set(FP8Dialect::kRoleAttrName,
            builder.getStringAttr(stringifyEnum(ArgRole::State)));
  attrs.set(FP8Dialect::kKindAttrName, builder.getStringAttr(kind));
  if (startsAsZeros)
    attrs.set(FP8Dialect::kZeroInitAttrName, builder.getUnitAttr());
  if (part)
    attrs.set(stablehlo::kPartAttrName, part);
  return addArgument(type, attrs.getDictionary(builder.getContext()), loc);
}

void SignatureExtension::addStateResult(const Twine &path, Value value) {
  Builder builder(function.getContext());
  StringAttr attr = builder.getStringAttr(path);
  addResult(value,
            builder.getDictionaryAttr(
                {builder.getNamedAttr(FP8Dialect::kPathAttrName, attr),
                 builder.getNamedAttr(FP8Dialect::kStateAttrName, attr)}));
}

void SignatureExtension::apply() {
  if (types.empty() && resultTypes.empty())
    return;
  SmallVector<Type> inputs(function.getArgumentTypes());
  SmallVector<Type> results(function.getResultTypes());
  SmallVector<DictionaryAttr> inputAttributes, allResultAttributes;
  function.getAllArgAttrs(inputAttributes);
  function.getAllResultAttrs(allResultAttributes);
  llvm::append_range(inputs, types);
  llvm::append_range(results, resultTypes);
  llvm::append_range(inputAttributes, attributes);
  llvm::append_range(allResultAttributes, resultAttributes);
  function.setFunctionType(
      FunctionType::get(function.getContext(), inputs, results));
  function.setAllArgAttrs(inputAttributes);
  function.setAllResultAttrs(allResultAttributes);
  types.clear();
  resultTypes.clear();
  attributes.clear();
  resultAttributes.clear();
}
