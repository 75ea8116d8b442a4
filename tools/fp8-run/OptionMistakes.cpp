//===- OptionMistakes.cpp - Mistakes in the options of fp8-run ------------===//

#include "Options.h"
#include "fp8/Compiler/Program.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the first of the options that the command line gives, as a mistake
/// with another option; "" if it gives none.
static std::string findGiven(ArrayRef<StringRef> names, StringRef other) {
  for (StringRef name : names)
    if (cl::getRegisteredOptions().lookup(name)->getNumOccurrences())
      return ("expected no --" + name + " with --" + other).str();
  return "";
}

/// Returns a mistake in options that --entry or --emit-package does nothing
/// with; "" if there is none.
static std::string findOptionOfRuns(const Options &flags) {
  if (!flags.packageDir.empty())
    if (std::string mistake = findGiven({"inputs", "outputs"}, "emit-package");
        !mistake.empty())
      return mistake;
  if (flags.entry.empty())
    return "";
  StringRef ofRuns[] = {"data",        "eval-data",      "shuffle",
                        "steps",       "overwrite",      "eval-every",
                        "holdout",     "log-every",      "checkpoint-every",
                        "trace-every", "no-checkpoints", "sharded-checkpoints",
                        "alarm",       "report",         "profile",
                        "verdicts",    "rank-timeout"};
  // Of a step that is emitted or explained, --entry is the name.
  StringRef ofSteps[] = {"init",           "eval",         "batch",
                         "eval-batch",     "resume",       "out",
                         "seed",           "trace",        "data-parallel",
                         "zero",           "global-amax",  "global-batch",
                         "export-weights", "export-format"};
  std::string mistake = findGiven(ofRuns, "entry");
  bool isOnce = flags.packageDir.empty() && !flags.explain;
  return mistake.empty() && isOnce ? findGiven(ofSteps, "entry") : mistake;
}

/// Returns the first option that is given without its text, as a mistake; "" if
/// there is none.
static std::string findEmptyOption(const Options &flags) {
  for (const cl::opt<std::string> *option :
       {&flags.initFile, &flags.evalFile, &flags.lossPath, &flags.lossReduction,
        &flags.entry, &flags.inputs, &flags.outputs, &flags.dumpIR,
        &flags.packageDir})
    if (option->getNumOccurrences() && option->empty())
      return ("expected --" + option->ArgStr + " " + option->ValueStr +
              " but got ''")
          .str();
  return "";
}

/// Returns a mistake in options that do something only with others; "" if there
/// is none.
static std::string findIdleOption(const Options &flags) {
  auto needs = [](StringRef option, StringRef other) {
    return ("expected --" + other + " with --" + option).str();
  };
  bool isGPU = StringRef(flags.target).starts_with("nvptx:");
  if (flags.gpuImage.getNumOccurrences() && !isGPU)
    return needs("gpu-image", "target nvptx:GPU");
  if (flags.gpuExpand.getNumOccurrences() && !isGPU)
    return needs("gpu-expand", "target nvptx:GPU");
  if (!flags.lossReduction.empty() && !flags.run.dataParallel)
    return needs("loss-reduction", "data-parallel");
  if (flags.entry.empty() && !flags.inputs.empty())
    return needs("inputs", "entry");
  if (flags.entry.empty() && !flags.outputs.empty())
    return needs("outputs", "entry");
  return findOptionOfRuns(flags);
}

std::string Options::findMistake() const {
  std::string mistake = CompileOptions().setTarget(target);
  if (mistake.empty())
    mistake = findEmptyOption(*this);
  return mistake.empty() ? findIdleOption(*this) : mistake;
}

std::string Options::findExportMistake() const {
  if (!symbolizeExportFormat(exportFormat))
    return "expected --export-format to be f32, bf16 or f8E4M3FN but got '" +
           exportFormat + "'";
  if (exportFormat.getNumOccurrences() && run.exportDir.empty())
    return "expected --export-weights DIR with --export-format";
  return "";
}
