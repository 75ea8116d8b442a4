//===- MatrixTest.cpp - mma, ldmatrix and conversions ---------------------===//

#include "Formats.h"
#include "KernelTest.h"

#include <random>

using namespace fp8::emulator;

/// A warp multiplies A, 16 rows of 32 bytes, and B, 8 columns of 32 bytes: A
/// goes through shared memory and ldmatrix, B's fragments are read directly.
static std::string matrixKernel(const std::string &multiply) {
  return header + R"(
@tile = internal addrspace(3) global [512 x i8] undef, align 16
declare {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3))
define ptx_kernel void @k(ptr %a, ptr %b, ptr %c) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %row = and i32 %t, 15
  %part = lshr i32 %t, 4
  %rowAt = mul i32 %row, 32
  %partAt = mul i32 %part, 16
  %at = add i32 %rowAt, %partAt
  %from = getelementptr i8, ptr %a, i32 %at
  %v = load <4 x i32>, ptr %from, align 16
  %slot = getelementptr i8, ptr addrspace(3) @tile, i32 %at
  store <4 x i32> %v, ptr addrspace(3) %slot, align 16
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %f = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %slot)
  %a0 = extractvalue {i32, i32, i32, i32} %f, 0
  %a1 = extractvalue {i32, i32, i32, i32} %f, 1
  %a2 = extractvalue {i32, i32, i32, i32} %f, 2
  %a3 = extractvalue {i32, i32, i32, i32} %f, 3
  %group = lshr i32 %t, 2
  %inGroup = and i32 %t, 3
  %column = mul i32 %group, 32
  %k = mul i32 %inGroup, 4
  %b0At = add i32 %column, %k
  %b1At = add i32 %b0At, 16
  %pb0 = getelementptr i8, ptr %b, i32 %b0At
  %pb1 = getelementptr i8, ptr %b, i32 %b1At
  %b0 = load i32, ptr %pb0, align 4
  %b1 = load i32, ptr %pb1, align 4
)" + multiply +
         R"(
  %d0 = extractvalue {float, float, float, float} %d, 0
  %d1 = extractvalue {float, float, float, float} %d, 1
  %d2 = extractvalue {float, float, float, float} %d, 2
  %d3 = extractvalue {float, float, float, float} %d, 3
  %outRow = mul i32 %group, 8
  %outColumn = mul i32 %inGroup, 2
  %out = add i32 %outRow, %outColumn
  %p0 = getelementptr float, ptr %c, i32 %out
  %p2 = getelementptr float, ptr %p0, i32 64
  %l0 = insertelement <2 x float> poison, float %d0, i32 0
  %l1 = insertelement <2 x float> %l0, float %d1, i32 1
  store <2 x float> %l1, ptr %p0, align 8
  %h0 = insertelement <2 x float> poison, float %d2, i32 0
  %h1 = insertelement <2 x float> %h0, float %d3, i32 1
  store <2 x float> %h1, ptr %p2, align 8
  ret void
}
)";
}

static std::string intrinsic(const std::string &a, const std::string &b) {
  std::string name =
      "@llvm.nvvm.mma.m16n8k32.row.col.f32." + a + "." + b + ".f32";
  return "  %d = call {float, float, float, float} " + name +
         "(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float 0.0, "
         "float 0.0, float 0.0, float 0.0)\n";
}

static const std::string assembly = R"(
  %d = call {float, float, float, float} asm "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$0, $1, $2, $3};", "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3"(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float 0.0, float 0.0, float 0.0, float 0.0)
)";

static std::string declare(const std::string &a, const std::string &b) {
  return "declare {float, float, float, float} "
         "@llvm.nvvm.mma.m16n8k32.row.col.f32." +
         a + "." + b +
         ".f32(i32, i32, i32, i32, i32, i32, float, float, float, float)\n";
}

