//===- ControlFlow.cpp - Loops, branches, barriers and calls --------------===//
//
// Constraint numbers in comments are those of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

using namespace mlir;
using namespace mlir::stablehlo;

/// Checks that the results have the types of the operands.
static LogicalResult expectTypesOfOperands(Operation *op) {
  if (failed(
          expectSize(op, op->getNumOperands(), op->getNumResults(), "results")))
    return failure();
  for (auto [operand, result] :
       llvm::zip(op->getOperandTypes(), op->getResultTypes()))
    if (failed(expectType(op, operand, result, "a result")))
      return failure();
  return success();
}

LogicalResult WhileOp::verifyRegions() {
  // while_c3
  if (failed(expectTypesOfOperands(*this)))
    return failure();
  for (Region *region : {&getCond(), &getBody()}) {
    StringRef what = region == &getCond() ? "the condition" : "the body";
    if (failed(expectSize(*this, getNumOperands(), region->getNumArguments(),
                          "arguments of " + what)))
      return failure();
    for (auto [i, type] : llvm::enumerate(getOperandTypes()))
      if (failed(expectType(*this, type, region->getArgument(i).getType(),
                            "argument " + Twine(i) + " of " + what)))
        return failure();
  }
  // while_c1
  Type pred = getScalarType(IntegerType::get(getContext(), 1));
  if (failed(expectRegionResults(*this, getCond(), pred, "the condition")))
    return failure();
  // while_c2
  return expectRegionResults(*this, getBody(), getOperandTypes(), "the body");
}

void WhileOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    setName(argument, "iterArg");
}

/// Checks that a branch has no arguments and returns the results.
static LogicalResult verifyBranch(Operation *op, Region &region,
                                  const Twine &what) {
  if (failed(
          expectSize(op, 0, region.getNumArguments(), "arguments of " + what)))
    return failure();
  return expectRegionResults(op, region, op->getResultTypes(), what);
}

LogicalResult IfOp::verify() {
  return expectType(*this, getScalarType(IntegerType::get(getContext(), 1)),
                    getPred().getType(), "a predicate");
}

LogicalResult IfOp::verifyRegions() {
  // if_c1, if_c2, if_c3
  if (failed(verifyBranch(*this, getTrueBranch(), "the true branch")))
    return failure();
  return verifyBranch(*this, getFalseBranch(), "the false branch");
}

LogicalResult CaseOp::verify() {
  if (failed(expectType(*this,
                        getScalarType(IntegerType::get(getContext(), 32)),
                        getIndex().getType(), "an index")))
    return failure();
  // case_c1
  if (getBranches().empty())
    return emitOpError("expected one branch or more but got none");
  return success();
}

LogicalResult CaseOp::verifyRegions() {
  // case_c2, case_c3, case_c4
  for (auto [i, branch] : llvm::enumerate(getBranches()))
    if (failed(verifyBranch(*this, branch, "branch " + Twine(i))))
      return failure();
  return success();
}

LogicalResult OptimizationBarrierOp::verify() {
  // optimization_barrier_c1
  return expectTypesOfOperands(*this);
}

LogicalResult CompositeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // composite_c4
  auto function = symbols.lookupNearestSymbolFrom<func::FuncOp>(
      *this, getDecompositionAttr());
  if (!function)
    return emitOpError("expected a function named ")
           << getDecompositionAttr() << " but got none";
  auto type =
      FunctionType::get(getContext(), getOperandTypes(), getResultTypes());
  if (function.getFunctionType() != type)
    return (emitOpError("expected a decomposition of type ")
            << type << " but got " << function.getFunctionType())
               .attachNote(function.getLoc())
           << "decomposition defined here";
  return success();
}

void CustomCallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getHasSideEffect())
    return;
  // The op must not be removed, or moved across another one.
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}
