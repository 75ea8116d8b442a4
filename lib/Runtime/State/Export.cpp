//===- Export.cpp - Trained weights for other programs --------------------===//

#include "Export.h"
#include "../Support/Elements.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace fp8::rt {

using json = nlohmann::json;

/// Returns the index of the tensor with the name and type of `info`, or -1.
template <typename Range, typename NamedOf>
static int64_t findSame(const Range &range, const TensorInfo &info,
                        NamedOf &&namedOf) {
  int64_t index = 0;
  for (const auto &element : range) {
    const auto &[name, type] = namedOf(element);
    if (name == info.name && type == info.type)
      return index;
    ++index;
  }
  return -1;
}

WeightExport::WeightExport(const fp8_export &options,
                           const fp8_executable &step, const StoredState &state,
                           int threads)
    : options(options), threads(threads) {
  if (!options.directory || !*options.directory || !options.encode)
    throw Error(FP8_ERROR_INVALID,
                "expected a directory and a function for the export");
  directory = options.directory;
  path = directory + "/model.safetensors";
  json manifest = json::parse(options.manifest ? options.manifest : "{}",
                              nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object())
    throw Error(FP8_ERROR_INVALID,
                "expected a JSON object for the manifest of the export");
  auto ofLeaf = [](const StoredState::Leaf &leaf) {
    return std::pair<const std::string &, const TensorType &>(leaf.named.name,
                                                              leaf.named.type);
  };
  auto ofInfo = [](const TensorInfo &info) {
    return std::pair<const std::string &, const TensorType &>(info.name,
                                                              info.type);
  };
  for (const TensorInfo &argument : options.encode->arguments) {
    Source source;
    source.leaf = findSame(state.tree(), argument, ofLeaf);
    if (source.leaf >= 0)
      wantedLeaves.push_back(source.leaf);
    else
      source.argument = findSame(step.arguments, argument, ofInfo);
    if (source.leaf < 0 && source.argument < 0)
      throw Error(FP8_ERROR_INVALID,
                  str("argument of the export '", argument.name, "' ",
                      argument.type.text(), ": the step has none like it"));
    sources.push_back(source);
  }
  if (!options.decode)
    return;
  for (const TensorInfo &argument : options.decode->arguments)
    if (findSame(options.encode->results, argument, ofInfo) < 0)
      throw Error(FP8_ERROR_INVALID,
                  str("argument of what reads the export '", argument.name,
                      "' ", argument.type.text(),
                      ": the export has none like it"));
  for (const StoredState::Leaf &leaf : state.tree()) {
    TensorInfo info;
    info.name = leaf.named.name;
    info.type = leaf.named.type;
    decoded.push_back(findSame(options.decode->results, info, ofInfo));
  }
}

void WeightExport::write(StoredState &state, fp8_step &step) {
  createDirectories(directory);
  expectNoPackage(directory, "the weights");
  encode = std::make_unique<fp8_step>(*options.encode, threads);
  {
    StoredState::Loaded values = state.read(step, wantedLeaves);
    for (size_t i = 0; i < sources.size(); ++i) {
      encode->set(i, sources[i].leaf >= 0
                         ? values[sources[i].leaf]
                         : Value::argument(step, sources[i].argument));
    }
  }
  encode->run();
  std::vector<TensorToWrite> tensors;
  const std::vector<TensorInfo> &results = options.encode->results;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind == FP8_KIND_METRIC)
      continue;
    tensors.push_back({results[i].name, results[i].type, encode->result(i)});
    fileBytes += results[i].type.bytes();
  }
  writeSafeTensors(path, std::move(tensors), {{"format", "pt"}});
}

/// Returns 10 log10 of the signal's power over the error's; infinite without
/// error.
static double signalToNoise(const std::vector<double> &signal,
                            const std::vector<double> &other) {
  double power = 0, error = 0;
  for (size_t i = 0; i < signal.size(); ++i) {
    power += signal[i] * signal[i];
    error += (signal[i] - other[i]) * (signal[i] - other[i]);
  }
  return 10 * std::log10(power / error);
}

std::optional<WeightExport::Check>
WeightExport::check(Evaluation &evaluation, const std::function<bool()> &stop) {
  if (!options.decode)
    return std::nullopt;
  auto logitsOf = [&](fp8_step &step) {
    std::vector<double> values;
    for (size_t i = 0; i < step.executable.results.size(); ++i) {
      const TensorInfo &result = step.executable.results[i];
      if (!options.logits || result.name != options.logits)
        continue;
      for (int64_t j = 0; j < result.type.elements(); ++j)
        values.push_back(elementAsDouble(step.result(i), result.type.dtype, j));
    }
    return values;
  };
  // Check the file that was actually written.
  TensorFile file = readSafeTensors(path);
  fp8_step decode(*options.decode, threads);
  for (size_t i = 0; i < options.decode->arguments.size(); ++i) {
    const TensorInfo &argument = options.decode->arguments[i];
    const TensorFile::Tensor *tensor = file.find(argument.name);
    if (!tensor || tensor->type != argument.type)
      throw Error(FP8_ERROR_FORMAT,
                  str("'", path, "' has no tensor '", argument.name, "' ",
                      argument.type.text(), " any more"));
    std::memcpy(decode.argument(i), tensor->data, argument.type.bytes());
  }
  decode.run();
  std::vector<Value> given;
  for (int64_t result : decoded)
    given.push_back(result >= 0 ? Value::result(decode, result) : Value());

  std::vector<double> logits[2];
  std::optional<std::vector<double>> means[2];
  for (bool exported : {false, true}) {
    auto see = [&](int64_t batch, fp8_step &step) {
      if (batch == 0)
        logits[exported] = logitsOf(step);
    };
    means[exported] =
        evaluation.run(stop, exported ? given : std::vector<Value>(), see);
    if (!means[exported])
      return std::nullopt;
  }
  Check check{means[0]->front(), means[1]->front(), std::nullopt};
  if (!logits[0].empty())
    check.logitsSNR = signalToNoise(logits[0], logits[1]);
  return check;
}

void WeightExport::writeManifest(int64_t step,
                                 const std::optional<Check> &check) const {
  json manifest = json::parse(options.manifest ? options.manifest : "{}");
  manifest["step"] = step;
  const std::vector<TensorInfo> &results = options.encode->results;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].kind == FP8_KIND_METRIC)
      manifest["numbers"][results[i].name] =
          elementAsDouble(encode->result(i), results[i].type.dtype, 0);
  if (check)
    manifest["heldout_loss"] = {{"model", check->model},
                                {"exported", check->exported}};
  // JSON has no infinity: an SNR without error is left out.
  if (check && check->logitsSNR && std::isfinite(*check->logitsSNR))
    manifest["logits_snr_db"] = *check->logitsSNR;
  writeFileAtomically(directory + "/export.json", manifest.dump(2) + "\n");
}

} // namespace fp8::rt
