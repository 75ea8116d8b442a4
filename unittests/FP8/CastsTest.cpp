//===- CastsTest.cpp - Exactness of f8 casts and scales -------------------===//
//
// Compiles casts, quantizations and scales with the passes that lower them,
// runs them, and compares with llvm::APFloat (casts) and with explicit formulas
// (scales).
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/FP8ToLinalg/FP8ToLinalg.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h"
#include "fp8/Init.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"

#include "gtest/gtest.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace mlir;
using llvm::APFloat;
using llvm::APInt;

namespace {

constexpr int64_t kBlock = 65536;
constexpr float kInf = std::numeric_limits<float>::infinity();

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Compiles MLIR text down to functions that take bare pointers.
class Jit {
public:
  Jit() {
    static bool once = [] {
      llvm::InitializeNativeTarget();
      llvm::InitializeNativeTargetAsmPrinter();
      fp8::registerAllPasses();
      return true;
    }();
    (void)once;
    DialectRegistry registry;
    fp8::registerAllDialects(registry);
    registerAllToLLVMIRTranslations(registry);
    registry.insert<fp8::FP8Dialect>();
    context.appendDialectRegistry(registry);
  }

  /// If `cpu` is given, casts may be expanded to what it has instructions for.
  void compile(StringRef text, StringRef cpu = "") {
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text.str();
    PassManager manager(&context);
    if (!cpu.empty())
      ASSERT_TRUE(succeeded(
          parsePassPipeline(("fp8-target{cpu=" + cpu + "}").str(), manager)));
    ASSERT_TRUE(succeeded(parsePassPipeline(
        "convert-fp8-to-linalg,eliminate-empty-tensors,one-shot-bufferize,"
        "ownership-based-buffer-deallocation,canonicalize,"
        "buffer-deallocation-simplification,bufferization-lower-deallocations,"
        "convert-linalg-to-loops,fp8-expand-casts,convert-scf-to-cf,"
        "convert-vector-to-llvm,expand-strided-metadata,"
        "finalize-memref-to-llvm,convert-math-to-llvm,convert-arith-to-llvm,"
        "convert-cf-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv="
        "1},reconcile-unrealized-casts",
        manager)));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    auto host =
        llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
    auto machine = llvm::cantFail(host.createTargetMachine());
    ExecutionEngineOptions options;
    auto transformer = makeOptimizingTransformer(3, 0, machine.get());
    options.transformer = transformer;
    auto created = ExecutionEngine::create(*module, options);
    ASSERT_TRUE(bool(created));
    engine = std::move(*created);
    engine->initialize();
  }

  template <typename... Args> void call(StringRef name, Args... args) {
    auto function = llvm::cantFail(engine->lookup(name));
    reinterpret_cast<void (*)(Args...)>(function)(args...);
  }

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<ExecutionEngine> engine;
};

/// Runs a function with subnormal f32 inputs and results flushed to zero, as
/// other software in the process may have configured.
template <typename Fn> void flushingSubnormals(Fn &&run) {
#if defined(__x86_64__)
  unsigned control = _mm_getcsr();
  _mm_setcsr(control | 0x8040);
  run();
  _mm_setcsr(control);
#else
  run();
#endif
}

struct Format {
  const char *name;
  const llvm::fltSemantics &(*semantics)();

