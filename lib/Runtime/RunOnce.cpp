//===- RunOnce.cpp - One call, from a file to a file ----------------------===//

#include "State/Binding.h"
#include "State/InitialValues.h"
#include "State/SafeTensors.h"
#include "Step/Step.h"
#include "Train/Train.h"

#include <cstring>

namespace fp8::rt {

/// Copies the tensors of a file to the arguments that they name.
static void readArguments(fp8_step &step, const char *inputs) {
  TensorFile file;
  if (inputs)
    file = readSafeTensors(inputs);
  std::vector<NamedTensor> targets = namesOf(step.executable.arguments);
  std::vector<NamedTensor> sources = namesOf(file);
  Binding binding = bindByPath(targets, sources);
  if (!binding.complete())
    throw Error(FP8_ERROR_MISMATCH,
                describe(binding,
                         inputs ? str("the tensors in '", inputs,
                                      "' do not fit the function:")
                                : "the function's arguments are not given:",
                         targets, sources));
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i].type.bytes())
      std::memcpy(step.argument(i), file.tensors[binding.sources[i]].data,
                  targets[i].type.bytes());
}

void runOnce(const fp8_executable &executable, const char *inputs,
             const char *outputs, int threads) {
  fp8_step step(executable, threads);
  readArguments(step, inputs);
  step.run();
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < executable.results.size(); ++i) {
    const TensorInfo &result = executable.results[i];
    // A result with its own buffer has been swapped with its argument.
    const void *data =
        result.stateArg >= 0 ? step.value(result.stateArg) : step.result(i);
    tensors.push_back({result.name, result.type, data});
  }
  writeSafeTensors(outputs, std::move(tensors), {});
}

} // namespace fp8::rt
