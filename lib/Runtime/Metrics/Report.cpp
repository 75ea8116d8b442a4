//===- Report.cpp - Logs and the loss picture -----------------------------===//

#include "Report.h"
#include "../Support/Error.h"
#include "../Support/Files.h"
#include "../Support/Json.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace fp8::rt {

using json = nlohmann::json;

//===----------------------------------------------------------------------===//
// Logs
//===----------------------------------------------------------------------===//

Report::~Report() {
  if (csv)
    std::fclose(csv);
  if (jsonl)
    std::fclose(jsonl);
}

/// The columns of log.csv before those of the metrics, and what the names of an
/// evaluation's metrics begin with.
static constexpr std::array<const char *, 5> fixedColumns = {
    "step", "loss", "heldout_loss", "tokens_per_second", "seconds"};
static const std::string evalPrefix = "heldout ";

static std::string csvText(const std::string &text) {
  if (text.find_first_of(",\"\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string Report::csvLine(const LogRow &row) const {
  std::string line = str(row.step, ",", numberText(row.loss), ",",
                         row.hasHeldOut ? numberText(row.heldOut) : "", ",",
                         numberText(std::round(row.tokensPerSecond)), ",",
                         numberText(std::round(row.seconds * 1000) / 1000));
  auto cells = [&](const std::vector<double> &values, size_t count) {
    for (size_t i = 0; i < count; ++i)
      line += "," + (i < values.size() ? numberText(values[i]) : "");
  };
  cells(row.metrics, metricNames.size());
  cells(row.evalMetrics, evalMetricNames.size());
  return line + "\n";
}

/// Returns a number, or its text: JSON has no NaN and no infinity.
static std::string jsonNumber(double value) {
  std::string text = numberText(value);
  return std::isfinite(value) ? text : '"' + text + '"';
}

/// Returns the number of a key that `jsonNumber` has written; NaN for others.
static double readNumber(const json &object, const std::string &key) {
  json value = object.value(key, json());
  if (value.is_number())
    return value.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return value == "inf"    ? infinity
         : value == "-inf" ? -infinity
                           : std::numeric_limits<double>::quiet_NaN();
}

std::string Report::jsonLine(const LogRow &row) const {
  std::string line =
      str("{\"step\": ", row.step, ", \"loss\": ", jsonNumber(row.loss));
  if (row.hasHeldOut)
    line += ", \"heldout_loss\": " + jsonNumber(row.heldOut);
  line += str(
      ", \"tokens_per_second\": ", jsonNumber(std::round(row.tokensPerSecond)),
      ", \"seconds\": ", jsonNumber(std::round(row.seconds * 1000) / 1000));
  if (row.isSkipped)
    line += ", \"skipped\": true";
  if (!row.alarms.empty())
    line += ", \"alarms\": " + dumpJson(json(row.alarms));
  auto object = [&](const char *key, const std::vector<std::string> &names,
                    const std::vector<double> &values) {
    if (values.empty())
      return;
    line += str(", \"", key, "\": {");
    for (size_t i = 0; i < values.size(); ++i)
      line +=
          str(i ? ", " : "", jsonText(names[i]), ": ", jsonNumber(values[i]));
    line += "}";
  };
  object("metrics", metricNames, row.metrics);
  if (row.hasHeldOut)
    object("heldout_metrics", evalMetricNames, row.evalMetrics);
  return line + "}\n";
}

/// Takes the values of an object or of the columns of a table, in the order of
/// `names`, to which names that are new are added.
template <typename Values, typename Read>
static std::vector<double>
takeValues(const Values &values, std::vector<std::string> &names, Read &&read) {
  for (const auto &[name, value] : values)
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  std::vector<double> taken;
  for (const std::string &name : names)
    taken.push_back(read(name));
  return taken;
}

/// Returns the row of a line of log.jsonl; nothing if it has no step, no loss
/// or no objects of metrics. A killed process may leave an incomplete line.
std::optional<LogRow> Report::readJson(const std::string &line) {
  json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("step") ||
      !object["step"].is_number_integer())
    return std::nullopt;
  json loss = object.value("loss", json());
  if (!loss.is_number() && !loss.is_string())
    return std::nullopt;
  for (const char *key : {"metrics", "heldout_metrics"})
    if (!object.value(key, json::object()).is_object())
      return std::nullopt;
  LogRow row;
  row.step = object["step"].get<int64_t>();
  row.loss = readNumber(object, "loss");
  row.hasHeldOut = object.contains("heldout_loss");
  row.heldOut = readNumber(object, "heldout_loss");
  row.tokensPerSecond = readNumber(object, "tokens_per_second");
  row.seconds = readNumber(object, "seconds");
  row.isSkipped = object.value("skipped", json()) == true;
  for (const json &alarm : object.value("alarms", json::array()))
    if (alarm.is_string())
      row.alarms.push_back(alarm.get<std::string>());
  // A run that resumes without its evaluation keeps the numbers of before.
  auto values = [&](const char *key, std::vector<std::string> &names) {
    json from = object.value(key, json::object());
    return takeValues(from.items(), names, [&](const std::string &name) {
      return readNumber(from, name);
    });
  };
  row.metrics = values("metrics", metricNames);
  if (row.hasHeldOut)
    row.evalMetrics = values("heldout_metrics", evalMetricNames);
  return row;
}

/// Returns the cells of a table's rows; an incomplete last row is none.
static std::vector<std::vector<std::string>>
readTable(const std::string &text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> cells(1);
  bool isQuoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      // Two of them within quotes are one.
      if (!isQuoted && i > 0 && text[i - 1] == '"')
        cells.back() += c;
      isQuoted = !isQuoted;
    } else if (isQuoted || (c != ',' && c != '\n')) {
      cells.back() += c;
    } else if (c == ',') {
      cells.emplace_back();
    } else {
      rows.push_back(std::exchange(cells, std::vector<std::string>(1)));
    }
  }
  return rows;
}

