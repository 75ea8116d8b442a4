//===- ConvolutionsToDots.cpp - Convolutions become dots ------------------===//
//
// A convolution is a dot of the windows of its image and its kernel. As dots,
// convolutions and their gradients are linear layers. If a window is one
// element, all of the image, or as long as its stride, the windows are a
// reshaped image: the layers of a network that mix channels, embed patches, or
// skip. Along each spatial dimension, with an image of I elements, a kernel of
// K and a result of O:
//
//   Pointwise    K = 1                          out[o] = x[o] w
//   Strided      K = 1, stride S                out[o] = x[o S] w
//   Contracted   O = 1                          out    = sum of x[k] w[k]
//   Patches      stride K, I = O K              out[o] = sum of x[o, k] w[k]
//   Interleaved  kernel dilated by O, I = O K   out[o] = sum of x[k, o] w[k]
//   Spread       image dilated by K, O = I K    out[i, k] = x[i] w[K - 1 - k]
//   Windows      all others                     out[o] = sum of x'[o, k] w[k]
//
// Interleaved and spread ones are the gradients of patches and of contracted
// dimensions. A stride over pointwise windows takes a slice of the image first,
// and a dilated image pads the result with zeros. `fp8.windows` makes x' of all
// other dimensions; where the kernel is reversed, it reverses the taps instead.
// Before, features become the last dimension of images, kernels and results,
// where a dot reads and writes them as vectors.
//
// Of a convolution in groups every group is a dot: features of the image (or,
// in the gradient of the kernel, its batch) and of the result are split into
// groups and the features of one, and the dot is batched over the groups.
// Groups of a few features stay convolutions: their dots would be too narrow
// for vectors.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_CONVOLUTIONSTODOTS
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;
using fp8::shapeOf;
using stablehlo::ConvolutionOp;

namespace {

/// The window of a convolution along one spatial dimension.
struct Window {
  int64_t image, kernel, result;
  int64_t stride, low, high, imageDilation, kernelDilation;
  bool isReversed;
};

enum class Kind {
  Pointwise,
  Strided,
  Contracted,
  Patches,
  Interleaved,
  Spread,
  Windows
};

/// Rewrites one convolution.
class DotBuilder {
public:
  explicit DotBuilder(ConvolutionOp op)
      : op(op), numbers(op.getDimensionNumbers()), builder(op) {}

  /// Finds what the windows compute; returns false if the convolution is no
  /// dot.
  bool readWindows();
  /// Whether elements occur in several windows.
  bool needsWindows() const { return llvm::is_contained(kinds, Kind::Windows); }
  /// Returns the result.
  Value build();

private:
  /// With fewer features of the image or the result a group is no dot.
  static constexpr int64_t kLeastOfGroup = 8;

  bool readGroups();
  void readReversedKernel();
  Value sliceImage(Value image);
  Value splitGroups(Value image);
  Value turnKernel(Value kernel);
  Value makeWindows(Value image);
  void placeImage(Value &image);
  void placeKernel(Value &kernel);
  Value arrange(Value dot);
  Value padResult(Value result);

  ConvolutionOp op;
  stablehlo::ConvDimensionNumbersAttr numbers;
  OpBuilder builder;
  /// The kernel as it was before it was reversed.
  Value kernel;
  SmallVector<Window> windows;
  SmallVector<Kind> kinds;
  /// The number of groups, and the dimension of the image that they split.
  int64_t groups = 1, groupedDim = -1;

  /// What the free dimensions of the dot's operands are: a dimension of the
  /// convolution's result, and whether they are the outer part of it.
  struct Free {
    int64_t dim;
    bool isOuter = true;
  };
  SmallVector<Free> free;
  SmallVector<int64_t> imageContracted, kernelContracted;
  /// The dimension of the groups, if there are several.
  SmallVector<int64_t, 1> imageGroups, kernelGroups;
};

} // namespace

/// Returns which of the spatial dimensions `dim` is; nullopt for batches and
/// features.
static std::optional<unsigned> numberIn(ArrayRef<int64_t> spatial,
                                        int64_t dim) {
  const int64_t *found = llvm::find(spatial, dim);
  if (found == spatial.end())
    return std::nullopt;
  return found - spatial.begin();
}

