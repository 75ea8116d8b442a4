//===- TreesTest.cpp - Tests of the pairing of trees ----------------------===//

#include "fp8/Analysis/Signature.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

using Parts = SmallVector<std::string>;

class TreesTest : public ::testing::Test {
protected:
  Type tensor(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, Float32Type::get(&context));
  }
  /// Returns the path of the partner of each leaf, or "-".
  static std::vector<std::string> match(ArrayRef<TreeLeaf> from,
                                        ArrayRef<TreeLeaf> to,
                                        LeafScore score = nullptr,
                                        LeafScore hint = nullptr) {
    std::vector<std::string> out;
    for (std::optional<unsigned> partner : matchTrees(from, to, score, hint))
      out.push_back(partner ? to[*partner].path : "-");
    return out;
  }
  MLIRContext context;
};

TEST_F(TreesTest, SplitsPaths) {
  EXPECT_EQ(splitTreePath("p"), (Parts{"p"}));
  EXPECT_EQ(splitTreePath("p['layers'][0].w"),
            (Parts{"p", "['layers']", "[0]", ".w"}));
  EXPECT_EQ(splitTreePath("s.params['a.b']['c]d']"),
            (Parts{"s", ".params", "['a.b']", "['c]d']"}));
  EXPECT_EQ(splitTreePath("layers/0/w"), (Parts{"layers", "/0", "/w"}));
  EXPECT_EQ(splitTreePath(""), (Parts{""}));
}

TEST_F(TreesTest, BindsAnInitializersResults) {
  // The parameters' tree is part of the moments too: whole trees take
  // precedence.
  SmallVector<TreeLeaf> step = {{"p['a']", tensor({4})},
                                {"p['b']", tensor({8})},
                                {"o[0].mu['a']", tensor({4})},
                                {"o[0].mu['b']", tensor({8})},
                                {"tok", tensor({2})}};
  SmallVector<TreeLeaf> init = {{"result[1][0].mu['a']", tensor({4})},
                                {"result[1][0].mu['b']", tensor({8})},
                                {"result[0]['a']", tensor({4})},
                                {"result[0]['b']", tensor({8})}};
  EXPECT_EQ(match(step, init),
            (std::vector<std::string>{"result[0]['a']", "result[0]['b']",
                                      "result[1][0].mu['a']",
                                      "result[1][0].mu['b']", "-"}));
}

TEST_F(TreesTest, PrunedArgumentsFitLargerTrees) {
  SmallVector<TreeLeaf> from = {{"p['a']", tensor({4})},
                                {"p['b']", tensor({8})}};
  SmallVector<TreeLeaf> to = {{"result['p']['a']", tensor({4})},
                              {"result['p']['b']", tensor({8})},
                              {"result['p']['unread']", tensor({8})}};
  EXPECT_EQ(match(from, to),
            (std::vector<std::string>{"result['p']['a']", "result['p']['b']"}));
}

TEST_F(TreesTest, TypesMustAgree) {
  SmallVector<TreeLeaf> from = {{"p['a']", tensor({4})}};
  SmallVector<TreeLeaf> to = {{"result['a']", tensor({8})}};
  EXPECT_EQ(match(from, to), (std::vector<std::string>{"-"}));
}

TEST_F(TreesTest, ScoresDecideBetweenEqualTrees) {
  SmallVector<TreeLeaf> from = {{"m", tensor({4})}, {"p", tensor({4})}};
  SmallVector<TreeLeaf> to = {{"result[0]", tensor({4})},
                              {"result[1]", tensor({4})}};
  // The update of p (result 0) reads m, and that of m reads only m.
  auto score = [](unsigned a, unsigned r) -> double {
    if (a == 1)
      return r == 0 ? 3 : 0;
    return r == 0 ? 1 : 2;
  };
  EXPECT_EQ(match(from, to, score),
            (std::vector<std::string>{"result[1]", "result[0]"}));
}

TEST_F(TreesTest, OrderDecidesBetweenEqualScores) {
  SmallVector<TreeLeaf> from = {{"x", tensor({4})}, {"y", tensor({4})}};
  SmallVector<TreeLeaf> to = {{"result[0]", tensor({4})},
                              {"result[1]", tensor({4})}};
  auto score = [](unsigned, unsigned) { return 1.0; };
  EXPECT_EQ(match(from, to, score),
            (std::vector<std::string>{"result[0]", "result[1]"}));
}

TEST_F(TreesTest, TiesAreReportedWhereTheOrderIsNotKept) {
  SmallVector<TreeLeaf> from, to;
  for (StringRef name : {"a", "b", "x", "y"})
    from.push_back({name.str(), tensor({4})});
  for (int i = 0; i < 4; ++i)
    to.push_back({"result[" + std::to_string(i) + "]", tensor({4})});
  // a and b are replaced by the last results, in reverse.
  auto score = [](unsigned arg, unsigned result) -> double {
    return arg < 2 ? (result == 3 - arg ? 3 : 0) : (result < 2 ? 1 : 0);
  };
  SmallVector<std::string> ambiguities;
  matchTrees(from, to, score, nullptr, &ambiguities);
  ASSERT_EQ(ambiguities.size(), 2u);
  EXPECT_EQ(ambiguities.front(), "x: result[0], result[1]");

  // A hint that agrees with the scores resolves the ambiguity.
  auto hint = [](unsigned arg, unsigned result) -> double {
    return result == 3 - arg ? 1 : 0;
  };
  EXPECT_EQ(match(from, to, score, hint),
            (std::vector<std::string>{"result[3]", "result[2]", "result[1]",
                                      "result[0]"}));
}

TEST_F(TreesTest, APositionIsNoEvidenceForAPartOfAnotherTree) {
  // The last gradient has no argument, and the teacher has its structure.
  SmallVector<TreeLeaf> from, to;
  for (StringRef tree : {"teacher", "state[0]"})
    for (StringRef leaf : {"['head']['b']", "['head']['w']"})
      from.push_back({(tree + leaf).str(), tensor({4})});
  for (StringRef tree : {"result[0]", "result[1][1].grad"})
    for (StringRef leaf : {"['head']['b']", "['head']['w']"})
      to.push_back({(tree + leaf).str(), tensor({4})});
  auto score = [](unsigned arg, unsigned result) -> double {
    bool isState = arg >= 2, isGradient = result >= 2;
    return isState ? (arg == result + 2 ? 3 : 0)
                   : (isGradient && arg == result - 2 ? 0.02 : 0);
  };
  EXPECT_EQ(match(from, to, score),
            (std::vector<std::string>{"-", "-", "result[0]['head']['b']",
                                      "result[0]['head']['w']"}));
}

} // namespace
