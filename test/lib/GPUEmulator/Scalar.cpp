//===- Scalar.cpp - Conversions and arithmetic ----------------------------===//

#include "Formats.h"
#include "Instructions.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace fp8::emulator {

//===----------------------------------------------------------------------===//
// cvt, PTX ISA 9.7.9.22
//===----------------------------------------------------------------------===//

static float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                : value;
}

// `cvt.rn.satfinite.e4m3x2.f32 d, a, b`: converts a to the upper half of d and
// b to the lower half.
static void encodePair(Thread &, const Instruction &instruction,
                       const uint64_t *operands, uint64_t *results) {
  auto format = static_cast<Format>(instruction.detail[0]);
  bool saturate = instruction.detail[1], hasRelu = instruction.detail[2];
  uint64_t codes[2];
  for (unsigned i = 0; i < 2; ++i) {
    float value = asFloat(operands[i]);
    if (hasRelu && value < 0)
      value = 0;
    codes[i] = encode(format, value, saturate);
  }
  results[0] = codes[0] << bitsOf(format) | codes[1];
}

// `cvt.rn.satfinite.e4m3x2.f16x2 d, a`: converts each half of a to the same
// half of d.
static void encodeHalves(Thread &, const Instruction &instruction,
                         const uint64_t *operands, uint64_t *results) {
  auto format = static_cast<Format>(instruction.detail[0]);
  uint64_t low =
      encode(format, decode(Format::F16, operands[0] & 0xffff), true);
  uint64_t high =
      encode(format, decode(Format::F16, operands[0] >> 16 & 0xffff), true);
  results[0] = high << 8 | low;
}

// `cvt.rn.f16x2.e4m3x2 d, a`: exact, because f16 has every f8 value.
static void decodeHalves(Thread &, const Instruction &instruction,
                         const uint64_t *operands, uint64_t *results) {
  auto format = static_cast<Format>(instruction.detail[0]);
  uint64_t low = encode(Format::F16, decode(format, operands[0] & 0xff), false);
  uint64_t high =
      encode(Format::F16, decode(format, operands[0] >> 8 & 0xff), false);
  results[0] = high << 16 | low;
}

static void encodeOne(Thread &, const Instruction &instruction,
                      const uint64_t *operands, uint64_t *results) {
  results[0] = encode(static_cast<Format>(instruction.detail[0]),
                      asFloat(operands[0]), instruction.detail[1]);
}

// `cvt.rna.tf32.f32`: rounds to nearest, ties away from zero.
static void encodeTF32(Thread &, const Instruction &, const uint64_t *operands,
                       uint64_t *results) {
  auto bits = static_cast<uint32_t>(operands[0]);
  bool isFinite = (bits >> 23 & 0xff) != 0xff;
  results[0] = isFinite ? (bits + 0x1000) & ~0x1fffu : bits;
}

