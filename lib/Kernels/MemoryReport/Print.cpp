//===- Print.cpp - A memory report as tables ------------------------------===//

#include "Categories.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

static std::string bytesText(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format(unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

static std::string fixedText(double value, const char *format = "%.2f") {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format(format, value);
  return text;
}

/// Prints a row of a table: a label and numbers.
static void printRow(llvm::raw_ostream &os, StringRef what,
                     ArrayRef<std::string> cells) {
  os << "  " << llvm::left_justify(what, 22);
  for (const std::string &cell : cells)
    os << llvm::right_justify(cell, 16);
  os << "\n";
}

namespace {

/// Prints the parts of a report one after another.
class Printer {
public:
  Printer(const MemoryReport &report, llvm::raw_ostream &os)
      : report(report), os(os) {}

  void printState();
  void printSaved();
  void printArena();
  void printTotal();
  void printBudget(double budget);

private:
  std::string perParameter(int64_t bytes);
  void printSize(StringRef what, const KnownSize &size);
  void printSavedRow(StringRef what, std::optional<double> perLayer,
                     int64_t total);
  void printLargest(StringRef what, const KnownSize &size, double budget,
                    bool ofLayers);
  double parametersWith(double layerFactor);

  const MemoryReport &report;
  llvm::raw_ostream &os;
};

} // namespace

std::string Printer::perParameter(int64_t bytes) {
  int64_t parameters = report.numParameters();
  return parameters ? fixedText(static_cast<double>(bytes) / parameters) : "-";
}

void Printer::printState() {
  os << "memory plan of '" << report.function << "'\n";
  printRow(os, "", {"bytes/parameter", "bytes"});
  for (StateCategory category : kStateCategories)
    if (int64_t bytes = report.stateBytes(category))
      printRow(os, stringify(category),
               {perParameter(bytes), bytesText(bytes)});
  int64_t all = report.stateBytes();
  printRow(os, "state, in all", {perParameter(all), bytesText(all)});
  for (MemoryCategory category :
       {MemoryCategory::FP8Weight, MemoryCategory::OtherWeight,
        MemoryCategory::Gradient})
    if (int64_t bytes = report.mostBytes(category))
      printRow(os, (stringify(category) + " *").str(),
               {perParameter(bytes), bytesText(bytes)});
  os << "  " << report.numParameters()
     << " parameters; * in the arena, most at once\n";
}

void Printer::printSize(StringRef what, const KnownSize &size) {
  os << what << " ";
  if (size.value)
    os << *size.value << " (" << size.why << ")";
  else
    os << "unknown: " << size.why;
}

void Printer::printSavedRow(StringRef what, std::optional<double> perLayer,
                            int64_t total) {
  std::optional<double> unit = report.unit();
  bool known = perLayer && unit;
  printRow(
      os, what,
      {known ? fixedText(*perLayer / *report.tokens.value, "%.1f") : "unknown",
       known ? fixedText(*perLayer / *unit) : "unknown",
       perLayer ? bytesText(*perLayer * *report.layers.value) : "unknown",
       bytesText(total)});
}

void Printer::printSaved() {
  os << "saved for the backward pass\n";
  printSize("  tokens at once", report.tokens);
  printSize(", width", report.width);
  printSize(",\n  layers", report.layers);
  os << "\n";
  if (!report.turn)
    return;
  auto atTurn = [&](MemoryCategory category) {
    return report.bytesAt(*report.turn, category);
  };
  printRow(os, "", {"B/token/layer", "U/layer", "of layers", "in all"});
  printSavedRow("saved activations", report.savedPerLayer,
                atTurn(MemoryCategory::SavedActivation));
  if (int64_t copies = report.wgradCopyBytes())
    printSavedRow("of these, for wgrad alone", report.wgradCopiesPerLayer,
                  copies);
  printSavedRow("attention matrix", report.attentionPerLayer,
                atTurn(MemoryCategory::Attention));
  if (std::optional<double> unit = report.unit())
    os << "  U = tokens x width x 2 bytes = " << bytesText(*unit) << "\n";
}

void Printer::printArena() {
  os << "arena " << bytesText(report.arenaBytes) << ", where most is alive:\n";
  for (MemoryCategory category : kMemoryCategories)
    if (int64_t bytes = report.bytesAt(report.peak, category))
      printRow(os, stringify(category), {"", bytesText(bytes)});
  printRow(os, "between buffers",
           {"", bytesText(report.arenaBytes - report.peakBytes)});
}

void Printer::printTotal() {
  if (report.scratchBytes)
    os << "scratch of each thread " << bytesText(*report.scratchBytes) << "\n";
  os << "in all " << bytesText(report.totalBytes()) << ": state "
     << bytesText(report.stateBytes()) << ", arena "
     << bytesText(report.arenaBytes) << ", inputs and results "
     << bytesText(report.inputBytes + report.resultBytes) << ", constants "
     << bytesText(report.constantBytes) << "\n";
}

/// Returns the number of parameters if there are `layerFactor` times as many
/// layers.
double Printer::parametersWith(double layerFactor) {
  double grown = 0;
  for (const PlannedState &entry : report.state)
    if (entry.category == StateCategory::Master)
      grown += entry.elements * (1 + entry.layerShare * (layerFactor - 1));
  return grown;
}

void Printer::printLargest(StringRef what, const KnownSize &size, double budget,
                           bool ofLayers) {
  os << "  " << what << ": ";
  if (!size.value) {
    os << "unknown: " << size.why << "\n";
    return;
  }
  double factor = report.largestFactor(budget, ofLayers);
  int64_t count = static_cast<int64_t>(*size.value * factor);
  os << count << " " << (ofLayers ? "layers" : "tokens at once") << " ("
     << fixedText(factor) << " x this step's)";
  if (ofLayers) {
    double parameters =
        parametersWith(static_cast<double>(count) / *size.value);
    os << ", " << fixedText(parameters / 1e6) << " million parameters";
  }
  os << "\n";
}

void Printer::printBudget(double budget) {
  os << "budget " << bytesText(budget) << ": this step "
     << (report.totalBytes() <= budget ? "fits" : "does not fit")
     << " (exact: the plan"
     << ", without code and the rest of the process)\n";
  os << "  by the linear model (at every point of the schedule a buffer grows "
        "with tokens,\n  layers or neither; as much is lost between buffers as "
        "here; the length of the\n  sequence stays, so that more tokens are "
        "more rows):\n";
  printLargest("largest batch", report.tokens, budget, /*ofLayers=*/false);
  printLargest("largest model", report.layers, budget, /*ofLayers=*/true);
}

void MemoryReport::print(llvm::raw_ostream &os, double budget) const {
  Printer printer(*this, os);
  printer.printState();
  printer.printSaved();
  printer.printArena();
  printer.printTotal();
  if (budget > 0)
    printer.printBudget(budget);
}

void MemoryReport::printBuffers(llvm::raw_ostream &os) const {
  SmallVector<const PlannedBuffer *> order;
  for (const PlannedBuffer &buffer : buffers)
    order.push_back(&buffer);
  llvm::sort(order, [](const PlannedBuffer *a, const PlannedBuffer *b) {
    return std::tuple(-a->bytes, a->begin, a->offset) <
           std::tuple(-b->bytes, b->begin, b->offset);
  });
  for (const PlannedBuffer *buffer : order)
    os << llvm::right_justify(bytesText(buffer->bytes), 12) << "  "
       << (turn && buffer->begin <= *turn && *turn <= buffer->end ? "turn "
                                                                  : "     ")
       << (buffer->begin <= peak && peak <= buffer->end ? "peak " : "     ")
       << llvm::left_justify(stringify(buffer->category), 20) << "  "
       << llvm::left_justify(buffer->type, 20) << "  [" << buffer->begin << ", "
       << buffer->end << "]  " << buffer->location << "\n";
}
