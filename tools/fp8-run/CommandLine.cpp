//===- CommandLine.cpp - Reading the command line of fp8-run --------------===//

#include "CommandLine.h"
#include "Messages.h"
#include "fp8/Compiler/BuildId.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Turns `--data A B` into `--data A --data B`; does the same for --eval-data.
/// The last file of such a list is the step if it ends in .mlir and no other
/// step is given.
static std::vector<std::string> repeatListOptions(int argc, char **argv) {
  std::vector<std::string> arguments;
  std::string list;
  bool isValue = true, hasStep = false;
  size_t listed = 0, lastOfList = 0;
  for (int i = 0; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument.starts_with("-")) {
      StringRef name = argument.ltrim('-');
      list = name == "data" || name == "eval-data" ? argument.str() : "";
      listed = 0;
      if (list.empty())
        arguments.push_back(argument.str());
      auto it = cl::getRegisteredOptions().find(name);
      isValue = it != cl::getRegisteredOptions().end() &&
                it->second->getValueExpectedFlag() == cl::ValueRequired;
      continue;
    }
    hasStep |= list.empty() && !isValue;
    isValue = false;
    if (!list.empty())
      arguments.push_back(list);
    arguments.push_back(argument.str());
    if (!list.empty() && ++listed > 1 && argument.ends_with(".mlir"))
      lastOfList = arguments.size() - 1;
  }
  // Remove it with the option before it.
  if (!hasStep && lastOfList)
    arguments.erase(arguments.begin() + lastOfList - 1);
  return arguments;
}

/// Turns LLVM's message about the command line into one line in our words.
static int commandLineError(StringRef text) {
  if (text.empty()) // a wrong value, which LLVM has reported itself
    return 2;
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string message;
  for (StringRef line : lines) {
    line.consume_front("fp8-run: ");
    line = line.split("  Try: ").first.rtrim("!.");
    if (!message.empty() && !line.starts_with("Did you mean"))
      break;
    message += (message.empty() ? "" : "; ") + line.str();
  }
  if (!message.empty() && !llvm::isUpper(message[1]))
    message[0] = llvm::toLower(message[0]);
  return usageError(message + " (see --help)");
}

void fp8::removeInheritedOptions() {
  SmallVector<cl::Option *> inherited;
  for (auto &entry : cl::getRegisteredOptions())
    inherited.push_back(entry.second);
  for (cl::Option *option : inherited)
    if (option->ArgStr != "help" && option->ArgStr != "version")
      option->removeArgument();
}

int fp8::parseCommandLine(int argc, char **argv, const Options &options) {
  std::vector<std::string> arguments = repeatListOptions(argc, argv);
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string parseErrors;
  llvm::raw_string_ostream parseErrorStream(parseErrors);
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << "fp8-run, " << getCompilerVersion() << "\n";
  });
  bool isParsed = cl::ParseCommandLineOptions(
      pointers.size(), pointers.data(),
      "Compiles a JAX training step (StableHLO) and trains with it.\n\n"
      "  fp8-run STEP.mlir --init INIT.mlir --data TEXT... --recipe tensorwise "
      "--steps N --out DIR\n"
      "  fp8-run FILE.mlir --entry F --inputs IN.safetensors --outputs "
      "OUT.safetensors\n"
      "  fp8-run STEP.mlir ... --emit-package DIR\n"
      "  fp8-run STEP.mlir --explain-signature\n",
      &parseErrorStream);
  if (!isParsed)
    return commandLineError(parseErrors);
  std::string mistake = options.findMistake();
  return mistake.empty() ? 0 : usageError(mistake);
}
