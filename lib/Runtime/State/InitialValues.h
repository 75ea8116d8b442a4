//===- InitialValues.h - The initial values of a run ------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STATE_INITIALVALUES_H
#define FP8_LIB_RUNTIME_STATE_INITIALVALUES_H

#include "../Step/Step.h"
#include "Binding.h"
#include "SafeTensors.h"

namespace fp8::rt {

std::vector<NamedTensor> namesOf(const std::vector<TensorInfo> &infos);
std::vector<NamedTensor> namesOf(const TensorFile &file);

/// The tensors of a file and the results of an initializer; the file's value
/// wins if both have one.
class InitialValues {
public:
  /// Reads the file and runs the initializer (either may be NULL), with `seed`
  /// as its integer or key.
  InitialValues(const char *file, const fp8_executable *init, uint64_t seed,
                int threads);

  /// Finds all of `targets` by path (throws with a list of mismatches), and
  /// those of `optional` that match what is left; the others stay empty.
  struct Values {
    std::vector<Value> targets, optional;
    std::vector<NamedTensor> unused; // of the file
  };
  Values find(const std::vector<NamedTensor> &targets,
              const std::vector<NamedTensor> &optional) const;

  /// Returns whether the file has all of these, by name and type.
  bool fileHas(const std::vector<NamedTensor> &names) const;

private:
  std::string path;
  TensorFile file;
  std::unique_ptr<fp8_step> init;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STATE_INITIALVALUES_H
