//===- BulkTest.cpp - mbarrier and cp.async.bulk.tensor -------------------===//

#include "KernelTest.h"
#include "TensorMap.h"

#include <algorithm>
#include <random>
#include <set>

using namespace fp8::emulator;

// Thread 0 fills a ring of two stages with tiles of 8 rows of 128 bytes, two of
// them side by side in a row of tiles; warp 1 removes the swizzle and writes
// them one after another.
static const std::string ring = header + R"(
@tiles = internal addrspace(3) global [2048 x i8] undef, align 1024
@full = internal addrspace(3) global [2 x i64] undef, align 8
@empty = internal addrspace(3) global [2 x i64] undef, align 8
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3), i32)
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.fence.mbarrier_init.release.cluster()
declare void @llvm.nvvm.fence.proxy.async.shared_cta()
declare void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3), ptr addrspace(3), ptr, i32, i32, i64, i1)
define ptx_kernel void @k(ptr byval([128 x i8]) align 64 %map, ptr %a, ptr %out) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %cleared = mul i32 %t, 32
  %clear = getelementptr i8, ptr addrspace(3) @tiles, i32 %cleared
  store <8 x i32> zeroinitializer, ptr addrspace(3) %clear, align 32
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  %isZero = icmp eq i32 %t, 0
  br i1 %isZero, label %make, label %made
make:
  %full1 = getelementptr i64, ptr addrspace(3) @full, i32 1
  %empty1 = getelementptr i64, ptr addrspace(3) @empty, i32 1
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @full, i32 1)
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %full1, i32 1)
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @empty, i32 32)
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %empty1, i32 32)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  br label %made
made:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %isConsumer = icmp uge i32 %t, 32
  br i1 %isConsumer, label %consumer, label %other
other:
  br i1 %isZero, label %fill, label %done
fill:
  %i = phi i32 [0, %other], [%iNext, %issue]
  %stage = and i32 %i, 1
  %round = lshr i32 %i, 1
  %odd = and i32 %round, 1
  %before = xor i32 %odd, 1
  %isFree = getelementptr i64, ptr addrspace(3) @empty, i32 %stage
  %isFull = getelementptr i64, ptr addrspace(3) @full, i32 %stage
  br label %waitFree
waitFree:
  %free = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) %isFree, i32 %before)
  br i1 %free, label %issue, label %waitFree
issue:
  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) %isFull, i32 1024)
  %tileAt = mul i32 %stage, 1024
  %tile = getelementptr i8, ptr addrspace(3) @tiles, i32 %tileAt
  %x = mul i32 %stage, 128
  %y = mul i32 %round, 8
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3) %tile, ptr addrspace(3) %isFull, ptr %map, i32 %x, i32 %y, i64 0, i1 false)
  %iNext = add i32 %i, 1
  %more = icmp ult i32 %iNext, 6
  br i1 %more, label %fill, label %done
consumer:
  %lane = and i32 %t, 31
  %row = lshr i32 %lane, 2
  %pair = and i32 %lane, 3
  %p0 = mul i32 %pair, 2
  %p1 = add i32 %p0, 1
  %x0 = xor i32 %p0, %row
  %x1 = xor i32 %p1, %row
  %line = mul i32 %row, 128
  br label %take
take:
  %j = phi i32 [0, %consumer], [%jNext, %read]
  %jStage = and i32 %j, 1
  %jRound = lshr i32 %j, 1
  %jOdd = and i32 %jRound, 1
  %jFree = getelementptr i64, ptr addrspace(3) @empty, i32 %jStage
  %jFull = getelementptr i64, ptr addrspace(3) @full, i32 %jStage
  br label %waitFull
waitFull:
  %came = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) %jFull, i32 %jOdd)
  br i1 %came, label %read, label %waitFull
