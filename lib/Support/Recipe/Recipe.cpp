//===- Recipe.cpp - What becomes FP8, and how -----------------------------===//

#include "fp8/Support/Recipe.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

#include <numeric>
#include <tuple>

using namespace mlir;
using namespace mlir::fp8;

static int64_t runOf(Tiling tile) {
  switch (tile) {
  case Tiling::Tensor:
  case Tiling::Row:
    return 0;
  case Tiling::Row128:
  case Tiling::Block128:
    return 128;
  case Tiling::MX:
    return 32;
  }
  llvm_unreachable("unknown tiling");
}

int64_t fp8::commonRun(Tiling lhs, Tiling rhs) {
  return std::gcd(runOf(lhs), runOf(rhs));
}

bool OperandRecipe::operator==(const OperandRecipe &other) const {
  auto values = [](const OperandRecipe &o) {
    return std::tie(o.format, o.tile, o.scale, o.margin, o.rounding, o.overflow,
                    o.scaling, o.history, o.algorithm, o.initial);
  };
  return values(*this) == values(other);
}

FloatType fp8::getStorageType(StorageFormat format, MLIRContext *context) {
  switch (format) {
  case StorageFormat::F32:
    return Float32Type::get(context);
  case StorageFormat::BF16:
    return BFloat16Type::get(context);
  case StorageFormat::F16:
    return Float16Type::get(context);
  case StorageFormat::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case StorageFormat::F8E5M2:
    return Float8E5M2Type::get(context);
  }
  return {};
}
