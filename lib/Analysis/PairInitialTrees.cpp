//===- PairInitialTrees.cpp - Trees of initial values that results replace ===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns keys as text in which those of a front are a prefix.
static std::string joined(ArrayRef<std::string> keys) {
  std::string text;
  for (const std::string &key : keys)
    text += key + "\n";
  return text;
}

/// Returns whether the results whose paths begin with `prefix` may replace a
/// tree of initial values: they have paths and types of its arrays, and replace
/// the arguments among these or nothing so far.
bool SignatureAnalyzer::mayReplaceTree(const InitialTree &tree,
                                       const Leaves &results,
                                       StringRef prefix) {
  size_t count = 0;
  for (auto it = results.lower_bound(prefix.str());
       it != results.end() && StringRef(it->first).starts_with(prefix); ++it) {
    std::string path = it->first.substr(prefix.size());
    auto type = tree.types.find(path);
    unsigned result = it->second;
    if (type == tree.types.end() ||
        signature.results[result].type != type->second)
      return false;
    auto arg = tree.arguments.find(path);
    bool isRead = arg != tree.arguments.end();
    bool isPaired = isRead && argOfResult[result] == arg->second;
    if (!isPaired &&
        (argOfResult[result] || loss == result ||
         (isRead && resultOfArg[arg->second]) || containsGradient(result)))
      return false;
    count += isRead;
  }
  return count == tree.arguments.size();
}

/// Pairs an argument that is a tree with the only tree of results that has the
/// same paths and types, and no gradients of others. The initial values contain
/// it, so it is no data: activations replace a memory, for example. (JAX leaves
/// out arguments that a step does not read.)
void SignatureAnalyzer::pairInitialTrees() {
  std::map<std::string, InitialTree> trees;
  for (const TreeLeaf &leaf : options.initialValues) {
    SmallVector<std::string> keys = splitTreePath(leaf.path);
    trees[keys.front()].types[joined(ArrayRef(keys).drop_front())] = leaf.type;
  }
  for (const SignatureArg &arg : signature.args) {
    SmallVector<std::string> keys = splitTreePath(arg.path);
    InitialTree &tree = trees[keys.front()];
    std::string path = joined(ArrayRef(keys).drop_front());
    auto type = tree.types.find(path);
    tree.isWhole &= !path.empty() && !forcedRoles.count(arg.index) &&
                    type != tree.types.end() && type->second == arg.type;
    tree.arguments[path] = arg.index;
  }
  Leaves results;
  for (const SignatureResult &result : signature.results)
    results[joined(splitTreePath(result.path))] = result.index;
  for (auto &[root, tree] : trees) {
    if (!tree.isWhole || tree.arguments.empty())
      continue;
    std::string first = tree.arguments.begin()->first;
    SmallVector<StringRef> prefixes;
    for (auto &[path, result] : results)
      if (StringRef prefix = path;
          prefix.consume_back(first) && mayReplaceTree(tree, results, prefix))
        prefixes.push_back(prefix);
    if (prefixes.size() != 1)
      continue;
    for (auto &[path, arg] : tree.arguments)
      if (!resultOfArg[arg])
        pair(arg, results[prefixes.front().str() + path],
             "the only tree of results with the paths and types of initial "
             "values");
  }
}
