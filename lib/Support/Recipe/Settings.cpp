//===- Settings.cpp - Recipes as attributes -------------------------------===//
//
// Settings are the printed recipe as a tree of dictionaries, arrays and
// strings: only the printer and the parser of recipe files know the keys.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// YAML to attributes
//===----------------------------------------------------------------------===//

static std::string getText(llvm::yaml::Node *node) {
  SmallString<32> storage;
  return cast<llvm::yaml::ScalarNode>(node)->getValue(storage).str();
}

/// Returns the attribute for a node that the printer has written.
static Attribute getAttribute(Builder &b, llvm::yaml::Node *node) {
  if (auto *mapping = dyn_cast<llvm::yaml::MappingNode>(node)) {
    SmallVector<NamedAttribute> entries;
    for (llvm::yaml::KeyValueNode &entry : *mapping) {
      std::string key = getText(entry.getKey());
      entries.push_back(b.getNamedAttr(key, getAttribute(b, entry.getValue())));
    }
    return b.getDictionaryAttr(entries);
  }
  if (auto *sequence = dyn_cast<llvm::yaml::SequenceNode>(node)) {
    SmallVector<Attribute> entries;
    for (llvm::yaml::Node &entry : *sequence)
      entries.push_back(getAttribute(b, &entry));
    return b.getArrayAttr(entries);
  }
  return b.getStringAttr(getText(node));
}

DictionaryAttr fp8::getSettings(const Recipe &recipe, MLIRContext *context) {
  std::string text;
  llvm::raw_string_ostream os(text);
  recipe.print(os);
  llvm::SourceMgr sourceMgr;
  llvm::yaml::Stream stream(text, sourceMgr);
  Builder b(context);
  return cast<DictionaryAttr>(getAttribute(b, stream.begin()->getRoot()));
}

//===----------------------------------------------------------------------===//
// Attributes to YAML
//===----------------------------------------------------------------------===//

static void printText(llvm::raw_ostream &os, StringRef text) {
  os << '"' << llvm::yaml::escape(text) << '"';
}

/// Prints a tree of settings; returns false if it contains other attributes.
static bool printYAML(llvm::raw_ostream &os, Attribute attribute) {
  bool known = true;
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    os << "{";
    llvm::interleaveComma(dictionary, os, [&](NamedAttribute entry) {
      printText(os, entry.getName());
      os << ": ";
      known &= printYAML(os, entry.getValue());
    });
    os << "}";
    return known;
  }
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    os << "[";
    llvm::interleaveComma(
        array, os, [&](Attribute entry) { known &= printYAML(os, entry); });
    os << "]";
    return known;
  }
  auto text = dyn_cast<StringAttr>(attribute);
  if (text)
    printText(os, text);
  return text != nullptr;
}

FailureOr<Recipe>
fp8::parseSettings(DictionaryAttr settings,
                   ArrayRef<FileLineColLoc> ruleLocations,
                   function_ref<InFlightDiagnostic()> emitError) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!printYAML(os, settings))
    return emitError() << "expected the settings of a recipe to be "
                          "dictionaries, lists and strings but got "
                       << settings;
  Recipe recipe;
  if (failed(readRecipe(text, "fp8.recipe", settings.getContext(), recipe,
                        /*overlay=*/false,
                        [&](FileLineColLoc) { return emitError(); })))
    return failure();
  if (ruleLocations.empty())
    return recipe;
  if (ruleLocations.size() != recipe.rules.size())
    return emitError() << "expected the places of " << recipe.rules.size()
                       << " rules but got " << ruleLocations.size();
  for (auto [rule, loc] : llvm::zip_equal(recipe.rules, ruleLocations))
    rule.loc = loc;
  return recipe;
}
