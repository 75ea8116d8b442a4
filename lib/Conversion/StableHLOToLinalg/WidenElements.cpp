//===- WidenElements.cpp - Elements of less than a byte -------------------===//
//
// LLVM packs the elements of a vector of i4 in memory, but not those that it
// loads and stores one by one. So buffers have at least a byte for each
// element: the tensors of this stage become tensors of bytes, of which the
// bodies of kernels read and write the low bits.
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_WIDENELEMENTS
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// Returns true for elements of less than a byte. (Later stages store booleans
/// as bytes.)
static bool isNarrow(Type element) {
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() < 8 &&
         !element.isInteger(1);
}

/// Returns the type with bytes for narrow elements.
static Type inBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isNarrow(tensor.getElementType())
             ? tensor.clone(IntegerType::get(type.getContext(), 8))
             : type;
}

/// Returns the elements as bytes.
static DenseElementsAttr inBytes(DenseElementsAttr elements) {
  auto type = cast<RankedTensorType>(elements.getType());
  unsigned width = type.getElementTypeBitWidth();
  auto integers = elements.bitcast(IntegerType::get(type.getContext(), width));
  return integers.mapValues(IntegerType::get(type.getContext(), 8),
                            [](const APInt &bits) { return bits.zext(8); });
}

namespace {

class Widening {
public:
  explicit Widening(func::FuncOp func) : func(func), b(func) {}

  void run() {
    func.walk([&](Operation *op) {
      if (auto fill = dyn_cast<linalg::FillOp>(op))
        widenFill(fill);
      else if (auto generic = dyn_cast<linalg::GenericOp>(op))
        widenGeneric(generic);
      else
        widenAccess(op);
    });
    func.walk([&](Block *block) { widenTypes(block->getArguments()); });
    func.walk([&](Operation *op) {
      auto constant = dyn_cast<arith::ConstantOp>(op);
      if (constant && constant.getType() != inBytes(constant.getType()))
        constant.setValueAttr(
            inBytes(cast<DenseElementsAttr>(constant.getValue())));
      widenTypes(op->getResults());
    });
    auto typesOf = [](TypeRange types) {
      return llvm::map_to_vector(types,
                                 [](Type type) { return inBytes(type); });
    };
    FunctionType type = func.getFunctionType();
    func.setType(b.getFunctionType(typesOf(type.getInputs()),
                                   typesOf(type.getResults())));
  }

private:
  static void widenTypes(ValueRange values) {
    for (Value value : values)
      value.setType(inBytes(value.getType()));
  }

  Value toByte(Value value) {
    auto bits = b.getIntegerType(value.getType().getIntOrFloatBitWidth());
    Location loc = value.getLoc();
    if (value.getType() != bits)
      value = b.createOrFold<arith::BitcastOp>(loc, bits, value);
    return b.createOrFold<arith::ExtUIOp>(loc, b.getI8Type(), value);
  }

  /// Makes `value`, a narrow element, a byte, which its readers truncate.
  void readByte(Value value) {
    Type type = value.getType();
    if (!isNarrow(type))
      return;
    value.setType(b.getI8Type());
    // Output arguments without uses say that what is overwritten is not read.
    if (value.use_empty())
      return;
    auto bits = b.getIntegerType(type.getIntOrFloatBitWidth());
    auto low = arith::TruncIOp::create(b, value.getLoc(), bits, value);
    Value element = low;
    if (type != bits)
      element = arith::BitcastOp::create(b, value.getLoc(), type, low);
    value.replaceAllUsesExcept(element, low);
  }

  void writeByte(OpOperand &operand) {
    if (isNarrow(operand.get().getType()))
      operand.set(toByte(operand.get()));
  }

  void widenFill(linalg::FillOp fill) {
    b.setInsertionPoint(fill);
    Type element = fill.getDpsInputOperand(0)->get().getType();
    if (!isNarrow(element))
      return;
    writeByte(*fill.getDpsInputOperand(0));
    // Its body stores the byte as it is.
    for (BlockArgument argument : fill.getBlock()->getArguments())
      argument.setType(b.getI8Type());
  }

  void widenGeneric(linalg::GenericOp generic) {
    for (BlockArgument argument : generic.getBody()->getArguments()) {
      b.setInsertionPointToStart(generic.getBody());
      readByte(argument);
    }
    Operation *yield = generic.getBody()->getTerminator();
    b.setInsertionPoint(yield);
    for (OpOperand &operand : yield->getOpOperands())
      writeByte(operand);
  }

  /// Widens the elements that `op` moves between tensors and scalars.
  void widenAccess(Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      b.setInsertionPointAfter(extract);
      readByte(extract.getResult());
    } else if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
      b.setInsertionPoint(insert);
      writeByte(insert.getScalarMutable());
    } else if (isa<tensor::FromElementsOp>(op)) {
      b.setInsertionPoint(op);
      for (OpOperand &operand : op->getOpOperands())
        writeByte(operand);
    }
  }

  func::FuncOp func;
  OpBuilder b;
};

struct WidenElementsPass : fp8::impl::WidenElementsBase<WidenElementsPass> {
  void runOnOperation() override {
    getOperation()->walk([](func::FuncOp func) { Widening(func).run(); });
  }
};

} // namespace
