//===- YAMLReader.h - A strict reader of YAML -------------------*- C++ -*-===//
//
// It walks the nodes of LLVM's YAML parser instead of using its mapping traits:
// these know a key only by name, while a useful error needs the key's location
// and the valid keys.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_SUPPORT_RECIPE_YAMLREADER_H
#define FP8_LIB_SUPPORT_RECIPE_YAMLREADER_H

#include "fp8/Dialect/FP8/IR/FP8Enums.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <functional>
#include <optional>

namespace mlir {
namespace fp8 {

/// Begins an error at a location in a recipe.
using EmitRecipeError = std::function<InFlightDiagnostic(FileLineColLoc)>;

/// Adds the nearest valid spelling, and all valid ones, to an error about
/// `text`.
void addChoices(InFlightDiagnostic &diag, StringRef text, StringRef what,
                ArrayRef<StringRef> valid);

/// Returns all values of an enum of FP8Enums.td.
template <typename T> SmallVector<T> getEnumValues() {
  SmallVector<T> values;
  for (uint32_t i = 0; !stringifyEnum(static_cast<T>(i)).empty(); ++i)
    values.push_back(static_cast<T>(i));
  return values;
}

class YAMLReader {
public:
  using Node = llvm::yaml::Node;

  YAMLReader(StringRef text, StringRef fileName, MLIRContext *context,
             EmitRecipeError emitError)
      : text(text), fileName(fileName), context(context),
        emitErrorAt(std::move(emitError)) {}

  /// Reads the only document of the text: calls `readRoot` with its root.
  LogicalResult read(function_ref<LogicalResult(Node *)> readRoot);

protected:
  /// One key of a mapping, and the function that reads its value.
  struct Key {
    StringLiteral name;
    bool required;
    std::function<LogicalResult(Node *value)> read;
  };

  FileLineColLoc getLocation(llvm::SMRange range);
  InFlightDiagnostic error(llvm::SMRange range);
  LogicalResult rejectAlias(Node *node);
  InFlightDiagnostic error(Node *node) { return error(node->getSourceRange()); }

  /// Reads a mapping whose keys must all be in `keys`. `what` names the mapping
  /// in errors.
  LogicalResult readMapping(Node *node, const Twine &what, ArrayRef<Key> keys);
  /// Reads a list entry by entry; errors say that `expected` is expected.
  LogicalResult readList(Node *node, const Twine &expected,
                         function_ref<LogicalResult(Node *entry)> readEntry);
  FailureOr<StringRef> readScalar(Node *node, StringRef key,
                                  SmallVectorImpl<char> &storage);
  LogicalResult readString(Node *node, StringRef key, std::string &result);
  LogicalResult readInteger(Node *node, StringRef key, int64_t min, int64_t max,
                            int64_t &result);
  /// Reads one of the valid spellings and returns its index.
  FailureOr<size_t> readChoice(Node *node, StringRef key,
                               ArrayRef<StringRef> valid);

  Key stringKey(StringLiteral name, bool required, std::string &result);
  Key boolKey(StringLiteral name, bool &result);
  Key boolKey(StringLiteral name, std::optional<bool> &result);
  Key integerKey(StringLiteral name, int64_t min, int64_t max, int64_t &result);
  Key integerKey(StringLiteral name, int64_t min, int64_t max,
                 std::optional<int64_t> &result);

  /// Makes a key whose value is the spelling of one of `valid`.
  template <typename T>
  Key enumKey(StringLiteral name, bool required, T &result,
              SmallVector<T> valid = getEnumValues<T>()) {
    return {name, required,
            [this, name, &result, valid = std::move(valid)](Node *node) {
              return readEnum(node, name, ArrayRef(valid), result);
            }};
  }
  template <typename T>
  Key enumKey(StringLiteral name, std::optional<T> &result,
              SmallVector<T> valid = getEnumValues<T>()) {
    return {name, /*required=*/false,
            [this, name, &result, valid = std::move(valid)](Node *node) {
              return readEnum(node, name, ArrayRef(valid), result.emplace());
            }};
  }

private:
  template <typename T>
  LogicalResult readEnum(Node *node, StringRef key, ArrayRef<T> valid,
                         T &result) {
    SmallVector<StringRef> spellings;
    for (T value : valid)
      spellings.push_back(stringifyEnum(value));
    FailureOr<size_t> index = readChoice(node, key, spellings);
    if (failed(index))
      return failure();
    result = valid[*index];
    return success();
  }
  LogicalResult readEntry(llvm::yaml::KeyValueNode &entry,
                          llvm::SMRange mapping, const Twine &what,
                          ArrayRef<Key> keys, SmallVectorImpl<bool> &seen);
  static void handleSyntaxError(const llvm::SMDiagnostic &diag, void *reader);

  StringRef text, fileName;
  MLIRContext *context;
  EmitRecipeError emitErrorAt;
  llvm::SourceMgr sourceMgr;
  bool syntaxError = false;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_SUPPORT_RECIPE_YAMLREADER_H
