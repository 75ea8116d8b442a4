//===- Module.cpp - Kernels, compiled and launched ------------------------===//

#include "Formats.h"
#include "Retarget.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sys/mman.h>

namespace fp8::emulator {

// The size of the address range in which accesses count as accesses to shared
// memory.
static constexpr size_t kSharedWindow = 16 << 20;

/// Returns the address of shared memory. One block runs at a time, so there is
/// only one.
static uint64_t sharedBase() {
  static const uint64_t base = [] {
    // It lies below 4 GiB, because PTX has 32-bit pointers to shared memory.
    for (uint64_t hint = 0x40000000; hint < 0xf0000000; hint += kSharedWindow) {
      void *mapped = mmap(
          reinterpret_cast<void *>(hint), kSharedWindow, PROT_READ | PROT_WRITE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
          0);
      if (mapped == reinterpret_cast<void *>(hint))
        return hint;
      if (mapped != MAP_FAILED)
        munmap(mapped, kSharedWindow);
    }
    return uint64_t(0);
  }();
  return base;
}

//===----------------------------------------------------------------------===//
// Callbacks of compiled kernels
//===----------------------------------------------------------------------===//

static void onInstruction(const Instruction *instruction,
                          const uint64_t *operands, uint64_t *results) {
  instruction->handler(*Block::current, *instruction, operands, results);
}

static void onAccess(uint64_t address, const AccessSite *site) {
  Thread &thread = *Block::current;
  thread.block->access(thread, address, site->bytes, site->alignment,
                       site->kind, site->place);
}

static void onRange(uint64_t address, uint64_t bytes, const AccessSite *site) {
  Thread &thread = *Block::current;
  thread.block->access(thread, address, bytes, site->alignment, site->kind,
                       site->place);
}

static void onRegister(const RegisterUse *use) {
  Thread &thread = *Block::current;
  thread.block->checkRegisters(thread, *use);
}

/// LLVM calls this on CPUs that have no conversion to bf16 that keeps
/// subnormals. The result is in a vector register, as for f16. Values of bf16
/// that blocks hand on pass through f32, too, so a NaN keeps its bits;
/// conversions have made theirs canonical (retarget).
static float roundToBF16(float value) {
  if (std::isnan(value))
    return asFloat(asBits(value) >> 16);
  return asFloat(encode(Format::BF16, value, /*saturate=*/false));
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

namespace {

class LoadedModule;

class LoadedKernel : public Kernel {
public:
  LoadedKernel(LoadedModule &module, const RetargetedKernel &described)
      : module(module), described(described) {}
  const std::string &name() const override { return described.name; }
  const std::vector<unsigned> &parameters() const override {
    return described.parameters;
  }
  unsigned staticShared() const override;
  Result launch(DeviceMemory &memory, const Geometry &geometry,
                const Schedule &schedule,
                const void *const *arguments) override;

  void (*entry)(const void *const *) = nullptr;

private:
  LoadedModule &module;
  RetargetedKernel described;
};

class LoadedModule : public Module {
public:
  Kernel *find(const std::string &name) override {
    for (const std::unique_ptr<LoadedKernel> &kernel : kernels)
      if (kernel->name() == name)
        return kernel.get();
    return nullptr;
  }
  llvm::Error load(llvm::StringRef image);

  std::vector<Range> ranges;
  Retargeted retargeted;

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<std::unique_ptr<LoadedKernel>> kernels;
};

} // namespace

static llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> makeJIT() {
  static const bool isReady = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)isReady;
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  // The CPU's conversions to bf16 flush subnormals to zero.
  builder->addFeatures({"-avx512bf16", "-avxneconvert", "-avx10.2"});
  // Kernels are small here, and most of their time goes into checks.
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
  return llvm::orc::LLJITBuilder()
      .setJITTargetMachineBuilder(std::move(*builder))
      .create();
}

llvm::Error LoadedModule::load(llvm::StringRef image) {
  if (sharedBase() == 0)
    return llvm::createStringError("no addresses below 4 GiB are free");
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseIR(
      llvm::MemoryBufferRef(image, "image"), diagnostic, *context);
  if (!module)
    return llvm::createStringError("expected LLVM IR: line " +
                                   llvm::Twine(diagnostic.getLineNo()) + ": " +
                                   diagnostic.getMessage());
  auto created = makeJIT();
  if (!created)
    return created.takeError();
  jit = std::move(*created);
  if (llvm::Error error =
          retarget(*module, jit->getDataLayout(), jit->getTargetTriple(),
                   sharedBase(), retargeted))
    return error;
  struct Size {
    std::string name;
    uint64_t bytes;
    bool isConstant;
  };
  std::vector<Size> globals;
  for (const std::string &name : retargeted.globals) {
    llvm::GlobalVariable *global = module->getNamedGlobal(name);
    globals.push_back(
        {name, module->getDataLayout().getTypeAllocSize(global->getValueType()),
         global->isConstant()});
  }
  llvm::orc::SymbolMap symbols;
  auto provide = [&](llvm::StringRef name, auto *function) {
    symbols[jit->mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  provide("fp8_emulator_instruction", &onInstruction);
  provide("fp8_emulator_access", &onAccess);
  provide("fp8_emulator_range", &onRange);
  provide("fp8_emulator_register", &onRegister);
  provide("__truncsfbf2", &roundToBF16);
  llvm::orc::JITDylib &dylib = jit->getMainJITDylib();
  if (llvm::Error error =
          dylib.define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return error;
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  dylib.addGenerator(std::move(*process));
  if (llvm::Error error = jit->addIRModule(
          llvm::orc::ThreadSafeModule(std::move(module), std::move(context))))
    return error;
  for (const RetargetedKernel &described : retargeted.kernels) {
    auto entry = jit->lookup(described.entry);
    if (!entry)
      return entry.takeError();
    kernels.push_back(std::make_unique<LoadedKernel>(*this, described));
    kernels.back()->entry = entry->toPtr<void (*)(const void *const *)>();
  }
  for (const Size &global : globals) {
    auto address = jit->lookup(global.name);
    if (!address)
      return address.takeError();
    ranges.push_back({address->getValue(), global.bytes, global.isConstant,
                      "global '" + global.name + "'"});
  }
  return llvm::Error::success();
}

std::unique_ptr<Module> Module::load(const char *image, size_t bytes,
                                     std::string &error) {
  auto module = std::make_unique<LoadedModule>();
  if (llvm::Error failure = module->load(llvm::StringRef(image, bytes))) {
    error = llvm::toString(std::move(failure));
    return nullptr;
  }
  return module;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

unsigned LoadedKernel::staticShared() const {
  return module.retargeted.staticShared;
}

Result LoadedKernel::launch(DeviceMemory &memory, const Geometry &geometry,
                            const Schedule &schedule,
                            const void *const *arguments) {
  Grid grid{memory,
            geometry,
            schedule,
            name(),
            entry,
            arguments,
            {},
            {},
            0,
            0,
            std::mt19937_64(schedule.seed),
            {}};
  grid.sharedBase = sharedBase();
  grid.sharedBytes = staticShared() + geometry.dynamicShared;
  grid.ranges = module.ranges;
  bool isBounded = true;
  for (size_t i = 0; i < described.parameters.size(); ++i) {
    grid.ranges.push_back({reinterpret_cast<uint64_t>(arguments[i]),
                           described.parameters[i], true,
                           "parameter " + std::to_string(i)});
    if (described.reach[i] == -2)
      continue; // The parameter is no pointer.
    isBounded &= described.reach[i] >= 0;
    uint64_t address;
    std::memcpy(&address, arguments[i], sizeof(address));
    grid.buffers.push_back({address, static_cast<uint64_t>(described.reach[i]),
                            false, "argument " + std::to_string(i)});
  }
  if (!isBounded)
    grid.buffers.clear();
  memory.beginLaunch();
  unsigned count = geometry.grid[0] * geometry.grid[1] * geometry.grid[2];
  std::vector<unsigned> order(count);
  for (unsigned i = 0; i < count; ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), grid.random);
  for (unsigned index : order) {
    Result result = Block(grid, index).run();
    if (!result)
      return result;
  }
  Result result;
  result.bankConflicts = grid.bankConflicts;
  return result;
}

//===----------------------------------------------------------------------===//
// Bitcode
//===----------------------------------------------------------------------===//

// A bitcode stream consists of blocks: two bits ENTER_SUBBLOCK, the number of
// the block (vbr8), the width of its abbreviations (vbr4), then, aligned to 32
// bits, its length in words (LLVM Bitcode File Format, "Blocks").
size_t bitcodeBytes(const char *image) {
  auto wordAt = [&](size_t offset) {
    uint32_t word;
    std::memcpy(&word, image + offset, sizeof(word));
    return word;
  };
  if (wordAt(0) == 0x0b17c0de) // A wrapper has an offset and a size.
    return wordAt(8) + wordAt(12);
  if (wordAt(0) != 0xdec04342)
    return 0;
  size_t offset = 4;
  // The numbers of all top-level blocks take one byte of vbr8.
  while ((wordAt(offset) & 3) == 1 && (wordAt(offset) >> 9 & 1) == 0)
    offset += 8 + size_t(4) * wordAt(offset + 4);
  return offset;
}

} // namespace fp8::emulator
