//===- Alarm.h - Rules about a run's metrics --------------------*- C++ -*-===//
//
//   METRIC[@TENSORS] > VALUE : ACTION        (or <)
//   METRIC[@TENSORS] > FACTORx median(N) : ACTION
//
// See docs/Runtime.md.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_METRICS_ALARM_H
#define FP8_LIB_RUNTIME_METRICS_ALARM_H

#include "Trace.h"

#include <deque>
#include <optional>

namespace fp8::rt {

struct AlarmRule {
  std::string text; ///< As the user wrote it.
  std::string metric;
  std::string tensors; ///< Glob of tree paths; "": all.
  bool below = false;
  double threshold = 0; ///< Or a factor of the median.
  int64_t medianOf = 0; ///< Steps; 0: the threshold is absolute.
  fp8_alarm_action action = FP8_ALARM_WARN;
};

/// Parses a rule. Throws Error with the expected syntax.
AlarmRule parseAlarm(const std::string &text);

/// Returns whether the rule is about a metric of the trace.
bool needsTrace(const AlarmRule &rule);

/// What the rules decide about one step.
struct AlarmVerdict {
  std::vector<std::string> warnings; ///< To be printed.
  std::optional<std::string> skip;   ///< Why the update is discarded.
  std::optional<std::string> stop;   ///< Why training stops.

  /// Returns all of these, as they are logged.
  std::vector<std::string> all() const;
};

/// The rules of a run with their memory of earlier steps.
class Alarms {
public:
  /// Parses rules about scalars of these paths, of which the loss is the first,
  /// and the trace. Throws Error if a rule matches nothing.
  Alarms(const char *const *rules, int64_t numRules,
         const std::vector<std::string> &paths, const Trace &trace);

  bool empty() const { return rules.empty(); }
  /// Returns whether a rule is about a metric of the trace.
  bool watchTrace() const;
  bool maySkip() const;

  /// Checks the scalars of a step, of which the loss is the first.
  AlarmVerdict check(int64_t step, const std::vector<double> &scalars);

private:
  /// A scalar of the step: the loss, or a metric of the user.
  struct Scalar {
    std::string path;
    std::string label; ///< Its last keys, as displayed.
  };
  /// One value that a rule watches.
  struct Watch {
    size_t source; ///< Index of a scalar, or of a series of the trace.
    size_t index;  ///< Layer.
    std::deque<double> recent;
    bool isRaised = false;
  };
  struct Rule : AlarmRule {
    bool ofTrace = false;
    std::vector<Watch> watches;
  };

  void watchTensors(Rule &rule) const;
  void resolve(Rule &rule) const;
  double valueOf(const Rule &rule, const Watch &watch,
                 const std::vector<double> &values) const;
  std::string placeOf(const Rule &rule, const Watch &watch) const;
  static std::optional<double> limitOf(const Rule &rule, const Watch &watch);
  static void remember(const Rule &rule, Watch &watch, double value,
                       bool isRaised);
  void check(Rule &rule, int64_t step, const std::vector<double> &scalars,
             AlarmVerdict &verdict);

  std::vector<Rule> rules;
  std::vector<Scalar> scalars;
  const Trace &trace;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_METRICS_ALARM_H
