//===- GPUKernels.cpp - Objects of GPU kernels ----------------------------===//

#include "GPUKernels.h"
#include "ObjectCode.h"
#include "Threads.h"
#include "fp8-c/Runtime.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/ElementTypes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SHA256.h"
#include <atomic>
#include <optional>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A number of a structure of the runtime. It is as wide as its C++ type, so
/// that the layouts cannot differ.
struct Field {
  Field(int32_t value) : bits(32), value(value) {}
  Field(int64_t value) : bits(64), value(value) {}

  unsigned bits;
  int64_t value;
};

SmallVector<Field> fieldsOf(const fp8_gpu_dot &dot) {
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

SmallVector<Field> fieldsOf(const fp8_gpu_tensor_map &map) {
  SmallVector<Field> fields{map.operand, map.dtype, map.rank, map.swizzle};
  llvm::append_range(fields, map.sizes);
  llvm::append_range(fields, map.strides);
  llvm::append_range(fields, map.box);
  return fields;
}

/// Returns a map as the runtime takes it: 0 for dimensions that it lacks.
fp8_gpu_tensor_map mapOf(TensorMapAttr attr) {
  fp8_gpu_tensor_map map = {};
  map.operand = attr.getOperand();
  map.dtype = dtypeOf(attr.getElement());
  map.rank = attr.getSizes().size();
  map.swizzle = attr.getSwizzle();
  llvm::copy(attr.getSizes(), map.sizes);
  llvm::copy(attr.getStrides(), map.strides);
  llvm::copy(attr.getBox(), map.box);
  return map;
}

/// A kernel as described to the runtime.
struct Kernel {
  std::string name; // in the image
  std::string image;
  int32_t threads = 0, sharedBytes = 0, operands = 0, loops = 0;
  int64_t scratchBytes = 0;
  int32_t takesSets = 0;
  /// The dot that cuBLASLt computes instead of an image.
  std::optional<fp8_gpu_dot> dot;
  SmallVector<fp8_gpu_tensor_map> maps;

  /// Returns a symbol with a hash of all fields.
  std::string symbol() const {
    llvm::SHA256 hash;
    auto add = [&](ArrayRef<Field> fields) {
      for (const Field &field : fields)
        hash.update(llvm::utostr(field.value) + ",");
    };
    hash.update(name);
    add({threads, sharedBytes, operands, loops, scratchBytes, takesSets});
    hash.update(image);
    if (dot)
      add(fieldsOf(*dot));
    for (const fp8_gpu_tensor_map &map : maps)
      add(fieldsOf(map));
    return "fp8_gpu_kernel_" +
           llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 32);
  }
};

/// Builds a module with constant structures of the runtime.
class ConstantBuilder {
public:
  explicit ConstantBuilder(StringRef name) : module(name, context) {}

  /// Defines `symbol` as an fp8_gpu_kernel.
  void define(const Kernel &kernel, StringRef symbol);

  llvm::LLVMContext context;
  llvm::Module module;

private:
  llvm::Constant *number(Field field) {
    return llvm::ConstantInt::get(llvm::IntegerType::get(context, field.bits),
                                  field.value);
  }
  llvm::Constant *structure(ArrayRef<Field> fields) {
    return llvm::ConstantStruct::getAnon(llvm::map_to_vector(
        fields, [&](const Field &field) { return number(field); }));
  }
  llvm::GlobalVariable *addressOf(llvm::Constant *value) {
    return new llvm::GlobalVariable(module, value->getType(), true,
                                    llvm::GlobalValue::PrivateLinkage, value);
  }
  /// Returns the address of a copy of `text` with a terminating zero.
  llvm::Constant *textOf(StringRef text) {
    llvm::GlobalVariable *global =
        addressOf(llvm::ConstantDataArray::getString(context, text));
    global->setAlignment(llvm::Align(64));
    return global;
  }
  llvm::Constant *mapsOf(const Kernel &kernel);
};

llvm::Constant *ConstantBuilder::mapsOf(const Kernel &kernel) {
  auto maps =
      llvm::map_to_vector(kernel.maps, [&](const fp8_gpu_tensor_map &map) {
        return structure(fieldsOf(map));
      });
  return addressOf(llvm::ConstantArray::get(
      llvm::ArrayType::get(maps.front()->getType(), maps.size()), maps));
}

void ConstantBuilder::define(const Kernel &kernel, StringRef symbol) {
  llvm::Constant *none =
      llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  llvm::Constant *dot =
      kernel.dot ? addressOf(structure(fieldsOf(*kernel.dot))) : none;
  llvm::Constant *maps = kernel.maps.empty() ? none : mapsOf(kernel);
  llvm::Constant *name = textOf(kernel.name);
  // PTX is text; the driver needs a terminating zero.
  llvm::Constant *image = kernel.dot ? none : textOf(kernel.image);
  auto size = [&](size_t size) { return number(static_cast<int64_t>(size)); };
  llvm::Constant *value = llvm::ConstantStruct::getAnon(
      {name, image, size(kernel.image.size()), number(kernel.threads),
       number(kernel.sharedBytes), number(kernel.operands),
       number(kernel.loops), number(kernel.scratchBytes), dot,
       number(kernel.takesSets), maps, size(kernel.maps.size())});
  new llvm::GlobalVariable(module, value->getType(), true,
                           llvm::GlobalValue::ExternalLinkage, value, symbol);
}

