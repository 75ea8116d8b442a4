//===- Texts.h - Lists of texts from callers --------------------*- C++ -*-===//
//
// The C interfaces of the compiler and of the runtime check them alike.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_BINDING_TEXTS_H
#define FP8_BINDING_TEXTS_H

#include <cstdint>
#include <string>

namespace fp8binding {

/// Says why a caller's list does not have `count` texts; "" if it does. `what`
/// is in the message: "alarms".
std::string mistakeInTexts(const std::string &what, const char *const *texts,
                           int64_t count);

} // namespace fp8binding

#endif // FP8_BINDING_TEXTS_H
