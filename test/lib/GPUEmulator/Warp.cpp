//===- Warp.cpp - Registers, barriers, shuffles, asynchronous copies ------===//

#include "Formats.h"
#include "Instructions.h"

#include <cmath>
#include <map>

namespace fp8::emulator {

//===----------------------------------------------------------------------===//
// Special registers, PTX ISA 10
//===----------------------------------------------------------------------===//

static uint64_t readRegister(const Thread &thread, int64_t which) {
  const Geometry &geometry = thread.block->grid.geometry;
  switch (which / 4) {
  case 0:
    return thread.position[which % 4];
  case 1:
    return geometry.block[which % 4];
  case 2:
    return thread.block->position[which % 4];
  case 3:
    return geometry.grid[which % 4];
  }
  uint32_t bit = 1u << thread.lane;
  switch (which) {
  case 16:
    return thread.lane;
  case 17:
    return thread.warp;
  case 18:
    return 32;
  case 19:
    return bit;
  case 20:
    return bit - 1;
  case 21:
    return (bit - 1) | bit;
  case 22:
    return ~((bit - 1) | bit);
  case 23:
    return ~(bit - 1);
  case 24:
    return geometry.dynamicShared;
  }
  return 0;
}

static Form findRegister(const std::string &opcode) {
  static const char *const threes[] = {"%tid.", "%ntid.", "%ctaid.",
                                       "%nctaid."};
  static const char *const others[] = {
      "%laneid",      "%warpid",      "WARP_SZ",
      "%lanemask_eq", "%lanemask_lt", "%lanemask_le",
      "%lanemask_gt", "%lanemask_ge", "%dynamic_smem_size"};
  Form form;
  form.results = 1;
  Handler read = [](Thread &thread, const Instruction &instruction,
                    const uint64_t *, uint64_t *results) {
    results[0] =
        static_cast<uint32_t>(readRegister(thread, instruction.detail[0]));
  };
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned axis = 0; axis < 3; ++axis)
      if (opcode == std::string(threes[i]) + "xyz"[axis]) {
        form.handler = read;
        form.detail[0] = i * 4 + axis;
      }
  for (unsigned i = 0; i < std::size(others); ++i)
    if (opcode == others[i]) {
      form.handler = read;
      form.detail[0] = 16 + i;
    }
  return form;
}

//===----------------------------------------------------------------------===//
// Barriers and fences, PTX ISA 9.7.13
//===----------------------------------------------------------------------===//

/// What barrier.red computes from the predicates of all threads.
enum class Predicates { Ignored, Count, All, Any };

static void runBarrier(Thread &thread, const Instruction &instruction,
                       const uint64_t *operands, uint64_t *results) {
  bool hasCount = instruction.detail[0];
  unsigned count = hasCount ? static_cast<uint32_t>(operands[1]) : 0;
  if (hasCount && count == 0)
    thread.block->fail(thread, Fault::Invalid, instruction.place,
                       "expected a barrier of some threads but got 0");
  auto predicates = static_cast<Predicates>(instruction.detail[3]);
  bool reduces = predicates != Predicates::Ignored;
  bool holds = reduces && (operands[hasCount ? 2 : 1] & 1);
  thread.block->barrier(
      thread, instruction, static_cast<uint32_t>(operands[0]), count,
      {/*waits=*/instruction.detail[1] != 0,
       /*isAligned=*/instruction.detail[2] != 0, reduces, holds});
  if (predicates == Predicates::Count)
    results[0] = thread.held;
  else if (predicates == Predicates::All)
    results[0] = thread.held == thread.met;
  else if (predicates == Predicates::Any)
    results[0] = thread.held > 0;
}

// bar.warp.sync: "guarantees memory ordering among the threads of the mask".
// Here, a mask of only some lanes gives no order, so that false races may be
// reported.
static void runWarpBarrier(Thread &thread, const Instruction &instruction,
                           const uint64_t *operands, uint64_t *results) {
  thread.block->gather(thread, instruction, static_cast<uint32_t>(operands[0]),
                       operands, results,
                       [](Block &block, unsigned warp, const Gathering &lanes) {
                         if (lanes.mask == block.fullMask(warp))
                           block.warpBarrier(warp);
                       });
}

/// These fences have no effect, because the emulator does not reorder accesses.
static void runNothing(Thread &, const Instruction &, const uint64_t *,
                       uint64_t *) {}

