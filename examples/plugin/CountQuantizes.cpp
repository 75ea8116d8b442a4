//===- CountQuantizes.cpp - A pass in a plugin of fp8-opt -----------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include <map>

using namespace mlir;

namespace {

/// Emits a remark on every function with the number of quantized values by
/// type.
class CountQuantizes
    : public PassWrapper<CountQuantizes, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountQuantizes)

  StringRef getArgument() const override { return "count-quantizes"; }
  StringRef getDescription() const override {
    return "Count what a function quantizes";
  }

  void runOnOperation() override {
    std::map<std::string, int> counts;
    getOperation().walk([&](fp8::QuantizeOp op) {
      std::string format;
      llvm::raw_string_ostream os(format);
      os << op.getType().getElementType();
      ++counts[format];
    });
    for (const auto &[format, count] : counts)
      getOperation().emitRemark() << count << " values become " << format;
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "count-quantizes", "0.1",
          [] { PassRegistration<CountQuantizes>(); }};
}
