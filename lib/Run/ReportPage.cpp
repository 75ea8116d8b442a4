//===- ReportPage.cpp - A run as one page of HTML -------------------------===//
//
// The page is written by python_bindings/fp8/report_page.py, which CMake makes
// part of the program with what it needs: the standard library of a python3 on
// PATH is all that it wants from outside.
//
//===----------------------------------------------------------------------===//

#include "ReportPage.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace {

struct EmbeddedFile {
  const char *name;
  const char *text;
};

constexpr EmbeddedFile embeddedFiles[] = {
#include "ReportFiles.inc"
};

/// A folder with the embedded files, as long as it lives.
class ScriptFolder {
public:
  ScriptFolder() {
    const char *temporary = std::getenv("TMPDIR");
    if (temporary && *temporary)
      parent = temporary;
    path = parent + "/fp8-report-XXXXXX";
    if (!mkdtemp(path.data())) {
      path.clear();
      return;
    }
    isComplete = mkdir((path + "/report_data").c_str(), 0700) == 0;
    for (const EmbeddedFile &file : embeddedFiles) {
      std::FILE *out = std::fopen((path + "/" + file.name).c_str(), "we");
      isComplete = isComplete && out && std::fputs(file.text, out) != EOF;
      isComplete = (!out || std::fclose(out) == 0) && isComplete;
    }
  }
  ScriptFolder(const ScriptFolder &) = delete;
  ScriptFolder &operator=(const ScriptFolder &) = delete;
  ~ScriptFolder() {
    if (path.empty())
      return;
    for (const EmbeddedFile &file : embeddedFiles)
      unlink((path + "/" + file.name).c_str());
    rmdir((path + "/report_data").c_str());
    rmdir(path.c_str());
  }

  std::string parent = "/tmp", path;
  bool isComplete = false;
};

/// Runs a program without its standard output; its exit status, or -1 with
/// errno where it cannot be run.
int runProgram(std::vector<std::string> command) {
  std::vector<char *> arguments;
  for (std::string &argument : command)
    arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  int error = posix_spawnp(&process, arguments[0], &actions, nullptr,
                           arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  if (error != 0)
    return -1;
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

} // namespace

bool fp8run::writeReport(const RunOptions &run) {
  auto fail = [&](const std::string &why) {
    std::fprintf(stderr, "%s: error: cannot write the report: %s\n",
                 run.program.c_str(), why.c_str());
    return false;
  };
  std::fflush(stdout);
  ScriptFolder folder;
  if (!folder.isComplete)
    return fail("no temporary files in '" + folder.parent +
                "' (set TMPDIR): " + std::strerror(errno));
  std::vector<std::string> command = {
      "python3", "-I", folder.path + "/report_page.py", "--source=."};
  // `llama/export.py` is beside the step, or beside the folder that it is in.
  if (!run.stepFile.empty()) {
    size_t slash = run.stepFile.rfind('/');
    std::string beside =
        slash == std::string::npos ? "." : run.stepFile.substr(0, slash);
    command.push_back("--source=" + beside);
    command.push_back("--source=" + beside + "/..");
  }
  // A directory's name may look like an option.
  command.push_back("--");
  command.push_back(run.outDir);
  int status = runProgram(command);
  if (status < 0)
    return fail("expected python3 on PATH but got: " +
                std::string(std::strerror(errno)));
  if (status > 0)
    return fail("python3 ended with status " + std::to_string(status));
  if (!run.quiet)
    std::printf("report    %s/report.html\n", run.outDir.c_str());
  return true;
}
