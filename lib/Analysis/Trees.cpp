//===- Trees.cpp - Pairing of trees of tensors ----------------------------===//

#include "Assignment.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Binding/PathBinding.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::fp8;

SmallVector<std::string> fp8::splitTreePath(StringRef path) {
  SmallVector<std::string> parts;
  for (const fp8binding::PathKey &key : fp8binding::tokenizePath(path))
    parts.push_back(path.slice(key.begin, key.end).str());
  if (parts.empty())
    parts.emplace_back();
  return parts;
}

namespace {
/// A subtree: the leaves below a prefix, by their path relative to it.
struct Subtree {
  std::string prefix;
  unsigned depth = 0;
  llvm::MapVector<StringRef, unsigned> leaves;
};

/// All subtrees of some leaves, including the leaves themselves.
struct Forest {
  explicit Forest(ArrayRef<TreeLeaf> leaves) {
    llvm::StringMap<unsigned> byPrefix;
    for (auto [index, leaf] : llvm::enumerate(leaves)) {
      SmallVector<std::string> parts = splitTreePath(leaf.path);
      size_t length = 0;
      for (auto [depth, part] : llvm::enumerate(parts)) {
        length += part.size();
        StringRef prefix = StringRef(leaf.path).take_front(length);
        auto [it, isNew] = byPrefix.try_emplace(prefix, trees.size());
        if (isNew) {
          trees.emplace_back();
          trees.back().prefix = prefix.str();
          trees.back().depth = depth;
        }
        trees[it->second].leaves.insert(
            {StringRef(leaf.path).drop_front(length), unsigned(index)});
      }
    }
  }

  /// Sorts these trees by their first leaves, which is the order of arguments
  /// and results, and removes duplicates.
  void sortByFirstLeaf(SmallVectorImpl<unsigned> &indices) const {
    llvm::sort(indices, [&](unsigned a, unsigned b) {
      return trees[a].leaves.front().second < trees[b].leaves.front().second;
    });
    indices.erase(llvm::unique(indices), indices.end());
  }

  std::vector<Subtree> trees;
};

/// A subtree of `to` that holds a subtree of `from`.
struct Candidate {
  unsigned from, to;
  double score;
  bool exact;
};
} // namespace

/// Returns true if the last keys of two paths have the same name: `['mu']`,
/// `.mu` and `mu` are equal.
static bool sameLastKey(StringRef a, StringRef b) {
  auto nameOfLast = [](StringRef path) {
    std::vector<std::string> keys = fp8binding::splitPath(path);
    return keys.empty() ? "" : keys.back();
  };
  return nameOfLast(a) == nameOfLast(b);
}

static bool sameFrom(const Candidate &a, const Candidate &b) {
  return a.from == b.from;
}

