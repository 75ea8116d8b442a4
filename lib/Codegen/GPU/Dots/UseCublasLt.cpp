//===- UseCublasLt.cpp - Dots that cuBLASLt computes ----------------------===//

#include "../Blocks/Alignment.h"
#include "LibraryDot.h"

#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_USECUBLASLT
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

namespace {

/// The alignment of buffers at the end of the arena, in bytes.
constexpr int64_t kBufferAlignment = 256;
/// The alignment of addresses that the library requires.
constexpr int64_t kLibraryAlignment = 16;
/// The side of the square that a block transposes.
constexpr int64_t kTransposeTile = 64;

/// The sizes from which on the library computes dots, by GPU and by the bits of
/// an operand. Below them, a kernel that does everything in one launch has less
/// overhead. No card has been measured yet. sm_89 and sm_120a have FP8
/// instructions in `mma.sync`, sm_90a only in `wgmma`, and our dots for sm_100a
/// do not use `tcgen05`.
struct LeastSizes {
  StringRef chip;
  unsigned bits;
  int64_t rows, columns, depth;
};
constexpr LeastSizes kLeastSizes[] = {
    {"sm_89", 8, 1024, 1024, 1024},   {"sm_89", 16, 512, 512, 512},
    {"sm_90a", 8, 512, 512, 512},     {"sm_90a", 16, 512, 512, 512},
    {"sm_100a", 8, 16, 16, 16},       {"sm_100a", 16, 16, 16, 16},
    {"sm_120a", 8, 1024, 1024, 1024}, {"sm_120a", 16, 512, 512, 512},
};

/// Returns the bytes of the library's workspace that its documentation
/// recommends.
int64_t workspaceOf(StringRef chip) {
  return int64_t(chip == "sm_89" ? 4 : 32) << 20;
}

/// Returns true if the table selects the library for a dot of these sizes.
bool isInTable(StringRef chip, const LibraryDot &dot) {
  return llvm::any_of(kLeastSizes, [&](const LeastSizes &least) {
    return least.chip == chip &&
           least.bits == dot.elementOf(0).getIntOrFloatBitWidth() &&
           dot.rows >= least.rows && dot.columns >= least.columns &&
           dot.depth >= least.depth;
  });
}

/// A buffer at the end of the arena that the parts of a kernel share.
struct ArenaBuffer {
  int64_t offset;
  MemRefType type;
};

/// The kernels that a kernel is split into, and what launching them needs.
struct Parts {
  LibraryDot dot;
  /// Null for an operand that is contiguous along k.
  std::array<KernelOp, 2> transposes;
  std::array<ArenaBuffer, 2> transposed;
  KernelOp library, rest; // null: there is no rest
  SmallVector<unsigned> restArguments;
  std::optional<ArenaBuffer> result; // none: the result is an argument
  ArenaBuffer workspace;
};

class UseCublasLt : public fp8::impl::UseCublasLtBase<UseCublasLt> {
public:
  void runOnOperation() override {
    FailureOr<GPUTargetAttr> known = gpuTargetOf(getOperation());
    if (failed(known))
      return signalPassFailure();
    target = *known;
    if (target.getCublaslt().empty())
      return;
    for (auto schedule : getOperation().getOps<ScheduleOp>())
      if (!schedule.getArena()) {
        schedule.emitOpError(
            "expected a planned schedule: run --fp8-plan-memory first");
        return signalPassFailure();
      }
    getOperation().walk([&](LaunchOp launch) {
      launches[launch.getKernel()].push_back(launch);
    });
    for (auto kernel : llvm::to_vector(getOperation().getOps<KernelOp>()))
      if (!kernel.isExternal() && !kernel.getPlan() && contractionOf(kernel))
        choose(kernel);
    for (auto [schedule, bytes] : arenas)
      setArena(cast<ScheduleOp>(schedule), bytes);
    if (!rows.empty())
      getOperation()->setAttr(FP8Dialect::kDotChoicesAttrName,
                              Builder(&getContext()).getArrayAttr(rows));
  }

private:
  void choose(KernelOp kernel) {
    std::string reason;
    ArrayRef<LaunchOp> users = launches[kernel.getSymName()];
    std::optional<LibraryDot> dot = LibraryDot::find(kernel, reason);
    if (dot && !isAligned(*dot, users))
      reason = "an operand does not begin at a multiple of 16 bytes";
    else if (dot && target.getCublaslt() == "table" &&
             !isInTable(target.getChip(), *dot))
      reason = "the table has no dots as small as this";
    addRow(kernel, dot, reason);
    if (!reason.empty())
      return;
    Parts parts = cut(kernel, *dot);
    for (LaunchOp launch : users)
      replace(launch, parts);
    kernel.erase();
  }

