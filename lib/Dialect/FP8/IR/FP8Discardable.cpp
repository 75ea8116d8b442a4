//===- FP8Discardable.cpp - Discardable attributes of the fp8 dialect -----===//
//
// Checks the attributes of the fp8 dialect on functions, arguments, results and
// ops of other dialects: where each attribute is allowed, and its values.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Where an attribute may be. A module holds symbols (a module of a GPU, too);
/// a function may be a kernel or a schedule; OnOp is all other ops.
enum Place : unsigned {
  OnModule = 1,
  OnFunction = 2,
  OnLoop = 4,
  OnOtherOp = 8,
  OnOp = OnLoop | OnOtherOp,
  OnArgument = 16,
  OnResult = 32
};

/// The values that an attribute accepts; `text` describes them in errors.
struct Kind {
  bool (*accepts)(Attribute);
  StringLiteral text;
};

template <typename AttrTy> bool isA(Attribute attr) {
  return isa<AttrTy>(attr);
}

template <int64_t least> bool isInteger(Attribute attr) {
  auto integer = dyn_cast<IntegerAttr>(attr);
  return integer && integer.getInt() >= least;
}

template <typename EnumT> bool isWordOf(Attribute attr) {
  auto text = dyn_cast<StringAttr>(attr);
  return text && symbolizeEnum<EnumT>(text.getValue());
}

/// Whether an attribute is an array of what `accepts` accepts.
template <bool accepts(Attribute)> bool isArrayOf(Attribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr);
  return array && llvm::all_of(array, accepts);
}

template <int64_t value> bool isNumber(Attribute attr) {
  auto integer = dyn_cast<IntegerAttr>(attr);
  return integer && integer.getInt() == value;
}

bool isEntry(Attribute attr) {
  auto text = dyn_cast<StringAttr>(attr);
  return text && (text.getValue() == "store" || text.getValue() == "load");
}

bool isRows(Attribute attr) {
  auto text = dyn_cast<StringAttr>(attr);
  return text &&
         llvm::is_contained({"none", "free", "contracted"}, text.getValue());
}

bool isGraph(Attribute attr) {
  auto fields = dyn_cast<DictionaryAttr>(attr);
  return fields && fields.size() == 3 &&
         llvm::all_of(ArrayRef<StringRef>{"edges", "nodes", "path"},
                      [&](StringRef name) {
                        Attribute count = fields.get(name);
                        return count && isInteger<0>(count);
                      });
}

bool isTarget(Attribute attr) {
  return isa<CPUTargetAttr, GPUTargetAttr>(attr);
}

constexpr Kind kFlag = {isA<UnitAttr>, "no value"};
constexpr Kind kText = {isA<StringAttr>, "a string"};
constexpr Kind kCount = {isInteger<0>, "an integer that is not negative"};
constexpr Kind kDictionaries = {isArrayOf<isA<DictionaryAttr>>,
                                "an array of dictionaries"};
constexpr Kind kPositive = {isInteger<1>, "a positive integer"};

struct Declaration {
  StringLiteral name;
  unsigned places;
  Kind kind;
};

