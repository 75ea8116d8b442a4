//===- DeduplicateKernels.cpp - Merging of equal kernels ------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DEDUPLICATEKERNELS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

class DeduplicateKernels
    : public fp8::impl::DeduplicateKernelsBase<DeduplicateKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringSet<> distinct;
    llvm::DenseMap<StringAttr, FlatSymbolRefAttr> replacement;
    for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
      if (kernel.isExternal())
        continue;
      ++numKernels;
      std::string name = nameOfContents(kernel);
      replacement[kernel.getSymNameAttr()] =
          FlatSymbolRefAttr::get(&getContext(), name);
      if (distinct.insert(name).second) {
        ++numDistinct;
        kernel.setSymName(name);
      } else {
        kernel.erase();
      }
    }
    module.walk([&](LaunchOp launch) {
      if (FlatSymbolRefAttr kept =
              replacement.lookup(launch.getKernelAttr().getAttr()))
        launch.setKernelAttr(kept);
    });
  }
};

} // namespace
