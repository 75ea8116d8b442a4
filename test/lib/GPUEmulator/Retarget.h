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
  std::string entry; ///< A void (const void *const *arguments).
  std::vector<unsigned> parameters;
  /// For each parameter, the bytes of the buffer that it points to: -1 if a
  /// pointer does not declare them, -2 for parameters that are no pointers.
  std::vector<int64_t> reach;
};

/// The objects that the code of a retargeted module points to.
struct Retargeted {
  std::deque<Instruction> instructions;
  std::deque<AccessSite> accesses;
  std::deque<RegisterUse> registerUses;
  std::vector<RetargetedKernel> kernels;
  /// Globals that kernels may read and, unless they are constants, write.
  std::vector<std::string> globals;
  unsigned staticShared = 0;
};

/// Turns `module` into host code. Shared memory lies at `sharedBase`, and
/// special instructions become calls of fp8_emulator_instruction. A call of
/// fp8_emulator_access or fp8_emulator_range precedes every access to memory,
/// and a call of fp8_emulator_register every use of a result of wgmma. An
/// unknown instruction is an error.
llvm::Error retarget(llvm::Module &module, const llvm::DataLayout &layout,
                     const llvm::Triple &triple, uint64_t sharedBase,
                     Retargeted &result);

/// An operand of an instruction in inline assembly.
struct AssemblyOperand {
  enum { Output, Input, Literal } kind;
  unsigned number; // of the output or the call's argument
  uint64_t literal;
};
struct Assembly {
  std::string opcode; ///< In the form that findInstruction expects.
  std::vector<AssemblyOperand> results, operands;
};
/// Parses the single instruction of an inline assembly call.
llvm::Expected<Assembly> parseAssembly(llvm::StringRef text,
                                       llvm::StringRef constraints);

/// The PTX name of an intrinsic, given without "llvm.nvvm.", and the order of
/// its operands there; empty if it is the same.
struct Spelling {
  std::string opcode;
  std::vector<unsigned> order;
};
Spelling spellIntrinsic(llvm::StringRef name);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_RETARGET_H
