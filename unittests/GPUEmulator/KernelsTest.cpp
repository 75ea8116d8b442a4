//===- KernelsTest.cpp - Memory, barriers, shuffles, copies ---------------===//

#include "KernelTest.h"

#include <cmath>
#include <numeric>

using namespace fp8::emulator;

//===----------------------------------------------------------------------===//
// One thread for each element
//===----------------------------------------------------------------------===//

static const std::string vectorAdd = header + R"(
define ptx_kernel void @k(ptr %a, ptr %b, ptr %c) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %i = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %i, %n
  %at = add i32 %first, %t
  %pa = getelementptr float, ptr %a, i32 %at
  %pb = getelementptr float, ptr %b, i32 %at
  %pc = getelementptr float, ptr %c, i32 %at
  %x = load float, ptr %pa, align 4
  %y = load float, ptr %pb, align 4
  %z = fadd float %x, %y
  store float %z, ptr %pc, align 4
  ret void
}
)";

namespace {
struct VectorAdd : testing::Test {
  VectorAdd() {
    std::vector<float> a(96), b(96);
    std::iota(a.begin(), a.end(), 1.0f);
    std::iota(b.begin(), b.end(), 0.25f);
    device.upload(a);
    device.upload(b);
    result = device.allocate<float>(96);
  }
  Device device;
  uint64_t result;
};
} // namespace

TEST_F(VectorAdd, Adds) {
  Result run = device.launch(vectorAdd, 3, 32);
  ASSERT_TRUE(run) << run.message;
  std::vector<float> c = device.download<float>(result, 96);
  for (int i = 0; i < 96; ++i)
    EXPECT_EQ(c[i], 1.0f + i + 0.25f + i);
}

TEST_F(VectorAdd, FindsWhatIsBeyondTheEnd) {
  Result run = device.launch(vectorAdd, 4, 32);
  EXPECT_EQ(run.fault, Fault::OutOfBounds) << run.message;
  EXPECT_NE(run.message.find("load float"), std::string::npos) << run.message;
}

TEST_F(VectorAdd, FindsWhatIsBeyondAnArgument) {
  // A single allocation, like an arena: only the parameter tells where an
  // argument ends.
  Device arena;
  std::vector<float> values(256);
  uint64_t address = arena.upload(values);
  arena.arguments = {address, address + 256, address + 512};
  std::string text =
      mutate(vectorAdd, "(ptr %a, ptr %b, ptr %c)",
             "(ptr dereferenceable(256) %a, ptr dereferenceable(256) %b, "
             "ptr dereferenceable(256) %c)");
  EXPECT_TRUE(arena.launch(text, 2, 32));
  Result run = arena.launch(text, 3, 32);
  EXPECT_EQ(run.fault, Fault::OutOfBounds) << run.message;
}

TEST_F(VectorAdd, FindsMisalignedAccesses) {
  device.arguments[0] += 2;
  Result run = device.launch(vectorAdd, 1, 32);
  EXPECT_EQ(run.fault, Fault::Misaligned) << run.message;
}

TEST_F(VectorAdd, FindsMemoryThatNothingWasWrittenTo) {
  std::swap(device.arguments[0], device.arguments[2]);
  Result run = device.launch(vectorAdd, 1, 32);
  EXPECT_EQ(run.fault, Fault::Unwritten) << run.message;
}

TEST_F(VectorAdd, FindsRacesBetweenBlocks) {
  // All blocks write to the same elements.
  Result run = device.launch(
      mutate(vectorAdd, "%first = mul i32 %i, %n", "%first = mul i32 %i, 0"), 2,
      32);
  EXPECT_EQ(run.fault, Fault::Race) << run.message;
  EXPECT_NE(run.message.find("of block"), std::string::npos) << run.message;
}

TEST_F(VectorAdd, FindsRacesBetweenABlockThatReadsAndOneThatWrites) {
  // The result of a block is the operand of the next one.
  std::vector<float> values(97);
  Device other;
  uint64_t address = other.upload(values);
  other.arguments = {address, address, address + 4};
  Result run = other.launch(vectorAdd, 3, 32);
  EXPECT_EQ(run.fault, Fault::Race) << run.message;
}

//===----------------------------------------------------------------------===//
// A sum over a block
//===----------------------------------------------------------------------===//

