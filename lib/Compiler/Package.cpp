//===- Package.cpp - An executable as files for the runtime ---------------===//

#include "fp8/Compiler/Package.h"
#include "ObjectCode.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Support/OutputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace mlir::fp8;
namespace fs = llvm::sys::fs;

static constexpr llvm::StringLiteral kLibrary = "package.so";

//===----------------------------------------------------------------------===//
// The table that the library exports
//===----------------------------------------------------------------------===//

namespace {

/// Builds the module with constants, the table of functions
/// (fp8_package_library), and functions that call the runtime through pointers
/// in this table. The library therefore needs no symbol of the runtime, however
/// that was loaded.
class PackageTable {
public:
  explicit PackageTable(llvm::LLVMContext &context)
      : module("package", context), builder(context),
        pointer(builder.getPtrTy()), i64(builder.getInt64Ty()) {}

  void build(const Executable &executable);

  llvm::Module module;

private:
  llvm::GlobalVariable *global(llvm::Constant *value, bool isConstant);
  llvm::Constant *string(StringRef text);
  llvm::Constant *array(ArrayRef<llvm::Constant *> values, llvm::Type *type);
  llvm::Constant *describe(const ExecutableFunction &function, bool isForGPU);
  llvm::Constant *forward(StringRef name, llvm::FunctionType *type);

  /// Returns the type of a function of the runtime. They take and return
  /// numbers of 64 bits and addresses.
  template <typename Result, typename... Parameters>
  llvm::FunctionType *typeOf(Result (*)(Parameters...)) {
    return llvm::FunctionType::get(typeOf<Result>(), {typeOf<Parameters>()...},
                                   /*isVarArg=*/false);
  }
  template <typename T> llvm::Type *typeOf() {
    if constexpr (std::is_void_v<T>)
      return builder.getVoidTy();
    else if constexpr (std::is_pointer_v<T>)
      return pointer;
    else {
      static_assert(std::is_same_v<T, int64_t>);
      return i64;
    }
  }

  llvm::IRBuilder<> builder;
  llvm::PointerType *pointer;
  llvm::IntegerType *i64;
};

} // namespace

llvm::GlobalVariable *PackageTable::global(llvm::Constant *value,
                                           bool isConstant) {
  return new llvm::GlobalVariable(module, value->getType(), isConstant,
                                  llvm::GlobalValue::PrivateLinkage, value);
}

llvm::Constant *PackageTable::string(StringRef text) {
  return global(llvm::ConstantDataArray::getString(module.getContext(), text),
                /*isConstant=*/true);
}

llvm::Constant *PackageTable::array(ArrayRef<llvm::Constant *> values,
                                    llvm::Type *type) {
  return global(llvm::ConstantArray::get(
                    llvm::ArrayType::get(type, values.size()), values),
                /*isConstant=*/true);
}

/// Returns a constant fp8_package_code.
llvm::Constant *PackageTable::describe(const ExecutableFunction &function,
                                       bool isForGPU) {
  auto *constantType = llvm::StructType::get(pointer, i64);
  SmallVector<llvm::Constant *> constants;
  for (const std::string &bytes : function.constants) {
    llvm::GlobalVariable *data =
        global(llvm::ConstantDataArray::getString(module.getContext(), bytes,
                                                  /*AddNull=*/false),
               /*isConstant=*/true);
    data->setAlignment(llvm::Align(64)); // see fp8_constant
    constants.push_back(llvm::ConstantStruct::get(
        constantType, data, builder.getInt64(bytes.size())));
  }
  llvm::FunctionCallee entry = module.getOrInsertFunction(
      function.entry,
      llvm::FunctionType::get(builder.getVoidTy(), {pointer}, false));
  // Kernels for a GPU are fp8_gpu_kernel structures, which objects define.
  SmallVector<llvm::Constant *> kernels;
  if (isForGPU)
    for (const std::string &kernel : function.kernels)
      kernels.push_back(module.getOrInsertGlobal(kernel, builder.getInt8Ty()));
  return llvm::ConstantStruct::getAnon(
      {string(function.name), cast<llvm::Constant>(entry.getCallee()),
       array(constants, constantType), builder.getInt64(constants.size()),
       array(kernels, pointer), builder.getInt64(kernels.size())});
}

