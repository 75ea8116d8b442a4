//===- OneRank.cpp - The program of one rank of a sharded step ------------===//
//
// Outside jax.shard_map, values are whole and the same on all ranks. Inside,
// each rank has its parts: they are sliced on the way in and gathered on the
// way out.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Dialect/StableHLO/IR/Sdy.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_ONERANK
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;

//===----------------------------------------------------------------------===//
// Meshes and shardings, which the dialect keeps as text
//===----------------------------------------------------------------------===//

/// Returns the quoted names, in order.
static SmallVector<StringRef> namesIn(StringRef text) {
  SmallVector<StringRef> names;
  SmallVector<StringRef> pieces;
  text.split(pieces, '"');
  for (size_t i = 1; i < pieces.size(); i += 2)
    names.push_back(pieces[i]);
  return names;
}

/// Returns the texts from `open` to its `close`, for each outermost pair.
static SmallVector<StringRef> groupsIn(StringRef text, char open, char close) {
  SmallVector<StringRef> groups;
  int depth = 0;
  size_t begin = 0;
  for (auto [i, c] : llvm::enumerate(text)) {
    if (c == open && depth++ == 0)
      begin = i;
    else if (c == close && --depth == 0)
      groups.push_back(text.slice(begin, i + 1));
  }
  return groups;
}

namespace {

/// Axes of devices; the last one changes fastest with the device's number.
struct Mesh {
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;

  explicit Mesh(sdy::MeshOp op) : names(namesIn(op.getMesh().getText())) {
    for (StringRef piece :
         llvm::drop_begin(llvm::split(op.getMesh().getText(), '='))) {
      int64_t size = 1;
      piece.consumeInteger(10, size);
      sizes.push_back(size);
    }
  }

  /// Returns the index of a device along axes, the first of which is the
  /// slowest.
  int64_t position(int64_t device, ArrayRef<unsigned> axes) const {
    int64_t position = 0;
    for (unsigned axis : axes) {
      int64_t stride = llvm::product_of(ArrayRef(sizes).drop_front(axis + 1));
      position = position * sizes[axis] + device / stride % sizes[axis];
    }
    return position;
  }
};

/// The axes that split each dimension of a tensor.
struct Sharding {
  std::optional<Mesh> mesh; // none: every dimension is whole
  SmallVector<SmallVector<unsigned>> axes;

  int64_t countOf(size_t dim) const {
    int64_t count = 1;
    for (unsigned axis : axes[dim])
      count *= mesh->sizes[axis];
    return count;
  }
};

/// Replaces one manual computation by ops on parts.
class ManualComputationLowering {
public:
  ManualComputationLowering(sdy::ManualComputationOp op, int64_t devices)
      : op(op), devices(devices), builder(op), loc(op.getLoc()) {}

  LogicalResult run();

private:
  FailureOr<SmallVector<Sharding>> parse(StringRef list, TypeRange wholes,
                                         TypeRange parts);
  FailureOr<Sharding> parseOne(StringRef text, RankedTensorType whole,
                               RankedTensorType part);
  LogicalResult checkManualAxes();
  bool isRows(const Sharding &sharding, Value operand);
  Value deviceNumber();
  SmallVector<int32_t> offsetsOf(const Sharding &sharding, size_t dim,
                                 int64_t size) const;
  Value offsetOf(const Sharding &sharding, size_t dim, int64_t size);
  Value cut(const Sharding &sharding, Value whole, RankedTensorType part);
  Value gather(const Sharding &sharding, Value part);

  sdy::ManualComputationOp op;
  int64_t devices;
  OpBuilder builder;
  Location loc;
  Value number;
};

} // namespace

