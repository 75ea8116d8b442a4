//===- Process.h - The process of a command-line tool -----------*- C++ -*-===//

#ifndef FP8_RUN_PROCESS_H
#define FP8_RUN_PROCESS_H

#include <string>

namespace fp8run {

/// Comes first in main. A program may be started without its standard files:
/// /dev/null takes their descriptors, so that no file of the run gets one and
/// with it what is printed. A write to a closed pipe, or beyond the limit on
/// file sizes, becomes an error instead of the end of the process.
void prepareProcess();

/// Comes last: returns the status, or 1 after a message if a run that went well
/// could not print.
int finishOutput(const std::string &program, int status);

} // namespace fp8run

#endif // FP8_RUN_PROCESS_H