  bool isAligned(const LibraryDot &dot, ArrayRef<LaunchOp> users) {
    SmallVector<BlockArgument> arguments;
    for (unsigned i = 0; i < 2; ++i)
      if (!dot.needsTranspose(i))
        arguments.push_back(dot.operands[i]);
    if (auto result = dyn_cast<BlockArgument>(dot.result))
      arguments.push_back(result);
    for (LaunchOp launch : users)
      for (BlockArgument argument : arguments)
        if (alignmentOf(launch.getOperand(argument.getArgNumber())) <
            kLibraryAlignment)
          return false;
    return true;
  }

  /// Adds a row about a kernel's dot to `fp8.dot_choices`.
  void addRow(KernelOp kernel, const std::optional<LibraryDot> &dot,
              const std::string &reason) {
    Builder b(&getContext());
    SmallVector<LaunchOp> &users = launches[kernel.getSymName()];
    StringRef label =
        users.empty() ? "" : users.front().getLabel().value_or("");
    NamedAttrList row;
    row.append("dot", b.getStringAttr(label));
    row.append("launches", b.getI64IntegerAttr(users.size()));
    if (dot) {
      row.append("sizes",
                 b.getDenseI64ArrayAttr({dot->rows, dot->columns, dot->depth}));
      row.append("operands",
                 b.getTypeArrayAttr({dot->elementOf(0), dot->elementOf(1)}));
    }
    row.append("by", b.getStringAttr(reason.empty() ? "cublaslt" : "kernel"));
    if (reason.empty())
      row.append("algorithm", b.getStringAttr("first of the heuristic"));
    else
      row.append("reason", b.getStringAttr(reason));
    rows.push_back(row.getDictionary(&getContext()));
  }

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  /// Creates a kernel with these arguments, whose body `fill` emits. Returns an
  /// existing kernel if it computes the same.
  KernelOp makeKernel(Location loc, ArrayRef<Type> arguments,
                      ArrayRef<int64_t> domain, Attribute plan,
                      function_ref<void(OpBuilder &, ValueRange)> fill) {
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto kernel = KernelOp::create(
        builder, loc, "part", builder.getFunctionType(arguments, {}),
        SmallVector<Access>(arguments.size(), Access::Write), domain);
    Block *body =
        builder.createBlock(&kernel.getBody(), {}, arguments,
                            SmallVector<Location>(arguments.size(), loc));
    fill(builder, body->getArguments());
    ReturnOp::create(builder, loc);
    for (BlockArgument argument : body->getArguments())
      // (An argument without uses is the workspace.)
      if (!argument.use_empty())
        kernel.setAccess(argument.getArgNumber(), accessOf(argument));
    if (plan)
      kernel.setPlanAttr(plan);
    std::string name = nameOfContents(kernel);
    if (auto known = getOperation().lookupSymbol<KernelOp>(name)) {
      kernel.erase();
      return known;
    }
    kernel.setSymName(name);
    return kernel;
  }

