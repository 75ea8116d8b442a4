//===- TrainInitialState.cpp - The initial state of a run -----------------===//

#include "Trainer.h"

#include <cstring>

namespace fp8::rt {

void Trainer::initialize() {
  std::unique_ptr<InitialValues> initial;
  auto isMissing = [](const std::unique_ptr<Evaluation> &each) {
    return each && !each->missing().empty();
  };
  // (A resumed run goes on with the checkpoint's seed.)
  if (options.resume)
    resume();
  if (!options.resume || isMissing(evaluation) || isMissing(exportEvaluation))
    initial = std::make_unique<InitialValues>(options.init_file, options.init,
                                              position.seed, options.threads);
  if (!options.resume)
    begin(*initial);
  readKeys();
  if (position.shuffle)
    arrays.shuffle(position.seed);
  noteInfiniteState();
  for (Evaluation *each : {evaluation.get(), exportEvaluation.get()})
    if (each)
      prepareEvaluation(*each, initial.get());
}

//===----------------------------------------------------------------------===//
// A new run
//===----------------------------------------------------------------------===//

void Trainer::begin(const InitialValues &initial) {
  // A checkpoint of this recipe has the state in stored form.
  StoredState asStored(step->executable, nullptr, nullptr, options.threads);
  bool isStored = state->changes() && initial.fileHas(state->storedNames());
  StoredState &form = isStored ? asStored : *state;
  const std::vector<StoredState::Leaf> &tree = form.tree();
  std::vector<size_t> leaves, optionalLeaves; // behind the keys
  std::vector<NamedTensor> targets, optional;
  for (size_t i : keyArguments(step->executable))
    optional.push_back({arguments()[i].name, arguments()[i].type});
  size_t numKeys = optional.size();
  for (size_t i = 0; i < tree.size(); ++i) {
    (tree[i].zeroInit ? optional : targets).push_back(tree[i].named);
    (tree[i].zeroInit ? optionalLeaves : leaves).push_back(i);
  }
  InitialValues::Values found = initial.find(targets, optional);
  if (!found.unused.empty())
    console.printLine(str("note: ", found.unused.size(), " tensors of '",
                          options.init_file, "' are not used, '",
                          found.unused[0].name, "' first"));
  setKeys(found.optional);
  std::vector<Value> values(tree.size());
  for (size_t i = 0; i < leaves.size(); ++i)
    values[leaves[i]] = found.targets[i];
  for (size_t i = 0; i < optionalLeaves.size(); ++i)
    values[optionalLeaves[i]] = found.optional[numKeys + i];
  form.write(values, *step);
}

/// Writes the key arguments; those without a value get a key from the seed.
void Trainer::setKeys(const std::vector<Value> &values) {
  std::vector<size_t> indices = keyArguments(step->executable);
  for (size_t i = 0; i < indices.size(); ++i) {
    const TensorInfo &argument = arguments()[indices[i]];
    Key first;
    if (!values[i])
      first = firstKey(position.seed, i, argument);
    step->set(indices[i], values[i] ? values[i] : Value(first.data()));
  }
}

//===----------------------------------------------------------------------===//
// A resumed run
//===----------------------------------------------------------------------===//

void Trainer::resume() {
  CheckpointInfo info =
      resumeFromNewest(directory, *step, position.fingerprint, checkpoint,
                       [&](const std::string &text) {
                         if (text.compare(0, 8, "warning:") == 0)
                           console.warn(text);
                         else
                           console.printLine(text);
                       });
  savedStep = info.step;
  checkResumed(info);
  position.step = info.step;
  position.batches = info.batches;
  position.seed = info.seed;
  position.rows = info.rows;
  position.mayBeInfinite = info.mayBeInfinite;
  if (std::string text = nonFiniteStateText(); !text.empty())
    console.warn(str("warning: ", checkpoint, " is not finite: ", text));
  console.printLine(str("resuming from ", checkpoint));
}

/// Throws if the run cannot continue, and warns if it will differ.
void Trainer::checkResumed(const CheckpointInfo &info) {
  if (options.steps < info.step)
    throw Error(FP8_ERROR_INVALID,
                str("expected at least ", info.step, " steps, which is where '",
                    checkpoint, "' stands, but got ", options.steps,
                    ": steps count in all, those before a resume included"));
  if (info.seed != position.seed) {
    // 0 is also what those have who say nothing.
    if (position.seed != 0)
      console.warn(str("warning: expected --seed ", info.seed,
                       ", with which the run began, but got ", position.seed,
                       ": going on with ", info.seed));
    else
      console.printLine(
          str("note: going on with the checkpoint's seed ", info.seed));
  }
  if (!missingData.empty() && info.step < options.steps)
    throw Error(FP8_ERROR_DATA, missingData);
  if (missingData.empty() && info.dataFingerprint != position.dataFingerprint)
    console.warn("warning: the data are not those that the checkpoint was "
                 "trained on: the run does not continue exactly");
  if (info.fingerprint != position.fingerprint)
    warnOfOtherRun(info.fingerprint);
  if (info.shuffle != position.shuffle)
    console.warn(str("warning: the checkpoint's run ",
                     info.shuffle ? "shuffled" : "did not shuffle",
                     " its data, this one does", position.shuffle ? "" : " not",
                     ": the run does not continue exactly"));
}

/// Warns that another run wrote the checkpoint.
void Trainer::warnOfOtherRun(const std::string &fingerprint) {
  FingerprintDifference other =
      compareFingerprints(fingerprint, position.fingerprint);
  if (other.isEarlier)
    return console.warn(
        "warning: the checkpoint is of an earlier version, which kept its "
        "recipe's name alone and no compiler: whether the run continues "
        "exactly is not known");
  if (other.found.empty())
    return;
  using Subjects = std::set<std::string>;
  const char *what = "module or recipe are not those", *then = "does not";
  if (other.subjects == Subjects{"compiler"})
    what = "the compiler is not that";
  else if (other.subjects == Subjects{"arithmetic"})
    what = "the processor's arithmetic is not that";
  else if (other.subjects == Subjects{"arithmetic", "compiler"})
    what = "the compiler and the processor's arithmetic are not those";
  if (!other.subjects.count("module") && !other.subjects.count("recipe") &&
      !other.subjects.count(""))
    then = "may not";
  console.warn(str("warning: ", what, " of the checkpoint ('", other.found,
                   "', this is '", other.expected, "'): the run ", then,
                   " continue exactly"));
}

//===----------------------------------------------------------------------===//
// New and resumed runs
//===----------------------------------------------------------------------===//

/// Keeps the initial values of keys, from which each step's keys follow.
void Trainer::readKeys() {
  for (size_t i : keyArguments(step->executable)) {
    const TensorType &type = arguments()[i].type;
    if (!isKeyType(type))
      throw Error(FP8_ERROR_INVALID,
                  str("key argument '", arguments()[i].name,
                      "': expected u32[2] or u32[4] but got ", type.text()));
    Key key(type.elements());
    std::memcpy(key.data(), step->value(i), type.bytes());
    keys.emplace_back(i, std::move(key));
  }
}

void Trainer::prepareEvaluation(Evaluation &each,
                                const InitialValues *initial) {
  std::vector<Value> values;
  if (initial)
    values = initial->find({}, each.missing()).optional;
  auto keyOf = [&](const TensorInfo &info) {
    for (const auto &[argument, key] : keys)
      if (arguments()[argument].name == info.name &&
          arguments()[argument].type == info.type)
        return key;
    return firstKey(position.seed, 0, info);
  };
  each.prepare(*step, values, keyOf, options.threads);
}

} // namespace fp8::rt
