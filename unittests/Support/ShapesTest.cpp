//===- ShapesTest.cpp - Dimensions of reshapes ----------------------------===//

#include "fp8/Support/Shapes.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;
using Dims = SmallVector<int64_t, 2>;

namespace {

TEST(Shapes, MatchDimsOfReshapes) {
  // Dimensions that stay, that are joined, and that are split.
  SmallVector<MatchedDims> groups = matchReshape({6, 2, 3, 20}, {6, 6, 4, 5});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].from, Dims({0}));
  EXPECT_EQ(groups[0].to, Dims({0}));
  EXPECT_EQ(groups[1].from, Dims({1, 2}));
  EXPECT_EQ(groups[1].to, Dims({1}));
  EXPECT_EQ(groups[2].from, Dims({3}));
  EXPECT_EQ(groups[2].to, Dims({2, 3}));

  // Dimensions that are joined and split otherwise.
  groups = matchReshape({4, 6}, {8, 3});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].from, Dims({0, 1}));
  EXPECT_EQ(groups[0].to, Dims({0, 1}));
}

TEST(Shapes, LeaveOutDimsOfOneElement) {
  SmallVector<MatchedDims> groups = matchReshape({1, 8, 1, 3}, {8, 1, 1, 3, 1});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].from, Dims({1}));
  EXPECT_EQ(groups[0].to, Dims({0}));
  EXPECT_EQ(groups[1].from, Dims({3}));
  EXPECT_EQ(groups[1].to, Dims({3}));
  EXPECT_TRUE(matchReshape({1, 1}, {}).empty());
}

} // namespace