/// Emits an object that defines `kernel` as an fp8_gpu_kernel.
llvm::Expected<std::string> describe(const Kernel &kernel,
                                     const std::string &symbol,
                                     const CodeTarget &host) {
  ConstantBuilder builder(symbol);
  builder.define(kernel, symbol);
  return emitObject(builder.module, host);
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
  llvm::append_range(kernel.maps, llvm::map_range(launch.getMaps(), mapOf));
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

/// The image of a module, or why there is none.
struct Image {
  std::string bytes, error;
  /// Not empty: why its wgmma do not overlap.
  std::string serialized;
};

/// Compiles modules on several threads.
std::vector<Image> compileModules(ArrayRef<gpu::GPUModuleOp> modules,
                                  GPUTargetAttr target, GPUImage form,
                                  unsigned threads) {
  std::vector<Image> images(modules.size());
  std::atomic<size_t> next(0);
  runOnThreads(threads, [&] {
    for (size_t i; (i = next++) < modules.size();) {
      auto code = compileGPUModule(modules[i], target, form);
      if (!code) {
        images[i].error = llvm::toString(code.takeError());
        continue;
      }
      images[i].bytes = std::move(code->bytes);
      images[i].serialized = std::move(code->resources.serialized);
    }
  });
  return images;
}

/// The objects of a module's kernels, to which its schedule refers.
class KernelObjects {
public:
  KernelObjects(ModuleOp module, const CodeTarget &host)
      : module(module), host(host) {}

  LogicalResult add(gpu::GPUModuleOp gpu, Image image);
  LogicalResult add(KernelOp dot);

  std::vector<ObjectCode> objects;

private:
  LogicalResult addObject(Operation *op, const Kernel &kernel);
  LogicalResult refer(const Kernel &kernel, StringRef symbol);

  ModuleOp module;
  const CodeTarget &host;
  llvm::StringSet<> known;
};

} // namespace

/// Lets the schedule refer to a kernel by the symbol of its object.
LogicalResult KernelObjects::refer(const Kernel &kernel, StringRef symbol) {
  auto global =
      module.lookupSymbol<LLVM::GlobalOp>(kernel.name + kGPUKernelSuffix.str());
  if (!global)
    return success();
  if (failed(SymbolTable::replaceAllSymbolUses(
          global, StringAttr::get(module.getContext(), symbol), module)))
    return failure();
  if (module.lookupSymbol(symbol))
    global.erase();
  else
    global.setName(symbol);
  return success();
}

LogicalResult KernelObjects::addObject(Operation *op, const Kernel &kernel) {
  std::string symbol = kernel.symbol();
  if (failed(refer(kernel, symbol)))
    return op->emitError("cannot rename the kernel");
  if (!known.insert(symbol).second)
    return success();
  auto object = describe(kernel, symbol, host);
  if (!object)
    return op->emitError("code generation failed: ")
           << llvm::toString(object.takeError());
  objects.push_back({symbol, std::move(*object)});
  return success();
}

LogicalResult KernelObjects::add(gpu::GPUModuleOp gpu, Image image) {
  if (!image.error.empty())
    return gpu.emitError("code generation failed: ") << image.error;
  if (!image.serialized.empty())
    gpu.emitWarning("this kernel takes longer than it should, since its wgmma "
                    "do not overlap: ")
        << image.serialized;
  Kernel kernel;
  kernel.image = std::move(image.bytes);
  return success(succeeded(describeModule(gpu, kernel)) &&
                 succeeded(addObject(gpu, kernel)));
}

LogicalResult KernelObjects::add(KernelOp dot) {
  Kernel kernel;
  return success(succeeded(describeDot(dot, kernel)) &&
                 succeeded(addObject(dot, kernel)));
}

FailureOr<std::vector<ObjectCode>>
fp8::compileGPUKernels(ModuleOp module, const CodeTarget &host, GPUImage image,
                       unsigned threads) {
  FailureOr<GPUTargetAttr> target = gpuTargetOf(module);
  if (failed(target))
    return failure();
  registerGPUTranslations(*module.getContext());
  module.getContext()->loadAllAvailableDialects();
  SmallVector<gpu::GPUModuleOp> modules(module.getOps<gpu::GPUModuleOp>());
  SmallVector<KernelOp> dots(module.getOps<KernelOp>());
  std::vector<Image> images = compileModules(modules, *target, image, threads);
  KernelObjects kernels(module, host);
  for (auto [gpu, own] : llvm::zip_equal(modules, images))
    if (failed(kernels.add(gpu, std::move(own))))
      return failure();
  for (KernelOp dot : dots) {
    if (failed(kernels.add(dot)))
      return failure();
    dot.erase();
  }
  for (gpu::GPUModuleOp gpu : modules)
    gpu.erase();
  module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  return std::move(kernels.objects);
}