static Form findBarrier(const std::string &opcode) {
  Form form;
  if (opcode == "bar.warp.sync") {
    form.handler = &runWarpBarrier;
    form.operands = 1;
    return form;
  }
  for (const char *fence :
       {"membar.cta", "membar.gl", "membar.sys", "fence.acq_rel.cta",
        "fence.acq_rel.gpu", "fence.sc.cta", "fence.sc.gpu"})
    if (opcode == fence) {
      form.handler = &runNothing;
      return form;
    }
  const std::pair<std::string, Predicates> kinds[] = {
      {"sync", Predicates::Ignored},
      {"arrive", Predicates::Ignored},
      {"red.popc", Predicates::Count},
      {"red.and", Predicates::All},
      {"red.or", Predicates::Any}};
  for (const auto &[kind, predicates] : kinds)
    for (bool isAligned : {true, false})
      for (bool hasCount : {true, false}) {
        std::string name = "barrier.cta." + kind +
                           (isAligned ? ".aligned" : "") +
                           (hasCount ? ".count" : ".all");
        bool waits = kind != "arrive";
        bool reduces = predicates != Predicates::Ignored;
        if (opcode != name || (!waits && !hasCount))
          continue;
        form.handler = &runBarrier;
        form.operands = 1 + hasCount + reduces;
        form.results = reduces;
        form.detail[0] = hasCount;
        form.detail[1] = waits;
        form.detail[2] = isAligned;
        form.detail[3] = static_cast<int64_t>(predicates);
        return form;
      }
  return form;
}

//===----------------------------------------------------------------------===//
// Exchange within a warp, PTX ISA 9.7.9.6, 9.7.13.11 and following
//===----------------------------------------------------------------------===//

enum Shuffle { Up, Down, Butterfly, Index };

// 9.7.9.6, shfl.sync: operands a (the value), b (lane or distance), c (clamp in
// the bits 0 to 4, segment mask in 8 to 12) and the mask of lanes.
static void shuffle(Block &block, unsigned warp, const Gathering &lanes) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes.mask >> lane & 1))
      continue;
    uint32_t b = lanes.operands[lane][1] & 0x1f;
    uint32_t clamp = lanes.operands[lane][2] & 0x1f;
    uint32_t segment = lanes.operands[lane][2] >> 8 & 0x1f;
    int32_t maxLane = (lane & segment) | (clamp & ~segment);
    int32_t minLane = lane & segment;
    int32_t from = 0;
    bool isInside = false;
    switch (lanes.instruction->detail[0]) {
    case Up:
      from = static_cast<int32_t>(lane - b);
      isInside = from >= maxLane;
      break;
    case Down:
      from = static_cast<int32_t>(lane + b);
      isInside = from <= maxLane;
      break;
    case Butterfly:
      from = static_cast<int32_t>(lane ^ b);
      isInside = from <= maxLane;
      break;
    case Index:
      from = static_cast<int32_t>(minLane | (b & ~segment));
      isInside = from <= maxLane;
      break;
    }
    if (!isInside)
      from = lane;
    if (!(lanes.mask >> from & 1))
      block.fail(block.threadAt(warp * 32 + lane), Fault::Divergence,
                 lanes.instruction->place,
                 "lane " + std::to_string(lane) + " reads from lane " +
                     std::to_string(from) + ", which is not in the mask");
    lanes.results[lane][0] = static_cast<uint32_t>(lanes.operands[from][0]);
    if (lanes.instruction->detail[1])
      lanes.results[lane][1] = isInside;
  }
}

// 9.7.13.14, elect.sync: one lane of the mask is the leader. It is the same in
// every execution with this mask, but which one is not defined.
static void elect(Block &block, unsigned, const Gathering &lanes) {
  unsigned leader = block.grid.schedule.seed % 32;
  while (!(lanes.mask >> leader & 1))
    leader = (leader + 1) % 32;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes.mask >> lane & 1))
      continue;
    lanes.results[lane][0] = leader;
    lanes.results[lane][1] = lane == leader;
  }
}

enum Vote { All, Any, Uniform, Ballot };

static void vote(Block &, unsigned, const Gathering &lanes) {
  uint32_t ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes.mask >> lane & 1)
      ballot |= static_cast<uint32_t>(lanes.operands[lane][0] & 1) << lane;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes.mask >> lane & 1))
      continue;
    uint64_t &result = lanes.results[lane][0];
    switch (lanes.instruction->detail[0]) {
    case All:
      result = ballot == lanes.mask;
      break;
    case Any:
      result = ballot != 0;
      break;
    case Uniform:
      result = ballot == 0 || ballot == lanes.mask;
      break;
    case Ballot:
      result = ballot;
      break;
    }
  }
}

enum Reduction { Add, Min, Max, SignedMin, SignedMax, And, Or, Xor };

static void reduce(Block &, unsigned, const Gathering &lanes) {
  bool isFirst = true;
  uint32_t sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes.mask >> lane & 1))
      continue;
    uint32_t value = static_cast<uint32_t>(lanes.operands[lane][0]);
    auto left = static_cast<int32_t>(sum), right = static_cast<int32_t>(value);
    if (isFirst) {
      sum = value;
      isFirst = false;
      continue;
    }
    switch (lanes.instruction->detail[0]) {
    case Add:
      sum += value;
      break;
    case Min:
      sum = std::min(sum, value);
      break;
    case Max:
      sum = std::max(sum, value);
      break;
    case SignedMin:
      sum = std::min(left, right);
      break;
    case SignedMax:
      sum = std::max(left, right);
      break;
    case And:
      sum &= value;
      break;
    case Or:
      sum |= value;
      break;
    case Xor:
      sum ^= value;
      break;
    }
  }
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes.mask >> lane & 1)
      lanes.results[lane][0] = sum;
}

