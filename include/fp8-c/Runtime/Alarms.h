/*===- Runtime/Alarms.h - Rules about the metrics of a step ---------------===*/

#ifndef FP8_C_RUNTIME_ALARMS_H
#define FP8_C_RUNTIME_ALARMS_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fp8_alarm_action {
  FP8_ALARM_WARN = 0, /* say so                              */
  FP8_ALARM_STOP,     /* write a checkpoint and end          */
  FP8_ALARM_SKIP      /* discard the step's update           */
} fp8_alarm_action;

/* A rule about a metric, see docs/Runtime.md. */
typedef struct fp8_alarm {
  char metric[256];
  char tensors[256]; /* glob of tree paths; "": all                        */
  int32_t below;     /* 1: <, 0: >                                         */
  double threshold;  /* a number, or a factor of the median                */
  int64_t median_of; /* steps; 0: the threshold is a number                */
  fp8_alarm_action action;
  int32_t needs_trace; /* 1: only a traced step has the metric             */
} fp8_alarm;

/* Parses a rule as fp8_train does. */
FP8_CAPI fp8_status fp8_alarm_parse(const char *text, fp8_alarm *alarm);

/* Rules about a step's metrics with their memory of earlier steps, for callers
   with a training loop of their own. */
typedef struct fp8_alarms fp8_alarms;

/* Parses rules about the loss, the metrics and the trace of a step, which must
   outlive them. FP8_ERROR_INVALID: a rule is malformed or matches nothing. */
FP8_CAPI fp8_status fp8_alarms_create(const fp8_executable *step,
                                      const char *const *rules,
                                      int64_t num_rules, fp8_alarms **alarms);
/* Accepts NULL. */
FP8_CAPI void fp8_alarms_destroy(fp8_alarms *alarms);
/* Returns whether a rule may discard a step's update. If so, the caller must
   keep the state from before the step. */
FP8_CAPI int32_t fp8_alarms_may_skip(const fp8_alarms *alarms);
/* Checks the results of the step's last run, step `number`. Passes message (or
   NULL) each alarm, as fp8_train logs it; *skip and *stop become 1 if a rule
   says so, else 0. Call it exactly once for every step. */
FP8_CAPI fp8_status fp8_alarms_check(fp8_alarms *alarms, fp8_step *step,
                                     int64_t number, fp8_message_fn message,
                                     void *user, int32_t *skip, int32_t *stop);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_ALARMS_H */
