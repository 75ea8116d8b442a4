//===- StructuralHash.cpp - A hash of what an op computes -----------------===//

#include "fp8/Support/StructuralHash.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Feeds an op to a hash. Every item of variable length is preceded by its
/// length, so different ops never feed the same bytes.
class Hasher {
public:
  explicit Hasher(Operation *root)
      : root(root),
        state(root->getContext(), OpPrintingFlags()
                                      .enableDebugInfo(false)
                                      .elideLargeElementsAttrs(INT64_MAX)
                                      .elideLargeResourceString(INT64_MAX)) {}

  std::string hash() {
    // Numbers come first, since ops of a graph and branches may refer to later
    // values and blocks.
    number(*root);
    add(*root);
    return llvm::toHex(blake.final<16>(), /*LowerCase=*/true);
  }

private:
  void number(Operation &op);

  void add(uint64_t number) {
    uint8_t bytes[8];
    llvm::support::endian::write64le(bytes, number);
    blake.update(ArrayRef<uint8_t>(bytes));
  }
  void add(StringRef text) {
    add(text.size());
    blake.update(text);
  }
  void add(ArrayRef<char> data) { add(StringRef(data.data(), data.size())); }
  void add(Type type) { addOnce(types, type); }
  void add(Attribute attr);
  void add(ArrayRef<NamedAttribute> attrs);
  void add(Region &region);
  void add(Operation &op);
  void addProperties(Operation &op);

  /// Adds the number of `value` among the known ones and, if it is new, its
  /// text. Returns whether it is new.
  template <typename T> bool addOnce(DenseMap<T, uint64_t> &known, T value) {
    auto [it, isNew] = known.try_emplace(value, known.size());
    add(it->second);
    if (!isNew)
      return false;
    std::string text;
    llvm::raw_string_ostream os(text);
    value.print(os, state);
    add(StringRef(text));
    return true;
  }

  Operation *root;
  llvm::BLAKE3 blake;
  AsmState state;
  DenseMap<Type, uint64_t> types;
  DenseMap<Attribute, uint64_t> attributes;
  DenseMap<Value, uint64_t> values;
  DenseMap<Block *, uint64_t> blocks;
};

/// Numbers all values and blocks that `op` defines, from 1.
void Hasher::number(Operation &op) {
  auto numberValue = [&](Value value) {
    values.try_emplace(value, values.size() + 1);
  };
  llvm::for_each(op.getResults(), numberValue);
  for (Region &region : op.getRegions())
    for (Block &block : region) {
      blocks.try_emplace(&block, blocks.size() + 1);
      llvm::for_each(block.getArguments(), numberValue);
      for (Operation &inner : block)
        number(inner);
    }
}

void Hasher::add(ArrayRef<NamedAttribute> attrs) {
  add(attrs.size());
  for (NamedAttribute attr : attrs) {
    add(attr.getName().strref());
    add(attr.getValue());
  }
}

void Hasher::add(Attribute attr) {
  if (auto dictionary = dyn_cast<DictionaryAttr>(attr))
    return add(dictionary.getValue());
  // Hash the bytes of large constants: printing them would only spell them out.
  if (auto elements = dyn_cast<DenseIntOrFPElementsAttr>(attr)) {
    add(elements.getType());
    add(elements.isSplat());
    return add(elements.getRawData());
  }
  if (!addOnce(attributes, attr))
    return;
  // The text is only a name, which another process may give to other bytes.
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      add(blob->getData());
}

/// Adds properties and attributes, except for the symbol name of the root.
void Hasher::addProperties(Operation &op) {
  NamedAttrList attrs(op.getDiscardableAttrDictionary());
  Attribute properties = op.getPropertiesAsAttribute();
  if (auto dictionary = dyn_cast_or_null<DictionaryAttr>(properties))
    attrs.append(dictionary.getValue());
  else if (properties)
    add(properties);
  if (&op == root)
    attrs.erase(SymbolTable::getSymbolAttrName());
  add(attrs.getAttrs());
}

void Hasher::add(Region &region) {
  add(region.getBlocks().size());
  for (Block &block : region) {
    add(block.getNumArguments());
    for (BlockArgument argument : block.getArguments())
      add(argument.getType());
    add(block.getOperations().size());
    for (Operation &op : block)
      add(op);
  }
}

void Hasher::add(Operation &op) {
  add(op.getName().getStringRef());
  addProperties(op);
  add(op.getNumOperands());
  for (Value operand : op.getOperands())
    add(values.lookup(operand));
  add(op.getNumSuccessors());
  for (Block *successor : op.getSuccessors())
    add(blocks.lookup(successor));
  add(op.getNumResults());
  for (Type type : op.getResultTypes())
    add(type);
  add(op.getNumRegions());
  for (Region &region : op.getRegions())
    add(region);
}

} // namespace

std::string fp8::structuralHash(Operation *root) { return Hasher(root).hash(); }
