//===- TrainOnRanksTest.cpp - Training on ranks, and their faults ---------===//

#include "../Runtime/TestSupport.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fp8::test;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The words of a command line.
using Words = std::vector<std::string>;

pid_t spawn(const Words &words, const Words &environment,
            const std::string &output) {
  pid_t pid = fork();
  if (pid != 0)
    return pid;
  int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(file, 1);
  dup2(file, 2);
  for (const std::string &variable : environment)
    putenv(const_cast<char *>(variable.c_str()));
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

/// Waits until a condition holds, for less time than ranks have patience with
/// each other (300 s). Returns whether it does.
template <typename Condition> bool waitFor(Condition holds) {
  for (Clock::time_point start = Clock::now(); !holds();) {
    if (secondsSince(start) > 120)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Returns the exit status, or -1 after a signal; kills processes that do not
/// end.
int statusOf(pid_t pid) {
  int status = 0;
  if (!waitFor([&] { return waitpid(pid, &status, WNOHANG) != 0; })) {
    ADD_FAILURE() << "a process does not end";
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class TrainOnRanks : public ::testing::Test {
protected:
  void SetUp() override {
    write(dir / "text", sampleText(5000));
    text = "text=" + (dir / "text");
  }

  /// The environment of ranks started from now on, and what one rank has more.
  Words environment;
  std::map<int, Words> ofRank;

  /// Starts ranks over sockets; `faults`: faults of the transport, by rank.
  void start(int ranks, Words arguments, Words faults = {}) {
    pids.clear();
    count = ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      std::string transport =
          std::string("FP8_TRANSPORT=") + TRANSPORT + ":dir=" + dir.path +
          ",rank=" + std::to_string(rank) + ",ranks=" + std::to_string(ranks);
      if (static_cast<size_t>(rank) < faults.size() && !faults[rank].empty())
        transport += "," + faults[rank];
      Words variables = environment;
      variables.insert(variables.end(), ofRank[rank].begin(),
                       ofRank[rank].end());
      variables.push_back(transport);
      Words words = {PROGRAM};
      words.insert(words.end(), arguments.begin(), arguments.end());
      words.push_back(text);
      pids.push_back(spawn(words, variables, outputOf(rank)));
    }
  }
  std::vector<int> wait() {
    std::vector<int> all;
    for (pid_t pid : pids)
      all.push_back(statusOf(pid));
    return all;
  }
  std::vector<int> run(int ranks, Words arguments, Words faults = {}) {
    start(ranks, std::move(arguments), std::move(faults));
    return wait();
  }
  std::string outputOf(int rank) const {
    return dir / ("output-" + std::to_string(rank));
  }
  /// Returns the errors of all ranks.
  std::string errors() const {
    std::string all;
    for (int rank = 0; rank < count; ++rank) {
      std::istringstream lines(read(outputOf(rank)));
      for (std::string line; std::getline(lines, line);)
        if (line.find("error: ") != std::string::npos)
          all += line.substr(line.find("error: ") + 7) + "\n";
    }
    return all;
  }

  /// Returns the bytes of a tensor in a checkpoint.
  std::string tensor(const std::string &out, int step,
                     const std::string &name) const {
    fp8_tensors *tensors = nullptr;
    std::string path =
        dir / (out + "/checkpoint-" + std::to_string(step) + ".safetensors");
    if (exists(path + ".index.json"))
      path += ".index.json";
    EXPECT_EQ(fp8_tensors_load(path.c_str(), &tensors), FP8_OK)
        << fp8_last_error();
    std::string bytes;
    for (int64_t i = 0; tensors && i < fp8_tensors_count(tensors); ++i) {
      fp8_tensor_info info;
      const void *data;
      fp8_tensors_get(tensors, i, &info, &data);
      if (name == info.name)
        bytes.assign(static_cast<const char *>(data), fp8_tensor_bytes(&info));
    }
    fp8_tensors_destroy(tensors);
    EXPECT_FALSE(bytes.empty()) << name;
    return bytes;
  }
  void expectNear(const std::string &a, const std::string &b) const {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i + 4 <= a.size(); i += 4) {
      float x, y;
      std::memcpy(&x, a.data() + i, 4);
      std::memcpy(&y, b.data() + i, 4);
      EXPECT_NEAR(x, y, 1e-6 * std::max(1.0f, std::fabs(x)));
    }
  }

  TempDir dir;
  std::string text;
  std::vector<pid_t> pids;
  int count = 0;
};

} // namespace

TEST_F(TrainOnRanks, IsTrainingOnALargerBatch) {
  ASSERT_EQ(run(1, {dir / "one", "7", "6"}), std::vector<int>{0}) << errors();
  ASSERT_EQ(run(2, {dir / "two", "7", "3"}), (std::vector<int>{0, 0}))
      << errors();
  ASSERT_EQ(run(3, {dir / "three", "7", "2"}), (std::vector<int>{0, 0, 0}))
      << errors();
  for (const char *out : {"two", "three"}) {
    expectNear(tensor(out, 7, "w"), tensor("one", 7, "w"));
    EXPECT_EQ(tensor(out, 7, "seen"), tensor("one", 7, "seen"));
  }
  // Only rank 0 prints and writes.
  EXPECT_NE(read(outputOf(0)), "");
  EXPECT_EQ(read(outputOf(1)), "");
  EXPECT_TRUE(exists(dir / "three/log.jsonl"));
}

TEST_F(TrainOnRanks, AnEvaluationIsDealtOut) {
  ASSERT_EQ(run(1, {dir / "out", "4", "2"}), std::vector<int>{0}) << errors();
  // Nothing is left to train: the same state is evaluated again.
  auto heldOut = [&](int ranks) {
    EXPECT_EQ(run(ranks, {dir / "out", "4", "2", "resume"}),
              std::vector<int>(ranks, 0))
        << errors();
    std::string output = read(outputOf(0));
    size_t at = output.find("held out ");
    return at == std::string::npos
               ? ""
               : output.substr(at, output.find('\n', at) - at);
  };
  std::string alone = heldOut(1);
  EXPECT_NE(alone.find("30 rows of arrays"), std::string::npos) << alone;
  EXPECT_EQ(heldOut(2), alone);
  EXPECT_EQ(heldOut(4), alone);
}

TEST_F(TrainOnRanks, BitsAreTheSameInEveryRun) {
  for (const char *out : {"first", "second"})
    ASSERT_EQ(run(3, {dir / out, "9", "2", "wire=f8"}),
              (std::vector<int>{0, 0, 0}))
        << errors();
  for (const char *name : {"w", "seen", "tokens", "control"})
    EXPECT_EQ(tensor("first", 9, name), tensor("second", 9, name));
}

TEST_F(TrainOnRanks, ResumesOnAnotherNumberOfRanks) {
  // 12 batches of 2 rows: as 12 steps of one rank; as 3 steps of 2 ranks, then
  // 6 of one; and as steps of 1 rank, then 3.
  ASSERT_EQ(run(1, {dir / "one", "12", "2"}), std::vector<int>{0}) << errors();
  ASSERT_EQ(run(2, {dir / "two", "3", "2"}), (std::vector<int>{0, 0}));
  ASSERT_EQ(run(1, {dir / "two", "9", "2", "resume"}), std::vector<int>{0})
      << errors();
  ASSERT_EQ(run(1, {dir / "three", "3", "2"}), std::vector<int>{0});
  ASSERT_EQ(run(3, {dir / "three", "6", "2", "resume"}),
            (std::vector<int>{0, 0, 0}))
      << errors();
  EXPECT_EQ(tensor("two", 9, "seen"), tensor("one", 12, "seen"));
  EXPECT_EQ(tensor("three", 6, "seen"), tensor("one", 12, "seen"));
  // Text has the same windows too.
  EXPECT_EQ(tensor("two", 9, "tokens"), tensor("one", 12, "tokens"));
  EXPECT_EQ(tensor("three", 6, "tokens"), tensor("one", 12, "tokens"));
}

TEST_F(TrainOnRanks, ARankThatIsKilledEndsAll) {
  start(3, {dir / "out", "100000", "2", "every=5", "backward=5"},
        {"", "kill=300"});
  EXPECT_EQ(statusOf(pids[1]), -1);
  EXPECT_EQ(statusOf(pids[0]), 1);
  EXPECT_EQ(statusOf(pids[2]), 1);
  std::string message = errors();
  EXPECT_EQ(message.find("rank 1 of 3: its process has ended"), 0u) << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  // The last checkpoint is complete.
  size_t at = message.find("the last checkpoint is ");
  ASSERT_NE(at, std::string::npos) << message;
  fp8_tensors *tensors = nullptr;
  EXPECT_EQ(fp8_checkpoint_load((dir / "out").c_str(), &tensors), FP8_OK);
  EXPECT_NE(tensors, nullptr);
  fp8_tensors_destroy(tensors);
}

TEST_F(TrainOnRanks, ARankThatStopsAnsweringEndsAll) {
  // (Another rank must not be silent for so long.)
  start(3, {dir / "out", "100000", "2", "timeout=6"}, {"", "", "stall=100"});
  EXPECT_EQ(statusOf(pids[0]), 1);
  EXPECT_EQ(statusOf(pids[1]), 1);
  kill(pids[2], SIGKILL);
  EXPECT_EQ(statusOf(pids[2]), -1);
  EXPECT_EQ(errors().find("rank 2 of 3: no answer for 6 s"), 0u) << errors();
}

TEST_F(TrainOnRanks, AMachineThatPausesEndsNoRank) {
  // Ranks wait for messages most of the time.
  start(2, {dir / "out", "20", "2", "timeout=3"}, {"delay=25", "delay=25"});
  EXPECT_TRUE(waitFor(
      [&] { return read(outputOf(0)).find("step 1/") != std::string::npos; }));
  for (pid_t pid : pids)
    kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));
  for (pid_t pid : pids)
    kill(pid, SIGCONT);
  EXPECT_EQ(wait(), (std::vector<int>{0, 0})) << errors();
}