  /// Creates the kernel that transposes a matrix.
  KernelOp makeTranspose(Location loc, MemRefType to) {
    ArrayRef<int64_t> shape = to.getShape();
    auto from = MemRefType::get({shape[1], shape[0]}, to.getElementType());
    SmallVector<int64_t> tile;
    for (int64_t extent : from.getShape())
      tile.push_back(std::min(extent, kTransposeTile));
    auto plan =
        GPUPlanAttr::get(&getContext(), tile, tile, 128, /*wgmma=*/false,
                         /*stages=*/2, /*rows=*/0, /*tma=*/false);
    auto fill = [&](OpBuilder &builder, ValueRange arguments) {
      auto identity = builder.getMultiDimIdentityMap(2);
      auto transposed =
          AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0}, &getContext());
      auto generic = linalg::GenericOp::create(
          builder, loc, arguments[0], arguments[1],
          ArrayRef<AffineMap>{identity, transposed},
          SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
          [](OpBuilder &nested, Location at, ValueRange values) {
            linalg::YieldOp::create(nested, at, values[0]);
          });
      generic->setAttr(FP8Dialect::kTaskDimsAttrName,
                       builder.getDenseI64ArrayAttr({0, 1}));
    };
    return makeKernel(loc, {from, to}, from.getShape(), plan, fill);
  }

  /// Creates the kernel with the dot alone, on matrices.
  KernelOp makeLibrary(const Parts &parts, Location loc) {
    const LibraryDot &dot = parts.dot;
    auto matrix = [](int64_t outer, int64_t inner, Type element) {
      return MemRefType::get({outer, inner}, element);
    };
    Type f32 = Float32Type::get(&getContext());
    Type element = cast<MemRefType>(dot.result.getType()).getElementType();
    SmallVector<Type> arguments;
    std::array<bool, 2> alongK;
    for (unsigned i = 0; i < 2; ++i) {
      int64_t across = i ? dot.columns : dot.rows;
      alongK[i] = dot.alongK[i] || dot.needsTranspose(i);
      arguments.push_back(alongK[i]
                              ? matrix(across, dot.depth, dot.elementOf(i))
                              : matrix(dot.depth, across, dot.elementOf(i)));
    }
    bool scaled = dot.scales[0] != nullptr;
    arguments.append(scaled ? 2 : 0, MemRefType::get({}, f32));
    arguments.push_back(matrix(dot.rows, dot.columns, element));
    arguments.push_back(parts.workspace.type);
    auto plan = CublasLtPlanAttr::get(&getContext(), dot.rows, dot.columns,
                                      dot.depth, alongK[0], alongK[1], scaled,
                                      /*fastAccumulation=*/false,
                                      parts.workspace.type.getNumElements());
    return makeKernel(loc, arguments, {dot.rows, dot.columns}, plan,
                      [&](OpBuilder &builder, ValueRange values) {
                        emitDot(builder, loc, plan, values);
                      });
  }

  /// Emits what the library computes as structured ops.
  void emitDot(OpBuilder &builder, Location loc, CublasLtPlanAttr plan,
               ValueRange arguments) {
    MLIRContext *context = &getContext();
    Type f32 = builder.getF32Type();
    Value result = arguments.drop_back().back(), sums = result;
    auto type = cast<MemRefType>(result.getType());
    ValueRange scales = arguments.slice(2, plan.getScaled() ? 2 : 0);
    bool hasFinish = plan.getScaled() || !type.getElementType().isF32();
    if (hasFinish)
      sums = memref::AllocOp::create(builder, loc,
                                     MemRefType::get(type.getShape(), f32));
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
    linalg::FillOp::create(builder, loc, zero, sums);
    AffineExpr i, j, k;
    bindDims(context, i, j, k);
    auto map = [&](AffineExpr outer, AffineExpr inner, bool alongK) {
      return AffineMap::get(3, 0,
                            alongK ? ArrayRef<AffineExpr>{outer, inner}
                                   : ArrayRef<AffineExpr>{inner, outer},
                            context);
    };
    using utils::IteratorType;
    auto dot = linalg::GenericOp::create(
        builder, loc, arguments.take_front(2), sums,
        ArrayRef<AffineMap>{map(i, k, plan.getLhsAlongK()),
                            map(j, k, plan.getRhsAlongK()), map(i, j, true)},
        ArrayRef<IteratorType>{IteratorType::parallel, IteratorType::parallel,
                               IteratorType::reduction},
        [&](OpBuilder &nested, Location at, ValueRange values) {
          Value lhs = arith::ExtFOp::create(nested, at, f32, values[0]);
          Value rhs = arith::ExtFOp::create(nested, at, f32, values[1]);
          Value product = arith::MulFOp::create(nested, at, lhs, rhs);
          Value sum = arith::AddFOp::create(nested, at, values[2], product);
          linalg::YieldOp::create(nested, at, sum);
        });
    dot->setAttr(FP8Dialect::kTaskDimsAttrName,
                 builder.getDenseI64ArrayAttr({0, 1}));
    if (hasFinish)
      emitFinish(builder, loc, sums, scales, result);
  }

  /// Emits what becomes of the sums: they are multiplied by both scales, if
  /// there are any, and rounded to the type of the result.
  static void emitFinish(OpBuilder &builder, Location loc, Value sums,
                         ValueRange scales, Value result) {
    Type element = cast<MemRefType>(result.getType()).getElementType();
    SmallVector<Value> inputs{sums};
    llvm::append_range(inputs, scales);
    AffineMap identity = builder.getMultiDimIdentityMap(2);
    SmallVector<AffineMap> maps(inputs.size(),
                                AffineMap::get(2, 0, builder.getContext()));
    maps.front() = identity;
    maps.push_back(identity);
    auto finish = linalg::GenericOp::create(
        builder, loc, inputs, result, maps,
        SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
        [&](OpBuilder &nested, Location at, ValueRange values) {
          Value value = values[0];
          if (!scales.empty()) {
            Value scale =
                arith::MulFOp::create(nested, at, values[1], values[2]);
            value = arith::MulFOp::create(nested, at, value, scale);
          }
          if (!element.isF32())
            value = arith::TruncFOp::create(nested, at, element, value);
          linalg::YieldOp::create(nested, at, value);
        });
    finish->setAttr(FP8Dialect::kTaskDimsAttrName,
                    builder.getDenseI64ArrayAttr({0, 1}));
  }

  /// Creates the kernel of the remaining ops; null if there are none. Its
  /// arguments are those in `arguments`, and the library's result if that is
  /// not an argument.
  KernelOp makeRest(KernelOp kernel, const LibraryDot &dot,
                    SmallVectorImpl<unsigned> &arguments) {
    linalg::GenericOp contraction = dot.op;
    SmallVector<Operation *> ops;
    llvm::SetVector<Value> used;
    bool hasWork = false;
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      bool isMoved =
          &op == dot.op || &op == dot.zeros || &op == dot.epilogue ||
          op.getResults() == ValueRange(dot.result) ||
          (dot.epilogue && op.getResults() == contraction.getOutputs());
      if (isMoved)
        continue;
      hasWork |= !isa<memref::AllocOp, arith::ConstantOp>(op);
      ops.push_back(&op);
      op.walk([&](Operation *nested) {
        for (Value operand : nested->getOperands())
          used.insert(operand);
      });
    }
    if (!hasWork)
      return nullptr;
    SmallVector<Type> types;
    for (BlockArgument argument : kernel.getArguments())
      if (used.contains(argument)) {
        arguments.push_back(argument.getArgNumber());
        types.push_back(argument.getType());
      }
    bool isOwn = !isa<BlockArgument>(dot.result);
    if (isOwn)
      types.push_back(dot.result.getType());
    return makeKernel(
        kernel.getLoc(), types, kernel.getDomain(), Attribute(),
        [&](OpBuilder &builder, ValueRange values) {
          IRMapping mapping;
          for (auto [number, value] : llvm::zip(arguments, values))
            mapping.map(kernel.getArgument(number), value);
          if (isOwn)
            mapping.map(dot.result, values.back());
          for (Operation *op : ops)
            // Constants that only the library's part uses are dropped.
            if (op->getNumResults() == 0 || used.contains(op->getResult(0)))
              builder.clone(*op, mapping);
        });
  }

  Parts cut(KernelOp kernel, const LibraryDot &dot) {
    Parts parts;
    parts.dot = dot;
    Location loc = kernel.getLoc();
    int64_t end = 0;
    auto allocate = [&](MemRefType type) {
      ArenaBuffer buffer{end, type};
      end +=
          static_cast<int64_t>(llvm::alignTo(byteSize(type), kBufferAlignment));
      return buffer;
    };
    Type i8 = IntegerType::get(&getContext(), 8);
    parts.workspace =
        allocate(MemRefType::get({workspaceOf(target.getChip())}, i8));
    for (unsigned i = 0; i < 2; ++i)
      if (dot.needsTranspose(i)) {
        parts.transposed[i] = allocate(MemRefType::get(
            {i ? dot.columns : dot.rows, dot.depth}, dot.elementOf(i)));
        parts.transposes[i] = makeTranspose(loc, parts.transposed[i].type);
      }
    if (!isa<BlockArgument>(dot.result))
      parts.result = allocate(cast<MemRefType>(dot.result.getType()));
    parts.library = makeLibrary(parts, loc);
    parts.rest = makeRest(kernel, dot, parts.restArguments);
    sharedBytes = std::max(sharedBytes, end);
    return parts;
  }

  //===--------------------------------------------------------------------===//
  // Launches
  //===--------------------------------------------------------------------===//

  /// Returns a view of `buffer` in another shape.
  static Value reshape(OpBuilder &builder, Value buffer, MemRefType to) {
    auto from = cast<MemRefType>(buffer.getType());
    Location loc = buffer.getLoc();
    if (from == to)
      return buffer;
    ReassociationIndices all =
        llvm::to_vector(llvm::seq<int64_t>(0, from.getRank()));
    Value flat = from.getRank() == 1 ? buffer
                                     : memref::CollapseShapeOp::create(
                                           builder, loc, buffer,
                                           ArrayRef<ReassociationIndices>{all})
                                           .getResult();
    ReassociationIndices both =
        llvm::to_vector(llvm::seq<int64_t>(0, to.getRank()));
    return memref::ExpandShapeOp::create(builder, loc, to, flat,
                                         ArrayRef<ReassociationIndices>{both});
  }

  void replace(LaunchOp launch, Parts &parts) {
    OpBuilder builder(launch);
    Location loc = launch.getLoc();
    auto schedule = launch->getParentOfType<ScheduleOp>();
    auto arenaBytes = static_cast<int64_t>(*schedule.getArenaBytes());
    Arena &arena =
        arenas.try_emplace(schedule, Arena{arenaBytes, 0}).first->second;
    auto begin =
        static_cast<int64_t>(llvm::alignTo(arena.before, kBufferAlignment));
    arena.after = std::max(arena.after, begin + sharedBytes);
    auto viewOf = [&](const ArenaBuffer &buffer, MemRefType type) -> Value {
      Value offset =
          arith::ConstantIndexOp::create(builder, loc, begin + buffer.offset);
      return memref::ViewOp::create(builder, loc, type, schedule.getArena(),
                                    offset, ValueRange{});
    };
    StringRef label = launch.getLabel().value_or("");
    auto start = [&](KernelOp kernel, ValueRange operands, const Twine &text,
                     std::optional<int64_t> number = std::nullopt) {
      auto made = LaunchOp::create(builder, loc, kernel, operands,
                                   builder.getStringAttr(text));
      made.setNumber(number ? *number : nextNumber(schedule));
    };
    const LibraryDot &dot = parts.dot;
    SmallVector<Value> operands;
    for (unsigned i = 0; i < 2; ++i) {
      Value operand = launch.getOperand(dot.operands[i].getArgNumber());
      auto type = cast<MemRefType>(parts.library.getArgumentTypes()[i]);
      if (!parts.transposes[i]) {
        operands.push_back(reshape(builder, operand, type));
        continue;
      }
      Value from =
          reshape(builder, operand,
                  cast<MemRefType>(parts.transposes[i].getArgumentTypes()[0]));
      operands.push_back(viewOf(parts.transposed[i], type));
      start(parts.transposes[i], {from, operands.back()}, "turn for " + label);
    }
    for (BlockArgument scale : dot.scales)
      if (scale)
        operands.push_back(launch.getOperand(scale.getArgNumber()));
    auto resultType =
        cast<MemRefType>(parts.library.getArgumentTypes()[operands.size()]);
    if (parts.result)
      operands.push_back(viewOf(*parts.result, resultType));
    else
      operands.push_back(reshape(
          builder,
          launch.getOperand(cast<BlockArgument>(dot.result).getArgNumber()),
          resultType));
    operands.push_back(viewOf(parts.workspace, parts.workspace.type));
    // The cost report and profiles identify the dot by its number.
    start(parts.library, operands, label, launch.getNumber());
    if (parts.rest) {
      SmallVector<Value> own;
      for (unsigned number : parts.restArguments)
        own.push_back(launch.getOperand(number));
      if (parts.result)
        own.push_back(viewOf(*parts.result, parts.result->type));
      start(parts.rest, own, "rest of " + label);
    }
    launch.erase();
  }

  int64_t nextNumber(ScheduleOp schedule) {
    auto entry = numbers.try_emplace(schedule, 0);
    int64_t &next = entry.first->second;
    if (entry.second)
      schedule.walk([&](Operation *op) {
        llvm::TypeSwitch<Operation *>(op)
            .Case<LaunchOp, StartAllReduceOp, StartExchangeOp>([&](auto op) {
              next = std::max<int64_t>(next, op.getNumber().value_or(-1) + 1);
            });
      });
    return next++;
  }

  struct Arena {
    int64_t before, after;
  };

  static void setArena(ScheduleOp schedule, Arena arena) {
    Value old = schedule.getArena();
    auto type = cast<MemRefType>(old.getType());
    // A view of the whole arena has been folded to the arena itself.
    SmallVector<OpOperand *> whole;
    for (OpOperand &use : old.getUses())
      if (!isa<memref::ViewOp>(use.getOwner()))
        whole.push_back(&use);
    auto larger = MemRefType::get({arena.after}, type.getElementType());
    old.setType(larger);
    for (OpOperand *use : whole) {
      OpBuilder builder(use->getOwner());
      Location loc = use->getOwner()->getLoc();
      Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
      use->set(
          memref::ViewOp::create(builder, loc, type, old, zero, ValueRange{}));
    }
    SmallVector<Type> types(schedule.getArgumentTypes());
    types.front() = larger;
    schedule.setFunctionType(
        FunctionType::get(schedule.getContext(), types, {}));
    schedule.setArenaBytes(arena.after);
  }

  GPUTargetAttr target;
  llvm::StringMap<SmallVector<LaunchOp>> launches; // by kernel
  DenseMap<Operation *, Arena> arenas;             // of schedules
  DenseMap<Operation *, int64_t> numbers;
  int64_t sharedBytes = 0;
  SmallVector<Attribute> rows;
};

} // namespace
