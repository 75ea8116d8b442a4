//===- ExpandMathTest.cpp - Accuracy of the expanded functions ------------===//
//
// Compiles each function over vectors of 16 lanes and compares it with the C
// library's double (or long double) version over samples of all f32 values.
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/ExpandMath/ExpandMath.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Init.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/TargetSelect.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

using namespace mlir;

namespace {

constexpr int kLanes = 16;
constexpr double kInf = std::numeric_limits<double>::infinity();

class ExpandMathTest : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  }

  ExpandMathTest() {
    DialectRegistry registry;
    fp8::registerAllDialects(registry);
    registerAllToLLVMIRTranslations(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Compiles `op` (with one or two operands) into `void f(in0, in1, out, n)`.
  void compile(StringRef op, bool binary, StringRef element = "f32",
               StringRef cpu = "") {
    compileOps(
        ("%r = math." + op + " %x" + (binary ? ", %y" : "") + " : !V\n").str(),
        element, cpu);
  }

  /// Compiles ops that compute %r from %x and %y, of type !V. If `cpu` is
  /// given, they may be expanded to what it has instructions for.
  void compileOps(StringRef ops, StringRef element = "f32",
                  StringRef cpu = "") {
    std::string type = ("vector<16x" + element + ">").str();
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "func.func @f(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %n: i64)"
          " attributes {llvm.emit_c_interface} {\n"
          "%zero = arith.constant 0 : i64\n%one = arith.constant 1 : i64\n"
          "scf.for %i = %zero to %n step %one : i64 {\n"
          "%pa = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, "
          "!V\n"
          "%pb = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, "
          "!V\n"
          "%pc = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, "
          "!V\n"
          "%x = llvm.load %pa {alignment = 4} : !llvm.ptr -> !V\n"
          "%y = llvm.load %pb {alignment = 4} : !llvm.ptr -> !V\n"
       << ops
       << "llvm.store %r, %pc {alignment = 4} : !V, !llvm.ptr\n}\nreturn\n}\n";
    text = "!V = " + type + "\n" + text;
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    PassManager manager(&context);
    if (!cpu.empty()) {
      fp8::SetTargetOptions target;
      target.cpu = cpu.str();
      manager.addPass(fp8::createSetTarget(target));
    }
    manager.addPass(fp8::createExpandMath());
    ASSERT_TRUE(succeeded(manager.run(*module)));
    module->walk([&](Operation *inner) {
      if (isa<math::MathDialect>(inner->getDialect()))
        EXPECT_TRUE(
            (isa<math::FmaOp, math::SqrtOp, math::AbsFOp, math::FloorOp,
                 math::CeilOp, math::RoundEvenOp, math::CopySignOp>(inner)))
            << inner->getName().getStringRef().str();
    });
    manager.clear();
    manager.addPass(createSCFToControlFlowPass());
    manager.addPass(createConvertToLLVMPass());
    ASSERT_TRUE(succeeded(manager.run(*module)));
    ExecutionEngineOptions options;
    auto transformer = makeOptimizingTransformer(1, 0, nullptr);
    options.transformer = transformer;
    auto created = ExecutionEngine::create(*module, options);
    ASSERT_TRUE(bool(created));
    engine = std::move(*created);
    engine->initialize();
  }

  void call(void *a, void *b, void *c, int64_t vectors) {
    void *packed[] = {&a, &b, &c, &vectors};
    llvm::Error error = engine->invokePacked("_mlir_ciface_f", packed);
    ASSERT_FALSE(bool(error));
  }

  /// Returns the distance of `got` from the true value, in units in the last
  /// place of an f32 near the true value.
  static double ulps(float got, double want) {
    if (std::isnan(want) || std::isnan(got))
      return std::isnan(want) && std::isnan(got) ? 0 : kInf;
    float rounded = static_cast<float>(want);
    if (std::isinf(rounded) || std::isinf(got)) {
      if (got == rounded)
        return 0;
      // Just below the largest float, both are valid roundings of the value.
      if (std::abs(want) > 3.4028234e38 && std::abs(want) < 3.402824e38)
        return 1;
      return kInf;
    }
    int exponent;
    std::frexp(want, &exponent);
    double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
    if (want == 0 && got == 0 && std::signbit(want) != std::signbit(got))
      return kInf;
    return std::abs(got - want) / unit;
  }

  void check(std::vector<float> a, std::vector<float> b,
             const std::function<double(double, double)> &function,
             double bound) {
    while (a.size() % kLanes)
      a.push_back(1.0f);
    b.resize(a.size(), 1.0f);
    std::vector<float> c(a.size());
    call(a.data(), b.data(), c.data(), a.size() / kLanes);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      double error = ulps(c[i], function(a[i], b[i]));
      if (error > worst) {
        worst = error;
        at = i;
      }
    }
    RecordProperty("max_ulp", std::to_string(worst));
    std::printf("max ulp %.3f at %a %a (%g %g): got %g, want %g\n", worst,
                a[at], b[at], a[at], b[at], c[at], function(a[at], b[at]));
    EXPECT_LE(worst, bound);
  }

  static std::vector<float> specials() {
    using Limits = std::numeric_limits<float>;
    std::vector<float> list;
    for (float x : {0.0f,
                    Limits::infinity(),
                    Limits::quiet_NaN(),
                    Limits::denorm_min(),
                    Limits::min(),
                    Limits::max(),
                    1.0f,
                    0.5f,
                    2.0f,
                    3.0f,
                    1e-30f,
                    1e30f,
                    1.5f,
                    16777216.0f,
                    16777217.0f,
                    4.0f,
                    88.72283f,
                    88.72284f,
                    103.97f,
                    103.98f,
                    0.99999994f,
                    1.0000001f,
                    128.0f,
                    127.99999f,
                    149.0f,
                    150.0f})
      for (float sign : {1.0f, -1.0f})
        list.push_back(sign * x);
    return list;
  }

  /// Returns every `step`th f32 by its bits, and the special values.
  static std::vector<float> samples(uint32_t step = 1021) {
    std::vector<float> list = specials();
    for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += step) {
      uint32_t word = bits;
      float x;
      std::memcpy(&x, &word, 4);
      list.push_back(x);
    }
    return list;
  }

  void checkUnary(StringRef op, double (*function)(double), double bound = 2) {
    compile(op, /*binary=*/false);
    check(samples(), {}, [&](double x, double) { return function(x); }, bound);
  }

  void checkBinary(StringRef op, double (*function)(double, double)) {
    compile(op, /*binary=*/true);
    std::vector<float> a, b;
    for (float x : specials())
      for (float y : specials()) {
        a.push_back(x);
        b.push_back(y);
      }
    std::mt19937 random(1);
    for (int i = 0; i < 2000000; ++i) {
      auto draw = [&](float range) {
        return std::uniform_real_distribution<float>(-range, range)(random);
      };
      // Moderate values, arbitrary bits, and integers as the second operand.
      float x, y;
      uint32_t wx = random(), wy = random();
      std::memcpy(&x, &wx, 4);
      std::memcpy(&y, &wy, 4);
      switch (i % 5) {
      case 0:
        x = std::abs(draw(30)), y = draw(30);
        break;
      case 1:
        y = draw(3);
        break;
      case 2:
        x = draw(4), y = std::round(draw(20));
        break;
      case 3:
        x = 1 + draw(1e-3), y = draw(1e5);
        break;
      }
      a.push_back(x);
      b.push_back(y);
    }
    check(a, b, function, 2);
  }

  /// Checks the op in f64 against the long double function.
  void checkF64(StringRef op, long double (*function)(long double)) {
    compile(op, /*binary=*/false, "f64");
    std::vector<double> a = {0.0,    -0.0,    kInf,   -kInf, std::nan(""),
                             5e-324, -1e-310, 1e-300, 1e300, -1e300,
                             709.5,  -745.0,  1.0,    -1.0};
    std::mt19937_64 random(1);
    for (int i = 0; i < 200000; ++i) {
      uint64_t bits = random();
      double any;
      std::memcpy(&any, &bits, 8);
      a.push_back(any);
      a.push_back(std::uniform_real_distribution<double>(-2, 2)(random));
      a.push_back(std::uniform_real_distribution<double>(-30, 30)(random));
    }
    while (a.size() % kLanes)
      a.push_back(1.0);
    std::vector<double> c(a.size());
    call(a.data(), a.data(), c.data(), a.size() / kLanes);
    double worst = 0, at = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      long double want = function(a[i]);
      double rounded = static_cast<double>(want), error = 0;
      if (std::isnan(rounded) || std::isnan(c[i])) {
        error = std::isnan(rounded) && std::isnan(c[i]) ? 0 : kInf;
      } else if (c[i] != rounded) {
        int exponent;
        std::frexp(rounded, &exponent);
        error = std::abs(c[i] - want) /
                std::ldexp(1.0, std::max(exponent - 53, -1074));
      }
      if (error > worst)
        worst = error, at = a[i];
    }
    std::printf("max ulp %.3f at %g\n", worst, at);
    EXPECT_LE(worst, 8);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<ExecutionEngine> engine;
};

