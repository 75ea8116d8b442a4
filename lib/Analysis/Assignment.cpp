//===- Assignment.cpp - The best pairing of two sets ----------------------===//

#include "Assignment.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"
#include <limits>

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A connected part as a square matrix of weights; 0 is no pair.
struct Part {
  SmallVector<unsigned> from, to;
  std::vector<std::vector<double>> weights;

  size_t size() const { return weights.size(); }
};
} // namespace

/// The Hungarian method with potentials: the column of each row so that the sum
/// of weights is highest.
static std::vector<int> solve(const std::vector<std::vector<double>> &weights) {
  int n = weights.size();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> rowPotential(n + 1), columnPotential(n + 1);
  // Columns count from 1; 0 is where each new row starts.
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

SmallVector<std::optional<unsigned>>
fp8::assignPairs(unsigned numFrom, ArrayRef<WeightedPair> pairs,
                 function_ref<bool(unsigned, unsigned)> isSame,
                 std::vector<Ambiguity> &ambiguities) {
  constexpr double kTie = 1e-6;
  SmallVector<std::optional<unsigned>> partners(numFrom);
  for (Part &part : connectedParts(numFrom, pairs)) {
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
      // Without this pair, is there another pairing as good?
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
  return partners;
}
