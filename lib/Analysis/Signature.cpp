//===- Signature.cpp - Reading and writing of signatures ------------------===//

#include "fp8/Analysis/Signature.h"
#include "fp8/Support/FunctionAttributes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the text of an attribute of an argument, or "".
static StringRef argAttributeOf(Value value, StringRef name) {
  auto arg = dyn_cast<BlockArgument>(value);
  if (!arg || !arg.getOwner()->isEntryBlock())
    return "";
  auto func =
      dyn_cast_if_present<FunctionOpInterface>(arg.getOwner()->getParentOp());
  auto text = func ? func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name)
                   : StringAttr();
  return text ? text.getValue() : "";
}

std::optional<ArgRole> fp8::argRoleOf(Value value) {
  return symbolizeArgRole(argAttributeOf(value, FP8Dialect::kRoleAttrName));
}

std::optional<StateKind> fp8::stateKindOf(Value value) {
  return symbolizeStateKind(argAttributeOf(value, FP8Dialect::kKindAttrName));
}

BlockArgument fp8::findArgument(func::FuncOp func, StringRef path) {
  for (BlockArgument arg : func.getArguments()) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                  FP8Dialect::kPathAttrName);
    if (name && name.getValue() == path)
      return arg;
  }
  return {};
}

llvm::StringMap<BlockArgument> fp8::argumentsByPath(func::FuncOp func) {
  llvm::StringMap<BlockArgument> arguments;
  for (BlockArgument arg : func.getArguments())
    if (auto path = func.getArgAttrOfType<StringAttr>(
            arg.getArgNumber(), FP8Dialect::kPathAttrName))
      arguments.try_emplace(path.getValue(), arg);
  return arguments;
}

DenseMap<StringAttr, unsigned> fp8::resultsByState(func::FuncOp func) {
  DenseMap<StringAttr, unsigned> results;
  for (unsigned i : llvm::seq(func.getNumResults()))
    if (auto path =
            func.getResultAttrOfType<StringAttr>(i, FP8Dialect::kStateAttrName))
      results.try_emplace(path, i);
  return results;
}

static InFlightDiagnostic emitMissing(func::FuncOp func, StringRef what,
                                      unsigned index, StringRef name) {
  return emitError(func.getLoc())
         << "expected " << what << " " << index << " of '" << func.getName()
         << "' to have the attribute '" << name
         << "'; run fp8-analyze-signature first";
}

/// Reads an attribute of an argument or result, a word of an enum. `place`
/// names the argument or result in errors, `words` the enum's words.
template <typename EnumT>
static FailureOr<EnumT> readEnum(func::FuncOp func, StringRef name,
                                 StringAttr attribute, StringRef place,
                                 unsigned index, StringRef words) {
  if (!attribute)
    return emitMissing(func, place, index, name);
  if (std::optional<EnumT> value = symbolizeEnum<EnumT>(attribute.getValue()))
    return *value;
  return emitError(func.getLoc())
         << "expected '" << name << "' of " << place << " " << index
         << " to be " << words << " but got '" << attribute.getValue() << "'";
}

/// Reads the role of an argument, and the kind of one that is state.
static LogicalResult readRole(func::FuncOp func, SignatureArg &arg) {
  FailureOr<ArgRole> role = readEnum<ArgRole>(
      func, FP8Dialect::kRoleAttrName,
      func.getArgAttrOfType<StringAttr>(arg.index, FP8Dialect::kRoleAttrName),
      "argument", arg.index, "state, frozen, batch, key or constant");
  if (failed(role))
    return failure();
  arg.role = *role;
  if (arg.role != ArgRole::State)
    return success();
  FailureOr<StateKind> kind = readEnum<StateKind>(
      func, FP8Dialect::kKindAttrName,
      func.getArgAttrOfType<StringAttr>(arg.index, FP8Dialect::kKindAttrName),
      "state argument", arg.index,
      "parameter, moment1, moment2, gradient, average, step or other");
  if (failed(kind))
    return failure();
  arg.kind = *kind;
  if (auto parameter = func.getArgAttrOfType<StringAttr>(
          arg.index, FP8Dialect::kParameterAttrName))
    arg.parameter = parameter.str();
  return success();
}

static FailureOr<SignatureArg> readArgument(func::FuncOp func, unsigned index) {
  SignatureArg arg;
  arg.index = index;
  arg.type = func.getFunctionType().getInput(index);
  auto path =
      func.getArgAttrOfType<StringAttr>(index, FP8Dialect::kPathAttrName);
  if (!path)
    return emitMissing(func, "argument", index, FP8Dialect::kPathAttrName);
  arg.path = path.str();
  if (failed(readRole(func, arg)))
    return failure();
  if (auto size = func.getArgAttrOfType<IntegerAttr>(
          index, FP8Dialect::kVocabularyAttrName))
    arg.vocabulary = size.getInt();
  arg.labels = func.getArgAttr(index, FP8Dialect::kLabelsAttrName) != nullptr;
  arg.zeroInit =
      func.getArgAttr(index, FP8Dialect::kZeroInitAttrName) != nullptr;
  return arg;
}

