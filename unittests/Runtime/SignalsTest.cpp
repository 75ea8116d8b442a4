//===- SignalsTest.cpp - Signals that end a run ---------------------------===//

#include "UnigramTraining.h"

#include <csignal>
#include <future>
#include <thread>

using namespace fp8::test;

namespace {
class Signals : public Train {};
} // namespace

TEST_F(Signals, InterruptFinishesTheStepAndSaves) {
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string whole = read(out + "/checkpoint-40.safetensors");
  out = dir / "interrupted";
  options.out_dir = out.c_str();
  hook = [](int32_t count, int32_t *) {
    if (count == 12)
      std::raise(SIGINT);
  };
  EXPECT_EQ(run(), FP8_INTERRUPTED);
  EXPECT_HAS(error, "interrupted after step 13 of 40; resume from " + out +
                        "/checkpoint-13.safetensors");
  EXPECT_EQ(summary.last_step, 13);
  hook = nullptr;
  options.resume = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), whole);
}

TEST_F(Signals, AClosedTerminalSavesUnlessIgnored) {
  // The shell may tell it again.
  hook = [](int32_t count, int32_t *) {
    for (int i = 0; count == 12 && i < 2; ++i)
      std::raise(SIGHUP);
  };
  // (The tests themselves may run under nohup.)
  auto *before = std::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(run(), FP8_INTERRUPTED);
  EXPECT_HAS(error, "resume from " + out + "/checkpoint-13.safetensors");
  // As nohup does.
  std::signal(SIGHUP, SIG_IGN);
  options.overwrite = 1;
  EXPECT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST_F(Signals, ASignalIsForTheRunsThatHeedSignals) {
  options.threads = 1; // a step in a step cannot share a pool of threads
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(step, 1, &own), FP8_OK);
  fp8_train_options others = options;
  others.no_signals = 1;
  fp8_status evaluated = FP8_ERROR_INTERNAL;
  std::string line;
  hook = [&](int32_t count, int32_t *) {
    if (count != 12)
      return;
    std::raise(SIGINT);
    evaluated = fp8_evaluate(
        &others, own,
        [](void *user, const char *text) {
          *static_cast<std::string *>(user) = text;
        },
        &line);
  };
  EXPECT_EQ(run(), FP8_INTERRUPTED);
  EXPECT_EQ(summary.last_step, 13);
  EXPECT_EQ(evaluated, FP8_OK) << line;
  EXPECT_HAS(line, "heldout_loss");
  fp8_step_destroy(own);
}

TEST_F(Signals, TheLastRunRestoresTheHandlers) {
  struct sigaction old[2], now;
  sigaction(SIGINT, nullptr, &old[0]);
  sigaction(SIGPIPE, nullptr, &old[1]);
  // This run begins in the other one, and ends after it.
  static thread_local bool isSecond = false;
  std::promise<void> secondBegan, firstEnded;
  hook = [&](int32_t count, int32_t *) {
    if (count == 0 && isSecond) {
      secondBegan.set_value();
      firstEnded.get_future().wait();
    } else if (count == 0) {
      secondBegan.get_future().wait();
    }
  };
  options.threads = 1;
  fp8_train_options others = options;
  std::string otherDir = dir / "second";
  others.out_dir = otherDir.c_str();
  others.message = [](void *, const char *) {};
  others.steps = options.steps = 2;
  fp8_status status = FP8_ERROR_INTERNAL;
  std::thread second([&] {
    isSecond = true;
    status = fp8_train(&others, nullptr);
  });
  EXPECT_EQ(run(), FP8_OK) << error;
  firstEnded.set_value();
  second.join();
  EXPECT_EQ(status, FP8_OK);
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, old[0].sa_handler);
  sigaction(SIGPIPE, nullptr, &now);
  EXPECT_EQ(now.sa_handler, old[1].sa_handler);
}
