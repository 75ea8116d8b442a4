//===- VerdictAttr.cpp - Attributes of verdicts ---------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether the operands of a linear layer's dot have the kinds that its role
/// requires.
static bool haveKindsOf(DotRole role, OperandKind lhs, OperandKind rhs) {
  auto are = [&](OperandKind a, OperandKind b) {
    return (lhs == a && rhs == b) || (lhs == b && rhs == a);
  };
  switch (role) {
  case DotRole::Forward:
    return are(OperandKind::Activation, OperandKind::Weight);
  case DotRole::Dgrad:
    return are(OperandKind::Gradient, OperandKind::Weight);
  case DotRole::Wgrad:
    return are(OperandKind::Activation, OperandKind::Gradient);
  default:
    return false;
  }
}

static LogicalResult verifyNotes(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayAttr notes) {
  if (notes && !llvm::all_of(notes, llvm::IsaPred<StringAttr>))
    return emitError() << "expected notes to be strings but got " << notes;
  return success();
}

LogicalResult VerdictAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, Verdict kind, DotRole role,
    DotCategory, StringAttr, OperandKind lhs, OperandKind rhs, int64_t batch,
    int64_t m, int64_t n, int64_t k, Type lhsFormat, Type rhsFormat,
    std::optional<Tiling> lhsTile, std::optional<Tiling> rhsTile,
    bool currentScale, DenseI64ArrayAttr, bool, bool, int64_t rule,
    int64_t number, StringAttr, ArrayAttr notes) {
  for (int64_t size : {batch, m, n, k, rule, number})
    if (size < 0)
      return emitError() << "expected sizes, rule and number to be 0 or more "
                            "but got "
                         << size;
  if (failed(verifyNotes(emitError, notes)))
    return failure();
  bool isFP8 = kind == Verdict::FP8;
  if (isFP8 && !haveKindsOf(role, lhs, rhs))
    return emitError() << "expected the operands of a linear layer's dot in "
                          "FP8 but got "
                       << stringifyOperandKind(lhs) << " and "
                       << stringifyOperandKind(rhs) << " of role "
                       << stringifyDotRole(role);
  if (isFP8 && (!isFormat(lhsFormat) || !isFormat(rhsFormat)))
    return emitError() << "expected FP8 formats of an FP8 dot but got "
                       << lhsFormat << " and " << rhsFormat;
  if (isFP8 != lhsTile.has_value() || isFP8 != rhsTile.has_value())
    return emitError() << "expected tiles of FP8 dots, and of no other";
  bool hasWeight = lhs == OperandKind::Weight || rhs == OperandKind::Weight;
  if (currentScale && !(isFP8 && hasWeight))
    return emitError() << "expected current_scale of an FP8 dot that reads a "
                          "weight";
  return success();
}

LogicalResult
StateVerdictAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         StringAttr, StringAttr, int64_t elements, Type from,
                         Type to, std::optional<StorageTiling>, int64_t bytes,
                         bool, StringAttr, ArrayAttr notes) {
  if (elements < 0 || bytes < 0)
    return emitError() << "expected elements and bytes to be 0 or more but got "
                       << elements << " and " << bytes;
  if (!isa<FloatType>(from) || !isa<FloatType>(to))
    return emitError() << "expected float types but got " << from << " and "
                       << to;
  return verifyNotes(emitError, notes);
}

LogicalResult
SoftmaxVerdictAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           ScoreStorage kind, bool, int64_t batch,
                           int64_t queries, int64_t keys, DenseI64ArrayAttr,
                           bool, bool, StringAttr, StringAttr obstacle) {
  for (int64_t size : {batch, queries, keys})
    if (size < 0)
      return emitError() << "expected sizes to be 0 or more but got " << size;
  if (kind == ScoreStorage::Tiled && obstacle)
    return emitError() << "expected an obstacle of stored scores only";
  return success();
}
