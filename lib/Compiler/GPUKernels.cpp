//===- GPUKernels.cpp - Objects of GPU kernels ----------------------------===//

#include "GPUKernels.h"
#include "ObjectCode.h"
#include "Threads.h"

#include "fp8-c/Runtime.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/ElementTypes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SHA256.h"
#include <array>
#include <atomic>
#include <optional>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Returns the fields of an fp8_gpu_dot: four of 64 bits, then those of 32
/// bits.
std::array<int64_t, 11> numbersOf(const fp8_gpu_dot &dot) {
  return {dot.rows,
          dot.columns,
          dot.depth,
          dot.workspace_bytes,
          dot.lhs,
          dot.rhs,
          dot.result,
          dot.lhs_along_k,
          dot.rhs_along_k,
          dot.scaled,
          dot.fast_accumulation};
}

/// Returns the fields of an fp8_gpu_tensor_map: `narrow` of them, then
/// `wide`, then `box` have 32, 64 and 32 bits.
struct TensorMapFields {
  static constexpr unsigned narrow = 4, wide = 2 * FP8_GPU_MAP_DIMS - 1,
                            box = FP8_GPU_MAP_DIMS;
  SmallVector<int64_t> numbers;

  explicit TensorMapFields(TensorMapAttr map) {
    auto add = [&](ArrayRef<int64_t> values, size_t count) {
      llvm::append_range(numbers, values);
      numbers.append(count - values.size(), 0);
    };
    add({map.getOperand(), dtypeOf(map.getElement()),
         static_cast<int64_t>(map.getSizes().size()), map.getSwizzle()},
        narrow);
    add(map.getSizes(), FP8_GPU_MAP_DIMS);
    add(map.getStrides(), FP8_GPU_MAP_DIMS - 1);
    add(map.getBox(), box);
  }
};

/// A kernel as described to the runtime.
struct Kernel {
  std::string name; // in the image
  std::string image;
  int64_t threads = 0, sharedBytes = 0, operands = 0, loops = 0,
          scratchBytes = 0, takesSets = 0;
  /// The dot that cuBLASLt computes instead of an image.
  std::optional<fp8_gpu_dot> dot;
  SmallVector<TensorMapFields> maps;

  /// Returns a symbol with a hash of all fields.
  std::string symbol() const {
    llvm::SHA256 hash;
    hash.update(name);
    for (int64_t number :
         {threads, sharedBytes, operands, loops, scratchBytes, takesSets})
      hash.update(llvm::utostr(number) + ",");
    hash.update(image);
    if (dot)
      for (int64_t number : numbersOf(*dot))
        hash.update(llvm::utostr(number) + ",");
    for (const TensorMapFields &map : maps)
      for (int64_t number : map.numbers)
        hash.update(llvm::utostr(number) + ",");
    return "fp8_gpu_kernel_" +
           llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 32);
  }
};