/// Whether the kernel's dimension is summed over.
static bool isContracted(Kind kind) {
  return kind == Kind::Contracted || kind == Kind::Patches ||
         kind == Kind::Interleaved || kind == Kind::Windows;
}

/// Returns what a window computes.
static Kind kindOf(const Window &w) {
  bool isPlain = w.low == 0 && w.imageDilation == 1;
  if (w.kernel == 1) {
    // A dilated image is one result of its elements, with zeros between them.
    // (Zeros around would hide that a result is the gradient of a kernel.)
    bool isPadded = w.low > 0 || w.high > 0;
    if (w.stride == 1 && w.low >= 0 && w.high >= 0 &&
        (w.imageDilation > 1 || !isPadded))
      return Kind::Pointwise;
    if (isPlain && w.high <= 0)
      return Kind::Strided;
  }
  bool isCovered =
      isPlain && !w.isReversed && (w.kernel - 1) * w.kernelDilation < w.image;
  if (isCovered && w.result == 1)
    return Kind::Contracted;
  if (isCovered && w.high == 0 && w.image == w.result * w.kernel) {
    if (w.stride == w.kernel && w.kernelDilation == 1)
      return Kind::Patches;
    if (w.stride == 1 && w.kernelDilation == w.result)
      return Kind::Interleaved;
  }
  if ((w.imageDilation == w.kernel || w.image == 1) && w.stride == 1 &&
      w.kernelDilation == 1 && w.low == w.kernel - 1 && w.high == w.kernel - 1)
    return Kind::Spread;
  return Kind::Windows;
}

/// Reads a kernel that has been reversed as it was, and its windows backwards:
/// so the kernel of a gradient is the parameter itself.
void DotBuilder::readReversedKernel() {
  kernel = op.getRhs();
  auto numberOf = [&](int64_t dim) {
    return numberIn(numbers.getKernelSpatialDimensions(), dim);
  };
  while (auto reverse = kernel.getDefiningOp<stablehlo::ReverseOp>()) {
    if (!llvm::all_of(reverse.getDimensions(),
                      [&](int64_t dim) { return numberOf(dim).has_value(); }))
      return;
    for (int64_t dim : reverse.getDimensions()) {
      Window &window = windows[*numberOf(dim)];
      window.isReversed = !window.isReversed;
    }
    kernel = reverse.getOperand();
  }
}

/// Finds the groups; returns false if they are too narrow.
bool DotBuilder::readGroups() {
  groups = std::max(op.getFeatureGroupCount(), op.getBatchGroupCount());
  if (groups == 1)
    return true;
  groupedDim = op.getFeatureGroupCount() > 1
                   ? numbers.getInputFeatureDimension()
                   : numbers.getInputBatchDimension();
  int64_t results =
      shapeOf(op.getRhs())[numbers.getKernelOutputFeatureDimension()];
  return std::min(shapeOf(op.getLhs())[groupedDim], results) / groups >=
         kLeastOfGroup;
}

bool DotBuilder::readWindows() {
  auto type = dyn_cast<RankedTensorType>(op.getResult().getType());
  auto isStatic = [](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() > 0;
  };
  if (!type || !isStatic(op.getResult()) || !isStatic(op.getLhs()) ||
      !isStatic(op.getRhs()) || !readGroups())
    return false;
  Type element = cast<RankedTensorType>(op.getLhs().getType()).getElementType();
  bool isNarrow =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 32;
  size_t spatial = numbers.getInputSpatialDimensions().size();
  SmallVector<int64_t> strides =
      stablehlo::orOnes(op.getWindowStrides(), spatial);
  SmallVector<int64_t> spread = stablehlo::orOnes(op.getLhsDilation(), spatial);
  SmallVector<int64_t> dilation =
      stablehlo::orOnes(op.getRhsDilation(), spatial);
  auto pads = stablehlo::paddings(op.getPadding(), spatial);
  for (size_t i = 0; i < spatial; ++i) {
    Window window{shapeOf(op.getLhs())[numbers.getInputSpatialDimensions()[i]],
                  shapeOf(op.getRhs())[numbers.getKernelSpatialDimensions()[i]],
                  type.getShape()[numbers.getOutputSpatialDimensions()[i]],
                  strides[i],
                  pads[i].first,
                  pads[i].second,
                  spread[i],
                  dilation[i],
                  op.getWindowReversal() && (*op.getWindowReversal())[i]};
    windows.push_back(window);
  }
  readReversedKernel();
  for (const Window &window : windows) {
    kinds.push_back(kindOf(window));
    if (kinds.back() == Kind::Windows && !isNarrow)
      return false;
  }
  return true;
}

