//===- TrainNonFinite.cpp - Ending a run at values that are not finite ----===//

#include "../Support/Elements.h"
#include "Trainer.h"

#include <cmath>

namespace fp8::rt {

/// Returns "[3, 17]" for an element of a tensor; "" for a scalar.
static std::string elementText(const TensorType &type, int64_t index) {
  if (type.dims.empty())
    return "";
  std::vector<int64_t> position(type.dims.size());
  for (size_t i = type.dims.size(); i-- > 0;) {
    position[i] = index % type.dims[i];
    index /= type.dims[i];
  }
  std::string text = "[";
  for (size_t i = 0; i < position.size(); ++i)
    text += (i ? ", " : "") + std::to_string(position[i]);
  return text + "]";
}

/// Returns "w[3, 17] is nan" for the first element that is not finite in a
/// range of bytes of a tensor; "" if there is none.
static std::string nonFiniteText(const TensorInfo &info, const char *data,
                                 Slice bytes) {
  auto size = static_cast<int64_t>(fp8_dtype_size(info.type.dtype));
  int64_t at = firstNonFinite(data + bytes.begin,
                              {info.type.dtype, {bytes.count / size}});
  if (at < 0)
    return "";
  at += bytes.begin / size;
  return str(info.name, elementText(info.type, at), " is ",
             numberText(elementAsDouble(data, info.type.dtype, at)));
}

/// Names the rank that a value came from that is not finite after `step`, as
/// far as what the ranks have sent shows it.
static std::string sourceText(fp8_group *group, int64_t step) {
  std::optional<NonFiniteSource> source;
  if (group && group->size() > 1)
    source = group->nonFiniteSource();
  if (!source)
    return "";
  return str("; rank ", source->rank, " of ", group->size(),
             " was the first with such a value, in its part of '",
             source->label, "' of step ",
             step - (group->numRuns() - source->firstRun));
}

void Trainer::failNonFinite(const std::string &what) {
  throw Error(FP8_ERROR_NONFINITE,
              what + sourceText(options.group, position.step) +
                  (checkpoint.empty()
                       ? "; no checkpoint had been written"
                       : str("; the last checkpoint is ", checkpoint)));
}

/// Notes which state begins with values that are not finite, as the best loss
/// so far may. Warns if parameters or moments of a new run do.
void Trainer::noteInfiniteState() {
  bool warns = !options.resume;
  for (size_t i : stateArguments(step->executable)) {
    const TensorInfo &argument = arguments()[i];
    if (firstNonFinite(step->value(i), argument.type) < 0)
      continue;
    position.mayBeInfinite.insert(argument.name);
    if (warns && argument.kind != FP8_KIND_OTHER) {
      console.warn(
          "warning: the initial values are not finite: " +
          nonFiniteText(argument, step->value(i), {0, argument.type.bytes()}));
      warns = false;
    }
  }
}

/// Describes the first value that is not finite in state that must be finite
/// and that this rank has.
std::string Trainer::nonFiniteStateText() {
  std::string text;
  for (size_t i = 0; i < arguments().size() && text.empty(); ++i)
    if (arguments()[i].role == FP8_ROLE_STATE &&
        !position.mayBeInfinite.count(arguments()[i].name))
      text = nonFiniteText(arguments()[i], step->value(i),
                           step->ownBytes(arguments()[i]));
  return text;
}

/// Describes the first value that is not finite. State comes first: it is
/// nearer to the cause.
std::string Trainer::firstNonFiniteText() {
  std::string text = nonFiniteStateText();
  for (size_t i = 0; i < results().size() && text.empty(); ++i)
    if (results()[i].stateArg < 0 && !isTrace(results()[i].kind))
      text = nonFiniteText(results()[i], step->result(i),
                           {0, results()[i].type.bytes()});
  return text;
}

/// Describes the first value that is not finite in the batch of the last step.
/// It need not be the cause: masks may have infinite values.
std::string Trainer::nonFiniteBatchText() {
  // A GPU may have the next batch already.
  if (step->isAsynchronous())
    feedAgain();
  std::string text;
  for (size_t i = 0; i < arguments().size() && text.empty(); ++i)
    if (arguments()[i].role == FP8_ROLE_BATCH)
      text = nonFiniteText(arguments()[i], step->value(i),
                           {0, arguments()[i].type.bytes()});
  return text.empty() ? "" : "; in its batch, " + text;
}

void Trainer::checkFinite(const LogRow &row) {
  if (!std::isfinite(row.loss))
    failNonFinite(str("step ", row.step, ": the loss is ", numberText(row.loss),
                      "; first non-finite value: ", firstNonFiniteText(),
                      nonFiniteBatchText()));
}

void Trainer::checkStateFinite() {
  std::string text = nonFiniteStateText();
  // A bad value on one rank ends all ranks.
  if (step->isDealt() || step->hasParts())
    for (const std::string &each : options.group->gather(text))
      if (text.empty())
        text = each;
  if (!text.empty())
    failNonFinite(
        str("step ", position.step, ": the state is not finite: ", text));
}

} // namespace fp8::rt
