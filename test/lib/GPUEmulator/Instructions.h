//===- Instructions.h - Special instructions by name ------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_INSTRUCTIONS_H
#define FP8_TEST_LIB_GPUEMULATOR_INSTRUCTIONS_H

#include "Block.h"

namespace fp8::emulator {

/// The handler of an instruction and its numbers of operands and results.
struct Form {
  Handler handler = nullptr; ///< Null if the instruction is unknown.
  unsigned operands = 0, results = 0;
  int64_t detail[4] = {};
};

/// Returns the instruction that PTX calls `opcode`, including all modifiers.
/// Special registers are found by name (%tid.x).
Form findInstruction(const std::string &opcode);

// One function for each file of instructions. They return null handlers for
// unknown names.
Form findBulkInstruction(const std::string &opcode);
Form findMatrixInstruction(const std::string &opcode);
Form findWarpInstruction(const std::string &opcode);
Form findWgmmaInstruction(const std::string &opcode);
Form findScalarInstruction(const std::string &opcode);

inline bool startsWith(const std::string &text, const std::string &start) {
  return text.compare(0, start.size(), start) == 0;
}

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_INSTRUCTIONS_H
