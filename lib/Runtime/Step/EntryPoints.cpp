//===- EntryPoints.cpp - What generated code calls ------------------------===//

#include "../GPU/DeviceStep.h"
#include "Step.h"

using namespace fp8::rt;

void fp8_launch(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                int64_t num_tasks, const int64_t *operands,
                const int64_t *offsets, int64_t num_operands) {
  step->attempt([&] {
    step->launch(launch, fn, num_tasks, operands, offsets, num_operands);
  });
}

void fp8_launch_owned(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                      int64_t num_tasks, const int64_t *operands,
                      const int64_t *offsets, int64_t num_operands,
                      int64_t shard) {
  step->attempt([&] {
    step->launchOwned(launch, fn, num_tasks, operands, offsets, num_operands,
                      shard);
  });
}

void fp8_launch_sets(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                     int64_t num_tasks, const int64_t *operands,
                     const int64_t *offsets, int64_t num_operands,
                     int64_t num_sets) {
  step->attempt([&] {
    step->launchSets(launch, fn, num_tasks, operands, offsets, num_operands,
                     num_sets);
  });
}

void *fp8_operand(fp8_step *step, int64_t operand) {
  void *address = nullptr;
  step->attempt([&] { address = step->operand(operand); });
  return address;
}

const void *fp8_read(fp8_step *step, int64_t operand, int64_t offset,
                     int64_t bytes) {
  static const int64_t zero = 0;
  const void *value = &zero;
  step->attempt([&] { value = step->read(operand, offset, bytes); });
  return value;
}

void fp8_write(fp8_step *step, int64_t operand, int64_t offset, int64_t bytes,
               const void *value) {
  step->attempt([&] { step->write(operand, offset, bytes, value); });
}

// Control flow that a GPU decides; only code for a GPU calls these.

int64_t fp8_loop(fp8_step *step, const fp8_gpu_kernel *kernel, int64_t trips) {
  int64_t count = 0;
  step->attempt([&] { count = step->onGPU().beginLoop(kernel, trips); });
  return count;
}

void fp8_keep(fp8_step *step, const fp8_gpu_kernel *kernel, int64_t condition,
              int64_t operand, int64_t offset, const int64_t *strides,
              int64_t bytes) {
  step->attempt([&] {
    step->onGPU().keep(kernel, condition, operand, offset, strides, bytes);
  });
}

int64_t fp8_branch(fp8_step *step, const fp8_gpu_kernel *kernel,
                   int64_t condition, int64_t low, int64_t high,
                   int64_t inverted) {
  int64_t isTaken = 0;
  step->attempt([&] {
    isTaken =
        step->onGPU().beginBranch(kernel, condition, low, high, inverted != 0);
  });
  return isTaken;
}

int64_t fp8_while(fp8_step *step, const fp8_gpu_kernel *kernel, int64_t loop,
                  int64_t condition, int64_t low, int64_t high,
                  int64_t inverted) {
  int64_t runs = 0;
  step->attempt([&] {
    runs = step->onGPU().testWhile(kernel, loop, condition, low, high,
                                   inverted != 0);
  });
  return runs;
}

void fp8_end(fp8_step *step) {
  step->attempt([&] { step->onGPU().end(); });
}

void fp8_fetch(fp8_step *step, int64_t operand) {
  step->attempt([&] { step->onGPU().fetch(operand); });
}

void fp8_order(fp8_step *step, int64_t node, const int64_t *after,
               int64_t count) {
  step->attempt([&] { step->onGPU().order(node, after, count); });
}

void fp8_launch_moving(fp8_step *step, int64_t launch,
                       const fp8_gpu_kernel *kernel, int64_t blocks,
                       const int64_t *operands, const int64_t *offsets,
                       const int64_t *strides, int64_t num_operands) {
  step->attempt([&] {
    step->onGPU().launch(launch, kernel, blocks, operands, offsets, strides,
                         num_operands);
  });
}

void fp8_write_moving(fp8_step *step, const fp8_gpu_kernel *kernel,
                      int64_t operand, int64_t offset, const int64_t *strides,
                      int64_t bytes, int64_t value,
                      const int64_t *value_strides) {
  step->attempt([&] {
    step->onGPU().writeMoving(kernel, operand, offset, strides, bytes, value,
                              value_strides);
  });
}

void fp8_all_reduce_start(fp8_step *step, int64_t number,
                          const fp8_all_reduce *what, int64_t slice,
                          const int64_t *operands, const int64_t *offsets,
                          int64_t num_operands) {
  step->attempt([&] {
    step->startAllReduce(number, *what, slice, operands, offsets, num_operands);
  });
}

void fp8_exchange_start(fp8_step *step, int64_t number,
                        const fp8_exchange *what, const int64_t *operands,
                        const int64_t *offsets, int64_t num_operands) {
  step->attempt([&] {
    step->startExchange(number, *what, operands, offsets, num_operands);
  });
}

void fp8_wait(fp8_step *step, int64_t number) {
  step->attempt([&] { step->wait(number); });
}

int64_t fp8_rank(fp8_step *step) { return step->rank(); }

int64_t fp8_num_ranks(fp8_step *step) { return step->numRanks(); }

int64_t fp8_owns(fp8_step *step, int64_t shard) {
  return shard <= 0 ? 1 : step->ownSlices(shard).count;
}
