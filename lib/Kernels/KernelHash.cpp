//===- KernelHash.cpp - Kernels told apart by what they compute -----------===//

#include "fp8/Kernels/KernelHash.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Feeds a kernel to a hash. Everything of variable length goes with its
/// length, so that different kernels never feed the same bytes.
class Hasher {
public:
  explicit Hasher(MLIRContext *context)
      : state(context, OpPrintingFlags()
                           .enableDebugInfo(false)
                           .elideLargeElementsAttrs(INT64_MAX)
                           .elideLargeResourceString(INT64_MAX)) {}

  void add(KernelOp kernel);
  std::string digits() {
    return llvm::toHex(sha.final(), /*LowerCase=*/true).substr(0, 32);
  }

private:
  void add(uint64_t number) {
    uint8_t bytes[8];
    llvm::support::endian::write64le(bytes, number);
    sha.update(ArrayRef<uint8_t>(bytes));
  }
  void add(StringRef text) {
    add(text.size());
    sha.update(text);
  }
  void add(Type type) { add(printed(types, type)); }
  void add(Attribute attr);
  void add(Value value) { add(numbers.lookup(value)); }
  void add(Region &region);
  void add(Operation &op);
  void number(Value value) {
    uint64_t next = numbers.size() + 1;
    numbers[value] = next;
    add(value.getType());
  }

  template <typename T>
  StringRef printed(DenseMap<T, std::string> &known, T value) {
    auto [it, isNew] = known.try_emplace(value);
    if (isNew) {
      llvm::raw_string_ostream os(it->second);
      if constexpr (std::is_same_v<T, Type>)
        value.print(os, state);
      else
        value.print(os, state);
    }
    return it->second;
  }

  llvm::SHA256 sha;
  AsmState state;
  DenseMap<Type, std::string> types;
  DenseMap<Attribute, std::string> attributes;
  DenseMap<Value, uint64_t> numbers;
};

void Hasher::add(Attribute attr) {
  // The bytes of large constants, which text would only spell.
  if (auto elements = dyn_cast<DenseIntOrFPElementsAttr>(attr)) {
    add(elements.getType());
    add(elements.isSplat());
    ArrayRef<char> data = elements.getRawData();
    return add(StringRef(data.data(), data.size()));
  }
  add(printed(attributes, attr));
}

void Hasher::add(Region &region) {
  add(region.getBlocks().size());
  for (Block &block : region) {
    add(block.getNumArguments());
    for (BlockArgument argument : block.getArguments())
      number(argument);
    add(block.getOperations().size());
    for (Operation &op : block)
      add(op);
  }
}

void Hasher::add(Operation &op) {
  add(op.getName().getStringRef());
  add(op.getNumOperands());
  for (Value operand : op.getOperands())
    add(operand);
  DictionaryAttr attrs = op.getAttrDictionary();
  add(attrs.size());
  for (NamedAttribute attr : attrs) {
    add(attr.getName().strref());
    add(attr.getValue());
  }
  add(op.getNumResults());
  for (Value result : op.getResults())
    number(result);
  add(op.getNumRegions());
  for (Region &region : op.getRegions())
    add(region);
}

void Hasher::add(KernelOp kernel) {
  for (NamedAttribute attr : kernel->getAttrDictionary()) {
    if (attr.getName() == SymbolTable::getSymbolAttrName())
      continue;
    add(attr.getName().strref());
    add(attr.getValue());
  }
  add(kernel.getBody());
}

} // namespace

std::string fp8::kernelHash(KernelOp kernel) {
  Hasher hasher(kernel.getContext());
  hasher.add(kernel);
  return hasher.digits();
}
