//===- OptionTable.cpp - The options of a run, by name --------------------===//

#include "fp8/Run/OptionTable.h"

#include <charconv>
#include <iterator>
#include <type_traits>
#include <utility>

using namespace fp8run;

//===----------------------------------------------------------------------===//
// Kinds of options
//===----------------------------------------------------------------------===//

Option fp8run::flag(std::string name, std::string help, bool &out) {
  return {std::move(name), "", std::move(help), [&out](const std::string &on) {
            out = on == "true";
            return "";
          }};
}

Option fp8run::text(std::string name, std::string value, std::string help,
                    std::string &out) {
  std::string expected = "expected --" + name + " " + value + " but got ''";
  return {std::move(name), std::move(value), std::move(help),
          [&out, expected](const std::string &given) {
            out = given;
            return given.empty() ? expected : "";
          }};
}

Option fp8run::list(std::string name, std::string value, std::string help,
                    std::vector<std::string> &out) {
  return {std::move(name), std::move(value), std::move(help),
          [&out](const std::string &given) {
            out.push_back(given);
            return "";
          },
          /*isList=*/true};
}

/// Parses the whole text as a number.
template <typename T> static bool parse(const std::string &text, T &out) {
  // (from_chars takes no plus sign.)
  size_t sign = text[0] == '+' && text[1] != '-';
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + sign, end, out);
  return error == std::errc() && stop == end;
}

template <typename T>
static Option number(std::string name, std::string value, std::string help,
                     T &out) {
  const char *kind = std::is_floating_point_v<T> ? "number"
                     : std::is_signed_v<T>       ? "whole number"
                                                 : "whole number, 0 or more,";
  std::string expected = "expected --" + name + " to be a " + kind;
  return {std::move(name), std::move(value), std::move(help),
          [&out, expected](const std::string &given) {
            return parse(given, out) ? ""
                                     : expected + " but got '" + given + "'";
          }};
}

Option fp8run::integer(std::string name, std::string help, int64_t &out) {
  return number(std::move(name), "N", std::move(help), out);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// A package does only what it was compiled for.
static std::string ifPackage(const RunOptions &run, const char *option) {
  return run.isPackage
             ? std::string(" (a package emitted with --") + option + ")"
             : "";
}

static Option holdoutOption(RunOptions &run) {
  Option option = number(
      "holdout", "N",
      "Fraction at the end of each data file that is held out (default: 0.1)",
      run.holdout);
  option.set = [&run, set = option.set](const std::string &given) {
    run.hasHoldout = true;
    return set(given);
  };
  return option;
}

static std::vector<Option> inputOptions(RunOptions &run) {
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
      holdoutOption(run),
      number("seed", "N",
             "Seed of the initializer and of the data order (default: 0)",
             run.seed),
      flag("shuffle",
           "Go through the rows of --batch in an order drawn from the seed for "
           "every epoch",
           run.shuffle),
  };
}

static std::vector<Option> checkpointOptions(RunOptions &run) {
  return {
      integer("checkpoint-every",
              "Write a checkpoint every N steps (0: at the end)",
              run.checkpointEvery),
      flag("no-checkpoints",
           "Write no checkpoint, not even at the end (the state is lost)",
           run.noCheckpoints),
      text("out", "DIR",
           "Directory of log, picture, reports and checkpoints (default: out)",
           run.outDir),
      flag("overwrite", "Replace an earlier run in --out", run.overwrite),
      flag("resume", "Continue from the newest checkpoint in --out",
           run.resume),
      flag("sharded-checkpoints",
           "With --data-parallel: each rank writes a share of the state to a "
           "file of its own, in parallel (as with --zero 1)",
           run.shardedCheckpoints),
  };
}

static std::vector<Option> outputOptions(RunOptions &run) {
  return {
      text("export-weights", "DIR",
           "Write the trained parameters for other programs: "
           "model.safetensors, export.json" +
               ifPackage(run, "export-weights"),
           run.exportDir),
      integer("log-every",
              "Print a progress line every N steps if the output is not a "
              "terminal",
              run.logEvery),
      flag("profile",
           "Time every launch: a table, profile.json, and timeline.json for "
           "Perfetto",
           run.profile),
      flag("quiet", "Print no progress", run.quiet),
      flag("report", "Write the run as one page: report.html (runs python3)",
           run.report),
      flag("trace",
           "Write statistics of every quantized tensor to trace.jsonl" +
               ifPackage(run, "trace"),
           run.trace),
      integer("trace-every", "Trace every N steps (0: every step)",
              run.traceEvery),
      flag("verdicts", "Print the verdict of every dot", run.showVerdicts),
  };
}

static std::vector<Option> trainingOptions(RunOptions &run) {
  return {
      list("alarm", "METRIC[@TENSORS] > VALUE : ACTION",
           "React to a metric: warn, stop, or skip the step (see "
           "docs/Runtime.md)",
           run.alarms),
      flag("data-parallel",
           "Train on all ranks that mpirun has started, each with its own rows "
           "of the batch: gradients are reduced over all of them" +
               ifPackage(run, "data-parallel"),
           run.dataParallel),
      integer("eval-every", "Evaluate every N steps (0: at the end)",
              run.evalEvery),
      number("rank-timeout", "SECONDS",
             "With --data-parallel: a rank that does not answer for this long "
             "has failed (0: 300)",
             run.rankTimeout),
      integer("steps",
              "Train until this step (the steps before a resume count)",
              run.steps),
      number("threads", "N", "Number of threads (0: one per core)",
             run.threads),
  };
}

std::vector<Option> fp8run::runOptionTable(RunOptions &run) {
  std::vector<Option> table;
  for (auto part :
       {inputOptions, checkpointOptions, outputOptions, trainingOptions}) {
    std::vector<Option> options = part(run);
    std::move(options.begin(), options.end(), std::back_inserter(table));
  }
  return table;
}
