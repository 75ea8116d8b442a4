//===- Wgmma.cpp - wgmma, PTX ISA 9.7.15 ----------------------------------===//
//
// A warpgroup has four warps. Each computes its 16 rows of the result at its
// own pace; the emulator checks that all four issue the same wgmmas in the same
// order. Results are computed when a wgmma is issued. Before a wait, its
// operands in shared memory must not be written and its registers must not be
// used.
//
//===----------------------------------------------------------------------===//

#include "Descriptor.h"
#include "Formats.h"
#include "Fragments.h"
#include "Instructions.h"

#include <algorithm>

namespace fp8::emulator {

namespace {
/// The shape and types in an opcode.
struct Shape {
  explicit Shape(const Instruction &instruction)
      : n(static_cast<unsigned>(instruction.detail[0])),
        a(static_cast<Format>(instruction.detail[1])),
        b(static_cast<Format>(instruction.detail[2])),
        hasRegistersOfA(instruction.detail[3]) {}
  unsigned n;
  Format a, b;
  bool hasRegistersOfA;
  unsigned elementBytes() const { return bitsOf(a) / 8; }
  unsigned k() const { return 32 / elementBytes(); }
  unsigned accumulators() const { return n / 2; }
};

/// The operands of one lane, which follow the accumulators.
struct Operands {
  Operands(const Shape &shape, const uint64_t *operands)
      : accumulators(operands), a(operands + shape.accumulators()),
        b(a[shape.hasRegistersOfA ? 4 : 1]) {
    const uint64_t *rest = a + (shape.hasRegistersOfA ? 5 : 2);
    keepsSums = rest[0] & 1;
    scaleA = static_cast<int32_t>(rest[1]);
    scaleB = static_cast<int32_t>(rest[2]);
    if (shape.elementBytes() == 2) {
      isTransposedA = !shape.hasRegistersOfA && rest[3];
      isTransposedB = rest[shape.hasRegistersOfA ? 3 : 4];
    }
  }
  const uint64_t *accumulators, *a;
  uint64_t b;
  bool keepsSums, isTransposedA = false, isTransposedB = false;
  int32_t scaleA, scaleB;
};
} // namespace

namespace {
/// An element in shared memory.
struct Element {
  uint64_t address = 0;
  Format format = Format::E4M3;
  double value() const {
    const auto *at = reinterpret_cast<const uint8_t *>(address);
    return decode(format, bitsOf(format) == 8 ? at[0] : at[0] | at[1] << 8);
  }
};
} // namespace

using Elements = std::vector<std::vector<Element>>;

/// Locates the elements of `rows` rows (for B: columns) of 32 bytes along k,
/// and adds the addresses of the 16-byte pieces that contain them.
static void findMatrix(const Descriptor &descriptor, uint64_t base,
                       unsigned rows, const Shape &shape, Format format,
                       bool isTransposed, Elements &elements,
                       std::vector<uint64_t> &pieces) {
  elements.assign(rows, std::vector<Element>(shape.k()));
  // Descriptors address a window of 256 KiB, within which shared memory may
  // begin anywhere.
  auto addressOf = [&](uint64_t place) {
    return base + ((place - base) & 0x3ffff);
  };
  unsigned bytes = shape.elementBytes();
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < shape.k(); ++k) {
      uint64_t piece =
          addressOf(isTransposed ? descriptor.pieceAlongMN(row, k)
                                 : descriptor.pieceAlongK(row, k * bytes));
      unsigned inside = isTransposed ? row % 8 * bytes : k * bytes % 16;
      pieces.push_back(piece);
      elements[row][k] = {piece + inside, format};
    }
  std::sort(pieces.begin(), pieces.end());
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
}

/// Checks that all four warps of a warpgroup issue the same wgmmas in the same
/// order.
void Block::checkWarpgroup(Thread &thread, const Instruction &instruction,
                           uint64_t a, uint64_t b) {
  unsigned warp = thread.warp, group = warp / 4;
  if (threads.size() < (group + 1) * 128)
    fail(thread, Fault::Divergence, instruction.place,
         "expected a warpgroup of 128 threads but got " +
             std::to_string(threads.size() - group * 128));
  std::vector<MatrixIssue> &issues = matrixIssues[group];
  MatrixIssue issue = {&instruction, a, b};
  if (matrices[warp].issued == issues.size())
    issues.push_back(issue);
  if (!(issues[matrices[warp].issued++] == issue))
    fail(thread, Fault::Divergence, instruction.place,
         "another warp of the warpgroup has a different wgmma, or one of other "
         "matrices, here");
}

