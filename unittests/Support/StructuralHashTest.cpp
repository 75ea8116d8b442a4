//===- StructuralHashTest.cpp - Tests of hashes of ops --------------------===//

#include "fp8/Support/StructuralHash.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

class StructuralHashTest : public ::testing::Test {
protected:
  StructuralHashTest() {
    context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                        func::FuncDialect>();
  }

  /// Returns the hash of the function in `text`.
  std::string hashOf(StringRef text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text.str();
    return module ? structuralHash(*module->getOps<func::FuncOp>().begin())
                  : "";
  }

  MLIRContext context;
};

TEST_F(StructuralHashTest, NamesAndLocationsHaveNoPart) {
  EXPECT_EQ(hashOf("func.func @f(%x: i32) -> i32 { return %x : i32 }"),
            hashOf("\n\nfunc.func @g(%y: i32) -> i32 {\n return %y : i32 }"));
}

TEST_F(StructuralHashTest, AttributesAndPropertiesHaveAPart) {
  auto add = [&](StringRef flags) {
    return hashOf(("func.func @f(%x: i32) -> i32 { %0 = arith.addi %x, %x " +
                   flags + " : i32 return %0 : i32 }")
                      .str());
  };
  EXPECT_NE(add(""), add("overflow<nsw>"));
  EXPECT_NE(add(""), add("{mark}"));
}

TEST_F(StructuralHashTest, BytesOfResourcesHaveAPart) {
  auto constant = [&](StringRef bytes) {
    // Use separate contexts: the resource has the same name in both.
    MLIRContext own;
    own.loadDialect<arith::ArithDialect, func::FuncDialect>();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        ("func.func @f() { %0 = arith.constant dense_resource<r> : "
         "tensor<1xi32> return }\n"
         "{-# dialect_resources: { builtin: { r: \"0x04000000" +
         bytes + "\" } } #-}")
            .str(),
        &own);
    EXPECT_TRUE(module);
    return module ? structuralHash(*module) : "";
  };
  EXPECT_EQ(constant("01000000"), constant("01000000"));
  EXPECT_NE(constant("01000000"), constant("02000000"));
}

TEST_F(StructuralHashTest, SuccessorsHaveAPart) {
  auto branch = [&](StringRef then, StringRef otherwise) {
    return hashOf(("func.func @f(%c: i1, %x: i32, %y: i32) -> i32 {\n"
                   "  cf.cond_br %c, " +
                   then + ", " + otherwise +
                   "\n^a:\n  return %x : i32\n^b:\n  return %y : i32\n}")
                      .str());
  };
  EXPECT_NE(branch("^a", "^b"), branch("^b", "^a"));
}

TEST_F(StructuralHashTest, UsesBeforeTheirDefinitionHaveAPart) {
  // A definition that dominates its uses need not come first in the text.
  auto use = [&](StringRef used) {
    return hashOf(("func.func @f(%x: i32) -> i32 {\n"
                   "  cf.br ^b\n^a:\n  return " +
                   used +
                   " : i32\n^b:\n  %0 = arith.addi %x, %x : i32\n"
                   "  %1 = arith.muli %x, %x : i32\n  cf.br ^a\n}")
                      .str());
  };
  EXPECT_NE(use("%0"), use("%1"));
}

} // namespace
