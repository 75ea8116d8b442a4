//===- Alarm.h - Rules about a run's metrics --------------------*- C++ -*-===//
//
//   METRIC[@TENSORS] > VALUE : ACTION        (or <)
//   METRIC[@TENSORS] > FACTORx median(N) : ACTION
//
// See docs/Runtime.md.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_ALARM_H
#define FP8_LIB_RUNTIME_ALARM_H

#include "Trace.h"

#include <deque>
#include <optional>

namespace fp8::rt {

struct AlarmRule {
  std::string text; ///< As it was written.
  std::string metric;
  std::string tensors; ///< A pattern of tree paths; "": all.
  bool below = false;
  double threshold = 0; ///< Or a factor of the median.
  int64_t medianOf = 0; ///< Steps; 0: the threshold stands for itself.
  fp8_alarm_action action = FP8_ALARM_WARN;
};

/// Throws Error with what is expected instead.
AlarmRule parseAlarm(const std::string &text);

/// Whether the rule is about a metric of the trace.
bool needsTrace(const AlarmRule &rule);

/// `*` is any text, `?` any letter; brackets are those of the path.
bool matchesPath(const std::string &pattern, const std::string &path);

/// What the rules say of one step.
struct AlarmVerdict {
  std::vector<std::string> warnings; ///< To be said.
  std::optional<std::string> skip;   ///< Why the step is not taken.
  std::optional<std::string> stop;   ///< Why it is the last one.

  /// All of these, as they are logged.
  std::vector<std::string> all() const;
};

/// The rules of a run and what they remember of earlier steps.
class Alarms {
public:
  /// Rules about the loss, metrics of these paths and the trace. Throws Error
  /// where one fits nothing.
  Alarms(const char *const *rules, int64_t numRules,
         const std::vector<std::string> &metrics, const Trace &trace);

  bool empty() const { return rules.empty(); }
  bool maySkip() const;

  /// The loss comes first.
  AlarmVerdict check(int64_t step, const std::vector<double> &scalars);

private:
  /// A scalar of the step: the loss, or a metric of the user.
  struct Scalar {
    std::string path;
    std::string label; ///< Its last keys, as they are shown.
  };
  /// One number that a rule watches.
  struct Watch {
    size_t source; ///< Of the scalars, or of the trace's series.
    size_t index;  ///< Layer.
    std::deque<double> recent;
    bool isRaised = false;
  };
  struct Rule : AlarmRule {
    bool ofTrace = false;
    std::vector<Watch> watches;
  };

  void resolve(Rule &rule) const;
  double valueOf(const Rule &rule, const Watch &watch,
                 const std::vector<double> &values) const;
  std::string placeOf(const Rule &rule, const Watch &watch) const;
  void check(Rule &rule, int64_t step, const std::vector<double> &scalars,
             AlarmVerdict &verdict);

  std::vector<Rule> rules;
  std::vector<Scalar> scalars;
  const Trace &trace;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_ALARM_H