read:
  %from = mul i32 %jStage, 1024
  %rowAt = add i32 %from, %line
  %b0 = mul i32 %x0, 16
  %b1 = mul i32 %x1, 16
  %at0 = add i32 %rowAt, %b0
  %at1 = add i32 %rowAt, %b1
  %q0 = getelementptr i8, ptr addrspace(3) @tiles, i32 %at0
  %q1 = getelementptr i8, ptr addrspace(3) @tiles, i32 %at1
  %v0 = load <4 x i32>, ptr addrspace(3) %q0, align 16
  %v1 = load <4 x i32>, ptr addrspace(3) %q1, align 16
  %jAt = mul i32 %j, 1024
  %laneAt = mul i32 %lane, 32
  %to = add i32 %jAt, %laneAt
  %o0 = getelementptr i8, ptr %out, i32 %to
  %o1 = getelementptr i8, ptr %o0, i32 16
  store <4 x i32> %v0, ptr %o0, align 16
  store <4 x i32> %v1, ptr %o1, align 16
  %sFree = call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) %jFree, i32 1)
  %jNext = add i32 %j, 1
  %jMore = icmp ult i32 %jNext, 6
  br i1 %jMore, label %take, label %done
done:
  ret void
}
)";

namespace {
struct Bulk : testing::Test {
  // 6 tiles in 2 columns; the tensor ends within the last ones in both
  // directions.
  static constexpr unsigned kWidth = 200, kHeight = 21, kStride = 208;

  Bulk() : source(kStride * kHeight) {
    std::mt19937 random(5);
    for (uint8_t &value : source)
      value = static_cast<uint8_t>(1 + random() % 255);
    map.sizes[0] = kWidth;
    map.sizes[1] = kHeight;
    map.strides[0] = kStride;
    map.box[0] = 128;
    map.box[1] = 8;
    map.swizzle = 128;
    expected.assign(6 * 1024, 0);
    for (unsigned i = 0; i < expected.size(); ++i) {
      unsigned tile = i / 1024, x = tile % 2 * 128 + i % 128,
               y = tile / 2 * 8 + i % 1024 / 128;
      if (x < kWidth && y < kHeight)
        expected[i] = source[y * kStride + x];
    }
  }
  Result launch(const std::string &text, Schedule schedule) {
    Device device;
    map.address = device.upload(source);
    unsigned char bytes[TensorMap::kBytes] = {};
    std::memcpy(bytes, &map, sizeof(map));
    device.firstArguments = {bytes};
    uint64_t out = device.allocate<uint8_t>(expected.size());
    Result run = device.launch(text, 1, 64, schedule);
    result = device.download<uint8_t>(out, expected.size());
    return run;
  }
  /// Returns the faults of a mutation over all schedules.
  std::set<Fault> faults(const std::string &from, const std::string &to) {
    std::set<Fault> all;
    for (Schedule schedule : schedules())
      all.insert(launch(mutate(ring, from, to), schedule).fault);
    return all;
  }
  TensorMap map;
  std::vector<uint8_t> source, expected, result;
};
} // namespace

static bool isAmong(const std::set<Fault> &found, std::set<Fault> allowed) {
  return std::includes(allowed.begin(), allowed.end(), found.begin(),
                       found.end());
}

TEST_F(Bulk, TilesComeWithTheirSwizzleAndZerosOutside) {
  for (Schedule schedule : schedules()) {
    Result run = launch(ring, schedule);
    ASSERT_TRUE(run) << run.message;
    EXPECT_EQ(result, expected);
  }
}

TEST_F(Bulk, AWrongSwizzleIsCaught) {
  Schedule schedule = schedules()[0];
  ASSERT_TRUE(
      launch(mutate(ring, "xor i32 %p0, %row", "or i32 %p0, 0"), schedule));
  EXPECT_NE(result, expected);
  map.swizzle = 0;
  ASSERT_TRUE(launch(ring, schedule));
  EXPECT_NE(result, expected);
}

