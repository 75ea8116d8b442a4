//===- Process.cpp - The process of a command-line tool -------------------===//

#include "fp8/Run/Process.h"
#include "fp8/Run/ExitCode.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

void fp8run::prepareProcess() {
  // The lowest free descriptor is the one that was missing.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd)
      break;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

int fp8run::finishOutput(const std::string &program, int status) {
  if (status != 0)
    return status;
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return 0;
  // Of a line that was lost earlier the reason is not known any more.
  std::string reason = errno ? std::string(": ") + std::strerror(errno) : "";
  printError(program, "cannot write to the standard output" + reason);
  return 1;
}
