//===- AlarmTest.cpp - The grammar of alarms ------------------------------===//

#include "../../lib/Runtime/Support/Median.h"
#include "TestSupport.h"

namespace {

fp8_alarm parse(const char *text) {
  fp8_alarm alarm;
  EXPECT_EQ(fp8_alarm_parse(text, &alarm), FP8_OK) << fp8_last_error();
  return alarm;
}

std::string errorOf(const char *text) {
  fp8_alarm alarm;
  EXPECT_EQ(fp8_alarm_parse(text, &alarm), FP8_ERROR_INVALID) << text;
  return fp8_last_error();
}

bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

} // namespace

// Alarms and the summary of a run take medians.
TEST(Median, OfAnEvenCountIsBetweenTheMiddleTwo) {
  using fp8::rt::median;
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({9, 1, 6, 4}), 5);
}

TEST(Alarm, Threshold) {
  fp8_alarm alarm = parse("loss > 2.5 : warn");
  EXPECT_STREQ(alarm.metric, "loss");
  EXPECT_STREQ(alarm.tensors, "");
  EXPECT_EQ(alarm.below, 0);
  EXPECT_EQ(alarm.threshold, 2.5);
  EXPECT_EQ(alarm.median_of, 0);
  EXPECT_EQ(alarm.action, FP8_ALARM_WARN);
  EXPECT_EQ(alarm.needs_trace, 0);
}

TEST(Alarm, WithoutSpaces) {
  fp8_alarm alarm = parse("grad_norm>1e4:stop");
  EXPECT_STREQ(alarm.metric, "grad_norm");
  EXPECT_EQ(alarm.threshold, 1e4);
  EXPECT_EQ(alarm.action, FP8_ALARM_STOP);
}

TEST(Alarm, Below) {
  fp8_alarm alarm = parse("snr@*.gradient < -3 : skip");
  EXPECT_STREQ(alarm.metric, "snr");
  EXPECT_STREQ(alarm.tensors, "*.gradient");
  EXPECT_EQ(alarm.below, 1);
  EXPECT_EQ(alarm.threshold, -3);
  EXPECT_EQ(alarm.action, FP8_ALARM_SKIP);
  EXPECT_EQ(alarm.needs_trace, 1);
}

TEST(Alarm, Median) {
  for (const char *text :
       {"loss > 2x median(50) : skip", "loss>2xmedian(50):skip",
        "loss > 2 x median( 50 ) : skip"}) {
    fp8_alarm alarm = parse(text);
    EXPECT_EQ(alarm.threshold, 2) << text;
    EXPECT_EQ(alarm.median_of, 50) << text;
  }
}

TEST(Alarm, PathsMayHoldAnything) {
  fp8_alarm alarm = parse("result[2]['a > b : c @ d'] > 1 : warn");
  EXPECT_STREQ(alarm.metric, "result[2]['a > b : c @ d']");
  alarm = parse("amax@params['x:y']*.weight > 1 : warn");
  EXPECT_STREQ(alarm.metric, "amax");
  EXPECT_STREQ(alarm.tensors, "params['x:y']*.weight");
}

TEST(Alarm, Errors) {
  for (auto [text, what] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"", "there is no > and no <"},
           {"loss", "there is no > and no <"},
           {"loss > 1", "there is no : before an action"},
           {"> 1 : warn", "there is no metric"},
           {"@x > 1 : warn", "there is no metric"},
           {"amax@ > 1 : warn", "there is no path after @"},
           {"loss > : warn", "expected a number but got ''"},
           {"loss > nan : warn", "expected a number but got 'nan'"},
           {"loss > inf : warn", "expected a number but got 'inf'"},
           {"loss > 1 2 : warn", "a multiple of a median but got '1 2'"},
           {"loss > 2x mean(5) : warn", "a multiple of a median but got"},
           {"loss > 2x median(5 : warn", "a multiple of a median but got"},
           {"loss > 2x median(0) : warn", "a median of 1 to 1000000 steps"},
           {"loss > 2x median(1.5) : warn", "a median of 1 to 1000000 steps"},
           {"loss >= 2 : warn", "expected a number but got '= 2'"},
           {"loss > 2 :", "there is no action ''"},
           {"loss > 2 : Skip", "there is no action 'Skip'"}}) {
    std::string message = errorOf(text);
    EXPECT_TRUE(contains(message, what)) << message;
    EXPECT_TRUE(contains(message, "expected METRIC[@TENSORS] > VALUE : ACTION"))
        << text;
  }
  EXPECT_TRUE(contains(errorOf((std::string(300, 'a') + " > 1 : warn").c_str()),
                       "at most 255 characters"));
  EXPECT_EQ(fp8_alarm_parse(nullptr, nullptr), FP8_ERROR_INVALID);
  EXPECT_EQ(fp8_alarm_parse("loss > 1 : warn", nullptr), FP8_ERROR_INVALID);
}
