//===- OutputFile.h - Files that may not fit on the disk --------*- C++ -*-===//

#ifndef FP8_SUPPORT_OUTPUTFILE_H
#define FP8_SUPPORT_OUTPUTFILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace mlir::fp8 {

/// Replaces the file at `path` by what `print` prints, in one step: after an
/// error the file is what it was before. Special files (/dev/stdout, pipes) and
/// links to no file yet are written directly, and - is the standard output. The
/// error is "cannot write" with the path and the reason.
llvm::Error writeFile(StringRef path, function_ref<void(raw_ostream &)> print);
llvm::Error writeFile(StringRef path, StringRef bytes);

/// Creates a file or directory that did not exist, called `prefix` and a random
/// number, by `create`, and returns its path. LLVM's functions for this take
/// every % of a path for a place of a random digit.
llvm::ErrorOr<std::string>
createUnique(const llvm::Twine &prefix,
             function_ref<std::error_code(StringRef)> create);
/// Does so for an empty directory.
llvm::ErrorOr<std::string> createUniqueDirectory(const llvm::Twine &prefix);
/// Does so in the system's directory of temporary files (TMPDIR).
llvm::Expected<std::string> createTemporaryDirectory(const llvm::Twine &prefix);

/// Flushes a stream. Returns what went wrong with it so far and clears that:
/// a stream that is destroyed with an error ends the process.
std::error_code finish(llvm::raw_fd_ostream &stream);

/// Finishes the standard output of a program that would return `status`.
/// Returns it, or 1 after a message if the output was not written.
int finishStandardOutput(StringRef program, int status);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_OUTPUTFILE_H
