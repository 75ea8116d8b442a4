//===- Assignment.cpp - The best pairing of two sets ----------------------===//

#include "Assignment.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"
#include <limits>

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A connected part of the pairs as a square matrix of weights; 0 means no
/// pair.
struct Part {
  SmallVector<unsigned> from, to;
  std::vector<std::vector<double>> weights;

  size_t size() const { return weights.size(); }
};
} // namespace

/// Solves the assignment problem with the Hungarian method and potentials:
/// returns the column of each row such that the sum of weights is maximal.
static std::vector<int> solve(const std::vector<std::vector<double>> &weights) {
  int n = weights.size();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> rowPotential(n + 1), columnPotential(n + 1);
  // Columns count from 1; column 0 is the start for each new row.
  std::vector<int> rowOf(n + 1, 0);
  for (int row = 1; row <= n; ++row) {
    rowOf[0] = row;
    int column = 0;
    std::vector<double> slack(n + 1, kInfinity);
    std::vector<int> previous(n + 1, 0);
    std::vector<bool> used(n + 1, false);
    do {
      used[column] = true;
      int current = rowOf[column], next = 0;
      double delta = kInfinity;
      for (int j = 1; j <= n; ++j) {
        if (used[j])
          continue;
        double cost = -weights[current - 1][j - 1] - rowPotential[current] -
                      columnPotential[j];
        if (cost < slack[j]) {
          slack[j] = cost;
          previous[j] = column;
        }
        if (slack[j] < delta) {
          delta = slack[j];
          next = j;
        }
      }
      for (int j = 0; j <= n; ++j) {
        if (used[j]) {
          rowPotential[rowOf[j]] += delta;
          columnPotential[j] -= delta;
        } else {
          slack[j] -= delta;
        }
      }
      column = next;
    } while (rowOf[column] != 0);
    for (; column != 0; column = previous[column])
      rowOf[column] = rowOf[previous[column]];
  }
  std::vector<int> columnOf(n);
  for (int j = 1; j <= n; ++j)
    columnOf[rowOf[j] - 1] = j - 1;
  return columnOf;
}

static double total(const Part &part, const std::vector<int> &columns) {
  double sum = 0;
  for (size_t i = 0; i < part.size(); ++i)
    sum += part.weights[i][columns[i]];
  return sum;
}

