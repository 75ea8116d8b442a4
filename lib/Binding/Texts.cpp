//===- Texts.cpp - Lists of texts from callers ----------------------------===//

#include "fp8/Binding/Texts.h"

std::string fp8binding::mistakeInTexts(const std::string &what,
                                       const char *const *texts,
                                       int64_t count) {
  if (count < 0)
    return "expected a number of " + what + " but got " + std::to_string(count);
  for (int64_t i = 0; i < count; ++i)
    if (!texts || !texts[i])
      return "expected " + std::to_string(count) + " " + what +
             " but got NULL for number " + std::to_string(i);
  return "";
}
