//===- UnitCompiler.h - LLVM IR to an object --------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_UNITCOMPILER_H
#define FP8_LIB_COMPILER_UNITCOMPILER_H

#include "fp8/Codegen/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

namespace mlir::fp8 {

/// Returns LLVM's target machine builder for `target`.
llvm::orc::JITTargetMachineBuilder
makeTargetMachineBuilder(const CodeTarget &target, bool optimize);

/// Compiles modules one after another. Creates its passes once, because that
/// takes longer than running them on a small kernel.
class UnitCompiler {
public:
  static llvm::Expected<std::unique_ptr<UnitCompiler>>
  create(llvm::orc::JITTargetMachineBuilder builder, bool optimize);

  /// Returns the object of a module in the LLVM dialect.
  llvm::Expected<std::string> compile(ModuleOp unit);

  /// Returns the object of a module, without optimization passes.
  std::string emit(llvm::Module &module);

private:
  explicit UnitCompiler(std::unique_ptr<llvm::TargetMachine> machine)
      : machine(std::move(machine)), stream(object) {}

  void setTarget(llvm::Module &module);
  bool makeCodegen();
  llvm::Error makePipeline();

  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::LLVMContext context;
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::ModulePassManager pipeline;
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream;
  llvm::legacy::PassManager codegen;
};

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_UNITCOMPILER_H
