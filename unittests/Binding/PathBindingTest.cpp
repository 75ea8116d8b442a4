//===- PathBindingTest.cpp - Finding tensors by tree path -----------------===//

#include "fp8/Binding/PathBinding.h"

#include "gtest/gtest.h"

using namespace fp8binding;
using Keys = std::vector<std::string>;
using Sources = std::vector<int64_t>;

TEST(SplitPath, ReadsJaxAndFiles) {
  EXPECT_EQ(splitPath("p['layers'][0]['wq']"),
            (Keys{"p", "layers", "0", "wq"}));
  EXPECT_EQ(splitPath("layers.0/wq"), (Keys{"layers", "0", "wq"}));
  EXPECT_EQ(splitPath("s.params['a.b']['c]d']"),
            (Keys{"s", "params", "a.b", "c]d"}));
  EXPECT_EQ(splitPath(""), Keys{});
  EXPECT_EQ(splitPath("p['unended"), (Keys{"p", "unended"}));
  EXPECT_EQ(splitPath("p['a/b'][\"it's\"].w"), (Keys{"p", "a/b", "it's", "w"}));
  EXPECT_EQ(splitPath(R"(p['it\'s ".]"'][1.5][('a]', 2)][''])"),
            (Keys{"p", R"(it's ".]")", "1.5", "('a]', 2)", ""}));
  EXPECT_EQ(splitPath("a..b"), (Keys{"a", "b"}));
}

// Each reader of paths relies on it: they differ only in what they take.
TEST(TokenizePath, CoversThePath) {
  for (std::string path :
       {"p['layers'][0].w", "layers.0/w", R"(p['it\'s "]"'][0)", "a..b", ""}) {
    size_t end = 0;
    for (const PathKey &key : tokenizePath(path)) {
      EXPECT_EQ(key.begin, end) << path;
      end = key.end;
    }
    EXPECT_EQ(end, path.size()) << path;
  }
}

TEST(MatchesPath, StarsAndBrackets) {
  EXPECT_TRUE(matchesPath("*['w?']", "p['layers'][0]['wq']"));
  EXPECT_TRUE(matchesPath("p*[0]*", "p['layers'][0]['wq']"));
  EXPECT_TRUE(matchesPath("*", ""));
  EXPECT_FALSE(matchesPath("*['w']", "p['wq']"));
  EXPECT_FALSE(matchesPath("p[lw]", "pw"));
  EXPECT_FALSE(matchesPath("", "p"));
}

// Keys may hold the sign that separates.
TEST(SplitAssignment, TakesTheLastSignOutsideOfKeys) {
  using Parts = std::pair<std::string_view, std::string_view>;
  for (auto [path, value] :
       {Parts("x", "batch"), Parts("state['a=b']", "result[0]['a=b']"),
        Parts(R"(s["it's="])", R"(result[0]["it's="])"),
        Parts(R"(s['\'='])", "r"), Parts("s[('a=b', 2)].w", "r[1]"),
        Parts("layers/it's.w", "frozen"), Parts("a=b", "c"),
        Parts("w", "tensor<4xf32>")}) {
    std::string text = std::string(path) + "=" + std::string(value);
    EXPECT_EQ(splitAssignment(text), Parts(path, value)) << text;
  }
  for (const char *text : {"", "=", "x", "x=", "=x", "s['a=b']", "s['a=b"})
    EXPECT_EQ(splitAssignment(text), std::nullopt) << text;
}

// Which of them the runtime takes depends on the files that exist.
TEST(FindSeparators, AreAllOutsideOfKeys) {
  using Places = std::vector<size_t>;
  EXPECT_EQ(findSeparators("b['a=b']=/dir/b2=0.9:a='1/x=1.npy"),
            (Places{8, 16, 22, 27}));
  EXPECT_EQ(findSeparators("x==y"), (Places{1, 2}));
  EXPECT_EQ(findSeparators("b['a=b']"), Places{});
}

TEST(BindByPath, EqualPathsComeFirst) {
  Binding binding = bindByPath({{"p['a']", "f32[4]"}, {"p['b']", "f32[4]"}},
                               {{"p['b']", "f32[4]"}, {"p['a']", "f32[4]"}});
  EXPECT_EQ(binding.sources, (Sources{1, 0}));
  EXPECT_TRUE(binding.complete());
  EXPECT_TRUE(binding.extra.empty());
}

