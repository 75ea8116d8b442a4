//===- Evaluation.cpp - The loss on held-out data -------------------------===//

#include "Evaluation.h"
#include "../State/Checkpoint.h"
#include "../Support/Elements.h"

#include <algorithm>
#include <cstring>

namespace fp8::rt {

void Evaluation::findScalars() {
  const std::vector<TensorInfo> &results = function.results;
  auto isLoss = [&](size_t i) {
    return results[i].kind == FP8_KIND_LOSS && isFloat(results[i].type.dtype);
  };
  auto isNumber = [&](size_t i) { return isFloat(results[i].type.dtype); };
  // Returns the number of keys in the path of a result that is named so.
  auto depthOfLoss = [&](size_t i) {
    std::vector<std::string> keys = splitPath(results[i].name);
    return isNumber(i) && !keys.empty() && keys.back() == "loss" ? keys.size()
                                                                 : SIZE_MAX;
  };
  // The scales and histories that delayed scaling adds are not metrics of the
  // model.
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].type.elements() == 1 && results[i].kind != FP8_KIND_STATE)
      scalars.push_back(i);
  // The loss is the result named so, with the shortest path (others are parts
  // of it), else the one that the signature marks, else the first float.
  auto loss =
      std::min_element(scalars.begin(), scalars.end(), [&](size_t a, size_t b) {
        return depthOfLoss(a) < depthOfLoss(b);
      });
  if (loss != scalars.end() && depthOfLoss(*loss) == SIZE_MAX)
    loss = std::find_if(scalars.begin(), scalars.end(), isLoss);
  if (loss == scalars.end())
    loss = std::find_if(scalars.begin(), scalars.end(), isNumber);
  if (loss == scalars.end())
    throw Error(FP8_ERROR_DATA, "the evaluation has no scalar result: expected "
                                "a loss");
  std::rotate(scalars.begin(), loss, loss + 1);
}

void Evaluation::findData(const fp8_train_options &options,
                          const fp8_executable &trainedFunction, bool hasText,
                          TensorFiles &files) {
  const std::vector<TensorInfo> &arguments = function.arguments;
  arrays = ArrayBatches::ofEvaluation(options, arguments, files);
  // An integer array that is also the step's state or key is not data.
  std::vector<bool> taken(arguments.size(), false);
  for (size_t i = 0; i < arguments.size(); ++i) {
    taken[i] = arrays.feeds(i);
    if (arguments[i].role == FP8_ROLE_KEY)
      taken[i] = true;
    for (const TensorInfo &other : trainedFunction.arguments)
      if (other.role != FP8_ROLE_BATCH && other.name == arguments[i].name &&
          other.type == arguments[i].type)
        taken[i] = true;
  }
  if (hasText)
    text = findTextArguments("the evaluation", arguments, taken);
  if (text.input < 0 && !arrays.hasRows())
    throw Error(FP8_ERROR_DATA,
                "the evaluation has no data: expected text for an integer "
                "argument, or arrays (--eval-batch)");
  if (text.input < 0)
    numBatches = arrays.wholeBatches();
}

Evaluation::Evaluation(const fp8_executable &function,
                       const fp8_executable &trainedFunction,
                       StoredState &state, const fp8_train_options &options,
                       bool hasText, TensorFiles &files)
    : function(function), state(state) {
  findScalars();
  findData(options, trainedFunction, hasText, files);
  std::vector<NamedTensor> targets, sources;
  std::vector<size_t> targetIndices;
  const std::vector<TensorInfo> &arguments = function.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    int64_t index = static_cast<int64_t>(i);
    if (index == text.input || index == text.target || arrays.feeds(i))
      continue;
    targets.push_back({arguments[i].name, arguments[i].type});
    targetIndices.push_back(i);
  }
  for (const StoredState::Leaf &leaf : state.tree())
    sources.push_back(leaf.named);
  Binding binding = bindByPath(targets, sources);
  Binding wrong;
  // A key of the step is a key of the evaluation too, even if it is unused.
  auto isKey = [&](const TensorInfo &info) {
    for (size_t i : keyArguments(trainedFunction))
      if (trainedFunction.arguments[i].name == info.name &&
          trainedFunction.arguments[i].type == info.type)
        return true;
    return info.role == FP8_ROLE_KEY && isKeyType(info.type);
  };
  for (size_t i = 0; i < targets.size(); ++i) {
    size_t argument = targetIndices[i];
    if (binding.sources[i] >= 0) {
      boundArguments.push_back(argument);
      boundLeaves.push_back(binding.sources[i]);
    } else if (isKey(arguments[argument])) {
      keys.emplace_back(argument, Key());
    } else {
      missingArguments.push_back(argument);
      missingNames.push_back(targets[i]);
    }
  }
  if (!binding.misshaped.empty()) {
    wrong.misshaped = binding.misshaped;
    throw Error(FP8_ERROR_MISMATCH,
                describe(wrong,
                         "the evaluation's arguments do not fit the step's:",
                         targets, sources));
  }
}

void Evaluation::setText(const TextData &data) {
  textData = &data;
  windows = data.heldOutWindows(text.span());
  numBatches = static_cast<int64_t>(windows.size()) / text.rows;
  if (numBatches == 0)
    throw Error(FP8_ERROR_DATA,
                str("the held-out text is too short: its ",
                    groupedText(data.heldOutTokens()), " ", data.unit(),
                    " make ", windows.size(), " rows of ", text.span(),
                    " but one evaluation takes ", text.rows,
                    ": give more data, hold out more, or give evaluation "
                    "files"));
  windows.resize(numBatches * text.rows);
}

