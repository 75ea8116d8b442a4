//===- VerdictReport.cpp - Every dot, FP8 or why not ----------------------===//

#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

StringRef fp8::stringifyVerdict(DotVerdict::Kind kind) {
  switch (kind) {
  case DotVerdict::Kind::FP8:
    return "fp8";
  case DotVerdict::Kind::HighPrecision:
    return "high_precision";
  case DotVerdict::Kind::Fallback:
    return "fallback";
  }
  return "high_precision";
}

int64_t VerdictReport::count(DotVerdict::Kind kind) const {
  return llvm::count_if(
      dots, [&](const DotVerdict &dot) { return dot.kind == kind; });
}

std::string VerdictReport::getSummary() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << count(DotVerdict::Kind::FP8) << " of " << dots.size() << " dots in FP8";
  bool first = true;
  auto item = [&](int64_t number, StringRef what) {
    if (!number)
      return;
    os << (first ? "; " : ", ") << number << " " << what;
    first = false;
  };
  item(count(DotVerdict::Kind::Fallback), "fallback");
  static constexpr std::pair<StringLiteral, StringLiteral> categories[] = {
      {"linear", "linear layers kept in high precision"},
      {"attention", "attention"},
      {"head", "head"},
      {"embedding", "embedding"},
      {"other", "not in linear layers"}};
  for (const auto &category : categories)
    item(llvm::count_if(dots,
                        [&](const DotVerdict &dot) {
                          return dot.kind == DotVerdict::Kind::HighPrecision &&
                                 dot.category == category.first;
                        }),
         category.second);
  return text;
}

void VerdictReport::printTable(llvm::raw_ostream &os) const {
  SmallVector<SmallVector<std::string>> rows;
  rows.push_back({"verdict", "role", "layer", "batch", "M", "N", "K", "lhs",
                  "rhs", "reason", "location"});
  for (const DotVerdict &dot : dots) {
    std::string reason = dot.reason;
    for (const std::string &note : dot.notes)
      reason += "; " + note;
    rows.push_back({stringifyVerdict(dot.kind).str(), dot.role,
                    dot.layer.empty() ? "-" : dot.layer,
                    std::to_string(dot.batch), std::to_string(dot.m),
                    std::to_string(dot.n), std::to_string(dot.k), dot.lhsFormat,
                    dot.rhsFormat, reason, dot.location});
  }
  SmallVector<size_t> widths(rows.front().size());
  for (const auto &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, cell.size());
  for (const auto &row : rows) {
    for (auto [i, cell] : llvm::enumerate(row)) {
      bool number = i >= 3 && i <= 6, last = i + 1 == row.size();
      if (number)
        os << llvm::right_justify(cell, widths[i]);
      else if (last)
        os << cell;
      else
        os << llvm::left_justify(cell, widths[i]);
      os << (last ? "\n" : "  ");
    }
  }
  os << "recipe " << recipe << ": " << getSummary() << "\n";
}

void VerdictReport::printJSON(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("recipe", recipe);
    json.attribute("summary", getSummary());
    json.attribute("total", static_cast<int64_t>(dots.size()));
    for (auto kind : {DotVerdict::Kind::FP8, DotVerdict::Kind::HighPrecision,
                      DotVerdict::Kind::Fallback})
      json.attribute(stringifyVerdict(kind), count(kind));
    json.attributeArray("dots", [&] {
      for (const DotVerdict &dot : dots)
        json.object([&] {
          json.attribute("function", dot.function);
          json.attribute("layer", dot.layer);
          json.attribute("role", dot.role);
          json.attribute("category", dot.category);
          json.attribute("batch", dot.batch);
          json.attribute("m", dot.m);
          json.attribute("n", dot.n);
          json.attribute("k", dot.k);
          json.attribute("lhs", dot.lhsFormat);
          json.attribute("rhs", dot.rhsFormat);
          if (dot.kind == DotVerdict::Kind::FP8) {
            json.attribute("lhs_tile", dot.lhsTile);
            json.attribute("rhs_tile", dot.rhsTile);
          }
          // Trip counts, the inner loop first; null where unknown.
          json.attributeArray("loops", [&] {
            for (int64_t trips : dot.loops)
              trips ? json.value(trips) : json.value(nullptr);
          });
          json.attribute("in_branch", dot.inBranch);
          json.attribute("recomputed", dot.recomputed);
          if (dot.rule)
            json.attribute("rule", dot.rule);
          json.attribute("verdict", stringifyVerdict(dot.kind));
          json.attribute("reason", dot.reason);
          json.attribute("location", dot.location);
          json.attributeArray("notes", [&] {
            for (const std::string &note : dot.notes)
              json.value(note);
          });
        });
    });
  });
  os << "\n";
}

LogicalResult VerdictReport::write(StringRef file, std::string &error) const {
  if (file == "-") {
    printTable(llvm::errs());
    return success();
  }
  std::error_code code;
  llvm::raw_fd_ostream os(file, code);
  if (!code) {
    if (file.ends_with(".json"))
      printJSON(os);
    else
      printTable(os);
    os.close();
    code = os.error();
    os.clear_error();
  }
  if (!code)
    return success();
  error =
      "cannot write the verdict report '" + file.str() + "': " + code.message();
  return failure();
}

std::string fp8::describeLocation(Location loc) {
  // The scope is the outermost name, the place the innermost file.
  StringRef scope;
  std::string place;
  loc->walk([&](Location nested) {
    if (auto name = dyn_cast<NameLoc>(nested)) {
      if (scope.empty())
        scope = name.getName().getValue();
    } else if (auto file = dyn_cast<FileLineColLoc>(nested)) {
      place = (file.getFilename().getValue() + ":" + Twine(file.getLine()) +
               ":" + Twine(file.getColumn()))
                  .str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (scope.empty())
    return place.empty() ? "unknown" : place;
  return place.empty() ? scope.str() : place + " (" + scope.str() + ")";
}
