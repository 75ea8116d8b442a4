//===- Matrix.cpp - mma, ldmatrix, stmatrix -------------------------------===//

#include "Formats.h"
#include "Fragments.h"
#include "Instructions.h"

#include <cmath>
#include <cstring>
#include <set>

namespace fp8::emulator {

namespace {
struct Shape {
  unsigned k;
  Format a, b;
};
} // namespace

static Shape shapeOf(const Instruction &instruction) {
  return {static_cast<unsigned>(instruction.detail[0]),
          static_cast<Format>(instruction.detail[1]),
          static_cast<Format>(instruction.detail[2])};
}

// PTX ISA 9.7.14.5.14, mma: D = A * B + C; "the accumulation order, rounding
// and handling of subnormal inputs are unspecified". Here products are exact,
// they are added to C in order of k in f64, and the sum is rounded to f32 once.
static void multiply(Block &, unsigned, const Gathering &lanes) {
  Shape shape = shapeOf(*lanes.instruction);
  double a[16][32], b[32][8];
  unsigned aPer = 32 / bitsOf(shape.a), bPer = 32 / bitsOf(shape.b);
  unsigned aRegisters = 16 * shape.k / 32 / aPer,
           bRegisters = 8 * shape.k / 32 / bPer;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const uint64_t *operands = lanes.operands[lane];
    for (unsigned i = 0; i < aRegisters * aPer; ++i) {
      Place place = placeInA(lane, i, aPer);
      a[place.row][place.column] = elementOf(operands, i, shape.a);
    }
    for (unsigned i = 0; i < bRegisters * bPer; ++i) {
      Place place = placeInB(lane, i, bPer);
      b[place.row][place.column] = elementOf(operands + aRegisters, i, shape.b);
    }
  }
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      Place place = placeInC(lane, i);
      double sum = asFloat(lanes.operands[lane][aRegisters + bRegisters + i]);
      for (unsigned k = 0; k < shape.k; ++k)
        sum += a[place.row][k] * b[k][place.column];
      lanes.results[lane][i] = asBits(static_cast<float>(sum));
    }
}

static void runMma(Thread &thread, const Instruction &instruction,
                   const uint64_t *operands, uint64_t *results) {
  // .aligned: all threads of a full warp take part.
  thread.block->gather(thread, instruction, ~0u, operands, results, &multiply);
}

// PTX ISA 9.7.14.5.15, ldmatrix: lanes 8i to 8i + 7 give the addresses of the
// rows of matrix i, 16 bytes each. Of every matrix, a lane gets two
// elements, from 2 * (lane % 4) on, of row lane / 4, or of that column with
// .trans.
static void loadMatrices(Block &block, unsigned warp, const Gathering &lanes) {
  const Instruction &instruction = *lanes.instruction;
  unsigned count = instruction.detail[0];
  bool isTransposed = instruction.detail[1];
  for (unsigned matrix = 0; matrix < count; ++matrix) {
    uint16_t rows[8][8];
    // There are 32 banks of four bytes. Eight lines in different banks are read
    // at once (CUDA C++ Programming Guide, "Shared Memory").
    std::set<uint64_t> banks;
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = matrix * 8 + row;
      uint64_t address = lanes.operands[lane][0];
      block.access(block.threadAt(warp * 32 + lane), address, 16, 16,
                   AccessKind::Read, instruction.place);
      block.grid.bankConflicts += !banks.insert(address / 16 % 8).second;
      std::memcpy(rows[row], reinterpret_cast<const void *>(address), 16);
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      auto [row, column] = placeInMatrix(lane, isTransposed);
      uint32_t low = rows[row][column];
      uint32_t high =
          isTransposed ? rows[row + 1][column] : rows[row][column + 1];
      lanes.results[lane][matrix] = low | high << 16;
    }
  }
}

static void runLdmatrix(Thread &thread, const Instruction &instruction,
                        const uint64_t *operands, uint64_t *results) {
  thread.block->gather(thread, instruction, ~0u, operands, results,
                       &loadMatrices);
}