/// Scores that differ by less count as equal.
constexpr double kTie = 1e-9;
/// Positions in trees alone score no more than this.
constexpr double kWeak = 0.021;

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {
/// Pairs whole subtrees, the most certain ones first, and only breaks up those
/// that fit nowhere as a whole.
class TreeMatcher {
public:
  TreeMatcher(ArrayRef<TreeLeaf> from, ArrayRef<TreeLeaf> to, LeafScore score,
              LeafScore hint, SmallVectorImpl<std::string> *ambiguities)
      : from(from), to(to), score(score), hint(hint), ambiguities(ambiguities),
        fromForest(from), toForest(to), partner(from.size()),
        claimed(to.size(), false) {
    for (auto [index, tree] : llvm::enumerate(fromForest.trees))
      if (tree.depth == 0)
        pending.push_back(index);
  }

  SmallVector<std::optional<unsigned>> run() {
    while (!pending.empty())
      if (!advance())
        break;
    return std::move(partner);
  }

private:
  bool advance();

  // Candidates.
  bool fits(const Subtree &source, const Subtree &target) const;
  double averageScore(const Subtree &source, const Subtree &target) const;
  SmallVector<Candidate> candidatesOf(unsigned source) const;
  bool isNamedAlike(const Candidate &candidate) const;
  bool isPartOfAnother(const Candidate &candidate) const;
  bool collide(const Candidate &a, const Candidate &b) const;
  bool anyShareLeaves(ArrayRef<Candidate> candidates) const;

  // Assignments.
  void assign(unsigned source, unsigned target);
  void descend(unsigned source, SmallVectorImpl<unsigned> &into) const;
  bool breakUp(ArrayRef<unsigned> homeless);
  bool assignOnlyWay(ArrayRef<Candidate> candidates);
  bool assignSure(ArrayRef<Candidate> candidates);
  void assignTogether(ArrayRef<Candidate> candidates);
  void assignBest(ArrayRef<Candidate> candidates);
  const Candidate *findCornered(ArrayRef<Candidate> candidates) const;
  const Candidate *findNamesake(ArrayRef<Candidate> candidates) const;
  const Candidate *findHighest(ArrayRef<Candidate> candidates) const;

  // Order and hints.
  void pairLeaves(unsigned source, unsigned target,
                  SmallVectorImpl<std::optional<unsigned>> &leaves) const;
  bool pairsAgreeWithHints() const;

  void reportTies(const Candidate &chosen, ArrayRef<Candidate> candidates);
  void reportAmbiguity(unsigned source, ArrayRef<unsigned> targets);

  ArrayRef<TreeLeaf> from, to;
  LeafScore score, hint;
  SmallVectorImpl<std::string> *ambiguities;
  Forest fromForest, toForest;
  SmallVector<std::optional<unsigned>> partner;
  std::vector<bool> claimed;
  /// The subtrees of `from` that have no partner yet.
  SmallVector<unsigned> pending;
};
} // namespace

