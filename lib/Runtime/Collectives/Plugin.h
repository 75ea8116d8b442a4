//===- Plugin.h - Transports are opened at run time -------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_PLUGIN_H
#define FP8_LIB_RUNTIME_COLLECTIVES_PLUGIN_H

#include "fp8-c/Transport.h"

#include <optional>
#include <string>

namespace fp8::rt {

/// Opens the transport of `name`: the file of a plugin, and behind a colon its
/// arguments. "": that of the MPI whose launcher has started the process;
/// nothing if none has.
std::optional<fp8_transport> openTransport(const std::string &name,
                                           double timeout);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_PLUGIN_H
