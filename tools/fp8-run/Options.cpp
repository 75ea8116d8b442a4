//===- Options.cpp - The options of fp8-run -------------------------------===//

#include "Options.h"
#include "Messages.h"

using namespace mlir;
using namespace mlir::fp8;

cl::OptionCategory fp8::category("fp8-run options");

namespace {

/// Options of the table that both programs have, as LLVM's command line takes
/// them: one with a value, and a flag.
class ValueOption : public cl::opt<std::string> {
public:
  explicit ValueOption(const fp8run::Option &option)
      : opt(StringRef(option.name), cl::desc(option.help),
            cl::value_desc(option.value),
            option.isList ? cl::ZeroOrMore : cl::Optional, cl::cat(category)),
        option(option) {}

private:
  bool handleOccurrence(unsigned, StringRef, StringRef text) override {
    std::string mistake = option.set(text.str());
    if (!mistake.empty())
      usageError(mistake);
    return !mistake.empty();
  }

  const fp8run::Option &option;
};

class FlagOption : public cl::opt<bool> {
public:
  explicit FlagOption(const fp8run::Option &option)
      : opt(StringRef(option.name), cl::desc(option.help), cl::cat(category),
            cl::callback([&option](const bool &isOn) {
              option.set(isOn ? "true" : "false");
            })) {}
};

} // namespace

Options::Options() {
  for (const fp8run::Option &option : table)
    if (option.isFlag())
      ofTable.push_back(std::make_unique<FlagOption>(option));
    else
      ofTable.push_back(std::make_unique<ValueOption>(option));
}

std::string Options::recipeName() const {
  if (recipe.getNumOccurrences() == 0 && !entry.empty())
    return "none";
  return recipe;
}