TEST_F(Bulk, MissingFencesAreCaught) {
  EXPECT_EQ(
      faults("  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n", ""),
      std::set<Fault>{Fault::Race});
  // The other fence follows thread 0's initialization of the barriers.
  EXPECT_EQ(
      faults("  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n",
             ""),
      std::set<Fault>{Fault::Race});
}

TEST_F(Bulk, WrongExpectedBytesAreCaught) {
  EXPECT_EQ(faults("%isFull, i32 1024)", "%isFull, i32 1040)"),
            std::set<Fault>{Fault::Deadlock});
  EXPECT_TRUE(isAmong(faults("%isFull, i32 1024)", "%isFull, i32 896)"),
                      {Fault::Pending, Fault::Race, Fault::Deadlock}));
}

TEST_F(Bulk, AStageOffByOneIsCaught) {
  EXPECT_TRUE(isAmong(
      faults("%from = mul i32 %jStage, 1024",
             "%wrong = xor i32 %jStage, 1\n  %from = mul i32 %wrong, 1024"),
      {Fault::Pending, Fault::Race}));
  EXPECT_TRUE(isAmong(
      faults("%tileAt = mul i32 %stage, 1024",
             "%wrong = xor i32 %stage, 1\n  %tileAt = mul i32 %wrong, 1024"),
      {Fault::Pending, Fault::Race}));
}

TEST_F(Bulk, PhasesAreCounted) {
  // A stage that was never filled never becomes free.
  EXPECT_EQ(faults("%before = xor i32 %odd, 1", "%before = or i32 %odd, 0"),
            std::set<Fault>{Fault::Deadlock});
  // A stage is refilled while it is read, or phases pass without a wait, so
  // that the parity is that of a different phase.
  EXPECT_TRUE(isAmong(
      faults("  %free = call i1 "
             "@llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr "
             "addrspace(3) %isFree, i32 %before)\n  br i1 %free, label "
             "%issue, label %waitFree",
             "  br label %issue"),
      {Fault::Race, Fault::Pending, Fault::Invalid, Fault::Deadlock}));
  EXPECT_TRUE(
      isAmong(faults("@empty, i32 32)", "@empty, i32 1)"),
              {Fault::Race, Fault::Pending, Fault::Invalid, Fault::Deadlock}));
}

// An elected thread copies one box of 512 bytes of a tensor of RANK dimensions.
static const std::string box = header + R"(
@tile = internal addrspace(3) global [512 x i8] undef, align 128
@full = internal addrspace(3) global i64 undef, align 8
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.fence.mbarrier_init.release.cluster()
declare void @llvm.nvvm.prefetch.tensormap.p0(ptr)
declare {i32, i1} @llvm.nvvm.elect.sync(i32)
declare void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.RANKd(ptr addrspace(7), ptr addrspace(3), ptr, TYPES, i16, i64, i1, i1, i32)
define ptx_kernel void @k(ptr byval([128 x i8]) align 64 %map, ptr %a, ptr %out) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %elected = call {i32, i1} @llvm.nvvm.elect.sync(i32 -1)
  %isLeader = extractvalue {i32, i1} %elected, 1
  %target = addrspacecast ptr addrspace(3) @tile to ptr addrspace(7)
  br i1 %isLeader, label %fill, label %wait
fill:
  call void @llvm.nvvm.prefetch.tensormap.p0(ptr %map)
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @full, i32 1)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @full, i32 512)
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.RANKd(ptr addrspace(7) %target, ptr addrspace(3) @full, ptr %map, VALUES, i16 0, i64 0, i1 false, i1 false, i32 0)
  br label %wait
wait:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %again
again:
  %came = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @full, i32 0)
  br i1 %came, label %read, label %again
read:
  %at = mul i32 %t, 16
  %from = getelementptr i8, ptr addrspace(3) @tile, i32 %at
  %to = getelementptr i8, ptr %out, i32 %at
  %v = load <4 x i32>, ptr addrspace(3) %from, align 16
  store <4 x i32> %v, ptr %to, align 16
  ret void
}
)";

