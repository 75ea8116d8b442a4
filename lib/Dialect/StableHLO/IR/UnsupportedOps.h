//===- UnsupportedOps.h - Ops that are known but not supported --*- C++ -*-===//
//
// Ops outside the subset are registered, too. In the pretty and in the generic
// form, using one gives a single error that names it and points to the list of
// supported ops. (For a name that no dialect registers, the generic form gives
// MLIR's own error.)
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_STABLEHLO_IR_UNSUPPORTEDOPS_H
#define FP8_LIB_DIALECT_STABLEHLO_IR_UNSUPPORTEDOPS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace stablehlo {

/// Emits the error at the op's name; the parser's own `emitError` would repeat
/// the name.
ParseResult emitUnsupported(OpAsmParser &parser, StringRef name);

/// `Names` has a constexpr array `list` of full op names.
template <typename Names, size_t index>
class UnsupportedOp
    : public Op<UnsupportedOp<Names, index>, ::mlir::OpTrait::VariadicRegions,
                ::mlir::OpTrait::VariadicResults,
                ::mlir::OpTrait::VariadicOperands> {
public:
  using Base =
      Op<UnsupportedOp<Names, index>, ::mlir::OpTrait::VariadicRegions,
         ::mlir::OpTrait::VariadicResults, ::mlir::OpTrait::VariadicOperands>;
  using Base::Base;

  static constexpr StringLiteral getOperationName() {
    return Names::list[index];
  }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  LogicalResult verify() {
    return (*this)->emitError(getUnsupportedMessage(getOperationName()));
  }
  static ParseResult parse(OpAsmParser &parser, OperationState &) {
    return emitUnsupported(parser, getOperationName());
  }
  void print(OpAsmPrinter &printer) {
    printer.printGenericOp(*this, /*printOpName=*/false);
  }

  // Accept properties of any kind, so that the generic form reaches the
  // verifier, too.
  struct Properties {
    Attribute attr;
    bool operator==(const Properties &other) const {
      return attr == other.attr;
    }
    bool operator!=(const Properties &other) const { return !(*this == other); }
  };
  static LogicalResult
  setPropertiesFromAttr(Properties &properties, Attribute attr,
                        function_ref<InFlightDiagnostic()>) {
    properties.attr = attr;
    return success();
  }
  static Attribute getPropertiesAsAttr(MLIRContext *,
                                       const Properties &properties) {
    return properties.attr;
  }
  static llvm::hash_code computePropertiesHash(const Properties &properties) {
    return hash_value(properties.attr);
  }
  static std::optional<Attribute>
  getInherentAttr(MLIRContext *, const Properties &, StringRef) {
    return std::nullopt;
  }
  static void setInherentAttr(Properties &, StringRef, Attribute) {}
  static void populateInherentAttrs(MLIRContext *, const Properties &,
                                    NamedAttrList &) {}
  static LogicalResult verifyInherentAttrs(OperationName, NamedAttrList &,
                                           function_ref<InFlightDiagnostic()>) {
    return success();
  }
};

/// The op classes of all `Names`, as a pack for `addOperations`.
template <typename Names, typename AddFn, size_t... indices>
void addUnsupportedOps(AddFn &&add, std::index_sequence<indices...>) {
  (add(static_cast<UnsupportedOp<Names, indices> *>(nullptr)), ...);
}

/// Returns the hook for the pretty form of an op that is not registered at all.
Dialect::ParseOpHook getUnknownOpHook();

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_IR_UNSUPPORTEDOPS_H
