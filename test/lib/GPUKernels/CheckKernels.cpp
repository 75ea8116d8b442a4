//===- CheckKernels.cpp - Comparison of GPU and CPU kernels ---------------===//
//
// Runs every kernel of a stage-4 module on the CPU and in the emulator, on the
// same random inputs, and prints one line per kernel that compares the results.
// Kernels without a dot must agree bitwise (all NaNs count as equal), dots
// within a bound that depends on the types to which the result has been
// rounded. The emulator adds in f32; a card's tensor cores may keep fewer bits,
// for which --samples writes a second bound.
//
// With --samples=DIR nothing is emulated. DIR then gets the files that a
// machine with a card needs to check and time the kernels (benchmarks/gpu):
// images, periodic inputs, and samples of the CPU's results.
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"
#include "TensorMap.h"

#include "GPU/Cuda.h"
#include "fp8-c/Runtime.h"
#include "fp8/Codegen/GPUObject/Object.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Codegen/Tiles.h"
#include "fp8/Init.h"
#include "fp8/Kernels/CostReport.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Pipelines/GPU.h"
#include "fp8/Pipelines/Lowering.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace mlir::fp8;
namespace emulator = ::fp8::emulator;
namespace cuda = ::fp8::cuda;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("<module of stage 4>"));
static cl::opt<std::string> chip("chip", cl::init("sm_90a"),
                                 cl::desc("the GPU"));
static cl::opt<std::string> only("kernel",
                                 cl::desc("run kernels with this in the name"));
static cl::opt<unsigned> seeds("seeds", cl::init(1),
                               cl::desc("number of thread schedules to try"));
static cl::opt<double> tolerance(
    "tolerance", cl::init(2e-5),
    cl::desc(
        "tolerance of f32 dots, relative to the largest number of a result"));
static cl::opt<std::string>
    samples("samples", cl::desc("write kernels, inputs and samples of results "
                                "to this folder, and run no emulator"));
static cl::opt<std::string>
    image("gpu-image", cl::init("cubin"),
          cl::desc("form of kernels for --samples: cubin, ptx, "
                   "bitcode"));
static cl::opt<std::string>
    compiled("compiled",
             cl::desc("a module of stage 6 with the kernels for the GPU, "
                      "which are then not compiled here"));
static cl::opt<std::string>
    equal("equal", cl::desc("another module of stage 6, whose kernels must "
                            "compute the same bits"));
static cl::opt<bool> quiet("quiet", cl::desc("only print failures"));

namespace {

using Bytes = std::vector<char>;

/// Returns the value of an element.
double numberAt(const char *bytes, Type type) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, elementBytes(type));
  if (auto format = dyn_cast<FloatType>(type)) {
    APFloat value(format.getFloatSemantics(),
                  APInt(format.getWidth(), bits, false, true));
    bool loses;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    return value.convertToDouble();
  }
  return static_cast<double>(bits);
}

void writeNumber(char *bytes, Type type, double number) {
  auto format = cast<FloatType>(type);
  APFloat value(number);
  bool loses;
  value.convert(format.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                &loses);
  uint64_t bits = value.bitcastToAPInt().getZExtValue();
  std::memcpy(bytes, &bits, elementBytes(type));
}

/// Returns floats of many magnitudes, one in `signs` negative, or small
/// integers.
Bytes randomBytes(MemRefType type, std::mt19937_64 &random, unsigned signs) {
  Type element = type.getElementType();
  int64_t bytes = elementBytes(element);
  Bytes result(type.getNumElements() * bytes);
  std::normal_distribution<double> normal;
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
    char *at = result.data() + i * bytes;
    if (isa<Float8E8M0FNUType>(element)) {
      *at = static_cast<char>(120 + random() % 14);
    } else if (isa<FloatType>(element)) {
      double number = std::exp(normal(random)) * (random() % signs ? 1 : -1);
      writeNumber(at, element, number);
    } else {
      uint64_t number = element.isInteger(1) ? random() % 2 : random() % 100;
      std::memcpy(at, &number, bytes);
    }
  }
  return result;
}

struct Difference {
  int64_t differing = 0, elements = 0;
  double largest = 0; ///< relative to the largest number of the result
};

