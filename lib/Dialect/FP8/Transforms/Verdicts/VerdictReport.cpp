//===- VerdictReport.cpp - The report of verdicts -------------------------===//

#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"

#include "../EffectiveRecipe.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/OutputFile.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Gated units
//===----------------------------------------------------------------------===//

static DictionaryAttr makeAttribute(Builder &b,
                                    const ParameterChannels &channels) {
  return b.getDictionaryAttr(
      {b.getNamedAttr("path", b.getStringAttr(channels.path)),
       b.getNamedAttr("dimensions", b.getDenseI64ArrayAttr(channels.dims)),
       b.getNamedAttr("start", b.getDenseI64ArrayAttr(channels.start)),
       b.getNamedAttr("stride", b.getI64IntegerAttr(channels.stride)),
       b.getNamedAttr("layers", b.getDenseI64ArrayAttr(channels.layers))});
}

static ParameterChannels getChannels(DictionaryAttr attribute) {
  auto getArray = [&](StringRef name) {
    return llvm::to_vector(
        attribute.getAs<DenseI64ArrayAttr>(name).asArrayRef());
  };
  ParameterChannels channels;
  channels.path = attribute.getAs<StringAttr>("path").str();
  channels.dims = getArray("dimensions");
  channels.start = getArray("start");
  channels.stride = attribute.getAs<IntegerAttr>("stride").getInt();
  channels.layers = getArray("layers");
  return channels;
}

namespace {
/// The fields of a gated unit that are texts and parts of parameters, by name.
template <typename UnitT> struct Fields {
  explicit Fields(UnitT &unit)
      : texts{{"function", &unit.function},
              {"layer", &unit.layer},
              {"location", &unit.location},
              {"activation", &unit.activation},
              {"granularity", &unit.granularity},
              {"scale", &unit.scale},
              {"scaling", &unit.scaling},
              {"state", &unit.state},
              {"reason", &unit.reason}},
        parts{{"gate", &unit.gate},
              {"linear", &unit.linear},
              {"linear_bias", &unit.linearBias},
              {"down", &unit.down}} {}

  std::pair<StringRef, decltype(&std::declval<UnitT &>().layer)> texts[9];
  std::pair<StringRef, decltype(&std::declval<UnitT &>().gate)> parts[4];
};
} // namespace

DictionaryAttr GatedUnitVerdict::getAttribute(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList attrs;
  Fields<const GatedUnitVerdict> fields(*this);
  for (auto [name, text] : fields.texts)
    if (!text->empty())
      attrs.append(name, b.getStringAttr(*text));
  if (channels)
    attrs.append("channels", b.getI64IntegerAttr(channels));
  for (auto [name, part] : fields.parts)
    if (*part)
      attrs.append(name, makeAttribute(b, **part));
  return attrs.getDictionary(context);
}

GatedUnitVerdict GatedUnitVerdict::get(DictionaryAttr attribute) {
  GatedUnitVerdict unit;
  Fields<GatedUnitVerdict> fields(unit);
  for (auto [name, text] : fields.texts)
    if (auto attr = attribute.getAs<StringAttr>(name))
      *text = attr.str();
  if (auto channels = attribute.getAs<IntegerAttr>("channels"))
    unit.channels = channels.getInt();
  for (auto [name, part] : fields.parts)
    if (auto attr = attribute.getAs<DictionaryAttr>(name))
      *part = getChannels(attr);
  return unit;
}

static void printGatedUnit(llvm::json::OStream &json,
                           const GatedUnitVerdict &unit) {
  auto printArray = [&](StringRef name, ArrayRef<int64_t> values) {
    json.attributeArray(name, [&] {
      for (int64_t value : values)
        json.value(value);
    });
  };
  Fields<const GatedUnitVerdict> fields(unit);
  json.object([&] {
    for (const auto &text : fields.texts)
      if (!text.second->empty())
        json.attribute(text.first, *text.second);
    if (unit.channels)
      json.attribute("channels", unit.channels);
    for (const auto &part : fields.parts)
      if (const std::optional<ParameterChannels> &channels = *part.second)
        json.attributeObject(part.first, [&] {
          json.attribute("path", channels->path);
          printArray("dimensions", channels->dims);
          printArray("start", channels->start);
          json.attribute("stride", channels->stride);
          printArray("layers", channels->layers);
        });
  });
}