FailureOr<Sharding> ManualComputationLowering::parseOne(StringRef text,
                                                        RankedTensorType whole,
                                                        RankedTensorType part) {
  auto error = [&](const Twine &what) {
    return op.emitOpError("expected ") << what << " but got " << text;
  };
  Sharding sharding;
  sharding.axes.resize(whole.getRank());
  SmallVector<StringRef> names = namesIn(text);
  if (names.empty() && whole == part)
    return sharding;
  for (auto mesh : op->getParentOfType<ModuleOp>().getOps<sdy::MeshOp>()) {
    StringRef name = mesh.getSymName();
    if (!text.starts_with(("<@" + name + ",").str()) &&
        !text.starts_with(("<@\"" + name + "\",").str()))
      continue;
    if (mesh.getMesh().getText().contains("device_ids") ||
        mesh.getMesh().getNumDevices() != devices)
      return mesh.emitOpError("expected a mesh of all ")
             << devices << " devices, in their order";
    sharding.mesh = Mesh(mesh);
  }
  if (!sharding.mesh)
    return error("a sharding over a mesh of the module");
  SmallVector<StringRef> lists = groupsIn(text, '[', ']');
  if (lists.size() != 1 || text.contains(':') || text.contains("unreduced"))
    return error("a sharding over whole axes");
  SmallVector<StringRef> dims = groupsIn(lists.front(), '{', '}');
  if (static_cast<int64_t>(dims.size()) != whole.getRank())
    return error("a sharding of " + Twine(whole.getRank()) + " dimensions");
  for (auto [dim, list] : llvm::enumerate(dims)) {
    for (StringRef name : namesIn(list)) {
      auto *axis = llvm::find(sharding.mesh->names, name);
      if (axis == sharding.mesh->names.end())
        return error("axes of the mesh");
      sharding.axes[dim].push_back(axis - sharding.mesh->names.begin());
    }
    if (part.getDimSize(dim) * sharding.countOf(dim) != whole.getDimSize(dim))
      return op.emitOpError("expected dimension ")
             << dim << " of " << whole << " in " << sharding.countOf(dim)
             << " parts but got " << part;
  }
  return sharding;
}

FailureOr<SmallVector<Sharding>>
ManualComputationLowering::parse(StringRef list, TypeRange wholes,
                                 TypeRange parts) {
  SmallVector<StringRef> texts = groupsIn(list, '<', '>');
  if (texts.size() != wholes.size() || parts.size() != wholes.size())
    return op.emitOpError("expected ")
           << wholes.size() << " shardings but got " << list;
  SmallVector<Sharding> shardings;
  for (auto [text, whole, part] : llvm::zip(texts, wholes, parts)) {
    FailureOr<Sharding> sharding = parseOne(text, cast<RankedTensorType>(whole),
                                            cast<RankedTensorType>(part));
    if (failed(sharding))
      return failure();
    shardings.push_back(*sharding);
  }
  return shardings;
}

