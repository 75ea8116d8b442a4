//===- RankCollectives.h - Collectives of GPUs ------------------*- C++ -*-===//
//
// Transfers directly between GPUs if every rank finds NCCL and has a GPU of its
// own, otherwise through the host: the bits are the same. FP8_GPU_COLLECTIVES
// forces either.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_RANKCOLLECTIVES_H
#define FP8_LIB_RUNTIME_GPU_RANKCOLLECTIVES_H

#include "NcclCollectives.h"
#include "StagedCollectives.h"

#include <optional>

namespace fp8::rt::gpu {

class RankCollectives : public StagedCollectives {
public:
  /// See StagedCollectives and NcclCollectives.
  RankCollectives(const Device &device, cuda::Stream work, bool takesIR)
      : StagedCollectives(device, work), device(device), takesIR(takesIR) {}

  std::vector<int64_t> reduce(fp8_group &group,
                              const std::vector<Reduction> &bucket,
                              const Mark &mark,
                              const Announce &announce) override;
  void exchange(fp8_group &group, const Exchange &exchange, const Mark &mark,
                const Announce &announce) override;
  std::string carrier() const override { return chosen; }

private:
  void choose(fp8_group &group);

  const Device &device;
  bool takesIR, hasChosen = false;
  std::string chosen = "the host";
  std::optional<NcclCollectives> nccl;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_RANKCOLLECTIVES_H
