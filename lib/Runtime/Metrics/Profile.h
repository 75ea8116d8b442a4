//===- Profile.h - The times of launches and their limits -------*- C++ -*-===//
//
// Makes profile.json, collectives.json and the tables at the end of a run with
// a profile.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_METRICS_PROFILE_H
#define FP8_LIB_RUNTIME_METRICS_PROFILE_H

#include "fp8-c/Runtime.h"

#include <string>
#include <vector>

namespace fp8::rt {

/// Returns profile.json: the mean time of every launch.
std::string profileJson(const std::vector<fp8_launch_stat> &launches);

/// Throws unless this is the text of a cost.json, or null.
void checkCosts(const char *cost);

/// Returns lines for people: equal launches of all layers together, the slowest
/// first, each beside the least time that its arithmetic and its operands need
/// at the limits of the machine. Without `cost` (the text of cost.json, or
/// null), or where no limit is known, only times.
std::vector<std::string>
profileTable(const std::vector<fp8_launch_stat> &launches, const char *cost,
             const fp8_limits &limits, int64_t steps);

/// Returns lines for people about traffic between ranks: equal collectives of
/// all layers together, the slowest first.
std::vector<std::string>
collectiveTable(const std::vector<fp8_collective_stat> &collectives,
                int64_t steps);

/// Returns collectives.json: the means of every collective in a step, and how
/// much of the time on the network overlapped with the step.
std::string collectivesJson(const std::vector<fp8_collective_stat> &collectives,
                            int64_t ranks, const std::string &transport,
                            const std::string &carrier, int64_t steps);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_METRICS_PROFILE_H