static FailureOr<SignatureResult> readResult(func::FuncOp func,
                                             unsigned index) {
  SignatureResult result;
  result.index = index;
  result.type = func.getFunctionType().getResult(index);
  auto path =
      func.getResultAttrOfType<StringAttr>(index, FP8Dialect::kPathAttrName);
  if (!path)
    return emitMissing(func, "result", index, FP8Dialect::kPathAttrName);
  result.path = path.str();
  if (auto state = func.getResultAttrOfType<StringAttr>(
          index, FP8Dialect::kStateAttrName)) {
    result.statePath = state.str();
    result.kind = ResultKind::State;
    return result;
  }
  FailureOr<ResultKind> kind = readEnum<ResultKind>(
      func, FP8Dialect::kKindAttrName,
      func.getResultAttrOfType<StringAttr>(index, FP8Dialect::kKindAttrName),
      "result", index, "loss, metric or output");
  if (failed(kind))
    return failure();
  if (*kind == ResultKind::State)
    return emitMissing(func, "state result", index, FP8Dialect::kStateAttrName);
  result.kind = *kind;
  result.trains =
      func.getResultAttr(index, FP8Dialect::kTrainsAttrName) != nullptr;
  return result;
}

FailureOr<Signature> Signature::fromAttributes(func::FuncOp func) {
  Signature signature;
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i) {
    FailureOr<SignatureArg> arg = readArgument(func, i);
    if (failed(arg))
      return failure();
    signature.args.push_back(std::move(*arg));
  }
  for (unsigned i = 0, e = func.getNumResults(); i < e; ++i) {
    FailureOr<SignatureResult> result = readResult(func, i);
    if (failed(result))
      return failure();
    signature.results.push_back(std::move(*result));
  }
  return signature;
}

/// Sets an attribute, or removes it if `value` is null.
static void setOrRemove(NamedAttrList &attributes, StringRef name,
                        Attribute value) {
  if (value)
    attributes.set(name, value);
  else
    attributes.erase(name);
}

static void setAttributes(const SignatureArg &arg, Builder &builder,
                          NamedAttrList &attributes) {
  auto text = [&](bool present, StringRef value) {
    return present ? builder.getStringAttr(value) : StringAttr();
  };
  bool isState = arg.role == ArgRole::State;
  attributes.erase("tf.aliasing_output");
  attributes.erase("jax.buffer_donor");
  attributes.set(FP8Dialect::kPathAttrName, builder.getStringAttr(arg.path));
  attributes.set(FP8Dialect::kRoleAttrName,
                 builder.getStringAttr(stringifyEnum(arg.role)));
  setOrRemove(attributes, FP8Dialect::kKindAttrName,
              text(isState, stringifyEnum(arg.kind)));
  setOrRemove(attributes, FP8Dialect::kParameterAttrName,
              text(isState && !arg.parameter.empty(), arg.parameter));
  setOrRemove(attributes, FP8Dialect::kVocabularyAttrName,
              arg.vocabulary ? builder.getI64IntegerAttr(*arg.vocabulary)
                             : IntegerAttr());
  setOrRemove(attributes, FP8Dialect::kLabelsAttrName,
              arg.labels ? builder.getUnitAttr() : UnitAttr());
}

static void setAttributes(const SignatureResult &result, Builder &builder,
                          NamedAttrList &attributes) {
  bool isState = result.kind == ResultKind::State;
  attributes.erase("jax.result_info");
  attributes.set(FP8Dialect::kPathAttrName, builder.getStringAttr(result.path));
  setOrRemove(attributes, FP8Dialect::kTrainsAttrName,
              result.trains ? builder.getUnitAttr() : UnitAttr());
  setOrRemove(attributes, FP8Dialect::kStateAttrName,
              isState ? builder.getStringAttr(result.statePath) : StringAttr());
  setOrRemove(attributes, FP8Dialect::kKindAttrName,
              isState ? StringAttr()
                      : builder.getStringAttr(stringifyEnum(result.kind)));
}

void Signature::toAttributes(func::FuncOp func) const {
  Builder builder(func.getContext());
  // (A signature has each argument and each result once, in order.)
  updateArgAttrs(func, [&](unsigned index, NamedAttrList &attributes) {
    setAttributes(args[index], builder, attributes);
  });
  updateResultAttrs(func, [&](unsigned index, NamedAttrList &attributes) {
    setAttributes(results[index], builder, attributes);
  });
}