static std::vector<Part> connectedParts(unsigned numFrom,
                                        ArrayRef<WeightedPair> pairs) {
  unsigned numTo = 0;
  for (const WeightedPair &pair : pairs)
    numTo = std::max(numTo, pair.to + 1);
  llvm::IntEqClasses classes(numFrom + numTo);
  for (const WeightedPair &pair : pairs)
    classes.join(pair.from, numFrom + pair.to);
  classes.compress();
  llvm::MapVector<unsigned, SmallVector<const WeightedPair *>> byClass;
  for (const WeightedPair &pair : pairs)
    byClass[classes[pair.from]].push_back(&pair);
  std::vector<Part> parts;
  for (auto &entry : byClass) {
    Part part;
    DenseMap<unsigned, unsigned> rows, columns;
    for (const WeightedPair *pair : entry.second) {
      if (rows.try_emplace(pair->from, part.from.size()).second)
        part.from.push_back(pair->from);
      if (columns.try_emplace(pair->to, part.to.size()).second)
        part.to.push_back(pair->to);
    }
    size_t size = std::max(part.from.size(), part.to.size());
    part.weights.assign(size, std::vector<double>(size));
    for (const WeightedPair *pair : entry.second)
      part.weights[rows[pair->from]][columns[pair->to]] = pair->weight;
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Finds the best pairing of one part. Records rows that could be paired
/// otherwise without loss, with the alternatives.
static void solvePart(Part &part, function_ref<bool(unsigned, unsigned)> isSame,
                      SmallVectorImpl<std::optional<unsigned>> &partners,
                      std::vector<Ambiguity> &ambiguities) {
  constexpr double kTie = 1e-6;
  std::vector<int> columns = solve(part.weights);
  double best = total(part, columns);
  std::vector<std::vector<double>> kept = part.weights;
  for (auto [row, from] : llvm::enumerate(part.from)) {
    unsigned column = columns[row];
    if (column >= part.to.size() || kept[row][column] == 0)
      continue;
    unsigned to = part.to[column];
    partners[from] = to;
    if (part.size() == 1)
      continue;
    // Look for another pairing without this pair that is as good.
    for (auto [j, other] : llvm::enumerate(part.to))
      if (other == to || isSame(other, to))
        part.weights[row][j] = 0;
    std::vector<int> others = solve(part.weights);
    if (total(part, others) > best - kTie) {
      Ambiguity ambiguity{from, {to}};
      if (unsigned(others[row]) < part.to.size())
        ambiguity.to.push_back(part.to[others[row]]);
      ambiguities.push_back(std::move(ambiguity));
    }
    part.weights[row] = kept[row];
  }
}

bool fp8::areInOrder(ArrayRef<std::optional<unsigned>> partners) {
  std::optional<unsigned> last;
  for (std::optional<unsigned> to : partners) {
    if (to && last && *to < *last)
      return false;
    last = to ? to : last;
  }
  return true;
}

namespace {
using Partners = ArrayRef<std::optional<unsigned>>;

/// Decides between pairings of equal weight.
class TieBreak {
public:
  TieBreak(Partners decided, const DenseSet<unsigned> &open,
           ArrayRef<WeightedPair> pairs,
           function_ref<double(unsigned, unsigned)> hint)
      : decided(decided), open(open), hint(hint) {
    auto disagrees = [&](unsigned from, unsigned to) {
      return decided[from] && *decided[from] != to && hint(from, to) > 0;
    };
    unsigned numTo = 0;
    for (const WeightedPair &pair : pairs)
      numTo = std::max(numTo, pair.to + 1);
    for (unsigned from = 0; hint && from < decided.size(); ++from)
      for (unsigned to = 0; this->hint && to < numTo; ++to)
        if (disagrees(from, to))
          this->hint = nullptr;
  }

  /// Pairs the open rows and columns of each part in their order. This only
  /// counts if all pairs are in order then.
  void addOrder(ArrayRef<Part> parts, function_ref<bool(Partners)> isInOrder) {
    SmallVector<std::optional<unsigned>> partners(decided);
    for (const Part &part : parts)
      addRanks(part, partners);
    if (areInOrder(partners) && (!isInOrder || isInOrder(partners)))
      inOrder = std::move(partners);
  }

  /// Adds bonuses to the weights of the rows and columns that are still open.
  void addTo(Part &part) const {
    constexpr double kBonus = 1e-3;
    for (auto [i, from] : llvm::enumerate(part.from))
      for (auto [j, to] : llvm::enumerate(part.to)) {
        double &weight = part.weights[i][j];
        if (weight == 0 || !open.contains(from))
          continue;
        if (!inOrder.empty() && inOrder[from] == to)
          weight += kBonus;
        if (hint)
          weight += kBonus * hint(from, to);
      }
  }

private:
  void addRanks(const Part &part,
                SmallVectorImpl<std::optional<unsigned>> &partners) const {
    DenseSet<unsigned> taken;
    SmallVector<unsigned> rows, columns;
    for (unsigned from : part.from)
      if (open.contains(from))
        rows.push_back(from);
      else if (decided[from])
        taken.insert(*decided[from]);
    for (unsigned to : part.to)
      if (!taken.contains(to))
        columns.push_back(to);
    if (rows.size() != columns.size())
      return;
    llvm::sort(rows);
    llvm::sort(columns);
    for (auto [from, to] : llvm::zip(rows, columns))
      partners[from] = to;
  }

  Partners decided;
  const DenseSet<unsigned> &open;
  function_ref<double(unsigned, unsigned)> hint;
  /// All pairs, with the open ones in order; empty if order does not count.
  SmallVector<std::optional<unsigned>> inOrder;
};
} // namespace

SmallVector<std::optional<unsigned>>
fp8::assignPairs(unsigned numFrom, ArrayRef<WeightedPair> pairs,
                 function_ref<bool(unsigned, unsigned)> isSame,
                 std::vector<Ambiguity> &ambiguities,
                 function_ref<double(unsigned, unsigned)> hint,
                 function_ref<bool(Partners)> isInOrder) {
  SmallVector<std::optional<unsigned>> partners(numFrom);
  std::vector<Part> parts = connectedParts(numFrom, pairs);
  std::vector<Ambiguity> ties;
  for (Part &part : parts)
    solvePart(part, isSame, partners, ties);
  if (ties.empty())
    return partners;
  DenseSet<unsigned> open;
  SmallVector<std::optional<unsigned>> decided(partners);
  for (const Ambiguity &tie : ties) {
    open.insert(tie.from);
    decided[tie.from].reset();
  }
  TieBreak tieBreak(decided, open, pairs, hint);
  tieBreak.addOrder(parts, isInOrder);
  for (Part &part : parts)
    if (llvm::any_of(part.from,
                     [&](unsigned from) { return open.contains(from); })) {
      tieBreak.addTo(part);
      solvePart(part, isSame, partners, ambiguities);
    }
  return partners;
}

SmallVector<std::optional<unsigned>>
fp8::assignInOrder(unsigned numFrom, unsigned numTo,
                   ArrayRef<WeightedPair> pairs) {
  std::vector<std::vector<double>> weights(numFrom, std::vector<double>(numTo));
  for (const WeightedPair &pair : pairs)
    weights[pair.from][pair.to] =
        std::max(weights[pair.from][pair.to], pair.weight);
  // The best weight of a pairing of the first `i` with the first `j`.
  std::vector<std::vector<double>> best(numFrom + 1,
                                        std::vector<double>(numTo + 1));
  for (unsigned i = 1; i <= numFrom; ++i)
    for (unsigned j = 1; j <= numTo; ++j) {
      best[i][j] = std::max(best[i - 1][j], best[i][j - 1]);
      if (double weight = weights[i - 1][j - 1])
        best[i][j] = std::max(best[i][j], best[i - 1][j - 1] + weight);
    }
  SmallVector<std::optional<unsigned>> partners(numFrom);
  for (unsigned i = numFrom, j = numTo; i > 0 && j > 0;) {
    if (best[i][j] == best[i - 1][j]) {
      --i;
    } else if (best[i][j] == best[i][j - 1]) {
      --j;
    } else {
      partners[--i] = --j;
    }
  }
  return partners;
}

double fp8::sumOf(ArrayRef<WeightedPair> pairs,
                  ArrayRef<std::optional<unsigned>> partners) {
  double sum = 0;
  for (const WeightedPair &pair : pairs)
    if (partners[pair.from] && *partners[pair.from] == pair.to)
      sum += pair.weight;
  return sum;
}
