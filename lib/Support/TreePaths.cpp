//===- TreePaths.cpp - Options about tree paths ---------------------------===//

#include "fp8/Support/TreePaths.h"

using namespace mlir;
using llvm::StringRef;

std::pair<StringRef, StringRef> fp8::splitAssignment(StringRef text) {
  size_t found = StringRef::npos;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote && c == '\\')
      ++i;
    else if (quote)
      quote = c == quote ? 0 : quote;
    // A quote begins a key only behind a bracket.
    else if ((c == '\'' || c == '"') && i > 0 && text[i - 1] == '[')
      quote = c;
    else if (c == '=')
      found = i;
  }
  if (found == StringRef::npos)
    return {text, ""};
  return {text.take_front(found), text.drop_front(found + 1)};
}
