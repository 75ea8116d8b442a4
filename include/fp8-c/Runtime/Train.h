/*===- Runtime/Train.h - Training, evaluations and exports ----------------===*/

#ifndef FP8_C_RUNTIME_TRAIN_H
#define FP8_C_RUNTIME_TRAIN_H

#include "fp8-c/Runtime/Package.h"
#include "fp8-c/Runtime/Ranks.h"
#include "fp8-c/Runtime/Step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs executable once with the arguments in file inputs (NULL if it takes
   none) and writes all results to file outputs. Tensors are named by tree path;
   see docs/Runtime.md. */
FP8_CAPI fp8_status fp8_run_once(const fp8_executable *executable,
                                 const char *inputs, const char *outputs,
                                 int32_t threads);

/* Feeds a batch argument from an array. An array is a list of rows. An argument
   with the shape of a row takes one row in every step; one with more leading
   dimensions takes as many rows as these count (f32[8,16] takes one row of
   [steps,8,16], or 8 rows of [examples,16]). All arrays advance through their
   rows together, epoch after epoch; arrays of scalar arguments are indexed by
   step instead. */
typedef struct fp8_batch_source {
  const char *path;   /* the argument */
  const char *file;   /* .safetensors or .npy */
  const char *tensor; /* safetensors: the tensor's name; NULL: the only one, or
                         the one with the argument's name */
  /* With file NULL: the array itself, which must live as long as the call. */
  const fp8_tensor_info *info; /* its type; the name is ignored   */
  const void *data;
} fp8_batch_source;

/* Writes the parameters for other programs when training has ended:
   directory/model.safetensors and directory/export.json. */
typedef struct fp8_export {
  const char *directory; /* created if missing */
  /* Takes tensors of the user's tree, or arguments of the step, by name and
     type. model.safetensors holds its results of kind OUTPUT; export.json its
     scalars of kind METRIC. */
  const fp8_executable *encode;
  /* Or NULL. Takes what encode returns and returns tensors of the user's tree:
     the values that a reader of the file gets. */
  const fp8_executable *decode;
  /* Or NULL: an evaluation as in fp8_train_options, with the same data. It runs
     on what decode returns and on the model, and both losses are reported. */
  const fp8_executable *eval;
  /* Or NULL: the result of eval whose signal-to-noise ratio is reported. */
  const char *logits;
  const char *manifest; /* a JSON object for export.json; or NULL */
} fp8_export;

typedef struct fp8_train_options {
  const fp8_executable *step;
  const fp8_executable *init; /* or NULL                                    */
  const fp8_executable *eval; /* or NULL                                    */
  const char *init_file;      /* safetensors with the initial values; with init
                                 too, the file wins where both have a value */
  const char *const *data_files; /* text, or tokens: .u16, .npy, .safetensors */
  int64_t num_data_files;
  const char *const
      *eval_files; /* held-out text; none: the end of data_files */
  int64_t num_eval_files;
  const fp8_batch_source *batches;
  int64_t num_batches;
  const fp8_batch_source *eval_batches; /* the same for eval, read in order */
  int64_t num_eval_batches;
  int32_t shuffle; /* 1: the rows of batches in a random order for each epoch */
  double holdout;  /* fraction of each data file; 0: 0.1; < 0: none    */
  const char *out_dir; /* created if missing                               */
  const char *fingerprint; /* of module, recipe and compiler; or NULL        */
  uint64_t seed;
  int64_t steps;            /* in total, those before a resume included      */
  int64_t checkpoint_every; /* 0: at the end only; < 0: none, not even then  */
  int64_t keep_checkpoints; /* how many of the newest stay; 0: all           */
  int64_t eval_every;       /* 0: at the end only (with eval)                */
  int64_t log_every;        /* lines where stdout is no terminal; 0: 10      */
  int32_t threads;          /* see fp8_step_create                           */
  int32_t resume;           /* from the newest valid checkpoint in out_dir   */
  int32_t overwrite;        /* 1: files of an earlier run may be replaced;
                               0: they are an error (without resume)         */
  int32_t no_signals;       /* 1: leave SIGINT, SIGTERM and SIGHUP alone: they
                               do not stop this run, nor does it hide them
                               from other runs of the process                */
  int32_t live;    /* progress line: 1 live ('\r'), -1 lines, 0 by isatty(1) */
  int32_t quiet;   /* 1: no messages but warnings, those on stderr  */
  int32_t profile; /* 1: time every launch and report it; profile.json,
                      timeline.json                         */
  fp8_message_fn message; /* NULL: stdout                                  */
  void *user;
  const char *verdicts;      /* text of verdicts.json, written when training
                                starts; or NULL                              */
  const char *memory_plan;   /* JSON of the compiler's plan, a part of
                                memory.json; or NULL                         */
  const char *const *alarms; /* rules, evaluated after every step        */
  int64_t num_alarms;
  int32_t trace; /* 1: write trace.jsonl, the statistics of a traced step    */
  int64_t trace_every; /* steps between lines; 0: 1                          */
  /* Both or neither are NULL. Not NULL: the step stores some of its state in
     another form than the user's (for example as FP8 payloads and scales).
     store takes state in the user's form and returns arguments of the step, by
     name and type; its arguments have the paths of the user's tree. load takes
     arguments of the step and returns state in the user's form: arguments of
     store, by name and type. What store takes and load does not return is also
     an argument of the step, of the same type, which store only reads.
     store runs once, on the initial values; load runs for each evaluation.
     Checkpoints hold the step's arguments. */
  const fp8_executable *store;
  const fp8_executable *load;
  /* Or NULL. With resume, a run that has nothing left to train needs no data
     for an export. */
  const fp8_export *export_weights;
  const char *recipe; /* text of recipe.yaml, written when training starts; or
                         NULL */
  const char *preset; /* text of preset.yaml: the preset of the recipe's name;
                         or NULL */
  const char *cost;   /* JSON of the compiler's counts; with profile, cost.json
                         holds it and the machine's limits; or NULL */
  /* Or NULL. Ranks that train together, each with its own rows of the batch:
     all call fp8_train with the same options. Rank 0 alone writes files and
     calls message. */
  fp8_group *group;
  int32_t sharded_checkpoints; /* with group, 1: each rank writes a share of the
                                  state to its own file; that is always so if
                                  state is dealt to ranks (shard)           */
  const char *ranks; /* text of ranks.txt: ranks that train together have the
                        same first line; or NULL                            */
  /* Or NULL. fp8_evaluate and fp8_export_weights call it with user before each
     batch, unless ranks share the batches: they end with FP8_INTERRUPTED if it
     does not return 0. */
  int32_t (*stop)(void *user);
} fp8_train_options;