/// Every discardable attribute of the dialect. One that means something else on
/// results has a declaration of its own for them.
constexpr Declaration kDeclarations[] = {
    // The signature of a step.
    {FP8Dialect::kPathAttrName, OnArgument | OnResult, kText},
    {FP8Dialect::kRoleAttrName,
     OnArgument,
     {isWordOf<ArgRole>, "state, frozen, batch, key or constant"}},
    {FP8Dialect::kKindAttrName,
     OnArgument,
     {isWordOf<StateKind>,
      "parameter, moment1, moment2, gradient, average, step or other"}},
    {FP8Dialect::kKindAttrName,
     OnResult,
     {isWordOf<ResultKind>, "state, loss, metric, output or one of trace_*"}},
    {FP8Dialect::kStateAttrName, OnArgument | OnResult, kText},
    {FP8Dialect::kVocabularyAttrName, OnArgument, kPositive},
    {FP8Dialect::kLabelsAttrName, OnArgument, kFlag},
    {FP8Dialect::kParameterAttrName, OnArgument, kText},
    {FP8Dialect::kTrainsAttrName, OnArgument | OnResult, kFlag},
    {FP8Dialect::kZeroInitAttrName, OnArgument, kFlag},
    {FP8Dialect::kOutputAttrName, OnArgument, kFlag},
    {FP8Dialect::kEntryAttrName,
     OnFunction,
     {isEntry, "\"store\" or \"load\""}},
    // The fp8 stage.
    {FP8Dialect::kRecomputedAttrName, OnOp, kFlag},
    {FP8Dialect::kTensorsAttrName,
     OnOp,
     {isA<DotTensorsAttr>, "a #fp8.dot_tensors"}},
    {FP8Dialect::kTensorAttrName, OnOp, kText},
    {FP8Dialect::kGatedUnitsAttrName, OnFunction, kDictionaries},
    {FP8Dialect::kRecipeAttrName, OnModule, {isA<RecipeAttr>, "a #fp8.recipe"}},
    {FP8Dialect::kDataParallelAttrName, OnModule, kFlag},
    {FP8Dialect::kZeroAttrName, OnModule, {isNumber<1>, "1"}},
    {FP8Dialect::kRowsAttrName,
     OnOp,
     {isArrayOf<isRows>, "an array of \"none\", \"free\" and \"contracted\""}},
    {FP8Dialect::kWireReasonAttrName, OnOp, kText},
    {FP8Dialect::kShardAttrName, OnOp | OnArgument, kPositive},
    {FP8Dialect::kSlicesAttrName, OnFunction | OnArgument, kPositive},
    {FP8Dialect::kWholeReasonAttrName, OnArgument, kText},
    {FP8Dialect::kVerdictAttrName, OnOp, {isA<VerdictAttr>, "a #fp8.verdict"}},
    {FP8Dialect::kStateVerdictAttrName,
     OnArgument,
     {isA<StateVerdictAttr>, "a #fp8.state_verdict"}},
    {FP8Dialect::kSoftmaxVerdictAttrName,
     OnOp,
     {isA<SoftmaxVerdictAttr>, "a #fp8.softmax_verdict"}},
    {FP8Dialect::kPromoteEveryAttrName, OnOp, kPositive},
    // Structured ops and kernels.
    {FP8Dialect::kIrregularAttrName, OnOp, kFlag},
    {FP8Dialect::kRecomputeAttrName, OnOp, kFlag},
    {FP8Dialect::kKeptAttrName, OnOp, kFlag},
    {FP8Dialect::kSweepAttrName, OnOp, kCount},
    {FP8Dialect::kTaskDimsAttrName,
     OnOp,
     {isA<DenseI64ArrayAttr>, "an array of i64"}},
    // Codegen.
    {FP8Dialect::kNumberAttrName, OnOp, kCount},
    {FP8Dialect::kTargetAttrName,
     OnModule,
     {isTarget, "a #fp8.cpu_target or a #fp8.gpu_target"}},
    {FP8Dialect::kTasksAttrName, OnFunction, kPositive},
    {FP8Dialect::kScratchBytesAttrName, OnFunction, kCount},
    {FP8Dialect::kTaskAttrName, OnFunction, kFlag},
    {FP8Dialect::kGPULaunchAttrName,
     OnFunction | OnModule,
     {isA<GPULaunchAttr>, "a #fp8.gpu_launch"}},
    {FP8Dialect::kDotChoicesAttrName, OnModule, kDictionaries},
    {FP8Dialect::kDeviceControlAttrName, OnFunction, kFlag},
    {FP8Dialect::kDeviceLoopAttrName, OnLoop, kFlag},
    {FP8Dialect::kLoopsAttrName, OnModule, kPositive},
    {FP8Dialect::kSetsAttrName, OnModule, kPositive},
    {FP8Dialect::kGraphAttrName,
     OnFunction,
     {isGraph, "the numbers of edges, nodes and path in a dictionary"}},
    {FP8Dialect::kNodeAttrName, OnOp | OnArgument, kCount},
    {FP8Dialect::kAfterAttrName,
     OnOp | OnArgument,
     {isA<DenseI64ArrayAttr>, "an array of i64"}},
};

