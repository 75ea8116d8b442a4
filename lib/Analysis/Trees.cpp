//===- Trees.cpp - Pairing of trees of tensors ----------------------------===//

#include "Assignment.h"
#include "fp8/Analysis/Signature.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::fp8;

SmallVector<std::string> fp8::splitTreePath(StringRef path) {
  SmallVector<std::string> parts;
  size_t pos = path.find_first_of("[.", 1);
  parts.push_back(path.substr(0, pos).str());
  while (pos != StringRef::npos && pos < path.size()) {
    size_t start = pos++;
    if (path[start] == '[') {
      // A key may hold brackets of its own inside quotes.
      char quote = 0;
      for (; pos < path.size(); ++pos) {
        char c = path[pos];
        if (quote) {
          if (c == '\\')
            ++pos;
          else if (c == quote)
            quote = 0;
        } else if (c == '\'' || c == '"') {
          quote = c;
        } else if (c == ']') {
          break;
        }
      }
      pos = std::min(pos + 1, path.size());
    } else {
      pos = path.find_first_of("[.", pos);
      if (pos == StringRef::npos)
        pos = path.size();
    }
    parts.push_back(path.slice(start, pos).str());
  }
  return parts;
}

namespace {
/// A subtree: the leaves below a prefix, by their path relative to it.
struct Subtree {
  std::string prefix;
  unsigned depth = 0;
  llvm::MapVector<StringRef, unsigned> leaves;
};

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
  std::vector<Subtree> trees;
};

struct Candidate {
  unsigned from, to;
  double score;
  bool exact;
};
} // namespace

/// The last key of a path as bare letters: `['mu']`, `.mu` and `mu` are equal.
static StringRef lastKey(StringRef prefix, SmallVectorImpl<char> &storage) {
  std::string last = splitTreePath(prefix).back();
  storage.clear();
  for (char c : last)
    if (llvm::isAlnum(c) || c == '_')
      storage.push_back(c);
  return StringRef(storage.data(), storage.size());
}

static bool sameLastKey(StringRef a, StringRef b) {
  SmallString<32> first, second;
  return lastKey(a, first) == lastKey(b, second);
}