namespace {
struct Matrix : testing::Test {
  /// Fills operands with elements whose products and sums are exact in f32 in
  /// any order.
  void fill(Format a, Format b) {
    std::mt19937 random(11);
    as.resize(512);
    bs.resize(256);
    auto draw = [&](Format format) {
      return encode(format, static_cast<int>(random() % 17) - 8, true);
    };
    for (uint8_t &value : as)
      value = draw(a);
    for (uint8_t &value : bs)
      value = draw(b);
    expected.assign(128, 0);
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 8; ++n)
        for (int k = 0; k < 32; ++k)
          expected[m * 8 + n] +=
              decode(a, as[m * 32 + k]) * decode(b, bs[n * 32 + k]);
    device = std::make_unique<Device>();
    device->upload(as);
    device->upload(bs);
    result = device->allocate<float>(128);
  }
  std::vector<float> multiply(const std::string &text) {
    Result run = device->launch(text, 1, 32);
    EXPECT_TRUE(run) << run.message;
    return device->download<float>(result, 128);
  }
  std::unique_ptr<Device> device;
  std::vector<uint8_t> as, bs;
  std::vector<float> expected;
  uint64_t result = 0;
};
} // namespace

TEST_F(Matrix, Multiplies) {
  using Case = std::pair<const char *, Format>;
  for (auto [a, aFormat] :
       {Case{"e4m3", Format::E4M3}, Case{"e5m2", Format::E5M2}})
    for (auto [b, bFormat] :
         {Case{"e4m3", Format::E4M3}, Case{"e5m2", Format::E5M2}}) {
      fill(aFormat, bFormat);
      EXPECT_EQ(multiply(matrixKernel(intrinsic(a, b)) + declare(a, b)),
                expected)
          << a << " " << b;
    }
  fill(Format::E4M3, Format::E4M3);
  EXPECT_EQ(multiply(matrixKernel(assembly)), expected);
}

TEST_F(Matrix, SwappedFragmentsAreCaught) {
  fill(Format::E4M3, Format::E4M3);
  std::string text =
      matrixKernel(intrinsic("e4m3", "e4m3")) + declare("e4m3", "e4m3");
  EXPECT_NE(multiply(mutate(text, "i32 %a1, i32 %a2", "i32 %a2, i32 %a1")),
            expected);
  EXPECT_NE(multiply(mutate(text, "i32 %b0, i32 %b1", "i32 %b1, i32 %b0")),
            expected);
  EXPECT_NE(
      multiply(mutate(text,
                      "%d1 = extractvalue {float, float, float, float} "
                      "%d, 1",
                      "%d1 = extractvalue {float, float, float, float} %d, 2")),
      expected);
}

TEST_F(Matrix, NeedsAWholeWarp) {
  fill(Format::E4M3, Format::E4M3);
  Result run = device->launch(matrixKernel(assembly), 1, 16);
  EXPECT_EQ(run.fault, Fault::Divergence) << run.message;
}

TEST_F(Matrix, RowsAreAligned) {
  fill(Format::E4M3, Format::E4M3);
  std::string text =
      mutate(matrixKernel(assembly),
             "  %f = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix",
             "  %odd = getelementptr i8, ptr addrspace(3) %slot, i32 8\n"
             "  %f = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix");
  text = mutate(text, "x4.b16.p3(ptr addrspace(3) %slot)",
                "x4.b16.p3(ptr addrspace(3) %odd)");
  Result run = device->launch(text, 1, 32);
  EXPECT_EQ(run.fault, Fault::Misaligned) << run.message;
}

// In lines of 32 bytes, every fourth line lies in the same banks, unless four
// of the eight lines exchange their halves.
TEST_F(Matrix, ConflictsOfBanksAreCounted) {
  fill(Format::E4M3, Format::E4M3);
  std::string text = matrixKernel(assembly);
  Result run = device->launch(text, 1, 32);
  EXPECT_TRUE(run) << run.message;
  EXPECT_EQ(run.bankConflicts, 16u);
  text = mutate(
      text, "  %slot = getelementptr i8, ptr addrspace(3) @tile, i32 %at",
      "  %four = and i32 %row, 4\n"
      "  %half = shl i32 %four, 2\n"
      "  %place = xor i32 %at, %half\n"
      "  %slot = getelementptr i8, ptr addrspace(3) @tile, i32 %place");
  run = device->launch(text, 1, 32);
  EXPECT_TRUE(run) << run.message;
  EXPECT_EQ(run.bankConflicts, 0u);
  EXPECT_EQ(device->download<float>(result, 128), expected);
}

