//===- TreePaths.cpp - Options about tree paths ---------------------------===//

#include "fp8/Support/TreePaths.h"
#include "fp8/Binding/PathBinding.h"

using namespace mlir;
using llvm::StringRef;

std::pair<StringRef, StringRef> fp8::splitAssignment(StringRef text) {
  size_t found = StringRef::npos;
  for (const fp8binding::PathKey &key : fp8binding::tokenizePath(text))
    if (text[key.begin] != '[') {
      size_t sign = text.slice(key.begin, key.end).rfind('=');
      found = sign == StringRef::npos ? found : key.begin + sign;
    }
  if (found == StringRef::npos)
    return {text, ""};
  return {text.take_front(found), text.drop_front(found + 1)};
}
