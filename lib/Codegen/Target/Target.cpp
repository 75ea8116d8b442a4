//===- Target.cpp - The target of code generation -------------------------===//

#include "fp8/Codegen/Target.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Support/Subtarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace mlir;
using namespace mlir::fp8;

void fp8::initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  });
}

namespace {

/// Returns the vector capabilities of `subtarget`.
TargetInfo infoOf(const llvm::Triple &triple,
                  const llvm::MCSubtargetInfo &subtarget) {
  TargetInfo info;
  if (triple.isAArch64()) {
    info.hasFMA = true;
    return info;
  }
  auto has = [&](const char *features) {
    return subtarget.checkFeatures(features);
  };
  bool avx512 = has("+avx512f,+avx512bw,+avx512vl,+avx512dq");
  info.vectorBits = avx512 ? 512 : has("+avx2") ? 256 : 128;
  info.hasFMA = has("+fma") || avx512;
  info.hasF16C = has("+f16c");
  info.hasAVX512 = avx512;
  info.hasVBMI = avx512 && has("+avx512vbmi");
  info.hasAVX512BF16 = avx512 && has("+avx512bf16");
  info.hasAMXBF16 = avx512 && has("+amx-tile,+amx-bf16");
  return info;
}

} // namespace

TargetInfo TargetInfo::of(CPUTargetAttr target) {
  // LLVM takes a tenth of a millisecond to describe a CPU, and passes ask for
  // every kernel.
  static std::mutex mutex;
  static llvm::StringMap<TargetInfo> known;
  std::string key = llvm::join_items(" ", target.getTriple(), target.getCpu(),
                                     target.getFeatures());
  std::lock_guard<std::mutex> lock(mutex);
  auto [it, isNew] = known.try_emplace(key);
  if (isNew) {
    llvm::Triple triple(target.getTriple());
    auto subtarget =
        getSubtarget(triple, target.getCpu(), target.getFeatures());
    if (subtarget)
      it->second = infoOf(triple, *subtarget);
  }
  TargetInfo info = it->second;
  info.vectorBits = target.getVectorBits();
  return info;
}

/// Returns the target of the module around `op`, or null.
static Attribute targetAround(Operation *op) {
  while (op && !isa<ModuleOp>(op))
    op = op->getParentOp();
  return op ? op->getAttr(FP8Dialect::kTargetAttrName) : Attribute();
}

TargetInfo TargetInfo::around(Operation *op) {
  auto target = dyn_cast_or_null<CPUTargetAttr>(targetAround(op));
  return target ? of(target) : TargetInfo();
}

CodeTarget CodeTarget::of(CPUTargetAttr target) {
  return {target.getTriple().str(), target.getCpu().str(),
          target.getFeatures().str()};
}

/// Returns the target of this machine. It lists all features, because a
/// hypervisor may hide some that the CPU's name implies.
static CodeTarget nativeTarget() {
  llvm::SubtargetFeatures features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.AddFeature(feature.first(), feature.second);
  // The map has no defined order.
  std::vector<std::string> sorted = features.getFeatures();
  llvm::sort(sorted);
  return {llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(),
          llvm::join(sorted, ",")};
}