//===----------------------------------------------------------------------===//
// Reading the IR
//===----------------------------------------------------------------------===//

static std::string getText(StringAttr text) {
  return text ? text.str() : std::string();
}

template <typename NotesT>
static void readNotes(ArrayAttr attr, NotesT &notes) {
  if (attr)
    for (auto note : attr.getAsRange<StringAttr>())
      notes.push_back(note.str());
}

static DotVerdict readDot(Operation *dot, VerdictAttr verdict) {
  DotVerdict row;
  row.kind = verdict.getKind();
  row.function = dot->getParentOfType<func::FuncOp>().getName().str();
  row.layer = getText(verdict.getLayer());
  row.role = verdict.getRole();
  row.category = verdict.getCategory();
  row.batch = verdict.getBatch();
  row.m = verdict.getM();
  row.n = verdict.getN();
  row.k = verdict.getK();
  row.lhsFormat = printType(verdict.getLhsFormat());
  row.rhsFormat = printType(verdict.getRhsFormat());
  if (verdict.isFP8()) {
    row.lhsTile = stringifyTiling(*verdict.getLhsTile());
    row.rhsTile = stringifyTiling(*verdict.getRhsTile());
  }
  if (verdict.getLoops())
    row.loops = llvm::to_vector(verdict.getLoops().asArrayRef());
  row.inBranch = verdict.getInBranch();
  row.recomputed = verdict.getRecomputed();
  row.rule = verdict.getRule();
  row.reason = verdict.getReason().str();
  row.location = describeLocation(dot->getLoc());
  readNotes(verdict.getNotes(), row.notes);
  return row;
}

static SoftmaxVerdict readSoftmax(Operation *op, SoftmaxVerdictAttr verdict) {
  SoftmaxVerdict row;
  row.kind = verdict.getKind();
  row.function = op->getParentOfType<func::FuncOp>().getName().str();
  row.backward = verdict.getBackward();
  row.batch = verdict.getBatch();
  row.queries = verdict.getQueries();
  row.keys = verdict.getKeys();
  if (verdict.getLoops())
    row.loops = llvm::to_vector(verdict.getLoops().asArrayRef());
  row.inBranch = verdict.getInBranch();
  row.recomputed = verdict.getRecomputed();
  row.reason = verdict.getReason().str();
  row.location = describeLocation(op->getLoc());
  row.obstacle = getText(verdict.getObstacle());
  return row;
}

static StateVerdict readState(func::FuncOp function, unsigned argument,
                              StateVerdictAttr verdict) {
  StateVerdict row;
  row.function = function.getName().str();
  row.path = getText(function.getArgAttrOfType<StringAttr>(
      argument, FP8Dialect::kPathAttrName));
  row.kind = verdict.getKind().str();
  row.parameter = getText(verdict.getParameter());
  row.elements = verdict.getElements();
  row.from = printType(verdict.getFrom());
  row.to = printType(verdict.getTo());
  if (verdict.getTile())
    row.tile = stringifyStorageTiling(*verdict.getTile());
  row.bytes = verdict.getBytes();
  row.changed = verdict.getChanged();
  row.reason = verdict.getReason().str();
  readNotes(verdict.getNotes(), row.notes);
  return row;
}

void VerdictReport::read(func::FuncOp function) {
  // Passes move dots, so rows follow the numbers of the verdicts.
  std::multimap<int64_t, DotVerdict> numbered;
  function.walk([&](Operation *op) {
    // Dots that the compiler repeats are not the user's.
    if (VerdictAttr verdict = getVerdict(op);
        verdict && !op->hasAttr(FP8Dialect::kRecomputeAttrName))
      numbered.emplace(verdict.getNumber(), readDot(op, verdict));
    if (auto verdict = op->getAttrOfType<SoftmaxVerdictAttr>(
            FP8Dialect::kSoftmaxVerdictAttrName))
      softmaxes.push_back(readSoftmax(op, verdict));
    convolutions += isa<stablehlo::ConvolutionOp>(op);
  });
  llvm::append_range(collectives, CollectiveVerdict::getAll(function));
  for (auto &[number, dot] : numbered)
    dots.push_back(std::move(dot));
  if (auto units =
          function->getAttrOfType<ArrayAttr>(FP8Dialect::kGatedUnitsAttrName))
    for (auto unit : units.getAsRange<DictionaryAttr>())
      gatedUnits.push_back(GatedUnitVerdict::get(unit));
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto verdict = function.getArgAttrOfType<StateVerdictAttr>(
            i, FP8Dialect::kStateVerdictAttrName))
      state.push_back(readState(function, i, verdict));
}

