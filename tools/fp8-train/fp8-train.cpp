//===- fp8-train.cpp - Train from a package -------------------------------===//
//
// Does what fp8-run does once a step is compiled, but without the compiler: the
// functions come from a directory that `fp8-run --emit-package` wrote.
//
//===----------------------------------------------------------------------===//

#include "fp8-c/Runtime.h"
#include "fp8/Run/Process.h"
#include "fp8/Run/Ranks.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <getopt.h>
#include <iterator>

using fp8run::RunOptions;

namespace {

int usageError(const std::string &message) {
  std::fprintf(stderr, "fp8-train: error: %s\n", message.c_str());
  return 2;
}

/// An option: its name, the name of its value ("": it takes none), its help,
/// and a function that sets the value. It returns false if the value has the
/// wrong type.
struct Option {
  const char *name;
  const char *value;
  const char *help;
  std::function<bool(const char *)> set;
  const char *type = "";
};

/// Parses the whole text as a number.
template <typename T, typename Parse>
bool parseNumber(const char *text, T &out, Parse parse) {
  char *end = nullptr;
  errno = 0;
  auto value = parse(text, &end);
  out = static_cast<T>(value);
  return end != text && *end == '\0' && errno == 0 && out == value;
}

bool parseInteger(const char *text, int64_t &out) {
  return parseNumber(text, out, [](const char *from, char **end) {
    return std::strtoll(from, end, 10);
  });
}

Option flag(const char *name, const char *help, bool &out) {
  return {name, "", help, [&out](const char *) { return out = true; }};
}

Option text(const char *name, const char *value, const char *help,
            std::string &out) {
  return {name, value, help,
          [&out](const char *given) {
            out = given;
            return !out.empty();
          },
          "path"};
}

Option list(const char *name, const char *value, const char *help,
            std::vector<std::string> &out) {
  return {name, value, help, [&out](const char *given) {
            out.emplace_back(given);
            return true;
          }};
}

Option integer(const char *name, const char *help, int64_t &out) {
  return {name, "N", help,
          [&out](const char *given) { return parseInteger(given, out); },
          "whole number"};
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
  std::vector<Option> inputOptions();
  std::vector<Option> outputOptions();
  std::vector<Option> runOptions();
  int takePositional(const char *argument, const Option *previous);
  const Option *find(const std::string &argument) const;

  std::vector<Option> options;
};

CommandLine::CommandLine() {
  run.program = "fp8-train";
  run.isPackage = true;
  auto add = [this](std::vector<Option> more) {
    std::move(more.begin(), more.end(), std::back_inserter(options));
  };
  add(inputOptions());
  add(outputOptions());
  add(runOptions());
  std::sort(options.begin(), options.end(),
            [](const Option &a, const Option &b) {
              return std::strcmp(a.name, b.name) < 0;
            });
}

std::vector<Option> CommandLine::inputOptions() {
  return {
      list("batch", "PATH=FILE[:TENSOR]",
           "Feed a batch argument from an array (.safetensors, .npy) whose "
           "leading dimension is the step, or the example",
           run.batches),
      list("data", "FILE",
           "Training text (bytes), or token files: .u16, .npy, .safetensors",
           run.dataFiles),
      list("eval-batch", "PATH=FILE[:TENSOR]",
           "Feed an argument of the evaluation from an array", run.evalBatches),
      list("eval-data", "FILE",
           "Held-out text instead of the end of each data file", run.evalData),
      {"holdout", "N", "Fraction at the end of each data file that is held out",
       [this](const char *given) {
         run.hasHoldout = true;
         return parseNumber(given, run.holdout, std::strtod);
       },
       "number"},
      text("init", "W.safetensors", "Initial values, by tree path",
           run.initFile),
      {"seed", "N", "Seed of the initializer and of the data order",
       [this](const char *given) {
         return given[0] != '-' &&
                parseNumber(given, run.seed, [](const char *from, char **end) {
                  return std::strtoull(from, end, 10);
                });
       },
       "whole number, 0 or more,"},
      flag("shuffle",
           "Go through the rows of --batch in an order drawn from the seed "
           "for every "
           "epoch",
           run.shuffle),
  };
}

std::vector<Option> CommandLine::outputOptions() {
  return {
      integer("checkpoint-every",
              "Write a checkpoint every N steps (0: at the end)",
              run.checkpointEvery),
      text("export-weights", "DIR",
           "Write the trained parameters for other programs (a package "
           "emitted with --export-weights)",
           run.exportDir),
      integer("log-every",
              "Print a progress line every N steps if the output is not a "
              "terminal",
              run.logEvery),
      flag("no-checkpoints",
           "Write no checkpoint, not even at the end (the state is lost)",
           run.noCheckpoints),
      text("out", "DIR",
           "Directory of log, picture, reports and checkpoints (out)",
           run.outDir),
      flag("overwrite", "Replace an earlier run in --out", run.overwrite),
      flag("print-recipe", "Print the recipe of the package and stop",
           printRecipe),
      flag("profile",
           "Time every launch: a table, profile.json, and timeline.json for "
           "Perfetto",
           run.profile),
      flag("quiet", "Print no progress", run.quiet),
      flag("report", "Write the run as one page: report.html (runs python3)",
           run.report),
      flag("sharded-checkpoints",
           "With --data-parallel: each rank writes a share of the state to a "
           "file of its own, in parallel",
           run.shardedCheckpoints),
      flag("trace",
           "Write statistics of every quantized tensor to trace.jsonl (a "
           "package emitted with --trace)",
           run.trace),
      integer("trace-every", "Trace every N steps (0: every step)",
              run.traceEvery),
      flag("verdicts", "Print the verdict of every dot", run.showVerdicts),
  };
}

std::vector<Option> CommandLine::runOptions() {
  return {
      list("alarm", "METRIC[@TENSORS] > VALUE : ACTION",
           "React to a metric: warn, stop, or skip the step", run.alarms),
      flag("data-parallel",
           "Train on all ranks that mpirun has started, each with its own "
           "rows (a package emitted with --data-parallel)",
           run.dataParallel),
      integer("eval-every", "Evaluate every N steps (0: at the end)",
              run.evalEvery),
      flag("help", "Print this and stop", help),
      {"rank-timeout", "SECONDS",
       "With --data-parallel: a rank that does not answer for this long has "
       "failed (0: 300)",
       [this](const char *given) {
         return parseNumber(given, run.rankTimeout, std::strtod);
       },
       "number"},
      flag("resume", "Continue from the newest checkpoint in --out",
           run.resume),
      integer("steps",
              "Train until this step (the steps before a resume count)",
              run.steps),
      {"threads", "N", "Number of threads (0: one per core)",
       [this](const char *given) {
         int64_t threads;
         if (!parseInteger(given, threads))
           return false;
         run.threads = static_cast<int32_t>(threads);
         return run.threads == threads;
       },
       "whole number"},
      flag("version", "Print the version and stop", version),
  };
}

void CommandLine::printHelp() const {
  std::printf("Trains with a package that fp8-run --emit-package wrote.\n\n"
              "USAGE: fp8-train DIR --data TEXT... --steps N --out DIR\n\n"
              "OPTIONS:\n");
  for (const Option &option : options) {
    std::string left = std::string("  --") + option.name;
    if (*option.value)
      left += std::string("=<") + option.value + ">";
    std::printf("%-50s - %s\n", left.c_str(), option.help);
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
    table.push_back(
        {each.name, *each.value ? required_argument : no_argument, nullptr, 0});
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
    if (!previous->set(optarg))
      return usageError(std::string("expected --") + previous->name +
                        " to be a " + previous->type + " but got '" + optarg +
                        "'");
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