/// Returns the row of a line of log.csv with these columns; nothing if it has
/// no step or no loss.
std::optional<LogRow> Report::readCells(const std::vector<std::string> &columns,
                                        const std::vector<std::string> &cells) {
  if (cells.size() != columns.size())
    return std::nullopt;
  std::optional<int64_t> step = numberOf<int64_t>(cells[0]);
  std::optional<double> loss = numberOf<double>(cells[1]);
  if (!step || !loss)
    return std::nullopt;
  auto number = [](const std::string &cell) {
    return numberOf<double>(cell).value_or(
        std::numeric_limits<double>::quiet_NaN());
  };
  LogRow row;
  row.step = *step;
  row.loss = *loss;
  row.hasHeldOut = !cells[2].empty();
  row.heldOut = number(cells[2]);
  row.tokensPerSecond = number(cells[3]);
  row.seconds = number(cells[4]);
  std::map<std::string, double> metrics, evalMetrics;
  for (size_t i = fixedColumns.size(); i < cells.size(); ++i) {
    bool isOfEval = columns[i].compare(0, evalPrefix.size(), evalPrefix) == 0;
    if (isOfEval)
      evalMetrics[columns[i].substr(evalPrefix.size())] = number(cells[i]);
    else
      metrics[columns[i]] = number(cells[i]);
  }
  auto valuesOf = [](const std::map<std::string, double> &from,
                     std::vector<std::string> &names) {
    return takeValues(from, names, [&](const std::string &name) {
      auto found = from.find(name);
      return found != from.end() ? found->second
                                 : std::numeric_limits<double>::quiet_NaN();
    });
  };
  row.metrics = valuesOf(metrics, metricNames);
  if (row.hasHeldOut)
    row.evalMetrics = valuesOf(evalMetrics, evalMetricNames);
  return row;
}

/// Reads the rows of an earlier run. Both logs have them, and log.jsonl says
/// more: log.csv replaces rows that it lacks.
void Report::readBack(int64_t lastStep) {
  std::map<int64_t, LogRow> found;
  auto keep = [&](std::optional<LogRow> row) {
    if (row && row->step <= lastStep)
      found.emplace(row->step, std::move(*row));
  };
  // A log that cannot be read is an error, for it is written anew.
  if (std::string path = directory + "/log.jsonl"; fileExists(path)) {
    auto file = classic<std::istringstream>(readTextFile(path));
    for (std::string line; std::getline(file, line);)
      keep(readJson(line));
  }
  if (std::string path = directory + "/log.csv"; fileExists(path)) {
    std::vector<std::vector<std::string>> table = readTable(readTextFile(path));
    bool isLog =
        !table.empty() && table[0].size() >= fixedColumns.size() &&
        std::equal(fixedColumns.begin(), fixedColumns.end(), table[0].begin());
    for (size_t i = 1; isLog && i < table.size(); ++i)
      keep(readCells(table[0], table[i]));
  }
  for (auto &[step, row] : found)
    log.push_back(std::move(row));
}