FailureOr<VerdictReport> VerdictReport::get(ModuleOp module) {
  FailureOr<Recipe> recipe = getEffectiveRecipe(module);
  if (failed(recipe) || failed(verifyAnyVerdict(module)))
    return failure();
  VerdictReport report;
  report.recipe = recipe->name;
  for (auto function : module.getOps<func::FuncOp>())
    report.read(function);
  return report;
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

int64_t VerdictReport::count(Verdict kind) const {
  return llvm::count_if(
      dots, [&](const DotVerdict &dot) { return dot.kind == kind; });
}

std::string VerdictReport::getSummary() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << count(Verdict::FP8) << " of " << dots.size() << " dots in FP8";
  bool first = true;
  auto item = [&](int64_t number, StringRef what) {
    if (!number)
      return;
    os << (first ? "; " : ", ") << number << " " << what;
    first = false;
  };
  item(count(Verdict::Fallback), "fallback");
  static constexpr std::pair<DotCategory, StringLiteral> categories[] = {
      {DotCategory::Linear, "linear layers kept in high precision"},
      {DotCategory::Attention, "attention"},
      {DotCategory::Head, "head"},
      {DotCategory::Embedding, "embedding"},
      {DotCategory::Other, "not in linear layers"}};
  for (const auto &category : categories)
    item(llvm::count_if(dots,
                        [&](const DotVerdict &dot) {
                          return dot.kind == Verdict::HighPrecision &&
                                 dot.category == category.first;
                        }),
         category.second);
  item(convolutions, "convolutions in high precision");
  return text;
}

std::string VerdictReport::getStateSummary() const {
  int64_t changed = 0, bytes = 0;
  for (const StateVerdict &array : state) {
    changed += array.changed;
    bytes += array.bytes;
  }
  return llvm::formatv("{0} of {1} arrays of state stored otherwise; {2} bytes "
                       "of state",
                       changed, state.size(), bytes)
      .str();
}

std::string VerdictReport::getSoftmaxSummary() const {
  return llvm::formatv("{0} of {1} softmaxes in tiles",
                       llvm::count_if(softmaxes,
                                      [](const SoftmaxVerdict &softmax) {
                                        return softmax.kind ==
                                               ScoreStorage::Tiled;
                                      }),
                       softmaxes.size())
      .str();
}

std::string VerdictReport::getCollectiveSummary() const {
  int64_t narrow = 0, bytes = 0;
  for (const CollectiveVerdict &collective : collectives) {
    narrow += collective.from != collective.wire;
    bytes += collective.bytes;
  }
  return llvm::formatv("{0} of {1} collectives in fewer bits; {2} bytes",
                       narrow, collectives.size(), bytes)
      .str();
}

/// Prints rows in columns; the columns in `numbers` are right-justified.
static void printColumns(llvm::raw_ostream &os,
                         ArrayRef<SmallVector<std::string>> rows,
                         ArrayRef<size_t> numbers) {
  SmallVector<size_t> widths(rows.front().size());
  for (const auto &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, cell.size());
  for (const auto &row : rows) {
    for (auto [i, cell] : llvm::enumerate(row)) {
      bool last = i + 1 == row.size();
      if (llvm::is_contained(numbers, i))
        os << llvm::right_justify(cell, widths[i]);
      else if (last)
        os << cell;
      else
        os << llvm::left_justify(cell, widths[i]);
      os << (last ? "\n" : "  ");
    }
  }
}

static std::string joinReason(StringRef reason, ArrayRef<std::string> notes) {
  std::string text = reason.str();
  for (const std::string &note : notes)
    text += "; " + note;
  return text;
}

