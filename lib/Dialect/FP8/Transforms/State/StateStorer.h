//===- StateStorer.h - How the optimizer's state is stored ------*- C++ -*-===//
//
// A step reads an array in its stored form and computes with the value that it
// represents; the new value, fresh from the update, is stored at the end. A
// branch that passes the old value on passes on the stored form: an update that
// is not taken changes no bit.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_STATESTORER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_STATESTORER_H

#include "../Quantize/DelayedScaling.h"
#include "../Seeds.h"
#include "../StoredForm.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Recipe.h"

namespace mlir::fp8 {

/// One array of the state and how it is stored.
struct StoredArray : StoredForm {
  unsigned argument = 0;
  std::string path = {};
  StringAttr kind = {};
  /// The type of the whole array, of which each rank may have a part.
  RankedTensorType whole = {};

  /// Returns the stored form of the whole array.
  StoredArray getWhole() const {
    StoredArray array = *this;
    static_cast<StoredForm &>(array) = StoredForm::get(recipe, whole);
    return array;
  }
  Type getType() const { return scaled ? Type(scaled) : Type(narrow); }
  int64_t getBytes() const {
    int64_t bytes = 0;
    for (RankedTensorType type : getPartTypes())
      bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    return bytes;
  }
};

/// Returns the suffixes of the paths that a range expansion adds.
inline ArrayRef<StringRef> getSuffixes(const StoredArray &array) {
  static const StringRef suffixes[] = {".center", ".exponent"};
  return array.recipe.expand ? ArrayRef(suffixes) : ArrayRef<StringRef>();
}

/// Returns the parts of an array that a range expansion adds, after payload and
/// scale.
inline ArrayRef<Value> getExpansion(ArrayRef<Value> parts) {
  return parts.size() > 2 ? parts.drop_front(2) : ArrayRef<Value>();
}

/// The decision about one array; see `#fp8.state_verdict`.
struct StateDecision {
  unsigned argument = 0;
  std::string path, kind, parameter;
  int64_t elements = 0;
  Type from, to;
  std::optional<StorageTiling> tile;
  int64_t bytes = 0;
  bool changed = false;
  std::string reason;
  SmallVector<std::string> notes;

  StateVerdictAttr getAttribute(MLIRContext *context) const;
};

/// Changes how one step stores its state.
class StateStorer {
public:
  StateStorer(func::FuncOp function, const Recipe &recipe)
      : function(function), recipe(recipe), builder(function.getContext()),
        seeds(function, recipe.seed), delayed(function) {}

  std::vector<StateDecision> decisions;

  LogicalResult run();

private:
  /// An array of the state inside a block: its value, and the parts (payload,
  /// scale, ...) from which the value was loaded.
  struct LoadedArray {
    Value value;
    SmallVector<Value> parts;
  };

  void decide();
  void clip();
  const StorageRecipe *getStorage(const SignatureArg &arg) const;
  std::string getReasonUnchanged(const SignatureArg &arg,
                                 const StorageRecipe *storage,
                                 StringRef owner) const;
  void change(const SignatureArg &arg, const StorageRecipe &storage,
              StateDecision &decision);
  void changeArgument(StoredArray &array);
  LogicalResult storeResult(StoredArray &array);
  Value pack(StoredArray &array, ArrayRef<Value> parts, Location loc);
  SmallVector<Value> unpack(StoredArray &array, Value stored, Location loc);
  FailureOr<SmallVector<Value>>
  store(StoredArray &array, const LoadedArray &loaded, OpOperand &value);
  FailureOr<SmallVector<Value>> storeInBranches(StoredArray &array,
                                                const LoadedArray &loaded,
                                                OpResult value);
  FailureOr<SmallVector<Value>>
  storeInLoop(StoredArray &array, const LoadedArray &loaded, OpResult value);
  FailureOr<SmallVector<Value>>
  storeFresh(StoredArray &array, const LoadedArray &loaded, OpOperand &value);
  FailureOr<SmallVector<Value>> quantize(StoredArray &array, Value value,
                                         Location loc, bool initial);
  void loadInBranches(StoredArray &array);
  bool passesOn(Value value, Value loaded) const;
  BlockArgument addArgument(const StoredArray &array, Type type,
                            StringRef suffix);
  DictionaryAttr getPartOfTiles(const StoredArray &array);
  void makeStateFunctions();

  func::FuncOp function;
  const Recipe &recipe;
  OpBuilder builder;
  Seeds seeds;
  DelayedScaling delayed;
  std::vector<StoredArray> arrays;
  DenseMap<unsigned, LoadedArray> loadedArrays; ///< By argument.
  DenseMap<StringAttr, unsigned> resultOfState; ///< By path.
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_STATESTORER_H
