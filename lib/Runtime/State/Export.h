//===- Export.h - Trained weights for other programs ------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STATE_EXPORT_H
#define FP8_LIB_RUNTIME_STATE_EXPORT_H

#include "../Metrics/Evaluation.h"
#include "StoredState.h"

namespace fp8::rt {

/// Writes the parameters in the form that `encode` gives them: see fp8_export.
class WeightExport {
public:
  WeightExport(const fp8_export &options, const fp8_executable &step,
               const StoredState &state, int threads);

  /// Writes model.safetensors; `writeManifest` writes the manifest.
  void write(StoredState &state, fp8_step &step);

  /// The held-out losses of the model and of the exported weights.
  struct Check {
    double model, exported;
    std::optional<double> logitsSNR; // in dB, of the first batch
  };
  /// Returns nothing if it was interrupted, or without `decode`.
  std::optional<Check> check(Evaluation &evaluation,
                             const std::function<bool()> &stop);
  /// Writes export.json: the manifest, completed with the results of the
  /// export.
  void writeManifest(int64_t step, const std::optional<Check> &check) const;

  const std::string &file() const { return path; }
  int64_t bytes() const { return fileBytes; }

private:
  struct Source {
    int64_t leaf = -1, argument = -1; // of the tree, or of the step
  };
  const fp8_export &options;
  int threads;
  std::string directory, path;
  std::vector<Source> sources;      // of encode's arguments
  std::vector<size_t> wantedLeaves; // all of them
  std::vector<int64_t> decoded;     // the result of decode for each leaf, or -1
  std::unique_ptr<fp8_step> encode;
  int64_t fileBytes = 0;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STATE_EXPORT_H