TEST_F(TrainOnRanks, WhatDiffersIsNamed) {
  EXPECT_EQ(run(2, {dir / "a", "3", "2", "differ=1"}),
            (std::vector<int>{1, 1}));
  EXPECT_EQ(errors(), "step 0: 'w' of rank 1 is not that of rank 0: all ranks "
                      "have to hold the same state\n");
  EXPECT_EQ(run(3, {dir / "b", "3", "2", "other=2"}),
            (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(errors(),
            "rank 2 of 3 has another file, recipe or compiler than rank 0 "
            "('module b, recipe none 1, compiler c' instead of 'module a, "
            "recipe none 1, compiler c')\n");
  EXPECT_EQ(run(2, {dir / "c", "3", "2", "seed=1"}), (std::vector<int>{1, 1}));
  EXPECT_EQ(errors().find("rank 1 of 2 has another option than rank 0 ('steps "
                          "3, seed 6, "),
            0u)
      << errors();
}

TEST_F(TrainOnRanks, SignsOfZerosAreCompared) {
  EXPECT_EQ(run(2, {dir / "a", "3", "2", "signs=1"}), (std::vector<int>{1, 1}));
  EXPECT_EQ(errors(), "step 0: 'w' of rank 1 is not that of rank 0: all ranks "
                      "have to hold the same state\n");
}

TEST_F(TrainOnRanks, AStateThatStraysIsNoticedAtTheNextCheckpoint) {
  EXPECT_EQ(run(3, {dir / "a", "9", "2", "every=2", "stray=2"}),
            (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(errors().find("step 4: 'w' of rank 2 is not that of rank 0: all "
                          "ranks have to hold the same state"),
            0u)
      << errors();
  EXPECT_TRUE(exists(dir / "a/checkpoint-2.safetensors"));
  EXPECT_FALSE(exists(dir / "a/checkpoint-4.safetensors"));
}

TEST_F(TrainOnRanks, OtherDataAreNoticed) {
  write(dir / "others", sampleText(4000));
  EXPECT_EQ(
      run(2, {dir / "a", "3", "2", "othertext=1", "at=" + (dir / "others")}),
      (std::vector<int>{1, 1}));
  EXPECT_EQ(errors().find("rank 1 of 2 has another data set than rank 0 ('"),
            0u)
      << errors();
}

TEST_F(TrainOnRanks, OtherHeldOutDataAreNoticed) {
  EXPECT_EQ(run(2, {dir / "a", "3", "2", "heldout=1"}),
            (std::vector<int>{1, 1}));
  EXPECT_EQ(errors().find("rank 1 of 2 has another set of held-out data than "
                          "rank 0 ('14 batches of "),
            0u)
      << errors();
}

TEST_F(TrainOnRanks, OtherBucketsAreNoticed) {
  ofRank[1] = {"FP8_BUCKET_BYTES=4096"};
  EXPECT_EQ(run(2, {dir / "a", "3", "2"}), (std::vector<int>{1, 1}));
  EXPECT_EQ(errors().find("rank 1 of 2 has another size of buckets "
                          "(FP8_BUCKET_BYTES) than rank 0 ('4096 bytes'"),
            0u)
      << errors();
}

TEST_F(TrainOnRanks, AnErrorOfOneRankEndsAll) {
  EXPECT_EQ(run(2, {dir / "out", "50", "2"}, {"", "fail=40"}),
            (std::vector<int>{1, 1}));
  std::string message = errors();
  EXPECT_NE(message.find("the transport fails on purpose"), std::string::npos)
      << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  // Rank 0 cannot write to this directory.
  write(dir / "file", "");
  EXPECT_EQ(run(3, {dir / "file/out", "3", "2"}), (std::vector<int>{1, 1, 1}));
  message = errors();
  EXPECT_EQ(message.find("rank 0 of 3: "), 0u) << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

TEST_F(TrainOnRanks, ARankThatSeesNaNEndsAll) {
  for (const char *wire : {"wire=f8", "backward"}) {
    // The loss of a step is that of the weights before it.
    EXPECT_EQ(run(3, {dir / wire, "9", "2", "every=2", "nan=1", wire}),
              (std::vector<int>{3, 3, 3}));
    std::string message = errors(),
                expected =
                    "step 4: the loss is nan; first non-finite value: w[5] is "
                    "nan; rank 1 "
                    "of 3 was the first with such a value, in its part of "
                    "'gradient w' of "
                    "step 3; the last checkpoint is " +
                    (dir / (std::string(wire) + "/checkpoint-2.safetensors"));
    EXPECT_EQ(message.find(expected), 0u) << message;
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  }
}

TEST_F(TrainOnRanks, ARankThatExchangesNaNIsNamed) {
  for (const char *mistake : {"nan=1", "infinity=1"}) {
    EXPECT_EQ(run(3, {dir / mistake, "9", "2", "every=2", mistake, "exchange"}),
              (std::vector<int>{3, 3, 3}));
    std::string message = errors();
    EXPECT_NE(message.find("rank 1 of 3 was the first with such a value, in "
                           "its part of 'psum' of step 3"),
              std::string::npos)
        << message;
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  }
}

TEST_F(TrainOnRanks, ARankWithoutMemoryEndsAll) {
  EXPECT_EQ(run(3, {dir / "out", "9", "2", "every=2", "memory=1"}),
            (std::vector<int>{1, 1, 1}));
  std::string message = errors();
  EXPECT_EQ(message, "rank 1 of 3: out of memory\n");
  EXPECT_EQ(tensor("out", 2, "w").size(), 256u);
}

TEST_F(TrainOnRanks, ARankWithAFullDiskEndsAll) {
  EXPECT_EQ(run(3, {dir / "out", "9", "2", "every=2", "deal", "disk=1"}),
            (std::vector<int>{1, 1, 1}));
  std::string message = errors();
  EXPECT_EQ(message.find("rank 1 of 3: cannot write '"), 0u) << message;
  EXPECT_NE(message.find("the last checkpoint is " +
                         (dir / "out/checkpoint-2.safetensors.index.json")),
            std::string::npos)
      << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

TEST_F(TrainOnRanks, OneSignalStopsAllAfterTheSameStep) {
  start(2, {dir / "out", "100000", "2", "backward=2"});
  EXPECT_TRUE(waitFor(
      [&] { return read(outputOf(0)).find("step 10/") != std::string::npos; }));
  kill(pids[1], SIGTERM);
  EXPECT_EQ(wait(), (std::vector<int>{130, 130}));
  EXPECT_EQ(errors().find("interrupted after step "), 0u) << errors();
  fp8_tensors *tensors = nullptr;
  EXPECT_EQ(fp8_checkpoint_load((dir / "out").c_str(), &tensors), FP8_OK);
  EXPECT_NE(tensors, nullptr);
  fp8_tensors_destroy(tensors);
}

TEST_F(TrainOnRanks, ReductionsHideBehindTheRestOfTheStep) {
  // Returns the hidden part of the best of some runs: on a busy machine a rank
  // may pause, and the other one waits for it.
  std::string out;
  auto hiddenPart = [&](Words options, auto isGood) {
    double hidden = -1;
    for (char attempt = 'a'; attempt < 'g' && !isGood(hidden); ++attempt) {
      out = dir / (options.back() + attempt);
      Words arguments = {out, "10", "2", "profile"};
      arguments.insert(arguments.end(), options.begin(), options.end());
      EXPECT_EQ(run(2, arguments, {"delay=25", "delay=25"}),
                (std::vector<int>{0, 0}))
          << errors();
      std::string json = read(out + "/collectives.json");
      size_t at = json.find("\"hidden\": ");
      if (at != std::string::npos)
        hidden = std::atof(json.c_str() + at + 10);
    }
    return hidden;
  };
  // All four reductions form a bucket, which is sent at once. Its two exchanges
  // take 50 ms, the rest of the step 60 ms.
  environment = {"FP8_BUCKET_BYTES=508"};
  double hidden =
      hiddenPart({"backward=60"}, [](double part) { return part >= 0.7; });
  RecordProperty("hidden", std::to_string(hidden));
  EXPECT_GE(hidden, 0.7);
  EXPECT_LE(hidden, 1);
  EXPECT_NE(read(out + "/collectives.json").find("\"label\": \"gradient w\""),
            std::string::npos);
  EXPECT_NE(read(outputOf(0)).find("between ranks"), std::string::npos);
  // The timeline shows one message a step, mostly overlapped with the step.
  std::string timeline = read(out + "/timeline.json");
  size_t messages = 0;
  for (size_t place = 0; (place = timeline.find("\"cat\": \"network\"",
                                                place)) != std::string::npos;
       ++place)
    ++messages;
  EXPECT_EQ(messages, 10u) << timeline;
  EXPECT_NE(timeline.find("\"collectives\": 4"), std::string::npos);
  // Without other work nothing is hidden.
  hidden = hiddenPart({"backward=0"},
                      [](double part) { return part >= 0 && part < 0.3; });
  EXPECT_GE(hidden, 0);
  EXPECT_LT(hidden, 0.3);
}

//===----------------------------------------------------------------------===//
// Dealt state: a file for each rank, and an index
//===----------------------------------------------------------------------===//

TEST_F(TrainOnRanks, DealtStateIsASetOfFiles) {
  ASSERT_EQ(run(3, {dir / "whole", "4", "2"}), (std::vector<int>{0, 0, 0}));
  ASSERT_EQ(run(3, {dir / "dealt", "4", "2", "every=2", "deal"}),
            (std::vector<int>{0, 0, 0}))
      << errors();
  EXPECT_FALSE(exists(dir / "dealt/checkpoint-4.safetensors"));
  for (const char *part : {"1", "2", "3"})
    EXPECT_TRUE(exists(dir / ("dealt/checkpoint-4-0000" + std::string(part) +
                              "-of-00003.safetensors")));
  for (const char *name : {"w", "seen", "tokens", "control"})
    EXPECT_EQ(tensor("dealt", 4, name), tensor("whole", 4, name)) << name;
  // On other numbers of ranks, dealt or not.
  ASSERT_EQ(run(2, {dir / "dealt", "6", "3", "deal", "resume"}),
            (std::vector<int>{0, 0}))
      << errors();
  ASSERT_EQ(run(1, {dir / "dealt", "7", "6", "resume"}), std::vector<int>{0})
      << errors();
  ASSERT_EQ(run(3, {dir / "whole", "7", "2", "resume"}),
            (std::vector<int>{0, 0, 0}));
  expectNear(tensor("dealt", 7, "w"), tensor("whole", 7, "w"));
  EXPECT_EQ(tensor("dealt", 7, "seen"), tensor("whole", 7, "seen"));
}

TEST_F(TrainOnRanks, ARankResumesWithItsOwnShardsAlone) {
  // Two shards of 32 MiB on two ranks.
  Words arguments = {dir / "out", "2", "2", "deal", "ballast=32"};
  ASSERT_EQ(run(2, arguments), (std::vector<int>{0, 0})) << errors();
  arguments[1] = "4";
  arguments.push_back("resume");
  ASSERT_EQ(run(2, arguments), (std::vector<int>{0, 0})) << errors();
  std::string json = read(dir / "out/memory.json");
  size_t at = json.find("\"peak_rss\": ");
  ASSERT_NE(at, std::string::npos) << json;
  double peak = std::atof(json.c_str() + at + 12) / (1 << 20);
  RecordProperty("peak", std::to_string(peak));
  // Its shard and the mapped file, but not the other rank's shard.
  EXPECT_GT(peak, 32);
  EXPECT_LT(peak, 64 + 48);
  EXPECT_EQ(tensor("out", 4, "ballast 3").size(), 32u << 20);
}

TEST_F(TrainOnRanks, AnyStateIsASetOfFilesIfAskedFor) {
  ASSERT_EQ(run(2, {dir / "whole", "4", "2"}), (std::vector<int>{0, 0}));
  ASSERT_EQ(run(2, {dir / "set", "4", "2", "sharded"}),
            (std::vector<int>{0, 0}))
      << errors();
  EXPECT_FALSE(exists(dir / "set/checkpoint-4.safetensors"));
  // Four tensors on two ranks.
  EXPECT_TRUE(exists(dir / "set/checkpoint-4-00002-of-00002.safetensors"));
  for (const char *name : {"w", "seen", "tokens", "control"})
    EXPECT_EQ(tensor("set", 4, name), tensor("whole", 4, name)) << name;
  ASSERT_EQ(run(1, {dir / "set", "5", "4", "resume", "sharded"}),
            std::vector<int>{0})
      << errors();
  EXPECT_TRUE(exists(dir / "set/checkpoint-5.safetensors"));
}

TEST_F(TrainOnRanks, ADamagedFileOfASetIsNamed) {
  ASSERT_EQ(run(2, {dir / "out", "4", "2", "every=2", "deal"}),
            (std::vector<int>{0, 0}))
      << errors();
  std::string part = dir / "out/checkpoint-4-00002-of-00002.safetensors";
  std::string index = dir / "out/checkpoint-4.safetensors.index.json";
  std::string content = read(part);
  auto errorOf = [&] {
    fp8_tensors *tensors = nullptr;
    EXPECT_NE(fp8_tensors_load(index.c_str(), &tensors), FP8_OK);
    return std::string(fp8_last_error());
  };
  write(part, content.substr(0, content.size() - 1));
  EXPECT_EQ(errorOf().find("'" + part + "' is no valid safetensors file: "), 0u)
      << errorOf();
  std::string other = read(dir / "out/checkpoint-2-00002-of-00002.safetensors");
  write(part, other);
  EXPECT_EQ(errorOf(),
            "'" + part + "' belongs to another set than '" + index + "'");
  unlink(part.c_str());
  EXPECT_NE(errorOf().find(part), std::string::npos) << errorOf();
  // The previous checkpoint is complete.
  ASSERT_EQ(run(2, {dir / "out", "4", "2", "deal", "resume"}),
            (std::vector<int>{0, 0}))
      << errors();
  std::string output = read(outputOf(0));
  EXPECT_NE(output.find("passing over a checkpoint: cannot"), std::string::npos)
      << output;
  EXPECT_NE(output.find("checkpoint-2.safetensors.index.json"),
            std::string::npos)
      << output;
  EXPECT_EQ(tensor("out", 4, "w").size(), 256u);
}

TEST_F(TrainOnRanks, ARankThatFailsWhileItWritesLeavesTheLastSet) {
  // A folder blocks the path that the second rank writes.
  std::string part = "/checkpoint-4-00002-of-00002.safetensors.fp8-tmp";
  ASSERT_EQ(system(("mkdir -p " + (dir / ("out" + part))).c_str()), 0);
  EXPECT_EQ(run(2, {dir / "out", "6", "2", "every=2", "deal"}),
            (std::vector<int>{1, 1}));
  std::string message = errors();
  EXPECT_EQ(message.find("rank 1 of 2: cannot write '"), 0u) << message;
  EXPECT_NE(message.find("the last checkpoint is " +
                         (dir / "out/checkpoint-2.safetensors.index.json")),
            std::string::npos)
      << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  // The other rank removes its file.
  EXPECT_FALSE(exists(dir / "out/checkpoint-4-00001-of-00002.safetensors"));
  EXPECT_FALSE(exists(dir / "out/checkpoint-4.safetensors.index.json"));
}

TEST_F(TrainOnRanks, ARankThatIsKilledWhileItWritesLeavesTheLastSet) {
  ASSERT_EQ(run(2, {dir / "want", "6", "2", "every=2", "deal"}),
            (std::vector<int>{0, 0}));
  // A pipe without a reader blocks the second rank while it writes.
  std::string part = dir / "out/checkpoint-4-00002-of-00002.safetensors";
  ASSERT_EQ(system(("mkdir " + (dir / "out")).c_str()), 0);
  ASSERT_EQ(mkfifo((part + ".fp8-tmp").c_str(), 0644), 0);
  start(2, {dir / "out", "6", "2", "every=2", "deal"});
  std::string first = dir / "out/checkpoint-4-00001-of-00002.safetensors";
  ASSERT_TRUE(waitFor([&] { return exists(first); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  kill(pids[1], SIGKILL);
  EXPECT_EQ(statusOf(pids[1]), -1);
  EXPECT_EQ(statusOf(pids[0]), 1);
  EXPECT_EQ(errors().find("rank 1 of 2: its process has ended"), 0u)
      << errors();
  EXPECT_FALSE(exists(dir / "out/checkpoint-4.safetensors.index.json"));
  // Incomplete files are removed, and the run ends as if nothing had been
  // killed.
  ASSERT_EQ(run(2, {dir / "out", "6", "2", "deal", "resume"}),
            (std::vector<int>{0, 0}))
      << errors();
  EXPECT_FALSE(exists(first));
  EXPECT_FALSE(exists(part + ".fp8-tmp"));
  for (const char *name : {"w", "seen", "tokens"})
    EXPECT_EQ(tensor("out", 6, name), tensor("want", 6, name)) << name;
}

//===----------------------------------------------------------------------===//
// MPI
//===----------------------------------------------------------------------===//

namespace {
struct Mpi {
  const char *name;
  const char *launcher; // "": the plugin is not built
  const char *shown;    // part of its name
};

class TrainOnMpi : public TrainOnRanks,
                   public ::testing::WithParamInterface<Mpi> {
protected:
  void SetUp() override {
    TrainOnRanks::SetUp();
    if (!*GetParam().launcher)
      GTEST_SKIP() << GetParam().name << " is not installed";
  }
  pid_t startMpi(int ranks, Words arguments) {
    count = 1;
    Words words = {GetParam().launcher, "-n", std::to_string(ranks)};
    if (std::string(GetParam().name) == "openmpi")
      words.push_back("--oversubscribe");
    words.push_back(PROGRAM);
    words.insert(words.end(), arguments.begin(), arguments.end());
    words.push_back(text);
    // Open MPI's launcher removes the folder of its sessions at its end,
    // although another launcher may be about to use it.
    return spawn(words,
                 {"OMPI_ALLOW_RUN_AS_ROOT=1",
                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "TMPDIR=" + dir.path},
                 outputOf(0));
  }
};
} // namespace

TEST_P(TrainOnMpi, Trains) {
  ASSERT_EQ(run(1, {dir / "one", "7", "6"}), std::vector<int>{0}) << errors();
  ASSERT_EQ(statusOf(startMpi(2, {dir / "two", "7", "3", "profile"})), 0)
      << read(outputOf(0));
  expectNear(tensor("two", 7, "w"), tensor("one", 7, "w"));
  EXPECT_EQ(tensor("two", 7, "seen"), tensor("one", 7, "seen"));
  std::string json = read(dir / "two/collectives.json");
  EXPECT_NE(json.find(GetParam().shown), std::string::npos) << json;
  EXPECT_NE(json.find("\"ranks\": 2"), std::string::npos) << json;
}

TEST_P(TrainOnMpi, AnErrorEndsAll) {
  EXPECT_NE(statusOf(startMpi(2, {dir / "b", "3", "2", "other=1"})), 0);
  std::string message =
      "rank 1 of 2 has another file, recipe or compiler than rank 0 ('module "
      "b, recipe none 1, compiler c' instead of 'module a, recipe none 1, "
      "compiler c')\n";
  // If the launcher is slow to end the other rank, that says it too.
  std::string all = errors();
  EXPECT_TRUE(all == message || all == message + message) << all;
}

TEST_P(TrainOnMpi, ARankThatIsKilledEndsAll) {
  pid_t launcher =
      startMpi(2, {dir / "out", "100000", "2", "backward=5", "every=5"});
  // The line `ranks` lists the processes.
  pid_t other = 0, victim = 0;
  waitFor([&] {
    std::string output = read(outputOf(0));
    size_t at = output.find("; processes ");
    if (at != std::string::npos && output.find("step 10/") != std::string::npos)
      sscanf(output.c_str() + at, "; processes %d %d", &other, &victim);
    return victim != 0;
  });
  ASSERT_GT(victim, 0) << read(outputOf(0));
  kill(victim, SIGKILL);
  EXPECT_NE(statusOf(launcher), 0);
  // Our message or the launcher's. MPICH's kills the other processes at once
  // and names the first of its list that a signal ended: that may be any.
  std::string output = read(outputOf(0));
  EXPECT_TRUE(
      output.find("rank 1 of 2: its process has ended") != std::string::npos ||
      output.find("rank 1 with PID") != std::string::npos ||
      output.find("PID " + std::to_string(victim)) != std::string::npos ||
      output.find("PID " + std::to_string(other)) != std::string::npos)
      << output;
  fp8_tensors *tensors = nullptr;
  EXPECT_EQ(fp8_checkpoint_load((dir / "out").c_str(), &tensors), FP8_OK);
  EXPECT_NE(tensors, nullptr);
  fp8_tensors_destroy(tensors);
}

INSTANTIATE_TEST_SUITE_P(
    Launchers, TrainOnMpi,
    ::testing::Values(Mpi{"openmpi", OPENMPI_LAUNCHER, "Open MPI"},
                      Mpi{"mpich", MPICH_LAUNCHER, "MPICH"}),
    [](const auto &info) { return std::string(info.param.name); });
