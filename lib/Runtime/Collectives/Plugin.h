//===- Plugin.h - Opening transports at run time ----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_PLUGIN_H
#define FP8_LIB_RUNTIME_COLLECTIVES_PLUGIN_H

#include "fp8-c/Transport.h"

#include <optional>
#include <string>

namespace fp8::rt {

/// Opens the transport called `name`: the file of a plugin, followed by a colon
/// and its arguments. "" stands for the MPI whose launcher started the process;
/// returns nothing if there is none.
std::optional<fp8_transport> openTransport(const std::string &name,
                                           double timeout);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_PLUGIN_H
