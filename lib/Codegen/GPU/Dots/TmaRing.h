//===- TmaRing.h - The ring of stages that TMA fills ------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTS_TMARING_H
#define FP8_LIB_CODEGEN_GPU_DOTS_TMARING_H

#include "../../Contraction/IndexBuilder.h"

namespace mlir::fp8::gpu_codegen {

/// The ring of stages in shared memory through which one warp, the producer,
/// passes operands to the warps that multiply them. Each stage has two
/// mbarriers (PTX ISA, "Parallel Synchronization and Communication
/// Instructions: mbarrier"): `full`, whose phase is complete when the producer
/// has announced the stage's bytes and all have landed; and `empty`, whose
/// phase is complete when every other warp has read the stage.
///
/// The ring goes on through all runs of k and all tiles of a block, so that the
/// producer fills it as long as there is room. Each thread keeps its own place:
/// the number of the next stage and the parity of its phases, which changes
/// with every round. A stage can have several parts, each with a `full` of its
/// own.
class TmaRing : contraction::IndexBuilder {
public:
  /// Emits code at the start of a kernel. `barriers` is memory for as many
  /// barriers as countBarriers says, `maps` are tensor maps.
  TmaRing(OpBuilder &b, Location loc, Value barriers, int64_t stages,
          ArrayRef<Value> maps, int64_t parts = 1);

  static int64_t countBarriers(int64_t stages, int64_t parts = 1) {
    return stages * (parts + 1);
  }

  /// Makes the barriers, by one thread. A stage is empty when `readers` warps
  /// have released it.
  void makeBarriers(int64_t readers);

  /// Returns the number of this thread's next stage, an index.
  Value stage();
  /// Waits until the next stage may be filled, or a part of it has been filled.
  void waitUntilEmpty();
  void waitUntilFull(int64_t part = 0);
  /// Announces the bytes of a part of the next stage. Returns the barrier on
  /// which the copies to it have to arrive.
  Value expect(int64_t bytes, int64_t part = 0);
  /// Asks for the box at `coordinates`, in elements, of a tensor map. It goes
  /// to byte `offset` of `shared`, and arrives on `barrier`.
  void copyBox(unsigned map, ArrayRef<Value> coordinates, Value shared,
               Value offset, Value barrier);
  /// Releases the stage before the next one, or the next one, by one thread of
  /// a warp.
  void releaseLast();
  void release();
  /// Moves this thread to the following stage.
  void advance();

  /// Whether the code being emitted is the producer's.
  bool fills = false;

private:
  Value fullOf(Value stage, int64_t part);
  Value emptyOf(Value stage);
  void arriveOnEmpty(Value stage);
  void wait(Value barrier, Value parity);
  Value get(Value variable);
  Value number(int64_t value);

  Value barriers;
  int64_t stages, parts;
  SmallVector<Value> maps;
  Value next, parity; // memrefs of one i32
};

/// Returns a pointer to byte `offset`, an index, of a buffer in shared memory.
Value sharedPointer(OpBuilder &b, Location loc, Value buffer, Value offset);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTS_TMARING_H