Difference compare(const Bytes &expected, const Bytes &got, MemRefType type) {
  Type element = type.getElementType();
  int64_t bytes = elementBytes(element);
  Difference difference;
  double scale = 0, largest = 0;
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
    const char *x = expected.data() + i * bytes, *y = got.data() + i * bytes;
    double a = numberAt(x, element), b = numberAt(y, element);
    if (std::isfinite(a))
      scale = std::max(scale, std::abs(a));
    if (std::memcmp(x, y, bytes) == 0 || (std::isnan(a) && std::isnan(b)))
      continue;
    ++difference.differing;
    double distance = std::abs(a - b);
    if (std::isfinite(distance))
      largest = std::max(largest, distance);
    else if (std::isfinite(a) || std::isfinite(b))
      // (Where sums overflow, their order says to what.)
      largest = INFINITY;
  }
  difference.elements = type.getNumElements();
  difference.largest = scale > 0 ? largest / scale : largest;
  return difference;
}

struct KernelInfo {
  std::string name;
  SmallVector<MemRefType> types;
  SmallVector<Access> accesses;
  bool hasDot = false;
  /// How far each argument may differ from the CPU's, relative to the largest
  /// number that it holds.
  SmallVector<double> bounds;
  /// How a tensor core adds the dot: the fraction bits that it keeps, or 0 if
  /// it has no part in it, and the number of products of a sum.
  int coreBits = 0;
  int64_t products = 0;
  int64_t tasks = 0, scratch = 0; // on the CPU

  /// One in so many inputs is negative. A sum that drifts away from zero would
  /// gather the truncations of a tensor core, which all point to zero, and hide
  /// mistakes behind its size.
  unsigned signs() const { return coreBits ? 2 : 4; }
  GPULaunchAttr launch;
  std::string label;
  Cost cost;
};

/// The period of an input of --samples, in elements, and the number of samples
/// of a result.
constexpr int64_t kPeriod = 8191, kSamples = 256;

[[noreturn]] void fail(const Twine &message) {
  llvm::errs() << "error: " << message << '\n';
  std::exit(1);
}

template <typename T> T check(llvm::Expected<T> value) {
  if (!value)
    fail(llvm::toString(value.takeError()));
  return std::move(*value);
}

void run(PassManager &pm, ModuleOp module) {
  if (failed(pm.run(module)))
    fail("cannot lower the module");
}

class Checker {
public:
  explicit Checker(MLIRContext &context) : context(context) {}
  bool run(ModuleOp module);

private:
  void collect(ModuleOp module);
  void compileForCPU(ModuleOp module);
  void compileForGPU(ModuleOp module);
  void compileOther();
  void compileKernels(ModuleOp module);
  void runOnCPU(const KernelInfo &kernel, std::vector<Bytes> &buffers);
  std::string runOnGPU(const KernelInfo &kernel, std::vector<Bytes> &buffers,
                       unsigned seed);
  bool checkKernel(const KernelInfo &kernel);
  void writeSamples(const KernelInfo &kernel, llvm::json::OStream &json);
  void writeAllSamples();

  MLIRContext &context;
  std::vector<KernelInfo> kernels;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::StringMap<std::string> images;
  /// The kernels of the module of --equal, by the same names.
  std::unique_ptr<Checker> other;
};

} // namespace

/// Returns the distance of two adjacent numbers of a type, relative to the
/// largest ones.
static double distanceIn(FloatType format) {
  return std::ldexp(1.0, 1 - static_cast<int>(APFloat::semanticsPrecision(
                                 format.getFloatSemantics())));
}