/// Returns an attribute as text, of which messages show no more than a line:
/// the elements of a tensor may take a megabyte.
std::string textOf(Attribute attr) {
  constexpr size_t kLine = 100;
  std::string text;
  llvm::raw_string_ostream os(text);
  attr.print(os);
  if (text.size() > kLine)
    text = text.substr(0, kLine) + "...";
  return text;
}

/// Says that the dialect has no attribute of this name.
LogicalResult rejectUnknown(Operation *op, NamedAttribute attr, unsigned places,
                            StringRef placeText) {
  llvm::SetVector<StringRef> known;
  for (const Declaration &declaration : kDeclarations)
    if (declaration.places & places)
      known.insert(declaration.name);
  return op->emitOpError("expected an attribute that the fp8 dialect has on ")
         << placeText << " (" << llvm::join(known, ", ") << ") but got '"
         << attr.getName().strref() << "'";
}

/// Checks an attribute at one of `places`, which `placeText` describes.
LogicalResult verify(Operation *op, NamedAttribute attr, unsigned places,
                     StringRef placeText) {
  bool isKnown = false;
  std::string expected;
  for (const Declaration &declaration : kDeclarations) {
    if (declaration.name != attr.getName().strref())
      continue;
    isKnown = true;
    if (!(declaration.places & places))
      continue;
    if (declaration.kind.accepts(attr.getValue()))
      return success();
    expected += (expected.empty() ? "" : ", or ") + declaration.kind.text.str();
  }
  if (!isKnown)
    return rejectUnknown(op, attr, places, placeText);
  if (expected.empty())
    return op->emitOpError("expected no attribute '")
           << attr.getName().strref() << "' on " << placeText;
  return op->emitOpError("expected attribute '")
         << attr.getName().strref() << "' to be " << expected << " but got "
         << textOf(attr.getValue());
}

/// Checks the loops that an op of a kernel has for the loops of the domain.
LogicalResult verifyTaskDims(Operation *op, DenseI64ArrayAttr dims) {
  auto kernel = op->getParentOfType<KernelOp>();
  if (!kernel)
    return op->emitOpError("expected '")
           << FP8Dialect::kTaskDimsAttrName << "' inside a kernel";
  if (static_cast<size_t>(dims.size()) != kernel.getDomain().size() &&
      !dims.empty())
    return op->emitOpError("expected a loop for each of the domain's ")
           << kernel.getDomain().size() << " but got " << dims.size();
  return success();
}

} // namespace

LogicalResult FP8Dialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attr) {
  LogicalResult result = op->hasTrait<OpTrait::SymbolTable>()
                             ? verify(op, attr, OnModule, "modules")
                         : isa<FunctionOpInterface>(op)
                             ? verify(op, attr, OnFunction, "functions")
                         : isa<LoopLikeOpInterface>(op)
                             ? verify(op, attr, OnOp, "loops")
                             : verify(op, attr, OnOtherOp, "operations");
  if (failed(result))
    return failure();
  if (attr.getName() == kTaskDimsAttrName)
    return verifyTaskDims(op, cast<DenseI64ArrayAttr>(attr.getValue()));
  return success();
}

LogicalResult FP8Dialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned,
                                                   NamedAttribute attr) {
  bool isSchedule = isa<ScheduleOp>(op);
  if (attr.getName() == kOutputAttrName && !isSchedule)
    return op->emitOpError("expected no attribute '")
           << attr.getName().strref() << "' but on arguments of a schedule";
  // The results of a step are arguments of its schedule.
  unsigned places = isSchedule ? OnArgument | OnResult : OnArgument;
  return verify(op, attr, places, "arguments");
}

LogicalResult FP8Dialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                      unsigned,
                                                      NamedAttribute attr) {
  return verify(op, attr, OnResult, "results");
}