/// Emits an object that defines `kernel` as an fp8_gpu_kernel.
llvm::Expected<std::string> describe(const Kernel &kernel,
                                     const std::string &symbol,
                                     const CodeTarget &host) {
  llvm::LLVMContext context;
  llvm::Module module(symbol, context);
  llvm::Type *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *i64 = llvm::Type::getInt64Ty(context);
  llvm::Type *i32 = llvm::Type::getInt32Ty(context);
  auto bytes = [&](StringRef text, bool isText) -> llvm::Constant * {
    auto *data = llvm::ConstantDataArray::getString(context, text, isText);
    auto *global = new llvm::GlobalVariable(
        module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
    global->setAlignment(llvm::Align(64));
    return global;
  };
  llvm::Constant *none =
      llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  llvm::Constant *dot = none;
  if (kernel.dot) {
    std::vector<llvm::Constant *> numbers;
    for (auto [i, number] : llvm::enumerate(numbersOf(*kernel.dot)))
      numbers.push_back(llvm::ConstantInt::get(i < 4 ? i64 : i32, number));
    auto *value = llvm::ConstantStruct::getAnon(numbers);
    dot = new llvm::GlobalVariable(module, value->getType(), true,
                                   llvm::GlobalValue::PrivateLinkage, value);
  }
  llvm::Constant *maps = none;
  if (!kernel.maps.empty()) {
    std::vector<llvm::Constant *> all;
    for (const TensorMapFields &map : kernel.maps) {
      std::vector<llvm::Constant *> numbers;
      for (auto [i, number] : llvm::enumerate(map.numbers)) {
        bool isWide = i >= map.narrow && i < map.narrow + map.wide;
        numbers.push_back(llvm::ConstantInt::get(isWide ? i64 : i32, number));
      }
      all.push_back(llvm::ConstantStruct::getAnon(numbers));
    }
    auto *value = llvm::ConstantArray::get(
        llvm::ArrayType::get(all.front()->getType(), all.size()), all);
    maps = new llvm::GlobalVariable(module, value->getType(), true,
                                    llvm::GlobalValue::PrivateLinkage, value);
  }
  // PTX is text; the driver needs a terminating zero.
  std::vector<llvm::Constant *> fields = {
      bytes(kernel.name, true),
      kernel.dot ? none : bytes(kernel.image, true),
      llvm::ConstantInt::get(i64, kernel.image.size()),
      llvm::ConstantInt::get(i32, kernel.threads),
      llvm::ConstantInt::get(i32, kernel.sharedBytes),
      llvm::ConstantInt::get(i32, kernel.operands),
      llvm::ConstantInt::get(i32, kernel.loops),
      llvm::ConstantInt::get(i64, kernel.scratchBytes),
      dot,
      llvm::ConstantInt::get(i32, kernel.takesSets),
      maps,
      llvm::ConstantInt::get(i64, kernel.maps.size())};
  auto *type =
      llvm::StructType::get(context, {pointer, pointer, i64, i32, i32, i32, i32,
                                      i64, pointer, i32, pointer, i64});
  new llvm::GlobalVariable(module, type, true,
                           llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantStruct::get(type, fields), symbol);
  return emitObject(module, host);
}

/// Describes the dot that cuBLASLt computes.
LogicalResult describeDot(KernelOp op, Kernel &kernel) {
  auto plan = dyn_cast_or_null<CublasLtPlanAttr>(op.getPlanAttr());
  if (!plan)
    return op.emitOpError("expected a kernel lowered by fp8-lower-blocks");
  auto dtypeOfArgument = [&](unsigned argument) {
    return dtypeOf(
        cast<MemRefType>(op.getArgumentTypes()[argument]).getElementType());
  };
  kernel.name = op.getSymName().str();
  kernel.operands = op.getNumArguments();
  kernel.threads = 1;
  fp8_gpu_dot dot = {};
  dot.rows = plan.getRows();
  dot.columns = plan.getColumns();
  dot.depth = plan.getDepth();
  dot.workspace_bytes = plan.getWorkspace();
  dot.lhs = dtypeOfArgument(0);
  dot.rhs = dtypeOfArgument(1);
  dot.result = dtypeOfArgument(plan.getScaled() ? 4 : 2);
  dot.lhs_along_k = plan.getLhsAlongK();
  dot.rhs_along_k = plan.getRhsAlongK();
  dot.scaled = plan.getScaled();
  dot.fast_accumulation = plan.getFastAccumulation();
  kernel.dot = dot;
  return success();
}

/// Describes the kernel of a module: its launch, its operands and what else it
/// takes.
LogicalResult describeModule(gpu::GPUModuleOp gpu, Kernel &kernel) {
  kernel.name = gpu.getName().str();
  auto launch =
      gpu->getAttrOfType<GPULaunchAttr>(FP8Dialect::kGPULaunchAttrName);
  auto function = gpu.lookupSymbol<LLVM::LLVMFuncOp>(kernel.name);
  if (!launch || !function)
    return gpu.emitError("expected a kernel of this name with '")
           << FP8Dialect::kGPULaunchAttrName << "'";
  kernel.threads = launch.getThreads();
  kernel.sharedBytes = launch.getDynamicShared();
  kernel.scratchBytes = launch.getScratch();
  for (TensorMapAttr map : launch.getMaps())
    kernel.maps.emplace_back(map);
  // A kernel with scratch memory has its address as an additional parameter,
  // and then its tensor maps; one whose operands move also has counters and
  // strides.
  kernel.operands = function.getNumArguments() - kernel.maps.size() -
                    (kernel.scratchBytes > 0 ? 1 : 0);
  if (auto loops =
          gpu->getAttrOfType<IntegerAttr>(FP8Dialect::kLoopsAttrName)) {
    kernel.loops = loops.getInt();
    kernel.operands = (kernel.operands - 1) / (1 + kernel.loops);
  }
  if (auto ofSet = gpu->getAttrOfType<IntegerAttr>(FP8Dialect::kSetsAttrName)) {
    kernel.operands = ofSet.getInt();
    kernel.takesSets = 1;
  }
  return success();
}

} // namespace

