//===- CheckFrozen.cpp - Frozen arguments that may be state ---------------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if names show that `result` is not the next value of `arg`. A
/// result of a tuple has a position, but no name; then only the path of an
/// array that is part of a tree is another one.
bool SignatureAnalyzer::areToldApart(unsigned arg, unsigned result) const {
  std::string last = splitTreePath(signature.results[result].path).back();
  StringRef key = last;
  bool isNumbered = key.consume_front("[") && key.consume_back("]") &&
                    !key.empty() && llvm::all_of(key, llvm::isDigit);
  bool isWhole = isScalar(signature.args[arg].type) ||
                 splitTreePath(signature.args[arg].path).size() == 1;
  return argsAreNamed && resultsAreNamed && !(isWhole && isNumbered);
}

/// Reports arguments that are taken for frozen or constant although the step
/// returns another value of their type and no names tell them apart: they may
/// be state, and such a guess must not be silent. The next value of an array
/// that the loss reads would depend on the old value, or be the old value of
/// other state; the next value of a last gradient need not, nor that of data of
/// the step before (a memory) that initial values contain.
LogicalResult SignatureAnalyzer::checkFrozen() {
  for (const SignatureArg &arg : signature.args) {
    bool isConstant = arg.role == ArgRole::Constant;
    if ((arg.role != ArgRole::Frozen && !isConstant) ||
        argument(arg.index).use_empty() || forcedRoles.count(arg.index))
      continue;
    auto isOldState = [&](unsigned result) {
      auto source = argumentIndex(returned[result]);
      return source && *source != arg.index && resultOfArg[*source];
    };
    SmallVector<StringRef> results;
    for (const SignatureResult &result : signature.results)
      if (!argOfResult[result.index] && result.type == arg.type &&
          (!loss || *loss != result.index) &&
          !areToldApart(arg.index, result.index) &&
          (isScalar(arg.type)
               ? mayReplaceScalar(arg.index, result.index)
               : !forward.contains(argument(arg.index)) ||
                     dataSetOnce.contains(arg.index) ||
                     isOldState(result.index) ||
                     onArguments.depends(returned[result.index], arg.index)))
        results.push_back(result.path);
    if (results.empty())
      continue;
    InFlightDiagnostic diag = emitError(func.getLoc())
                              << "ambiguous state: '" << arg.path << "' is "
                              << (isConstant ? "constant" : "frozen")
                              << ", or replaced by "
                              << (results.size() > 1 ? "one of " : "");
    llvm::interleaveComma(ArrayRef(results).take_front(4), diag);
    diag << "; choose with the option 'states' or 'roles' (fp8-run: --state "
         << arg.path << "=" << results.front() << " or --role " << arg.path
         << "=" << (isConstant ? "constant" : "frozen") << ")";
    if (!argsAreNamed || !resultsAreNamed)
      diag << ", or export with debug_info=True, which has names";
    return diag;
  }
  return success();
}