static const std::string blockSum = header + R"(
@partial = internal addrspace(3) global [4 x float] undef, align 4
define ptx_kernel void @k(ptr %a, ptr %sum) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %pa = getelementptr float, ptr %a, i32 %t
  %x0 = load float, ptr %pa, align 4
  br label %lanes
lanes:
  %d = phi i32 [16, %entry], [%half, %lanes]
  %x = phi float [%x0, %entry], [%more, %lanes]
  %other = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %x, i32 %d, i32 31)
  %more = fadd float %x, %other
  %half = lshr i32 %d, 1
  %go = icmp ugt i32 %half, 0
  br i1 %go, label %lanes, label %warps
warps:
  %lane = and i32 %t, 31
  %warp = lshr i32 %t, 5
  %isFirst = icmp eq i32 %lane, 0
  br i1 %isFirst, label %write, label %joined
write:
  %slot = getelementptr float, ptr addrspace(3) @partial, i32 %warp
  store float %more, ptr addrspace(3) %slot, align 4
  br label %joined
joined:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %isOne = icmp eq i32 %t, 0
  br i1 %isOne, label %add, label %done
add:
  %all = load <4 x float>, ptr addrspace(3) @partial, align 4
  %s = call float @llvm.vector.reduce.fadd.v4f32(float 0.0, <4 x float> %all)
  store float %s, ptr %sum, align 4
  br label %done
done:
  ret void
}
declare float @llvm.vector.reduce.fadd.v4f32(float, <4 x float>)
)";

namespace {
struct BlockSum : testing::Test {
  BlockSum() {
    std::vector<float> a(128);
    std::iota(a.begin(), a.end(), 1.0f);
    device.upload(a);
    result = device.allocate<float>(1);
  }
  Device device;
  uint64_t result;
};
} // namespace

TEST_F(BlockSum, Adds) {
  for (Schedule schedule : schedules()) {
    Result run = device.launch(blockSum, 1, 128, schedule);
    ASSERT_TRUE(run) << run.message;
    EXPECT_EQ(device.download<float>(result, 1)[0], 128 * 129 / 2);
  }
}

TEST_F(BlockSum, NeedsItsBarrier) {
  std::string text =
      mutate(blockSum, "  call void @llvm.nvvm.barrier.cta.sync.aligned.all",
             "  ; call");
  for (Schedule schedule : schedules()) {
    Result run = device.launch(text, 1, 128, schedule);
    // Which of the two faults it is depends on the schedule.
    EXPECT_TRUE(run.fault == Fault::Race || run.fault == Fault::Unwritten)
        << run.message;
  }
}

TEST_F(BlockSum, NeedsAllWarps) {
  // The fourth slot is never written.
  Result run = device.launch(blockSum, 1, 96);
  EXPECT_EQ(run.fault, Fault::Unwritten) << run.message;
}

TEST_F(BlockSum, StaysInSharedMemory) {
  std::string text =
      mutate(blockSum, "%warp = lshr i32 %t, 5", "%warp = lshr i32 %t, 4");
  Result run = device.launch(text, 1, 128);
  EXPECT_EQ(run.fault, Fault::OutOfBounds) << run.message;
}

TEST_F(BlockSum, LanesOfAMaskHaveToCome) {
  // Lane 0 waits for the others, which wait elsewhere.
  std::string text = mutate(blockSum, "i32 -1, float %x", "i32 1, float %x");
  Result run = device.launch(text, 1, 128);
  EXPECT_EQ(run.fault, Fault::Divergence) << run.message;
}

TEST_F(BlockSum, FindsDivergentBarriers) {
  // Lane 0 of each warp is at a different barrier than the rest of its warp.
  std::string text =
      mutate(blockSum, "  store float %more, ptr addrspace(3) %slot, align 4",
             "  store float %more, ptr addrspace(3) %slot, align 4\n"
             "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)");
  Result run = device.launch(text, 1, 128);
  EXPECT_TRUE(run.fault == Fault::Divergence || run.fault == Fault::Deadlock)
      << run.message;
}

TEST_F(BlockSum, FindsDeadlocks) {
  // Warp 0 waits at one barrier, the others at a different one.
  std::string text =
      mutate(blockSum,
             "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
             "  %b = call i32 @llvm.umin.i32(i32 %warp, i32 1)\n"
             "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 %b)") +
      "declare i32 @llvm.umin.i32(i32, i32)\n";
  Result run = device.launch(text, 1, 128);
  EXPECT_EQ(run.fault, Fault::Deadlock) << run.message;
  EXPECT_NE(run.message.find("waits at"), std::string::npos) << run.message;
}