/// Follows a dot's results through its kernel. Returns how coarsely each value
/// and buffer that depends on them has been rounded since: where sums in
/// another order round to adjacent numbers of a type, what follows differs by
/// as much, whatever its own type.
static DenseMap<Value, double> roundingsAfter(linalg::GenericOp dot,
                                              KernelOp kernel) {
  DenseMap<Value, double> roundings;
  auto add = [&](Value value, double rounding) {
    auto found = roundings.try_emplace(value, rounding).first;
    found->second = std::max(found->second, rounding);
  };
  auto pass = [&](Value from, Value to) {
    if (auto found = roundings.find(from); found != roundings.end())
      add(to, found->second);
  };
  for (Value sums : dot.getDpsInits())
    add(sums, 0);
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      for (OpOperand &operand : op->getOpOperands())
        pass(operand.get(), generic.getMatchingBlockArgument(&operand));
      return;
    }
    if (isa<linalg::YieldOp>(op)) {
      auto generic = cast<linalg::GenericOp>(op->getParentOp());
      for (auto [value, buffer] :
           llvm::zip(op->getOperands(), generic.getDpsInits()))
        pass(value, buffer);
      return;
    }
    if (auto store = dyn_cast<memref::StoreOp>(op))
      pass(store.getValue(), store.getMemRef());
    for (Value result : op->getResults()) {
      for (Value operand : op->getOperands())
        pass(operand, result);
      auto format = dyn_cast<FloatType>(getElementTypeOrSelf(result));
      if (format && !format.isF32() && roundings.count(result))
        add(result, distanceIn(format));
    }
  });
  return roundings;
}

/// Returns how far each argument of a dot's kernel may differ from the CPU's,
/// relative to the largest number that it holds.
static SmallVector<double> boundsOf(linalg::GenericOp dot, KernelOp kernel) {
  DenseMap<Value, double> roundings = roundingsAfter(dot, kernel);
  SmallVector<double> bounds;
  for (Value argument : kernel.getArguments()) {
    auto format = dyn_cast<FloatType>(getElementTypeOrSelf(argument));
    double stored = format && !format.isF32() ? distanceIn(format) : tolerance;
    bounds.push_back(std::max(stored, roundings.lookup(argument)));
  }
  return bounds;
}

/// Describes how a tensor core adds the products of a dot. Hopper is known to
/// keep 13 fraction bits of FP8 products; those of 16 bits have f32's 23.
static void describeSums(linalg::GenericOp dot, KernelInfo &info) {
  FailureOr<ContractionDims> dims = inferContractionDims(dot);
  if (failed(dims))
    return;
  info.products = 1;
  SmallVector<int64_t> loops = dot.getStaticLoopRanges();
  for (unsigned k : dims->k)
    info.products *= loops[k];
  unsigned widest = 0;
  for (unsigned i : {0, 1})
    widest =
        std::max(widest, getElementTypeOrSelf(dot.getDpsInputOperand(i)->get())
                             .getIntOrFloatBitWidth());
  info.coreBits = widest == 8 ? 13 : widest == 16 ? 23 : 0;
}

void Checker::collect(ModuleOp module) {
  for (auto kernel : module.getOps<KernelOp>()) {
    KernelInfo info;
    info.name = kernel.getSymName().str();
    for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
      info.types.push_back(cast<MemRefType>(type));
      info.accesses.push_back(kernel.getAccess(index));
    }
    info.bounds.assign(info.types.size(), 0.0);
    if (linalg::GenericOp dot = contractionOf(kernel)) {
      info.hasDot = true;
      info.bounds = boundsOf(dot, kernel);
      describeSums(dot, info);
    }
    kernels.push_back(info);
  }
  CostReport report = makeCostReport(module);
  module.walk([&](LaunchOp launch) {
    auto kernel = llvm::find_if(kernels, [&](const KernelInfo &info) {
      return info.name == launch.getKernel();
    });
    for (const LaunchCost &cost : report.launches)
      if (kernel != kernels.end() && kernel->label.empty() &&
          cost.number ==
              static_cast<int64_t>(launch.getNumber().value_or(-1))) {
        kernel->label = cost.label;
        // The kernel is measured with one set of operands.
        kernel->cost.add(cost.cost, 1.0 / launch.getNumSets());
      }
  });
}