/// Checks that all axes are manual: over other axes the body would have to be
/// partitioned automatically.
LogicalResult ManualComputationLowering::checkManualAxes() {
  SmallVector<StringRef> manual = namesIn(op.getManualAxes().getText());
  for (auto op : op->getParentOfType<ModuleOp>().getOps<sdy::MeshOp>()) {
    Mesh mesh(op);
    if (!llvm::is_contained(mesh.names, manual.empty() ? "" : manual.front()))
      continue;
    for (auto [name, size] : llvm::zip(mesh.names, mesh.sizes))
      if (size > 1 && !llvm::is_contained(manual, name))
        return this->op.emitOpError("expected jax.shard_map to be manual over "
                                    "all axes of the mesh but got none for '")
               << name << "'";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Parts of values
//===----------------------------------------------------------------------===//

/// Whether the operand is an argument of the step that nothing else reads, and
/// whose rows are split over all axes in order. If it is a batch, a rank does
/// not need the other ranks' rows.
bool ManualComputationLowering::isRows(const Sharding &sharding,
                                       Value operand) {
  auto argument = dyn_cast<BlockArgument>(operand);
  if (!sharding.mesh || !argument || !argument.hasOneUse())
    return false;
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto all =
      llvm::to_vector(llvm::seq<unsigned>(0, sharding.mesh->names.size()));
  return func && func.isPublic() && !sharding.axes.empty() &&
         sharding.axes[0] == all &&
         llvm::all_of(ArrayRef(sharding.axes).drop_front(),
                      [](ArrayRef<unsigned> axes) { return axes.empty(); });
}

Value ManualComputationLowering::deviceNumber() {
  if (!number) {
    auto type = RankedTensorType::get({}, builder.getIntegerType(32, false));
    number = stablehlo::ConvertOp::create(
        builder, loc, stablehlo::PartitionIdOp::create(builder, loc, type),
        builder.getI32Type());
  }
  return number;
}

/// Returns the start of each device's part of a dimension, for parts of `size`.
SmallVector<int32_t>
ManualComputationLowering::offsetsOf(const Sharding &sharding, size_t dim,
                                     int64_t size) const {
  SmallVector<int32_t> offsets(devices, 0);
  if (sharding.countOf(dim) > 1)
    for (int64_t device = 0; device < devices; ++device)
      offsets[device] =
          sharding.mesh->position(device, sharding.axes[dim]) * size;
  return offsets;
}

/// Returns the start of this rank's part of a dimension, for parts of `size`.
Value ManualComputationLowering::offsetOf(const Sharding &sharding, size_t dim,
                                          int64_t size) {
  auto constant = [&](ArrayRef<int64_t> shape, ArrayRef<int32_t> values) {
    auto type = RankedTensorType::get(shape, builder.getI32Type());
    return stablehlo::ConstantOp::create(builder, loc,
                                         DenseElementsAttr::get(type, values));
  };
  if (sharding.countOf(dim) == 1)
    return constant({}, 0);
  Value table = constant({devices}, offsetsOf(sharding, dim, size));
  auto one = RankedTensorType::get({1}, builder.getI32Type());
  Value offset = stablehlo::DynamicSliceOp::create(
      builder, loc, one, table, ValueRange{deviceNumber()},
      builder.getDenseI64ArrayAttr({1}));
  return stablehlo::ReshapeOp::create(
      builder, loc, RankedTensorType::get({}, builder.getI32Type()), offset);
}

/// Slices this rank's part off a value that all ranks have.
Value ManualComputationLowering::cut(const Sharding &sharding, Value whole,
                                     RankedTensorType part) {
  if (whole.getType() == part)
    return whole;
  SmallVector<Value> offsets;
  int64_t rank = part.getRank();
  SmallVector<int64_t> table(devices * rank);
  for (auto [dim, size] : llvm::enumerate(part.getShape())) {
    offsets.push_back(offsetOf(sharding, dim, size));
    for (auto [device, offset] :
         llvm::enumerate(offsetsOf(sharding, dim, size)))
      table[device * rank + dim] = offset;
  }
  auto slice = stablehlo::DynamicSliceOp::create(
      builder, loc, part, whole, offsets,
      builder.getDenseI64ArrayAttr(part.getShape()));
  auto type = cast<RankedTensorType>(whole.getType());
  auto tableType = RankedTensorType::get({devices, rank}, builder.getI64Type());
  slice->setAttr(stablehlo::kPartAttrName,
                 stablehlo::makePart(type.getShape(), DenseIntElementsAttr::get(
                                                          tableType, table)));
  return slice;
}

/// Gathers the parts of all ranks.
Value ManualComputationLowering::gather(const Sharding &sharding, Value part) {
  for (size_t dim = 0; dim < sharding.axes.size(); ++dim) {
    int64_t count = sharding.countOf(dim);
    if (count == 1)
      continue;
    SmallVector<unsigned> others;
    for (unsigned axis = 0; axis < sharding.mesh->names.size(); ++axis)
      if (!llvm::is_contained(sharding.axes[dim], axis))
        others.push_back(axis);
    SmallVector<int64_t> groups(devices);
    for (int64_t device = 0; device < devices; ++device)
      groups[sharding.mesh->position(device, others) * count +
             sharding.mesh->position(device, sharding.axes[dim])] = device;
    auto type = cast<RankedTensorType>(part.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] *= count;
    auto groupsType =
        RankedTensorType::get({devices / count, count}, builder.getI64Type());
    NamedAttribute attributes[] = {
        builder.getNamedAttr("all_gather_dim", builder.getI64IntegerAttr(dim)),
        builder.getNamedAttr("replica_groups",
                             DenseIntElementsAttr::get(groupsType, groups))};
    part = stablehlo::AllGatherOp::create(builder, loc,
                                          TypeRange{type.clone(shape)},
                                          ValueRange{part}, attributes)
               .getResult(0);
  }
  return part;
}

LogicalResult ManualComputationLowering::run() {
  Block &body = op.getBody().front();
  Operation *end = body.getTerminator();
  FailureOr<SmallVector<Sharding>> in =
      parse(op.getInShardings().getText(), op.getOperandTypes(),
            body.getArgumentTypes());
  if (failed(in))
    return failure();
  FailureOr<SmallVector<Sharding>> out =
      parse(op.getOutShardings().getText(), op.getResultTypes(),
            end->getOperandTypes());
  if (failed(out) || failed(checkManualAxes()))
    return failure();
  for (auto [argument, operand, sharding] :
       llvm::zip(body.getArguments(), op->getOpOperands(), *in)) {
    Value whole = operand.get();
    auto type = cast<RankedTensorType>(argument.getType());
    if (isRows(sharding, whole)) {
      auto rows = cast<BlockArgument>(whole);
      cast<func::FuncOp>(rows.getOwner()->getParentOp())
          .setArgAttr(rows.getArgNumber(), stablehlo::kRowsAttrName,
                      builder.getUnitAttr());
    }
    argument.replaceAllUsesWith(cut(sharding, whole, type));
  }
  SmallVector<Value> parts(end->getOperands());
  end->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         body.getOperations());
  for (auto [result, part, sharding] : llvm::zip(op.getResults(), parts, *out))
    result.replaceAllUsesWith(gather(sharding, part));
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Into how many parts a jit splits each dimension of a value: 1 if it is
/// whole, 2 or more otherwise (of a mesh the text alone does not tell how
/// many).
static SmallVector<int64_t> splitsOf(Attribute attr) {
  SmallVector<int64_t> splits;
  if (auto sharding = dyn_cast_or_null<sdy::TensorShardingAttr>(attr)) {
    SmallVector<StringRef> lists = groupsIn(sharding.getText(), '[', ']');
    if (!lists.empty())
      for (StringRef dim : groupsIn(lists.front(), '{', '}'))
        splits.push_back(namesIn(dim).empty() ? 1 : 2);
    return splits;
  }
  auto text = dyn_cast_or_null<StringAttr>(attr);
  StringRef tiles = text ? text.getValue().split("devices=[").second : "";
  for (StringRef tile : llvm::split(tiles.split(']').first, ',')) {
    int64_t parts = 1;
    tile.consumeInteger(10, parts);
    splits.push_back(parts);
  }
  // Devices that hold the same part.
  if (tiles.contains("last_tile_dim_replicate"))
    splits.pop_back();
  return splits;
}

static SmallVector<int64_t> splitsOf(DictionaryAttr attributes) {
  for (StringRef name : {"sdy.sharding", "mhlo.sharding"})
    if (Attribute attr = attributes ? attributes.get(name) : Attribute())
      return splitsOf(attr);
  return {};
}

static bool isSplit(ArrayRef<int64_t> splits) {
  return llvm::any_of(splits, [](int64_t parts) { return parts != 1; });
}

namespace {
class OneRank : public stablehlo::impl::OneRankBase<OneRank> {
public:
  void runOnOperation() override {
    auto partitions =
        getOperation()->getAttrOfType<IntegerAttr>("mhlo.num_partitions");
    int64_t devices = partitions ? partitions.getInt() : 1;
    SmallVector<sdy::ManualComputationOp> computations;
    getOperation().walk(
        [&](sdy::ManualComputationOp op) { computations.push_back(op); });
    // On one device stablehlo-drop-sharding is enough.
    if (devices <= 1)
      return;
    if (computations.empty()) {
      if (failed(shareBatch(devices)))
        signalPassFailure();
      return;
    }
    for (sdy::ManualComputationOp op : computations) {
      if (op->getParentOfType<sdy::ManualComputationOp>()) {
        op.emitOpError("expected one jax.shard_map over all axes but got one "
                       "inside of another");
        return signalPassFailure();
      }
      if (failed(ManualComputationLowering(op, devices).run()))
        return signalPassFailure();
    }
    Builder builder(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func.isPublic())
        func->setAttr(stablehlo::kDevicesAttrName,
                      builder.getI64IntegerAttr(devices));
  }

private:
  LogicalResult shareBatch(int64_t devices);
};
} // namespace

/// Handles a step that XLA would partition itself. If it splits the rows of its
/// arguments alone, devices share a batch. Where values lie in between is not
/// what the step computes.
LogicalResult OneRank::shareBatch(int64_t devices) {
  auto error = [&](Location loc) {
    return emitError(loc)
           << "a jit that splits more over " << devices
           << " devices than the rows of its batch does not run on ranks: "
              "write the step in jax.shard_map, which says what each device "
              "does, or leave its state whole (fp8-run --data-parallel --zero "
              "1 deals masters and moments to the ranks)";
  };
  Builder builder(&getContext());
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      if (isSplit(splitsOf(func.getResultAttrDict(i))))
        return error(func.getLoc());
    bool hasRows = false;
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      SmallVector<int64_t> splits = splitsOf(func.getArgAttrDict(i));
      if (!isSplit(splits))
        continue;
      if (isSplit(ArrayRef(splits).drop_front()))
        return error(func.isExternal() ? func.getLoc()
                                       : func.getArgument(i).getLoc());
      hasRows = true;
      func.setArgAttr(i, stablehlo::kRowsAttrName, builder.getUnitAttr());
    }
    if (hasRows && func.isPublic())
      func->setAttr(stablehlo::kSharingAttrName,
                    builder.getI64IntegerAttr(devices));
  }
  return success();
}