// 9.7.15.7.1, wgmma.fence: must precede a wgmma whose registers were used by
// other instructions, except for accumulators of a wgmma of the same shape. The
// emulator does not see these uses, and assumes one after each wait.
void Block::checkFence(Thread &thread, const Gathering &lanes) {
  Shape shape(*lanes.instruction);
  Matrices &state = matrices[thread.warp];
  std::vector<uint32_t> given;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < shape.accumulators(); ++i)
      given.push_back(static_cast<uint32_t>(lanes.operands[lane][i]));
  auto found = std::find(state.made.begin(), state.made.end(), given);
  bool isChained = found != state.made.end();
  if (isChained)
    state.made.erase(found);
  if (!state.isFenced && (!isChained || shape.hasRegistersOfA))
    fail(thread, Fault::Race, lanes.instruction->place,
         "there is no wgmma.fence between the use of the registers of a wgmma "
         "and this one");
}

/// Computes the warp's 16 rows of the result. Returns the accumulators of all
/// lanes.
static std::vector<uint32_t> multiply(unsigned warp, const Gathering &lanes,
                                      const Elements &as, const Elements &bs) {
  Shape shape(*lanes.instruction);
  Operands first(shape, lanes.operands[0]);
  unsigned firstRow = warp % 4 * 16, k = shape.k();
  std::vector<std::vector<double>> a(16, std::vector<double>(k)),
      b(shape.n, std::vector<double>(k));
  for (unsigned column = 0; column < shape.n; ++column)
    for (unsigned i = 0; i < k; ++i)
      b[column][i] = bs[column][i].value() * first.scaleB;
  for (unsigned row = 0; row < 16 && !shape.hasRegistersOfA; ++row)
    for (unsigned i = 0; i < k; ++i)
      a[row][i] = as[firstRow + row][i].value() * first.scaleA;
  unsigned perRegister = 4 / shape.elementBytes();
  for (unsigned lane = 0; lane < 32 && shape.hasRegistersOfA; ++lane)
    for (unsigned i = 0; i < 4 * perRegister; ++i) {
      Place place = placeInA(lane, i, perRegister);
      a[place.row][place.column] =
          elementOf(Operands(shape, lanes.operands[lane]).a, i, shape.a) *
          first.scaleA;
    }
  std::vector<uint32_t> made;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < shape.accumulators(); ++i) {
      Place place = placeInWgmmaD(lane, i);
      double sum = first.keepsSums ? asFloat(lanes.operands[lane][i]) : 0;
      for (unsigned j = 0; j < k; ++j)
        sum += a[place.row][j] * b[place.column][j];
      lanes.results[lane][i] = asBits(static_cast<float>(sum));
      made.push_back(static_cast<uint32_t>(lanes.results[lane][i]));
    }
  return made;
}

// 9.7.15.5, wgmma.mma_async: D = A * B + D, or A * B. As for mma, exact
// products are added in order of k in f64, and the sum is rounded to f32 once.
void Block::startMatrix(unsigned warp, const Gathering &lanes) {
  const Instruction &instruction = *lanes.instruction;
  Shape shape(instruction);
  Operands first(shape, lanes.operands[0]);
  Thread &thread = threads[warp * 32];
  auto invalid = [&](const std::string &message) {
    fail(thread, Fault::Invalid, instruction.place, message);
  };
  for (unsigned lane = 1; lane < 32; ++lane) {
    Operands other(shape, lanes.operands[lane]);
    if (other.b != first.b || other.keepsSums != first.keepsSums ||
        (!shape.hasRegistersOfA && other.a[0] != first.a[0]))
      invalid("expected the same matrices and scale-d in all lanes");
  }
  for (int32_t scale : {first.scaleA, first.scaleB})
    if (scale != 1 && scale != -1)
      invalid("expected a scale of 1 or -1 but got " + std::to_string(scale));
  checkWarpgroup(thread, instruction, shape.hasRegistersOfA ? 0 : first.a[0],
                 first.b);
  checkFence(thread, lanes);

  MatrixWork work = {&instruction, matrices[warp].group, {}};
  Elements a, b;
  for (bool isB : {false, true}) {
    if (!isB && shape.hasRegistersOfA)
      continue;
    Descriptor descriptor(isB ? first.b : first.a[0]);
    if (std::string why = descriptor.invalid(); !why.empty())
      invalid(why);
    findMatrix(descriptor, grid.sharedBase, isB ? shape.n : 64, shape,
               isB ? shape.b : shape.a,
               isB ? first.isTransposedB : first.isTransposedA, isB ? b : a,
               work.pieces);
  }
  for (uint64_t piece : work.pieces) {
    accessByProxy(thread, piece, 16, 16, AccessKind::Read, instruction.place);
    ++matrixReads[(piece - grid.sharedBase) / 16];
  }
  matrices[warp].made.push_back(multiply(warp, lanes, a, b));
  matrices[warp].pending.push_back(std::move(work));
}