/// Leaves out elements of the image that no window reads: between strides of
/// pointwise windows, and between the elements of a dilated kernel.
Value DotBuilder::sliceImage(Value image) {
  ArrayRef<int64_t> shape = shapeOf(image);
  SmallVector<int64_t> starts(shape.size(), 0), ends(shape),
      steps(shape.size(), 1);
  for (auto [i, dim] : llvm::enumerate(numbers.getInputSpatialDimensions())) {
    const Window &w = windows[i];
    if (kinds[i] == Kind::Strided) {
      steps[dim] = w.stride;
      ends[dim] = (w.result - 1) * w.stride + 1;
    } else if (kinds[i] == Kind::Contracted) {
      steps[dim] = w.kernelDilation;
      ends[dim] = (w.kernel - 1) * w.kernelDilation + 1;
    }
  }
  if (ArrayRef<int64_t>(ends) == shape && llvm::all_equal(steps) &&
      steps.front() == 1)
    return image;
  return stablehlo::SliceOp::create(builder, op.getLoc(), image, starts, ends,
                                    steps);
}

/// Reverses the dimensions of the kernel that are spread forwards.
Value DotBuilder::turnKernel(Value kernel) {
  SmallVector<int64_t> turned;
  for (auto [i, dim] : llvm::enumerate(numbers.getKernelSpatialDimensions()))
    if (kinds[i] == Kind::Spread && !windows[i].isReversed)
      turned.push_back(dim);
  if (turned.empty())
    return kernel;
  llvm::sort(turned);
  return stablehlo::ReverseOp::create(builder, op.getLoc(), kernel, turned);
}

static Value reshape(OpBuilder &builder, Location loc, Value value,
                     ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getShape() == shape ? value
                                  : stablehlo::ReshapeOp::create(
                                        builder, loc, type.clone(shape), value);
}

/// Returns where some dimensions are in an order.
static SmallVector<int64_t> getPlaces(ArrayRef<int64_t> order,
                                      ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [&](int64_t dim) {
    return llvm::find(order, dim) - order.begin();
  });
}

/// Returns a value with its dimensions in an order; a reversed one is reversed
/// after that.
static Value transpose(OpBuilder &builder, Value value,
                       ArrayRef<int64_t> order) {
  if (llvm::is_sorted(order))
    return value;
  if (auto reverse = value.getDefiningOp<stablehlo::ReverseOp>())
    return stablehlo::ReverseOp::create(
        builder, reverse.getLoc(),
        transpose(builder, reverse.getOperand(), order),
        getPlaces(order, reverse.getDimensions()));
  SmallVector<int64_t> shape = applyPermutation(shapeOf(value), order);
  return stablehlo::TransposeOp::create(
      builder, value.getLoc(),
      cast<RankedTensorType>(value.getType()).clone(shape), value,
      builder.getDenseI64ArrayAttr(order));
}

/// Splits the image's dimension of groups.
Value DotBuilder::splitGroups(Value image) {
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(image))) {
    if (int64_t(dim) == groupedDim)
      shape.append({groups, extent / groups});
    else
      shape.push_back(extent);
  }
  return reshape(builder, op.getLoc(), image, shape);
}

