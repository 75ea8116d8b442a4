//===- StableHLODialect.cpp - StableHLO subset dialect --------------------===//

#include "UnsupportedOps.h"

#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace mlir::stablehlo;

#include "fp8/Dialect/StableHLO/IR/StableHLODialect.cpp.inc"

namespace {

/// Allows all inlining: private functions are only JAX's way to share code.
struct StableHLOInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Operation *, bool) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

/// StableHLO ops outside of the subset.
struct UnsupportedNames {
  static constexpr StringLiteral list[] = {
      "stablehlo.after_all",
      "stablehlo.async_done",
      "stablehlo.async_start",
      "stablehlo.batch_norm_grad",
      "stablehlo.batch_norm_inference",
      "stablehlo.batch_norm_training",
      "stablehlo.broadcast",
      "stablehlo.cholesky",
      "stablehlo.complex",
      "stablehlo.create_token",
      "stablehlo.cross-replica-sum",
      "stablehlo.dot",
      "stablehlo.dynamic_broadcast_in_dim",
      "stablehlo.dynamic_conv",
      "stablehlo.dynamic_gather",
      "stablehlo.dynamic_iota",
      "stablehlo.dynamic_pad",
      "stablehlo.dynamic_reshape",
      "stablehlo.einsum",
      "stablehlo.fft",
      "stablehlo.get_dimension_size",
      "stablehlo.get_tuple_element",
      "stablehlo.imag",
      "stablehlo.infeed",
      "stablehlo.outfeed",
      "stablehlo.real",
      "stablehlo.real_dynamic_slice",
      "stablehlo.recv",
      "stablehlo.rng",
      "stablehlo.send",
      "stablehlo.set_dimension_size",
      "stablehlo.torch_index_select",
      "stablehlo.triangular_solve",
      "stablehlo.tuple",
      "stablehlo.unary_einsum",
      "stablehlo.uniform_dequantize",
      "stablehlo.uniform_quantize",
  };
};

} // namespace

void StablehloDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "fp8/Dialect/StableHLO/IR/StableHLOOps.cpp.inc"
      >();
  addUnsupportedOps<UnsupportedNames>(
      [&](auto *op) { addOperations<std::remove_pointer_t<decltype(op)>>(); },
      std::make_index_sequence<std::size(UnsupportedNames::list)>());
  registerAttributes();
  addInterfaces<StableHLOInlinerInterface>();
}

Operation *StablehloDialect::materializeConstant(OpBuilder &builder,
                                                 Attribute value, Type type,
                                                 Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

ParseResult stablehlo::emitUnsupported(OpAsmParser &parser, StringRef name) {
  return emitError(parser.getEncodedSourceLoc(parser.getNameLoc()),
                   getUnsupportedMessage(name));
}

Dialect::ParseOpHook stablehlo::getUnknownOpHook() {
  static constexpr auto hook = [](OpAsmParser &parser,
                                  OperationState &state) -> ParseResult {
    return emitUnsupported(parser, state.name.getStringRef());
  };
  return hook;
}

std::optional<Dialect::ParseOpHook>
StablehloDialect::getParseOperationHook(StringRef) const {
  return getUnknownOpHook();
}