/// Writes both logs with all rows, and leaves them open for more.
void Report::writeAll() {
  if (directory.empty())
    return;
  std::string table;
  for (const char *name : fixedColumns)
    table += (table.empty() ? "" : ",") + std::string(name);
  for (const std::string &name : metricNames)
    table += "," + csvText(name);
  for (const std::string &name : evalMetricNames)
    table += "," + csvText(evalPrefix + name);
  table += "\n";
  std::string jsonText;
  for (const LogRow &row : log) {
    table += csvLine(row);
    jsonText += jsonLine(row);
  }
  auto begin = [&](std::FILE *&file, const char *name,
                   const std::string &text) {
    std::string path = directory + "/" + name;
    if (file)
      std::fclose(std::exchange(file, nullptr));
    writeFileAtomically(path, text);
    file = std::fopen(path.c_str(), "ae");
    if (!file)
      throw Error(FP8_ERROR_IO,
                  str("cannot write '", path, "': ", errnoText(errno)));
  };
  begin(csv, "log.csv", table);
  begin(jsonl, "log.jsonl", jsonText);
}

void Report::open(int64_t lastStep) {
  log.clear();
  if (lastStep >= 0 && !directory.empty())
    readBack(lastStep);
  writeAll();
}

void Report::restore(const LogRow &row) {
  if (row.step > (log.empty() ? 0 : log.back().step))
    log.push_back(row);
  writeAll();
}

void Report::append(const LogRow &row) {
  log.push_back(row);
  if (directory.empty())
    return;
  auto write = [&](std::FILE *file, const char *name, const std::string &text) {
    // Flush every row, so that a running log is up to date.
    if (std::fputs(text.c_str(), file) == EOF || std::fflush(file) != 0) {
      int code = errno;
      std::clearerr(file);
      throw Error(FP8_ERROR_IO, str("cannot write '", directory, "/", name,
                                    "': ", errnoText(code)));
    }
  };
  write(csv, "log.csv", csvLine(row));
  write(jsonl, "log.jsonl", jsonLine(row));
}

void Report::writePicture() const {
  if (!directory.empty())
    writeFileAtomically(directory + "/loss.svg", lossPicture(log, unit));
}

//===----------------------------------------------------------------------===//
// Picture
//===----------------------------------------------------------------------===//

namespace {
/// A linear axis from data to pixels, with ticks at 1, 2 or 5 times a power
/// of ten.
struct Axis {
  double low, high;   // data
  double start, stop; // pixels
  double at(double value) const {
    return start + (value - low) / (high - low) * (stop - start);
  }
  double tick() const {
    double raw = (high - low) / 8;
    double power = std::pow(10, std::floor(std::log10(raw)));
    for (double factor : {1.0, 2.0, 5.0})
      if (raw <= factor * power)
        return factor * power;
    return 10 * power;
  }
};
} // namespace

static std::string fixed(double value, int digits) {
  char text[400]; // the largest double has 309 digits
  auto [end, problem] = std::to_chars(text, text + sizeof(text), value,
                                      std::chars_format::fixed, digits);
  return {text, end};
}

static std::string tickText(double value) {
  return numberText(std::abs(value) < 1e-12 ? 0 : value);
}

namespace {
/// Draws the losses of a run as SVG.
class LossPicture {
public:
  LossPicture(const std::vector<LogRow> &rows, const std::string &unit)
      : rows(rows), unit(unit), y(lossAxis(rows)),
        x{0, std::max<double>(rows.empty() ? 1 : rows.back().step, 1), left,
          right} {}

  std::string draw() {
    drawAxes();
    drawTrainingLosses();
    drawHeldOutLosses();
    drawLegend();
    return header() + svg + "</svg>\n";
  }

private:
  static constexpr double width = 860, height = 480;
  static constexpr double left = 76, right = 836, top = 56, bottom = 424;

  static Axis lossAxis(const std::vector<LogRow> &rows);
  static std::string header();
  void line(double x1, double y1, double x2, double y2, const char *color);
  void text(double px, double py, const char *anchor, const std::string &what,
            const char *more = "");
  template <typename ValueOf>
  void polyline(ValueOf &&valueOf, const char *color, const char *stroke,
                double opacity);
  void drawAxes();
  void drawTrainingLosses();
  void drawHeldOutLosses();
  void drawLegend();

  const std::vector<LogRow> &rows;
  const std::string &unit;
  Axis y, x;
  std::string svg;
};
} // namespace

Axis LossPicture::lossAxis(const std::vector<LogRow> &rows) {
  double low = INFINITY, high = -INFINITY;
  for (const LogRow &row : rows)
    for (double value : {row.loss, row.heldOut})
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
  if (low > high) {
    low = 0;
    high = 1;
  }
  double margin = std::max((high - low) * 0.05, std::abs(high) * 1e-3 + 1e-9);
  return {low - margin, high + margin, bottom, top};
}