// PTX ISA 9.7.14.5.16, stmatrix: the inverse of ldmatrix.
static void storeMatrices(Block &block, unsigned warp, const Gathering &lanes) {
  const Instruction &instruction = *lanes.instruction;
  unsigned count = instruction.detail[0];
  bool isTransposed = instruction.detail[1];
  for (unsigned matrix = 0; matrix < count; ++matrix) {
    uint16_t rows[8][8];
    for (unsigned lane = 0; lane < 32; ++lane) {
      auto [row, column] = placeInMatrix(lane, isTransposed);
      uint32_t word = static_cast<uint32_t>(lanes.operands[lane][1 + matrix]);
      rows[row][column] = word & 0xffff;
      (isTransposed ? rows[row + 1][column] : rows[row][column + 1]) =
          word >> 16;
    }
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = matrix * 8 + row;
      uint64_t address = lanes.operands[lane][0];
      block.access(block.threadAt(warp * 32 + lane), address, 16, 16,
                   AccessKind::Write, instruction.place);
      std::memcpy(reinterpret_cast<void *>(address), rows[row], 16);
    }
  }
}

static void runStmatrix(Thread &thread, const Instruction &instruction,
                        const uint64_t *operands, uint64_t *results) {
  thread.block->gather(thread, instruction, ~0u, operands, results,
                       &storeMatrices);
}

static bool readFormat(const std::string &name, Format &format) {
  for (Format known :
       {Format::E4M3, Format::E5M2, Format::F16, Format::BF16, Format::TF32})
    if (name == nameOfFormat(known)) {
      format = known;
      return true;
    }
  return false;
}

/// `mma.sync.aligned.m16n8kK.row.col[.kind::f8f6f4].f32.A.B.f32`
static Form findMma(std::string rest) {
  Form form;
  unsigned k = 0;
  for (unsigned known : {4, 8, 16, 32}) {
    std::string start = "m16n8k" + std::to_string(known) + ".row.col.";
    if (startsWith(rest, start)) {
      k = known;
      rest = rest.substr(start.size());
    }
  }
  std::string kind = "kind::f8f6f4.";
  if (startsWith(rest, kind))
    rest = rest.substr(kind.size());
  size_t first = rest.find('.'), second = rest.find('.', first + 1),
         third = rest.find('.', second + 1);
  if (k == 0 || third == std::string::npos || rest.substr(0, first) != "f32" ||
      rest.substr(third + 1) != "f32")
    return form;
  Format a, b;
  if (!readFormat(rest.substr(first + 1, second - first - 1), a) ||
      !readFormat(rest.substr(second + 1, third - second - 1), b))
    return form;
  unsigned bits = bitsOf(a);
  bool isF8 = bits == 8;
  // The combinations in PTX ISA 9.7.14.5.14 with f32 accumulators.
  bool isKnown = bits == bitsOf(b) && (isF8 || a == b) &&
                 (k * bits == 256 || (k * bits == 128));
  if (!isKnown)
    return form;
  form.handler = &runMma;
  form.operands = 16 * k * bits / 1024 + 8 * k * bits / 1024 + 4;
  form.results = 4;
  form.detail[0] = k;
  form.detail[1] = static_cast<int64_t>(a);
  form.detail[2] = static_cast<int64_t>(b);
  return form;
}

Form findMatrixInstruction(const std::string &opcode) {
  std::string mma = "mma.sync.aligned.";
  if (startsWith(opcode, mma))
    return findMma(opcode.substr(mma.size()));
  for (bool isStore : {false, true})
    for (unsigned count : {1, 2, 4})
      for (bool isTransposed : {false, true}) {
        std::string start = std::string(isStore ? "stmatrix" : "ldmatrix") +
                            ".sync.aligned.m8n8.x" + std::to_string(count) +
                            (isTransposed ? ".trans" : "");
        if (opcode != start + ".shared.b16" &&
            opcode != start + ".shared::cta.b16" && opcode != start + ".b16")
          continue;
        Form form;
        form.handler = isStore ? &runStmatrix : &runLdmatrix;
        form.operands = isStore ? 1 + count : 1;
        form.results = isStore ? 0 : count;
        form.detail[0] = count;
        form.detail[1] = isTransposed;
        return form;
      }
  return {};
}

} // namespace fp8::emulator
