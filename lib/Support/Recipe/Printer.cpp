//===- Printer.cpp - The effective recipe as text -------------------------===//

#include "fp8/Support/Recipe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/YAMLParser.h"
#include "llvm/Support/YAMLTraits.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

static std::string quote(StringRef text) {
  return '"' + llvm::yaml::escape(text) + '"';
}

static StringRef spell(bool value) { return value ? "true" : "false"; }

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// Prints the settings that only delayed scaling has.
template <typename RecipeT>
static void printHistory(llvm::raw_ostream &os, const RecipeT &recipe) {
  if (recipe.scaling == Scaling::Delayed)
    os << ", history: " << recipe.history
       << ", algorithm: " << stringifyEnum(recipe.algorithm)
       << ", initial: " << stringifyEnum(recipe.initial);
}

static void printOperand(llvm::raw_ostream &os, StringRef key,
                         const OperandRecipe &operand) {
  os << "  " << key << ": {format: " << stringifyEnum(operand.format)
     << ", tile: " << stringifyEnum(operand.tile)
     << ", scale: " << stringifyEnum(operand.scale)
     << ", margin: " << operand.margin
     << ", rounding: " << stringifyEnum(operand.rounding)
     << ", overflow: " << stringifyEnum(operand.overflow)
     << ", scaling: " << stringifyEnum(operand.scaling);
  printHistory(os, operand);
  os << "}\n";
}

static void printDot(llvm::raw_ostream &os, StringRef dot, StringRef first,
                     const OperandRecipe &firstOperand, StringRef second,
                     const OperandRecipe &secondOperand,
                     const AccumulatorRecipe &accumulator) {
  os << dot << ":\n";
  printOperand(os, first, firstOperand);
  printOperand(os, second, secondOperand);
  os << "  accumulator: {bits: " << accumulator.bits
     << ", promote: " << accumulator.promote << "}\n";
}

static void printDots(llvm::raw_ostream &os, const Recipe &recipe) {
  if (const auto &dot = recipe.forward)
    printDot(os, "forward", "activation", dot->activation, "weight",
             dot->weight, dot->accumulator);
  if (const auto &dot = recipe.dgrad)
    printDot(os, "dgrad", "gradient", dot->gradient, "weight", dot->weight,
             dot->accumulator);
  if (const auto &dot = recipe.wgrad) {
    printDot(os, "wgrad", "activation", dot->activation, "gradient",
             dot->gradient, dot->accumulator);
    os << "  copy: " << stringifyEnum(dot->copy) << "\n";
  }
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

void RecipeRule::print(llvm::raw_ostream &os) const {
  bool isFirst = true;
  auto key = [&](const Twine &name) -> llvm::raw_ostream & {
    os << (std::exchange(isFirst, false) ? "" : ", ") << name << ": ";
    return os;
  };
  if (part)
    key("part") << stringifyEnum(*part);
  if (role)
    key("role") << stringifyEnum(*role);
  if (!path.empty())
    key("path") << quote(path);
  if (!layers.empty()) {
    key("layers") << "[";
    llvm::interleaveComma(layers, os);
    os << "]";
  }
  if (first)
    key("first") << *first;
  if (last)
    key("last") << *last;
  for (auto [name, range] : {std::pair("m", m), {"n", n}, {"k", k}}) {
    if (range.min)
      key(Twine("min_") + name) << *range.min;
    if (range.max)
      key(Twine("max_") + name) << *range.max;
  }
}

std::string RecipeRule::getConditions() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

static void printRules(llvm::raw_ostream &os, ArrayRef<RecipeRule> rules) {
  if (!rules.empty())
    os << "rules:\n";
  for (const RecipeRule &rule : rules)
    os << "  - " << (rule.keep ? "keep" : "quantize") << ": {"
       << rule.getConditions() << "}\n";
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

static void printCompute(llvm::raw_ostream &os, const ComputeRecipe &compute) {
  os << "compute: {unquantized_dots: "
     << stringifyEnum(compute.unquantizedDots);
  // The text is part of the fingerprints of checkpoints, and those of runs
  // without this key must match: the default is not printed.
  if (compute.attention != AttentionFormat::Same)
    os << ", attention: " << stringifyEnum(compute.attention);
  os << ", saved: " << stringifyEnum(compute.saved)
     << ", saved_norms: " << stringifyEnum(compute.savedNorms)
     << ", saved_gated: " << stringifyEnum(compute.savedGated)
     << ", logits_bytes: " << compute.logitsBytes << "}\n";
}

static void printSmooth(llvm::raw_ostream &os, const SmoothRecipe &smooth) {
  os << "smooth_swiglu: {granularity: " << stringifyEnum(smooth.granularity);
  if (smooth.granularity != Granularity::None) {
    os << ", scale: " << stringifyEnum(smooth.scale)
       << ", margin: " << smooth.margin
       << ", scaling: " << stringifyEnum(smooth.scaling);
    printHistory(os, smooth);
  }
  os << "}\n";
}

static void printStorage(llvm::raw_ostream &os, StringRef key,
                         const StorageRecipe &storage) {
  os << key << ": {format: " << stringifyEnum(storage.format)
     << ", tile: " << stringifyEnum(storage.tile);
  if (storage.changes())
    os << ", rounding: " << stringifyEnum(storage.rounding);
  if (storage.tile != StorageTiling::None)
    os << ", scale: " << stringifyEnum(storage.scale)
       << ", margin: " << storage.margin
       << ", scaling: " << stringifyEnum(storage.scaling);
  if (storage.scaling == Scaling::Delayed)
    os << ", history: " << storage.history
       << ", algorithm: " << stringifyEnum(storage.algorithm);
  if (storage.tile == StorageTiling::Group128)
    os << ", expand: " << spell(storage.expand);
  os << "}\n";
}

static void printOptimizer(llvm::raw_ostream &os,
                           const OptimizerRecipe &optimizer) {
  os << "optimizer:\n";
  printStorage(os, "  moment1", optimizer.moment1);
  printStorage(os, "  moment2", optimizer.moment2);
  printStorage(os, "  master", optimizer.master);
  os << "  min_elements: " << optimizer.minElements << "\n  keep: [";
  llvm::interleaveComma(optimizer.keep, os,
                        [&](StringRef path) { os << quote(path); });
  os << "]\n  clip_update: " << spell(optimizer.clipUpdate) << "\n";
}

void Recipe::print(llvm::raw_ostream &os) const {
  bool isPlain = llvm::yaml::needsQuotes(name) == llvm::yaml::QuotingType::None;
  os << "name: " << (isPlain ? name : quote(name)) << "\n";
  printDots(os, *this);
  printRules(os, rules);
  printCompute(os, compute);
  printSmooth(os, smooth);
  printOptimizer(os, optimizer);
  printStorage(os, "gradients", gradients);
  // The same holds for this key.
  if (allReduce.format != Wire::None)
    os << "all_reduce: {format: " << stringifyEnum(allReduce.format)
       << ", tile: " << stringifyEnum(allReduce.tile) << "}\n";
  os << "weight_copies: " << stringifyEnum(weightCopies) << "\n"
     << "seed: " << seed << "\n";
}
