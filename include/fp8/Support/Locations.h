//===- Locations.h - Locations as text --------------------------*- C++ -*-===//

#ifndef FP8_SUPPORT_LOCATIONS_H
#define FP8_SUPPORT_LOCATIONS_H

#include "mlir/IR/Operation.h"

#include <string>

namespace mlir::fp8 {

/// Returns `file:line:column (scope)` of a location, as far as it is known.
std::string describeLocation(Location loc);

/// Returns where to show an error about `op`. Constants that folding has merged
/// have no location: then that of a reader or of an op around it.
Location locationForError(Operation *op);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_LOCATIONS_H