//===----------------------------------------------------------------------===//
// Two buffers that are filled alternately
//===----------------------------------------------------------------------===//

// Each of 32 threads copies 16 bytes of a tile of 512 bytes; the sum of its
// neighbour's copy is accumulated over 8 tiles.
static const std::string pipeline = header + R"(
@stage = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @k(ptr %a, ptr %sums) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mine = mul i32 %t, 16
  %next = xor i32 %t, 1
  %its = mul i32 %next, 16
  %global = addrspacecast ptr %a to ptr addrspace(1)
  %from0 = getelementptr i8, ptr addrspace(1) %global, i32 %mine
  %to0 = getelementptr i8, ptr addrspace(3) @stage, i32 %mine
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to0, ptr addrspace(1) %from0)
  call void @llvm.nvvm.cp.async.commit.group()
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%i1, %loop]
  %sum = phi float [0.0, %entry], [%sum4, %loop]
  %i1 = add i32 %i, 1
  %ahead = and i32 %i1, 7
  %stage = and i32 %i1, 1
  %tile = mul i32 %ahead, 512
  %fromAt = add i32 %tile, %mine
  %from = getelementptr i8, ptr addrspace(1) %global, i32 %fromAt
  %half = mul i32 %stage, 512
  %toAt = add i32 %half, %mine
  %to = getelementptr i8, ptr addrspace(3) @stage, i32 %toAt
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l"(ptr addrspace(3) %to, ptr addrspace(1) %from)
  call void asm sideeffect "cp.async.commit_group;", ""()
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %now = and i32 %i, 1
  %nowAt = mul i32 %now, 512
  %readAt = add i32 %nowAt, %its
  %read = getelementptr i8, ptr addrspace(3) @stage, i32 %readAt
  %v = load <4 x float>, ptr addrspace(3) %read, align 16
  %sum4 = call float @llvm.vector.reduce.fadd.v4f32(float %sum, <4 x float> %v)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %go = icmp ult i32 %i1, 8
  br i1 %go, label %loop, label %done
done:
  %p = getelementptr float, ptr %sums, i32 %next
  store float %sum4, ptr %p, align 4
  ret void
}
declare float @llvm.vector.reduce.fadd.v4f32(float, <4 x float>)
)";

namespace {
struct Pipeline : testing::Test {
  Pipeline() {
    values.resize(8 * 128);
    std::iota(values.begin(), values.end(), 0.0f);
    device.upload(values);
    result = device.allocate<float>(32);
  }
  Fault faultOf(const std::string &text, Schedule schedule) {
    return device.launch(text, 1, 32, schedule, 1024).fault;
  }
  Device device;
  std::vector<float> values;
  uint64_t result;
};
} // namespace

TEST_F(Pipeline, Adds) {
  for (Schedule schedule : schedules()) {
    Result run = device.launch(pipeline, 1, 32, schedule, 1024);
    ASSERT_TRUE(run) << run.message;
    std::vector<float> sums = device.download<float>(result, 32);
    for (int t = 0; t < 32; ++t) {
      float sum = 0;
      for (int tile = 0; tile < 8; ++tile)
        for (int i = 0; i < 4; ++i)
          sum += values[tile * 128 + t * 4 + i];
      EXPECT_EQ(sums[t], sum);
    }
  }
}

TEST_F(Pipeline, MutationsAreCaught) {
  std::string wait = "call void @llvm.nvvm.cp.async.wait.group(i32 1)";
  std::string barrier =
      "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
  size_t second = pipeline.find(barrier, pipeline.find("%sum4 ="));
  std::string withoutSecond = pipeline;
  withoutSecond.erase(second, barrier.size());
  for (Schedule schedule : schedules()) {
    // It waits for one group too few.
    EXPECT_EQ(faultOf(mutate(pipeline, wait,
                             "call void @llvm.nvvm.cp.async.wait.group(i32 2)"),
                      schedule),
              Fault::Pending);
    EXPECT_EQ(faultOf(mutate(pipeline, wait, ""), schedule), Fault::Pending);
    // Data copied by another thread needs a barrier as well. Which fault it is
    // depends on the schedule.
    Fault fault = faultOf(mutate(pipeline, barrier, ""), schedule);
    EXPECT_TRUE(fault == Fault::Race || fault == Fault::Pending ||
                fault == Fault::Unwritten);
    // A stage is refilled while it is read.
    fault = faultOf(withoutSecond, schedule);
    EXPECT_TRUE(fault == Fault::Race || fault == Fault::Pending);
    // The stage being read is the one being filled.
    EXPECT_EQ(faultOf(mutate(pipeline, "%now = and i32 %i, 1",
                             "%now = and i32 %i1, 1"),
                      schedule),
              Fault::Pending);
    // The tile is copied only in part.
    EXPECT_EQ(faultOf(mutate(pipeline, "%mine = mul i32 %t, 16",
                             "%mine = mul i32 %t, 8"),
                      schedule),
              Fault::Misaligned);
  }
}

