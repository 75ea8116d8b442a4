//===- Profile.h - What launches took, beside what they could take -*- C++ -*-//
//
// profile.json, collectives.json and the tables at the end of a run with a
// profile.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_PROFILE_H
#define FP8_LIB_RUNTIME_PROFILE_H

#include "Support.h"

namespace fp8::rt {

/// profile.json: the mean time of every launch.
std::string profileJson(const std::vector<fp8_launch_stat> &launches);

/// Lines for people: equal launches of all layers together, those that took
/// longest first, each beside the least time that its arithmetic and its
/// operands need at the limits of the machine. Without a `cost` (the text of
/// cost.json; or null), and where no limit is known, times alone.
std::vector<std::string>
profileTable(const std::vector<fp8_launch_stat> &launches, const char *cost,
             const fp8_limits &limits, int64_t steps);

/// Lines for people about what travels between ranks: equal collectives of all
/// layers together, those that took longest first.
std::vector<std::string>
collectiveTable(const std::vector<fp8_collective_stat> &collectives,
                int64_t steps);

/// collectives.json: the mean of every collective, of a step, and what of the
/// time on the network the step did not wait for.
std::string collectivesJson(const std::vector<fp8_collective_stat> &collectives,
                            int64_t ranks, const std::string &transport,
                            const std::string &carrier, int64_t steps);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_PROFILE_H
