//===- TrainConsole.cpp - The messages of a run ---------------------------===//

#include "../Metrics/Profile.h"
#include "Trainer.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// Before and during the loop
//===----------------------------------------------------------------------===//

/// Prints the process of each rank: a launcher may report a failure by process
/// id.
void Trainer::printRanks() {
  if (numRanks() == 1)
    return;
  constexpr size_t kShown = 8;
  std::string processes;
  const std::vector<int64_t> &all = options.group->processes();
  for (size_t i = 0; i < std::min(all.size(), kShown); ++i)
    processes += str(" ", all[i]);
  console.printLine(str("ranks     ", numRanks(), ", by ",
                        options.group->name(), "; processes", processes,
                        all.size() > kShown ? " ..." : ""));
}

/// Returns what each rank has of a batch argument that the ranks share.
static std::string shareText(const TensorInfo &argument) {
  size_t dim = argument.dividedDim();
  int64_t blocks = argument.partBlocks;
  std::string text = str(
      argument.type.dims[dim] / blocks, " of ", argument.whole[dim] / blocks,
      dim == 0 ? str(" rows") : str(" places along dimension ", dim));
  if (blocks > 1)
    text += str(" of each of ", blocks, " parts");
  return text;
}

/// Prints how the ranks share a batch: the compiler has found which arguments
/// count rows, and into which parts the step cuts them.
void Trainer::printShares() {
  std::map<std::string, std::string> names;
  for (const TensorInfo &argument : arguments())
    if (argument.isPart() && argument.role == FP8_ROLE_BATCH)
      names[shareText(argument)] += " " + argument.name;
  for (const auto &[share, sharers] : names)
    console.printLine(str("shared    each rank has ", share, ":", sharers));
}

void Trainer::printData() {
  if (trainingData)
    console.printLine(
        str("data      ", groupedText(trainingData->trainingTokens()), " ",
            trainingData->unit(), " to train on, ",
            groupedText((separateEvalData ? *separateEvalData : *trainingData)
                            .heldOutTokens()),
            " held out, ", trainingData->numFiles(),
            trainingData->numFiles() == 1 ? " file; " : " files; ", text.rows,
            " rows of ", text.window, " a step"));
  if (!arrays.hasRows())
    return;
  std::string where;
  if (position.rows.epoch > 0 || position.rows.index > 0)
    where = str("; at row ", groupedText(position.rows.index), " of epoch ",
                position.rows.epoch);
  console.printLine(str(
      "arrays    ", groupedText(arrays.rows()), " rows, ",
      groupedText(arrays.rowsPerStep()), " a step, ",
      position.shuffle ? "shuffled in every epoch" : "in their order", where));
}

bool Trainer::isProgressDue(const LogRow &row, bool isLast) const {
  if (isLast || row.hasHeldOut)
    return true;
  if (console.isTerminal())
    return secondsSince(lastProgress) > 0.1;
  int64_t every = options.log_every > 0 ? options.log_every : 10;
  return row.step % every == 0 || row.step == summary.first_step + 1;
}

void Trainer::printProgress(const LogRow &row, bool isLast) {
  if (!isProgressDue(row, isLast))
    return;
  lastProgress = Clock::now();
  int64_t done = row.step - summary.first_step;
  std::string line =
      str("step ", row.step, "/", options.steps, "  loss ", lossText(row.loss));
  line += metricText(metricLabels, row.metrics);
  // A live line keeps the last value; lines that stay repeat none.
  if (std::isfinite(lastEvaluated.heldOut) &&
      (row.hasHeldOut || console.isTerminal()))
    line += "  held-out " + lossText(lastEvaluated.heldOut);
  if (summary.tokens_per_step > 0)
    line +=
        str("  ", groupedText(std::llround(row.tokensPerSecond)), " tokens/s");
  if (!isLast)
    line += str("  ",
                durationText(secondsSince(beginTime) / done *
                             (options.steps - row.step)),
                " left");
  console.showProgress(line);
}

//===----------------------------------------------------------------------===//
// After the loop
//===----------------------------------------------------------------------===//

/// Returns the means of the last 10 and the last 20 losses, if there are so
/// many.
std::string Trainer::meansText() const {
  size_t count = report->rows().size();
  if (count < 10)
    return "";
  std::string text =
      str(" (mean of the last 10 ", lossText(summary.mean_loss_10));
  if (count >= 20)
    text += str(", of the last 20 ", lossText(summary.mean_loss_20));
  return text + ")";
}

void Trainer::printSummary() {
  console.endLiveLine();
  const std::vector<LogRow> &rows = report->rows();
  if (!rows.empty())
    console.printLine(str("loss      ", lossText(summary.first_loss), " -> ",
                          lossText(summary.last_loss), " in ",
                          summary.last_step, " steps", meansText()));
  std::vector<double> losses;
  for (const LogRow &row : rows)
    losses.push_back(row.loss);
  if (std::string line = sparkline(losses, 60); !line.empty())
    console.printLine("          " + line);
  if (!rows.empty() && !metricLabels.empty())
    console.printLine("metrics " +
                      metricText(metricLabels, rows.back().metrics));
  if (skippedSteps > 0)
    console.printLine(str("skipped   ", skippedSteps, " of ",
                          summary.last_step - summary.first_step, " steps"));
  printAlarms();
  std::vector<std::string> traceLines = traceSummary.lines();
  for (size_t i = 0; i < traceLines.size(); ++i)
    console.printLine((i ? "          " : "trace     ") + traceLines[i]);
  printHeldOut();
  printSpeed();
  printProfile();
  printMemory();
  printFiles();
}