void Checker::compileForCPU(ModuleOp source) {
  OwningOpRef<ModuleOp> module(source.clone());
  PassManager codegen(&context), lowering(&context);
  buildCodegenPipeline(codegen, "native");
  ::run(codegen, *module);
  for (KernelInfo &kernel : kernels) {
    auto func = module->lookupSymbol<func::FuncOp>(kernel.name);
    kernel.tasks =
        func->getAttrOfType<IntegerAttr>(FP8Dialect::kTasksAttrName).getInt();
    kernel.scratch =
        func->getAttrOfType<IntegerAttr>(FP8Dialect::kScratchBytesAttrName)
            .getInt();
  }
  // AMX needs a permission of the system.
  CodeTarget target = CodeTarget::of(*targetOf(*module));
  if (fp8_check_cpu(target.cpu.c_str(), usedFeatures(target).c_str()))
    fail(fp8_last_error());
  buildLLVMPipeline(lowering);
  ::run(lowering, *module);
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(*module, *llvmContext);
  if (!llvmModule)
    fail("cannot translate the module");
  // The schedule does not run.
  for (const char *name : {"fp8_launch", "fp8_launch_sets", "fp8_operand"})
    if (llvm::Function *function = llvmModule->getFunction(name)) {
      auto *block = llvm::BasicBlock::Create(*llvmContext, "", function);
      new llvm::UnreachableInst(*llvmContext, block);
    }
  auto machine = check(llvm::orc::JITTargetMachineBuilder::detectHost());
  jit = check(llvm::orc::LLJITBuilder()
                  .setJITTargetMachineBuilder(std::move(machine))
                  .create());
  llvmModule->setDataLayout(jit->getDataLayout());
  if (llvm::Error error =
          jit->addIRModule({std::move(llvmModule), std::move(llvmContext)}))
    fail(llvm::toString(std::move(error)));
}

void Checker::compileForGPU(ModuleOp source) {
  OwningOpRef<ModuleOp> module;
  if (compiled.empty()) {
    module = source.clone();
    PassManager pm(&context);
    buildGPUCodegenPipeline(pm, chip);
    buildNVVMPipeline(pm);
    ::run(pm, *module);
  } else {
    module = parseSourceFile<ModuleOp>(compiled.getValue(), &context);
    if (!module)
      std::exit(1);
  }
  compileKernels(*module);
}

/// Compiles the kernels of a module of stage 6.
void Checker::compileKernels(ModuleOp module) {
  registerGPUTranslations(context);
  auto target =
      module->getAttrOfType<GPUTargetAttr>(FP8Dialect::kTargetAttrName);
  for (KernelInfo &kernel : kernels) {
    if (!StringRef(kernel.name).contains(only) &&
        !StringRef(kernel.label).contains(only))
      continue;
    auto gpu = module.lookupSymbol<gpu::GPUModuleOp>(kernel.name);
    if (!gpu)
      fail("the compiled module has no kernel '" + kernel.name + "'");
    kernel.launch =
        gpu->getAttrOfType<GPULaunchAttr>(FP8Dialect::kGPULaunchAttrName);
    GPUImage kind =
        samples.empty() ? GPUImage::Bitcode : check(parseGPUImage(image));
    images[kernel.name] = check(compileGPUModule(gpu, target, kind)).bytes;
  }
}

void Checker::compileOther() {
  if (equal.empty())
    return;
  auto module = parseSourceFile<ModuleOp>(equal.getValue(), &context);
  if (!module)
    std::exit(1);
  other = std::make_unique<Checker>(context);
  other->kernels = kernels;
  other->compileKernels(*module);
}

void Checker::runOnCPU(const KernelInfo &kernel, std::vector<Bytes> &buffers) {
  auto address = check(jit->lookup(kernel.name + "_task"));
  auto *task = address.toPtr<void (*)(int64_t, void *const *, void *)>();
  // Buffers and scratch are aligned to 64 bytes.
  std::vector<std::unique_ptr<char[]>> memory;
  auto allocate = [&](size_t bytes) {
    memory.push_back(std::make_unique<char[]>(bytes + 64));
    return reinterpret_cast<char *>(
        llvm::alignTo(reinterpret_cast<uintptr_t>(memory.back().get()), 64));
  };
  std::vector<void *> operands;
  for (const Bytes &buffer : buffers) {
    char *place = allocate(buffer.size());
    std::memcpy(place, buffer.data(), buffer.size());
    operands.push_back(place);
  }
  char *scratch = allocate(kernel.scratch);
  for (int64_t i = 0; i < kernel.tasks; ++i)
    task(i, operands.data(), scratch);
  for (auto [buffer, place] : llvm::zip(buffers, operands))
    std::memcpy(buffer.data(), place, buffer.size());
}

