//===- InFlight.cpp - Collectives that a step has started -----------------===//

#include "InFlight.h"
#include "../Support/Error.h"

#include <algorithm>

namespace fp8::rt {

void InFlight::add(const std::shared_ptr<Bucket> &bucket,
                   const Member &member) {
  started[member.number].emplace_back(bucket, bucket->members.size());
  bucket->members.push_back(member);
  bucket->bytes += member.bytes;
}

void InFlight::start(const Exchange &exchange) {
  if (open)
    sendBucket();
  auto bucket = std::make_shared<Bucket>();
  add(bucket, {exchange.number, exchange.what.label,
               bytesToSend(exchange.what, group.rank())});
  bucket->bytesSent = {bucket->bytes};
  // A single rank has no thread.
  if (group.size() == 1) {
    engine->exchange(group, exchange, engine->mark(), /*announce=*/nullptr);
    bucket->job = std::make_shared<GroupJob>();
    bucket->job->isDone = true;
    return;
  }
  bucket->job = group.submit([this, exchange, bucket, mark = engine->mark()] {
    engine->exchange(group, exchange, mark, [&](Engine::Mark enqueued) {
      group.announce(bucket->mark, std::move(enqueued));
    });
  });
}

void InFlight::start(const Reduction &reduction) {
  if (!open)
    open = std::make_shared<Bucket>();
  add(open,
      {reduction.number, reduction.what.label, wireBytes(reduction.what)});
  open->reductions.push_back(reduction);
  if (open->bytes >= group.bucketBytes())
    sendBucket();
}

void InFlight::sendBucket() {
  std::shared_ptr<Bucket> bucket = std::move(open);
  open = nullptr;
  bucket->job = group.submit([this, bucket, mark = engine->mark()] {
    bucket->bytesSent = engine->reduce(
        group, bucket->reductions, mark, [&](Engine::Mark enqueued) {
          group.announce(bucket->mark, std::move(enqueued));
        });
  });
}

fp8_collective_stat &InFlight::statOf(const Member &member) {
  auto stat = std::find_if(stats.begin(), stats.end(),
                           [&](const fp8_collective_stat &each) {
                             return each.number == member.number;
                           });
  if (stat == stats.end())
    stat = stats.insert(stats.end(), {member.label ? member.label : "",
                                      member.number, 0, 0, 0, 0});
  return *stat;
}

/// Lets later work follow a collective once it is enqueued. Returns false if it
/// is done before.
bool InFlight::follow(const Started &one) {
  Bucket &bucket = *one.first;
  if (!bucket.job)
    sendBucket();
  Engine::Mark mark = group.wait(bucket.job, bucket.mark);
  if (!mark)
    return false;
  engine->follow(mark);
  return true;
}

void InFlight::waitFor(const Started &one) {
  using Seconds = std::chrono::duration<double>;
  const auto &[bucket, index] = one;
  if (!bucket->job)
    sendBucket();
  auto begin = Timeline::Clock::now();
  group.wait(bucket->job);
  auto end = Timeline::Clock::now();
  if (timeline)
    note(*bucket, begin, end);

  // Members of a bucket share the times, whichever is waited for first.
  for (const Member &member : bucket->members) {
    double share = bucket->bytes ? static_cast<double>(member.bytes) /
                                       static_cast<double>(bucket->bytes)
                                 : 1.0 / bucket->members.size();
    fp8_collective_stat &stat = statOf(member);
    stat.waited += share * Seconds(end - begin).count();
    if (&member != &bucket->members[index])
      continue;
    ++stat.runs;
    stat.bytes += bucket->bytesSent[index];
    stat.seconds +=
        share * Seconds(bucket->job->end - bucket->job->begin).count();
  }
}

void InFlight::note(Bucket &bucket, Timeline::Clock::time_point begin,
                    Timeline::Clock::time_point end) {
  // A single rank never waits.
  if (group.size() == 1)
    return;
  const char *label = bucket.members.front().label;
  std::string name = label ? label : "";
  if (bucket.members.size() > 1)
    name += str(" and ", bucket.members.size() - 1, " more");
  timeline->addWait(name, begin, end);
  if (bucket.isNoted)
    return;
  bucket.isNoted = true;
  int64_t sent = 0;
  for (int64_t bytes : bucket.bytesSent)
    sent += bytes;
  timeline->addTransfer(name, bucket.members.size(), sent, bucket.job->begin,
                        bucket.job->end);
}

void InFlight::wait(int64_t number, bool onHost) {
  auto found = started.find(number);
  if (found == started.end())
    return;
  std::vector<Started> all = std::move(found->second);
  started.erase(found);
  for (const Started &one : all)
    if (!onHost && follow(one))
      followed.push_back(one);
    else
      waitFor(one);
}

void InFlight::waitForAll() {
  while (!started.empty())
    wait(started.begin()->first);
  std::vector<Started> all = std::move(followed);
  followed.clear();
  for (const Started &one : all)
    waitFor(one);
}

void InFlight::abandon() {
  open = nullptr;
  started[-1].insert(started[-1].end(), followed.begin(), followed.end());
  followed.clear();
  for (const auto &[number, buckets] : started)
    for (const auto &[bucket, index] : buckets)
      try {
        if (bucket->job)
          group.wait(bucket->job);
      } catch (const Error &) {
        // Only the first failure is reported.
      }
  started.clear();
}

} // namespace fp8::rt
