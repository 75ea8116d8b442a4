//===- Instructions.h - Special instructions by name ------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_INSTRUCTIONS_H
#define FP8_TEST_LIB_GPUEMULATOR_INSTRUCTIONS_H

#include "Block.h"

namespace fp8::emulator {

/// How an instruction is called.
struct Form {
  Handler handler = nullptr; ///< Null: not known.
  unsigned operands = 0, results = 0;
  int64_t detail[4] = {};
};

/// The instruction that PTX calls `opcode`, with all its modifiers. Special
/// registers have their names (%tid.x).
Form findInstruction(const std::string &opcode);

// One for each file of instructions; null handlers where the name is not known.
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