// The C library's names are overloaded, so the function is given as an
// expression.
#define UNARY(TEST_NAME, OP, EXPRESSION)                                       \
  TEST_F(ExpandMathTest, TEST_NAME) {                                          \
    checkUnary(OP, [](double x) -> double { return EXPRESSION; });             \
  }

UNARY(Exp, "exp", std::exp(x))
UNARY(Exp2, "exp2", std::exp2(x))
UNARY(ExpM1, "expm1", std::expm1(x))
UNARY(Log, "log", std::log(x))
UNARY(Log2, "log2", std::log2(x))
UNARY(Log10, "log10", std::log10(x))
UNARY(Log1p, "log1p", std::log1p(x))
UNARY(Sin, "sin", std::sin(x))
UNARY(Cos, "cos", std::cos(x))
UNARY(Tan, "tan", std::tan(x))
UNARY(Asin, "asin", std::asin(x))
UNARY(Acos, "acos", std::acos(x))
UNARY(Atan, "atan", std::atan(x))
UNARY(Sinh, "sinh", std::sinh(x))
UNARY(Cosh, "cosh", std::cosh(x))
UNARY(Tanh, "tanh", std::tanh(x))
UNARY(Asinh, "asinh", std::asinh(x))
UNARY(Acosh, "acosh", std::acosh(x))
UNARY(Atanh, "atanh", std::atanh(x))
UNARY(Erf, "erf", std::erf(x))
UNARY(Erfc, "erfc", std::erfc(x))
UNARY(Cbrt, "cbrt", std::cbrt(x))
UNARY(Rsqrt, "rsqrt", 1 / std::sqrt(x))
UNARY(Trunc, "trunc", std::trunc(x))
UNARY(Round, "round", std::round(x))