/// Splits the dimensions of the image whose windows overlap, or have zeros
/// around, into windows and taps.
Value DotBuilder::makeWindows(Value image) {
  SmallVector<int64_t> dims, sizes, strides, dilations, low, high, interior,
      shape;
  SmallVector<bool> reversed;
  for (auto [place, extent] : llvm::enumerate(shapeOf(image))) {
    int64_t dim = place;
    if (groups > 1 && dim > groupedDim)
      --dim;
    std::optional<unsigned> i =
        numberIn(numbers.getInputSpatialDimensions(), dim);
    if (!i || kinds[*i] != Kind::Windows) {
      shape.push_back(extent);
      continue;
    }
    const Window &w = windows[*i];
    dims.push_back(place);
    sizes.push_back(w.kernel);
    strides.push_back(w.stride);
    dilations.push_back(w.kernelDilation);
    low.push_back(w.low);
    high.push_back(w.high);
    interior.push_back(w.imageDilation - 1);
    reversed.push_back(w.isReversed);
    shape.append({w.result, w.kernel});
  }
  if (dims.empty())
    return image;
  auto type = cast<RankedTensorType>(image.getType()).clone(shape);
  return fp8::WindowsOp::create(builder, op.getLoc(), type, image, dims, sizes,
                                strides, dilations, low, high, interior,
                                reversed);
}

/// Splits dimensions of the image into windows, and finds out which dimensions
/// are contracted.
void DotBuilder::placeImage(Value &image) {
  Value split = makeWindows(splitGroups(image));
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(image))) {
    int64_t size = extent;
    if (int64_t(dim) == groupedDim) {
      imageGroups = {int64_t(shape.size())};
      shape.push_back(groups);
      size /= groups;
    }
    int64_t place = shape.size();
    if (int64_t(dim) == numbers.getInputBatchDimension()) {
      free.push_back({numbers.getOutputBatchDimension()});
      shape.push_back(size);
      continue;
    }
    if (int64_t(dim) == numbers.getInputFeatureDimension()) {
      imageContracted.push_back(place);
      shape.push_back(size);
      continue;
    }
    unsigned i = *numberIn(numbers.getInputSpatialDimensions(), dim);
    const Window &w = windows[i];
    Free own{numbers.getOutputSpatialDimensions()[i]};
    switch (kinds[i]) {
    case Kind::Pointwise:
    case Kind::Strided:
    case Kind::Spread:
      free.push_back(own);
      shape.push_back(size);
      break;
    case Kind::Contracted:
      imageContracted.push_back(place);
      shape.push_back(size);
      break;
    case Kind::Patches:
    case Kind::Windows:
      free.push_back(own);
      imageContracted.push_back(place + 1);
      shape.append({w.result, w.kernel});
      break;
    case Kind::Interleaved:
      free.push_back(own);
      imageContracted.push_back(place);
      shape.append({w.kernel, w.result});
      break;
    }
  }
  image = reshape(builder, op.getLoc(), split, shape);
}

/// Splits a dimension of a value into groups, before the value is transposed:
/// JAX merges the groups of a kernel for the gradient of its image, and both
/// reshapes cancel.
static Value splitBeforeTransposes(OpBuilder &builder, Location loc,
                                   Value value, int64_t split, int64_t groups) {
  SmallVector<int64_t> shape, order;
  auto transpose = value.getDefiningOp<stablehlo::TransposeOp>();
  if (!transpose) {
    for (auto [dim, extent] : llvm::enumerate(shapeOf(value))) {
      if (int64_t(dim) == split)
        shape.append({groups, extent / groups});
      else
        shape.push_back(extent);
    }
    return reshape(builder, loc, value, shape);
  }
  int64_t source = transpose.getPermutation()[split];
  for (int64_t dim : transpose.getPermutation()) {
    order.push_back(dim > source ? dim + 1 : dim);
    if (dim == source)
      order.push_back(dim + 1);
  }
  Value inner = splitBeforeTransposes(builder, loc, transpose.getOperand(),
                                      source, groups);
  return ::transpose(builder, inner, order);
}

