//===- Executable.h - What compilation gives, as a value --------*- C++ -*-===//
//
// Machine code and everything that a runtime has to know about it. An
// Executable holds no pointers into a process and no IR: it can be written down
// and read again. It is run in this process (LoadedExecutable.h), kept in a
// cache (Cache.h), or linked into a package (Package.h).
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
  /// Of arguments.
  fp8_role role = FP8_ROLE_STATE;
  int64_t vocabulary = -1;
  bool zeroInit = false;
  int64_t shard = 0; ///< That ranks own, from 1; 0: all have it.
  /// Of the shard, along its leading dimension, each with an owner.
  int64_t slices = 1;
  /// Where each rank has a part: the shape of the whole, and where the parts of
  /// ranks 0, 1, ... begin, one after another.
  std::vector<int64_t> whole, partOffsets;
  /// Of results: the argument that this one replaces, or -1.
  int64_t stateArg = -1;
};

/// Where compile time went, and what came out.
struct CompileStats {
  double importSeconds = 0, fp8Seconds = 0, structureSeconds = 0,
         kernelsSeconds = 0, codegenSeconds = 0, llvmSeconds = 0;
  int64_t launches = 0, kernels = 0;
  /// Of the kernels, those that were not compiled since the cache had them.
  int64_t cachedKernels = 0;

  double totalSeconds() const {
    return importSeconds + fp8Seconds + structureSeconds + kernelsSeconds +
           codegenSeconds + llvmSeconds;
  }
};

/// Machine code of one kernel or one schedule: a relocatable object that
/// defines `symbol`. The symbol is a hash of what the object was compiled from,
/// so that equal ones have one name, and others never the same.
struct ObjectCode {
  std::string symbol;
  std::string bytes;
};

/// One function: its schedule, what it takes and returns, and its memory. See
/// fp8_executable_desc.
struct ExecutableFunction {
  std::string name; ///< step, init, eval, store, load, ...
  /// Symbol of the schedule (an fp8_entry_fn), and of the kernels that it
  /// launches.
  std::string entry;
  std::vector<std::string> kernels;
  std::vector<TensorDescription> arguments, results;
  /// Their bytes as they lie in memory.
  std::vector<std::string> constants;
  int64_t arenaBytes = 0, scratchBytes = 0;
  std::vector<std::string> launchNames;
  CompileStats stats;
};

/// A warning of the compiler. It is kept so that whoever takes the executable
/// from a cache hears it as well.
struct CompilerWarning {
  std::string file; ///< Empty: of no place.
  int64_t line = 0, column = 0;
  std::string text;
  std::vector<std::string> notes;
};

/// The functions that were compiled together, and what is to be said of them.
struct Executable {
  std::vector<ExecutableFunction> functions;
  /// What the functions need, once each.
  std::vector<ObjectCode> objects;
  CodeTarget target;
  /// The GPU that kernels are for, and what they are: bitcode, ptx or cubin.
  /// Empty: they are for the CPU. The object of a kernel for a GPU defines an
  /// `fp8_gpu_kernel`.
  std::string gpu, gpuImage;
  /// The compiler's version and build (see BuildId.h).
  std::string compiler, build;
  /// What a run is told from another by: module, recipe and compiler. Empty
  /// where nothing is trained.
  std::string fingerprint;
  /// Texts about the step, by the name of a file that would hold them; absent
  /// ones have nothing to say:
  ///   verdicts.json, verdicts.txt, summary.txt: what became of every dot
  ///   memory.json, memory.txt: the plan of the arena
  ///   cost.json: arithmetic and traffic of each launch
  ///   dots-NAME.json: what computes each dot of a function, where cuBLASLt may
  ///   state.txt: state that the step returns as it came, one path a line
  ///   recipe.yaml: the effective recipe, defaults and all
  ///   preset.yaml: the preset of its name, if there is one
  ///   export.json: what an export writes (see fp8_export::manifest)
  std::map<std::string, std::string> texts;
  std::vector<CompilerWarning> warnings;

  /// The function of this name, or null.
  const ExecutableFunction *find(StringRef name) const;
  /// A text; empty if there is none.
  StringRef text(StringRef name) const;

  /// Adds the functions of `other`, and the objects that are not here yet. The
  /// texts stay those of this one.
  void merge(Executable other);

  /// All but the bytes of objects, constants and texts.
  llvm::json::Value manifest() const;

  /// An archive as `ar` reads it: manifest.json, the texts, an object a kernel
  /// and schedule, the constants of each function, and a checksum of all this.
  llvm::Expected<std::string> serialize() const;
  /// Reads what `serialize` wrote. Damaged bytes are an error.
  static llvm::Expected<Executable> parse(StringRef bytes);
};

/// Writes an archive whose last member is the SHA-256 of all before it.
llvm::Expected<std::string>
writeSealedArchive(ArrayRef<std::pair<std::string, StringRef>> members);
/// The members of such an archive, which point into `bytes`. Fails if it is
/// none, or not as it was written.
llvm::Expected<std::vector<std::pair<std::string, StringRef>>>
readSealedArchive(StringRef bytes);

} // namespace mlir::fp8

#endif // FP8_COMPILER_EXECUTABLE_H