/// Returns the tensor map of an operand at `address`.
static std::array<char, emulator::TensorMap::kBytes>
tensorMapOf(TensorMapAttr map, uint64_t address) {
  emulator::TensorMap made;
  made.address = address;
  made.rank = map.getSizes().size();
  made.elementBytes = elementBytes(map.getElement());
  made.swizzle = map.getSwizzle();
  llvm::copy(map.getSizes(), made.sizes);
  llvm::copy(map.getStrides(), made.strides);
  llvm::copy(map.getBox(), made.box);
  if (std::string why = made.invalid(); !why.empty())
    fail("the driver would reject a tensor map: " + why);
  std::array<char, emulator::TensorMap::kBytes> bytes = {};
  std::memcpy(bytes.data(), &made, sizeof(made));
  return bytes;
}

std::string Checker::runOnGPU(const KernelInfo &kernel,
                              std::vector<Bytes> &buffers, unsigned seed) {
  std::string error;
  const std::string &image = images[kernel.name];
  auto module = emulator::Module::load(image.data(), image.size(), error);
  if (!module)
    return error;
  emulator::Kernel *function = module->find(kernel.name);
  if (!function)
    return "the module has no such kernel";
  emulator::DeviceMemory memory(uint64_t(1) << 28);
  std::vector<uint64_t> addresses;
  for (auto [index, buffer] : llvm::enumerate(buffers)) {
    uint64_t address = memory.allocate(std::max<size_t>(buffer.size(), 1));
    std::memcpy(reinterpret_cast<void *>(address), buffer.data(),
                buffer.size());
    memory.setWritten(address, buffer.size(),
                      kernel.accesses[index] != Access::Write);
    addresses.push_back(address);
  }
  int64_t scratch = kernel.launch.getScratch() * kernel.launch.getBlocks();
  if (scratch)
    addresses.push_back(memory.allocate(scratch));
  std::vector<const void *> arguments;
  for (const uint64_t &address : addresses)
    arguments.push_back(&address);
  std::vector<std::array<char, emulator::TensorMap::kBytes>> maps;
  for (TensorMapAttr map : kernel.launch.getMaps())
    maps.push_back(tensorMapOf(map, addresses[map.getOperand()]));
  for (const auto &map : maps)
    arguments.push_back(map.data());
  emulator::Geometry geometry;
  geometry.grid[0] = kernel.launch.getBlocks();
  geometry.block[0] = kernel.launch.getThreads();
  geometry.dynamicShared = kernel.launch.getDynamicShared();
  emulator::Schedule schedule;
  schedule.seed = seed;
  schedule.landing =
      std::array{emulator::Landing::Late, emulator::Landing::Early,
                 emulator::Landing::Random}[seed % 3];
  emulator::Result result =
      function->launch(memory, geometry, schedule, arguments.data());
  if (!result)
    return result.message;
  if (result.bankConflicts)
    return std::to_string(result.bankConflicts) + " conflicts of banks";
  // Unwritten parts keep their old content, as on the CPU.
  for (auto [index, buffer] : llvm::enumerate(buffers))
    std::memcpy(buffer.data(), reinterpret_cast<const void *>(addresses[index]),
                buffer.size());
  return "";
}

/// Returns how far the sums of a tensor core may differ from exact ones,
/// relative to the largest number of the result. For each instruction, a tensor
/// core aligns the products (32 bytes along k) and the sum so far to the
/// largest of them, and truncates all to f fraction bits.
///
/// A truncation loses less than u = 2^-f M, where M is the largest sum or
/// product. If signs are even, sums are random walks, so M is the largest
/// number of the result. The truncations of products have even signs, too: each
/// has a variance of at most u^2/3, K of them have a deviation of 0.58 sqrt(K)
/// u, and 6 deviations are 3.5 sqrt(K) u. Those of the sum itself, one an
/// instruction, all point to zero: at most u each.
static double coreBoundOf(const KernelInfo &kernel) {
  double products = kernel.products,
         perInstruction = kernel.coreBits == 13 ? 32 : 16;
  double truncations = 3.5 * std::sqrt(products) + products / perInstruction;
  return std::ldexp(truncations, -kernel.coreBits);
}

