//===- LoopClasses.h - Loops that run over the same elements ----*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_LOOPCLASSES_H
#define FP8_LIB_KERNELS_FORMKERNELS_LOOPCLASSES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"

#include <optional>

namespace mlir::fp8 {

/// Classes of the loops of some ops: a loop that writes a dimension of a value
/// and a loop that reads that dimension are in one class.
class LoopClasses {
public:
  /// A loop of an op.
  using Loop = std::pair<Operation *, unsigned>;

  LoopClasses() = default;
  explicit LoopClasses(ArrayRef<linalg::GenericOp> generics);

  bool areSame(const Loop &a, const Loop &b) const {
    return classes.isEquivalent(a, b);
  }
  /// Returns the loops of `generic` in the class of `leader`.
  SmallVector<unsigned> loopsOf(linalg::GenericOp generic,
                                const Loop &leader) const;
  /// Returns the first loop of `generic` in the class of `leader`, if any. (In
  /// a class of a kernel's domain there is at most one.)
  std::optional<unsigned> loopOf(linalg::GenericOp generic,
                                 const Loop &leader) const;
  /// Returns true for a loop along which some value is read at another index
  /// than it is written.
  bool isUneven(const Loop &loop) const { return uneven.contains(loop); }

private:
  void match(linalg::GenericOp reader, OpOperand &operand,
             const llvm::SmallPtrSetImpl<Operation *> &ops);

  llvm::EquivalenceClasses<Loop> classes;
  llvm::SmallSet<Loop, 8> uneven;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_LOOPCLASSES_H
