//===- BuildId.cpp - Version and build of the compiler --------------------===//

#include "fp8/Compiler/BuildId.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm-c/Core.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

using namespace mlir::fp8;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {

/// A search among the loaded files: the address to find, and the note of its
/// file.
struct Search {
  uintptr_t address;
  ArrayRef<uint8_t> note;
};

} // namespace

/// Returns the linker's build id from the notes of a segment; empty if there is
/// none.
static ArrayRef<uint8_t> findBuildId(const char *notes, size_t size) {
  auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(notes);
    size_t name = sizeof(*note), data = name + padded(note->n_namesz);
    size_t end = data + padded(note->n_descsz);
    if (end > size)
      break;
    if (note->n_type == NT_GNU_BUILD_ID &&
        StringRef(notes + name, note->n_namesz) == StringRef("GNU\0", 4))
      return {reinterpret_cast<const uint8_t *>(notes + data), note->n_descsz};
    notes += end;
    size -= end;
  }
  return {};
}

/// Stops at the loaded file that holds the address, and reads its build id.
static int visitLoadedFile(struct dl_phdr_info *file, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  bool holdsAddress = false;
  for (size_t i = 0; i < file->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = file->dlpi_phdr[i];
    uintptr_t begin = file->dlpi_addr + segment.p_vaddr;
    holdsAddress |= segment.p_type == PT_LOAD && search.address >= begin &&
                    search.address < begin + segment.p_memsz;
  }
  if (!holdsAddress)
    return 0;
  for (size_t i = 0; i < file->dlpi_phnum && search.note.empty(); ++i) {
    const ElfW(Phdr) &segment = file->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.note = findBuildId(
          reinterpret_cast<const char *>(file->dlpi_addr + segment.p_vaddr),
          segment.p_memsz);
  }
  return 1;
}

/// Adds the identity of the file that holds `address`: the linker's build id,
/// or else all of its bytes.
static void addFileOf(llvm::SHA256 &hash, const void *address) {
  Search search = {reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(visitLoadedFile, &search);
  if (!search.note.empty()) {
    hash.update(search.note);
    return;
  }
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname)
    return;
  if (auto file = llvm::MemoryBuffer::getFile(info.dli_fname))
    hash.update((*file)->getBuffer());
}

StringRef mlir::fp8::getCompilerVersion() {
  return "fp8 " FP8_VERSION " with LLVM " LLVM_VERSION_STRING;
}

StringRef mlir::fp8::getCompilerBuildId() {
  static const std::string id = [] {
    llvm::SHA256 hash;
    // One function from each file.
    addFileOf(hash, reinterpret_cast<const void *>(&getCompilerBuildId));
    addFileOf(hash,
              reinterpret_cast<const void *>(&mlir::translateModuleToLLVMIR));
    addFileOf(hash, reinterpret_cast<const void *>(&LLVMGetVersion));
    return llvm::toHex(ArrayRef<uint8_t>(hash.final()).take_front(16),
                       /*LowerCase=*/true);
  }();
  return id;
}