#define UNARY_F64(TEST_NAME, OP, EXPRESSION)                                   \
  TEST_F(ExpandMathTest, TEST_NAME) {                                          \
    checkF64(OP, [](long double x) -> long double { return EXPRESSION; });     \
  }

UNARY_F64(ExpM1F64, "expm1", std::expm1(x))
UNARY_F64(Log1pF64, "log1p", std::log1p(x))
UNARY_F64(CbrtF64, "cbrt", std::cbrt(x))
UNARY_F64(AsinhF64, "asinh", std::asinh(x))
UNARY_F64(AcoshF64, "acosh", std::acosh(x))
UNARY_F64(AtanhF64, "atanh", std::atanh(x))
UNARY_F64(ErfF64, "erf", std::erf(x))
UNARY_F64(ErfcF64, "erfc", std::erfc(x))
UNARY_F64(RsqrtF64, "rsqrt", 1 / std::sqrt(x))

TEST_F(ExpandMathTest, Pow) {
  checkBinary("powf", [](double x, double y) { return std::pow(x, y); });
}
// Magnitudes to powers above 0: the error grows with the octaves of the result.
TEST_F(ExpandMathTest, PowApproximate) {
  compileOps("%m = math.absf %x : !V\n"
             "%r = math.powf %m, %y fastmath<afn> : !V\n");
  std::vector<float> a = samples(), b;
  std::mt19937 random(1);
  for (size_t i = 0; i < a.size(); ++i)
    b.push_back(
        std::exp2(std::uniform_real_distribution<float>(-6, 7)(random)));
  while (a.size() % kLanes)
    a.push_back(1.0f), b.push_back(1.0f);
  std::vector<float> c(a.size());
  call(a.data(), b.data(), c.data(), a.size() / kLanes);
  for (size_t i = 0; i < a.size(); ++i) {
    double want = std::pow(std::abs(double(a[i])), double(b[i]));
    double octaves = std::abs(std::log2(want));
    // An ulp is at least 2^-24 of a value. Results beyond f32 may round to the
    // largest float.
    if (octaves < 127.99)
      ASSERT_LE(ulps(c[i], want), 2 * octaves + 2)
          << a[i] << "^" << b[i] << " = " << c[i];
    else if (want == 0 || std::isinf(want) || std::isnan(want))
      ASSERT_EQ(ulps(c[i], want), 0) << a[i] << "^" << b[i] << " = " << c[i];
  }
}
// AVX-512 multiplies by powers of two in one instruction; elsewhere, here, the
// C library does it.
TEST_F(ExpandMathTest, SameBitsWithAVX512) {
  std::vector<float> a = samples();
  while (a.size() % kLanes)
    a.push_back(1.0f);
  for (const char *op : {"exp", "exp2", "tanh", "erf"}) {
    std::vector<float> plain(a.size()), scaled(a.size());
    for (auto [cpu, c] : {std::pair("", &plain), {"x86-64-v4", &scaled}}) {
      compile(op, /*binary=*/false, "f32", cpu);
      call(a.data(), a.data(), c->data(), a.size() / kLanes);
    }
    for (size_t i = 0; i < a.size(); ++i)
      if (!std::isnan(plain[i]) || !std::isnan(scaled[i]))
        ASSERT_EQ(llvm::bit_cast<uint32_t>(plain[i]),
                  llvm::bit_cast<uint32_t>(scaled[i]))
            << op << " of " << a[i];
  }
}
TEST_F(ExpandMathTest, Atan2) {
  checkBinary("atan2", [](double x, double y) { return std::atan2(x, y); });
}

} // namespace