SmallVector<std::optional<unsigned>>
fp8::matchTrees(ArrayRef<TreeLeaf> from, ArrayRef<TreeLeaf> to, LeafScore score,
                LeafScore hint, SmallVectorImpl<std::string> *ambiguities) {
  constexpr double kTie = 1e-9;
  SmallVector<std::optional<unsigned>> partner(from.size());
  std::vector<bool> claimed(to.size(), false);
  Forest fromForest(from), toForest(to);

  // Does the subtree `target` hold every leaf of `source`, free and typed
  // alike?
  auto fits = [&](const Subtree &source, const Subtree &target) {
    if (target.leaves.size() < source.leaves.size())
      return false;
    for (auto &[path, leaf] : source.leaves) {
      auto it = target.leaves.find(path);
      if (it == target.leaves.end() || claimed[it->second] ||
          to[it->second].type != from[leaf].type)
        return false;
    }
    return true;
  };
  auto average = [&](const Subtree &source, const Subtree &target) {
    if (!score)
      return 1.0;
    double sum = 0;
    for (auto &[path, leaf] : source.leaves)
      sum += score(leaf, target.leaves.find(path)->second);
    return sum / source.leaves.size();
  };

  SmallVector<unsigned> pending;
  for (auto [index, tree] : llvm::enumerate(fromForest.trees))
    if (tree.depth == 0)
      pending.push_back(index);

  // Replaces a subtree that fits nowhere as a whole by its children.
  auto descend = [&](unsigned index, SmallVectorImpl<unsigned> &into) {
    const Subtree &tree = fromForest.trees[index];
    for (auto [child, other] : llvm::enumerate(fromForest.trees))
      if (other.depth == tree.depth + 1 &&
          StringRef(other.prefix).starts_with(tree.prefix) &&
          tree.leaves.count(StringRef(from[other.leaves.front().second].path)
                                .drop_front(tree.prefix.size())))
        into.push_back(child);
  };

  auto assign = [&](unsigned source, unsigned target) {
    const Subtree &tree = toForest.trees[target];
    for (auto &[path, leaf] : fromForest.trees[source].leaves) {
      unsigned other = tree.leaves.find(path)->second;
      partner[leaf] = other;
      claimed[other] = true;
    }
    llvm::erase(pending, source);
  };

  auto isNamedAlike = [&](const Candidate &candidate) {
    return sameLastKey(fromForest.trees[candidate.from].prefix,
                       toForest.trees[candidate.to].prefix);
  };
  // Whether two candidates are for different subtrees that share leaves.
  auto sharesLeaves = [&](ArrayRef<Candidate> candidates) {
    SmallVector<StringRef> prefixes;
    for (const Candidate &candidate : candidates)
      prefixes.push_back(toForest.trees[candidate.to].prefix);
    llvm::sort(prefixes);
    prefixes.erase(llvm::unique(prefixes), prefixes.end());
    for (size_t i = 1; i < prefixes.size(); ++i)
      if (prefixes[i].starts_with(prefixes[i - 1]))
        return true;
    return false;
  };
  // The best pairing of all of them; then names, order and hints decide.
  auto assignTogether = [&](ArrayRef<Candidate> candidates) {
    constexpr double kSameName = 0.1;
    // By their first leaves, which is the order of arguments and results.
    SmallVector<unsigned> sources, targets;
    auto firstLeaf = [](const Forest &forest, unsigned tree) {
      return forest.trees[tree].leaves.front().second;
    };
    for (const Candidate &candidate : candidates) {
      sources.push_back(candidate.from);
      targets.push_back(candidate.to);
    }
    auto sortByLeaf = [&](SmallVectorImpl<unsigned> &trees,
                          const Forest &forest) {
      llvm::sort(trees, [&](unsigned a, unsigned b) {
        return firstLeaf(forest, a) < firstLeaf(forest, b);
      });
      trees.erase(llvm::unique(trees), trees.end());
    };
    sortByLeaf(sources, fromForest);
    sortByLeaf(targets, toForest);
    std::vector<WeightedPair> pairs;
    for (const Candidate &candidate : candidates)
      pairs.push_back(
          {unsigned(llvm::find(sources, candidate.from) - sources.begin()),
           unsigned(llvm::find(targets, candidate.to) - targets.begin()),
           candidate.score + (isNamedAlike(candidate) ? kSameName : 0)});
    // Order and hints count if everything that is paired already agrees.
    bool inOrder = true;
    LeafScore agreeing = hint;
    std::optional<unsigned> last;
    for (auto [leaf, other] : llvm::enumerate(partner)) {
      if (!other)
        continue;
      inOrder &= !last || *last < *other;
      last = other;
      for (unsigned target = 0; agreeing && target < to.size(); ++target)
        if (target != *other && hint(leaf, target) > 0)
          agreeing = nullptr;
    }
    auto averageHint = [&](unsigned source, unsigned target) {
      const Subtree &from = fromForest.trees[sources[source]];
      const Subtree &to = toForest.trees[targets[target]];
      double sum = 0;
      for (auto &[path, leaf] : from.leaves)
        sum += agreeing ? agreeing(leaf, to.leaves.find(path)->second) : 0;
      return sum / from.leaves.size();
    };
    std::vector<Ambiguity> found;
    auto partners = assignPairs(
        sources.size(), pairs, [](unsigned, unsigned) { return false; }, found,
        averageHint, inOrder);
    for (const Ambiguity &ambiguity : found)
      if (ambiguities) {
        std::string message =
            fromForest.trees[sources[ambiguity.from]].prefix + ": ";
        for (auto [i, target] : llvm::enumerate(ambiguity.to))
          message += (i ? ", " : "") + toForest.trees[targets[target]].prefix;
        ambiguities->push_back(message);
      }
    for (auto [source, target] : llvm::enumerate(partners))
      if (target)
        assign(sources[source], targets[*target]);
  };

  while (!pending.empty()) {
    // All fitting pairs, exact ones only where there are any.
    SmallVector<Candidate> candidates;
    SmallVector<unsigned> homeless;
    for (unsigned source : pending) {
      const Subtree &tree = fromForest.trees[source];
      SmallVector<Candidate> own;
      bool anyExact = false;
      for (auto [target, other] : llvm::enumerate(toForest.trees)) {
        if (!fits(tree, other))
          continue;
        bool exact = other.leaves.size() == tree.leaves.size();
        own.push_back({source, unsigned(target), average(tree, other), exact});
        anyExact |= exact && own.back().score > 0;
      }
      if (anyExact)
        llvm::erase_if(own, [](const Candidate &c) { return !c.exact; });
      if (own.empty())
        homeless.push_back(source);
      candidates.append(own);
    }
    if (!homeless.empty()) {
      SmallVector<unsigned> children;
      for (unsigned source : homeless) {
        llvm::erase(pending, source);
        descend(source, children);
      }
      pending.append(children);
      if (!children.empty())
        continue;
      if (candidates.empty())
        break;
    }

    SmallVector<Candidate> alive;
    llvm::copy_if(candidates, std::back_inserter(alive),
                  [](const Candidate &c) { return c.score > 0; });
    if (alive.empty()) {
      // Data flow says nothing about the rest. Whole trees still pair by
      // structure if there is only one way; single leaves would be a guess.
      bool progress = false;
      for (unsigned source : llvm::to_vector(pending)) {
        SmallVector<Candidate> own;
        llvm::copy_if(candidates, std::back_inserter(own),
                      [&](const Candidate &c) { return c.from == source; });
        const Subtree &tree = fromForest.trees[source];
        if (own.size() == 1 && own.front().exact && tree.leaves.size() > 1 &&
            llvm::count_if(candidates, [&](const Candidate &c) {
              return c.to == own.front().to;
            }) == 1) {
          assign(source, own.front().to);
          progress = true;
          break;
        }
      }
      if (progress)
        continue;
      SmallVector<unsigned> children;
      for (unsigned source : pending)
        descend(source, children);
      pending = children;
      continue;
    }

    auto isUniqueBest = [&](const Candidate &candidate, auto sameSide) {
      return llvm::none_of(alive, [&](const Candidate &other) {
        return &other != &candidate && sameSide(other, candidate) &&
               other.score > candidate.score - kTie;
      });
    };
    auto sameFrom = [](const Candidate &a, const Candidate &b) {
      return a.from == b.from;
    };
    // Two subtrees of the results collide when they share leaves.
    auto sameTo = [&](const Candidate &a, const Candidate &b) {
      if (a.to == b.to)
        return true;
      StringRef first = toForest.trees[a.to].prefix;
      StringRef second = toForest.trees[b.to].prefix;
      return first.starts_with(second) || second.starts_with(first);
    };
    // Best for each other, and nothing else comes close. Such pairs do not
    // touch one another, so that all are made at once.
    SmallVector<const Candidate *> sure;
    for (const Candidate &candidate : alive)
      if (isUniqueBest(candidate, sameFrom) && isUniqueBest(candidate, sameTo))
        sure.push_back(&candidate);
    for (const Candidate *candidate : sure)
      assign(candidate->from, candidate->to);
    if (!sure.empty())
      continue;
    if (!sharesLeaves(alive)) {
      assignTogether(alive);
      continue;
    }
    const Candidate *chosen = nullptr;
    // Nowhere else to go: the most probable of these first.
    for (const Candidate &candidate : alive)
      if (llvm::count_if(alive,
                         [&](const Candidate &c) {
                           return c.from == candidate.from;
                         }) == 1 &&
          (!chosen || candidate.score > chosen->score + kTie))
        chosen = &candidate;
    // The same name (`mu` and `.mu`), unless two have it.
    if (!chosen)
      for (const Candidate &candidate : alive) {
        auto named = [&](const Candidate &c) { return isNamedAlike(c); };
        if (named(candidate) && llvm::count_if(alive, [&](const Candidate &c) {
                                  return c.from == candidate.from && named(c);
                                }) == 1) {
          chosen = &candidate;
          break;
        }
      }
    if (!chosen) {
      // The best score, in order; and say so if another is as good.
      for (const Candidate &candidate : alive)
        if (!chosen || candidate.score > chosen->score + kTie)
          chosen = &candidate;
      if (ambiguities) {
        std::string message;
        llvm::raw_string_ostream os(message);
        unsigned count = 0;
        for (const Candidate &other : alive)
          if (other.from == chosen->from &&
              other.score > chosen->score - kTie) {
            os << (count++ ? ", " : "") << toForest.trees[other.to].prefix;
          }
        if (count > 1)
          ambiguities->push_back(
              (fromForest.trees[chosen->from].prefix + ": " + message));
      }
    }
    assign(chosen->from, chosen->to);
  }
  return partner;
}
