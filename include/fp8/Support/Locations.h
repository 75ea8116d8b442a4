//===- Locations.h - Locations in words -------------------------*- C++ -*-===//

#ifndef FP8_SUPPORT_LOCATIONS_H
#define FP8_SUPPORT_LOCATIONS_H

#include "mlir/IR/Location.h"

#include <string>

namespace mlir::fp8 {

/// `file:line:column (scope)` of what a location calls its place, as far as the
/// location knows.
std::string describeLocation(Location loc);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_LOCATIONS_H