// First moments have the parameters' paths and types below another prefix.
TEST(BindByPath, OfEqualPrefixesTheSameNameThenTheShortest) {
  std::vector<Leaf> targets = {{"p['a']", "f32[4]"}, {"p['b']", "f32[8]"}};
  EXPECT_EQ(bindByPath(targets, {{"mu['a']", "f32[4]"},
                                 {"mu['b']", "f32[8]"},
                                 {"result[0].p['a']", "f32[4]"},
                                 {"result[0].p['b']", "f32[8]"}})
                .sources,
            (Sources{2, 3}));
  Binding binding = bindByPath(targets, {{"opt.mu['a']", "f32[4]"},
                                         {"opt.mu['b']", "f32[8]"},
                                         {"params['a']", "f32[4]"},
                                         {"params['b']", "f32[8]"}});
  EXPECT_EQ(binding.sources, (Sources{2, 3}));
  EXPECT_EQ(binding.extra, (Sources{0, 1}));
}

TEST(BindByPath, WholeTreesGoFirst) {
  // The scalar must not bind to anything inside the tree.
  Binding binding =
      bindByPath({{"b", "f32[8]"}, {"p['a']", "f32[4]"}, {"p['b']", "f32[8]"}},
                 {{"result[0]['a']", "f32[4]"}, {"result[0]['b']", "f32[8]"}});
  EXPECT_EQ(binding.sources, (Sources{-1, 0, 1}));
}

TEST(BindByPath, ScalarsAndIntegersNeedNames) {
  // A learning rate is no best loss, a key of its own none of the state.
  Binding binding =
      bindByPath({{"lr", "f32[]"}, {"key", "u32[2]"}, {"pad", "tensor<i32>"}},
                 {{"state.best_loss", "f32[]"},
                  {"state.rng", "u32[2]"},
                  {"opt.count", "tensor<i32>"}});
  EXPECT_EQ(binding.sources, (Sources{-1, -1, -1}));
  EXPECT_EQ(bindByPath({{"lr", "f32[]"}, {"key", "u32[2]"}},
                       {{"file.key", "u32[2]"}, {"result[1]", "f32[]"}})
                .sources,
            (Sources{1, 0}));
  // The type of an array tells more.
  EXPECT_EQ(bindByPath({{"w", "f32[4,8]"}}, {{"weights", "f32[4,8]"}}).sources,
            (Sources{0}));
}

TEST(BindByPath, WithoutNamesTheOrderDecides) {
  EXPECT_EQ(bindByPath({{"arg0", "f32[4]"}, {"arg1", "f32[4]"}},
                       {{"result0", "f32[4]"}, {"result1", "f32[4]"}})
                .sources,
            (Sources{0, 1}));
}

TEST(BindByPath, SuffixesBindWhatIsLeft) {
  EXPECT_EQ(bindByPath({{"state[0].count", "i32[]"}, {"x['y']", "f32[2]"}},
                       {{"count", "i32[]"}})
                .sources,
            (Sources{0, -1}));
}

TEST(BindByPath, SaysWhatDoesNotFit) {
  Binding binding = bindByPath(
      {{"p['a']", "f32[4]"}, {"p['b']", "f32[8]"}, {"p['c']", "f32[2]"}},
      {{"p['a']", "f32[5]"}, {"p['b']", "f32[8]"}, {"q['z']", "f32[9]"}});
  EXPECT_FALSE(binding.complete());
  EXPECT_EQ(binding.sources, (Sources{-1, 1, -1}));
  EXPECT_EQ(binding.missing, (Sources{2}));
  ASSERT_EQ(binding.misshaped.size(), 1u);
  EXPECT_EQ(binding.misshaped[0], (std::pair<int64_t, int64_t>(0, 0)));
  EXPECT_EQ(binding.extra, (Sources{2}));
}

TEST(NameOf, IsTheLastKeyUnlessThatIsAPosition) {
  EXPECT_EQ(fp8binding::nameOf("opt_state[0].mu['w']"), "w");
  EXPECT_EQ(fp8binding::nameOf("lr"), "lr");
  for (const char *path : {"arg0", "result[1]", "result0", "state[3]", ""})
    EXPECT_EQ(fp8binding::nameOf(path), "") << path;
}
