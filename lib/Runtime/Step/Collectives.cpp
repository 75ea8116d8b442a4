//===- Collectives.cpp - Reductions and exchanges of a step ---------------===//

#include "../GPU/DeviceStep.h"
#include "Step.h"

#include <cstring>
#include <utility>

using namespace fp8::rt;

void fp8_step::failCollective(int64_t number, const char *label,
                              const std::string &mistake) {
  fail(Error(FP8_ERROR_INTERNAL,
             str("collective ", number, " of '", executable.name, "' (",
                 label ? label : "", "): ", mistake)));
}

std::vector<char *> fp8_step::addressesOf(const int64_t *operands,
                                          const int64_t *offsets,
                                          int64_t numOperands, int64_t number) {
  std::vector<char *> addresses;
  for (int64_t i = 0; i < numOperands; ++i) {
    int64_t offset = offsets ? offsets[i] : 0;
    char *base = device ? reinterpret_cast<char *>(
                              device->addressOf(operands[i], offset, number))
                        : static_cast<char *>(resolve(operands[i], number));
    if (!base)
      return {};
    addresses.push_back(device ? base : base + offset);
  }
  return addresses;
}

void fp8_step::copy(char *target, const char *source, int64_t bytes) {
  if (device)
    device->copy(reinterpret_cast<fp8::cuda::DevicePointer>(target),
                 reinterpret_cast<fp8::cuda::DevicePointer>(source), bytes);
  else
    std::memmove(target, source, bytes);
}

void fp8_step::call(std::function<void()> what) {
  if (device)
    device->call(std::move(what));
  else
    what();
}

std::unique_ptr<Engine> fp8_step::makeEngine() {
  return device ? device->makeEngine() : std::make_unique<Engine>();
}

/// Describes what is wrong with the shard of a reduction; "" if nothing is.
std::string fp8_step::findMistakeInShard(const fp8_all_reduce &what,
                                         int64_t slice) const {
  if (what.shard == 0)
    return "";
  if (what.shard > static_cast<int64_t>(shards.size()))
    return str("expected a shard of at most ", shards.size(), " but got ",
               what.shard);
  int64_t slices = shards[what.shard - 1].slices;
  if (slice >= slices && slices > 1)
    return str("expected a slice below ", slices, " but got ", slice);
  if (slice < 0 && what.elements % slices != 0)
    return str("expected elements for ", slices, " slices but got ",
               what.elements);
  return "";
}

void fp8_step::startAllReduce(int64_t number, const fp8_all_reduce &what,
                              int64_t slice, const int64_t *operands,
                              const int64_t *offsets, int64_t numOperands) {
  if (hasFailed())
    return;
  bool isNarrow =
      what.wire == FP8_WIRE_F8_E4M3FN || what.wire == FP8_WIRE_F8_E5M2;
  std::string mistake = findMistake(what);
  if (mistake.empty())
    mistake = findMistakeInShard(what, slice);
  if (mistake.empty() && numOperands != (isNarrow ? 3 : 2))
    mistake =
        str("expected ", isNarrow ? 3 : 2, " operands but got ", numOperands);
  if (!mistake.empty())
    return failCollective(number, what.label, mistake);
  std::vector<char *> addresses =
      addressesOf(operands, offsets, numOperands, number);
  if (addresses.empty())
    return;
  // With one rank the operand is the result.
  if (numRanks() == 1)
    return copy(addresses[1], addresses[0],
                what.elements *
                    fp8_dtype_size(static_cast<fp8_dtype>(what.dtype)));
  Reduction reduction{what,
                      number,
                      addresses[0],
                      addresses[1],
                      isNarrow ? reinterpret_cast<float *>(addresses[2])
                               : nullptr,
                      what.shard ? &shards[what.shard - 1].owners : nullptr,
                      slice};
  call([this, reduction] { inFlight->start(reduction); });
}

void fp8_step::startExchange(int64_t number, const fp8_exchange &what,
                             const int64_t *operands, const int64_t *offsets,
                             int64_t numOperands) {
  if (hasFailed())
    return;
  std::string mistake = findMistake(what, rank(), numRanks());
  if (mistake.empty() && numOperands != 2)
    mistake = str("expected 2 operands but got ", numOperands);
  if (!mistake.empty())
    return failCollective(number, what.label, mistake);
  std::vector<char *> addresses =
      addressesOf(operands, offsets, numOperands, number);
  if (addresses.empty())
    return;
  Exchange exchange{what, number, addresses[0], addresses[1]};
  if (!inFlight) {
    alone = std::make_unique<fp8_group>();
    inFlight.emplace(*alone, makeEngine());
  }
  call([this, exchange] { inFlight->start(exchange); });
}

void fp8_step::wait(int64_t number) {
  if (inFlight && !hasFailed())
    call([this, number] {
      inFlight->wait(number, /*onHost=*/!device || !device->isReplaying());
    });
}

const std::vector<fp8_collective_stat> &fp8_step::collectives() const {
  static const std::vector<fp8_collective_stat> none;
  return inFlight ? inFlight->profile() : none;
}
