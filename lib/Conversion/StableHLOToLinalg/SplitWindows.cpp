//===- SplitWindows.cpp - Windows without the zeros of dilated images -----===//
//
// The gradient of the image of a convolution with stride s, and a transposed
// convolution, read windows of an image with s - 1 zeros between its elements:
// along each dimension only every s-th tap meets an element. Which taps these
// are depends on the window's number modulo s, its phase. So the dot becomes a
// dot for each phase, of windows of the image as it is and of every s-th tap,
// and their results are put together as a sum of values that are padded with
// zeros, of which PaddedSums.cpp computes each element once.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "DotDims.h"

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SPLITWINDOWS
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A dimension of windows over a dilated image.
struct Dilated {
  /// Its place among the dimensions of the windows' op.
  unsigned number;
  /// The distance between elements of the image.
  int64_t step;
  /// The dimension of the other operand that is contracted with the taps.
  int64_t otherDim;
  /// The dimension of the dot's result that counts the windows.
  int64_t resultDim;
};

/// The windows `start`, `start + step`, ... of a dimension, as windows over the
/// image without its zeros: each has `taps` elements, of which the first one
/// meets tap `firstTap` of the op.
struct Phase {
  int64_t start, windows, taps, firstTap, low, high;
};

/// Splits one dot.
class DotSplitter {
public:
  DotSplitter(Operation *dot, unsigned operand)
      : dot(dot), operand(operand), builder(dot) {}

  /// Returns false if the operand is no windows over a dilated image, or if the
  /// dot cannot be split or is not worth it.
  bool find();
  /// Replaces the dot, and erases its windows if it alone reads them.
  void replace();

private:
  /// To write and to read an element of the result once more takes as long as
  /// about so many multiply-adds.
  static constexpr int64_t kLeastSaved = 96;
  /// More dots than this would rather be one large dot.
  static constexpr int64_t kMostPhases = 16;

  bool findDimensions();
  bool isWorthIt();
  SmallVector<Phase> getPhases(const Dilated &dim);
  Value buildFrom(unsigned first, SmallVectorImpl<Phase> &chosen);
  Value buildDot(ArrayRef<Phase> chosen);
  Value makeWindows(ArrayRef<Phase> chosen);
  Value sliceOther(ArrayRef<Phase> chosen);
  Value pad(Value part, const Dilated &dim, const Phase &phase);

  Operation *dot;
  /// The operand that is windows: 0 is the lhs, 1 is the rhs.
  unsigned operand;
  OpBuilder builder;
  WindowsOp windows;
  /// If the windows are the payload of a scaled tensor.
  PackOp pack;
  SmallVector<Dilated> dims;
  SmallVector<int64_t> contracting;
};

} // namespace

/// Finds the dimensions of windows whose taps are contracted; returns false if
/// a dilated one is another.
bool DotSplitter::findDimensions() {
  DotDims all = *DotDims::of(dot);
  contracting = all.contracting[operand];
  SmallVector<int64_t> own = stablehlo::getFreeDims(
      cast<RankedTensorType>(windows.getType()).getRank(),
      all.batching[operand], contracting);
  // The free dimensions of the lhs come first in the result.
  int64_t firstFree =
      operand == 0
          ? all.batching[0].size()
          : cast<RankedTensorType>(dot->getResult(0).getType()).getRank() -
                own.size();
  for (unsigned i = 0; i < windows.getDims().size(); ++i) {
    if (windows.getInterior()[i] == 0)
      continue;
    int64_t place = windows.getResultDim(windows.getDims()[i]);
    auto *free = llvm::find(own, place);
    auto *taps = llvm::find(contracting, place + 1);
    if (windows.getStrides()[i] != 1 || windows.getDilations()[i] != 1 ||
        free == own.end() || taps == contracting.end())
      return false;
    dims.push_back({i, windows.getInterior()[i] + 1,
                    all.contracting[1 - operand][taps - contracting.begin()],
                    firstFree + (free - own.begin())});
  }
  return !dims.empty();
}

