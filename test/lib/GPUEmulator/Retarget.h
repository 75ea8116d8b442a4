//===- Retarget.h - NVVM modules for the host -------------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_RETARGET_H
#define FP8_TEST_LIB_GPUEMULATOR_RETARGET_H

#include "Instructions.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

#include <deque>

namespace fp8::emulator {

/// A kernel of a retargeted module.
struct RetargetedKernel {
  std::string name;
  std::string entry; ///< Of type void (const void *const *arguments).
  std::vector<unsigned> parameters;
  /// For each parameter that is a pointer the bytes that it may reach; -1 where
  /// it does not say, or is none.
  std::vector<int64_t> reach;
};

/// What code of a retargeted module points to.
struct Retargeted {
  std::deque<Instruction> instructions;
  std::deque<AccessSite> accesses;
  std::deque<RegisterUse> registerUses;
  std::vector<RetargetedKernel> kernels;
  /// Globals that kernels may read, and write if they are no constants.
  std::vector<std::string> globals;
  unsigned staticShared = 0;
};

/// Makes host code of `module`: shared memory lies at `sharedBase`, special
/// instructions are calls of fp8_emulator_instruction, and before every access
/// of memory stands a call of fp8_emulator_access or fp8_emulator_range, before
/// a use of what a wgmma makes one of fp8_emulator_register. An instruction
/// that is not known is an error.
llvm::Error retarget(llvm::Module &module, const llvm::DataLayout &layout,
                     const llvm::Triple &triple, uint64_t sharedBase,
                     Retargeted &result);

/// PTX in inline assembly, one instruction.
struct AssemblyOperand {
  enum { Output, Input, Literal } kind;
  unsigned number; // of the output or the call's argument
  uint64_t literal;
};
struct Assembly {
  std::string opcode; ///< As findInstruction knows it.
  std::vector<AssemblyOperand> results, operands;
};
/// Reads the text of an inline assembly call with these constraints.
llvm::Expected<Assembly> parseAssembly(llvm::StringRef text,
                                       llvm::StringRef constraints);

/// What PTX calls an intrinsic (without "llvm.nvvm."), and the order of its
/// operands there, empty: the same.
struct Spelling {
  std::string opcode;
  std::vector<unsigned> order;
};
Spelling spellIntrinsic(llvm::StringRef name);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_RETARGET_H
