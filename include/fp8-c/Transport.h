/*===- Transport.h - What carries bytes between ranks ---------------------===*\
|*                                                                            *|
|* A transport is a plugin library that the runtime opens: it knows who the   *|
|* ranks are, and moves messages between them. Everything else (reductions,   *|
|* timeouts, who tells of a failure) is the runtime's, so a transport is a    *|
|* table of five functions. docs/Ranks.md lists the ones that there are.      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FP8_C_TRANSPORT_H
#define FP8_C_TRANSPORT_H

#include "fp8-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define FP8_TRANSPORT_VERSION 1

/* Bytes for a rank, or the place for bytes from it. */
typedef struct fp8_message {
  void *data;
  int64_t bytes; /* 0: there is no message */
} fp8_message;

/* A transport that is open. The functions are called by one thread at a time,
   not always by the same. */
typedef struct fp8_transport {
  int32_t version; /* FP8_TRANSPORT_VERSION */
  char name[128];  /* for people: "Open MPI 4.1.4" */
  void *state;     /* passed to every function */
  int64_t rank;    /* of this process          */
  int64_t ranks;
  /* Begins an exchange: each rank sends at most one message to each other rank,
     and receives as many bytes as that rank sends to it. sends and receives
     have an entry for each rank (that of this one counts for nothing), valid
     until the exchange has ended. One exchange at a time; all ranks make the
     same exchanges in the same order. 0, or -1: see error. */
  int32_t (*start)(void *state, const fp8_message *sends,
                   const fp8_message *receives);
  /* Works on the exchange without waiting. 1: it has ended, or there is none.
     0: not yet; pending[r] becomes 1 where a message to or from rank r is under
     way, else 0. -1: it has failed, see error. */
  int32_t (*test)(void *state, uint8_t *pending);
  /* What the failure was, for people, and the rank that it is about (-1: not
     known). *told becomes 1 if that rank has told of it itself. */
  const char *(*error)(void *state, int64_t *rank, int32_t *told);
  /* Ends all ranks, as far as it can: some transports end this process too. */
  void (*abort)(void *state, const char *message);
  /* When all ranks are through, or after abort. */
  void (*close)(void *state);
} fp8_transport;

/* What a plugin exports, under the name fp8_transport_open. arguments: what the
   user said after the name of the library, or "". timeout: seconds. 0, or -1
   with a message in error. */
typedef int32_t (*fp8_transport_open_fn)(const char *arguments, double timeout,
                                         fp8_transport *transport, char *error,
                                         int64_t error_bytes);

/* Defined by plugins alone. */
FP8_CAPI int32_t fp8_transport_open(const char *arguments, double timeout,
                                    fp8_transport *transport, char *error,
                                    int64_t error_bytes);

/* A group over a transport of the caller's own, which the group closes. */
FP8_CAPI fp8_status fp8_group_adopt(const fp8_transport *transport,
                                    const fp8_group_options *options,
                                    fp8_group **group);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_TRANSPORT_H */
