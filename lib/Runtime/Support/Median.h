//===- Median.h - The middle of some numbers --------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_MEDIAN_H
#define FP8_LIB_RUNTIME_SUPPORT_MEDIAN_H

#include <algorithm>
#include <vector>

namespace fp8::rt {

/// Returns the median of numbers, 0 if there are none. Of an even count it is
/// the mean of the middle two.
inline double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2)
    return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_MEDIAN_H