bool DotSplitter::isWorthIt() {
  auto type = cast<RankedTensorType>(windows.getType());
  int64_t products = 1, phases = 1;
  for (int64_t dim : contracting)
    products *= type.getDimSize(dim);
  for (const Dilated &dim : dims)
    phases *= dim.step;
  return phases <= kMostPhases && products - products / phases >= kLeastSaved;
}

bool DotSplitter::find() {
  Value source = dot->getOperand(operand);
  pack = source.getDefiningOp<PackOp>();
  windows = (pack ? pack.getPayload() : source).getDefiningOp<WindowsOp>();
  if (!windows || (pack && !pack.getType().isPerTensor()) ||
      !findDimensions() || !isWorthIt())
    return false;
  auto result = cast<RankedTensorType>(dot->getResult(0).getType());
  auto other = dyn_cast<ScaledType>(dot->getOperand(1 - operand).getType());
  for (const Dilated &dim : dims) {
    // Elements that are not next to each other are no vectors.
    if (dim.resultDim + 1 == result.getRank() ||
        (other && other.variesAlong(dim.otherDim)))
      return false;
    int64_t extent = tensorType(windows.getInput())
                         .getDimSize(windows.getDims()[dim.number]);
    SmallVector<Phase> phases = getPhases(dim);
    // What lies outside of the image has no phases of its own.
    if (phases.empty() || llvm::any_of(phases, [&](const Phase &phase) {
          return -phase.low >= extent || -phase.high >= extent;
        }))
      return false;
  }
  return true;
}

/// Returns the phases of a dimension that have windows and taps.
SmallVector<Phase> DotSplitter::getPhases(const Dilated &dim) {
  unsigned i = dim.number;
  int64_t place = windows.getDims()[i], size = windows.getSizes()[i],
          low = windows.getLow()[i];
  int64_t extent = tensorType(windows.getInput()).getDimSize(place);
  int64_t count = cast<RankedTensorType>(windows.getType())
                      .getDimSize(windows.getResultDim(place));
  SmallVector<Phase> phases;
  for (int64_t start = 0; start < std::min(dim.step, count); ++start) {
    // Window `start + step q` and tap `tap + step m` meet element
    // `(start + tap - low) / step + q + m`.
    int64_t tap = llvm::mod(low - start, dim.step);
    if (tap >= size)
      continue;
    Phase phase;
    phase.start = start;
    phase.windows = llvm::divideCeil(count - start, dim.step);
    phase.taps = llvm::divideCeil(size - tap, dim.step);
    phase.firstTap = windows.getReversed()[i]
                         ? size - 1 - tap - dim.step * (phase.taps - 1)
                         : tap;
    phase.low = (low - start - tap) / dim.step;
    phase.high = phase.windows + phase.taps - 1 - extent - phase.low;
    phases.push_back(phase);
  }
  return phases;
}

/// Returns the windows of a phase along each dilated dimension.
Value DotSplitter::makeWindows(ArrayRef<Phase> chosen) {
  SmallVector<int64_t> sizes(windows.getSizes()), low(windows.getLow()),
      high(windows.getHigh()), interior(windows.getInterior());
  auto type = cast<RankedTensorType>(windows.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, phase] : llvm::zip_equal(dims, chosen)) {
    sizes[dim.number] = phase.taps;
    low[dim.number] = phase.low;
    high[dim.number] = phase.high;
    interior[dim.number] = 0;
    int64_t place = windows.getResultDim(windows.getDims()[dim.number]);
    shape[place] = phase.windows;
    shape[place + 1] = phase.taps;
  }
  Value made = WindowsOp::create(builder, dot->getLoc(), type.clone(shape),
                                 windows.getInput(), windows.getDims(), sizes,
                                 windows.getStrides(), windows.getDilations(),
                                 low, high, interior, windows.getReversed());
  if (!pack)
    return made;
  return PackOp::create(builder, dot->getLoc(),
                        ScaledType::getPerTensor(tensorType(made)), made,
                        pack.getScale());
}