/// Prints the first alarms of the run: later ones often follow from them.
void Trainer::printAlarms() {
  constexpr size_t kShown = 3;
  size_t count = 0, steps = 0;
  for (const LogRow &row : report->rows()) {
    steps += !row.alarms.empty();
    for (const std::string &alarm : row.alarms)
      if (count++ < kShown)
        console.printLine((count == 1 ? "alarms    " : "          ") + alarm);
  }
  if (count > kShown)
    console.printLine(str("          and ", count - kShown, " more, in ", steps,
                          " steps in all: log.jsonl has them"));
}

void Trainer::printHeldOut() {
  if (evaluation && lastEvaluated.hasHeldOut)
    console.printLine(str("held out  ", lossText(lastEvaluated.heldOut),
                          lossUnit.empty() ? "" : " " + lossUnit, ", on ",
                          evaluation->dataText(),
                          metricText(evalLabels, lastEvaluated.evalMetrics)));
}

void Trainer::printSpeed() {
  // A step that makes its data itself has no tokens.
  std::string tokens;
  if (summary.tokens_per_step > 0)
    tokens =
        groupedText(std::llround(summary.tokens_per_second)) + " tokens/s, ";
  if (!stepSeconds.empty())
    console.printLine(
        str("speed     ", tokens,
            numberText(std::round(summary.step_seconds * 1e5) / 1e2),
            " ms a step (medians), ", step->threads(),
            step->threads() == 1 ? " thread" : " threads"));
}

void Trainer::printProfile() {
  if (!options.profile || stepSeconds.empty())
    return;
  if (limits.threads > 0) {
    auto giga = [](double rate) {
      return groupedText(std::llround(rate / 1e9));
    };
    std::string bf16 = limits.bf16_flops > 0
                           ? giga(limits.bf16_flops) + " GFLOP/s of bf16 dots, "
                           : "";
    console.printLine(str("profile   limits of ", limits.threads,
                          limits.threads == 1 ? " thread: " : " threads: ",
                          giga(limits.f32_flops), " GFLOP/s of f32, ", bf16,
                          giga(limits.bytes), " GB/s"));
  }
  std::vector<std::string> lines =
      profileTable(step->profile, options.cost, limits,
                   static_cast<int64_t>(stepSeconds.size()));
  for (size_t i = 0; i < lines.size(); ++i)
    console.printLine((i || limits.threads > 0 ? "          " : "profile   ") +
                      lines[i]);
  if (numRanks() == 1)
    return;
  for (const std::string &line : collectiveTable(
           step->collectives(), static_cast<int64_t>(stepSeconds.size())))
    console.printLine("          " + line);
}

/// Prints the planned memory beside what the process used.
void Trainer::printMemory() {
  const fp8_memory &memory = summary.memory;
  double agreement = memory.arena_planned
                         ? 100.0 * memory.arena_touched / memory.arena_planned
                         : 100;
  console.printLine(
      str("memory    arena ", bytesText(memory.arena_planned), " planned, ",
          bytesText(memory.arena_touched), " touched (",
          numberText(std::round(agreement * 10) / 10), " %); arguments ",
          bytesText(memory.arguments), ", results ", bytesText(memory.results),
          ", constants ", bytesText(memory.constants), ", scratch ",
          bytesText(memory.scratch)));
  console.printLine(str("          the process at most ",
                        bytesText(memory.peak_rss), ", of these ",
                        bytesText(restOfProcess()),
                        " beside the step: code, compiler, data, heap"));
}

void Trainer::printFiles() {
  console.printLine(str(
      "files     ", directory, "/log.csv, log.jsonl, loss.svg, memory.json",
      options.verdicts ? ", verdicts.json" : "",
      options.recipe ? ", recipe.yaml" : "",
      options.preset ? ", preset.yaml" : "", traceFile ? ", trace.jsonl" : "",
      options.profile ? ", profile.json" : "",
      options.profile && options.cost ? ", cost.json" : "",
      step->timeline ? ", timeline.json" : "",
      options.profile && numRanks() > 1 ? ", collectives.json" : ""));
  if (!checkpoint.empty())
    console.printLine(str("          ", checkpoint));
}

void Trainer::printExport(const std::optional<WeightExport::Check> &check) {
  console.printLine(str("export    ", exporter->file(), ", ",
                        bytesText(exporter->bytes()), "; export.json"));
  if (!check)
    return;
  std::string snr;
  if (check->logitsSNR && std::isfinite(*check->logitsSNR))
    snr = str(", logits at ",
              numberText(std::round(*check->logitsSNR * 10) / 10), " dB");
  console.printLine(str("          held out ", lossText(check->model),
                        " as trained, ", lossText(check->exported),
                        " as exported", snr));
}

} // namespace fp8::rt
