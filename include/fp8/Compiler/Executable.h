//===- Executable.h - The result of compilation -----------------*- C++ -*-===//
//
// Machine code and everything that a runtime has to know about it. An
// Executable holds no pointers into a process and no IR, so it can be
// serialized and parsed again. It can run in this process (LoadedExecutable.h),
// go into a cache (Cache.h), or be linked into a package (Package.h).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_EXECUTABLE_H
#define FP8_COMPILER_EXECUTABLE_H

#include "fp8-c/Runtime.h"
#include "fp8/Codegen/Target.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <string>
#include <vector>

namespace mlir::fp8 {

/// An argument or a result of a compiled function.
struct TensorDescription {
  std::string name; ///< Its tree path.
  fp8_dtype dtype = FP8_DTYPE_F32;
  std::vector<int64_t> shape;
  fp8_kind kind = FP8_KIND_OTHER;
  /// For arguments only.
  fp8_role role = FP8_ROLE_STATE;
  int64_t vocabulary = -1;
  bool labels = false;
  bool zeroInit = false;
  int64_t shard = 0; ///< Shard that ranks own, from 1; 0: all ranks have it.
  /// The slices of the shard along the leading dimension, each with an owner.
  int64_t slices = 1;
  /// If each rank has a part: the shape of the whole, and the offsets of the
  /// parts of ranks 0, 1, ..., concatenated.
  std::vector<int64_t> whole, partOffsets;
  /// The blocks of the whole, along the dimension that is divided among parts,
  /// of which a part has as much as of any other.
  int64_t partBlocks = 1;
  /// For results only: the index of the argument that this result replaces, or
  /// -1.
  int64_t stateArg = -1;
};

/// Describes a tensor to the runtime; the result points into the description.
fp8_tensor_info infoOf(const TensorDescription &tensor);

/// Where the compile time went, and the size of the result.
struct CompileStats {
  double importSeconds = 0, fp8Seconds = 0, structureSeconds = 0,
         kernelsSeconds = 0, codegenSeconds = 0, llvmSeconds = 0;
  int64_t launches = 0, kernels = 0;
  /// The number of kernels that were found in the cache and not compiled.
  int64_t cachedKernels = 0;

  double totalSeconds() const {
    return importSeconds + fp8Seconds + structureSeconds + kernelsSeconds +
           codegenSeconds + llvmSeconds;
  }
};

/// Machine code of one kernel or one schedule: a relocatable object that
/// defines `symbol`. The symbol is a hash of what the object was compiled from,
/// so that objects have equal names exactly if they are equal.
struct ObjectCode {
  std::string symbol;
  std::string bytes;
};

/// One function: its schedule, its arguments and results, and its memory. See
/// fp8_executable_desc.
struct ExecutableFunction {
  std::string name; ///< step, init, eval, store, load, ...
  /// The symbols of the schedule (an fp8_entry_fn) and of the kernels that it
  /// launches.
  std::string entry;
  std::vector<std::string> kernels;
  std::vector<TensorDescription> arguments, results;
  /// The bytes of each constant as they lie in memory.
  std::vector<std::string> constants;
  int64_t arenaBytes = 0, scratchBytes = 0;
  std::vector<std::string> launchNames;
  CompileStats stats;
};

/// A warning of the compiler, kept so that users of a cached executable see it,
/// too.
struct CompilerWarning {
  std::string file; ///< Empty: without a location.
  int64_t line = 0, column = 0;
  std::string text;
  std::vector<std::string> notes;
};

/// The functions that were compiled together, and reports about them.
struct Executable {
  std::vector<ExecutableFunction> functions;
  /// The objects that the functions need, each once.
  std::vector<ObjectCode> objects;
  CodeTarget target;
  /// The GPU that runs the kernels, and their form: bitcode, ptx or cubin. If
  /// empty, the CPU runs them. The object of a GPU kernel defines an
  /// `fp8_gpu_kernel`.
  std::string gpu, gpuImage;
  /// The compiler's version and build (see BuildId.h).
  std::string compiler, build;
  /// Identifies a run: module, recipe and compiler. Empty if the program does
  /// not train.
  std::string fingerprint;
  /// Texts about the step, by the name of a file that would hold them. Texts
  /// without content are absent:
  ///   signature.json: the roles of arguments and results
  ///   verdicts.json, verdicts.txt, summary.txt: the verdict of every dot
  ///   memory.json, memory.txt: the plan of the arena
  ///   ranks.txt: the collectives, if several ranks may run the step
  ///   cost.json: arithmetic and traffic of each launch
  ///   dots-NAME.json: what computes each dot of a function, with cuBLASLt
  ///   state.txt: state that the step returns unchanged, one path per line
  ///   recipe.yaml: the effective recipe with its defaults
  ///   preset.yaml: the preset of the same name, if there is one
  ///   export.json: the tensors of an export (see fp8_export::manifest)
  std::map<std::string, std::string> texts;
  std::vector<CompilerWarning> warnings;

  /// Returns the function of this name, or null.
  const ExecutableFunction *find(StringRef name) const;
  /// Returns a text; empty if there is none.
  StringRef text(StringRef name) const;

  /// Adds the functions of `other`, and its objects that are not here yet.
  /// Keeps the texts of this executable.
  void merge(Executable other);

  /// Returns everything but the bytes of objects, constants and texts.
  llvm::json::Value manifest() const;

  /// Returns an `ar` archive: manifest.json, the texts, one object per kernel
  /// and schedule, the constants of each function, and a checksum of all of
  /// these and of `name`, the file that it is for.
  llvm::Expected<std::string> serialize(StringRef name) const;
  /// Parses the result of `serialize`. Fails if the bytes are damaged, or for a
  /// file of another name.
  static llvm::Expected<Executable> parse(StringRef name, StringRef bytes);
};

/// Returns an archive whose last member is the SHA-256 of `name`, the file that
/// it is for, and of everything before it.
llvm::Expected<std::string>
writeSealedArchive(StringRef name,
                   ArrayRef<std::pair<std::string, StringRef>> members);
/// Returns the members of such an archive, which point into `bytes`. Fails if
/// `bytes` is no such archive or its checksum does not match, as that of
/// another file's does not.
llvm::Expected<std::vector<std::pair<std::string, StringRef>>>
readSealedArchive(StringRef name, StringRef bytes);

} // namespace mlir::fp8

#endif // FP8_COMPILER_EXECUTABLE_H