/// Leaves out the dimensions of pointwise windows, and finds the contracted
/// dimensions in the order of the image.
void DotBuilder::placeKernel(Value &kernel) {
  SmallVector<int64_t> shape, places(shapeOf(kernel).size(), -1);
  for (auto [dim, size] : llvm::enumerate(shapeOf(kernel))) {
    std::optional<unsigned> i =
        numberIn(numbers.getKernelSpatialDimensions(), dim);
    if (i && (kinds[*i] == Kind::Pointwise || kinds[*i] == Kind::Strided))
      continue;
    bool isResult = int64_t(dim) == numbers.getKernelOutputFeatureDimension();
    if (isResult && groups > 1) {
      kernelGroups = {int64_t(shape.size())};
      shape.push_back(groups);
    }
    places[dim] = shape.size();
    shape.push_back(isResult ? size / groups : size);
    if (isResult)
      free.push_back({numbers.getOutputFeatureDimension(), groups == 1});
    else if (i && kinds[*i] == Kind::Spread)
      free.push_back({numbers.getOutputSpatialDimensions()[*i], false});
  }
  for (int64_t dim : llvm::seq<int64_t>(shapeOf(op.getLhs()).size())) {
    if (dim == numbers.getInputFeatureDimension()) {
      kernelContracted.push_back(
          places[numbers.getKernelInputFeatureDimension()]);
      continue;
    }
    std::optional<unsigned> i =
        numberIn(numbers.getInputSpatialDimensions(), dim);
    if (i && isContracted(kinds[*i]))
      kernelContracted.push_back(
          places[numbers.getKernelSpatialDimensions()[*i]]);
  }
  if (groups > 1 && kernel.getDefiningOp<stablehlo::TransposeOp>())
    kernel = splitBeforeTransposes(builder, op.getLoc(), kernel,
                                   numbers.getKernelOutputFeatureDimension(),
                                   groups);
  kernel = reshape(builder, op.getLoc(), kernel, shape);
}

/// Brings the dimensions of the dot into the order of the result, and merges
/// the parts of spread ones.
Value DotBuilder::arrange(Value dot) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(free.size()));
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return std::pair(free[a].dim, !free[a].isOuter) <
           std::pair(free[b].dim, !free[b].isOuter);
  });
  auto type = cast<RankedTensorType>(dot.getType());
  if (!llvm::is_sorted(order)) {
    SmallVector<int64_t> shape;
    for (int64_t place : order)
      shape.push_back(type.getShape()[place]);
    dot = stablehlo::TransposeOp::create(builder, op.getLoc(),
                                         type.clone(shape), dot,
                                         builder.getDenseI64ArrayAttr(order));
  }
  SmallVector<int64_t> shape(shapeOf(op.getResult()));
  for (auto [i, dim] : llvm::enumerate(numbers.getOutputSpatialDimensions()))
    if (kinds[i] == Kind::Pointwise)
      shape[dim] = windows[i].image;
  return reshape(builder, op.getLoc(), dot, shape);
}

/// Adds the zeros between and around the elements of pointwise windows.
Value DotBuilder::padResult(Value result) {
  ArrayRef<int64_t> shape = shapeOf(result);
  SmallVector<int64_t> low(shape.size(), 0), high(low), interior(low);
  for (auto [i, dim] : llvm::enumerate(numbers.getOutputSpatialDimensions())) {
    const Window &w = windows[i];
    if (shape[dim] == w.result)
      continue;
    low[dim] = w.low;
    high[dim] = w.high;
    interior[dim] = w.imageDilation - 1;
  }
  return stablehlo::padWithZeros(builder, op.getLoc(), result, low, high,
                                 interior);
}

Value DotBuilder::build() {
  Value image = sliceImage(op.getLhs());
  kernel = turnKernel(kernel);
  if (groups > 1)
    free.push_back({numbers.getOutputFeatureDimension()});
  placeImage(image);
  placeKernel(kernel);
  SmallVector<int64_t> shape;
  if (groups > 1)
    shape.push_back(groups);
  auto addFree = [&](Value operand, ArrayRef<int64_t> batching,
                     ArrayRef<int64_t> contracted) {
    ArrayRef<int64_t> sizes = shapeOf(operand);
    for (int64_t dim :
         stablehlo::getFreeDims(sizes.size(), batching, contracted))
      shape.push_back(sizes[dim]);
  };
  addFree(image, imageGroups, imageContracted);
  addFree(kernel, kernelGroups, kernelContracted);
  auto dims = stablehlo::DotDimensionNumbersAttr::get(
      op.getContext(), imageGroups, kernelGroups, imageContracted,
      kernelContracted);
  auto type = cast<RankedTensorType>(op.getResult().getType()).clone(shape);
  auto dot = stablehlo::DotGeneralOp::create(
      builder, op.getLoc(), type, image, kernel, dims,
      op.getPrecisionConfigAttr(), /*algorithm=*/nullptr);
  return padResult(arrange(dot));
}

