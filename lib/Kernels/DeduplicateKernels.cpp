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

/// Compares kernels without their names. Attributes and types are uniqued, so
/// this takes much less time than the hash of their texts.
struct SameKernel : DenseMapInfo<KernelOp> {
  static unsigned getHashValue(KernelOp kernel) {
    llvm::hash_code hash(0);
    kernel.getBody().walk([&](Operation *op) {
      hash = llvm::hash_combine(hash,
                                OperationEquivalence::computeHash(
                                    op, OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::IgnoreLocations));
    });
    return static_cast<unsigned>(hash);
  }

  static bool isEqual(KernelOp a, KernelOp b) {
    auto isReal = [](KernelOp kernel) {
      return kernel != getEmptyKey() && kernel != getTombstoneKey();
    };
    if (a == b || !isReal(a) || !isReal(b))
      return a == b;
    return attributesOf(a) == attributesOf(b) &&
           OperationEquivalence::isRegionEquivalentTo(
               &a.getBody(), &b.getBody(),
               OperationEquivalence::IgnoreLocations);
  }

private:
  static DictionaryAttr attributesOf(KernelOp kernel) {
    NamedAttrList attributes(kernel->getAttrDictionary());
    attributes.erase(SymbolTable::getSymbolAttrName());
    return attributes.getDictionary(kernel.getContext());
  }
};

class DeduplicateKernels
    : public fp8::impl::DeduplicateKernelsBase<DeduplicateKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringSet<> distinct;
    llvm::DenseMap<KernelOp, FlatSymbolRefAttr, SameKernel> names;
    llvm::DenseMap<StringAttr, FlatSymbolRefAttr> replacement;
    for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
      if (kernel.isExternal())
        continue;
      ++numKernels;
      auto [entry, isNew] = names.try_emplace(kernel);
      if (isNew)
        entry->second =
            FlatSymbolRefAttr::get(&getContext(), nameOfContents(kernel));
      FlatSymbolRefAttr name = entry->second;
      replacement[kernel.getSymNameAttr()] = name;
      // Kernels may have the same texts but different attributes, such as
      // names of equal constants.
      if (isNew && !distinct.insert(name.getValue()).second) {
        names.erase(entry);
        isNew = false;
      }
      if (!isNew) {
        kernel.erase();
        continue;
      }
      ++numDistinct;
      kernel.setSymName(name.getValue());
    }
    module.walk([&](LaunchOp launch) {
      if (FlatSymbolRefAttr kept =
              replacement.lookup(launch.getKernelAttr().getAttr()))
        launch.setKernelAttr(kept);
    });
  }
};

} // namespace
