//===- CheckFrozen.cpp - Frozen arguments that may be state ---------------===//
//
// A guess that an argument does not change must not be silent if the step seems
// to return its next value.
//
//===----------------------------------------------------------------------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if a key is a position in a tuple or list.
static bool isNumber(StringRef key) {
  return key.consume_front("[") && key.consume_back("]") && !key.empty() &&
         llvm::all_of(key, llvm::isDigit);
}

/// Returns true if names show that `result` is not the next value of `arg`. A
/// result of a tuple has a position, but no name; then only the path of an
/// array that is part of a tree is another one.
bool SignatureAnalyzer::areToldApart(unsigned arg, unsigned result) const {
  std::string last = splitTreePath(signature.results[result].path).back();
  bool isWhole = isScalar(signature.args[arg].type) ||
                 splitTreePath(signature.args[arg].path).size() == 1;
  return argsAreNamed && resultsAreNamed && !(isWhole && isNumber(last));
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

/// Returns the paths of the results that replace trees of state, with the root
/// of each tree: if `p['w']` is replaced by `result[0]['w']`, that is `p` with
/// `result[0]`.
std::set<std::pair<std::string, std::string>>
SignatureAnalyzer::findTreePlaces() const {
  std::set<std::pair<std::string, std::string>> places;
  for (const SignatureArg &arg : signature.args) {
    if (!resultOfArg[arg.index])
      continue;
    StringRef root = rootOf(arg.path),
              keys = StringRef(arg.path).substr(root.size());
    StringRef place = signature.results[*resultOfArg[arg.index]].path;
    if (!keys.empty() && place.consume_back(keys) && !place.empty())
      places.insert({root.str(), place.str()});
  }
  return places;
}

/// Returns the result at the place of an argument in the next value of its
/// tree. In a tuple of all results the places of metrics are those of other
/// arguments by chance.
const SignatureResult *
SignatureAnalyzer::findNextOfTree(const SignatureArg &arg,
                                  StringRef place) const {
  StringRef keys = StringRef(arg.path).substr(rootOf(arg.path).size());
  if (keys.empty() || (isNumber(keys) && splitTreePath(place).size() == 1))
    return nullptr;
  auto isNext = [&](const SignatureResult &result) {
    return !argOfResult[result.index] && (!loss || *loss != result.index) &&
           result.type != arg.type && result.path == (place + keys).str();
  };
  auto next = llvm::find_if(signature.results, isNext);
  return next == signature.results.end() ? nullptr : &*next;
}

/// Reports arguments whose place in the next value of their tree has a value of
/// another type, such as a count that became a float: the step would keep their
/// first value for ever.
LogicalResult SignatureAnalyzer::checkTypesOfTrees() {
  if (!argsAreNamed || !resultsAreNamed)
    return success();
  auto places = findTreePlaces();
  for (const SignatureArg &arg : signature.args) {
    if (resultOfArg[arg.index] || forcedRoles.count(arg.index))
      continue;
    for (auto &[root, place] : places) {
      if (root != rootOf(arg.path))
        continue;
      if (const SignatureResult *next = findNextOfTree(arg, place))
        return emitError(func.getLoc())
               << "expected " << next->path << ", in the place of '" << arg.path
               << "', to be " << arg.type << " but got " << next->type
               << "; return it as that type, or choose with the option 'roles' "
               << "(fp8-run: --role " << arg.path << "="
               << (isFloat(arg.type) && !isScalar(arg.type) ? "frozen"
                                                            : "constant")
               << ") if it does not change";
    }
  }
  return success();
}

/// Adds what may be the reason that nothing updates parameters: a tree that
/// comes back with values of another type, such as weights that became f32.
void SignatureAnalyzer::addRetyped(InFlightDiagnostic &diag) const {
  for (const SignatureArg &arg : signature.args) {
    StringRef keys = StringRef(arg.path).substr(rootOf(arg.path).size());
    if (!argsAreNamed || !resultsAreNamed || resultOfArg[arg.index] ||
        keys.empty() || isNumber(keys))
      continue;
    for (const SignatureResult &result : signature.results)
      if (!argOfResult[result.index] && result.type != arg.type &&
          StringRef(result.path).ends_with(keys)) {
        diag << "; '" << arg.path << "' is " << arg.type << ", but "
             << result.path << " is " << result.type
             << ": state has to come back as the type that it has";
        return;
      }
  }
}