static Form findConversion(const std::string &opcode) {
  Form form;
  form.results = 1;
  for (const auto &[name, format] :
       {std::pair<const char *, Format>{"e4m3x2", Format::E4M3},
        {"e5m2x2", Format::E5M2}}) {
    form.detail[0] = static_cast<int64_t>(format);
    form.detail[1] = true;
    for (bool hasRelu : {false, true})
      if (opcode == std::string("cvt.rn.satfinite.") +
                        (hasRelu ? "relu." : "") + name + ".f32") {
        form.handler = &encodePair;
        form.operands = 2;
        form.detail[2] = hasRelu;
        return form;
      }
    form.operands = 1;
    if (opcode == std::string("cvt.rn.satfinite.") + name + ".f16x2") {
      form.handler = &encodeHalves;
      return form;
    }
    if (opcode == std::string("cvt.rn.f16x2.") + name) {
      form.handler = &decodeHalves;
      return form;
    }
  }
  for (const auto &[name, format] :
       {std::pair<const char *, Format>{"f16", Format::F16},
        {"bf16", Format::BF16}}) {
    form.detail[0] = static_cast<int64_t>(format);
    for (bool saturate : {false, true}) {
      form.detail[1] = saturate;
      std::string start = saturate ? "cvt.rn.satfinite." : "cvt.rn.";
      if (opcode == start + name + "x2.f32") {
        form.handler = &encodePair;
        form.operands = 2;
        return form;
      }
      if (opcode == start + name + ".f32") {
        form.handler = &encodeOne;
        form.operands = 1;
        return form;
      }
    }
  }
  if (opcode == "cvt.rna.tf32.f32") {
    form.handler = &encodeTF32;
    form.operands = 1;
    return form;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

namespace {
/// Functions of f32 by their PTX names. The approximate ones (9.7.3) are
/// correctly rounded here, which is within every bound of the PTX ISA.
using Unary = float (*)(float);
using Binary = float (*)(float, float);
} // namespace

static const std::map<std::string, Unary> &unaries() {
  static const std::map<std::string, Unary> table = {
      {"ex2.approx.f32",
       [](float x) { return static_cast<float>(std::exp2(double(x))); }},
      {"ex2.approx.ftz.f32",
       [](float x) {
         return flushed(static_cast<float>(std::exp2(double(flushed(x)))));
       }},
      {"lg2.approx.f32",
       [](float x) { return static_cast<float>(std::log2(double(x))); }},
      {"lg2.approx.ftz.f32",
       [](float x) {
         return static_cast<float>(std::log2(double(flushed(x))));
       }},
      {"rcp.rn.f32", [](float x) { return 1.0f / x; }},
      {"rcp.approx.ftz.f32",
       [](float x) { return flushed(1.0f / flushed(x)); }},
      {"rsqrt.approx.f32",
       [](float x) { return static_cast<float>(1.0 / std::sqrt(double(x))); }},
      {"rsqrt.approx.ftz.f32",
       [](float x) {
         return static_cast<float>(1.0 / std::sqrt(double(flushed(x))));
       }},
      {"sqrt.rn.f32", [](float x) { return std::sqrt(x); }},
      {"sqrt.approx.f32", [](float x) { return std::sqrt(x); }},
      {"tanh.approx.f32",
       [](float x) { return static_cast<float>(std::tanh(double(x))); }},
      {"abs.f32", [](float x) { return std::fabs(x); }},
  };
  return table;
}

// 9.7.3.11: if one operand is NaN, the result is the other one, or NaN with
// .NaN. +0.0 > -0.0.
template <bool isMax, bool keepsNaN> static float extremum(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (keepsNaN || (std::isnan(a) && std::isnan(b)))
      return asFloat(0x7fffffff);
    return std::isnan(a) ? b : a;
  }
  if (a == b)
    return std::signbit(a) == isMax ? b : a;
  return (a > b) == isMax ? a : b;
}

static const std::map<std::string, Binary> &binaries() {
  static const std::map<std::string, Binary> table = {
      {"add.rn.f32", [](float a, float b) { return a + b; }},
      {"mul.rn.f32", [](float a, float b) { return a * b; }},
      {"div.rn.f32", [](float a, float b) { return a / b; }},
      {"div.full.f32", [](float a, float b) { return a / b; }},
      {"max.f32", &extremum<true, false>},
      {"min.f32", &extremum<false, false>},
      {"max.NaN.f32", &extremum<true, true>},
      {"min.NaN.f32", &extremum<false, true>},
  };
  return table;
}

static void runUnary(Thread &, const Instruction &instruction,
                     const uint64_t *operands, uint64_t *results) {
  auto function = reinterpret_cast<Unary>(instruction.detail[0]);
  results[0] = asBits(function(asFloat(operands[0])));
}

static void runBinary(Thread &, const Instruction &instruction,
                      const uint64_t *operands, uint64_t *results) {
  auto function = reinterpret_cast<Binary>(instruction.detail[0]);
  results[0] = asBits(function(asFloat(operands[0]), asFloat(operands[1])));
}

// 9.7.9.7, prmt.b32 d, a, b, c: every nibble of c selects one of the eight
// bytes of a and b, or replicates its sign.
static void permute(Thread &, const Instruction &, const uint64_t *operands,
                    uint64_t *results) {
  uint64_t bytes = (operands[0] & 0xffffffff) | operands[1] << 32;
  uint64_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned selector = operands[2] >> 4 * i & 0xf;
    uint64_t byte = bytes >> 8 * (selector & 7) & 0xff;
    if (selector & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  results[0] = result;
}

static Form findArithmetic(const std::string &opcode) {
  Form form;
  form.results = 1;
  if (auto found = unaries().find(opcode); found != unaries().end()) {
    form.handler = &runUnary;
    form.operands = 1;
    form.detail[0] = reinterpret_cast<int64_t>(found->second);
    return form;
  }
  if (auto found = binaries().find(opcode); found != binaries().end()) {
    form.handler = &runBinary;
    form.operands = 2;
    form.detail[0] = reinterpret_cast<int64_t>(found->second);
    return form;
  }
  if (opcode == "fma.rn.f32") {
    form.handler = [](Thread &, const Instruction &, const uint64_t *operands,
                      uint64_t *results) {
      results[0] = asBits(std::fma(asFloat(operands[0]), asFloat(operands[1]),
                                   asFloat(operands[2])));
    };
    form.operands = 3;
    return form;
  }
  if (opcode == "prmt.b32") {
    form.handler = &permute;
    form.operands = 3;
    return form;
  }
  return {};
}

SetConditional setConditional = nullptr;

/// cudaGraphSetConditional(handle, value), a function of libcudadevrt.
static void runSetConditional(Thread &thread, const Instruction &instruction,
                              const uint64_t *operands, uint64_t *) {
  std::string mistake =
      setConditional
          ? setConditional(operands[0], static_cast<uint32_t>(operands[1]),
                           uint64_t(thread.block->index) << 32 | thread.index)
          : "there are no graphs";
  if (!mistake.empty())
    thread.block->fail(thread, Fault::Invalid, instruction.place, mistake);
}

Form findScalarInstruction(const std::string &opcode) {
  if (opcode == "cudaGraphSetConditional") {
    Form form;
    form.handler = &runSetConditional;
    form.operands = 2;
    return form;
  }
  Form form = findConversion(opcode);
  return form.handler ? form : findArithmetic(opcode);
}

Form findInstruction(const std::string &opcode) {
  for (auto find :
       {&findWarpInstruction, &findBulkInstruction, &findMatrixInstruction,
        &findWgmmaInstruction, &findScalarInstruction})
    if (Form form = find(opcode); form.handler)
      return form;
  return {};
}

} // namespace fp8::emulator