TEST_F(Pipeline, NeedsItsSharedMemory) {
  EXPECT_EQ(device.launch(pipeline, 1, 32, {}, 512).fault, Fault::OutOfBounds);
}

//===----------------------------------------------------------------------===//
// Warps that hand data over
//===----------------------------------------------------------------------===//

// Warp 0 fills an array and arrives; warp 1 waits and reads it. Warp 0 does not
// wait.
static const std::string handOver = header + R"(
@array = internal addrspace(3) global [32 x i32] undef, align 4
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
define ptx_kernel void @k(ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = and i32 %t, 31
  %slot = getelementptr i32, ptr addrspace(3) @array, i32 %lane
  %isFirst = icmp ult i32 %t, 32
  br i1 %isFirst, label %writer, label %reader
writer:
  store i32 %t, ptr addrspace(3) %slot, align 4
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 64)
  ret void
reader:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  %next = xor i32 %lane, 1
  %its = getelementptr i32, ptr addrspace(3) @array, i32 %next
  %v = load i32, ptr addrspace(3) %its, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %sum = call i32 @llvm.nvvm.redux.sync.add(i32 %v, i32 -1)
  %odd = trunc i32 %v to i1
  %ballot = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %odd)
  store i32 %sum, ptr addrspace(3) %slot, align 4
  %isOne = icmp eq i32 %lane, 0
  br i1 %isOne, label %store, label %done
store:
  store i32 %sum, ptr %out, align 4
  %p = getelementptr i32, ptr %out, i32 1
  store i32 %ballot, ptr %p, align 4
  br label %done
done:
  ret void
}
)";

TEST(HandOver, NeedsItsBarriers) {
  std::string warpBarrier = "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n";
  for (Schedule schedule : schedules()) {
    Device device;
    uint64_t out = device.allocate<uint32_t>(2);
    Result run = device.launch(handOver, 1, 64, schedule);
    ASSERT_TRUE(run) << run.message;
    EXPECT_EQ(device.download<uint32_t>(out, 2),
              (std::vector<uint32_t>{31 * 32 / 2, 0x55555555}));
    // The reader waits for one warp instead of two.
    Fault fault = device
                      .launch(mutate(handOver, "count(i32 1, i32 64)\n  %next",
                                     "count(i32 1, i32 32)\n  %next"),
                              1, 64, schedule)
                      .fault;
    EXPECT_TRUE(fault == Fault::Invalid || fault == Fault::Unwritten ||
                fault == Fault::Race || fault == Fault::Deadlock);
    // Lanes overwrite data that others have yet to read.
    fault =
        device.launch(mutate(handOver, warpBarrier, ""), 1, 64, schedule).fault;
    EXPECT_EQ(fault, Fault::Race);
    // The writer does not wait, but it must arrive.
    fault = device
                .launch(mutate(handOver,
                               "arrive.aligned.count(i32 1, i32 64)\n  ret",
                               "arrive.aligned.count(i32 2, i32 64)\n  ret"),
                        1, 64, schedule)
                .fault;
    EXPECT_EQ(fault, Fault::Deadlock);
  }
}

// Each thread stores how many of 64 indices are below 40, and whether all or
// any of them are.
static const std::string reduces = header + R"(
declare i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32, i1)
declare i1 @llvm.nvvm.barrier.cta.red.or.aligned.count(i32, i32, i1)
declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1)
define ptx_kernel void @k(ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %is = icmp ult i32 %t, 40
  %count = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %is)
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %is)
  %any = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.count(i32 1, i32 64, i1 %is)
  %allBit = select i1 %all, i32 256, i32 0
  %anyBit = select i1 %any, i32 512, i32 0
  %both = or i32 %allBit, %anyBit
  %sum = or i32 %count, %both
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %sum, ptr %p, align 4
  ret void
}
)";

