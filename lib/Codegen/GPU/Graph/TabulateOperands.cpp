//===- TabulateOperands.cpp - Kernels of several sets of operands ---------===//

#include "../../Lowering/LaunchRuns.h"
#include "LaunchedKernels.h"

#include "fp8/Codegen/GPU/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_TABULATEOPERANDS
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Replaces the parameters of a kernel by the address of a table with the
/// addresses of all sets. The y index of a block is the number of its set.
static void readTable(LLVM::LLVMFuncOp func) {
  MLIRContext *context = func.getContext();
  OpBuilder builder(context);
  Location loc = func.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(context);
  auto global = LLVM::LLVMPointerType::get(
      context, static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  Block &entry = func.getBody().front();
  unsigned operands = entry.getNumArguments();
  builder.setInsertionPointToStart(&entry);
  Value table = entry.addArgument(pointer, loc);
  Value set =
      NVVM::BlockIdYOp::create(builder, loc, builder.getIntegerType(32));
  Type i64 = builder.getI64Type();
  Value wide = LLVM::ZExtOp::create(builder, loc, i64, set);
  Value row = LLVM::GEPOp::create(builder, loc, pointer,
                                  LLVM::LLVMArrayType::get(i64, operands),
                                  table, ArrayRef<LLVM::GEPArg>{wide});
  for (unsigned i = 0; i < operands; ++i) {
    BlockArgument operand = entry.getArgument(i);
    Value at =
        LLVM::GEPOp::create(builder, loc, pointer, i64, row,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    // Say that the memory is global, as it is known of a parameter.
    Value address = LLVM::LoadOp::create(builder, loc, global, at);
    if (operand.getType() != global)
      address = LLVM::AddrSpaceCastOp::create(builder, loc, operand.getType(),
                                              address);
    operand.replaceAllUsesWith(address);
  }
  entry.eraseArguments(0, operands);
  func.removeArgAttrsAttr();
  func.setFunctionType(
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), pointer));
}

namespace {

class TabulateOperands
    : public fp8::impl::TabulateOperandsBase<TabulateOperands> {
public:
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    WalkResult result = getOperation().walk([&](LaunchOp launch) -> WalkResult {
      if (launch.getNumSets() == 1 || !hasFixedOperands(launch))
        return success();
      FailureOr<StringAttr> name = kernelOfSets(launch, symbols);
      if (failed(name))
        return failure();
      if (*name)
        launch.setKernelAttr(FlatSymbolRefAttr::get(*name));
      return success();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Returns the symbol of a copy of a launch's kernel that takes sets of
  /// operands; null if there can be none.
  FailureOr<StringAttr> kernelOfSets(LaunchOp launch, SymbolTable &symbols) {
    auto name = StringAttr::get(&getContext(), launch.getKernel() + "_of_sets");
    if (symbols.lookup(name))
      return name;
    FailureOr<LLVM::LLVMFuncOp> kernel =
        gpu_codegen::loweredKernelOf(launch, symbols);
    if (failed(kernel))
      return failure();
    // Blocks have scratch memory by their x index; it is a further parameter.
    size_t operands = launch.getAccesses().size();
    if (kernel->getNumArguments() != operands)
      return StringAttr();
    readTable(gpu_codegen::copyKernel(*kernel, name, FP8Dialect::kSetsAttrName,
                                      static_cast<int64_t>(operands), symbols));
    return name;
  }
};

} // namespace
