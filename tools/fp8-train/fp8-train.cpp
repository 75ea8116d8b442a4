//===- fp8-train.cpp - Train from a package -------------------------------===//
//
// Does what fp8-run does once a step is compiled, but without the compiler: the
// functions come from a directory that `fp8-run --emit-package` wrote.
//
//===----------------------------------------------------------------------===//

#include "fp8-c/Runtime.h"
#include "fp8/Run/ExitCode.h"
#include "fp8/Run/OptionTable.h"
#include "fp8/Run/Process.h"
#include "fp8/Run/Ranks.h"
#include "fp8/Run/Train.h"

#include <algorithm>
#include <cstdio>
#include <getopt.h>
#include <utility>

using fp8run::Option;
using fp8run::RunOptions;

namespace {

int usageError(const std::string &message) {
  std::fprintf(stderr, "fp8-train: error: %s\n", message.c_str());
  return 2;
}

/// The parsed command line.
struct CommandLine {
  CommandLine();
  /// Parses the command line; returns 0, or the exit status of a mistake.
  int parse(int argc, char **argv);
  void printHelp() const;

  RunOptions run;
  std::string directory;
  bool printRecipe = false, help = false, version = false;

private:
  std::vector<Option> ownOptions();
  int takePositional(const char *argument, const Option *previous);
  const Option *find(const std::string &argument) const;

  std::vector<Option> options;
};

CommandLine::CommandLine() {
  run.program = "fp8-train";
  run.isPackage = true;
  options = fp8run::runOptionTable(run);
  for (Option &option : ownOptions())
    options.push_back(std::move(option));
  std::sort(options.begin(), options.end(),
            [](const Option &a, const Option &b) { return a.name < b.name; });
}

std::vector<Option> CommandLine::ownOptions() {
  return {
      fp8run::flag("help", "Print this and stop", help),
      fp8run::text("init", "W.safetensors", "Initial values, by tree path",
                   run.initFile),
      fp8run::flag("print-recipe", "Print the recipe of the package and stop",
                   printRecipe),
      fp8run::flag("version", "Print the version and stop", version),
  };
}

void CommandLine::printHelp() const {
  std::printf("Trains with a package that fp8-run --emit-package wrote.\n\n"
              "USAGE: fp8-train DIR --data TEXT... --steps N --out DIR\n\n"
              "OPTIONS:\n");
  for (const Option &option : options) {
    std::string left = "  --" + option.name;
    if (!option.isFlag())
      left += "=<" + option.value + ">";
    std::printf("%-50s - %s\n", left.c_str(), option.help.c_str());
  }
}

/// Takes the package, or another file of the preceding list: `--data A B`.
int CommandLine::takePositional(const char *argument, const Option *previous) {
  std::string name = previous ? previous->name : "";
  if (name == "data" || name == "eval-data") {
    previous->set(argument);
    return 0;
  }
  if (!directory.empty())
    return usageError("expected one package DIR but got '" + directory +
                      "', '" + argument + "' (see --help)");
  directory = argument;
  return 0;
}

/// Returns the option of an argument --NAME or --NAME=VALUE, or null.
const Option *CommandLine::find(const std::string &argument) const {
  size_t begin = argument.find_first_not_of('-');
  if (begin == std::string::npos)
    return nullptr;
  std::string name = argument.substr(begin, argument.find('=') - begin);
  for (const Option &option : options)
    if (name == option.name)
      return &option;
  return nullptr;
}

int CommandLine::parse(int argc, char **argv) {
  std::vector<option> table;
  for (const Option &each : options)
    table.push_back({each.name.c_str(),
                     each.isFlag() ? no_argument : required_argument, nullptr,
                     0});
  table.push_back({});
  // '-' returns other arguments in order, ':' leaves errors to this function.
  opterr = 0;
  const Option *previous = nullptr;
  for (int code, at, index = 0;
       at = optind, (code = getopt_long_only(argc, argv, "-:", table.data(),
                                             &index)) != -1;) {
    if (code == 1) {
      if (int status = takePositional(optarg, previous))
        return status;
      continue;
    }
    // getopt also takes the beginning of a name for the name.
    if ((code != 0 && code != ':') || !find(argv[at]))
      return usageError(std::string("unknown command line argument '") +
                        argv[at] + "' (see --help)");
    if (code == ':')
      return usageError(std::string("for the ") + argv[at] +
                        " option: requires a value (see --help)");
    previous = &options[index];
    if (std::string mistake = previous->set(optarg ? optarg : "true");
        !mistake.empty())
      return usageError(mistake);
  }
  for (; optind < argc; ++optind)
    if (int status = takePositional(argv[optind], nullptr))
      return status;
  return 0;
}

int train(CommandLine &line, fp8run::Ranks &ranks) {
  RunOptions &run = line.run;
  if (line.directory.empty())
    return usageError("expected a package DIR (see --help)");
  if (std::string mistake = fp8run::findThreadsMistake(run.threads);
      !mistake.empty())
    return usageError(mistake);
  if (int status = ranks.join(run))
    return status;
  fp8_package *package = nullptr;
  fp8_status status = fp8_package_open(line.directory.c_str(), &package);
  if (status != FP8_OK)
    return fp8run::exitCodeOnRanks(run, status);
  run.hasInit = fp8_package_function(package, "init");
  run.hasEval = fp8_package_function(package, "eval");
  std::string mistake = line.printRecipe ? "" : run.findMistake();
  if (mistake.empty() && !line.printRecipe)
    mistake = fp8run::findRanksMistake(run, package);
  int result = 0;
  if (!mistake.empty()) {
    result = usageError(mistake);
  } else if (line.printRecipe) {
    const char *recipe = fp8_package_text(package, "recipe.yaml");
    std::fputs(recipe ? recipe : "", stdout);
  } else {
    fp8run::printReports(run, package);
    result = fp8run::train(run, package);
  }
  fp8_package_close(package);
  return result;
}

/// Does what the command line asks for; returns the exit status.
int runCommand(int argc, char **argv) {
  CommandLine line;
  if (int status = line.parse(argc, argv))
    return status;
  if (line.help) {
    line.printHelp();
    return 0;
  }
  if (line.version) {
    std::printf("fp8-train, for packages of version %d\n", fp8_abi_version());
    return 0;
  }
  fp8run::Ranks ranks;
  return ranks.leave(train(line, ranks));
}

} // namespace

int main(int argc, char **argv) {
  fp8run::prepareProcess();
  return fp8run::finishOutput("fp8-train", runCommand(argc, argv));
}
