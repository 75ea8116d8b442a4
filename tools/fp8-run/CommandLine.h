//===- CommandLine.h - Reading the command line of fp8-run ------*- C++ -*-===//

#ifndef FP8_TOOLS_FP8RUN_COMMANDLINE_H
#define FP8_TOOLS_FP8RUN_COMMANDLINE_H

#include "Options.h"

namespace mlir::fp8 {

/// Removes the options of the libraries, so that the tool only shows its own.
void removeInheritedOptions();

/// Sets the options; returns 0, or the exit status of a mistake.
int parseCommandLine(int argc, char **argv, const Options &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_COMMANDLINE_H
