//===- StoredState.h - State as the user has it, and as it is stored ------===//
//
// A step may take some of its state in another form than the user's, for
// example a moment in f32 as FP8 payloads and scales. Two functions convert:
// `store` takes tensors of the user's tree and returns arguments of the step,
// `load` is its inverse. They hold only the converted tensors; without them
// both forms are the same.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATE_STOREDSTATE_H
#define FP8_LIB_RUNTIME_STATE_STOREDSTATE_H

#include "../Step/Step.h"
#include "Binding.h"

#include <optional>

namespace fp8::rt {

class StoredState {
public:
  /// `store` and `load` may be NULL. Throws if they do not fit the step.
  StoredState(const fp8_executable &step, const fp8_executable *store,
              const fp8_executable *load, int threads);

  /// A tensor of the user's tree, and where its value belongs: an argument of
  /// the step, one of `store`, or both; -1 stands for none.
  struct Leaf {
    NamedTensor named;
    bool zeroInit = false;
    int64_t argument = -1;
    int64_t storeArgument = -1;
    int64_t loadResult = -1;
  };
  /// The user's tree, in the order of the step's arguments.
  const std::vector<Leaf> &tree() const { return leaves; }

  bool changes() const { return store != nullptr; }
  /// The arguments of the step that `store` computes.
  const std::vector<NamedTensor> &storedNames() const { return stored; }
  /// Return as JSON the tensors of the tree that `load` computes (path to dtype
  /// and shape), and the paths of the arguments that store them.
  std::string treeJson() const;
  std::string storedJson() const;
  /// Returns the names of the step's state that the compiler has added.
  std::vector<std::string> compilersNames() const;

  /// Sets the step's state from one value for each leaf (empty: zeros); `store`
  /// converts those that it takes.
  void write(const std::vector<Value> &values, fp8_step &step);

  /// The values of the tree. They are valid as long as this object and the step
  /// live and the step does not run.
  class Loaded {
  public:
    const Value &operator[](size_t leaf) const { return values[leaf]; }

  private:
    friend class StoredState;
    std::unique_ptr<fp8_step> memory;
    std::vector<Value> values;
  };
  /// Runs `load` if a leaf of `wanted` needs it.
  Loaded read(fp8_step &step, const std::vector<size_t> &wanted);

  /// The memory that the two functions took, if they ran.
  const std::optional<fp8_memory> &storeMemory() const { return storeTook; }
  const std::optional<fp8_memory> &loadMemory() const { return loadTook; }

private:
  void findArguments();
  void findLeaves();

  const fp8_executable &step;
  const fp8_executable *store;
  const fp8_executable *load;
  int threads;
  std::vector<Leaf> leaves;
  std::vector<NamedTensor> stored;
  // The step's argument for each result of `store` and argument of `load`.
  std::vector<size_t> storedArguments, loadedArguments;
  std::optional<fp8_memory> storeTook, loadTook;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STATE_STOREDSTATE_H
