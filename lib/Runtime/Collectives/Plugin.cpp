//===- Plugin.cpp - Opening transports at run time ------------------------===//

#include "Plugin.h"
#include "../Support/Error.h"
#include "../Support/Files.h"

#include <dlfcn.h>

namespace fp8::rt {

namespace {
/// An MPI: an environment variable that its launcher sets, and our plugin.
struct Launcher {
  const char *variable;
  const char *mpi;
  const char *plugin;
  const char *package; // Debian's, needed to build the plugin
};
constexpr Launcher launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "Open MPI", "libfp8_openmpi.so", "libopenmpi-dev"},
    {"PMI_RANK", "MPICH", "libfp8_mpich.so", "libmpich-dev"}};
} // namespace

/// Returns the directory of this library.
static std::string libraryDirectory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&libraryDirectory), &info) ||
      !info.dli_fname)
    return ".";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

static fp8_transport openPlugin(const std::string &file,
                                const std::string &arguments, double timeout) {
  // The library is never closed. Libraries that it loads in turn (parts of an
  // MPI) may need its symbols.
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    throw Error(FP8_ERROR_IO, str("cannot open the transport: ", dlerror()));
  auto open = reinterpret_cast<fp8_transport_open_fn>(
      dlsym(library, "fp8_transport_open"));
  if (!open)
    throw Error(FP8_ERROR_FORMAT,
                str("expected '", file,
                    "' to be a transport but it has no 'fp8_transport_open'"));
  fp8_transport transport = {};
  char error[1024] = {};
  if (open(arguments.c_str(), timeout, &transport, error, sizeof(error)) != 0)
    throw Error(FP8_ERROR_RANK, error);
  return transport;
}

std::optional<fp8_transport> openTransport(const std::string &name,
                                           double timeout) {
  if (!name.empty()) {
    size_t colon = name.find(':');
    return openPlugin(name.substr(0, colon),
                      colon == std::string::npos ? "" : name.substr(colon + 1),
                      timeout);
  }
  for (const Launcher &launcher : launchers) {
    if (!std::getenv(launcher.variable))
      continue;
    std::string file = libraryDirectory() + "/" + launcher.plugin;
    if (!fileExists(file))
      throw Error(FP8_ERROR_IO,
                  str("ranks were started by ", launcher.mpi,
                      ", but this build has no '", launcher.plugin,
                      "': build it where ", launcher.package, " is installed"));
    return openPlugin(file, "", timeout);
  }
  return std::nullopt;
}

} // namespace fp8::rt
