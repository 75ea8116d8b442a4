//===- TestContraction.cpp - A pass that emits contractions ---------------===//
//
// Replaces every contraction on memrefs by loops over tiles, so that tests can
// check and measure the emitted code by itself. Only fp8-opt has this pass: no
// pipeline emits contractions outside of kernels.
//
//===----------------------------------------------------------------------===//

#include "TestPasses.h"

#include "fp8/Codegen/Contraction.h"
#include "fp8/Support/InternalErrors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// How much longer the extent of an open loop is than its end.
constexpr int64_t kBehindEnd = 64;

struct TestContraction
    : PassWrapper<TestContraction, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestContraction)

  TestContraction() = default;
  TestContraction(const TestContraction &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-fp8-contraction"; }
  StringRef getDescription() const final {
    return "Emit contractions on memrefs as packed vector loops";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect,
                    vector::VectorDialect, x86vector::X86VectorDialect,
                    LLVM::LLVMDialect>();
  }

  void runOnOperation() override {
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) {
      if (op.hasPureBufferSemantics() && succeeded(inferContractionDims(op)))
        ops.push_back(op);
    });
    for (linalg::GenericOp op : ops)
      if (failed(lower(op)))
        return signalPassFailure();
  }

  TargetInfo getTarget() {
    TargetInfo target;
    if (vectorBits == 0) {
      target = TargetInfo::of(
          llvm::cantFail(makeCPUTarget(&getContext(), "native")));
    } else {
      target.vectorBits = vectorBits;
      target.hasFMA = vectorBits > 128;
      target.hasAVX512BF16 = bf16;
      target.hasVBMI = vbmi;
    }
    target.emulateBF16Dots = emulate;
    target.hasAMXBF16 = amx;
    target.emulateAMX = emulateAMX;
    return target;
  }

  LogicalResult lower(linalg::GenericOp op) {
    TargetInfo target = getTarget();
    ContractionDims dims = *inferContractionDims(op);
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    SmallVector<int64_t> sizes = extents;
    if (tileM > 0 && !dims.m.empty())
      sizes[dims.m.back()] = std::min<int64_t>(tileM, sizes[dims.m.back()]);
    if (tileN > 0 && !dims.n.empty())
      sizes[dims.n.back()] = std::min<int64_t>(tileN, sizes[dims.n.back()]);
    if (tileBatch)
      for (unsigned d : dims.batch)
        sizes[d] = 1;

    // A smaller tile may need more scratch than the largest one, so check each.
    OpBuilder builder(op);
    SmallVector<SmallVector<int64_t>> variants = {sizes};
    for (unsigned d = 0; d < sizes.size(); ++d)
      if (int64_t rest = extents[d] % sizes[d])
        for (unsigned i = 0, e = variants.size(); i < e; ++i) {
          variants.push_back(variants[i]);
          variants.back()[d] = rest;
        }
    int64_t bytes = 0;
    for (ArrayRef<int64_t> variant : variants)
      bytes = std::max(bytes, contractionScratchBytes(op, variant, target, {},
                                                      openLoopOf(dims)));
    Location loc = op.getLoc();
    Value scratch = memref::AllocOp::create(
        builder, loc, MemRefType::get({bytes}, builder.getI8Type()),
        builder.getI64IntegerAttr(64));
    SmallVector<Value> offsets(extents.size());
    if (failed(tile(builder, op, extents, sizes, target, scratch, offsets, 0)))
      return failure();
    memref::DeallocOp::create(builder, loc, scratch);
    op.erase();
    return success();
  }

  /// Returns the loop that is to be open, if there is one.
  std::optional<OpenLoop> openLoopOf(const ContractionDims &dims) {
    if (open.empty())
      return std::nullopt;
    ArrayRef<unsigned> group = open == "m"   ? dims.m
                               : open == "n" ? dims.n
                                             : dims.k;
    return OpenLoop{group.back(), nullptr};
  }

  /// Returns `end` from memory, where no pass of MLIR finds it.
  static Value hide(OpBuilder &builder, Location loc, int64_t end) {
    Value place = memref::AllocaOp::create(
        builder, loc, MemRefType::get({}, builder.getIndexType()));
    Value value = arith::ConstantIndexOp::create(builder, loc, end);
    memref::StoreOp::create(builder, loc, value, place, ValueRange());
    return memref::LoadOp::create(builder, loc, place, ValueRange());
  }

  LogicalResult tile(OpBuilder &builder, linalg::GenericOp op,
                     ArrayRef<int64_t> extents, SmallVector<int64_t> sizes,
                     const TargetInfo &target, Value scratch,
                     SmallVector<Value> &offsets, unsigned d) {
    Location loc = op.getLoc();
    auto cst = [&](int64_t v) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, v);
    };
    if (d == extents.size())
      return emitTile(builder, op, sizes, target, scratch, offsets);
    int64_t full = extents[d] / sizes[d] * sizes[d];
    if (full == sizes[d]) {
      offsets[d] = cst(0);
      if (failed(tile(builder, op, extents, sizes, target, scratch, offsets,
                      d + 1)))
        return failure();
    } else {
      auto loop =
          scf::ForOp::create(builder, loc, cst(0), cst(full), cst(sizes[d]));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      offsets[d] = loop.getInductionVar();
      if (failed(tile(builder, op, extents, sizes, target, scratch, offsets,
                      d + 1)))
        return failure();
    }
    if (full == extents[d])
      return success();
    offsets[d] = cst(full);
    sizes[d] = extents[d] - full;
    return tile(builder, op, extents, sizes, target, scratch, offsets, d + 1);
  }

  LogicalResult emitTile(OpBuilder &builder, linalg::GenericOp op,
                         ArrayRef<int64_t> sizes, const TargetInfo &target,
                         Value scratch, ArrayRef<Value> offsets) {
    Location loc = op.getLoc();
    ContractionTile tile;
    tile.op = op;
    tile.offsets.assign(offsets.begin(), offsets.end());
    tile.sizes.assign(sizes.begin(), sizes.end());
    tile.scratch = scratch;
    tile.open = openLoopOf(*inferContractionDims(op));
    if (tile.open)
      tile.open->end = hide(builder, loc, sizes[tile.open->loop] - kBehindEnd);
    tile.out = op.getDpsInits()[0];
    if (!localOut)
      return emitContraction(builder, loc, tile, target);
    // Compute into a local buffer of the tile, and copy it out element by
    // element.
    AffineMap map = op.getIndexingMapsArray().back();
    SmallVector<int64_t> shape;
    SmallVector<Value> first;
    for (AffineExpr expr : map.getResults()) {
      unsigned d = cast<AffineDimExpr>(expr).getPosition();
      shape.push_back(sizes[d]);
      first.push_back(offsets[d]);
    }
    Value out = tile.out;
    tile.out = memref::AllocOp::create(
        builder, loc, MemRefType::get(shape, builder.getF32Type()));
    tile.outIsLocal = true;
    if (failed(emitContraction(builder, loc, tile, target)))
      return failure();
    SmallVector<Value> zeros, ends, steps;
    for (int64_t size : shape) {
      zeros.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
      ends.push_back(arith::ConstantIndexOp::create(builder, loc, size));
      steps.push_back(arith::ConstantIndexOp::create(builder, loc, 1));
    }
    scf::buildLoopNest(builder, loc, zeros, ends, steps,
                       [&](OpBuilder &b, Location loc, ValueRange indices) {
                         Value x =
                             memref::LoadOp::create(b, loc, tile.out, indices);
                         SmallVector<Value> to;
                         for (auto [i, o] : llvm::zip(indices, first))
                           to.push_back(arith::AddIOp::create(b, loc, i, o));
                         memref::StoreOp::create(b, loc, x, out, to);
                       });
    memref::DeallocOp::create(builder, loc, tile.out);
    return success();
  }

  Option<int64_t> tileM{
      *this, "tile-m", llvm::cl::init(0),
      llvm::cl::desc("Tile of the last m dimension (0: all)")};
  Option<int64_t> tileN{
      *this, "tile-n", llvm::cl::init(0),
      llvm::cl::desc("Tile of the last n dimension (0: all)")};
  Option<std::string> open{
      *this, "open",
      llvm::cl::desc(
          "Group whose last dimension ends at run time, 64 before "
          "its extent: m, n or k; the extent must be a multiple of 32")};
  Option<bool> tileBatch{*this, "tile-batch", llvm::cl::init(false),
                         llvm::cl::desc("One tile per batch element")};
  Option<bool> localOut{*this, "local-out", llvm::cl::init(false),
                        llvm::cl::desc("Emit into a local buffer")};
  Option<unsigned> vectorBits{
      *this, "vector-bits", llvm::cl::init(0),
      llvm::cl::desc("Width of the vectors (0: as on the host)")};
  Option<bool> bf16{*this, "avx512-bf16", llvm::cl::init(false),
                    llvm::cl::desc("The target has bf16 dots")};
  Option<bool> vbmi{*this, "avx512-vbmi", llvm::cl::init(false),
                    llvm::cl::desc("The target has byte permutes")};
  Option<bool> emulate{*this, "emulate-bf16-dots", llvm::cl::init(false),
                       llvm::cl::desc("Compute bf16 dots from FMAs")};
  Option<bool> amx{*this, "amx-bf16", llvm::cl::init(false),
                   llvm::cl::desc("The target has tiles of bf16")};
  Option<bool> emulateAMX{*this, "emulate-amx", llvm::cl::init(false),
                          llvm::cl::desc("Compute tiles of bf16 from FMAs")};
};

} // namespace

void mlir::fp8::test::registerTestContractionPass() {
  fp8::registerOwnPass([] { return std::make_unique<TestContraction>(); });
}