bool Checker::checkKernel(const KernelInfo &kernel) {
  std::mt19937_64 random(std::hash<std::string>()(kernel.name));
  std::vector<Bytes> inputs;
  for (MemRefType type : kernel.types)
    inputs.push_back(randomBytes(type, random, kernel.signs()));
  std::vector<Bytes> expected = inputs;
  runOnCPU(kernel, expected);
  bool isGood = true;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::vector<Bytes> got = inputs;
    std::string problem = runOnGPU(kernel, got, seed);
    int64_t differing = 0, elements = 0;
    double largest = 0;
    if (problem.empty())
      for (auto [index, type] : llvm::enumerate(kernel.types)) {
        if (kernel.accesses[index] == Access::Read)
          continue;
        Difference difference = compare(expected[index], got[index], type);
        differing += difference.differing;
        elements += difference.elements;
        largest = std::max(largest, difference.largest);
        if (difference.largest > (kernel.bounds[index]))
          problem += ("argument " + Twine(index) + " differs; ").str();
      }
    if (!kernel.hasDot && differing && problem.empty())
      problem = "the bits differ";
    if (other && problem.empty()) {
      std::vector<Bytes> again = inputs;
      auto same = llvm::find_if(other->kernels, [&](const KernelInfo &info) {
        return info.name == kernel.name;
      });
      problem = other->runOnGPU(*same, again, seed);
      if (problem.empty() && again != got)
        problem = "the bits differ from those of '" + equal + "'";
    }
    isGood &= problem.empty();
    if (problem.empty() && quiet)
      continue;
    llvm::outs() << (problem.empty() ? "ok   " : "FAIL ") << kernel.name << ' '
                 << (kernel.hasDot ? "dot" : "   ") << " blocks "
                 << kernel.launch.getBlocks() << ": " << differing << " of "
                 << elements << " differ, by " << llvm::format("%.2e", largest)
                 << ' ' << problem << '\n';
    llvm::outs().flush();
  }
  return isGood;
}

static void writeFile(const Twine &name, StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream file((samples + "/" + name).str(), error);
  if (error)
    fail("cannot write '" + samples + "/" + name + "': " + error.message());
  file << bytes;
}

/// Writes the arguments of cuTensorMapEncodeTiled.
static void writeTensorMap(TensorMapAttr map, llvm::json::OStream &json) {
  Type element = map.getElement();
  auto list = [&](StringRef name, ArrayRef<int64_t> values) {
    json.attributeArray(name, [&] {
      for (int64_t value : values)
        json.value(value);
    });
  };
  json.object([&] {
    json.attribute("operand", map.getOperand());
    json.attribute("type", int(element.isBF16()  ? cuda::MapBFloat16
                               : element.isF16() ? cuda::MapFloat16
                               : element.isF32() ? cuda::MapFloat32
                                                 : cuda::MapUInt8));
    json.attribute("swizzle", map.getSwizzle());
    list("sizes", map.getSizes());
    list("strides", map.getStrides());
    list("box", map.getBox());
  });
}