std::string LossPicture::header() {
  return str("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width,
             " ", height, "\" width=\"", width, "\" height=\"", height,
             "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n"
             "<title>Loss by training step</title>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
}

void LossPicture::line(double x1, double y1, double x2, double y2,
                       const char *color) {
  svg += str("<line x1=\"", fixed(x1, 1), "\" y1=\"", fixed(y1, 1), "\" x2=\"",
             fixed(x2, 1), "\" y2=\"", fixed(y2, 1), "\" stroke=\"", color,
             "\"/>\n");
}

void LossPicture::text(double px, double py, const char *anchor,
                       const std::string &what, const char *more) {
  svg += str("<text x=\"", fixed(px, 1), "\" y=\"", fixed(py, 1),
             "\" text-anchor=\"", anchor, "\"", more, ">", what, "</text>\n");
}

/// Draws a line through the finite ones of the values `valueOf(row)`.
template <typename ValueOf>
void LossPicture::polyline(ValueOf &&valueOf, const char *color,
                           const char *stroke, double opacity) {
  // About one point a pixel is enough.
  size_t stride = std::max<size_t>(1, rows.size() / 1500);
  std::string points;
  for (size_t i = 0; i < rows.size(); ++i) {
    double value = valueOf(rows[i]);
    if (std::isfinite(value) && (i % stride == 0 || i + 1 == rows.size()))
      points += str(points.empty() ? "" : " ", fixed(x.at(rows[i].step), 1),
                    ",", fixed(y.at(value), 1));
  }
  svg += str("<polyline fill=\"none\" stroke=\"", color, "\" stroke-width=\"",
             stroke, "\" stroke-opacity=\"", opacity,
             "\" stroke-linejoin=\"round\" points=\"", points, "\"/>\n");
}

void LossPicture::drawAxes() {
  double yTick = y.tick(), xTick = std::max(1.0, x.tick());
  for (double value = std::ceil(y.low / yTick) * yTick; value <= y.high;
       value += yTick) {
    line(left, y.at(value), right, y.at(value), "#e4e4e4");
    text(left - 8, y.at(value) + 4.5, "end", tickText(value));
  }
  for (double value = 0; value <= x.high; value += xTick) {
    line(x.at(value), bottom, x.at(value), bottom + 5, "#888");
    text(x.at(value), bottom + 20, "middle", tickText(value));
  }
  line(left, bottom, right, bottom, "#888");
  line(left, top, left, bottom, "#888");
  text((left + right) / 2, height - 12, "middle", "step");
  text(20, (top + bottom) / 2, "middle",
       unit.empty() ? std::string("loss") : str("loss (", unit, ")"),
       str(" transform=\"rotate(-90 20 ", (top + bottom) / 2, ")\"").c_str());
}

void LossPicture::drawTrainingLosses() {
  polyline([](const LogRow &row) { return row.loss; }, "#4878cf", "1", 0.4);
  // An exponential average over about a hundredth of the run, corrected for the
  // bias of its start.
  double decay = std::exp(-1.0 / std::max(1.0, rows.size() / 100.0));
  double sum = 0, weight = 0;
  polyline(
      [&](const LogRow &row) {
        if (std::isfinite(row.loss)) {
          sum = decay * sum + row.loss;
          weight = decay * weight + 1;
        }
        return sum / weight;
      },
      "#1f4e9c", "2.2", 1);
}

void LossPicture::drawHeldOutLosses() {
  for (const LogRow &row : rows)
    if (row.hasHeldOut && std::isfinite(row.heldOut))
      svg += str("<circle cx=\"", fixed(x.at(row.step), 1), "\" cy=\"",
                 fixed(y.at(row.heldOut), 1),
                 "\" r=\"4.5\" fill=\"#d65f1e\" stroke=\"#fff\"/>\n");
}

void LossPicture::drawLegend() {
  const LogRow *lastLoss = nullptr, *lastHeldOut = nullptr;
  for (const LogRow &row : rows) {
    if (std::isfinite(row.loss))
      lastLoss = &row;
    if (row.hasHeldOut && std::isfinite(row.heldOut))
      lastHeldOut = &row;
  }
  svg += str("<line x1=\"", left, "\" y1=\"30\" x2=\"", left + 26,
             "\" y2=\"30\" stroke=\"#1f4e9c\" stroke-width=\"2.2\"/>\n");
  text(left + 32, 34.5, "start",
       str("train, smoothed",
           lastLoss ? str(" (last step ", fixed(lastLoss->loss, 4), ")") : ""));
  if (!lastHeldOut)
    return;
  double second = left + 330;
  svg += str("<circle cx=\"", second + 13,
             "\" cy=\"30\" r=\"4.5\" fill=\"#d65f1e\"/>\n");
  text(second + 26, 34.5, "start",
       str("held out (last ", fixed(lastHeldOut->heldOut, 4), ")"));
}

std::string lossPicture(const std::vector<LogRow> &rows,
                        const std::string &unit) {
  return LossPicture(rows, unit).draw();
}

} // namespace fp8::rt
