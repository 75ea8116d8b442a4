//===- Layout.cpp - How a value differs between ranks ---------------------===//

#include "Layout.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Rows in the flat tensor: element i belongs to row (i / stride) % size.
struct FlatRows {
  int64_t stride, size;
};

} // namespace

std::optional<RowDims> fp8::reshapeRows(ArrayRef<RowDim> rows,
                                        ArrayRef<int64_t> from,
                                        ArrayRef<int64_t> to) {
  SmallVector<FlatRows> flat;
  for (const RowDim &row : rows) {
    int64_t inner = from[row.dim] / (row.outer * row.size);
    flat.push_back(
        {inner * llvm::product_of(from.drop_front(row.dim + 1)), row.size});
  }
  llvm::sort(flat, [](const FlatRows &a, const FlatRows &b) {
    return a.stride > b.stride;
  });
  // Merge rows that an earlier reshape had split.
  SmallVector<FlatRows> merged;
  for (const FlatRows &part : flat)
    if (!merged.empty() && merged.back().stride == part.stride * part.size)
      merged.back() = {part.stride, merged.back().size * part.size};
    else
      merged.push_back(part);
  RowDims result;
  for (const FlatRows &part : merged) {
    int64_t begin = part.stride, end = part.stride * part.size, found = 1;
    int64_t unit = llvm::product_of(to);
    for (auto [dim, extent] : llvm::enumerate(to)) {
      int64_t top = unit;
      unit = extent == 0 ? 0 : unit / extent;
      int64_t low = std::max(begin, unit), high = std::min(end, top);
      if (low >= high)
        continue;
      if (low % unit || top % high || high % low || low % begin || end % high)
        return std::nullopt;
      result.push_back({static_cast<int64_t>(dim), top / high, high / low});
      found *= high / low;
    }
    if (found != part.size)
      return std::nullopt;
  }
  return result;
}

bool Layout::operator==(const Layout &other) const {
  return kind == other.kind && rows == other.rows && turn == other.turn &&
         reduction == other.reduction && isCounted == other.isCounted &&
         elements == other.elements && factor == other.factor &&
         isMean == other.isMean && byCount == other.byCount &&
         learned == other.learned && mixed == other.mixed;
}

bool Layout::isPlainSum() const {
  return isCounted && std::abs(factor) == 1 && elements != 1;
}

void Layout::scale(std::optional<double> by, bool divides) {
  isCounted &= by.has_value();
  if (!isCounted) {
    elements = factor = 0;
    return;
  }
  factor *= *by;
  // (The number of elements may be divided by before or after other factors.
  // A product with one half may be the half of squares.)
  for (double scale : {factor, *by})
    isMean |= elements > (divides ? 1 : 2) &&
              std::abs(std::abs(elements * scale) - 1) < 1e-5;
  // A factor of one half, from squared errors, may have been folded into the
  // divisor.
  isMean |= elements >= 4 && std::abs(std::abs(elements * factor) - 0.5) < 1e-5;
}

/// Joins what is known of two sums: values of either, or their sum.
static void joinCounts(Layout &result, const Layout &a, const Layout &b) {
  result.isCounted =
      a.isCounted && b.isCounted && std::abs(a.factor) == std::abs(b.factor);
  result.factor = result.isCounted ? std::abs(a.factor) : 0;
  result.elements =
      result.isCounted && a.elements == b.elements ? a.elements : 0;
  if (result.isCounted && a.factor == b.factor)
    result.factor = a.factor;
}

std::optional<Layout> fp8::join(const Layout &a, const Layout &b) {
  using Kind = Layout::Kind;
  if (a.is(Kind::Unknown))
    return b;
  if (b.is(Kind::Unknown))
    return a;
  Layout result;
  if (a.is(Kind::Zero) || b.is(Kind::Zero)) {
    result = a.is(Kind::Zero) ? b : a;
  } else if (a.isWhole() && b.isWhole()) {
    result = a;
    result.byCount = a.byCount && b.byCount;
    joinCounts(result, a, b);
  } else if (a.is(Kind::Partial) || b.is(Kind::Partial)) {
    if (a.kind != b.kind || a.reduction != b.reduction)
      return std::nullopt;
    result = a;
    joinCounts(result, a, b);
    result.isMean = a.isMean && b.isMean;
    result.byCount = a.byCount && b.byCount;
  } else {
    // A value that is the same for all rows may also be treated as rows.
    if (a.is(Kind::Rows) && b.is(Kind::Rows) &&
        !(a.rows == b.rows && a.turn == b.turn))
      return std::nullopt;
    result = a.is(Kind::Rows) ? a : b;
  }
  result.learned = a.learned || b.learned;
  result.mixed = a.mixed || b.mixed;
  return result;
}

Layout fp8::sumOf(double elements) {
  Layout layout = Layout::of(Layout::Kind::Partial);
  layout.isCounted = true;
  layout.elements = elements;
  return layout;
}

Layout fp8::weighted(Layout sum) {
  sum.scale(std::nullopt);
  return sum;
}