// ldmatrix.trans followed by stmatrix transposes an 8x8 matrix.
TEST(Matrices, AreTransposed) {
  std::string text = header + R"(
@tile = internal addrspace(3) global [64 x i16] undef, align 16
declare i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16.p3(ptr addrspace(3))
define ptx_kernel void @k(ptr %a, ptr %b) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %pa = getelementptr i32, ptr %a, i32 %t
  %v = load i32, ptr %pa, align 4
  %slot = getelementptr i32, ptr addrspace(3) @tile, i32 %t
  store i32 %v, ptr addrspace(3) %slot, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %line = and i32 %t, 7
  %row = getelementptr [8 x i16], ptr addrspace(3) @tile, i32 %line
  %f = call i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16.p3(ptr addrspace(3) %row)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  call void asm sideeffect "stmatrix.sync.aligned.m8n8.x1.shared.b16 [$0], {$1};", "r,r"(ptr addrspace(3) %row, i32 %f)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %w = load i32, ptr addrspace(3) %slot, align 4
  %pb = getelementptr i32, ptr %b, i32 %t
  store i32 %w, ptr %pb, align 4
  ret void
}
)";
  Device device;
  std::vector<uint16_t> a(64), expected(64);
  for (int i = 0; i < 64; ++i) {
    a[i] = static_cast<uint16_t>(100 + i);
    expected[i % 8 * 8 + i / 8] = a[i];
  }
  device.upload(a);
  uint64_t b = device.allocate<uint16_t>(64);
  Result run = device.launch(text, 1, 32);
  ASSERT_TRUE(run) << run.message;
  EXPECT_EQ(device.download<uint16_t>(b, 64), expected);
}

TEST(Conversions, PairsHaveTheFirstOperandOnTop) {
  std::string text = header + R"(
declare i16 @llvm.nvvm.ff.to.e4m3x2.rn(float, float)
declare <2 x half> @llvm.nvvm.e4m3x2.to.f16x2.rn(i16)
declare float @llvm.nvvm.ex2.approx.f32(float)
define ptx_kernel void @k(ptr %x, ptr %codes, ptr %back) {
  %x0 = load float, ptr %x, align 4
  %p1 = getelementptr float, ptr %x, i32 1
  %x1 = load float, ptr %p1, align 4
  %pair = call i16 @llvm.nvvm.ff.to.e4m3x2.rn(float %x1, float %x0)
  store i16 %pair, ptr %codes, align 2
  %halves = call <2 x half> @llvm.nvvm.e4m3x2.to.f16x2.rn(i16 %pair)
  %y = fpext <2 x half> %halves to <2 x float>
  store <2 x float> %y, ptr %back, align 8
  %e = call float @llvm.nvvm.ex2.approx.f32(float %x0)
  %b = fptrunc float %e to bfloat
  %w = fpext bfloat %b to float
  %p2 = getelementptr float, ptr %back, i32 2
  store float %w, ptr %p2, align 8
  ret void
}
)";
  Device device;
  device.upload<float>({-127.0f, 1000.0f});
  uint64_t codes = device.allocate<uint8_t>(2);
  uint64_t back = device.allocate<float>(3);
  Result run = device.launch(text, 1, 1);
  ASSERT_TRUE(run) << run.message;
  std::vector<uint8_t> expected = {
      static_cast<uint8_t>(encode(Format::E4M3, -127, true)), 0x7e};
  EXPECT_EQ(device.download<uint8_t>(codes, 2), expected);
  // 2^-127 is a subnormal bf16.
  EXPECT_EQ(device.download<float>(back, 3),
            (std::vector<float>{-128, 448, 0x1p-127f}));
}
