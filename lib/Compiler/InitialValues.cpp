//===- InitialValues.cpp - Initial values of a run ------------------------===//

#include "fp8/Compiler/InitialValues.h"
#include "fp8/Support/ElementTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

/// Reads from a checkpoint the state that it stores in another form than the
/// user's: the tensors of the user's tree, and the names of the tensors that
/// represent them.
static void readStoredState(const fp8_tensors *tensors, MLIRContext &context,
                            SmallVectorImpl<TreeLeaf> &user,
                            llvm::StringSet<> &stored) {
  auto parse = [&](const char *key) -> std::optional<llvm::json::Value> {
    const char *text = fp8_tensors_metadata(tensors, key);
    if (!text)
      return std::nullopt;
    auto value = llvm::json::parse(text);
    if (value)
      return std::move(*value);
    llvm::consumeError(value.takeError());
    return std::nullopt;
  };
  auto dtypeOf = [](StringRef name) {
    int dtype = 0;
    while (dtype < FP8_NUM_DTYPES &&
           name != fp8_dtype_name(static_cast<fp8_dtype>(dtype)))
      ++dtype;
    return static_cast<fp8_dtype>(dtype);
  };
  auto tree = parse("user_state"), names = parse("stored_state");
  if (!tree || !names || !tree->getAsObject() || !names->getAsArray())
    return;
  for (auto &[path, value] : *tree->getAsObject()) {
    const llvm::json::Object *leaf = value.getAsObject();
    auto dtype = leaf ? leaf->getString("dtype") : std::nullopt;
    const llvm::json::Array *dims = leaf ? leaf->getArray("shape") : nullptr;
    if (!dtype || !dims || dtypeOf(*dtype) == FP8_NUM_DTYPES)
      continue;
    SmallVector<int64_t> shape;
    for (const llvm::json::Value &dim : *dims)
      shape.push_back(dim.getAsInteger().value_or(0));
    user.push_back(
        {path.str(), RankedTensorType::get(
                         shape, elementTypeOf(dtypeOf(*dtype), context))});
  }
  for (const llvm::json::Value &name : *names->getAsArray())
    if (auto text = name.getAsString())
      stored.insert(*text);
}

SmallVector<TreeLeaf> fp8::leavesOf(const fp8_tensors *tensors,
                                    MLIRContext &context) {
  SmallVector<TreeLeaf> leaves;
  llvm::StringSet<> stored;
  readStoredState(tensors, context, leaves, stored);
  for (int64_t i = 0, e = fp8_tensors_count(tensors); i < e; ++i) {
    fp8_tensor_info info;
    if (fp8_tensors_get(tensors, i, &info, nullptr) != FP8_OK ||
        stored.contains(info.name))
      continue;
    ArrayRef<int64_t> shape(info.dims, info.rank);
    leaves.push_back(
        {info.name,
         RankedTensorType::get(shape, elementTypeOf(info.dtype, context))});
  }
  return leaves;
}

SmallVector<TreeLeaf> fp8::leavesOf(const Signature &initializer) {
  SmallVector<TreeLeaf> leaves;
  for (const SignatureResult &result : initializer.results)
    leaves.push_back({result.path, result.type});
  return leaves;
}

SmallVector<TreeLeaf> fp8::leavesOf(const ExecutableFunction &initializer,
                                    MLIRContext &context) {
  SmallVector<TreeLeaf> leaves;
  for (const TensorDescription &result : initializer.results)
    leaves.push_back(
        {result.name, RankedTensorType::get(
                          result.shape, elementTypeOf(result.dtype, context))});
  return leaves;
}
