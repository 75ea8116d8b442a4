//===- FP8Attrs.cpp - Attributes of the fp8 dialect -----------------------===//

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"

#include "Integers.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Support/Subtarget.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

static void printIntegers(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << '[' << values << ']';
}

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Attrs.cpp.inc"

/// Checks a list of features that are added or removed.
static LogicalResult
verifyFeatures(llvm::function_ref<InFlightDiagnostic()> emitError,
               const llvm::MCSubtargetInfo &subtarget, StringRef features) {
  for (StringRef feature : llvm::split(features, ',')) {
    bool isSigned = feature.starts_with("+") || feature.starts_with("-");
    if (features.empty() ||
        (isSigned && llvm::any_of(subtarget.getAllProcessorFeatures(),
                                  [&](const llvm::SubtargetFeatureKV &known) {
                                    return feature.drop_front() == known.Key;
                                  })))
      continue;
    return emitError() << "expected features of the CPU with '+' or '-' but "
                          "got '"
                       << feature << "'";
  }
  return success();
}

LogicalResult
CPUTargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      StringRef triple, StringRef cpu, StringRef features,
                      unsigned vectorBits) {
  llvm::Triple::ArchType arch = llvm::Triple(triple).getArch();
  if (arch != llvm::Triple::x86_64 && arch != llvm::Triple::aarch64)
    return emitError() << "expected a triple of x86_64 or aarch64 but got '"
                       << triple << "'";
  if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512)
    return emitError() << "expected vector_bits to be 128, 256 or 512 but got "
                       << vectorBits;
  // An LLVM without this target cannot tell its CPUs.
  auto subtarget = getSubtarget(llvm::Triple(triple), "", "");
  if (!subtarget)
    return success();
  if (!subtarget->isCPUStringValid(cpu))
    return emitError() << "expected a CPU that LLVM knows but got '" << cpu
                       << "'";
  return verifyFeatures(emitError, *subtarget, features);
}

static LogicalResult
verifyTile(llvm::function_ref<InFlightDiagnostic()> emitError,
           ArrayRef<int64_t> tile) {
  for (int64_t extent : tile)
    if (extent <= 0)
      return emitError() << "expected a tile of positive extents but got "
                         << extent;
  return success();
}

LogicalResult
CPUPlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    ArrayRef<int64_t> tile, std::optional<int64_t> keys) {
  if (keys && *keys <= 0)
    return emitError() << "expected a positive number of keys but got "
                       << *keys;
  return verifyTile(emitError, tile);
}

LogicalResult
GPUTargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      StringRef chip, StringRef, StringRef cublaslt) {
  if (!llvm::is_contained({"sm_89", "sm_90a", "sm_100a", "sm_120a"}, chip))
    return emitError()
           << "expected a chip of sm_89, sm_90a, sm_100a and sm_120a but got '"
           << chip << "'";
  if (!llvm::is_contained({"", "table", "all"}, cublaslt))
    return emitError() << "expected cublaslt to be table or all but got '"
                       << cublaslt << "'";
  return success();
}

static LogicalResult
verifyThreads(llvm::function_ref<InFlightDiagnostic()> emitError,
              int64_t threads) {
  if (threads > 0 && threads <= 1024 && threads % 32 == 0)
    return success();
  return emitError()
         << "expected threads to be a multiple of 32 up to 1024 but got "
         << threads;
}

LogicalResult
CublasLtPlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                         int64_t rows, int64_t columns, int64_t depth, bool,
                         bool, bool, bool, int64_t workspace) {
  if (rows <= 0 || columns <= 0 || depth <= 0)
    return emitError() << "expected positive sizes but got " << rows << ", "
                       << columns << " and " << depth;
  if (workspace < 0)
    return emitError() << "expected a workspace that is not negative but got "
                       << workspace;
  return success();
}

