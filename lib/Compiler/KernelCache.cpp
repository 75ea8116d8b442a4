//===- KernelCache.cpp - Cached kernels of a module -----------------------===//

#include "KernelCache.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Compiler/BuildId.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/StructuralHash.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::fp8;

/// The archive member with the launch parameters of the kernel.
static constexpr llvm::StringLiteral kLaunchMember = "launch";

KernelCache::KernelCache(const Cache &cache, ModuleOp module,
                         CPUTargetAttr target, bool optimize)
    : cache(cache) {
  std::string text;
  llvm::raw_string_ostream(text) << target;
  CacheKey key;
  key.add(getCompilerBuildId()).add(text).add(static_cast<int64_t>(optimize));
  std::string suffix = "-" + key.digest().substr(0, 16) + ".a";
  // Kernel names are hashes of the kernels on tensors, so they cannot be keys
  // here.
  for (auto kernel : module.getOps<KernelOp>())
    if (!kernel.isExternal())
      files[kernel.getSymName()] = "kernel_" + structuralHash(kernel) + suffix;
}

std::optional<KernelCache::Entry> KernelCache::parse(StringRef name,
                                                     StringRef bytes) {
  auto members = readSealedArchive(name, bytes);
  if (!members) {
    llvm::consumeError(members.takeError());
    return std::nullopt;
  }
  if (members->size() != 2 || members->back().first != kLaunchMember)
    return std::nullopt;
  auto [tasks, scratchBytes] = members->back().second.split(' ');
  Entry entry;
  if (tasks.getAsInteger(10, entry.launch.tasks) || entry.launch.tasks < 1 ||
      scratchBytes.getAsInteger(10, entry.launch.scratchBytes) ||
      entry.launch.scratchBytes < 0)
    return std::nullopt;
  entry.object = {members->front().first, members->front().second.str()};
  return entry;
}

std::optional<KernelCache::Entry>
KernelCache::readEntry(StringRef kernel) const {
  auto file = files.find(kernel);
  if (file == files.end())
    return std::nullopt;
  std::unique_ptr<llvm::MemoryBuffer> bytes = cache.read(file->second);
  if (!bytes)
    return std::nullopt;
  std::optional<Entry> entry = parse(file->second, bytes->getBuffer());
  // A damaged entry is compiled again.
  if (!entry)
    cache.remove(file->second);
  return entry;
}

void KernelCache::declareKnown(ModuleOp module) {
  MLIRContext *context = module.getContext();
  context->loadDialect<LLVM::LLVMDialect>();
  OpBuilder builder(context);
  Type pointer = LLVM::LLVMPointerType::get(context);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                  {builder.getI64Type(), pointer, pointer});
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
    std::optional<Entry> entry = readEntry(kernel.getSymName());
    if (!entry)
      continue;
    builder.setInsertionPoint(kernel);
    auto declaration = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(),
                                                kernel.getSymName(), type);
    declaration->setAttr(FP8Dialect::kTasksAttrName,
                         builder.getI64IntegerAttr(entry->launch.tasks));
    declaration->setAttr(FP8Dialect::kScratchBytesAttrName,
                         builder.getI64IntegerAttr(entry->launch.scratchBytes));
    known[kernel.getSymName()] = std::move(entry->object);
    ++found;
    kernel.erase();
  }
}

void KernelCache::describe(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    auto tasks =
        function->getAttrOfType<IntegerAttr>(FP8Dialect::kTasksAttrName);
    auto scratch =
        function->getAttrOfType<IntegerAttr>(FP8Dialect::kScratchBytesAttrName);
    if (tasks && scratch)
      launches[function.getName()] = {tasks.getInt(), scratch.getInt()};
  }
}

std::optional<ObjectCode> KernelCache::read(StringRef kernel,
                                            StringRef symbol) {
  std::optional<Entry> entry = readEntry(kernel);
  if (!entry || entry->object.symbol != symbol)
    return std::nullopt;
  ++found;
  return std::move(entry->object);
}

void KernelCache::write(StringRef kernel, const ObjectCode &object) const {
  auto file = files.find(kernel);
  auto launch = launches.find(kernel);
  if (file == files.end() || launch == launches.end())
    return;
  std::string numbers = std::to_string(launch->second.tasks) + " " +
                        std::to_string(launch->second.scratchBytes);
  auto sealed =
      writeSealedArchive(file->second, {{object.symbol, object.bytes},
                                        {kLaunchMember.str(), numbers}});
  if (sealed)
    cache.write(file->second, *sealed);
  else
    llvm::consumeError(sealed.takeError());
}
