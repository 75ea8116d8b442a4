//===- Alarm.cpp - Rules about a run's metrics ----------------------------===//

#include "Alarm.h"
#include "../Support/Median.h"
#include "../Train/Console.h"
#include "fp8/Binding/PathBinding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

static constexpr const char *kForm =
    "METRIC[@TENSORS] > VALUE : ACTION (or <; VALUE is a number, or 2x "
    "median(50); ACTION is warn, stop or skip)";

static std::string trimmed(const std::string &text) {
  size_t begin = text.find_first_not_of(" \t"),
         end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// Returns the position of the first of `letters` outside of quotes, from
/// `begin` on.
static size_t findOutside(const std::string &text, const char *letters,
                          size_t begin = 0) {
  char quote = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    char c = text[i];
    if (quote) {
      if (c == quote)
        quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (std::strchr(letters, c)) {
      return i;
    }
  }
  return std::string::npos;
}

/// Reads a number at the front of `text` and removes it.
static bool takeNumber(std::string &text, double &value) {
  // (from_chars takes no plus sign.)
  size_t sign = text[0] == '+' && text[1] != '-';
  const char *begin = text.data() + sign, *behind = text.data() + text.size();
  auto [end, problem] = std::from_chars(begin, behind, value);
  // "inf" and "nan" are not valid thresholds.
  if (problem != std::errc() || !std::isfinite(value))
    return false;
  text = trimmed(text.substr(end - text.data()));
  return true;
}

static bool takeWord(std::string &text, const std::string &word) {
  if (text.compare(0, word.size(), word) != 0)
    return false;
  text = trimmed(text.substr(word.size()));
  return true;
}

static Error malformed(const std::string &rule, const std::string &what) {
  return {FP8_ERROR_INVALID,
          str("alarm '", rule, "': ", what, "; expected ", kForm)};
}

/// Parses "0.5" or "3x median(50)".
static void parseLimit(const std::string &value, AlarmRule &rule,
                       const std::string &text) {
  std::string rest = value;
  double median = 0;
  if (!takeNumber(rest, rule.threshold))
    throw malformed(text, str("expected a number but got '", value, "'"));
  if (rest.empty())
    return;
  if (!takeWord(rest, "x") || !takeWord(rest, "median") ||
      !takeWord(rest, "(") || !takeNumber(rest, median) ||
      !takeWord(rest, ")") || !rest.empty())
    throw malformed(text,
                    str("expected a number or a multiple of a median but got '",
                        value, "'"));
  if (median != std::floor(median) || median < 1 || median > 1e6)
    throw malformed(
        text,
        str("expected a median of 1 to 1000000 steps but got '", value, "'"));
  rule.medianOf = static_cast<int64_t>(median);
}

static fp8_alarm_action parseAction(const std::string &action,
                                    const std::string &text) {
  if (action == "warn")
    return FP8_ALARM_WARN;
  if (action == "stop")
    return FP8_ALARM_STOP;
  if (action == "skip")
    return FP8_ALARM_SKIP;
  throw malformed(text, str("there is no action '", action, "'"));
}

AlarmRule parseAlarm(const std::string &text) {
  AlarmRule rule;
  rule.text = trimmed(text);
  size_t sign = findOutside(text, "<>");
  if (sign == std::string::npos)
    throw malformed(text, "there is no > and no <");
  size_t colon = findOutside(text, ":", sign);
  if (colon == std::string::npos)
    throw malformed(text, "there is no : before an action");
  size_t at = findOutside(text, "@");
  if (at > sign)
    at = sign;
  rule.metric = trimmed(text.substr(0, at));
  if (rule.metric.empty())
    throw malformed(text, "there is no metric");
  if (at != sign) {
    rule.tensors = trimmed(text.substr(at + 1, sign - at - 1));
    if (rule.tensors.empty())
      throw malformed(text, "there is no path after @");
  }
  rule.below = text[sign] == '<';
  parseLimit(trimmed(text.substr(sign + 1, colon - sign - 1)), rule, text);
  rule.action = parseAction(trimmed(text.substr(colon + 1)), text);
  return rule;
}

static bool contains(const std::vector<std::string> &list,
                     const std::string &text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool needsTrace(const AlarmRule &rule) {
  return contains(traceMetricNames(), rule.metric);
}

//===----------------------------------------------------------------------===//
// What rules watch
//===----------------------------------------------------------------------===//

/// "a, b, c and 4 more".
static std::string listText(const std::vector<std::string> &names) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > most)
    text += str(" and ", names.size() - most, " more");
  return text.empty() ? "none" : text;
}

