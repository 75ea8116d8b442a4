//===- NcclHeaderTest.cpp - Nccl.h and NCCL's header ----------------------===//

#include <nccl.h>

#include "GPU/Nccl.h"
#include "gtest/gtest.h"

#include <cstddef>
#include <type_traits>

namespace ours = fp8::nccl;

/// Returns whether two types have the same size and are passed alike.
template <typename Ours, typename Theirs> constexpr bool isAlike() {
  return sizeof(Ours) == sizeof(Theirs) &&
         std::is_class_v<Ours> == std::is_class_v<Theirs> &&
         std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
}

template <typename Ours, typename Theirs> struct Same : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
struct Same<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(As) == sizeof...(Bs))
      return isAlike<A, B>() && (isAlike<As, Bs>() && ...);
    return false;
  }
};

#define FP8_CHECK(name, arguments)                                             \
  static_assert(                                                               \
      Same<decltype(ours::Functions::name), decltype(&::name)>::check(),       \
      #name);
FP8_NCCL_FUNCTIONS(FP8_CHECK)
#undef FP8_CHECK

TEST(NcclHeader, NumbersAreNccls) {
  EXPECT_EQ(int(ours::Success), ncclSuccess);
  EXPECT_EQ(int(ours::UnhandledCudaError), ncclUnhandledCudaError);
  EXPECT_EQ(int(ours::SystemError), ncclSystemError);
  EXPECT_EQ(int(ours::InternalError), ncclInternalError);
  EXPECT_EQ(int(ours::InvalidArgument), ncclInvalidArgument);
  EXPECT_EQ(int(ours::InvalidUsage), ncclInvalidUsage);
  EXPECT_EQ(int(ours::RemoteError), ncclRemoteError);
  EXPECT_EQ(int(ours::InProgress), ncclInProgress);
  EXPECT_EQ(int(ours::Bytes), ncclUint8);
}

TEST(NcclHeader, ConfigsBeginAlike) {
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  ours::Config config;
  EXPECT_EQ(config.magic, theirs.magic);
  EXPECT_LE(sizeof(config), sizeof(theirs));
  EXPECT_EQ(offsetof(ours::Config, size), offsetof(ncclConfig_t, size));
  EXPECT_EQ(offsetof(ours::Config, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(ours::Config, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(ours::Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(sizeof(ours::UniqueId), size_t(NCCL_UNIQUE_ID_BYTES));
}
