/*===- Runtime/Status.h - Version, failures, messages ---------------------===*/

#ifndef FP8_C_RUNTIME_STATUS_H
#define FP8_C_RUNTIME_STATUS_H

#include <stdint.h>

#if defined(__GNUC__)
#define FP8_CAPI __attribute__((visibility("default")))
#else
#define FP8_CAPI
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface between these headers and compiled code. It is
   raised when code compiled earlier would no longer run. Packages record it. */
#define FP8_ABI_VERSION 12

/* Returns the library's FP8_ABI_VERSION. */
FP8_CAPI int32_t fp8_abi_version(void);

typedef enum fp8_status {
  FP8_OK = 0,
  FP8_ERROR_INVALID = 1,   /* the caller broke the rules of these headers    */
  FP8_ERROR_IO = 2,        /* a file or directory cannot be read or written  */
  FP8_ERROR_FORMAT = 3,    /* a file's contents are malformed                */
  FP8_ERROR_DATA = 4,      /* training data do not fit the step              */
  FP8_ERROR_MISMATCH = 5,  /* tensors by path do not fit the step            */
  FP8_ERROR_NONFINITE = 6, /* the loss or the state became NaN or infinite   */
  FP8_ERROR_MEMORY = 7,    /* out of memory                                  */
  FP8_ERROR_INTERNAL = 8,  /* a bug, of the compiler or of the runtime       */
  FP8_INTERRUPTED = 9,     /* SIGINT, SIGTERM or SIGHUP: checkpoint written */
  FP8_STOPPED = 10,        /* an alarm stopped training likewise             */
  FP8_ERROR_RANK = 11      /* another rank failed, or differs from this one  */
} fp8_status;

/* Returns the message of this thread's last failure, or "" if there was none.
   It is valid until this thread's next call into the library. */
FP8_CAPI const char *fp8_last_error(void);

/* Returns a name such as "out of memory"; never NULL. */
FP8_CAPI const char *fp8_status_name(fp8_status status);

/* A callback for text for people: whole lines, or progress lines that begin
   with '\r'. */
typedef void (*fp8_message_fn)(void *user, const char *text);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_STATUS_H */