/// Returns what the taps of a phase are multiplied with.
Value DotSplitter::sliceOther(ArrayRef<Phase> chosen) {
  Value other = dot->getOperand(1 - operand), scale;
  auto scaled = dyn_cast<ScaledType>(other.getType());
  if (scaled) {
    auto unpack =
        UnpackOp::create(builder, dot->getLoc(), scaled.getPayloadType(),
                         scaled.getScaleTensorType(), other);
    other = unpack.getPayload();
    scale = unpack.getScale();
  }
  ArrayRef<int64_t> shape = tensorType(other).getShape();
  SmallVector<int64_t> starts(shape.size(), 0), ends(shape),
      steps(shape.size(), 1);
  for (auto [dim, phase] : llvm::zip_equal(dims, chosen)) {
    starts[dim.otherDim] = phase.firstTap;
    steps[dim.otherDim] = dim.step;
    ends[dim.otherDim] = phase.firstTap + (phase.taps - 1) * dim.step + 1;
  }
  Value part = stablehlo::SliceOp::create(builder, dot->getLoc(), other, starts,
                                          ends, steps);
  if (!scaled)
    return part;
  return PackOp::create(builder, dot->getLoc(),
                        ScaledType::get(tensorType(part), scaled.getTile(),
                                        scaled.getScaleType()),
                        part, scale);
}

Value DotSplitter::buildDot(ArrayRef<Phase> chosen) {
  Value operands[2];
  operands[operand] = makeWindows(chosen);
  operands[1 - operand] = sliceOther(chosen);
  auto type = cast<RankedTensorType>(dot->getResult(0).getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, phase] : llvm::zip_equal(dims, chosen))
    shape[dim.resultDim] = phase.windows;
  return builder
      .create(dot->getLoc(), dot->getName().getIdentifier(), operands,
              TypeRange{type.clone(shape)}, dot->getAttrs())
      ->getResult(0);
}

/// Puts the elements of a phase where they are in the result.
Value DotSplitter::pad(Value part, const Dilated &dim, const Phase &phase) {
  int64_t place = dim.resultDim;
  auto result = cast<RankedTensorType>(dot->getResult(0).getType());
  SmallVector<int64_t> low(result.getRank(), 0), high(low), interior(low);
  low[place] = phase.start;
  interior[place] = dim.step - 1;
  high[place] = result.getDimSize(place) - phase.start -
                (phase.windows - 1) * dim.step - 1;
  return stablehlo::padWithZeros(builder, dot->getLoc(), part, low, high,
                                 interior);
}

/// Returns the result for some phases of the dimensions before `first` and all
/// phases of the others.
Value DotSplitter::buildFrom(unsigned first, SmallVectorImpl<Phase> &chosen) {
  if (first == dims.size())
    return buildDot(chosen);
  Value sum;
  for (const Phase &phase : getPhases(dims[first])) {
    chosen.push_back(phase);
    Value part = pad(buildFrom(first + 1, chosen), dims[first], phase);
    chosen.pop_back();
    sum = sum ? stablehlo::AddOp::create(builder, dot->getLoc(), sum, part)
              : part;
  }
  return sum;
}

void DotSplitter::replace() {
  SmallVector<Phase> chosen;
  dot->replaceAllUsesWith(ValueRange{buildFrom(0, chosen)});
  dot->erase();
  if (pack && pack->use_empty())
    pack->erase();
  if (windows->use_empty())
    windows->erase();
}

namespace {
struct SplitWindowsPass : fp8::impl::SplitWindowsBase<SplitWindowsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> dots;
    getOperation()->walk([&](Operation *op) {
      if (isa<stablehlo::DotGeneralOp, fp8::DotGeneralOp>(op))
        dots.push_back(op);
    });
    for (Operation *dot : dots)
      for (unsigned operand : {0, 1}) {
        DotSplitter splitter(dot, operand);
        if (!splitter.find())
          continue;
        splitter.replace();
        ++numSplit;
        break;
      }
  }
};
} // namespace
