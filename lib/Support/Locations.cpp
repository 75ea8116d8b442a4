//===- Locations.cpp - Locations as text ----------------------------------===//

#include "fp8/Support/Locations.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Visitors.h"

using namespace mlir;

std::string fp8::describeLocation(Location loc) {
  // The scope is the outermost name, the position that of the innermost file.
  StringRef scope;
  std::string place;
  loc->walk([&](Location nested) {
    if (auto name = dyn_cast<NameLoc>(nested)) {
      if (scope.empty())
        scope = name.getName().getValue();
    } else if (auto file = dyn_cast<FileLineColLoc>(nested)) {
      place = (file.getFilename().getValue() + ":" + Twine(file.getLine()) +
               ":" + Twine(file.getColumn()))
                  .str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (scope.empty())
    return place.empty() ? "unknown" : place;
  return place.empty() ? scope.str() : place + " (" + scope.str() + ")";
}

Location fp8::locationForError(Operation *op) {
  for (Operation *around = op; around; around = around->getParentOp()) {
    if (!isa<UnknownLoc>(around->getLoc()))
      return around->getLoc();
    for (Operation *user : around->getUsers())
      if (!isa<UnknownLoc>(user->getLoc()))
        return user->getLoc();
  }
  return op->getLoc();
}