  APFloat value(uint8_t code) const {
    return APFloat(semantics(), APInt(8, code));
  }
  /// The code of the largest finite number.
  uint8_t largest() const {
    return APFloat::getLargest(semantics()).bitcastToAPInt().getZExtValue();
  }
  float max() const { return value(largest()).convertToFloat(); }
  uint8_t canonicalNaN() const {
    StringRef n(name);
    return n.ends_with("FNUZ") ? 0x80
           : n == "f8E5M2"     ? 0x7e
           : n == "f8E4M3"     ? 0x7c
                               : 0x7f;
  }
  uint8_t encode(APFloat value) const {
    bool lost;
    value.convert(semantics(), APFloat::rmNearestTiesToEven, &lost);
    return value.bitcastToAPInt().getZExtValue();
  }
  /// Returns APFloat's result of a plain cast, except for NaN payloads.
  uint8_t plain(float x) const {
    if (std::isnan(x)) {
      uint8_t sign =
          StringRef(name).ends_with("FNUZ") || !std::signbit(x) ? 0 : 0x80;
      return canonicalNaN() | sign;
    }
    return encode(APFloat(x));
  }
  /// Returns the result of a saturating quantization.
  uint8_t quantized(float x, float q) const {
    if (!std::isfinite(x))
      return canonicalNaN();
    float y = x * q;
    return encode(APFloat(std::min(std::max(y, -max()), max())));
  }
  /// Returns the result of a quantization that overflows.
  uint8_t overflowing(float x, float q) const {
    float y = x * q;
    return std::isnan(y) ? canonicalNaN() : plain(y);
  }
};

const Format kFormats[] = {
    {"f8E4M3FN", APFloat::Float8E4M3FN},
    {"f8E5M2", APFloat::Float8E5M2},
    {"f8E4M3", APFloat::Float8E4M3},
    {"f8E4M3FNUZ", APFloat::Float8E4M3FNUZ},
    {"f8E5M2FNUZ", APFloat::Float8E5M2FNUZ},
};

void PrintTo(const Format &format, std::ostream *os) { *os << format.name; }

class Casts : public ::testing::TestWithParam<Format> {
protected:
  std::string with(std::string text) {
    size_t at;
    while ((at = text.find("F8")) != std::string::npos)
      text.replace(at, 2, GetParam().name);
    return text;
  }