llvm::Expected<CodeTarget> fp8::findTarget(StringRef cpu) {
  if (cpu == "native")
    return nativeTarget();
  for (const char *triple :
       {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"}) {
    auto generic = getSubtarget(llvm::Triple(triple), "", "");
    if (generic && generic->isCPUStringValid(cpu))
      return CodeTarget{triple, cpu.str(), ""};
  }
  return llvm::createStringError(
      "expected 'native' or a CPU that LLVM knows (x86-64-v2, x86-64-v3, "
      "x86-64-v4, znver4, sapphirerapids, neoverse-v2, ...) but got '" +
      cpu + "'; a GPU is a target of its own, such as nvptx:sm_90a");
}

llvm::Expected<CPUTargetAttr> fp8::makeCPUTarget(MLIRContext *context,
                                                 StringRef cpu) {
  llvm::Expected<CodeTarget> target = findTarget(cpu);
  if (!target)
    return target.takeError();
  llvm::Triple triple(target->triple);
  auto subtarget = getSubtarget(triple, target->cpu, target->features);
  if (!subtarget)
    return llvm::createStringError("LLVM has no target for " + target->triple);
  return CPUTargetAttr::get(context, target->triple, target->cpu,
                            target->features,
                            infoOf(triple, *subtarget).vectorBits);
}

/// Returns false for features whose instructions no code that LLVM generates
/// here contains: those of operating systems and of hypervisors, and those that
/// are only reached by intrinsics of their own. Hypervisors often hide them.
static bool mayOccurInCode(StringRef feature) {
  static const llvm::StringSet<> never = {
      "cldemote", "clflushopt", "clwb",      "clzero",   "enqcmd", "fsgsbase",
      "hreset",   "invpcid",    "kl",        "lwp",      "mwaitx", "pconfig",
      "pku",      "prefetchi",  "ptwrite",   "rdpid",    "rdpru",  "rdrnd",
      "rdseed",   "rtm",        "serialize", "sgx",      "shstk",  "tsxldtrk",
      "uintr",    "usermsr",    "waitpkg",   "wbnoinvd", "widekl", "xsave",
      "xsavec",   "xsaveopt",   "xsaves"};
  return !never.contains(feature);
}

/// Returns the features that `target` uses among those known on this machine.
/// If `isHere` is given, only those that this machine has, or lacks.
static std::vector<std::string> hostFeaturesUsedBy(const CodeTarget &target,
                                                   std::optional<bool> isHere) {
  std::vector<std::string> used;
  auto subtarget =
      getSubtarget(llvm::Triple(target.triple), target.cpu, target.features);
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if ((!isHere || feature.second == *isHere) && subtarget &&
        subtarget->checkFeatures(("+" + feature.first()).str()))
      used.push_back(feature.first().str());
  llvm::sort(used);
  return used;
}

/// Returns true if code for `target` is for this architecture.
static bool isOfThisArchitecture(const CodeTarget &target) {
  return llvm::Triple(target.triple).getArch() ==
         llvm::Triple(llvm::sys::getProcessTriple()).getArch();
}

std::string fp8::usedFeatures(const CodeTarget &target) {
  if (!isOfThisArchitecture(target))
    return target.features;
  std::string text;
  for (const std::string &feature : hostFeaturesUsedBy(target, std::nullopt))
    text += (text.empty() ? "+" : ",+") + feature;
  return text;
}

llvm::Error fp8::checkRunsHere(const CodeTarget &target) {
  auto fail = [&](const Twine &lacks) {
    return llvm::createStringError("this machine cannot run code for " +
                                   target.cpu + ": " + lacks);
  };
  if (!isOfThisArchitecture(target))
    return fail("it is " +
                llvm::Triple(llvm::sys::getProcessTriple()).getArchName() +
                " and not " + llvm::Triple(target.triple).getArchName());
  std::vector<std::string> lacks = hostFeaturesUsedBy(target, /*isHere=*/false);
  llvm::erase_if(lacks, [](const std::string &feature) {
    return !mayOccurInCode(feature);
  });
  if (lacks.empty())
    return llvm::Error::success();
  return fail("it lacks " + llvm::join(lacks, ", "));
}

/// Returns the target of the module around `op`, which must be a `kind`.
template <typename AttrTy>
static FailureOr<AttrTy> findTargetOf(Operation *op, const Twine &kind) {
  Attribute target = targetAround(op);
  if (auto typed = dyn_cast_or_null<AttrTy>(target))
    return typed;
  if (target)
    return op->emitOpError("expected a ") << kind << " but got " << target;
  return op->emitOpError("expected a module with the attribute '")
         << FP8Dialect::kTargetAttrName << "': run --fp8-target first";
}

FailureOr<CPUTargetAttr> fp8::targetOf(Operation *op) {
  return findTargetOf<CPUTargetAttr>(op, "#fp8.cpu_target");
}

FailureOr<GPUTargetAttr> fp8::gpuTargetOf(Operation *op) {
  return findTargetOf<GPUTargetAttr>(op, "#fp8.gpu_target");
}

/// The numbers are from CUDA's programming guide, "Technical Specifications per
/// Compute Capability".
ArrayRef<GPUInfo> GPUInfo::all() {
  static const GPUInfo infos[] = {
      {"sm_89", 84, 99 << 10, 48, 65536, 100 << 10, 24},
      {"sm_90a", 84, 227 << 10, 64, 65536, 228 << 10, 32, /*hasWgmma=*/true,
       /*processors=*/132},
      {"sm_100a", 86, 227 << 10, 64, 65536, 228 << 10, 32},
      {"sm_120a", 87, 99 << 10, 48, 65536, 100 << 10, 24},
  };
  return infos;
}

const GPUInfo &GPUInfo::of(GPUTargetAttr target) {
  return *llvm::find_if(all(), [&](const GPUInfo &info) {
    return info.chip == target.getChip();
  });
}

llvm::Expected<GPUTargetAttr> fp8::makeGPUTarget(MLIRContext *context,
                                                 StringRef target) {
  auto [chip, option] = target.split(',');
  StringRef library;
  if (option == "cublaslt")
    library = "table";
  else if (option == "cublaslt=all")
    library = "all";
  else if (target.contains(','))
    return llvm::createStringError("expected 'cublaslt' or 'cublaslt=all' "
                                   "after the GPU but got '" +
                                   option + "'");
  std::string known;
  for (const GPUInfo &info : GPUInfo::all()) {
    if (info.chip == chip)
      return GPUTargetAttr::get(context, chip, "+ptx" + Twine(info.ptx).str(),
                                library);
    known += (known.empty() ? "" : ", ") + info.chip.str();
  }
  return llvm::createStringError("expected an NVIDIA GPU of " + known +
                                 " but got '" + chip + "'");
}
