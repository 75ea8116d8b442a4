//===- Reports.cpp - Texts about a compiled step --------------------------===//

#include "Reports.h"

using namespace mlir;
using namespace mlir::fp8;

/// Adds the text that `print` writes, if any.
static void addText(Executable &executable, StringRef name,
                    function_ref<void(raw_ostream &)> print) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  if (!text.empty())
    executable.texts[name.str()] = std::move(text);
}

void fp8::addSignature(Executable &executable, func::FuncOp step,
                       const Signature &signature) {
  addText(executable, "signature.json",
          [&](raw_ostream &os) { printSignatureJSON(signature, os); });
  addText(executable, "state.txt", [&](raw_ostream &os) {
    for (const std::string &path : findUnchangedState(step))
      os << path << "\n";
  });
}

void fp8::addReports(Executable &executable, const Reports &reports,
                     const CompileOptions &options) {
  addText(executable, "verdicts.json",
          [&](raw_ostream &os) { reports.verdicts.printJSON(os); });
  addText(executable, "verdicts.txt",
          [&](raw_ostream &os) { reports.verdicts.printTable(os); });
  addText(executable, "summary.txt", [&](raw_ostream &os) {
    os << reports.verdicts.getSummary() << "\n";
  });
  addText(executable, "memory.json",
          [&](raw_ostream &os) { reports.memory.printJSON(os); });
  addText(executable, "memory.txt",
          [&](raw_ostream &os) { reports.memory.print(os); });
  // The text exists if several ranks may run the step. They compare its first
  // line: a rank with other options would wait for messages that nobody sends.
  addText(executable, "ranks.txt", [&](raw_ostream &os) {
    if (options.dataParallel)
      os << "--zero " << options.zero
         << (options.globalAmax ? " --global-amax\n" : "\n")
         << reports.verdicts.getCollectiveSummary() << "\n";
  });
  addText(executable, "cost.json",
          [&](raw_ostream &os) { reports.cost.printJSON(os); });
}
