//===- DeduplicateKernels.cpp - One of all equal kernels ------------------===//

#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DEDUPLICATEKERNELS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The kernel as text without its own name and without locations: values are
/// numbered by position, so equal text is equal structure.
std::string structureOf(func::FuncOp kernel) {
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName("kernel");
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel->print(os, OpPrintingFlags().useLocalScope());
  kernel.setSymNameAttr(name);
  return text;
}

class DeduplicateKernels
    : public fp8::impl::DeduplicateKernelsBase<DeduplicateKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<func::FuncOp> distinct;
    llvm::DenseMap<StringAttr, StringAttr> replacement;
    SmallVector<func::FuncOp> duplicates;
    for (auto kernel : module.getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(kDomainAttr))
        continue;
      ++numKernels;
      auto [it, isNew] = distinct.try_emplace(structureOf(kernel), kernel);
      if (isNew) {
        ++numDistinct;
        continue;
      }
      replacement[kernel.getSymNameAttr()] = it->second.getSymNameAttr();
      duplicates.push_back(kernel);
    }
    module.walk([&](func::CallOp call) {
      auto it = replacement.find(call.getCalleeAttr().getAttr());
      if (it != replacement.end())
        call.setCallee(it->second.strref());
    });
    for (func::FuncOp kernel : duplicates)
      kernel.erase();
  }
};

} // namespace
