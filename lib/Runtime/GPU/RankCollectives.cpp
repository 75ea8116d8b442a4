//===- RankCollectives.cpp - Collectives of GPUs --------------------------===//

#include "RankCollectives.h"
#include "../Support/Text.h"

#include <cstdlib>

namespace fp8::rt::gpu {

/// Chooses in the first job, since all ranks must agree.
void RankCollectives::choose(fp8_group &group) {
  if (hasChosen || group.size() == 1)
    return;
  const char *text = std::getenv("FP8_GPU_COLLECTIVES");
  std::string asked = text ? text : "", reason;
  const Nccl *library = nullptr;
  if (!asked.empty() && asked != "nccl" && asked != "host")
    group.fail(group.rank(),
               str("expected FP8_GPU_COLLECTIVES to be nccl or host but got '",
                   asked, "'"),
               false);
  if (asked == "host")
    reason = "it was told to go by way of the host";
  else if (device.isShared())
    reason = "it shares its GPU with another rank";
  else
    library = Nccl::find(&reason);
  std::vector<std::string> reasons = group.gatherNow(reason);
  hasChosen = true;
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (reasons[rank].empty())
      continue;
    if (asked == "nccl")
      group.fail(rank,
                 str("FP8_GPU_COLLECTIVES asks for NCCL, but this rank cannot "
                     "use it: ",
                     reasons[rank],
                     " (PyPI's nvidia-nccl-cu13 has it; without the variable "
                     "ranks meet by way of the host)"),
                 /*told=*/false);
    chosen = str("the host, for rank ", rank, ": ", reasons[rank]);
    return;
  }
  chosen = "NCCL " + library->version;
  nccl.emplace(device, *library, group, takesIR);
}

// NCCL's work follows the mark on the GPU, as the step's follows NCCL's.

std::vector<int64_t>
RankCollectives::reduce(fp8_group &group, const std::vector<Reduction> &bucket,
                        const Mark &mark, const Announce &announce) {
  choose(group);
  if (!nccl)
    return StagedCollectives::reduce(group, bucket, mark, announce);
  device.makeCurrent();
  follow(nccl->workStream(), mark);
  return nccl->reduce(bucket, [&] { announce(markOf(nccl->workStream())); });
}

void RankCollectives::exchange(fp8_group &group, const Exchange &exchange,
                               const Mark &mark, const Announce &announce) {
  choose(group);
  if (!nccl)
    return StagedCollectives::exchange(group, exchange, mark, announce);
  device.makeCurrent();
  follow(nccl->workStream(), mark);
  nccl->exchange(exchange, [&] {
    if (announce)
      announce(markOf(nccl->workStream()));
  });
}

} // namespace fp8::rt::gpu