  void compileEncoders() {
    ASSERT_NO_FATAL_FAILURE(jit.compile(with(R"mlir(
      func.func @plain(%in: memref<65536xf32>, %out: memref<65536xF8>) {
        %c0 = arith.constant 0 : index
        %c16 = arith.constant 16 : index
        %n = arith.constant 65536 : index
        scf.for %i = %c0 to %n step %c16 {
          %x = vector.load %in[%i] : memref<65536xf32>, vector<16xf32>
          %y = arith.truncf %x : vector<16xf32> to vector<16xF8>
          vector.store %y, %out[%i] : memref<65536xF8>, vector<16xF8>
        }
        return
      }
      func.func @quantize(%in: memref<65536xf32>, %quantizer: memref<f32>, %out: memref<65536xF8>) {
        %x = bufferization.to_tensor %in restrict : memref<65536xf32> to tensor<65536xf32>
        %q = bufferization.to_tensor %quantizer restrict : memref<f32> to tensor<f32>
        %y = fp8.quantize %x, %q, %q rounding = nearest_even, overflow = saturate
            : tensor<65536xf32> -> !fp8.scaled<65536xF8, tile = [*], scale = f32>
        %payload, %scale = fp8.unpack %y : !fp8.scaled<65536xF8, tile = [*], scale = f32>
        bufferization.materialize_in_destination %payload in restrict writable %out
            : (tensor<65536xF8>, memref<65536xF8>) -> ()
        return
      }
      func.func @quantize_nan(%in: memref<65536xf32>, %quantizer: memref<f32>, %out: memref<65536xF8>) {
        %x = bufferization.to_tensor %in restrict : memref<65536xf32> to tensor<65536xf32>
        %q = bufferization.to_tensor %quantizer restrict : memref<f32> to tensor<f32>
        %y = fp8.quantize %x, %q, %q rounding = nearest_even, overflow = nan
            : tensor<65536xf32> -> !fp8.scaled<65536xF8, tile = [*], scale = f32>
        %payload, %scale = fp8.unpack %y : !fp8.scaled<65536xF8, tile = [*], scale = f32>
        bufferization.materialize_in_destination %payload in restrict writable %out
            : (tensor<65536xF8>, memref<65536xF8>) -> ()
        return
      }
    )mlir")));
    in.resize(kBlock);
    out.resize(kBlock);
  }

  void checkDecoders(StringRef cpu);

  /// Runs one block of inputs through both encoders and compares.
  void checkEncoders(float q) {
    const Format &format = GetParam();
    jit.call("plain", in.data(), out.data());
    for (int64_t i = 0; i < kBlock; ++i)
      if (out[i] != format.plain(in[i]))
        FAIL() << "plain cast of " << in[i] << " (0x" << std::hex
               << bitsOf(in[i]) << "): 0x" << int(out[i]) << ", not 0x"
               << int(format.plain(in[i]));
    jit.call("quantize", in.data(), &q, out.data());
    for (int64_t i = 0; i < kBlock; ++i)
      if (out[i] != format.quantized(in[i], q))
        FAIL() << "quantization of " << in[i] << " (0x" << std::hex
               << bitsOf(in[i]) << ") by " << q << ": 0x" << int(out[i])
               << ", not 0x" << int(format.quantized(in[i], q));
  }

  Jit jit, decoder;
  std::vector<float> in;
  std::vector<uint8_t> out;
};

INSTANTIATE_TEST_SUITE_P(Formats, Casts, ::testing::ValuesIn(kFormats),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// Decodes all codes, with the instructions of `cpu`.
void Casts::checkDecoders(StringRef cpu) {
  Jit jit;
  ASSERT_NO_FATAL_FAILURE(jit.compile(with(R"mlir(
    func.func @vector(%in: memref<256xF8>, %out: memref<256xf32>) {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %n = arith.constant 256 : index
      scf.for %i = %c0 to %n step %c16 {
        %x = vector.load %in[%i] : memref<256xF8>, vector<16xF8>
        %y = arith.extf %x : vector<16xF8> to vector<16xf32>
        vector.store %y, %out[%i] : memref<256xf32>, vector<16xf32>
      }
      return
    }
    func.func @scalar(%in: memref<256xF8>, %f64: memref<256xf64>, %bf16: memref<256xbf16>, %f16: memref<256xf16>,
                      %bf16_f32: memref<256xf32>, %f16_f32: memref<256xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 256 : index
      scf.for %i = %c0 to %n step %c1 {
        %x = memref.load %in[%i] : memref<256xF8>
        %y = arith.extf %x : F8 to f64
        memref.store %y, %f64[%i] : memref<256xf64>
        %z = arith.extf %x : F8 to bf16
        memref.store %z, %bf16[%i] : memref<256xbf16>
        %w = arith.extf %x : F8 to f16
        memref.store %w, %f16[%i] : memref<256xf16>
        %z32 = arith.extf %z : bf16 to f32
        memref.store %z32, %bf16_f32[%i] : memref<256xf32>
        %w32 = arith.extf %w : f16 to f32
        memref.store %w32, %f16_f32[%i] : memref<256xf32>
      }
      return
    }
  )mlir"),
                                      cpu));
  std::vector<uint8_t> codes(256);
  for (int i = 0; i < 256; ++i)
    codes[i] = i;
  std::vector<float> f32(256), viaBF16(256), viaF16(256);
  std::vector<double> f64(256);
  std::vector<uint16_t> bf16(256), f16(256);
  jit.call("vector", codes.data(), f32.data());
  jit.call("scalar", codes.data(), f64.data(), bf16.data(), f16.data(),
           viaBF16.data(), viaF16.data());
  for (int i = 0; i < 256; ++i) {
    APFloat want = GetParam().value(i);
    SCOPED_TRACE(i);
    if (want.isNaN()) {
      EXPECT_TRUE(std::isnan(f32[i]) && std::isnan(f64[i]) &&
                  std::isnan(viaBF16[i]) && std::isnan(viaF16[i]));
      continue;
    }
    float number = want.convertToFloat();
    EXPECT_EQ(bitsOf(f32[i]), bitsOf(number));
    EXPECT_EQ(f64[i], number);
    EXPECT_EQ(std::signbit(f64[i]), std::signbit(number));
    EXPECT_EQ(bitsOf(viaBF16[i]), bitsOf(number));
    EXPECT_EQ(bitsOf(viaF16[i]), bitsOf(number));
  }
}

TEST_P(Casts, AllCodesDecode) { checkDecoders(""); }

TEST_P(Casts, AllCodesDecodeByF16) { checkDecoders("x86-64-v3"); }

TEST_P(Casts, ThresholdsAndSpecials) {
  ASSERT_NO_FATAL_FAILURE(compileEncoders());
  const Format &format = GetParam();
  std::vector<float> values = {0.0f, FLT_MIN, FLT_MAX,    FLT_TRUE_MIN,
                               kInf, 1.0f,    FLT_MIN / 2};
  for (uint32_t nan : {0x7fc00000u, 0x7f800001u, 0x7fbfffffu, 0x7fffffffu})
    values.push_back(floatOf(nan));
  // Values and the thresholds between them; the last threshold is between the
  // largest value and its would-be successor.
  auto valueOf = [&](int code) {
    if (code <= format.largest())
      return format.value(code).convertToFloat();
    float last = format.value(format.largest()).convertToFloat();
    return 2 * last - format.value(format.largest() - 1).convertToFloat();
  };
  for (int code = 0; code <= format.largest(); ++code) {
    float low = valueOf(code), high = valueOf(code + 1);
    for (float x : {low, (low + high) / 2, high}) {
      values.push_back(x);
      values.push_back(std::nextafter(x, kInf));
      values.push_back(std::nextafter(x, -kInf));
    }
  }
  std::vector<float> quantizers = {1.0f, 0.5f, 1.5f, 1e-30f, 1e30f, FLT_MAX};
  ASSERT_LE(static_cast<int64_t>(2 * values.size()), kBlock);
  for (int64_t i = 0; i < kBlock; ++i) {
    float x = values[(i / 2) % values.size()];
    in[i] = i % 2 ? -x : x;
  }
  for (float q : quantizers)
    ASSERT_NO_FATAL_FAILURE(checkEncoders(q));
}

TEST_P(Casts, NeedNoSubnormals) {
  ASSERT_NO_FATAL_FAILURE(compileEncoders());
  ASSERT_NO_FATAL_FAILURE(decoder.compile(with(R"mlir(
    func.func @decode(%in: memref<65536xF8>, %out: memref<65536xf32>) {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %n = arith.constant 65536 : index
      scf.for %i = %c0 to %n step %c16 {
        %x = vector.load %in[%i] : memref<65536xF8>, vector<16xF8>
        %y = arith.extf %x : vector<16xF8> to vector<16xf32>
        vector.store %y, %out[%i] : memref<65536xf32>, vector<16xf32>
      }
      return
    }
  )mlir")));
  std::mt19937 random(11);
  for (float &x : in)
    x = floatOf(((random() % 60 + 90) << 23) | (random() & 0x807fffff));
  in[0] = FLT_TRUE_MIN;
  jit.call("plain", in.data(), out.data());
  std::vector<uint8_t> flushed(kBlock);
  std::vector<float> decoded(kBlock), decodedFlushed(kBlock);
  decoder.call("decode", out.data(), decoded.data());
  flushingSubnormals([&] {
    jit.call("plain", in.data(), flushed.data());
    decoder.call("decode", out.data(), decodedFlushed.data());
  });
  EXPECT_EQ(out, flushed);
  EXPECT_EQ(std::memcmp(decoded.data(), decodedFlushed.data(),
                        kBlock * sizeof(float)),
            0);
}

TEST_P(Casts, RandomPatterns) {
  ASSERT_NO_FATAL_FAILURE(compileEncoders());
  std::mt19937 random(7);
  // 10 million bit patterns for the formats used in training, a third of them
  // within the range of the format.
  StringRef name(GetParam().name);
  bool trains = name == "f8E4M3FN" || name == "f8E5M2";
  int64_t patterns = trains ? 10000000 : 1000000;
  for (int64_t block = 0; block < patterns / kBlock + 1; ++block) {
    for (float &x : in) {
      uint32_t bits = random();
      if (block % 3 == 0)
        bits = (bits & 0x80ffffff) | ((100 + random() % 50) << 23);
      x = floatOf(bits);
    }
    float q = block % 2 ? 1.0f
                        : std::ldexp(1.0f + (random() % 1000) / 999.0f,
                                     int(random() % 40) - 20);
    ASSERT_NO_FATAL_FAILURE(checkEncoders(q));
  }
}

/// Compares all 2^32 inputs with the step function that the thresholds define
/// (ThresholdsAndSpecials checks these and their neighbours against APFloat).
TEST_P(Casts, Exhaustive) {
  ASSERT_NO_FATAL_FAILURE(compileEncoders());
  const Format &format = GetParam();
  // The first bit pattern of every run of equal codes, found by bisection over
  // the reference, which is monotone up to infinity.
  auto runsOf = [&](auto &&reference) {
    std::vector<std::pair<uint64_t, uint8_t>> runs;
    uint64_t first = 0, end = bitsOf(kInf);
    while (first < end) {
      uint8_t code = reference(floatOf(first));
      runs.push_back({first, code});
      uint64_t low = first, high = end;
      while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        (reference(floatOf(middle)) == code ? low : high) = middle;
      }
      first = high;
    }
    runs.push_back({end, reference(kInf)});
    runs.push_back({end + 1, reference(floatOf(0x7fc00000))});
    runs.push_back({uint64_t(1) << 31, 0});
    return runs;
  };
  float one = 1.0f;
  for (StringRef function : {"plain", "quantize", "quantize_nan"})
    for (bool negative : {false, true}) {
      uint32_t sign = negative ? 0x80000000u : 0;
      auto runs = runsOf([&](float x) {
        x = negative ? -x : x;
        return function == "plain"      ? format.plain(x)
               : function == "quantize" ? format.quantized(x, 1.0f)
                                        : format.overflowing(x, 1.0f);
      });
      size_t run = 0;
      for (uint64_t base = 0; base < (uint64_t(1) << 31); base += kBlock) {
        for (int64_t i = 0; i < kBlock; ++i)
          in[i] = floatOf(static_cast<uint32_t>(base + i) | sign);
        if (function == "plain")
          jit.call(function, in.data(), out.data());
        else
          jit.call(function, in.data(), &one, out.data());
        for (uint64_t at = base; at < base + kBlock;) {
          while (runs[run + 1].first <= at)
            ++run;
          uint64_t end = std::min(base + kBlock, runs[run + 1].first);
          int wrong = 0;
          for (uint64_t i = at; i < end; ++i)
            wrong |= out[i - base] ^ runs[run].second;
          ASSERT_EQ(wrong, 0)
              << "near bits 0x" << std::hex << at
              << (negative ? " negative " : " ") << function.str();
          at = end;
        }
      }
    }
}

TEST_P(Casts, OtherSources) {
  ASSERT_NO_FATAL_FAILURE(jit.compile(with(R"mlir(
    func.func @from(%n: index, %f64: memref<65536xf64>, %bits: memref<65536xi16>, %a: memref<65536xF8>,
                    %b: memref<65536xF8>, %c: memref<65536xF8>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {
        %x = memref.load %f64[%i] : memref<65536xf64>
        %x8 = arith.truncf %x : f64 to F8
        memref.store %x8, %a[%i] : memref<65536xF8>
        %h = memref.load %bits[%i] : memref<65536xi16>
        %y = arith.bitcast %h : i16 to bf16
        %y8 = arith.truncf %y : bf16 to F8
        memref.store %y8, %b[%i] : memref<65536xF8>
        %z = arith.bitcast %h : i16 to f16
        %z8 = arith.truncf %z : f16 to F8
        memref.store %z8, %c[%i] : memref<65536xF8>
      }
      return
    }
  )mlir")));
  const Format &format = GetParam();
  std::vector<double> f64(kBlock);
  std::vector<uint16_t> bits(kBlock);
  std::vector<uint8_t> a(kBlock), b(kBlock), c(kBlock);
  std::mt19937_64 random(3);
  for (int64_t i = 0; i < kBlock; ++i) {
    bits[i] = i;
    // Values next to thresholds, where rounding to f32 first would hit the
    // threshold.
    int code = random() % format.largest();
    double low = format.value(code).convertToDouble();
    double high = format.value(code + 1).convertToDouble();
    double x = (low + high) / 2;
    for (int step = random() % 3; step > 0; --step)
      x = std::nextafter(x, i % 3 ? 1e300 : -1e300);
    f64[i] = i % 2 ? -x : x;
  }
  f64[0] = 1e-300, f64[1] = -1e-300, f64[2] = 1e300, f64[3] = -1e300;
  f64[4] = HUGE_VAL, f64[5] = -HUGE_VAL, f64[6] = 0.0, f64[7] = -0.0;
  jit.call("from", kBlock, f64.data(), bits.data(), a.data(), b.data(),
           c.data());
  for (int64_t i = 0; i < kBlock; ++i) {
    ASSERT_EQ(a[i], format.encode(APFloat(f64[i]))) << f64[i];
    APFloat bf16(APFloat::BFloat(), APInt(16, i));
    APFloat f16(APFloat::IEEEhalf(), APInt(16, i));
    if (!bf16.isNaN())
      ASSERT_EQ(b[i], format.encode(bf16)) << i;
    else
      ASSERT_TRUE(format.value(b[i]).isNaN()) << i;
    if (!f16.isNaN())
      ASSERT_EQ(c[i], format.encode(f16)) << i;
    else
      ASSERT_TRUE(format.value(c[i]).isNaN()) << i;
  }
}

TEST(BF16Casts, NearestEven) {
  Jit jit;
  ASSERT_NO_FATAL_FAILURE(jit.compile(R"mlir(
    func.func @round(%in: memref<65536xf32>, %out: memref<65536xbf16>) {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %n = arith.constant 65536 : index
      scf.for %i = %c0 to %n step %c16 {
        %x = vector.load %in[%i] : memref<65536xf32>, vector<16xf32>
        %y = arith.truncf %x : vector<16xf32> to vector<16xbf16>
        vector.store %y, %out[%i] : memref<65536xbf16>, vector<16xbf16>
      }
      return
    }
  )mlir"));
  std::vector<float> in(kBlock);
  std::vector<uint16_t> out(kBlock);
  for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
    for (int64_t i = 0; i < kBlock; ++i)
      in[i] = floatOf(static_cast<uint32_t>(i) << 16 | low);
    jit.call("round", in.data(), out.data());
    for (int64_t i = 0; i < kBlock; ++i) {
      APFloat want(in[i]);
      bool lost;
      want.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &lost);
      if (want.isNaN())
        ASSERT_TRUE(APFloat(APFloat::BFloat(), APInt(16, out[i])).isNaN());
      else
        ASSERT_EQ(out[i], want.bitcastToAPInt().getZExtValue()) << i;
    }
  }
}

/// Compiles one compute_scale and runs it on scalars.
struct Scale {
  Scale(StringRef rule, StringRef format, int margin) {
    jit.compile((R"mlir(
      func.func @scale(%in: memref<f32>, %scale: memref<f32>, %quantizer: memref<f32>) {
        %a = bufferization.to_tensor %in restrict : memref<f32> to tensor<f32>
        %s, %q = fp8.compute_scale %a {rule = #fp8.scale_rule<)mlir" +
                 rule + ">, margin = " + Twine(margin) +
                 ", format = " + format + R"mlir(} : tensor<f32> -> tensor<f32>
        bufferization.materialize_in_destination %s in restrict writable %scale : (tensor<f32>, memref<f32>) -> ()
        bufferization.materialize_in_destination %q in restrict writable %quantizer : (tensor<f32>, memref<f32>) -> ()
        return
      }
    )mlir")
                    .str());
  }
  std::pair<float, float> operator()(float amax) {
    std::pair<float, float> result;
    jit.call("scale", &amax, &result.first, &result.second);
    return result;
  }
  Jit jit;
};

std::vector<float> amaxes() {
  std::vector<float> values = {FLT_TRUE_MIN, 1e-44f,  1e-40f, FLT_MIN, 1e-30f,
                               1.0f,         10.0f,   1e4f,   448.0f,  57344.0f,
                               896.0f,       FLT_MAX, 1e30f,  3.5f,    1.75f};
  for (float x : std::vector<float>(values)) {
    if (x < FLT_MAX)
      values.push_back(std::nextafter(x, kInf));
    values.push_back(std::nextafter(x, 0.0f));
  }
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i)
    values.push_back(std::abs(floatOf(random())));
  return values;
}

TEST(Scales, ExactIsTransformerEngines) {
  for (auto [format, max] :
       {std::pair("f8E4M3FN", 448.0f), std::pair("f8E5M2", 57344.0f)})
    for (int margin : {0, 1, 2}) {
      Scale scale("exact", format, margin);
      for (float amax : amaxes()) {
        float q = 1.0f;
        if (std::isfinite(amax) && amax > 0) {
          q = (max / amax) / std::exp2(float(margin));
          if (std::isinf(q))
            q = FLT_MAX;
        }
        auto [s, got] = scale(amax);
        ASSERT_EQ(bitsOf(got), bitsOf(q)) << amax;
        ASSERT_EQ(bitsOf(s), bitsOf(1.0f / q)) << amax;
      }
      for (float amax : {0.0f, -0.0f, kInf, NAN})
        EXPECT_EQ(scale(amax), std::pair(1.0f, 1.0f)) << amax;
    }
}

TEST(Scales, PowersOfTwo) {
  for (bool floor : {false, true})
    for (auto [format, max] :
         {std::pair("f8E4M3FN", 448.0), std::pair("f8E5M2", 57344.0),
          std::pair("f8E4M3", 240.0), std::pair("f8E4M3FNUZ", 240.0),
          std::pair("f8E5M2FNUZ", 57344.0)})
      for (int margin : {0, 2}) {
        Scale scale(floor ? "ocp_floor" : "pow2", format, margin);
        for (float amax : amaxes()) {
          if (!std::isfinite(amax) || amax == 0)
            continue;
          // The smallest power of two with amax / 2^k <= max, in exact
          // arithmetic.
          int k = -400;
          if (floor)
            k = std::ilogb(double(amax)) - std::ilogb(max);
          else
            while (std::ldexp(double(amax), -k) > max)
              ++k;
          k = std::clamp(k + margin, -126, 126);
          auto [s, q] = scale(amax);
          ASSERT_EQ(s, std::ldexp(1.0f, k)) << amax;
          ASSERT_EQ(q, std::ldexp(1.0f, -k)) << amax;
        }
        for (float amax : {0.0f, kInf, NAN})
          EXPECT_EQ(scale(amax), std::pair(1.0f, 1.0f)) << amax;
      }
  Scale scale("pow2", "f8E4M3FN", 0);
  EXPECT_EQ(scale(10.0f).first, 1.0f / 32);
  EXPECT_EQ(scale(10.0f).second, 32.0f);
  EXPECT_EQ(scale(1e4f).first, 32.0f);
}

TEST(Amax, SeesNonFinite) {
  Jit jit;
  ASSERT_NO_FATAL_FAILURE(jit.compile(R"mlir(
    func.func @amax(%in: memref<16x8xf32>, %out: memref<f32>) {
      %x = bufferization.to_tensor %in restrict : memref<16x8xf32> to tensor<16x8xf32>
      %a = fp8.amax %x : tensor<16x8xf32> -> tensor<f32>
      bufferization.materialize_in_destination %a in restrict writable %out : (tensor<f32>, memref<f32>) -> ()
      return
    }
  )mlir"));
  std::vector<float> x(128);
  float amax;
  auto run = [&] {
    jit.call("amax", x.data(), &amax);
    return amax;
  };
  EXPECT_EQ(run(), 0.0f);
  x[77] = -3.0f, x[3] = 2.0f;
  EXPECT_EQ(run(), 3.0f);
  x[100] = -kInf;
  EXPECT_EQ(run(), kInf);
  x[1] = NAN;
  EXPECT_TRUE(std::isnan(run()));
}

/// Compares a batched dot of mixed formats, with operands laid out as [b, k, m]
/// and [n, b, k], with f64 on the dequantized operands.
TEST(DotGeneral, IsTheDotOfTheDequantized) {
  Jit jit;
  ASSERT_NO_FATAL_FAILURE(jit.compile(R"mlir(
    !x = !fp8.scaled<3x40x5xf8E5M2, tile = [*, *, *], scale = f32>
    !w = !fp8.scaled<7x3x40xf8E4M3FN, tile = [*, *, *], scale = f32>
    func.func @dot(%xp: memref<3x40x5xf8E5M2>, %xs: memref<f32>, %wp: memref<7x3x40xf8E4M3FN>, %ws: memref<f32>,
                   %out: memref<3x5x7xf32>, %dequantized: memref<3x40x5xf32>) {
      %0 = bufferization.to_tensor %xp restrict : memref<3x40x5xf8E5M2> to tensor<3x40x5xf8E5M2>
      %1 = bufferization.to_tensor %xs restrict : memref<f32> to tensor<f32>
      %2 = bufferization.to_tensor %wp restrict : memref<7x3x40xf8E4M3FN> to tensor<7x3x40xf8E4M3FN>
      %3 = bufferization.to_tensor %ws restrict : memref<f32> to tensor<f32>
      %x = fp8.pack %0, %1 : !x
      %w = fp8.pack %2, %3 : !w
      %y = fp8.dot_general %x, %w, batching_dims = [0] x [1], contracting_dims = [1] x [2] {accumulator = f32}
          : (!x, !w) -> tensor<3x5x7xf32>
      %d = fp8.dequantize %x : !x -> tensor<3x40x5xf32>
      bufferization.materialize_in_destination %y in restrict writable %out : (tensor<3x5x7xf32>, memref<3x5x7xf32>) -> ()
      bufferization.materialize_in_destination %d in restrict writable %dequantized
          : (tensor<3x40x5xf32>, memref<3x40x5xf32>) -> ()
      return
    }
  )mlir"));
  constexpr int B = 3, M = 5, N = 7, K = 40;
  const Format &e5m2 = kFormats[1], &e4m3 = kFormats[0];
  std::vector<uint8_t> x(B * K * M), w(N * B * K);
  std::mt19937 random(13);
  auto finite = [&](const Format &format) {
    uint8_t code = random() % (format.largest() + 1);
    return static_cast<uint8_t>(random() % 2 ? code : code | 0x80);
  };
  for (uint8_t &code : x)
    code = finite(e5m2);
  for (uint8_t &code : w)
    code = finite(e4m3);
  float xs = 0.37f, ws = 1.0f / 3;
  std::vector<float> y(B * M * N), d(B * K * M);
  jit.call("dot", x.data(), &xs, w.data(), &ws, y.data(), d.data());
  for (int i = 0; i < B * K * M; ++i)
    ASSERT_EQ(d[i], e5m2.value(x[i]).convertToFloat() * xs);
  for (int b = 0; b < B; ++b)
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double sum = 0, absolute = 0;
        for (int k = 0; k < K; ++k) {
          double product =
              e5m2.value(x[(b * K + k) * M + m]).convertToDouble() * xs *
              e4m3.value(w[(n * B + b) * K + k]).convertToDouble() * ws;
          sum += product;
          absolute += std::abs(product);
        }
        ASSERT_NEAR(y[(b * M + m) * N + n], sum, 1e-6 * absolute);
      }
}

} // namespace