/// Returns `box` for a rank and coordinates.
static std::string boxAt(const std::vector<int> &coordinates) {
  std::string types, values, text = box;
  for (int coordinate : coordinates) {
    types += types.empty() ? "i32" : ", i32";
    values += (values.empty() ? "i32 " : ", i32 ") + std::to_string(coordinate);
  }
  text = mutate(text, "TYPES", types);
  text = mutate(text, "VALUES", values);
  for (int i = 0; i < 2; ++i)
    text = mutate(text, "RANK", std::to_string(coordinates.size()));
  return text;
}

TEST(BulkBoxes, HaveUpToFiveDimensions) {
  std::vector<uint64_t> sizes = {48, 3, 5, 2, 3};
  std::vector<uint32_t> boxes = {64, 2, 2, 1, 2};
  std::vector<int> begins = {16, 2, -1, 1, 1};
  std::vector<uint16_t> source(48 * 3 * 5 * 2 * 3);
  std::mt19937 random(7);
  for (uint16_t &value : source)
    value = static_cast<uint16_t>(random());
  for (unsigned rank = 1; rank <= 5; ++rank) {
    TensorMap map;
    map.rank = rank;
    map.elementBytes = 2;
    unsigned rows = 1;
    for (unsigned i = 0, stride = 2; i < rank; ++i) {
      map.sizes[i] = sizes[i];
      map.box[i] = i ? boxes[i] : 64;
      rows *= i ? boxes[i] : 1;
      stride *= static_cast<unsigned>(sizes[i]);
      if (i + 1 < rank)
        map.strides[i] = stride;
    }
    map.box[0] = 256 / rows; // 512 bytes in all
    std::vector<uint16_t> expected;
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned x = 0; x < map.box[0]; ++x) {
        int64_t at = begins[0] + static_cast<int>(x), stride = 48;
        bool isInside = at < 48;
        for (unsigned i = 1, rest = row; i < rank; ++i) {
          int64_t index = begins[i] + static_cast<int>(rest % boxes[i]);
          isInside &= index >= 0 && index < static_cast<int64_t>(sizes[i]);
          at += index * stride;
          stride *= static_cast<int64_t>(sizes[i]);
          rest /= boxes[i];
        }
        expected.push_back(isInside ? source[at] : 0);
      }
    std::vector<int> coordinates(begins.begin(), begins.begin() + rank);
    for (Schedule schedule : schedules()) {
      Device device;
      map.address = device.upload(source);
      ASSERT_EQ(map.invalid(), "");
      unsigned char bytes[TensorMap::kBytes] = {};
      std::memcpy(bytes, &map, sizeof(map));
      device.firstArguments = {bytes};
      uint64_t out = device.allocate<uint16_t>(256);
      Result run = device.launch(boxAt(coordinates), 1, 32, schedule);
      ASSERT_TRUE(run) << run.message;
      EXPECT_EQ(device.download<uint16_t>(out, 256), expected) << rank;
    }
  }
}

TEST_F(Bulk, TheMapHasTheInstructionsRank) {
  map.rank = 3;
  map.sizes[2] = map.box[2] = 1;
  map.strides[1] = kStride * kHeight;
  Result run = launch(ring, {});
  EXPECT_EQ(run.fault, Fault::Invalid);
  EXPECT_NE(run.message.find("expected a tensor map of 2 dimensions but got 3"),
            std::string::npos);
}

TEST_F(Bulk, MapsFollowTheDriversRules) {
  map.address = 16;
  EXPECT_EQ(map.invalid(), "");
  map.strides[0] = 200;
  EXPECT_NE(map.invalid().find("expected a stride that is a multiple of 16"),
            std::string::npos);
  map.strides[0] = kStride;
  map.box[1] = 257;
  EXPECT_EQ(map.invalid(), "expected a box of 1 to 256 but got 257");
  map.box[1] = 8;
  map.swizzle = 64;
  EXPECT_NE(map.invalid().find("at most 64 bytes"), std::string::npos);
}
