/*===- Transport.h - What carries bytes between ranks ---------------------===*\
|*                                                                            *|
|* A transport is a plugin library that the runtime opens: it knows the       *|
|* ranks, and moves messages between them. The runtime does everything else   *|
|* (reductions, timeouts, reporting failures), so a transport is a table of   *|
|* five functions. docs/Ranks.md lists the existing transports.               *|
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

/* The bytes to send to a rank, or the buffer for bytes received from it. */
typedef struct fp8_message {
  void *data;
  int64_t bytes; /* 0: there is no message */
} fp8_message;

/* An open transport. Only one thread at a time calls the functions, not always
   the same one. */
typedef struct fp8_transport {
  int32_t version; /* FP8_TRANSPORT_VERSION */
  char name[128];  /* for people: "Open MPI 4.1.4" */
  void *state;     /* passed to every function */
  int64_t rank;    /* of this process          */
  int64_t ranks;
  /* Begins an exchange: each rank sends at most one message to each other rank,
     and receives as many bytes as that rank sends to it. sends and receives
     have one entry for each rank (this rank's is ignored), valid until the
     exchange has ended or failed, or the runtime gives it up: then it calls
     neither start nor test again. There is one exchange at a time; all ranks
     make the same exchanges in the same order. Returns 0, or -1 (see error). */
  int32_t (*start)(void *state, const fp8_message *sends,
                   const fp8_message *receives);
  /* Advances the exchange without waiting. Returns 1 if it has ended, or there
     is none; 0 if it has not: pending[r] becomes 1 if a message to or from rank
     r is under way, else 0; -1 if it has failed (see error). */
  int32_t (*test)(void *state, uint8_t *pending);
  /* Returns a description of the failure for people, and the rank that it
     concerns (-1: unknown). *told becomes 1 if that rank has reported it
     itself. Called again and again after a failure, for another rank may report
     it later; it must not touch the messages of the last exchange. */
  const char *(*error)(void *state, int64_t *rank, int32_t *told);
  /* Ends all ranks as far as possible; some transports end this process too. */
  void (*abort)(void *state, const char *message);
  /* Called when all ranks are done, or after abort. */
  void (*close)(void *state);
} fp8_transport;

/* The function that a plugin exports under the name fp8_transport_open.
   arguments: what the user wrote after the name of the library, or "". timeout:
   seconds. Returns 0, or -1 with a message in error. */
typedef int32_t (*fp8_transport_open_fn)(const char *arguments, double timeout,
                                         fp8_transport *transport, char *error,
                                         int64_t error_bytes);

/* Only plugins define this function. */
FP8_CAPI int32_t fp8_transport_open(const char *arguments, double timeout,
                                    fp8_transport *transport, char *error,
                                    int64_t error_bytes);

/* Creates a group over the caller's own transport, which the group closes. */
FP8_CAPI fp8_status fp8_group_adopt(const fp8_transport *transport,
                                    const fp8_group_options *options,
                                    fp8_group **group);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_TRANSPORT_H */