TEST(BarrierReduction, SeesAllPredicates) {
  for (Schedule schedule : schedules())
    for (auto [bound, expected] : {std::pair(0u, 0u), std::pair(40u, 512u + 40),
                                   std::pair(64u, 768u + 64)}) {
      Device device;
      uint64_t out = device.allocate<uint32_t>(64);
      Result run = device.launch(
          mutate(reduces, "%t, 40", "%t, " + std::to_string(bound)), 1, 64,
          schedule);
      ASSERT_TRUE(run) << run.message;
      EXPECT_EQ(device.download<uint32_t>(out, 64),
                std::vector<uint32_t>(64, expected));
    }
}

TEST(BarrierReduction, IsNotMixedWithOthers) {
  std::string text = mutate(reduces, "%t, 40", "%t, 32");
  text = mutate(text, "  %all = call", R"(  br i1 %is, label %wait, label %meet
wait:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
meet:
  %all = call)");
  Device device;
  device.allocate<uint32_t>(64);
  Result run = device.launch(text, 1, 64);
  EXPECT_EQ(run.fault, Fault::Invalid) << run.message;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

TEST(Atomics, DoNotRaceWithOneAnother) {
  std::string text = header + R"(
define ptx_kernel void @k(ptr %n) {
  %old = atomicrmw add ptr %n, i32 1 monotonic, align 4
  ret void
}
)";
  Device device;
  uint64_t n = device.upload<uint32_t>({5});
  ASSERT_TRUE(device.launch(text, 7, 32));
  EXPECT_EQ(device.download<uint32_t>(n, 1)[0], 5u + 7 * 32);
  Result run = device.launch(
      mutate(text, "  ret void", "  store i32 0, ptr %n, align 4\n  ret void"),
      2, 32);
  EXPECT_EQ(run.fault, Fault::Race) << run.message;
}

//===----------------------------------------------------------------------===//
// NaNs of bf16
//===----------------------------------------------------------------------===//

TEST(BF16, OnlyConversionsMakeCanonicalNaNs) {
  const std::string text = header + R"(
define ptx_kernel void @k(ptr %x, ptr %wide, ptr %selected, ptr %converted) {
  %a = load bfloat, ptr %x, align 2
  %w = load float, ptr %wide, align 4
  %isOne = fcmp oeq float %w, 1.0
  br i1 %isOne, label %one, label %other
one:
  br label %other
other:
  %b = phi bfloat [ 0.0, %one ], [ %a, %0 ]
  store bfloat %b, ptr %selected, align 2
  %c = fptrunc float %w to bfloat
  store bfloat %c, ptr %converted, align 2
  ret void
}
)";
  Device device;
  device.upload<uint16_t>({0xffc1});
  device.upload<uint32_t>({0xffc00000});
  uint64_t selected = device.allocate<uint16_t>(1);
  uint64_t converted = device.allocate<uint16_t>(1);
  Result run = device.launch(text, 1, 1);
  ASSERT_TRUE(run) << run.message;
  EXPECT_EQ(device.download<uint16_t>(selected, 1)[0], 0xffc1);
  EXPECT_EQ(device.download<uint16_t>(converted, 1)[0], 0x7fff);
}

//===----------------------------------------------------------------------===//
// Unknown instructions
//===----------------------------------------------------------------------===//

TEST(Unknown, IsNamed) {
  auto errorOf = [](const std::string &body, const std::string &declaration) {
    return Device()
        .launch(header + "define ptx_kernel void @k() {\n" + body +
                    "\nret void\n}\n" + declaration,
                1, 32)
        .message;
  };
  EXPECT_NE(
      errorOf("call void @llvm.nvvm.tcgen05.fence.before.thread.sync()",
              "declare void @llvm.nvvm.tcgen05.fence.before.thread.sync()")
          .find("does not know the intrinsic "
                "'llvm.nvvm.tcgen05.fence.before.thread.sync'"),
      std::string::npos);
  EXPECT_NE(errorOf("call void asm sideeffect \"mbarrier.inval.b64 [$0];\", "
                    "\"r\"(i32 0)",
                    "")
                .find("does not know 'mbarrier.inval.b64'"),
            std::string::npos);
  EXPECT_NE(errorOf("call float @__nv_expf(float 1.0)",
                    "declare float @__nv_expf(float)")
                .find("does not know the function '__nv_expf'"),
            std::string::npos);
}
