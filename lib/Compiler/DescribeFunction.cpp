//===- DescribeFunction.cpp - A lowered function for the runtime ----------===//

#include "DescribeFunction.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the bytes of a constant as they lie in memory.
static std::string constantBytes(memref::GlobalOp global) {
  auto elements = cast<DenseElementsAttr>(*global.getInitialValue());
  std::string bytes;
  if (elements.getElementType().isInteger(1)) {
    for (bool value : elements.getValues<bool>())
      bytes.push_back(value);
    return bytes;
  }
  ArrayRef<char> raw = elements.getRawData();
  size_t repeat = elements.isSplat() ? elements.getNumElements() : 1;
  bytes.reserve(repeat * raw.size());
  bytes.append(raw.begin(), raw.end());
  // Fill in a splat by doubling.
  while (bytes.size() < repeat * raw.size())
    bytes.append(bytes, 0,
                 std::min(bytes.size(), repeat * raw.size() - bytes.size()));
  return bytes;
}

/// Adds the kernels' need for scratch bytes, and their number.
static void addKernels(ModuleOp module, ExecutableFunction &result) {
  for (Operation &op : *module.getBody())
    if (auto bytes =
            op.getAttrOfType<IntegerAttr>(FP8Dialect::kScratchBytesAttrName)) {
      result.scratchBytes = std::max(result.scratchBytes, bytes.getInt());
      ++result.stats.kernels;
    }
  for (auto kernel : module.getOps<gpu::GPUModuleOp>())
    if (auto launch = kernel->getAttrOfType<GPULaunchAttr>(
            FP8Dialect::kGPULaunchAttrName)) {
      result.scratchBytes = std::max(result.scratchBytes,
                                     launch.getScratch() * launch.getBlocks());
      ++result.stats.kernels;
    }
}

/// Adds what the schedules say: the arena, the shards of the arguments and the
/// names of the launches.
static void addSchedules(ModuleOp module, ExecutableFunction &result) {
  for (auto schedule : module.getOps<ScheduleOp>()) {
    // The arena comes first.
    for (size_t i = 0; i < result.arguments.size(); ++i) {
      auto number = [&](StringRef name, int64_t missing) {
        auto attr = schedule.getArgAttrOfType<IntegerAttr>(i + 1, name);
        return attr ? attr.getInt() : missing;
      };
      result.arguments[i].shard = number(FP8Dialect::kShardAttrName, 0);
      result.arguments[i].slices = number(FP8Dialect::kSlicesAttrName, 1);
    }
    result.arenaBytes = schedule.getArenaBytes().value_or(0);
    auto name = [&](auto op) {
      size_t number = *op.getNumber(); // fp8-plan-memory gives it.
      result.launchNames.resize(
          std::max(result.launchNames.size(), number + 1));
      result.launchNames[number] = op.getLabel().value_or("").str();
    };
    schedule.walk([&](Operation *op) {
      if (auto launch = dyn_cast<LaunchOp>(op))
        name(launch);
      else if (auto start = dyn_cast<StartAllReduceOp>(op))
        name(start);
      else if (auto start = dyn_cast<StartExchangeOp>(op))
        name(start);
    });
  }
}

/// Adds the bytes of the constants by their numbers, which fp8-plan-memory
/// gives.
static void addConstants(ModuleOp module, ExecutableFunction &result) {
  for (auto global : module.getOps<memref::GlobalOp>()) {
    size_t index =
        global->getAttrOfType<IntegerAttr>(FP8Dialect::kNumberAttrName)
            .getInt();
    result.constants.resize(std::max(result.constants.size(), index + 1));
    result.constants[index] = constantBytes(global);
  }
}

void fp8::describeFunction(ModuleOp module, ExecutableFunction &result) {
  addKernels(module, result);
  addSchedules(module, result);
  addConstants(module, result);
  result.stats.launches = result.launchNames.size();
}

/// Returns what a field of a row says about a dot as JSON.
static llvm::json::Value jsonOf(Attribute field) {
  if (auto text = dyn_cast<StringAttr>(field))
    return text.getValue();
  if (auto number = dyn_cast<IntegerAttr>(field))
    return number.getInt();
  if (auto sizes = dyn_cast<DenseI64ArrayAttr>(field))
    return llvm::json::Array(sizes.asArrayRef());
  auto types = dyn_cast<ArrayAttr>(field);
  if (!types)
    return nullptr;
  return llvm::json::Array(llvm::map_range(types, [](Attribute type) {
    std::string text;
    llvm::raw_string_ostream(text) << cast<TypeAttr>(type).getValue();
    return text;
  }));
}

std::string fp8::dotChoicesOf(ModuleOp module) {
  auto rows = module->getAttrOfType<ArrayAttr>(FP8Dialect::kDotChoicesAttrName);
  if (!rows)
    return "";
  llvm::json::Array dots;
  for (auto row : rows.getAsRange<DictionaryAttr>()) {
    llvm::json::Object dot;
    for (NamedAttribute field : row)
      dot[field.getName().strref()] = jsonOf(field.getValue());
    dots.push_back(std::move(dot));
  }
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(dots))).str();
}