void Evaluation::prepare(fp8_step &trainedStep,
                         const std::vector<Value> &missing,
                         const std::function<Key(const TensorInfo &)> &keyOf,
                         int threads) {
  Binding binding;
  for (size_t i = 0; i < missingArguments.size(); ++i)
    if (i >= missing.size() || !missing[i])
      binding.missing.push_back(static_cast<int64_t>(i));
  if (!binding.complete())
    throw Error(FP8_ERROR_MISMATCH,
                describe(binding,
                         "the evaluation's arguments are found neither in the "
                         "step nor in the initial values (data are given by "
                         "--eval-batch):",
                         missingNames, {}));
  trained = &trainedStep;
  step = std::make_unique<fp8_step>(function, threads);
  for (size_t i = 0; i < missingArguments.size(); ++i)
    step->set(missingArguments[i], missing[i]);
  for (auto &[argument, key] : keys)
    key = keyOf(function.arguments[argument]);
}

std::string Evaluation::dataFingerprint() const {
  return str(numBatches, " batches of ",
             textData ? textData->fingerprint() : "no text", "/",
             arrays.fingerprint());
}

/// Returns the values of all batches, one batch after the other; this rank has
/// computed those of its own batches.
std::vector<double> Evaluation::collect(std::vector<double> mine) const {
  if (!group)
    return mine;
  std::vector<std::string> all =
      group->gather(std::string(reinterpret_cast<const char *>(mine.data()),
                                mine.size() * sizeof(double)));
  size_t row = scalars.size() * sizeof(double);
  for (int64_t rank = 0; rank < group->size(); ++rank) {
    int64_t count =
        numBatches > rank ? (numBatches - rank - 1) / group->size() + 1 : 0;
    if (all[rank].size() != count * row)
      throw Error(FP8_ERROR_RANK,
                  str("rank ", rank, " of ", group->size(),
                      " has other held-out data than rank ", group->rank(),
                      ", which has ", numBatches, " batches"));
  }
  std::vector<double> values(numBatches * scalars.size());
  for (int64_t batch = 0; batch < numBatches; ++batch)
    std::memcpy(values.data() + batch * scalars.size(),
                all[batch % group->size()].data() + batch / group->size() * row,
                row);
  return values;
}

/// Copies the values of the trained step's state to the arguments that take
/// them, or those of `given` where it has some.
void Evaluation::bindState(const std::vector<Value> &given) {
  auto isGiven = [&](size_t leaf) { return !given.empty() && given[leaf]; };
  std::vector<size_t> wanted;
  std::copy_if(boundLeaves.begin(), boundLeaves.end(),
               std::back_inserter(wanted),
               [&](size_t leaf) { return !isGiven(leaf); });
  StoredState::Loaded values = state.read(*trained, wanted);
  for (size_t i = 0; i < boundArguments.size(); ++i) {
    size_t leaf = boundLeaves[i];
    step->set(boundArguments[i], isGiven(leaf) ? given[leaf] : values[leaf]);
  }
}

/// Writes the data and the keys of a batch to the arguments that take them.
void Evaluation::feed(int64_t batch, RowPosition &position) {
  for (int64_t row = 0; row < text.rows; ++row)
    storeWindow(windows[batch * text.rows + row], text, function.arguments, row,
                step->argument(text.input),
                text.target >= 0 ? step->argument(text.target) : nullptr);
  arrays.store(position, batch, [&](size_t i) { return step->argument(i); });
  // Every evaluation uses the same keys, so that results are comparable.
  for (const auto &[argument, key] : keys) {
    Key words = foldIn(key, static_cast<uint32_t>(batch));
    std::memcpy(step->argument(argument), words.data(),
                words.size() * sizeof(uint32_t));
  }
}

std::optional<std::vector<double>>
Evaluation::run(const std::function<bool()> &stop,
                const std::vector<Value> &given,
                const std::function<void(int64_t batch, fp8_step &)> &seen) {
  bindState(given);
  std::vector<double> values;
  RowPosition position;
  for (int64_t batch = 0; batch < numBatches; ++batch) {
    if (stop())
      return std::nullopt;
    if (group && batch % group->size() != group->rank()) {
      arrays.skip(position, 1);
      continue;
    }
    feed(batch, position);
    step->run();
    if (seen)
      seen(batch, *step);
    for (size_t i : scalars)
      values.push_back(
          elementAsDouble(step->result(i), function.results[i].type.dtype, 0));
  }
  values = collect(std::move(values));
  std::vector<double> sums(scalars.size(), 0.0);
  for (size_t i = 0; i < values.size(); ++i)
    sums[i % scalars.size()] += values[i];
  for (double &sum : sums)
    sum /= static_cast<double>(numBatches);
  return sums;
}

std::vector<std::string> Evaluation::metricNames() const {
  std::vector<std::string> names;
  for (size_t i = 1; i < scalars.size(); ++i)
    names.push_back(function.results[scalars[i]].name);
  return names;
}

std::string Evaluation::dataText() const {
  if (textData)
    return str(groupedText(windows.size() * text.span()), " ", textData->unit(),
               " of text that it did not train on (",
               groupedText(textData->heldOutTokens()), " held out)");
  return str(groupedText(numBatches * arrays.rowsPerStep()),
             " rows of arrays (", groupedText(arrays.rows()), " given)");
}

} // namespace fp8::rt
