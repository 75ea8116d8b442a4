//===- StableHLOTest.cpp - C++ interface of the StableHLO subset ----------===//
//
// Tests builders that infer types, constants, and the text that attributes
// keep.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/Sdy.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::stablehlo;

namespace {

class StableHLOTest : public ::testing::Test {
protected:
  StableHLOTest() : builder(&context), loc(builder.getUnknownLoc()) {
    context.loadDialect<StablehloDialect, chlo::ChloDialect, sdy::SdyDialect>();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
  }

  Value constant(ArrayRef<int64_t> shape, Type element) {
    auto type = RankedTensorType::get(shape, element);
    return ConstantOp::create(builder, loc,
                              cast<ElementsAttr>(builder.getZeroAttr(type)));
  }
  Value f32(ArrayRef<int64_t> shape) {
    return constant(shape, builder.getF32Type());
  }
  static std::string typeOf(Value value) {
    std::string text;
    llvm::raw_string_ostream(text) << value.getType();
    return text;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  OpBuilder builder;
  Location loc;
};

// Readers of constants must agree on what -1, 200 and true are.
TEST_F(StableHLOTest, NumbersOfSplats) {
  auto numberOf = [&](Type element, int64_t number) {
    return getSplatNumber(integerConstant(
        builder, loc, RankedTensorType::get({2}, element), number));
  };
  EXPECT_EQ(numberOf(builder.getI8Type(), -1), -1);
  EXPECT_EQ(numberOf(builder.getIntegerType(8, /*isSigned=*/false), 200), 200);
  EXPECT_EQ(numberOf(builder.getI1Type(), 1), 1);
  EXPECT_EQ(getSplatNumber(f32({2})), 0);
  EXPECT_EQ(
      getSplatNumber(IotaOp::create(
          builder, loc, RankedTensorType::get({2}, builder.getF32Type()), 0)),
      std::nullopt);
}

TEST_F(StableHLOTest, BuildersInferTypes) {
  Value x = f32({4, 8}), y = f32({4, 8}), scalar = f32({});
  EXPECT_EQ(typeOf(AddOp::create(builder, loc, x, y)), "tensor<4x8xf32>");
  EXPECT_EQ(typeOf(ExpOp::create(builder, loc, x)), "tensor<4x8xf32>");
  EXPECT_EQ(typeOf(chlo::SquareOp::create(builder, loc, x)), "tensor<4x8xf32>");
  EXPECT_EQ(typeOf(ClampOp::create(builder, loc, scalar, x, scalar)),
            "tensor<4x8xf32>");
  auto less = CompareOp::create(builder, loc, x, y, ComparisonDirection::LT);
  EXPECT_EQ(typeOf(less), "tensor<4x8xi1>");
  EXPECT_FALSE(less.getCompareType());
  EXPECT_EQ(typeOf(SelectOp::create(builder, loc, less, x, y)),
            "tensor<4x8xf32>");
  EXPECT_EQ(typeOf(IsFiniteOp::create(builder, loc, x)), "tensor<4x8xi1>");
  EXPECT_EQ(typeOf(ConvertOp::create(builder, loc, x, builder.getBF16Type())),
            "tensor<4x8xbf16>");
  EXPECT_EQ(
      typeOf(SliceOp::create(builder, loc, x, ArrayRef<int64_t>{1, 0},
                             ArrayRef<int64_t>{4, 8}, ArrayRef<int64_t>{2, 3})),
      "tensor<2x3xf32>");
  EXPECT_EQ(
      typeOf(TransposeOp::create(builder, loc, x, ArrayRef<int64_t>{1, 0})),
      "tensor<8x4xf32>");
  EXPECT_EQ(
      typeOf(ConcatenateOp::create(builder, loc, ValueRange{x, y}, int64_t(1))),
      "tensor<4x16xf32>");
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(StableHLOTest, EmptyAndStridedSlices) {
  Value x = f32({8});
  auto slice = [&](int64_t start, int64_t limit, int64_t stride) {
    return typeOf(SliceOp::create(builder, loc, x, ArrayRef<int64_t>{start},
                                  ArrayRef<int64_t>{limit},
                                  ArrayRef<int64_t>{stride}));
  };
  EXPECT_EQ(slice(3, 3, 2), "tensor<0xf32>");
  EXPECT_EQ(slice(0, 8, 8), "tensor<1xf32>");
  EXPECT_EQ(slice(1, 8, 3), "tensor<3xf32>");
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(StableHLOTest, MaterializesConstants) {
  auto *dialect = context.getLoadedDialect<StablehloDialect>();
  auto type = RankedTensorType::get({2}, builder.getF32Type());
  Attribute value = builder.getZeroAttr(type);
  EXPECT_TRUE(dialect->materializeConstant(builder, value, type, loc));
  EXPECT_FALSE(dialect->materializeConstant(
      builder, value, RankedTensorType::get({3}, builder.getF32Type()), loc));
  EXPECT_FALSE(dialect->materializeConstant(
      builder, builder.getF32FloatAttr(1.0), builder.getF32Type(), loc));
}

TEST_F(StableHLOTest, MeshSizes) {
  auto devices = [&](StringRef text) {
    auto mesh = dyn_cast_if_present<sdy::MeshAttr>(
        mlir::parseAttribute(text, &context));
    return mesh ? mesh.getNumDevices() : -1;
  };
  EXPECT_EQ(devices("#sdy.mesh<[]>"), 1);
  EXPECT_EQ(devices("#sdy.mesh<[\"a\"=2, \"b\" = 4]>"), 8);
  EXPECT_EQ(devices("#sdy.mesh<[\"a\"=2], device_ids=[1, 0]>"), 2);
  EXPECT_EQ(devices("#sdy.mesh<[\"a=3\\\"=5\"=2]>"), 2);
}

TEST_F(StableHLOTest, ShardingKeepsItsText) {
  StringRef text = "#sdy.sharding<@m, [{\"a\":(1)2, ?}p1, {}], "
                   "replicated={\"b\"}>";
  auto sharding = dyn_cast_if_present<sdy::TensorShardingAttr>(
      mlir::parseAttribute(text, &context));
  ASSERT_TRUE(sharding);
  EXPECT_EQ(("#sdy.sharding" + sharding.getText()).str(), text);
}

TEST_F(StableHLOTest, UnsupportedOpIsOneError) {
  for (StringRef text :
       {"%0 = stablehlo.fft : tensor<f32>",
        "%0 = \"stablehlo.fft\"() <{a = 1 : i32}> : () -> tensor<f32>",
        "%0 = stablehlo.does_not_exist : tensor<f32>"}) {
    SmallVector<std::string> errors;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      errors.push_back(diagnostic.str());
      return success();
    });
    EXPECT_FALSE(parseSourceString<ModuleOp>(text, &context));
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_NE(errors[0].find("is not supported by the fp8 importer"),
              std::string::npos);
  }
}

} // namespace