void VerdictReport::printSoftmaxTable(llvm::raw_ostream &os) const {
  if (softmaxes.empty())
    return;
  SmallVector<SmallVector<std::string>> rows;
  rows.push_back({"scores", "pass", "batch", "queries", "keys", "reason",
                  "needed at", "location"});
  for (const SoftmaxVerdict &softmax : softmaxes)
    rows.push_back(
        {stringifyScoreStorage(softmax.kind).str(),
         softmax.backward ? "backward" : "forward",
         std::to_string(softmax.batch), std::to_string(softmax.queries),
         std::to_string(softmax.keys), softmax.reason,
         softmax.obstacle.empty() ? "-" : softmax.obstacle, softmax.location});
  printColumns(os, rows, {2, 3, 4});
  os << "recipe " << recipe << ": " << getSoftmaxSummary() << "\n";
}

void VerdictReport::printCollectiveTable(llvm::raw_ostream &os) const {
  if (collectives.empty())
    return;
  SmallVector<SmallVector<std::string>> rows;
  rows.push_back({"collective", "operation", "shape", "from", "wire", "block",
                  "bytes", "reason", "location"});
  for (const CollectiveVerdict &collective : collectives) {
    std::string shape = "[";
    for (auto [i, extent] : llvm::enumerate(collective.shape))
      shape += (i ? ", " : "") + std::to_string(extent);
    rows.push_back({collective.what, collective.operation, shape + "]",
                    collective.from, collective.wire,
                    collective.block ? std::to_string(collective.block) : "-",
                    std::to_string(collective.bytes), collective.reason,
                    collective.location});
  }
  printColumns(os, rows, {5, 6});
  os << "recipe " << recipe << ": " << getCollectiveSummary() << "\n";
}

void VerdictReport::printStateTable(llvm::raw_ostream &os) const {
  if (state.empty())
    return;
  SmallVector<SmallVector<std::string>> rows;
  rows.push_back(
      {"state", "kind", "elements", "from", "to", "tile", "bytes", "reason"});
  for (const StateVerdict &array : state)
    rows.push_back({array.path, array.kind, std::to_string(array.elements),
                    array.from, array.to, array.tile.empty() ? "-" : array.tile,
                    std::to_string(array.bytes),
                    joinReason(array.reason, array.notes)});
  printColumns(os, rows, {2, 6});
  os << "recipe " << recipe << ": " << getStateSummary() << "\n";
}

void VerdictReport::printTable(llvm::raw_ostream &os) const {
  SmallVector<SmallVector<std::string>> rows;
  rows.push_back({"verdict", "role", "layer", "batch", "M", "N", "K", "lhs",
                  "rhs", "reason", "location"});
  for (const DotVerdict &dot : dots) {
    rows.push_back(
        {stringifyVerdict(dot.kind).str(), stringifyDotRole(dot.role).str(),
         dot.layer.empty() ? "-" : dot.layer, std::to_string(dot.batch),
         std::to_string(dot.m), std::to_string(dot.n), std::to_string(dot.k),
         dot.lhsFormat, dot.rhsFormat, joinReason(dot.reason, dot.notes),
         dot.location});
  }
  printColumns(os, rows, {3, 4, 5, 6});
  os << "recipe " << recipe << ": " << getSummary() << "\n";
  printSoftmaxTable(os);
  printCollectiveTable(os);
  printStateTable(os);
}

static void printTexts(llvm::json::OStream &json, StringRef name,
                       ArrayRef<std::string> texts) {
  json.attributeArray(name, [&] {
    for (const std::string &text : texts)
      json.value(text);
  });
}

/// Prints trip counts, the inner loop first; null where unknown.
static void printLoops(llvm::json::OStream &json, ArrayRef<int64_t> loops) {
  json.attributeArray("loops", [&] {
    for (int64_t trips : loops)
      trips ? json.value(trips) : json.value(nullptr);
  });
}

static void printSoftmax(llvm::json::OStream &json,
                         const SoftmaxVerdict &softmax) {
  json.attribute("function", softmax.function);
  json.attribute("scores", stringifyScoreStorage(softmax.kind));
  json.attribute("pass", softmax.backward ? "backward" : "forward");
  json.attribute("batch", softmax.batch);
  json.attribute("queries", softmax.queries);
  json.attribute("keys", softmax.keys);
  printLoops(json, softmax.loops);
  json.attribute("in_branch", softmax.inBranch);
  json.attribute("recomputed", softmax.recomputed);
  json.attribute("reason", softmax.reason);
  if (!softmax.obstacle.empty())
    json.attribute("obstacle", softmax.obstacle);
  json.attribute("location", softmax.location);
}

