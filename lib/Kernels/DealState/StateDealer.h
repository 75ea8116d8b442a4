//===- StateDealer.h - Shards of the state, each with an owner --*- C++ -*-===//
//
// On several ranks, a value of the step is the same on all of them, differs
// between them, or is known only to the owner of a shard. A shard is a
// parameter with its moments. A value that is computed from these and from
// values that all ranks have belongs to the owner, until another rank reads it.
//
// The shard of a stack of layers has slices along its leading dimension, each
// with an owner, if every op that owners run computes the slices of its results
// from the same slices of its operands. Each owner then runs the tasks of a
// kernel that work on its slices.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_DEALSTATE_STATEDEALER_H
#define FP8_LIB_KERNELS_DEALSTATE_STATEDEALER_H

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fp8 {

/// The ranks that have a value.
struct Holder {
  enum class Kind {
    Unknown, ///< Not known yet: a carry at its first visit.
    All,     ///< All ranks have the same value.
    Each,    ///< Each rank has another value.
    Owner    ///< Only the owner of a shard has it.
  };
  Kind kind = Kind::Unknown;
  int64_t shard = 0;

  static Holder all() { return {Kind::All, 0}; }
  static Holder each() { return {Kind::Each, 0}; }
  static Holder owner(int64_t shard) { return {Kind::Owner, shard}; }
  bool isOwner() const { return kind == Kind::Owner; }
  bool operator==(const Holder &other) const {
    return kind == other.kind && shard == other.shard;
  }
  bool operator!=(const Holder &other) const { return !(*this == other); }
};

/// Deals the state of a function to ranks.
class StateDealer {
public:
  explicit StateDealer(func::FuncOp func)
      : func(func), arguments(argumentsByPath(func)) {}

  void run();

private:
  // Shards and gradients.
  void findShards();
  void findStacks();
  void keepTogether(int64_t shard, const Twine &reason);
  int64_t slicesOf(Holder holder) const {
    return holder.isOwner() ? slices[holder.shard] : 1;
  }
  void findGradients();
  std::optional<int64_t> shardOfGradient(AllReduceOp reduce);
  bool replicateCheapParameters();
  bool dealDerivedState();
  std::optional<BlockArgument> stateOfResult(unsigned index);
  /// Returns whether each rank has only its part of an argument.
  bool hasPart(unsigned index) {
    return bool(func.getArgAttr(index, stablehlo::kPartAttrName));
  }

  // Holders of values.
  void analyze();
  void visitBlock(Block &block);
  void visit(Operation *op);
  void visitWork(Operation *op);
  bool worksOnSlices(Operation *op, Holder holder);
  bool isPartOfResult(Value value, Holder holder);
  bool mayBeReadByAll(const SetVector<Value> &read, Holder holder);
  void visitExchange(ExchangeOp op);
  void visitFor(scf::ForOp loop);
  void visitWhile(scf::WhileOp loop);
  void visitBranches(Operation *op);
  void visitReturn(func::ReturnOp op);
  Holder join(Value a, Value b);
  Holder holderOf(Value value) const {
    return sent.contains(value) ? Holder::all() : holders.lookup(value);
  }
  void send(Value value);
  void setAll(Operation *op, Holder holder) {
    for (Value result : op->getResults())
      holders[result] = holder;
  }

  // Attributes and sends.
  void markOpsForOneReader();
  bool isReadInSlices(Operation *op, int64_t count);
  void mark();

  func::FuncOp func;
  llvm::StringMap<BlockArgument> arguments; // by path
  /// The parameter that each shard is named after. Shards count from 1.
  SmallVector<StringAttr> names;
  llvm::MapVector<BlockArgument, int64_t> shardOf;
  /// By shard, from 1: the number of slices, and the reason if a stack has only
  /// one.
  SmallVector<int64_t> slices;
  SmallVector<std::string> reasons;
  /// By shard, from 1: the bytes of its state.
  SmallVector<int64_t> stored;
  /// The number of slices by the value of the attribute `fp8.shard`.
  llvm::DenseMap<int64_t, int64_t> slicesOfMark;
  /// State that all ranks hold, because not only its owner reads it.
  llvm::DenseSet<Value> whole;
  /// Gradients that only an owner gets, and those that all ranks get.
  llvm::MapVector<Operation *, int64_t> gradients;
  llvm::DenseSet<Operation *> plain;
  /// Values that owners send to all ranks as soon as they are computed.
  SetVector<Value> sent;
  llvm::DenseMap<Value, Holder> holders;
  /// Views and extracted parts of values with slices, if they do not consist of
  /// whole slices.
  llvm::DenseSet<Value> cuts;
  bool changed = false;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_DEALSTATE_STATEDEALER_H