/* Fills in what a package has for a run: functions, fingerprint, recipe,
   verdicts and memory plan; if exported is not NULL, the functions and the
   manifest of an export too. Other fields stay as they are. The values are
   valid as long as the package. FP8_ERROR_INVALID: the package has no step, or
   no function to export with. */
FP8_CAPI fp8_status fp8_package_options(const fp8_package *package,
                                        fp8_train_options *options,
                                        fp8_export *exported);

typedef struct fp8_train_summary {
  int64_t first_step; /* 0, or where it resumed */
  int64_t last_step;  /* steps that the state has taken */
  double first_loss;  /* of the run, including the log before a resume */
  double last_loss;
  double mean_loss_10; /* over the last 10 (20) steps */
  double mean_loss_20;
  double heldout_loss;      /* NaN without eval */
  double tokens_per_second; /* median           */
  double step_seconds;      /* median           */
  int64_t tokens_per_step;
  fp8_memory memory;     /* of the step */
  char checkpoint[1024]; /* path of the last one, or "" */
} fp8_train_summary;

/* Trains until the last step, SIGINT, SIGTERM, SIGHUP (unless the process
   ignores it, as under nohup), a non-finite value or an error. Writes log.csv,
   log.jsonl, loss.svg, memory.json and checkpoint-<step>.safetensors to
   out_dir, or several checkpoint files with
   checkpoint-<step>.safetensors.index.json. summary (or NULL) is filled as far
   as training came, whatever the status. */
FP8_CAPI fp8_status fp8_train(const fp8_train_options *options,
                              fp8_train_summary *summary);

/* Reports what fp8_train would report about its files, for programs that have
   yet to compile the functions, which may be missing: an input that cannot be
   read; an out_dir that another run writes to or that holds a package; one with
   an earlier run, with neither resume nor overwrite; one without a checkpoint,
   with resume. Reads and writes no contents. All ranks that train together call
   this. */
FP8_CAPI fp8_status fp8_check_files(const fp8_train_options *options);
/* Reports what fp8_train would report about the arrays of options->batches (of
   eval_batches if is_evaluation is not 0), for programs that know the arguments
   of the step (of eval) but have yet to compile it. Reads the arrays. */
FP8_CAPI fp8_status fp8_check_batches(const fp8_train_options *options,
                                      const fp8_tensor_info *arguments,
                                      int64_t num_arguments,
                                      int32_t is_evaluation);

/* Evaluates the state of a step on held-out data as fp8_train does, without
   changing it. step: of options->step, or of an executable with the same
   arguments. It uses these options: step, eval, store, load, data_files,
   eval_files, holdout, eval_batches, init and init_file (for arguments of eval
   that are not state of the step), seed, threads, no_signals, stop with
   options->user, and group. The ranks of group all call this, each with all of
   the state (fp8_step_gather), and share the batches among them. Passes message
   one line of JSON: {"heldout_loss": 1.5, "heldout_metrics": {PATH: ...},
   "batches": 8}, without "heldout_metrics" if eval has no other metrics; null
   stands for a value that is not finite. FP8_INTERRUPTED: by a signal or by
   stop, of one rank alone. */
FP8_CAPI fp8_status fp8_evaluate(const fp8_train_options *options,
                                 fp8_step *step, fp8_message_fn message,
                                 void *user);

/* Writes the weights of a step's state as fp8_train does at its end, to
   options->export_weights->directory. export.json records `number` as the step
   of the weights. The held-out losses are computed if export_weights->eval is
   given and the options name data for it, as for fp8_evaluate. */
FP8_CAPI fp8_status fp8_export_weights(const fp8_train_options *options,
                                       fp8_step *step, int64_t number);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_TRAIN_H */
