//===- LoadedExecutable.cpp - An executable in memory ---------------------===//

#include "fp8/Compiler/LoadedExecutable.h"
#include "fp8/Codegen/Target.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

using namespace mlir;
using namespace mlir::fp8;

LoadedExecutable::LoadedExecutable() = default;

LoadedExecutable::~LoadedExecutable() { fp8_package_close(functions); }

static llvm::Error toError(fp8_status status) {
  if (status == FP8_OK)
    return llvm::Error::success();
  return llvm::createStringError(fp8_last_error());
}

llvm::Error LoadedExecutable::check(const Executable &executable) {
  initializeTargets();
  if (llvm::Error error = checkRunsHere(executable.target))
    return error;
  return toError(fp8_check_cpu(executable.target.cpu.c_str(),
                               usedFeatures(executable.target).c_str()));
}

/// Adds all objects to one library of the JIT, which links a function when its
/// schedule is first looked up.
llvm::Error LoadedExecutable::link() {
  if (llvm::Error error = check(executable))
    return error;
  auto created = llvm::orc::LLJITBuilder().create();
  if (!created)
    return created.takeError();
  jit = std::move(*created);
  llvm::orc::SymbolMap symbols;
  auto provide = [&](llvm::StringRef name, auto *function) {
    symbols[jit->mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
#define PROVIDE(result, field, function, parameters)                           \
  provide(#function, &function);
  FP8_CALLED_FUNCTIONS(PROVIDE)
#undef PROVIDE
  llvm::orc::JITDylib &dylib = jit->getMainJITDylib();
  if (llvm::Error error =
          dylib.define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return error;
  // Provides memcpy and similar functions.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  dylib.addGenerator(std::move(*process));
  for (const ObjectCode &object : executable.objects)
    if (llvm::Error error = jit->addObjectFile(
            llvm::MemoryBuffer::getMemBufferCopy(object.bytes, object.symbol)))
      return error;
  return llvm::Error::success();
}

fp8_tensor_info fp8::infoOf(const TensorDescription &tensor) {
  fp8_tensor_info info = {};
  info.name = tensor.name.c_str();
  info.dtype = tensor.dtype;
  info.rank = tensor.shape.size();
  info.dims = tensor.shape.data();
  info.kind = tensor.kind;
  info.role = tensor.role;
  info.vocabulary = tensor.vocabulary;
  info.labels = tensor.labels;
  info.zero_init = tensor.zeroInit;
  info.shard = tensor.shard;
  info.slices = tensor.slices;
  if (!tensor.whole.empty()) {
    info.whole_dims = tensor.whole.data();
    info.part_offsets = tensor.partOffsets.data();
    info.num_parts = tensor.partOffsets.size() / tensor.whole.size();
    info.part_blocks = tensor.partBlocks;
  }
  info.state_arg = tensor.stateArg;
  return info;
}

/// Links a function and describes it to the runtime.
llvm::Error LoadedExecutable::add(const ExecutableFunction &function) {
  auto entry = jit->lookup(function.entry);
  if (!entry)
    return entry.takeError();
  std::vector<fp8_tensor_info> arguments, results;
  for (const TensorDescription &argument : function.arguments)
    arguments.push_back(infoOf(argument));
  for (const TensorDescription &result : function.results)
    results.push_back(infoOf(result));
  std::vector<fp8_constant> constants;
  for (const std::string &bytes : function.constants)
    constants.push_back({bytes.data(), static_cast<int64_t>(bytes.size())});
  std::vector<const char *> names;
  for (const std::string &name : function.launchNames)
    names.push_back(name.c_str());
  fp8_executable_desc desc = {};
  desc.name = function.name.c_str();
  desc.entry = entry->toPtr<fp8_entry_fn>();
  desc.arguments = arguments.data();
  desc.num_arguments = arguments.size();
  desc.results = results.data();
  desc.num_results = results.size();
  desc.constants = constants.data();
  desc.num_constants = constants.size();
  desc.arena_bytes = function.arenaBytes;
  desc.scratch_bytes = function.scratchBytes;
  desc.launch_names = names.data();
  desc.num_launches = names.size();
  std::vector<const fp8_gpu_kernel *> kernels;
  if (!executable.gpu.empty())
    for (const std::string &symbol : function.kernels) {
      auto kernel = jit->lookup(symbol);
      if (!kernel)
        return kernel.takeError();
      kernels.push_back(kernel->toPtr<const fp8_gpu_kernel *>());
    }
  desc.gpu_kernels = kernels.data();
  desc.num_gpu_kernels = kernels.size();
  return toError(fp8_package_add(functions, &desc));
}

llvm::Expected<std::unique_ptr<LoadedExecutable>>
LoadedExecutable::load(Executable executable) {
  std::unique_ptr<LoadedExecutable> loaded(new LoadedExecutable());
  loaded->executable = std::move(executable);
  if (llvm::Error error = loaded->link())
    return std::move(error);
  if (llvm::Error error = toError(fp8_package_create(&loaded->functions)))
    return std::move(error);
  for (const ExecutableFunction &function : loaded->executable.functions)
    if (llvm::Error error = loaded->add(function))
      return std::move(error);
  std::map<std::string, std::string> texts = loaded->executable.texts;
  texts["fingerprint"] = loaded->executable.fingerprint;
  for (const auto &[name, text] : texts)
    if (llvm::Error error = toError(fp8_package_set_text(
            loaded->functions, name.c_str(), text.c_str())))
      return std::move(error);
  loaded->executable.objects.clear();
  return loaded;
}