/// Writes a kernel as benchmarks/gpu reads it. Inputs repeat a block of kPeriod
/// elements, of which a small input has only its own; a result has the bytes of
/// elements spread over it.
void Checker::writeSamples(const KernelInfo &kernel,
                           llvm::json::OStream &json) {
  std::mt19937_64 random(kernel.types.size());
  std::string blocks;
  std::vector<Bytes> buffers;
  for (MemRefType type : kernel.types) {
    auto block = MemRefType::get({kPeriod}, type.getElementType());
    Bytes own = randomBytes(block, random, kernel.signs()), all;
    size_t bytes = type.getNumElements() * elementBytes(type.getElementType());
    blocks.append(own.begin(), own.begin() + std::min(own.size(), bytes));
    while (all.size() < bytes)
      all.insert(all.end(), own.begin(),
                 own.begin() + std::min(own.size(), bytes - all.size()));
    buffers.push_back(std::move(all));
  }
  runOnCPU(kernel, buffers);
  writeFile(kernel.name + ".in", blocks);
  writeFile(kernel.name + ".image", images[kernel.name]);
  auto writeResult = [&](MemRefType type, const Bytes &bytes, double bound) {
    Type element = type.getElementType();
    int64_t each = elementBytes(element), count = type.getNumElements();
    double scale = 0;
    for (int64_t i = 0; kernel.hasDot && i < count; ++i)
      if (double value = numberAt(bytes.data() + i * each, element);
          std::isfinite(value))
        scale = std::max(scale, std::abs(value));
    json.attribute("bound", bound * scale);
    if (kernel.coreBits)
      json.attribute("core_bound", (bound + coreBoundOf(kernel)) * scale);
    json.attributeArray("samples", [&] {
      for (int64_t i = 0; i < std::min(count, kSamples); ++i) {
        // The stride differs from those of rows and columns.
        int64_t at = count <= kSamples ? i : i * (count / kSamples) + i % 7;
        std::string value = llvm::toHex(
            StringRef(bytes.data() + at * each, each), /*LowerCase=*/true);
        json.array([&] {
          json.value(at);
          json.value(value);
        });
      }
    });
  };
  json.object([&] {
    json.attribute("name", kernel.name);
    json.attribute("label", kernel.label);
    json.attribute("blocks", kernel.launch.getBlocks());
    json.attribute("threads", kernel.launch.getThreads());
    json.attribute("dynamic_shared", kernel.launch.getDynamicShared());
    json.attribute("scratch",
                   kernel.launch.getScratch() * kernel.launch.getBlocks());
    json.attributeArray("maps", [&] {
      for (TensorMapAttr map : kernel.launch.getMaps())
        writeTensorMap(map, json);
    });
    json.attribute("flops", static_cast<int64_t>(kernel.cost.flops));
    json.attribute("dot_flops", static_cast<int64_t>(kernel.cost.dotFlops));
    json.attribute("bytes", static_cast<int64_t>(kernel.cost.bytes));
    if (kernel.coreBits) // and the one before the fraction
      json.attribute("core_bits", kernel.coreBits + 1);
    json.attributeArray("arguments", [&] {
      for (unsigned index = 0; index < kernel.types.size(); ++index)
        json.object([&] {
          MemRefType type = kernel.types[index];
          std::string name;
          llvm::raw_string_ostream(name) << type.getElementType();
          json.attribute("type", name);
          json.attribute("bytes", static_cast<int64_t>(buffers[index].size()));
          json.attribute("element", elementBytes(type.getElementType()));
          if (kernel.accesses[index] != Access::Read)
            writeResult(type, buffers[index], kernel.bounds[index]);
        });
    });
  });
}

void Checker::writeAllSamples() {
  if (std::error_code error = llvm::sys::fs::create_directories(samples))
    fail("cannot make '" + samples + "': " + error.message());
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, 1);
  json.object([&] {
    json.attribute("period", kPeriod);
    json.attributeArray("kernels", [&] {
      for (const KernelInfo &kernel : kernels)
        if (StringRef(kernel.name).contains(only) ||
            StringRef(kernel.label).contains(only))
          writeSamples(kernel, json);
    });
  });
  writeFile("kernels.json", text);
}

bool Checker::run(ModuleOp module) {
  collect(module);
  compileForCPU(module);
  compileForGPU(module);
  compileOther();
  if (!samples.empty()) {
    writeAllSamples();
    return true;
  }
  int64_t count = 0, failed = 0;
  for (const KernelInfo &kernel : kernels) {
    if (!StringRef(kernel.name).contains(only))
      continue;
    ++count;
    failed += !checkKernel(kernel);
  }
  llvm::outs() << count << " kernels, " << failed << " failed\n";
  return failed == 0;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "checks kernels of a GPU target\n");
  DialectRegistry registry;
  ::mlir::fp8::registerAllDialects(registry);
  registerAllToLLVMIRTranslations(registry);
  MLIRContext context(registry);
  initializeTargets();
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(input.getValue(), &context);
  if (!module)
    return 1;
  return Checker(context).run(*module) ? 0 : 1;
}
