//===- Locations.h - Locations as text --------------------------*- C++ -*-===//

#ifndef FP8_SUPPORT_LOCATIONS_H
#define FP8_SUPPORT_LOCATIONS_H

#include "mlir/IR/Location.h"

#include <string>

namespace mlir::fp8 {

/// Returns `file:line:column (scope)` of a location, as far as it is known.
std::string describeLocation(Location loc);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_LOCATIONS_H