static Error unresolved(const AlarmRule &rule, const std::string &what) {
  return {FP8_ERROR_INVALID, str("alarm '", rule.text, "': ", what)};
}

/// Watches the tensors of the trace that a rule is about, in all layers.
void Alarms::watchTensors(Rule &rule) const {
  std::vector<std::string> tensors;
  for (size_t i = 0; i < trace.series().size(); ++i) {
    const TraceSeries &series = trace.series()[i];
    if (series.metric != rule.metric)
      continue;
    tensors.push_back(series.tensor);
    if (!rule.tensors.empty() &&
        !fp8binding::matchesPath(rule.tensors, series.tensor))
      continue;
    for (size_t layer = 0; layer < series.values.size(); ++layer)
      rule.watches.push_back({i, layer, {}, false});
  }
  if (rule.watches.empty())
    throw unresolved(
        rule, str("no tensor ",
                  rule.tensors.empty() ? str("has a '", rule.metric, "'")
                                       : str("fits '", rule.tensors, "'"),
                  "; those that have one: ", listText(tensors),
                  trace.empty() ? " (the step has no trace: nothing in it is "
                                  "quantized, or it was compiled without "
                                  "--trace)"
                                : ""));
}

void Alarms::resolve(Rule &rule) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < scalars.size(); ++i)
    if (rule.metric == scalars[i].path || rule.metric == scalars[i].label)
      found.push_back(i);
  // A metric of the step may have the name of one of the trace.
  if (!rule.tensors.empty() && needsTrace(rule))
    found.clear();
  rule.ofTrace = found.empty() && needsTrace(rule);
  std::vector<std::string> names;
  for (const Scalar &scalar : scalars)
    names.push_back(scalar.label);
  if (found.empty() && !rule.ofTrace)
    throw unresolved(rule, str("there is no metric '", rule.metric,
                               "'; expected one of the step (", listText(names),
                               ") or of its trace (",
                               listText(traceMetricNames()), ")"));
  if (found.size() > 1)
    throw unresolved(rule,
                     str("'", rule.metric, "' is the name of ", found.size(),
                         " metrics; expected a whole path"));
  if (rule.ofTrace)
    return watchTensors(rule);
  if (!rule.tensors.empty())
    throw unresolved(rule, str("'", rule.metric,
                               "' is one number of the step; expected @TENSORS "
                               "with a metric of the trace only"));
  rule.watches.push_back({found[0], 0, {}, false});
}

Alarms::Alarms(const char *const *texts, int64_t numRules,
               const std::vector<std::string> &paths, const Trace &trace)
    : trace(trace) {
  checkTexts("alarms", texts, numRules);
  std::vector<std::string> labels =
      shortNames({paths.begin() + 1, paths.end()});
  labels.insert(labels.begin(), "loss");
  for (size_t i = 0; i < paths.size(); ++i)
    scalars.push_back({paths[i], labels[i]});
  for (int64_t i = 0; i < numRules; ++i) {
    Rule rule;
    static_cast<AlarmRule &>(rule) = parseAlarm(texts[i]);
    resolve(rule);
    rules.push_back(std::move(rule));
  }
}

bool Alarms::watchTrace() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const Rule &rule) { return rule.ofTrace; });
}

