//===- Shapes.cpp - Sizes of shaped types ---------------------------------===//

#include "fp8/Support/Shapes.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

SmallVector<MatchedDims> fp8::matchReshape(ArrayRef<int64_t> from,
                                           ArrayRef<int64_t> to) {
  SmallVector<MatchedDims> groups;
  size_t i = 0, j = 0;
  auto isLeft = [&] { return i < from.size() || j < to.size(); };
  while (isLeft()) {
    MatchedDims group;
    int64_t fromSize = 1, toSize = 1;
    auto take = [](ArrayRef<int64_t> shape, size_t &dim, int64_t &size,
                   SmallVectorImpl<int64_t> &dims) {
      if (shape[dim] != 1)
        dims.push_back(dim);
      size *= shape[dim++];
    };
    do {
      if (i < from.size() && (fromSize <= toSize || j == to.size()))
        take(from, i, fromSize, group.from);
      else
        take(to, j, toSize, group.to);
    } while (fromSize != toSize && isLeft());
    if (!group.from.empty() || !group.to.empty())
      groups.push_back(std::move(group));
  }
  return groups;
}

int64_t fp8::elementBytes(Type element) {
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return llvm::divideCeil(bits, 8);
}

int64_t fp8::byteSize(ShapedType type) {
  return type.getNumElements() * elementBytes(type.getElementType());
}

std::string fp8::printShape(ShapedType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : type.getShape())
    os << size << 'x';
  os << type.getElementType();
  return text;
}
