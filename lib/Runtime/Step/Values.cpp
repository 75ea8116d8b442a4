//===- Values.cpp - The values of arguments and results -------------------===//

#include "../GPU/DeviceStep.h"
#include "Step.h"

#include <algorithm>
#include <cstring>

using namespace fp8::rt;

const char *fp8_step::external(size_t number) {
  return static_cast<const char *>(device ? device->value(number)
                                          : externals[number]);
}

char *fp8_step::argument(size_t i) {
  return static_cast<char *>(device ? device->argument(i) : externals[i]);
}

void fp8_step::set(size_t i, const Value &value) {
  if (device && !value)
    return device->clear(i);
  if (device && value.step && value.step->device)
    return device->take(i, *value.step->device, value.buffer);
  auto bytes = static_cast<size_t>(executable.arguments[i].type.bytes());
  if (value)
    std::memcpy(argument(i), value.bytes(), bytes);
  else
    std::memset(argument(i), 0, bytes);
}

Value Value::argument(fp8_step &step, size_t i) { return {step, i}; }

Value Value::result(fp8_step &step, size_t i) {
  return {step, step.resultSlots[i]};
}

const void *Value::bytes() const {
  return step ? step->external(buffer) : host;
}

void fp8_step::keep(const std::vector<size_t> &arguments) {
  if (device)
    return device->keep(arguments);
  kept.resize(executable.arguments.size());
  for (size_t i : arguments) {
    Slice own = ownBytes(executable.arguments[i]);
    const char *data = value(i) + own.begin;
    kept[i].assign(data, data + own.count);
  }
}

void fp8_step::restore(const std::vector<size_t> &arguments) {
  if (device)
    return device->restore(arguments);
  for (size_t i : arguments)
    std::copy(kept[i].begin(), kept[i].end(),
              argument(i) + ownBytes(executable.arguments[i]).begin);
}