bool Alarms::maySkip() const {
  return std::any_of(rules.begin(), rules.end(), [](const Rule &rule) {
    return rule.action == FP8_ALARM_SKIP;
  });
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

double Alarms::valueOf(const Rule &rule, const Watch &watch,
                       const std::vector<double> &values) const {
  return rule.ofTrace ? trace.series()[watch.source].values[watch.index]
                      : values[watch.source];
}

std::string Alarms::placeOf(const Rule &rule, const Watch &watch) const {
  if (!rule.ofTrace)
    return rule.metric;
  return str(rule.metric, " of ",
             placeText(trace.series()[watch.source], watch.index));
}

/// Returns the limit of a watch; nothing while too few values are known for
/// their median.
std::optional<double> Alarms::limitOf(const Rule &rule, const Watch &watch) {
  if (rule.medianOf <= 0)
    return rule.threshold;
  if (static_cast<int64_t>(watch.recent.size()) != rule.medianOf)
    return std::nullopt;
  return rule.threshold * median({watch.recent.begin(), watch.recent.end()});
}

/// Remembers a value for the median of later steps.
void Alarms::remember(const Rule &rule, Watch &watch, double value,
                      bool isRaised) {
  // A value from a discarded step must not enter the median.
  bool isTaken = !isRaised || rule.action != FP8_ALARM_SKIP;
  if (rule.medianOf <= 0 || !isTaken || !std::isfinite(value))
    return;
  watch.recent.push_back(value);
  if (static_cast<int64_t>(watch.recent.size()) > rule.medianOf)
    watch.recent.pop_front();
}

/// Adds an alarm to the verdict; `isNew` is false if the last step had it, too.
static void addAlarm(fp8_alarm_action action, bool isNew,
                     const std::string &reason, AlarmVerdict &verdict) {
  switch (action) {
  case FP8_ALARM_WARN:
    // An alarm that continues has been reported already.
    if (isNew)
      verdict.warnings.push_back(reason);
    break;
  case FP8_ALARM_STOP:
    if (!verdict.stop)
      verdict.stop = reason;
    break;
  case FP8_ALARM_SKIP:
    if (!verdict.skip)
      verdict.skip = reason;
    break;
  }
}

void Alarms::check(Rule &rule, int64_t step, const std::vector<double> &values,
                   AlarmVerdict &verdict) {
  // The amax of a tensor reveals values that are not finite; the other metrics
  // are then undefined, as they are for a tensor of zeros.
  bool nanIsAlarm = !rule.ofTrace || rule.metric == "amax";
  size_t raised = 0, begun = 0;
  std::string first;
  for (Watch &watch : rule.watches) {
    double value = valueOf(rule, watch, values);
    std::optional<double> limit = limitOf(rule, watch);
    bool isRaised = std::isnan(value) ? nanIsAlarm
                    : !limit          ? false
                    : rule.below      ? value < *limit
                                      : value > *limit;
    remember(rule, watch, value, isRaised);
    if (isRaised) {
      ++raised;
      begun += !watch.isRaised;
      // Report the first watch that was not yet raised in the last step.
      if (first.empty() || (begun == 1 && !watch.isRaised))
        first =
            str(placeOf(rule, watch), " is ", numberText(value),
                std::isnan(value) ? ""
                                  : str(rule.below ? ", below " : ", above ",
                                        numberText(*limit)));
    }
    watch.isRaised = isRaised;
  }
  if (raised == 0)
    return;
  if (raised > 1)
    first += str(" (and ", raised - 1, " more)");
  addAlarm(rule.action, begun > 0,
           str("step ", step, ": ", first, " [", rule.text, "]"), verdict);
}

std::vector<std::string> AlarmVerdict::all() const {
  std::vector<std::string> lines = warnings;
  for (const auto &reason : {stop, skip})
    if (reason)
      lines.push_back(*reason);
  return lines;
}

AlarmVerdict Alarms::check(int64_t step, const std::vector<double> &values) {
  AlarmVerdict verdict;
  for (Rule &rule : rules)
    check(rule, step, values, verdict);
  return verdict;
}

} // namespace fp8::rt
