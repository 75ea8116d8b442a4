//===- BatchSources.h - Arrays that feed arguments -------------*- C++ -*-===//
//
// --batch PATH=FILE[:TENSOR]. All three may hold the signs that separate them:
// the files that exist decide.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUN_BATCHSOURCES_H
#define FP8_RUN_BATCHSOURCES_H

#include "fp8-c/Runtime.h"

#include <list>
#include <string>
#include <vector>

namespace fp8run {

/// Splits `PATH=FILE[:TENSOR]`. False if there is no `=`, or nothing on a side
/// of it.
bool splitBatch(const std::string &text, std::string &path, std::string &file);

/// `PATH=FILE[:TENSOR]` options as the runtime takes them, and the strings that
/// it points to.
class BatchSources {
public:
  explicit BatchSources(const std::vector<std::string> &texts);

  std::vector<fp8_batch_source> sources;

private:
  void add(const std::string &text);
  const char *keep(const std::string &text);

  std::list<std::string> strings;
};

} // namespace fp8run

#endif // FP8_RUN_BATCHSOURCES_H
