//===- Export.cpp - Export of trained weights -----------------------------===//

#include "fp8/Compiler/Export.h"
#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Binding/PathBinding.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

std::optional<ExportFormat> fp8::symbolizeExportFormat(StringRef text) {
  return llvm::StringSwitch<std::optional<ExportFormat>>(text)
      .Case("f32", ExportFormat::F32)
      .Case("bf16", ExportFormat::BF16)
      .Case("f8E4M3FN", ExportFormat::F8E4M3FN)
      .Default(std::nullopt);
}

StringRef fp8::stringifyExportFormat(ExportFormat format) {
  switch (format) {
  case ExportFormat::F32:
    return "f32";
  case ExportFormat::BF16:
    return "bf16";
  case ExportFormat::F8E4M3FN:
    return "f8E4M3FN";
  }
  llvm_unreachable("unknown export format");
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {
/// Names tensors by dotted keys. Drops the keys above the smallest tree that
/// holds all exported tensors of one argument and nothing else of the state.
class Names {
public:
  Names(const Signature &signature, ArrayRef<std::string> exported);

  std::string get(StringRef path, bool whole) const;

private:
  using Keys = SmallVector<std::string>;
  struct Root {
    Keys common; // the common prefix of its tensors
    size_t dropped = 1;
  };
  llvm::StringMap<Root> roots;
};
} // namespace

static bool startsWith(ArrayRef<std::string> keys,
                       ArrayRef<std::string> prefix) {
  return keys.size() >= prefix.size() &&
         keys.take_front(prefix.size()) == prefix;
}

Names::Names(const Signature &signature, ArrayRef<std::string> exported) {
  llvm::StringSet<> chosen;
  for (const std::string &path : exported) {
    chosen.insert(path);
    Keys keys = splitTreePath(path);
    auto [root, isNew] = roots.try_emplace(keys.front());
    Keys &common = root->second.common;
    if (isNew)
      common = keys;
    size_t same = 0;
    while (same < std::min(common.size(), keys.size()) &&
           common[same] == keys[same])
      ++same;
    common.truncate(same);
  }
  for (const SignatureArg &arg : signature.args) {
    if (chosen.contains(arg.path) || arg.role == ArgRole::Batch)
      continue;
    Keys keys = splitTreePath(arg.path);
    auto root = roots.find(keys.front());
    if (root == roots.end())
      continue;
    ArrayRef<std::string> common = root->second.common;
    size_t &dropped = root->second.dropped;
    while (dropped < common.size() &&
           startsWith(keys, common.take_front(dropped)))
      ++dropped;
  }
}

std::string Names::get(StringRef path, bool whole) const {
  Keys keys = splitTreePath(path);
  auto root = roots.find(keys.front());
  size_t dropped = whole || root == roots.end()
                       ? 0
                       : std::min(root->second.dropped, keys.size() - 1);
  std::vector<fp8binding::PathKey> tokens = fp8binding::tokenizePath(path);
  SmallVector<StringRef> parts;
  for (const fp8binding::PathKey &key : ArrayRef(tokens).drop_front(dropped))
    parts.push_back(key.name);
  return llvm::join(parts, ".");
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

namespace {
/// The properties of a parameter that follow from the forward dots that read
/// it.
struct Use {
  SmallVector<int64_t> contracted;
  unsigned readers = 0;
  /// Why it is no weight of a linear layer; empty if it is one.
  std::string why = "no linear layer reads it";
};
} // namespace

static llvm::StringMap<Use> findUses(func::FuncOp step) {
  llvm::StringMap<Use> uses;
  LinearLayers layers(step);
  auto whyNot = [](const DotInfo &dot, const Use &use) -> std::string {
    if (dot.role == DotRole::Embedding)
      return "an embedding";
    if (dot.head)
      return "the head";
    if (dot.contractedOfParameter.empty())
      return "a dot reads something made of it";
    if (use.readers > 0 && use.contracted != dot.contractedOfParameter)
      return "dots contract different dimensions of it";
    return "";
  };
  for (const DotInfo &dot : layers.getDots()) {
    if (dot.layer.empty() || dot.recomputed ||
        (dot.role != DotRole::Forward && dot.role != DotRole::Embedding))
      continue;
    Use &use = uses[dot.layer];
    if (use.readers == 0)
      use.why.clear();
    if (use.why.empty())
      use.why = whyNot(dot, use);
    use.contracted.assign(dot.contractedOfParameter.begin(),
                          dot.contractedOfParameter.end());
    ++use.readers;
  }
  return uses;
}

/// Returns how a weight is exported.
static ExportedTensor makeTensor(const SignatureArg &arg, ExportFormat format,
                                 const Use &use) {
  auto type = cast<RankedTensorType>(arg.type);
  Builder builder(type.getContext());
  ExportedTensor tensor;
  tensor.source = arg.path;
  tensor.type = type;
  if (format == ExportFormat::F32) {
    tensor.stored = type.clone(builder.getF32Type());
  } else if (format == ExportFormat::F8E4M3FN && use.why.empty()) {
    tensor.stored = type.clone(builder.getType<Float8E4M3FNType>());
    tensor.contracted = use.contracted;
    tensor.why = "the weight of a linear layer";
  } else {
    tensor.stored = type.clone(builder.getBF16Type());
    if (format == ExportFormat::F8E4M3FN)
      tensor.why = use.why;
  }
  return tensor;
}

/// Names the tensors, by their last keys if these tell them apart, and else by
/// their whole paths. Returns one whose name another has, too; null if there is
/// none.
static const ExportedTensor *nameTensors(std::vector<ExportedTensor> &tensors,
                                         const Signature &signature) {
  SmallVector<std::string> paths;
  for (const ExportedTensor &tensor : tensors)
    paths.push_back(tensor.source);
  Names names(signature, paths);
  auto findTwice = [&](bool whole) -> const ExportedTensor * {
    llvm::StringSet<> taken;
    for (ExportedTensor &tensor : tensors) {
      tensor.name = names.get(tensor.source, whole);
      if (!taken.insert(tensor.name).second ||
          (tensor.isScaled() && !taken.insert(tensor.scaleName()).second))
        return &tensor;
    }
    return nullptr;
  };
  return findTwice(/*whole=*/false) ? findTwice(/*whole=*/true) : nullptr;
}

FailureOr<ExportPlan> ExportPlan::make(func::FuncOp step, ExportFormat format) {
  FailureOr<Signature> signature = Signature::fromAttributes(step);
  if (failed(signature))
    return failure();
  ExportPlan plan;
  plan.format = format;
  llvm::StringMap<Use> uses = findUses(step);
  for (auto &use : uses)
    plan.readers[use.getKey()] = use.getValue().readers;
  for (const SignatureArg &arg : signature->args) {
    Type element = getElementTypeOrSelf(arg.type);
    bool isParameter =
        arg.role == ArgRole::State && arg.kind == StateKind::Parameter;
    if (!isa<Float32Type, BFloat16Type, Float16Type>(element)) {
      if (isParameter)
        return emitError(step.getArgument(arg.index).getLoc())
               << "cannot export the parameter '" << arg.path
               << "': expected f32, bf16 or f16 but got " << element;
      continue;
    }
    if (isParameter || arg.role == ArgRole::Frozen)
      plan.tensors.push_back(makeTensor(arg, format, uses.lookup(arg.path)));
  }
  if (plan.tensors.empty())
    return emitError(step.getLoc())
           << "expected parameters to export but the step has none";
  if (const ExportedTensor *twice = nameTensors(plan.tensors, *signature))
    return emitError(step.getLoc())
           << "cannot export '" << twice->source
           << "': another tensor is called '" << twice->name << "' or '"
           << twice->scaleName() << "', too";
  return plan;
}

//===----------------------------------------------------------------------===//
// Factors of gated units
//===----------------------------------------------------------------------===//

const ExportedTensor *ExportPlan::find(StringRef source) const {
  auto it = llvm::find_if(tensors, [&](const ExportedTensor &tensor) {
    return tensor.source == source;
  });
  return it == tensors.end() ? nullptr : &*it;
}

/// Returns the row-major index of the first channel along the dimensions
/// `dims`.
static int64_t flatStart(const ParameterChannels &channels,
                         ArrayRef<int64_t> shape) {
  int64_t index = 0;
  for (int64_t dim : channels.dims)
    index = index * shape[dim] + channels.start[dim];
  return index;
}

static int64_t productOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    product *= shape[dim];
  return product;
}

/// Returns true if a factor for `count` channels in every layer lies within a
/// parameter of this shape.
static bool fits(const ParameterChannels &channels, int64_t count,
                 RankedTensorType state, ArrayRef<int64_t> shape) {
  int64_t last = flatStart(channels, shape) + (count - 1) * channels.stride;
  return last < productOf(shape, channels.dims) &&
         state.getNumElements() == count * productOf(shape, channels.layers);
}

/// Returns why the factors of a unit cannot be folded into its weights; empty
/// if they can.
std::string ExportPlan::getObstacle(const GatedUnitVerdict &unit,
                                    RankedTensorType state) const {
  if (!unit.reason.empty())
    return unit.reason;
  if (unit.granularity != "channel")
    return "its factors are those of tokens";
  if (unit.scaling != "delayed" || !state)
    return "its factors are those of each batch: only delayed ones are state";
  SmallVector<const ParameterChannels *> parts{&*unit.linear, &*unit.down};
  if (unit.linearBias)
    parts.push_back(&*unit.linearBias);
  for (const ParameterChannels *part : parts) {
    const ExportedTensor *tensor = find(part->path);
    if (!tensor)
      return "'" + part->path + "' is not exported";
    if (!fits(*part, unit.channels, state, tensor->type.getShape()))
      return "the factors do not lie along '" + part->path + "'";
  }
  // A fused projection may consist of two dots, on two parts of one parameter.
  if (readers.lookup(unit.down->path) > 1 ||
      readers.lookup(unit.linear->path) >
          (unit.gate->path == unit.linear->path ? 2 : 1))
    return "its weights are read more than once";
  return "";
}

LogicalResult ExportPlan::fold(func::FuncOp step,
                               ArrayRef<GatedUnitVerdict> units) {
  FailureOr<Signature> signature = Signature::fromAttributes(step);
  if (failed(signature))
    return failure();
  for (const GatedUnitVerdict &unit : units) {
    const SignatureArg *arg = signature->findArg(unit.state);
    auto state =
        arg ? dyn_cast<RankedTensorType>(arg->type) : RankedTensorType();
    std::string why = getObstacle(unit, state);
    if (!why.empty()) {
      unfolded.emplace_back(unit.layer, why);
      continue;
    }
    auto add = [&](const ParameterChannels &channels, bool inverse) {
      folds[channels.path].push_back({unit.layer, unit.state, state, channels,
                                      unit.channels, inverse,
                                      unit.scale == "pow2"});
    };
    add(*unit.linear, /*inverse=*/true);
    if (unit.linearBias)
      add(*unit.linearBias, /*inverse=*/true);
    add(*unit.down, /*inverse=*/false);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {
/// Builds a function to which arguments and results with paths are added.
class FunctionBuilder {
public:
  FunctionBuilder(MLIRContext *context, StringRef name)
      : builder(context), loc(NameLoc::get(builder.getStringAttr(name))) {
    context->loadDialect<func::FuncDialect, stablehlo::StablehloDialect,
                         FP8Dialect>();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToStart(module->getBody());
    function = func::FuncOp::create(builder, loc, "main",
                                    builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
  }

  /// Returns the argument with this path; adds it if there is none.
  Value getArgument(StringRef path, Type type) {
    auto [known, isNew] = arguments.try_emplace(path);
    if (!isNew)
      return known->second;
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(
        index, type,
        attributes({{FP8Dialect::kPathAttrName, path},
                    {FP8Dialect::kRoleAttrName, "constant"}}),
        loc);
    return known->second = function.getArgument(index);
  }
  void addResult(StringRef path, Value value, StringRef kind = "output") {
    (void)function.insertResult(
        results.size(), value.getType(),
        attributes({{FP8Dialect::kPathAttrName, path},
                    {FP8Dialect::kKindAttrName, kind}}));
    results.push_back(value);
  }
  OwningOpRef<ModuleOp> endFunction() {
    func::ReturnOp::create(builder, loc, results);
    return std::move(module);
  }

  Value convert(Value value, Type element) {
    RankedTensorType type = tensorOf(value);
    if (type.getElementType() == element)
      return value;
    return stablehlo::ConvertOp::create(builder, loc, type.clone(element),
                                        value);
  }
  Value toF32(Value value) { return convert(value, builder.getF32Type()); }
  Value constant(RankedTensorType type, double value) {
    Attribute element =
        isa<FloatType>(type.getElementType())
            ? Attribute(builder.getFloatAttr(type.getElementType(), value))
            : Attribute(builder.getIntegerAttr(type.getElementType(),
                                               static_cast<int64_t>(value)));
    return stablehlo::makeSplat(builder, loc, type, element);
  }
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return stablehlo::ReshapeOp::create(builder, loc,
                                        tensorOf(value).clone(shape), value);
  }
  Value rescale(Value value, Value factor, ArrayRef<int64_t> dims) {
    return RescaleOp::create(builder, loc, value.getType(), value, factor,
                             builder.getDenseI64ArrayAttr(dims));
  }

  /// Returns payload and scale of type `type`.
  std::pair<Value, Value> quantize(Value value, ScaledType type) {
    Value amax = AmaxOp::create(builder, loc, value, type);
    auto scale = ComputeScaleOp::create(builder, loc, amax, ScaleRule::Exact,
                                        type.getElementType());
    Value scaled = QuantizeOp::create(builder, loc, type, value,
                                      scale.getScale(), scale.getQuantizer());
    auto parts = UnpackOp::create(builder, loc, type.getPayloadType(),
                                  type.getScaleTensorType(), scaled);
    return {parts.getPayload(), parts.getScale()};
  }
  Value dequantize(Value payload, Value scale, ScaledType type) {
    Value scaled = PackOp::create(builder, loc, type, payload, scale);
    return DequantizeOp::create(
        builder, loc,
        RankedTensorType::get(type.getShape(), builder.getF32Type()), scaled);
  }

  /// Returns the number of elements that differ, as i32.
  Value countDifferences(Value a, Value b) {
    Value differ = stablehlo::CompareOp::create(
        builder, loc, a, b, stablehlo::ComparisonDirection::NE);
    Value ones = convert(differ, builder.getI32Type());
    auto scalar = RankedTensorType::get({}, builder.getI32Type());
    auto dims = llvm::to_vector(llvm::seq<int64_t>(tensorOf(a).getRank()));
    return makeReduction<stablehlo::AddOp>(builder, loc, ones,
                                           constant(scalar, 0), dims);
  }

  OpBuilder builder;
  Location loc;

private:
  DictionaryAttr attributes(ArrayRef<std::pair<StringRef, StringRef>> texts) {
    return builder.getDictionaryAttr(
        llvm::map_to_vector(texts, [&](auto &pair) {
          return builder.getNamedAttr(pair.first,
                                      builder.getStringAttr(pair.second));
        }));
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  llvm::StringMap<Value> arguments;
  SmallVector<Value> results;
};
} // namespace

/// Returns a scaled type with one scale for all elements that a dot sums up.
static ScaledType getScaledType(const ExportedTensor &tensor) {
  SmallVector<int64_t> tile(tensor.stored.getRank(), 1);
  for (int64_t dim : tensor.contracted)
    tile[dim] = ScaledType::kWhole;
  return ScaledType::get(tensor.stored, tile,
                         Float32Type::get(tensor.stored.getContext()));
}

/// Spreads `factor` (layers, channels) along the dimensions of a parameter of
/// this shape, with 1 for elements without a channel. Returns it with these
/// dimensions.
static std::pair<Value, SmallVector<int64_t>>
spread(FunctionBuilder &f, Value factor, const ParameterChannels &channels,
       int64_t count, ArrayRef<int64_t> shape) {
  OpBuilder &b = f.builder;
  SmallVector<int64_t> layers = llvm::map_to_vector(
      channels.layers, [&](int64_t dim) { return shape[dim]; });
  int64_t extent = productOf(shape, channels.dims);
  int64_t start = flatStart(channels, shape);
  SmallVector<int64_t> low(layers.size() + 1, 0), high(low), interior(low);
  low.back() = start;
  interior.back() = channels.stride - 1;
  high.back() = extent - start - ((count - 1) * channels.stride + 1);

  SmallVector<int64_t> flat(layers);
  flat.push_back(count);
  factor = f.reshape(factor, flat);
  flat.back() = extent;
  Type element = tensorOf(factor).getElementType();
  factor = stablehlo::PadOp::create(
      b, f.loc, RankedTensorType::get(flat, element), factor,
      f.constant(RankedTensorType::get({}, element), 1),
      b.getDenseI64ArrayAttr(low), b.getDenseI64ArrayAttr(high),
      b.getDenseI64ArrayAttr(interior));
  SmallVector<int64_t> dims(channels.layers), whole(layers);
  for (int64_t dim : channels.dims) {
    dims.push_back(dim);
    whole.push_back(shape[dim]);
  }
  return {f.reshape(factor, whole), dims};
}

OwningOpRef<ModuleOp> ExportPlan::buildEncode(MLIRContext *context) const {
  FunctionBuilder f(context, "export");
  OpBuilder &b = f.builder;
  // Returns s, or 1/s as the state holds it, where 0 stands for 1.
  auto factorOf = [&](const Fold &fold, bool inverse) {
    Value state = f.getArgument(fold.state, fold.stateType);
    Value one = f.constant(fold.stateType, 1);
    Value unset = stablehlo::CompareOp::create(
        b, f.loc, state, f.constant(fold.stateType, 0),
        stablehlo::ComparisonDirection::EQ);
    Value quantizer = stablehlo::SelectOp::create(b, f.loc, unset, one, state);
    return inverse
               ? quantizer
               : stablehlo::DivOp::create(b, f.loc, one, quantizer).getResult();
  };
  auto rescaled = [&](Value value, const Fold &fold, bool inverse) {
    auto [factor, dims] = spread(f, factorOf(fold, inverse), fold.channels,
                                 fold.count, tensorOf(value).getShape());
    return f.rescale(value, factor, dims);
  };
  // Returns the tensor for the file, and its scale or null.
  auto encode = [&](const ExportedTensor &tensor,
                    Value value) -> std::pair<Value, Value> {
    if (tensor.isScaled())
      return f.quantize(f.toF32(value), getScaledType(tensor));
    return {f.convert(value, tensor.stored.getElementType()), nullptr};
  };
  for (const ExportedTensor &tensor : tensors) {
    Value value = f.getArgument(tensor.source, tensor.type);
    auto found = folds.find(tensor.source);
    auto [plain, plainScale] = encode(tensor, value);
    if (found == folds.end()) {
      f.addResult(tensor.name, plain);
      if (plainScale)
        f.addResult(tensor.scaleName(), plainScale);
      continue;
    }
    value = f.toF32(value);
    for (const Fold &fold : found->second)
      value = rescaled(value, fold, fold.inverse);
    auto [folded, scale] = encode(tensor, value);
    f.addResult(tensor.name, folded);
    if (scale)
      f.addResult(tensor.scaleName(), scale);
    // If the scale absorbs the factor, the codes stay the same. Without a
    // scale, dividing by the factor must give the original values.
    Value back = f.toF32(folded);
    if (!scale)
      for (const Fold &fold : found->second)
        back = rescaled(back, fold, !fold.inverse);
    f.addResult(tensor.name + ".changed",
                f.countDifferences(back, f.toF32(plain)), "metric");
  }
  return f.endFunction();
}

OwningOpRef<ModuleOp> ExportPlan::buildDecode(MLIRContext *context) const {
  FunctionBuilder f(context, "import");
  for (const ExportedTensor &tensor : tensors) {
    Value value = f.getArgument(tensor.name, tensor.stored);
    if (tensor.isScaled()) {
      ScaledType type = getScaledType(tensor);
      value = f.dequantize(
          value, f.getArgument(tensor.scaleName(), type.getScaleTensorType()),
          type);
    }
    f.addResult(tensor.source, f.convert(value, tensor.type.getElementType()));
  }
  return f.endFunction();
}

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

static std::string elementText(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream(text) << type.getElementType();
  return text;
}

std::string ExportPlan::manifest() const {
  llvm::json::Array list;
  for (const ExportedTensor &tensor : tensors) {
    llvm::json::Object entry{
        {"name", tensor.name},
        {"source", tensor.source},
        {"dtype", elementText(tensor.stored)},
        {"shape", llvm::json::Array(tensor.type.getShape())},
        {"source_dtype", elementText(tensor.type)}};
    if (tensor.isScaled()) {
      entry["scale"] = tensor.scaleName();
      entry["scale_spans"] = llvm::json::Array(tensor.contracted);
    }
    if (!tensor.why.empty())
      entry["why"] = tensor.why;
    if (auto found = folds.find(tensor.source); found != folds.end()) {
      llvm::json::Array factors;
      for (const Fold &fold : found->second)
        factors.push_back(llvm::json::Object{
            {"factor", fold.inverse ? "1/s" : "s"},
            {"gated_unit", fold.unit},
            {"state", fold.state},
            {"channels", fold.count},
            {"dims", llvm::json::Array(fold.channels.dims)},
            {"start", llvm::json::Array(fold.channels.start)},
            {"stride", fold.channels.stride},
            {"layers", llvm::json::Array(fold.channels.layers)},
            {"powers_of_two", fold.exact}});
      entry["folded"] = std::move(factors);
    }
    list.push_back(std::move(entry));
  }
  llvm::json::Object manifest{{"format", stringifyExportFormat(format)},
                              {"tensors", std::move(list)}};
  if (!unfolded.empty()) {
    llvm::json::Array units;
    for (const auto &[layer, why] : unfolded)
      units.push_back(llvm::json::Object{{"gated_unit", layer}, {"why", why}});
    manifest["not_folded"] = std::move(units);
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(std::move(manifest));
  return text;
}