/// Defines `name` as a call through a pointer; returns that pointer's variable.
llvm::Constant *PackageTable::forward(StringRef name,
                                      llvm::FunctionType *type) {
  llvm::GlobalVariable *place =
      global(llvm::ConstantPointerNull::get(pointer), /*isConstant=*/false);
  auto *function = llvm::Function::Create(
      type, llvm::GlobalValue::ExternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  builder.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "", function));
  SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : function->args())
    arguments.push_back(&argument);
  llvm::CallInst *call =
      builder.CreateCall(type, builder.CreateLoad(pointer, place), arguments);
  call->setTailCall();
  if (type->getReturnType()->isVoidTy())
    builder.CreateRetVoid();
  else
    builder.CreateRet(call);
  return place;
}

void PackageTable::build(const Executable &executable) {
  SmallVector<llvm::Constant *> functions;
  for (const ExecutableFunction &function : executable.functions)
    functions.push_back(describe(function, !executable.gpu.empty()));
  SmallVector<llvm::Constant *> fields = {
      builder.getInt64(FP8_ABI_VERSION),
      array(functions, functions.front()->getType()),
      builder.getInt64(functions.size())};
#define FORWARD(result, field, function, parameters)                           \
  fields.push_back(forward(#function, typeOf(&function)));
  FP8_CALLED_FUNCTIONS(FORWARD)
#undef FORWARD
  llvm::Constant *library = llvm::ConstantStruct::getAnon(fields);
  llvm::GlobalVariable *exported = global(library, /*isConstant=*/true);
  exported->setLinkage(llvm::GlobalValue::ExternalLinkage);
  exported->setName("fp8_package_v" + llvm::Twine(FP8_ABI_VERSION));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static std::string inDirectory(StringRef directory, const llvm::Twine &name) {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

namespace {

/// A linker program and its arguments.
struct Linker {
  std::string program;
  std::vector<std::string> arguments;      // the program's name first
  std::vector<std::string> libraries = {}; // after the objects
};

} // namespace

/// Finds a linker on PATH. A C compiler knows the libraries with functions for
/// which the CPU has no instructions; a bare linker is enough if none is
/// needed.
static llvm::Expected<Linker> findLinker(const std::string &output,
                                         const std::string &exports) {
  std::string clang = "clang-" + std::to_string(LLVM_VERSION_MAJOR);
  for (const std::string &name : {std::string("cc"), clang})
    if (auto program = llvm::sys::findProgramByName(name))
      return Linker{*program,
                    {*program, "-shared", "-nostartfiles", "-o", output,
                     "-Wl,--version-script=" + exports, "-Wl,-z,defs"},
                    {"-Wl,--as-needed", "-lm"}};
  for (const char *name : {"ld.lld", "ld"})
    if (auto program = llvm::sys::findProgramByName(name))
      return Linker{
          *program,
          {*program, "-shared", "-o", output, "--version-script=" + exports}};
  return llvm::createStringError("expected a linker on PATH (cc, " + clang +
                                 ", ld.lld or ld) but found none");
}

/// Links the objects in `files` to one library that exports one symbol.
static llvm::Error link(ArrayRef<std::string> files, StringRef directory,
                        const std::string &output) {
  std::string exports = inDirectory(directory, "exports");
  std::string log = inDirectory(directory, "log");
  if (llvm::Error error = writeFile(
          exports, "{ global: fp8_package_v" + std::to_string(FP8_ABI_VERSION) +
                       "; local: *; };\n"))
    return error;
  auto linker = findLinker(output, exports);
  if (!linker)
    return linker.takeError();
  SmallVector<StringRef> arguments(linker->arguments.begin(),
                                   linker->arguments.end());
  arguments.append(files.begin(), files.end());
  arguments.append(linker->libraries.begin(), linker->libraries.end());
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  int status = llvm::sys::ExecuteAndWait(
      linker->program, arguments, std::nullopt, redirects, 0, 0, &message);
  if (status == 0)
    return llvm::Error::success();
  if (auto text = llvm::MemoryBuffer::getFile(log))
    message += (*text)->getBuffer().take_front(2000).rtrim();
  return llvm::createStringError("'" + linker->program +
                                 "' cannot link the package: " + message);
}

/// Creates the library `output`.
static llvm::Error makeLibrary(const Executable &executable,
                               const std::string &output) {
  auto temporary = createTemporaryDirectory("fp8-package-");
  if (!temporary)
    return temporary.takeError();
  StringRef directory = *temporary;
  auto cleanUp =
      llvm::scope_exit([&] { (void)fs::remove_directories(directory); });
  llvm::LLVMContext context;
  PackageTable table(context);
  table.build(executable);
  auto tableObject = emitObject(table.module, executable.target);
  if (!tableObject)
    return tableObject.takeError();
  std::vector<std::string> files;
  auto add = [&](StringRef name, StringRef bytes) {
    files.push_back(inDirectory(directory, name + ".o"));
    return writeFile(files.back(), bytes);
  };
  if (llvm::Error error = add("package", *tableObject))
    return error;
  for (const ObjectCode &object : executable.objects)
    if (llvm::Error error = add(object.symbol, object.bytes))
      return error;
  std::string linked = output + ".tmp";
  if (llvm::Error error = link(files, directory, linked)) {
    (void)fs::remove(linked);
    return error;
  }
  if (std::error_code error = fs::rename(linked, output))
    return llvm::createStringError("cannot write '" + output +
                                   "': " + error.message());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

/// Turns `params['emb']` into a part of a C name: PARAMS_EMB.
static std::string constantName(StringRef text) {
  std::string name;
  for (char c : text) {
    if (llvm::isAlnum(c))
      name += llvm::toUpper(c);
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  return StringRef(name).rtrim('_').str();
}

/// Replaces characters that a C comment must not contain.
static std::string inComment(StringRef text) {
  std::string shown;
  for (char c : text)
    shown += c == '*' || !llvm::isPrint(c) ? '?' : c;
  return shown;
}

/// Prints the indices of `tensors` as an enumeration.
static void printPlaces(llvm::raw_ostream &os, const std::string &prefix,
                        ArrayRef<TensorDescription> tensors) {
  if (tensors.empty())
    return;
  llvm::StringSet<> taken;
  os << "enum {\n";
  for (auto [index, tensor] : llvm::enumerate(tensors)) {
    std::string name = prefix + constantName(tensor.name);
    while (!taken.insert(name).second)
      name += "_" + std::to_string(index);
    os << "  " << name << " = " << index << ", /* " << inComment(tensor.name)
       << " " << fp8_dtype_name(tensor.dtype) << "[";
    llvm::interleave(tensor.shape, os, ",");
    os << "] */\n";
  }
  os << "};\n";
}

static std::string makeHeader(const Executable &executable,
                              StringRef directory) {
  SmallString<128> whole(directory);
  (void)fs::make_absolute(whole);
  llvm::sys::path::remove_dots(whole, /*remove_dot_dot=*/true);
  std::string prefix = constantName(llvm::sys::path::filename(whole));
  if (prefix.empty() || llvm::isDigit(prefix[0]))
    prefix = "PACKAGE_" + prefix;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* The functions of a package for the fp8 runtime: where their "
        "arguments and\n   results are (see fp8_step_argument). Made by "
        "fp8-run "
        "--emit-package. */\n\n"
     << "#ifndef " << prefix << "_STEP_H\n#define " << prefix << "_STEP_H\n\n"
     << "#include \"fp8-c/Runtime.h\"\n\n#if FP8_ABI_VERSION != "
     << FP8_ABI_VERSION
     << "\n#error \"the package is for another version of fp8-c/Runtime.h\"\n"
        "#endif\n";
  for (const ExecutableFunction &function : executable.functions) {
    std::string name = prefix + "_" + constantName(function.name);
    os << "\n/* \"" << function.name << "\" */\n";
    printPlaces(os, name + "_ARGUMENT_", function.arguments);
    printPlaces(os, name + "_RESULT_", function.results);
  }
  os << "\n#endif\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Packages
//===----------------------------------------------------------------------===//

/// Returns the manifest of the executable with the additional fields of a
/// package.
static llvm::Expected<std::string> makeManifest(const Executable &executable,
                                                const std::string &library) {
  auto bytes = llvm::MemoryBuffer::getFile(library);
  if (!bytes)
    return llvm::createStringError("cannot read '" + library +
                                   "': " + bytes.getError().message());
  StringRef contents = (*bytes)->getBuffer();
  llvm::json::Value manifest = executable.manifest();
  llvm::json::Object &object = *manifest.getAsObject();
  // The runtime knows no CPU by its name.
  (*object.getObject("target"))["features"] = usedFeatures(executable.target);
  object["format"] = "fp8-package";
  object["library"] = llvm::json::Object{
      {"file", kLibrary},
      {"bytes", static_cast<int64_t>(contents.size())},
      {"crc32", static_cast<int64_t>(
                    llvm::crc32(llvm::arrayRefFromStringRef(contents)))}};
  llvm::json::Array texts;
  for (const auto &[name, text] : executable.texts)
    texts.push_back(name);
  object["texts"] = std::move(texts);
  // The sum is that of the text with a 0 in its own place.
  StringRef key = FP8_MANIFEST_SUM;
  object[key] = 0;
  std::string text = llvm::formatv("{0:2}\n", manifest).str();
  std::string field = ("\"" + key + "\": ").str();
  uint32_t sum = llvm::crc32(llvm::arrayRefFromStringRef(text));
  text.replace(text.find(field) + field.size(), 1, std::to_string(sum));
  return text;
}

/// Writes the files of a package; returns their names, that of the manifest
/// last. `path` is where they will be.
static llvm::Expected<std::vector<std::string>>
writeFiles(const Executable &executable, StringRef directory, StringRef path) {
  std::vector<std::string> names{kLibrary.str()};
  std::string library = inDirectory(directory, kLibrary);
  if (llvm::Error error = makeLibrary(executable, library))
    return std::move(error);
  auto manifest = makeManifest(executable, library);
  if (!manifest)
    return manifest.takeError();
  std::vector<std::pair<std::string, std::string>> texts(
      executable.texts.begin(), executable.texts.end());
  texts.emplace_back("step.h", makeHeader(executable, path));
  texts.emplace_back("manifest.json", std::move(*manifest));
  for (const auto &[name, text] : texts) {
    if (llvm::Error error = writeFile(inDirectory(directory, name), text))
      return std::move(error);
    names.push_back(name);
  }
  return names;
}

/// Reports an error if a run has written to the directory: a package has files
/// of the same names.
static llvm::Error expectNoRun(StringRef directory) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    StringRef name = llvm::sys::path::filename(it->path());
    if (name == "log.jsonl" || name.starts_with("checkpoint-"))
      return llvm::createStringError(
          "expected another directory for the package than '" + directory +
          "', which holds a run ('" + name + "')");
  }
  return llvm::Error::success();
}

llvm::Error mlir::fp8::writePackage(const Executable &executable,
                                    StringRef directory) {
  if (llvm::Error error = expectNoRun(directory))
    return error;
  auto failure = [&](const char *what, StringRef path, std::error_code error) {
    return llvm::createStringError("cannot " + llvm::Twine(what) + " '" + path +
                                   "': " + error.message());
  };
  if (std::error_code error = fs::create_directories(
          directory, /*IgnoreExisting=*/true, fs::all_all))
    return failure("create", directory, error);
  // An earlier package stays whole until all files of this one are written.
  auto temporary =
      createUniqueDirectory(inDirectory(directory, "package.fp8-tmp-"));
  if (!temporary)
    return failure("write to", directory, temporary.getError());
  llvm::scope_exit remove([&] { (void)fs::remove_directories(*temporary); });
  auto names = writeFiles(executable, *temporary, directory);
  if (!names)
    return names.takeError();
  // Without a manifest the directory is no package, so nobody takes parts of
  // two for one.
  (void)fs::remove(inDirectory(directory, names->back()));
  for (const std::string &name : *names)
    if (std::error_code error = fs::rename(inDirectory(*temporary, name),
                                           inDirectory(directory, name)))
      return failure("write to", directory, error);
  return llvm::Error::success();
}