/// Returns an order of dimensions in which the last one that is not spatial is
/// the last of all.
static SmallVector<int64_t> getOrder(ArrayRef<int64_t> spatial) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(spatial.size() + 2));
  auto last = llvm::find_if(llvm::reverse(order), [&](int64_t dim) {
    return !llvm::is_contained(spatial, dim);
  });
  std::rotate(last.base() - 1, last.base(), order.end());
  return order;
}

/// Replaces a convolution by one whose image, kernel and result have a
/// dimension last that is not spatial, and returns that one.
static ConvolutionOp moveFeaturesLast(ConvolutionOp op) {
  OpBuilder builder(op);
  stablehlo::ConvDimensionNumbersAttr numbers = op.getDimensionNumbers();
  SmallVector<int64_t> image = getOrder(numbers.getInputSpatialDimensions()),
                       kernel = getOrder(numbers.getKernelSpatialDimensions()),
                       result = getOrder(numbers.getOutputSpatialDimensions());
  auto place = [](ArrayRef<int64_t> order, int64_t dim) {
    return getPlaces(order, dim).front();
  };
  Value lhs = transpose(builder, op.getLhs(), image);
  Value rhs = transpose(builder, op.getRhs(), kernel);
  auto last = cast<ConvolutionOp>(builder.clone(*op));
  last->setOperands({lhs, rhs});
  last.setDimensionNumbersAttr(stablehlo::ConvDimensionNumbersAttr::get(
      op.getContext(), place(image, numbers.getInputBatchDimension()),
      place(image, numbers.getInputFeatureDimension()),
      getPlaces(image, numbers.getInputSpatialDimensions()),
      place(kernel, numbers.getKernelInputFeatureDimension()),
      place(kernel, numbers.getKernelOutputFeatureDimension()),
      getPlaces(kernel, numbers.getKernelSpatialDimensions()),
      place(result, numbers.getOutputBatchDimension()),
      place(result, numbers.getOutputFeatureDimension()),
      getPlaces(result, numbers.getOutputSpatialDimensions())));
  auto type = cast<RankedTensorType>(op.getResult().getType());
  last.getResult().setType(
      type.clone(applyPermutation(type.getShape(), result)));
  Value replaced =
      transpose(builder, last.getResult(), invertPermutationVector(result));
  op.replaceAllUsesWith(replaced);
  return last;
}

/// Erases an op that nothing reads, and the reverses that made its kernel.
static void eraseUnread(ConvolutionOp op) {
  Operation *kernel = op.getRhs().getDefiningOp();
  op.erase();
  while (isa_and_nonnull<stablehlo::ReverseOp>(kernel) && kernel->use_empty()) {
    Operation *reversed = kernel;
    kernel = kernel->getOperand(0).getDefiningOp();
    reversed->erase();
  }
}

namespace {
struct ConvolutionsToDots
    : stablehlo::impl::ConvolutionsToDotsBase<ConvolutionsToDots> {
  void runOnOperation() override {
    SmallVector<ConvolutionOp> convolutions;
    getOperation()->walk([&](ConvolutionOp op) { convolutions.push_back(op); });
    for (ConvolutionOp op : convolutions) {
      DotBuilder first(op);
      if (!first.readWindows())
        continue;
      if (first.needsWindows()) {
        ConvolutionOp last = moveFeaturesLast(op);
        eraseUnread(op);
        op = last;
      }
      DotBuilder builder(op);
      builder.readWindows();
      op.replaceAllUsesWith(builder.build());
      eraseUnread(op);
      ++numRewritten;
    }
  }
};
} // namespace