static Form findCollective(const std::string &opcode) {
  Form form;
  if (opcode == "elect.sync") {
    form.handler = [](Thread &thread, const Instruction &instruction,
                      const uint64_t *operands, uint64_t *results) {
      thread.block->gather(thread, instruction,
                           static_cast<uint32_t>(operands[0]), operands,
                           results, &elect);
    };
    form.operands = 1;
    form.results = 2;
    return form;
  }
  form.results = 1;
  static const std::map<std::string, Shuffle> shuffles = {
      {"up", Up}, {"down", Down}, {"bfly", Butterfly}, {"idx", Index}};
  for (const auto &[name, which] : shuffles)
    for (bool hasPredicate : {false, true})
      if (opcode == "shfl.sync." + name + ".b32" + (hasPredicate ? "|p" : "")) {
        form.handler = [](Thread &thread, const Instruction &instruction,
                          const uint64_t *operands, uint64_t *results) {
          thread.block->gather(thread, instruction,
                               static_cast<uint32_t>(operands[3]), operands,
                               results, &shuffle);
        };
        form.operands = 4;
        form.results = hasPredicate ? 2 : 1;
        form.detail[0] = which;
        form.detail[1] = hasPredicate;
        return form;
      }
  form.operands = 2;
  static const std::map<std::string, Vote> votes = {{"all.pred", All},
                                                    {"any.pred", Any},
                                                    {"uni.pred", Uniform},
                                                    {"ballot.b32", Ballot}};
  for (const auto &[name, which] : votes)
    if (opcode == "vote.sync." + name) {
      form.handler = [](Thread &thread, const Instruction &instruction,
                        const uint64_t *operands, uint64_t *results) {
        thread.block->gather(thread, instruction,
                             static_cast<uint32_t>(operands[1]), operands,
                             results, &vote);
      };
      form.detail[0] = which;
      return form;
    }
  static const std::map<std::string, Reduction> reductions = {
      {"add.s32", Add}, {"add.u32", Add},       {"min.u32", Min},
      {"max.u32", Max}, {"min.s32", SignedMin}, {"max.s32", SignedMax},
      {"and.b32", And}, {"or.b32", Or},         {"xor.b32", Xor}};
  for (const auto &[name, which] : reductions)
    if (opcode == "redux.sync." + name) {
      form.handler = [](Thread &thread, const Instruction &instruction,
                        const uint64_t *operands, uint64_t *results) {
        thread.block->gather(thread, instruction,
                             static_cast<uint32_t>(operands[1]), operands,
                             results, &reduce);
      };
      form.detail[0] = which;
      return form;
    }
  return {};
}

//===----------------------------------------------------------------------===//
// cp.async, PTX ISA 9.7.9.25.3
//===----------------------------------------------------------------------===//

static Form findCopy(const std::string &opcode) {
  Form form;
  if (opcode == "cp.async.commit_group") {
    form.handler = [](Thread &thread, const Instruction &, const uint64_t *,
                      uint64_t *) { ++thread.group; };
    return form;
  }
  if (opcode == "cp.async.wait_group") {
    form.handler = [](Thread &thread, const Instruction &,
                      const uint64_t *operands, uint64_t *) {
      thread.block->waitForCopies(thread, static_cast<uint32_t>(operands[0]),
                                  /*all=*/false);
    };
    form.operands = 1;
    return form;
  }
  if (opcode == "cp.async.wait_all") {
    form.handler = [](Thread &thread, const Instruction &, const uint64_t *,
                      uint64_t *) {
      thread.block->waitForCopies(thread, 0, /*all=*/true);
    };
    return form;
  }
  for (bool hasSourceBytes : {false, true})
    for (unsigned bytes : {4, 8, 16})
      for (const char *cache : {"ca", "cg"}) {
        // .cg only copies 16 bytes.
        if (bytes != 16 && cache == std::string("cg"))
          continue;
        if (opcode != std::string("cp.async.") + cache + ".shared.global." +
                          std::to_string(bytes) + (hasSourceBytes ? ".s" : ""))
          continue;
        // Operands: target, source, and the bytes to read of it.
        form.handler = [](Thread &thread, const Instruction &instruction,
                          const uint64_t *operands, uint64_t *) {
          auto size = static_cast<unsigned>(instruction.detail[0]);
          unsigned read =
              instruction.detail[1] ? static_cast<uint32_t>(operands[2]) : size;
          thread.block->startCopy(
              thread, instruction,
              {operands[0], operands[1], size, read, 0, false});
        };
        form.operands = hasSourceBytes ? 3 : 2;
        form.detail[0] = bytes;
        form.detail[1] = hasSourceBytes;
        return form;
      }
  return form;
}

Form findWarpInstruction(const std::string &opcode) {
  for (auto find : {&findRegister, &findBarrier, &findCollective, &findCopy})
    if (Form form = find(opcode); form.handler)
      return form;
  return {};
}

} // namespace fp8::emulator