// 9.7.15.7.3, wgmma.wait_group N: waits until at most the last N groups of the
// warp are pending. Does not wait for wgmmas without a group.
void Block::waitForMatrices(unsigned warp, const Instruction &instruction,
                            uint64_t count) {
  Matrices &state = matrices[warp];
  Thread &thread = threads[warp * 32];
  state.isFenced = false;
  while (!state.pending.empty() &&
         state.pending.front().group + count < state.group) {
    for (uint64_t piece : state.pending.front().pieces) {
      --matrixReads[(piece - grid.sharedBase) / 16];
      // The wgmma may have read it until now.
      checkShared(thread, piece, 16, AccessKind::Read, instruction.place);
    }
    state.pending.pop_front();
    clocks.advance(warp);
  }
}

// 9.7.15.3: before a wait, the registers and shared memory of a wgmma must not
// be used.
void Block::checkRegisters(Thread &thread, const RegisterUse &use) {
  for (const MatrixWork &work : matrices[thread.warp].pending)
    if (work.instruction == use.maker)
      fail(thread, Fault::Pending, use.place,
           "use of a register of a wgmma that has not been waited for:" +
               work.instruction->place);
}

void Block::checkMatrixReads(Thread &thread, uint64_t address, uint64_t bytes,
                             const std::string &place) {
  uint64_t begin = address - grid.sharedBase, end = begin + bytes;
  for (uint64_t piece = begin / 16; piece * 16 < end; ++piece)
    if (matrixReads[piece])
      fail(thread, Fault::Pending, place,
           "write of " + nameOf(address) +
               ", which a wgmma reads that has not been waited for");
}

Result Block::checkMatrices() const {
  std::string start =
      "kernel '" + grid.kernel + "', block " + std::to_string(index) + ": ";
  for (size_t warp = 0; warp < matrices.size(); ++warp) {
    if (!matrices[warp].pending.empty())
      return {Fault::Pending,
              start + "it ends before a wgmma has been waited for:" +
                  matrices[warp].pending.front().instruction->place};
    if (matrices[warp].issued != matrixIssues[warp / 4].size())
      return {Fault::Divergence, start + "warp " + std::to_string(warp) +
                                     " has not issued every wgmma of its "
                                     "warpgroup"};
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// All instructions are .sync.aligned: the whole warp executes them together.
template <WarpOperation operation>
static void runAligned(Thread &thread, const Instruction &instruction,
                       const uint64_t *operands, uint64_t *results) {
  thread.block->gather(thread, instruction, ~0u, operands, results, operation);
}

static void runFence(Block &block, unsigned warp, const Gathering &) {
  block.fenceMatrices(warp);
}
static void runCommit(Block &block, unsigned warp, const Gathering &) {
  block.commitMatrices(warp);
}
static void runWait(Block &block, unsigned warp, const Gathering &lanes) {
  block.waitForMatrices(warp, *lanes.instruction, lanes.operands[0][0]);
}
static void runMultiply(Block &block, unsigned warp, const Gathering &lanes) {
  block.startMatrix(warp, lanes);
}

/// Finds `m64nNkK.f32.A.B`, with the suffix `.ra` if A is in registers.
static Form findMultiply(std::string rest) {
  Form form;
  std::string inRegisters = ".ra";
  bool hasRegistersOfA = rest.size() > inRegisters.size() &&
                         rest.substr(rest.size() - 3) == inRegisters;
  if (hasRegistersOfA)
    rest.resize(rest.size() - inRegisters.size());
  for (Format a : {Format::E4M3, Format::E5M2, Format::F16, Format::BF16})
    for (Format b : {Format::E4M3, Format::E5M2, Format::F16, Format::BF16}) {
      bool isF8 = bitsOf(a) == 8;
      if (isF8 ? bitsOf(b) != 8 : a != b)
        continue;
      for (unsigned n = 8; n <= 256; n += 8) {
        if (rest != "m64n" + std::to_string(n) + (isF8 ? "k32" : "k16") +
                        ".f32." + nameOfFormat(a) + "." + nameOfFormat(b))
          continue;
        form.handler = &runAligned<&runMultiply>;
        form.results = n / 2;
        // Accumulators, A, B, scale-d and two signs, and for 16 bits the
        // transpositions.
        form.operands = n / 2 + (hasRegistersOfA ? 4 : 1) + 4 +
                        (isF8 ? 0 : (hasRegistersOfA ? 1 : 2));
        form.detail[0] = n;
        form.detail[1] = static_cast<int64_t>(a);
        form.detail[2] = static_cast<int64_t>(b);
        form.detail[3] = hasRegistersOfA;
      }
    }
  return form;
}

Form findWgmmaInstruction(const std::string &opcode) {
  std::string multiply = "wgmma.mma_async.sync.aligned.";
  if (startsWith(opcode, multiply))
    return findMultiply(opcode.substr(multiply.size()));
  Form form;
  if (opcode == "wgmma.fence.sync.aligned")
    form.handler = &runAligned<&runFence>;
  else if (opcode == "wgmma.commit_group.sync.aligned")
    form.handler = &runAligned<&runCommit>;
  else if (opcode == "wgmma.wait_group.sync.aligned") {
    form.handler = &runAligned<&runWait>;
    form.operands = 1;
  }
  return form;
}

} // namespace fp8::emulator