const SignatureArg *Signature::findArg(StringRef path) const {
  auto *it = llvm::find_if(
      args, [&](const SignatureArg &arg) { return arg.path == path; });
  return it == args.end() ? nullptr : it;
}

const SignatureResult *Signature::findResult(StringRef path) const {
  auto *it = llvm::find_if(
      results, [&](const SignatureResult &r) { return r.path == path; });
  return it == results.end() ? nullptr : it;
}

const SignatureResult *Signature::findStateResult(StringRef argPath) const {
  auto *it = llvm::find_if(results, [&](const SignatureResult &r) {
    return r.kind == ResultKind::State && r.statePath == argPath;
  });
  return it == results.end() ? nullptr : it;
}

const SignatureResult *Signature::findLoss() const {
  auto *it = llvm::find_if(results, [](const SignatureResult &r) {
    return r.kind == ResultKind::Loss;
  });
  return it == results.end() ? nullptr : it;
}

SmallVector<std::string> fp8::findUnchangedState(func::FuncOp func) {
  SmallVector<std::string> paths;
  Operation *end = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    auto arg = dyn_cast<BlockArgument>(value);
    auto path =
        func.getResultAttrOfType<StringAttr>(i, FP8Dialect::kStateAttrName);
    if (arg && path &&
        func.getArgAttr(arg.getArgNumber(), FP8Dialect::kPathAttrName) == path)
      paths.push_back(path.str());
  }
  return paths;
}

bool Signature::isStep() const {
  return llvm::any_of(
      args, [](const SignatureArg &arg) { return arg.role == ArgRole::State; });
}

void fp8::printSignatureJSON(const Signature &signature, raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  auto orNull = [](StringRef text) -> llvm::json::Value {
    return text.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(text);
  };
  auto typeOf = [](Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  };
  json.object([&] {
    json.attributeArray("arguments", [&] {
      for (const SignatureArg &arg : signature.args)
        json.object([&] {
          const SignatureResult *next = signature.findStateResult(arg.path);
          json.attribute("path", arg.path);
          json.attribute("type", typeOf(arg.type));
          json.attribute("role", stringifyEnum(arg.role));
          json.attribute("kind",
                         arg.role == ArgRole::State
                             ? llvm::json::Value(stringifyEnum(arg.kind))
                             : llvm::json::Value(nullptr));
          json.attribute("result", orNull(next ? next->path : ""));
        });
    });
    json.attributeArray("results", [&] {
      for (const SignatureResult &result : signature.results)
        json.object([&] {
          json.attribute("path", result.path);
          json.attribute("type", typeOf(result.type));
          json.attribute("kind", stringifyEnum(result.kind));
          json.attribute("state", orNull(result.statePath));
        });
    });
  });
  os << "\n";
}

void fp8::printSignature(const Signature &signature, raw_ostream &os) {
  struct Row {
    std::string path, type, role, why;
  };
  auto text = [](Type type) {
    std::string out;
    llvm::raw_string_ostream stream(out);
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      stream << tensor.getElementType() << "[";
      llvm::interleave(tensor.getShape(), stream, ",");
      stream << "]";
    } else {
      stream << type;
    }
    return out;
  };
  auto print = [&](StringRef title, ArrayRef<Row> rows) {
    size_t path = 0, type = 0, role = 0;
    for (const Row &row : rows) {
      path = std::max(path, row.path.size());
      type = std::max(type, row.type.size());
      role = std::max(role, row.role.size());
    }
    os << title << "\n";
    for (const Row &row : rows) {
      os << "  " << row.path;
      os.indent(path - row.path.size() + 2) << row.type;
      os.indent(type - row.type.size() + 2) << row.role;
      if (!row.why.empty())
        os.indent(role - row.role.size() + 2) << row.why;
      os << "\n";
    }
  };
  SmallVector<Row> rows;
  for (const SignatureArg &arg : signature.args) {
    std::string role = stringifyEnum(arg.role).str();
    if (arg.role == ArgRole::State)
      role += (" " + stringifyEnum(arg.kind)).str();
    std::string why = arg.why;
    if (arg.vocabulary)
      why += llvm::formatv("{0}values are below {1}: it indexes a table of "
                           "that many rows",
                           why.empty() ? "" : "; ", *arg.vocabulary)
                 .str();
    rows.push_back({arg.path, text(arg.type), role, why});
  }
  print("arguments:", rows);
  rows.clear();
  for (const SignatureResult &result : signature.results) {
    std::string kind = stringifyEnum(result.kind).str();
    if (result.kind == ResultKind::State)
      kind += " " + result.statePath;
    rows.push_back({result.path, text(result.type), kind, result.why});
  }
  print("results:", rows);
}