static void printCollective(llvm::json::OStream &json,
                            const CollectiveVerdict &collective) {
  json.attribute("function", collective.function);
  json.attribute("what", collective.what);
  json.attribute("operation", collective.operation);
  json.attributeArray("shape", [&] {
    for (int64_t extent : collective.shape)
      json.value(extent);
  });
  json.attribute("from", collective.from);
  json.attribute("wire", collective.wire);
  if (collective.block)
    json.attribute("block", collective.block);
  json.attribute("bytes", collective.bytes);
  printLoops(json, collective.loops);
  json.attribute("in_branch", collective.inBranch);
  json.attribute("reason", collective.reason);
  json.attribute("location", collective.location);
}

static void printDot(llvm::json::OStream &json, const DotVerdict &dot) {
  json.attribute("function", dot.function);
  json.attribute("layer", dot.layer);
  json.attribute("role", stringifyDotRole(dot.role));
  json.attribute("category", stringifyDotCategory(dot.category));
  json.attribute("batch", dot.batch);
  json.attribute("m", dot.m);
  json.attribute("n", dot.n);
  json.attribute("k", dot.k);
  json.attribute("lhs", dot.lhsFormat);
  json.attribute("rhs", dot.rhsFormat);
  if (dot.kind == Verdict::FP8) {
    json.attribute("lhs_tile", dot.lhsTile);
    json.attribute("rhs_tile", dot.rhsTile);
  }
  printLoops(json, dot.loops);
  json.attribute("in_branch", dot.inBranch);
  json.attribute("recomputed", dot.recomputed);
  if (dot.rule)
    json.attribute("rule", dot.rule);
  json.attribute("verdict", stringifyVerdict(dot.kind));
  json.attribute("reason", dot.reason);
  json.attribute("location", dot.location);
  printTexts(json, "notes", dot.notes);
}

static void printState(llvm::json::OStream &json, const StateVerdict &array) {
  json.attribute("function", array.function);
  json.attribute("path", array.path);
  json.attribute("kind", array.kind);
  if (!array.parameter.empty())
    json.attribute("parameter", array.parameter);
  json.attribute("elements", array.elements);
  json.attribute("from", array.from);
  json.attribute("to", array.to);
  if (!array.tile.empty())
    json.attribute("tile", array.tile);
  json.attribute("bytes", array.bytes);
  json.attribute("changed", array.changed);
  json.attribute("reason", array.reason);
  printTexts(json, "notes", array.notes);
}

void VerdictReport::printJSON(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("recipe", recipe);
    json.attribute("summary", getSummary());
    json.attribute("total", static_cast<int64_t>(dots.size()));
    for (auto kind : {Verdict::FP8, Verdict::HighPrecision, Verdict::Fallback})
      json.attribute(stringifyVerdict(kind), count(kind));
    json.attribute("convolutions", convolutions);
    json.attributeArray("dots", [&] {
      for (const DotVerdict &dot : dots)
        json.object([&] { printDot(json, dot); });
    });
    json.attributeArray("gated_units", [&] {
      for (const GatedUnitVerdict &unit : gatedUnits)
        printGatedUnit(json, unit);
    });
    json.attributeArray("softmaxes", [&] {
      for (const SoftmaxVerdict &softmax : softmaxes)
        json.object([&] { printSoftmax(json, softmax); });
    });
    json.attributeArray("collectives", [&] {
      for (const CollectiveVerdict &collective : collectives)
        json.object([&] { printCollective(json, collective); });
    });
    json.attributeArray("state", [&] {
      for (const StateVerdict &array : state)
        json.object([&] { printState(json, array); });
    });
  });
  os << "\n";
}

LogicalResult VerdictReport::write(StringRef file, std::string &error) const {
  if (file == "-") {
    printTable(llvm::errs());
    return success();
  }
  llvm::Error written = writeFile(file, [&](raw_ostream &os) {
    if (file.ends_with(".json"))
      printJSON(os);
    else
      printTable(os);
  });
  if (!written)
    return success();
  error = "cannot write the verdict report '" + file.str() +
          "': " + llvm::errorToErrorCode(std::move(written)).message();
  return failure();
}
