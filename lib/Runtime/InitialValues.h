//===- InitialValues.h - What a run begins with -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_INITIALVALUES_H
#define FP8_LIB_RUNTIME_INITIALVALUES_H

#include "Binding.h"
#include "SafeTensors.h"
#include "Step.h"

namespace fp8::rt {

std::vector<Named> namesOf(const std::vector<TensorInfo> &infos);
std::vector<Named> namesOf(const TensorFile &file);

/// The tensors of a file and the results of an initializer; where both have a
/// value the file's counts.
class InitialValues {
public:
  /// Reads the file and runs the initializer (either may be NULL), with `seed`
  /// as its integer or key.
  InitialValues(const char *file, const fp8_executable *init, uint64_t seed,
                int threads);

  /// Finds all of `targets` by path (an error lists what does not fit), and
  /// those of `optional` that what is left has; the others get nullptr.
  struct Values {
    std::vector<const void *> targets, optional;
    std::vector<Named> unused; // of the file
  };
  Values find(const std::vector<Named> &targets,
              const std::vector<Named> &optional) const;

  /// Whether the file has all of these, by name and type.
  bool fileHas(const std::vector<Named> &names) const;

private:
  std::string path;
  TensorFile file;
  std::unique_ptr<fp8_step> init;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_INITIALVALUES_H