LogicalResult
GPUPlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    ArrayRef<int64_t> tile, ArrayRef<int64_t> sumTile,
                    unsigned threads, bool wgmma, unsigned stages, int64_t rows,
                    bool tma) {
  if (failed(verifyTile(emitError, tile)) ||
      failed(verifyTile(emitError, sumTile)) ||
      failed(verifyThreads(emitError, threads)))
    return failure();
  if (wgmma && threads % 128 != 0)
    return emitError() << "expected whole warpgroups of 128 threads for wgmma "
                          "but got "
                       << threads;
  if (stages < 2 || stages > 4)
    return emitError() << "expected 2 to 4 stages but got " << stages;
  if (rows < 0 || (rows > 0 && !tile.empty()))
    return emitError() << "expected rows of a scatter, which has no tile, but "
                          "got "
                       << rows;
  if (tma && !wgmma)
    return emitError() << "expected wgmma for operands by TMA";
  return success();
}

// The rules of the driver's documentation, under cuTensorMapEncodeTiled. Its
// formula for strides: each is a multiple of the one before, and spans the
// dimension in between.
std::string TensorMapAttr::findMistake(Type element, ArrayRef<int64_t> sizes,
                                       ArrayRef<int64_t> strides,
                                       ArrayRef<int64_t> box, int64_t swizzle) {
  auto expected = [](const Twine &what, int64_t got) {
    return ("expected " + what + " but got " + Twine(got)).str();
  };
  if (!element.isIntOrFloat() ||
      !llvm::is_contained({8u, 16u, 32u}, element.getIntOrFloatBitWidth()))
    return "expected elements of 1, 2 or 4 bytes";
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t rank = sizes.size();
  if (rank == 0 || rank > kMostDims)
    return expected("1 to 5 dimensions", rank);
  if (static_cast<int64_t>(strides.size()) + 1 != rank ||
      static_cast<int64_t>(box.size()) != rank)
    return expected("a stride for each but the first and a box for each of " +
                        Twine(rank) + " dimensions",
                    strides.size());
  for (auto [size, extent] : llvm::zip(sizes, box)) {
    // Coordinates are signed.
    if (size <= 0 || size > INT32_MAX)
      return expected("a size of 1 to 2^31 - 1", size);
    if (extent <= 0 || extent > kMostBox)
      return expected("a box of 1 to 256", extent);
  }
  int64_t inner = bytes;
  for (auto [stride, size] : llvm::zip(strides, sizes)) {
    if (stride % 16 != 0 || stride >= int64_t(1) << 40)
      return expected("a stride that is a multiple of 16 bytes below 2^40",
                      stride);
    if (stride % inner != 0 || stride < inner * size)
      return expected("a stride that is a multiple of " + Twine(inner) +
                          " and at least " + Twine(inner * size),
                      stride);
    inner = stride;
  }
  if (!llvm::is_contained({0, 32, 64, 128}, swizzle))
    return expected("a swizzle of 0, 32, 64 or 128 bytes", swizzle);
  int64_t row = box[0] * bytes;
  if (row % 16 != 0 || (swizzle != 0 && row > swizzle))
    return expected(
        "rows of a box that are a multiple of 16 bytes within the swizzle",
        row);
  return "";
}

LogicalResult
TensorMapAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      int64_t operand, Type element, ArrayRef<int64_t> sizes,
                      ArrayRef<int64_t> strides, ArrayRef<int64_t> box,
                      int64_t swizzle) {
  if (operand < 0)
    return emitError() << "expected the number of an argument but got "
                       << operand;
  if (std::string why = findMistake(element, sizes, strides, box, swizzle);
      !why.empty())
    return emitError() << why;
  return success();
}

LogicalResult
GPULaunchAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      int64_t blocks, int64_t threads, int64_t shared,
                      int64_t dynamicShared, int64_t scratch,
                      ArrayRef<TensorMapAttr>) {
  if (blocks <= 0)
    return emitError() << "expected blocks to be positive but got " << blocks;
  for (int64_t bytes : {shared, dynamicShared, scratch})
    if (bytes < 0)
      return emitError() << "expected a number of bytes but got " << bytes;
  // Not whole warps: a kernel that only sets a condition has one thread.
  if (threads <= 0 || threads > 1024)
    return emitError() << "expected 1 to 1024 threads but got " << threads;
  return success();
}

void FP8Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/Dialect/FP8/IR/FP8Attrs.cpp.inc"
      >();
}