/// Pairs or breaks up some subtrees; returns false if nothing is left to do.
bool TreeMatcher::advance() {
  SmallVector<Candidate> candidates;
  SmallVector<unsigned> homeless;
  for (unsigned source : pending) {
    SmallVector<Candidate> own = candidatesOf(source);
    if (own.empty())
      homeless.push_back(source);
    candidates.append(own);
  }
  if (!homeless.empty()) {
    if (breakUp(homeless))
      return true;
    if (candidates.empty())
      return false;
  }
  SmallVector<Candidate> alive;
  llvm::copy_if(candidates, std::back_inserter(alive),
                [](const Candidate &c) { return c.score > kWeak; });
  // A position is only evidence for what is left then.
  if (alive.empty())
    llvm::copy_if(
        candidates, std::back_inserter(alive),
        [&](const Candidate &c) { return c.score > 0 && !isPartOfAnother(c); });
  if (alive.empty()) {
    // Data flow is no evidence for the rest.
    if (!assignOnlyWay(candidates)) {
      SmallVector<unsigned> children;
      for (unsigned source : pending)
        descend(source, children);
      pending = children;
    }
  } else if (!assignSure(alive)) {
    if (anyShareLeaves(alive))
      assignBest(alive);
    else
      assignTogether(alive);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Returns true if `target` holds every leaf of `source`, unclaimed and of the
/// same type.
bool TreeMatcher::fits(const Subtree &source, const Subtree &target) const {
  if (target.leaves.size() < source.leaves.size())
    return false;
  return llvm::all_of(source.leaves, [&](auto &entry) {
    auto it = target.leaves.find(entry.first);
    return it != target.leaves.end() && !claimed[it->second] &&
           to[it->second].type == from[entry.second].type;
  });
}

double TreeMatcher::averageScore(const Subtree &source,
                                 const Subtree &target) const {
  if (!score)
    return 1.0;
  double sum = 0;
  for (auto &[path, leaf] : source.leaves)
    sum += score(leaf, target.leaves.find(path)->second);
  return sum / source.leaves.size();
}

/// Returns all subtrees that a subtree fits; only exact ones if there are any.
SmallVector<Candidate> TreeMatcher::candidatesOf(unsigned source) const {
  const Subtree &tree = fromForest.trees[source];
  SmallVector<Candidate> own;
  bool anyExact = false;
  for (auto [target, other] : llvm::enumerate(toForest.trees)) {
    if (!fits(tree, other))
      continue;
    bool exact = other.leaves.size() == tree.leaves.size();
    own.push_back({source, unsigned(target), averageScore(tree, other), exact});
    anyExact |= exact && own.back().score > 0;
  }
  if (anyExact)
    llvm::erase_if(own, [](const Candidate &c) { return !c.exact; });
  return own;
}

bool TreeMatcher::isNamedAlike(const Candidate &candidate) const {
  return sameLastKey(fromForest.trees[candidate.from].prefix,
                     toForest.trees[candidate.to].prefix);
}

/// Removes the keys at the end that two paths share, except their first keys;
/// returns how many.
static unsigned dropSharedEnd(SmallVectorImpl<std::string> &a,
                              SmallVectorImpl<std::string> &b) {
  unsigned count = 0;
  for (; a.size() > 1 && b.size() > 1 && a.back() == b.back(); ++count) {
    a.pop_back();
    b.pop_back();
  }
  return count;
}

/// Returns true if the target, which has another name, lies deep in a tree
/// whose other leaves replace those of another tree at the same positions. The
/// target then replaces a part of that tree which the step does not read, such
/// as a line search's last gradient, and no argument.
bool TreeMatcher::isPartOfAnother(const Candidate &candidate) const {
  auto source = splitTreePath(fromForest.trees[candidate.from].prefix);
  auto target = splitTreePath(toForest.trees[candidate.to].prefix);
  dropSharedEnd(source, target);
  if (sameLastKey(source.back(), target.back()))
    return false;
  auto startsWith = [](ArrayRef<std::string> path,
                       ArrayRef<std::string> prefix) {
    return path.size() >= prefix.size() &&
           path.take_front(prefix.size()) == prefix;
  };
  return llvm::any_of(llvm::enumerate(partner), [&](auto pair) {
    if (!pair.value())
      return false;
    auto old = splitTreePath(from[pair.index()].path);
    auto next = splitTreePath(to[*pair.value()].path);
    return dropSharedEnd(old, next) > 0 && target.size() >= next.size() + 2 &&
           startsWith(target, next) && !startsWith(source, old);
  });
}

/// Returns true if two subtrees of the results share leaves.
bool TreeMatcher::collide(const Candidate &a, const Candidate &b) const {
  StringRef first = toForest.trees[a.to].prefix;
  StringRef second = toForest.trees[b.to].prefix;
  return first.starts_with(second) || second.starts_with(first);
}

/// Returns true if two candidates have different targets that share leaves.
bool TreeMatcher::anyShareLeaves(ArrayRef<Candidate> candidates) const {
  SmallVector<StringRef> prefixes;
  for (const Candidate &candidate : candidates)
    prefixes.push_back(toForest.trees[candidate.to].prefix);
  llvm::sort(prefixes);
  prefixes.erase(llvm::unique(prefixes), prefixes.end());
  for (size_t i = 1; i < prefixes.size(); ++i)
    if (prefixes[i].starts_with(prefixes[i - 1]))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Assignments
//===----------------------------------------------------------------------===//

void TreeMatcher::assign(unsigned source, unsigned target) {
  const Subtree &tree = toForest.trees[target];
  for (auto &[path, leaf] : fromForest.trees[source].leaves) {
    unsigned other = tree.leaves.find(path)->second;
    partner[leaf] = other;
    claimed[other] = true;
  }
  llvm::erase(pending, source);
}

/// Appends the children of a subtree.
void TreeMatcher::descend(unsigned source,
                          SmallVectorImpl<unsigned> &into) const {
  const Subtree &tree = fromForest.trees[source];
  for (auto [child, other] : llvm::enumerate(fromForest.trees))
    if (other.depth == tree.depth + 1 &&
        StringRef(other.prefix).starts_with(tree.prefix) &&
        tree.leaves.count(StringRef(from[other.leaves.front().second].path)
                              .drop_front(tree.prefix.size())))
      into.push_back(child);
}

/// Replaces subtrees that fit nowhere as a whole by their children; returns
/// false if they have none.
bool TreeMatcher::breakUp(ArrayRef<unsigned> homeless) {
  SmallVector<unsigned> children;
  for (unsigned source : homeless) {
    llvm::erase(pending, source);
    descend(source, children);
  }
  pending.append(children);
  return !children.empty();
}

/// Pairs whole trees by structure if there is only one way; for single leaves
/// that would be a guess.
bool TreeMatcher::assignOnlyWay(ArrayRef<Candidate> candidates) {
  for (unsigned source : pending) {
    SmallVector<Candidate> own;
    llvm::copy_if(candidates, std::back_inserter(own),
                  [&](const Candidate &c) { return c.from == source; });
    if (own.size() != 1 || !own.front().exact ||
        fromForest.trees[source].leaves.size() <= 1 ||
        isPartOfAnother(own.front()))
      continue;
    unsigned target = own.front().to;
    if (llvm::count_if(candidates,
                       [&](const Candidate &c) { return c.to == target; }) != 1)
      continue;
    assign(source, target);
    return true;
  }
  return false;
}

/// Pairs those that are best for each other, without a close second. Such pairs
/// do not affect one another, so all are made at once.
bool TreeMatcher::assignSure(ArrayRef<Candidate> candidates) {
  auto isUniqueBest = [&](const Candidate &candidate, auto isSameSide) {
    return llvm::none_of(candidates, [&](const Candidate &other) {
      return &other != &candidate && isSameSide(other, candidate) &&
             other.score > candidate.score - kTie;
    });
  };
  auto sameTo = [&](const Candidate &a, const Candidate &b) {
    return collide(a, b);
  };
  SmallVector<const Candidate *> sure;
  for (const Candidate &candidate : candidates)
    if (isUniqueBest(candidate, sameFrom) && isUniqueBest(candidate, sameTo))
      sure.push_back(&candidate);
  for (const Candidate *candidate : sure)
    assign(candidate->from, candidate->to);
  return !sure.empty();
}

/// Finds the best pairing of all of them; names, order and hints break ties.
void TreeMatcher::assignTogether(ArrayRef<Candidate> candidates) {
  constexpr double kSameName = 0.1;
  SmallVector<unsigned> sources, targets;
  for (const Candidate &candidate : candidates) {
    sources.push_back(candidate.from);
    targets.push_back(candidate.to);
  }
  fromForest.sortByFirstLeaf(sources);
  toForest.sortByFirstLeaf(targets);
  std::vector<WeightedPair> pairs;
  for (const Candidate &candidate : candidates)
    pairs.push_back(
        {unsigned(llvm::find(sources, candidate.from) - sources.begin()),
         unsigned(llvm::find(targets, candidate.to) - targets.begin()),
         candidate.score + (isNamedAlike(candidate) ? kSameName : 0)});
  bool useHints = hint && pairsAgreeWithHints();
  auto averageHint = [&](unsigned source, unsigned target) {
    const Subtree &from = fromForest.trees[sources[source]];
    const Subtree &to = toForest.trees[targets[target]];
    double sum = 0;
    for (auto &[path, leaf] : from.leaves)
      sum += useHints ? hint(leaf, to.leaves.find(path)->second) : 0;
    return sum / from.leaves.size();
  };
  std::vector<Ambiguity> found;
  auto isInOrder = [&](ArrayRef<std::optional<unsigned>> partners) {
    SmallVector<std::optional<unsigned>> leaves(partner);
    for (auto [source, target] : llvm::enumerate(partners))
      if (target)
        pairLeaves(sources[source], targets[*target], leaves);
    return areInOrder(leaves);
  };
  auto partners = assignPairs(
      sources.size(), pairs, [](unsigned, unsigned) { return false; }, found,
      averageHint, isInOrder);
  for (const Ambiguity &ambiguity : found)
    reportAmbiguity(sources[ambiguity.from],
                    llvm::map_to_vector(ambiguity.to, [&](unsigned target) {
                      return targets[target];
                    }));
  for (auto [source, target] : llvm::enumerate(partners))
    if (target)
      assign(sources[source], targets[*target]);
}

/// Makes the most probable pair, for subtrees of the results that overlap.
void TreeMatcher::assignBest(ArrayRef<Candidate> candidates) {
  const Candidate *chosen = findCornered(candidates);
  if (!chosen)
    chosen = findNamesake(candidates);
  if (!chosen) {
    chosen = findHighest(candidates);
    reportTies(*chosen, candidates);
  }
  assign(chosen->from, chosen->to);
}

/// Returns the most probable one of the subtrees with only one candidate.
const Candidate *
TreeMatcher::findCornered(ArrayRef<Candidate> candidates) const {
  const Candidate *chosen = nullptr;
  for (const Candidate &candidate : candidates)
    if (llvm::count_if(
            candidates,
            [&](const Candidate &c) { return sameFrom(c, candidate); }) == 1 &&
        (!chosen || candidate.score > chosen->score + kTie))
      chosen = &candidate;
  return chosen;
}

/// Returns the first one with the same name (`mu` and `.mu`) that is unique.
const Candidate *
TreeMatcher::findNamesake(ArrayRef<Candidate> candidates) const {
  for (const Candidate &candidate : candidates)
    if (isNamedAlike(candidate) &&
        llvm::count_if(candidates, [&](const Candidate &c) {
          return sameFrom(c, candidate) && isNamedAlike(c);
        }) == 1)
      return &candidate;
  return nullptr;
}

/// Returns the first one with the best score.
const Candidate *
TreeMatcher::findHighest(ArrayRef<Candidate> candidates) const {
  const Candidate *chosen = nullptr;
  for (const Candidate &candidate : candidates)
    if (!chosen || candidate.score > chosen->score + kTie)
      chosen = &candidate;
  return chosen;
}

//===----------------------------------------------------------------------===//
// Order and hints, which only count if all pairs so far agree with them
//===----------------------------------------------------------------------===//

/// Adds the pairs of the leaves of two subtrees, if they fit.
void TreeMatcher::pairLeaves(
    unsigned source, unsigned target,
    SmallVectorImpl<std::optional<unsigned>> &leaves) const {
  const Subtree &tree = toForest.trees[target];
  for (auto &[path, leaf] : fromForest.trees[source].leaves)
    if (auto it = tree.leaves.find(path); it != tree.leaves.end())
      leaves[leaf] = it->second;
}

bool TreeMatcher::pairsAgreeWithHints() const {
  for (auto [leaf, other] : llvm::enumerate(partner))
    for (unsigned target = 0; other && target < to.size(); ++target)
      if (target != *other && hint(leaf, target) > 0)
        return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Ambiguities
//===----------------------------------------------------------------------===//

void TreeMatcher::reportTies(const Candidate &chosen,
                             ArrayRef<Candidate> candidates) {
  SmallVector<unsigned> targets;
  for (const Candidate &other : candidates)
    if (sameFrom(other, chosen) && other.score > chosen.score - kTie)
      targets.push_back(other.to);
  if (targets.size() > 1)
    reportAmbiguity(chosen.from, targets);
}

void TreeMatcher::reportAmbiguity(unsigned source, ArrayRef<unsigned> targets) {
  if (!ambiguities)
    return;
  std::string message = fromForest.trees[source].prefix + ": ";
  llvm::raw_string_ostream os(message);
  llvm::interleaveComma(targets, os, [&](unsigned target) {
    os << toForest.trees[target].prefix;
  });
  ambiguities->push_back(message);
}

SmallVector<std::optional<unsigned>>
fp8::matchTrees(ArrayRef<TreeLeaf> from, ArrayRef<TreeLeaf> to, LeafScore score,
                LeafScore hint, SmallVectorImpl<std::string> *ambiguities) {
  return TreeMatcher(from, to, score, hint, ambiguities).run();
}
