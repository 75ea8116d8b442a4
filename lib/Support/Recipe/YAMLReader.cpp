//===- YAMLReader.cpp - A strict reader of YAML ---------------------------===//

#include "YAMLReader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"

#include <tuple>

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Returns the candidate with the smallest edit distance (the first of equals),
/// ignoring case; empty if none is near enough to be meant.
static StringRef nearest(StringRef text, ArrayRef<StringRef> candidates) {
  StringRef best;
  unsigned bestDistance = (text.size() + 2) / 3 + 1;
  std::string lower = text.lower();
  for (StringRef candidate : candidates) {
    unsigned distance = StringRef(lower).edit_distance(candidate.lower());
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

void fp8::addChoices(InFlightDiagnostic &diag, StringRef text, StringRef what,
                     ArrayRef<StringRef> valid) {
  diag << "; ";
  if (StringRef meant = nearest(text, valid); !meant.empty())
    diag << "did you mean '" << meant << "'? ";
  diag << "valid " << what << ": " << llvm::join(valid, ", ");
}

FileLineColLoc YAMLReader::getLocation(llvm::SMRange range) {
  unsigned line = 1, column = 1;
  if (range.Start.isValid())
    std::tie(line, column) = sourceMgr.getLineAndColumn(range.Start);
  return FileLineColLoc::get(context, fileName, line, column);
}

InFlightDiagnostic YAMLReader::error(llvm::SMRange range) {
  // After a syntax error, errors about the rest of the tree are noise.
  if (syntaxError)
    return {};
  return emitErrorAt(getLocation(range));
}

/// Fails if a node is an alias of another one. (It has no location of its own,
/// but its name lies in the text.)
LogicalResult YAMLReader::rejectAlias(Node *node) {
  auto *alias = dyn_cast<llvm::yaml::AliasNode>(node);
  if (!alias)
    return success();
  const char *star = alias->getName().data() - 1;
  llvm::SMLoc start = llvm::SMLoc::getFromPointer(star);
  return error(llvm::SMRange(start, start))
         << "expected a value but got the alias '*" << alias->getName()
         << "'; aliases are not supported";
}

/// Turns the first syntax error of the YAML scanner into an MLIR diagnostic.
void YAMLReader::handleSyntaxError(const llvm::SMDiagnostic &diag, void *data) {
  auto *reader = static_cast<YAMLReader *>(data);
  if (std::exchange(reader->syntaxError, true))
    return;
  unsigned line = diag.getLineNo() > 0 ? diag.getLineNo() : 1;
  unsigned column = diag.getColumnNo() >= 0 ? diag.getColumnNo() + 1 : 1;
  reader->emitErrorAt(
      FileLineColLoc::get(reader->context, reader->fileName, line, column))
      << "invalid YAML: " << diag.getMessage();
}

//===----------------------------------------------------------------------===//
// Documents, mappings and lists
//===----------------------------------------------------------------------===//

LogicalResult YAMLReader::read(function_ref<LogicalResult(Node *)> readRoot) {
  sourceMgr.setDiagHandler(handleSyntaxError, this);
  llvm::yaml::Stream stream(text, sourceMgr, /*ShowColors=*/false);
  llvm::yaml::document_iterator document = stream.begin();
  if (document == stream.end())
    return failure();
  Node *root = document->getRoot();
  if (!root || stream.failed())
    return failure();
  // The scanner is lazy: a syntax error may appear only during the walk.
  if (failed(readRoot(root)) || stream.failed())
    return failure();
  if (++document == stream.end())
    return success();
  if (stream.failed())
    return failure();
  return error(document->getRoot())
         << "expected one recipe in a file but got a second document";
}

LogicalResult YAMLReader::readEntry(llvm::yaml::KeyValueNode &entry,
                                    llvm::SMRange mapping, const Twine &what,
                                    ArrayRef<Key> keys,
                                    SmallVectorImpl<bool> &seen) {
  auto *keyNode = dyn_cast_or_null<llvm::yaml::ScalarNode>(entry.getKey());
  if (!keyNode)
    return error(mapping) << "expected the keys of " << what
                          << " to be plain words";
  SmallString<16> storage;
  std::string name = keyNode->getValue(storage).str();
  llvm::SMRange range = keyNode->getSourceRange();
  const Key *key =
      llvm::find_if(keys, [&](const Key &other) { return other.name == name; });
  if (key == keys.end()) {
    InFlightDiagnostic diag = error(range);
    diag << "unknown key '" << name << "' in " << what;
    SmallVector<StringRef> names;
    for (const Key &other : keys)
      names.push_back(other.name);
    addChoices(diag, name, "keys", names);
    return diag;
  }
  if (std::exchange(seen[key - keys.begin()], true))
    return error(range) << "duplicate key '" << name << "' in " << what;
  // The node of a missing value has no location of its own.
  Node *value = entry.getValue();
  if (!value || isa<llvm::yaml::NullNode>(value))
    return error(range) << "expected a value of key '" << name << "' in "
                        << what;
  if (failed(rejectAlias(value)))
    return failure();
  return key->read(value);
}

LogicalResult YAMLReader::readMapping(Node *node, const Twine &what,
                                      ArrayRef<Key> keys) {
  auto *mapping = dyn_cast_or_null<llvm::yaml::MappingNode>(node);
  if (!mapping) {
    InFlightDiagnostic diag = error(node);
    diag << "expected " << what << " to be a mapping with the keys ";
    llvm::interleaveComma(keys, diag,
                          [&](const Key &key) { diag << key.name; });
    return diag;
  }
  llvm::SMRange range = mapping->getSourceRange();
  SmallVector<bool> seen(keys.size());
  for (llvm::yaml::KeyValueNode &entry : *mapping)
    if (failed(readEntry(entry, range, what, keys, seen)))
      return failure();
  for (auto [key, wasSeen] : llvm::zip_equal(keys, seen))
    if (key.required && !wasSeen)
      return error(range) << "missing key '" << key.name << "' in " << what;
  return success();
}

LogicalResult
YAMLReader::readList(Node *node, const Twine &expected,
                     function_ref<LogicalResult(Node *entry)> readEntry) {
  auto *sequence = dyn_cast<llvm::yaml::SequenceNode>(node);
  if (!sequence)
    return error(node) << expected;
  for (Node &entry : *sequence)
    if (failed(rejectAlias(&entry)) || failed(readEntry(&entry)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

FailureOr<StringRef> YAMLReader::readScalar(Node *node, StringRef key,
                                            SmallVectorImpl<char> &storage) {
  auto *scalar = dyn_cast<llvm::yaml::ScalarNode>(node);
  if (!scalar)
    return error(node) << "expected key '" << key << "' to have a plain value";
  return scalar->getValue(storage);
}

LogicalResult YAMLReader::readString(Node *node, StringRef key,
                                     std::string &result) {
  SmallString<32> storage;
  FailureOr<StringRef> value = readScalar(node, key, storage);
  if (failed(value))
    return failure();
  result = value->str();
  return success();
}

LogicalResult YAMLReader::readInteger(Node *node, StringRef key, int64_t min,
                                      int64_t max, int64_t &result) {
  SmallString<16> storage;
  FailureOr<StringRef> value = readScalar(node, key, storage);
  if (failed(value))
    return failure();
  if (value->getAsInteger(10, result) || result < min || result > max)
    return error(node) << "expected the value of key '" << key
                       << "' to be an integer from " << min << " to " << max
                       << " but got '" << *value << "'";
  return success();
}

FailureOr<size_t> YAMLReader::readChoice(Node *node, StringRef key,
                                         ArrayRef<StringRef> valid) {
  SmallString<16> storage;
  FailureOr<StringRef> value = readScalar(node, key, storage);
  if (failed(value))
    return failure();
  const StringRef *found = llvm::find(valid, *value);
  if (found != valid.end())
    return found - valid.begin();
  InFlightDiagnostic diag = error(node);
  diag << "unknown value '" << *value << "' of key '" << key << "'";
  addChoices(diag, *value, "values", valid);
  return diag;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

YAMLReader::Key YAMLReader::stringKey(StringLiteral name, bool required,
                                      std::string &result) {
  return {name, required, [this, name, &result](Node *node) {
            return readString(node, name, result);
          }};
}

YAMLReader::Key YAMLReader::boolKey(StringLiteral name, bool &result) {
  return {name, /*required=*/false,
          [this, name, &result](Node *node) -> LogicalResult {
            FailureOr<size_t> index = readChoice(node, name, {"false", "true"});
            result = succeeded(index) && *index == 1;
            return index;
          }};
}

YAMLReader::Key YAMLReader::boolKey(StringLiteral name,
                                    std::optional<bool> &result) {
  return {name, /*required=*/false, [this, name, &result](Node *node) {
            return boolKey(name, result.emplace()).read(node);
          }};
}

YAMLReader::Key YAMLReader::integerKey(StringLiteral name, int64_t min,
                                       int64_t max, int64_t &result) {
  return {name, /*required=*/false,
          [this, name, min, max, &result](Node *node) {
            return readInteger(node, name, min, max, result);
          }};
}

YAMLReader::Key YAMLReader::integerKey(StringLiteral name, int64_t min,
                                       int64_t max,
                                       std::optional<int64_t> &result) {
  return {name, /*required=*/false,
          [this, name, min, max, &result](Node *node) {
            return readInteger(node, name, min, max, result.emplace());
          }};
}
