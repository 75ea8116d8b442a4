//===- Shapes.cpp - Sizes of shaped types ---------------------------------===//

#include "fp8/Support/Shapes.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

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
