//===- Exchange.h - Parts that ranks of a group exchange --------*- C++ -*-===//
//
// What moves values between ranks and computes nothing: a part to each member
// of a group, the same part to all of them, or a value along pairs of ranks.
// Sums over groups are made of these and of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_EXCHANGE_H
#define FP8_LIB_RUNTIME_COLLECTIVES_EXCHANGE_H

#include "Group.h"

namespace fp8::rt {

/// One exchange, and where its operands are, which do not overlap.
struct Exchange {
  fp8_exchange what;
  int64_t number; // among the launches of its step
  const char *in;
  char *out;
};

/// Why `rank` of `ranks` cannot do this; "" if it can.
std::string findMistake(const fp8_exchange &what, int64_t rank, int64_t ranks);

/// Bytes of operand 0 and of operand 1.
int64_t inputBytes(const fp8_exchange &what);
int64_t resultBytes(const fp8_exchange &what);

/// What this rank sends to others, in bytes.
int64_t bytesToSend(const fp8_exchange &what, int64_t rank);

/// What this rank sends to another one, or to itself, and receives from it:
/// parts, or null.
struct Part {
  int64_t rank;
  const char *from;
  char *to;
};
std::vector<Part> partsOf(const Exchange &exchange, int64_t rank);

/// The elements of operand 0 that may be NaN or infinite, which is noted; 0 if
/// this rank sends nothing, or no elements of a known type.
int64_t elementsToCheck(const fp8_exchange &what,
                        const std::vector<Part> &parts);

/// A job of the group: all ranks come here, those in no pair too.
void runExchange(fp8_group &group, const Exchange &exchange);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_EXCHANGE_H