FailureOr<std::vector<ObjectCode>>
fp8::compileGPUKernels(ModuleOp module, const CodeTarget &host, GPUImage image,
                       unsigned threads) {
  FailureOr<GPUTargetAttr> target = gpuTargetOf(module);
  if (failed(target))
    return failure();
  registerGPUTranslations(*module.getContext());
  module.getContext()->loadAllAvailableDialects();
  SmallVector<gpu::GPUModuleOp> modules(module.getOps<gpu::GPUModuleOp>());
  std::vector<Kernel> kernels(modules.size());
  std::vector<std::string> errors(modules.size()), serialized(modules.size());
  std::atomic<size_t> next(0);
  auto work = [&] {
    for (size_t i; (i = next++) < modules.size();) {
      auto code = compileGPUModule(modules[i], *target, image);
      if (!code) {
        errors[i] = llvm::toString(code.takeError());
        continue;
      }
      kernels[i].image = std::move(code->bytes);
      serialized[i] = std::move(code->resources.serialized);
    }
  };
  runOnThreads(threads, work);

  std::vector<ObjectCode> objects;
  llvm::StringSet<> known;
  // Gives a kernel, which the schedule refers to, its object.
  auto add = [&](Operation *op, const Kernel &kernel) -> LogicalResult {
    std::string symbol = kernel.symbol();
    std::string before = kernel.name + kGPUKernelSuffix.str();
    if (auto global = module.lookupSymbol<LLVM::GlobalOp>(before)) {
      if (failed(SymbolTable::replaceAllSymbolUses(
              global, StringAttr::get(module.getContext(), symbol), module)))
        return op->emitError("cannot rename the kernel");
      if (module.lookupSymbol(symbol))
        global.erase();
      else
        global.setName(symbol);
    }
    if (!known.insert(symbol).second)
      return success();
    auto object = describe(kernel, symbol, host);
    if (!object)
      return op->emitError("code generation failed: ")
             << llvm::toString(object.takeError());
    objects.push_back({symbol, std::move(*object)});
    return success();
  };
  SmallVector<KernelOp> libraryKernels(module.getOps<KernelOp>());
  for (size_t i = 0; i < modules.size(); ++i) {
    gpu::GPUModuleOp gpu = modules[i];
    Kernel &kernel = kernels[i];
    if (!errors[i].empty())
      return gpu.emitError("code generation failed: ") << errors[i];
    if (!serialized[i].empty())
      gpu.emitWarning(
          "this kernel takes longer than it should, since its wgmma "
          "do not overlap: ")
          << serialized[i];
    if (failed(describeModule(gpu, kernel)) || failed(add(gpu, kernel)))
      return failure();
  }
  for (KernelOp op : libraryKernels) {
    Kernel kernel;
    if (failed(describeDot(op, kernel)) || failed(add(op, kernel)))
      return failure();
    op.erase();
  }
  for (gpu::GPUModuleOp gpu : modules)
    gpu.erase();
  module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  return objects;
}
