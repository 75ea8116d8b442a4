//===- WgmmaTest.cpp - wgmma: matrices, fragments, order ------------------===//

#include "Formats.h"
#include "KernelTest.h"

#include <random>

using namespace fp8::emulator;

namespace {
/// A product of one warpgroup, D = A * B over `steps` wgmmas, whose operands
/// are in shared memory in the layout of `span` and `isTransposed`.
struct Product {
  Format a = Format::E4M3, b = Format::E4M3;
  unsigned n = 16;
  unsigned span = 128;
  bool isTransposed = false;
  bool hasRegistersOfA = false;
  int scaleA = 1;

  unsigned bytes() const { return bitsOf(a) / 8; }
  unsigned steps() const { return isTransposed ? 1 : span ? span / 32 : 2; }
  unsigned k() const { return steps() * 32 / bytes(); }
  unsigned size(unsigned rows) const { return rows * k() * bytes(); }

  // The layout of elements and the fields of a descriptor, written
  // independently of Descriptor.h.
  unsigned placeOf(unsigned rows, unsigned row, unsigned i) const {
    unsigned byte = i * bytes();
    if (isTransposed && span) // 64 neighbours of 16 bits, 8 along k
      return row / 64 * 2048 + i / 8 * 1024 + i % 8 * 128 +
             ((row % 64 / 8) ^ (i % 8)) * 16 + row % 8 * 2;
    if (isTransposed)
      return row / 8 * 256 + i / 8 * 128 + i % 8 * 16 + row % 8 * 2;
    if (span == 0)
      return byte / 16 * rows * 16 + row * 16 + byte % 16;
    unsigned line = row * span / 128 % (span / 16);
    return row * span + ((byte / 16) ^ line) * 16 + byte % 16;
  }
  uint64_t descriptor(unsigned rows) const {
    uint64_t leading = 16, stride = uint64_t(8) * span;
    if (isTransposed)
      leading = span ? 2048 : 128, stride = span ? 1024 : 256;
    else if (span == 0)
      leading = uint64_t(16) * rows, stride = 128;
    uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    return leading / 16 << 16 | stride / 16 << 32 | mode << 62;
  }
  unsigned stepBytes(unsigned rows) const { return span ? 32 : rows * 32; }
};
} // namespace

static std::string text(uint64_t value) { return std::to_string(value); }

/// Copies a tile from global memory, 16 bytes at a time.
static std::string copyTile(const std::string &name, unsigned bytes) {
  std::string code;
  for (unsigned first = 0; first < bytes; first += 2048) {
    std::string id = name + text(first);
    code +=
        "  %at." + id + " = add i32 %t16, " + text(first) + "\n  %isIn." + id +
        " = icmp ult i32 %at." + id + ", " + text(bytes) + "\n  br i1 %isIn." +
        id + ", label %copy." + id + ", label %copied." + id + "\ncopy." + id +
        ":\n  %from." + id + " = getelementptr i8, ptr %" + name +
        ", i32 %at." + id + "\n  %v." + id + " = load <4 x i32>, ptr %from." +
        id + ", align 16\n  %to." + id +
        " = getelementptr i8, ptr addrspace(3) @" + name + ", i32 %at." + id +
        "\n  store <4 x i32> %v." + id + ", ptr addrspace(3) %to." + id +
        ", align 16\n  br label %copied." + id + "\ncopied." + id + ":\n";
  }
  return code;
}

static std::string repeat(unsigned count, const std::string &item) {
  std::string list;
  for (unsigned i = 0; i < count; ++i)
    list += (i ? ", " : "") + item;
  return list;
}

/// Returns the call of step `step`, in the form of MLIR's NVVM dialect.
static std::string multiplyStep(const Product &product, unsigned step) {
  unsigned sums = product.n / 2, next = 2 * sums;
  std::string struct_ = "{" + repeat(sums, "float") + "}";
  std::string places, outputs, ties, arguments, code;
  for (unsigned i = 0; i < sums; ++i) {
    places += (i ? ", $" : "$") + text(i);
    outputs += "=f,";
    ties += text(i) + ",";
    std::string value = "0.0";
    if (step) {
      value = "%s" + text(step - 1) + "." + text(i);
      code += "  " + value + " = extractvalue " + struct_ + " %d" +
              text(step - 1) + ", " + text(i) + "\n";
    }
    arguments += "float " + value + ", ";
  }
  std::string a = "$" + text(next++), constraints = "l,";
  if (product.hasRegistersOfA) {
    a = "{" + a;
    for (unsigned i = 1; i < 4; ++i)
      a += ", $" + text(next++);
    a += "}";
    constraints = "r,r,r,r,";
    for (unsigned i = 0; i < 4; ++i)
      arguments += "i32 %a" + text(step) + "." + text(i) + ", ";
  } else {
    code += "  %da" + text(step) + " = add i64 %da, " +
            text(step * product.stepBytes(64) / 16) + "\n";
    arguments += "i64 %da" + text(step) + ", ";
  }
  code += "  %db" + text(step) + " = add i64 %db, " +
          text(step * product.stepBytes(product.n) / 16) + "\n";
  std::string b = "$" + text(next++), keeps = "$" + text(next++);
  constraints += "l,n";
  // Scales are operands, as in MLIR, or immediates.
  std::string flags = "p, -1, 1", scales;
  if (product.scaleA > 0) {
    flags = "p, $" + text(next) + ",  $" + text(next + 1);
    constraints += ",n,n";
    scales = ", i32 1, i32 1";
  }
  std::string isTransposed = product.isTransposed ? ", 1" : ", 0";
  if (product.bytes() == 2)
    flags +=
        product.hasRegistersOfA ? isTransposed : isTransposed + isTransposed;
  return code + "  %d" + text(step) + " = call " + struct_ +
         " asm sideeffect \"{\\0A.reg .pred p;\\0Asetp.ne.b32 p, " + keeps +
         ", 0;\\0Awgmma.mma_async.sync.aligned.m64n" + text(product.n) + "k" +
         text(32 / product.bytes()) + ".f32." + nameOfFormat(product.a) + "." +
         nameOfFormat(product.b) + " {" + places + "}, " + a + ", " + b + ", " +
         flags + ";\\0A}\\0A\", \"" + outputs + ties + constraints + "\"(" +
         arguments + "i64 %db" + text(step) + ", i32 " + text(step != 0) +
         scales +
         ")\n  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n";
}

static std::string loadRegistersOfA(const Product &product) {
  std::string code;
  for (unsigned step = 0; step < product.steps(); ++step)
    for (unsigned i = 0; i < 4; ++i) {
      std::string id = text(step) + "." + text(i);
      unsigned offset = (i & 1) * 8 * product.k() * product.bytes() +
                        (i >> 1) * 16 + step * 32;
      code += "  %pa" + id + " = getelementptr i8, ptr %pa, i32 " +
              text(offset) + "\n  %a" + id + " = load i32, ptr %pa" + id +
              ", align 4\n";
    }
  return code;
}

static std::string kernelOf(const Product &product) {
  unsigned aBytes = product.size(64), bBytes = product.size(product.n);
  auto descriptor = [&](const std::string &name, unsigned rows) {
    return "  %address." + name + " = ptrtoint ptr addrspace(3) @" + name +
           " to i64\n  %low." + name + " = and i64 %address." + name +
           ", 262143\n  %start." + name + " = lshr i64 %low." + name +
           ", 4\n  %d" + name + " = or i64 %start." + name + ", " +
           text(product.descriptor(rows)) + "\n";
  };
  std::string code = header + "@a = internal addrspace(3) global [" +
                     text(aBytes) +
                     " x i8] undef, align 1024\n@b = internal addrspace(3) "
                     "global [" +
                     text(bBytes) + R"( x i8] undef, align 1024
declare void @llvm.nvvm.fence.proxy.async.shared_cta()
declare void @llvm.nvvm.wgmma.fence.sync.aligned()
declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()
declare void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64)
define ptx_kernel void @k(ptr %a, ptr %b, ptr %c) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t16 = mul i32 %t, 16
  %warp = lshr i32 %t, 5
  %lane = and i32 %t, 31
  %group = lshr i32 %lane, 2
  %inGroup = and i32 %lane, 3
  %warpRow = mul i32 %warp, 16
  %row = add i32 %warpRow, %group
)";
  if (product.hasRegistersOfA)
    code += "  %rowAt = mul i32 %row, " + text(product.k() * product.bytes()) +
            "\n  %word = mul i32 %inGroup, 4\n  %at = add i32 %rowAt, %word\n"
            "  %pa = getelementptr i8, ptr %a, i32 %at\n" +
            loadRegistersOfA(product);
  else
    code += copyTile("a", aBytes);
  code += copyTile("b", bBytes) + descriptor("a", 64) +
          descriptor("b", product.n) + R"(
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %isInGroup = icmp ult i32 %t, 128
  br i1 %isInGroup, label %multiply, label %done
multiply:
  call void @llvm.nvvm.wgmma.fence.sync.aligned()
)";
  for (unsigned step = 0; step < product.steps(); ++step)
    code += multiplyStep(product, step);
  code += R"(
  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)
  %outRow = mul i32 %row, )" +
          text(product.n) + R"(
  %outColumn = mul i32 %inGroup, 2
  %out = add i32 %outRow, %outColumn
  %pc = getelementptr float, ptr %c, i32 %out
)";
  std::string last = text(product.steps() - 1);
  for (unsigned i = 0; i < product.n / 2; ++i)
    code += "  %r" + text(i) + " = extractvalue {" +
            repeat(product.n / 2, "float") + "} %d" + last + ", " + text(i) +
            "\n  %pc" + text(i) + " = getelementptr float, ptr %pc, i32 " +
            text((i / 2 & 1) * 8 * product.n + i / 4 * 8 + (i & 1)) +
            "\n  store float %r" + text(i) + ", ptr %pc" + text(i) +
            ", align 4\n";
  return code + "  br label %done\ndone:\n  ret void\n}\n";
}

namespace {
struct Wgmma : testing::Test {
  /// Fills operands with elements whose products and sums are exact in f32 in
  /// any order.
  std::vector<uint8_t> fill(unsigned rows, Format format, bool isInRegisters,
                            std::vector<double> &values) {
    std::vector<uint8_t> tile(product.size(rows));
    values.resize(static_cast<size_t>(rows) * product.k());
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned i = 0; i < product.k(); ++i) {
        double value = static_cast<int>(random() % 17) - 8;
        values[row * product.k() + i] = value;
        uint32_t bits = encode(format, value, true);
        unsigned at = isInRegisters ? (row * product.k() + i) * product.bytes()
                                    : product.placeOf(rows, row, i);
        std::memcpy(&tile.at(at), &bits, product.bytes());
      }
    return tile;
  }
  Result launch(const std::string &code, unsigned threads = 128,
                Schedule schedule = {}) {
    Device device;
    std::vector<double> a, b;
    device.upload(fill(64, product.a, product.hasRegistersOfA, a));
    device.upload(fill(product.n, product.b, false, b));
    expected.assign(static_cast<size_t>(64) * product.n, 0);
    for (unsigned row = 0; row < 64; ++row)
      for (unsigned column = 0; column < product.n; ++column)
        for (unsigned i = 0; i < product.k(); ++i)
          expected[row * product.n + column] +=
              static_cast<float>(product.scaleA * a[row * product.k() + i] *
                                 b[column * product.k() + i]);
    uint64_t c = device.allocate<float>(expected.size());
    Result run = device.launch(code, 1, threads, schedule);
    result = device.download<float>(c, expected.size());
    return run;
  }
  void multiplies(const Product &tried) {
    product = tried;
    Result run = launch(kernelOf(product));
    ASSERT_TRUE(run) << run.message;
    EXPECT_EQ(result, expected)
        << nameOfFormat(product.a) << " " << nameOfFormat(product.b) << " n "
        << product.n << " span " << product.span;
  }
  /// Returns the fault of a mutation, which must be the same in all schedules.
  Fault faultOf(const std::string &from, const std::string &to,
                unsigned threads = 128) {
    std::string code = mutate(kernelOf(product), from, to);
    Fault fault = launch(code, threads).fault;
    for (Schedule schedule : schedules()) {
      Result run = launch(code, threads, schedule);
      EXPECT_EQ(run.fault, fault) << run.message;
    }
    return fault;
  }
  /// Expects a wrong result from a mutation that violates no rule.
  void isWrong(const std::string &code) {
    Result run = launch(code);
    ASSERT_TRUE(run) << run.message;
    EXPECT_NE(result, expected);
  }
  Product product;
  std::mt19937 random{7};
  std::vector<float> expected, result;
};
} // namespace

TEST_F(Wgmma, Multiplies) {
  for (Format a : {Format::E4M3, Format::E5M2})
    for (Format b : {Format::E4M3, Format::E5M2})
      multiplies({a, b});
  for (Format format : {Format::F16, Format::BF16})
    multiplies({format, format});
  for (unsigned span : {0, 32, 64, 128})
    for (unsigned n : {8, 24})
      multiplies({Format::E4M3, Format::E5M2, n, span});
  multiplies({Format::BF16, Format::BF16, 256, 32});
}

TEST_F(Wgmma, TakesSixteenBitsThatLieAlongTheirRows) {
  for (unsigned span : {0, 128})
    multiplies({Format::BF16, Format::BF16, 128, span, true});
}

TEST_F(Wgmma, TakesAFromRegisters) {
  multiplies({Format::E4M3, Format::E4M3, 16, 128, false, true});
  multiplies({Format::BF16, Format::BF16, 16, 64, false, true});
}

TEST_F(Wgmma, NegatesAnOperand) {
  multiplies({Format::E4M3, Format::E4M3, 16, 32, false, false, -1});
}

static const std::string kFence =
    "  call void @llvm.nvvm.wgmma.fence.sync.aligned()\n";
static const std::string kCommit =
    "  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n";
static const std::string kWait =
    "  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n";

TEST_F(Wgmma, MissingFencesAreCaught) {
  EXPECT_EQ(faultOf(kFence, ""), Fault::Race);
  EXPECT_EQ(
      faultOf("  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n", ""),
      Fault::Race);
  // A wait ends what a fence has permitted.
  std::string second = "%d1 = call";
  EXPECT_EQ(faultOf(second, "call void "
                            "@llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n"
                            "  %d1 = call"),
            Fault::None);
  EXPECT_EQ(faultOf("float %s0.0, float %s0.1", "float 1.0, float %s0.1"),
            Fault::None);
  std::string code = mutate(kernelOf(product), second,
                            "call void "
                            "@llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n"
                            "  %d1 = call");
  EXPECT_EQ(
      launch(mutate(code, "float %s0.0, float %s0.1", "float 1.0, float %s0.1"))
          .fault,
      Fault::Race);
}

TEST_F(Wgmma, AWaitOffByOneIsCaught) {
  EXPECT_EQ(faultOf("wait_group.sync.aligned(i64 0)",
                    "wait_group.sync.aligned(i64 1)"),
            Fault::Pending);
  EXPECT_EQ(faultOf(kWait, ""), Fault::Pending);
  // The last wgmma is in no group.
  std::string code = kernelOf(product);
  code.erase(code.rfind(kCommit), kCommit.size());
  EXPECT_EQ(launch(code).fault, Fault::Pending);
}

TEST_F(Wgmma, OperandsAreNotWrittenBeforeAWait) {
  std::string write = "  store i32 0, ptr addrspace(3) @b, align 4\n";
  std::string barrier =
      "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
  Result run =
      launch(mutate(kernelOf(product), kWait, barrier + write + kWait));
  EXPECT_EQ(run.fault, Fault::Pending) << run.message;
  EXPECT_NE(run.message.find("which a wgmma reads"), std::string::npos);
  // Without the barrier another warp may still be reading.
  EXPECT_NE(faultOf(kWait, kWait + write), Fault::None);
}

TEST_F(Wgmma, WrongSwizzlesAreCaught) {
  std::string code = kernelOf(product);
  Product other = product;
  other.span = 64;
  isWrong(mutate(code, "or i64 %start.a, " + text(product.descriptor(64)),
                 "or i64 %start.a, " +
                     text((product.descriptor(64) & ~(uint64_t(3) << 62)) |
                          uint64_t(2) << 62)));
  // The stride of a different swizzle.
  isWrong(mutate(code, "or i64 %start.a, " + text(product.descriptor(64)),
                 "or i64 %start.a, " +
                     text((other.descriptor(64) & ~(uint64_t(3) << 62)) |
                          uint64_t(1) << 62)));
  // A step along k of too many bytes.
  isWrong(mutate(code, "%db1 = add i64 %db, 2", "%db1 = add i64 %db, 4"));
}

TEST_F(Wgmma, SwappedFragmentsAreCaught) {
  isWrong(mutate(kernelOf(product), "float} %d3, 2", "float} %d3, 1"));
  product.hasRegistersOfA = true;
  isWrong(mutate(kernelOf(product), "i32 %a0.1, i32 %a0.2",
                 "i32 %a0.2, i32 %a0.1"));
}

TEST_F(Wgmma, DescriptorsFollowTheirRules) {
  auto withBits = [&](uint64_t bits) {
    return launch(mutate(
        kernelOf(product), "or i64 %start.a, " + text(product.descriptor(64)),
        "or i64 %start.a, " + text(product.descriptor(64) | bits)));
  };
  EXPECT_NE(withBits(1 << 14).message.find("reserved bits"), std::string::npos);
  EXPECT_NE(withBits(uint64_t(1) << 49).message.find("base offset of 0"),
            std::string::npos);
  EXPECT_NE(withBits(8).message.find("first line of its swizzle"),
            std::string::npos);
  // Beyond shared memory.
  EXPECT_EQ(withBits(0x2000).fault, Fault::OutOfBounds);
}

TEST_F(Wgmma, NeedsAWholeWarpgroup) {
  EXPECT_EQ(faultOf("icmp ult i32 %t, 128", "icmp ult i32 %t, 96"),
            Fault::Divergence);
  EXPECT_EQ(faultOf("%start.a = lshr i64 %low.a, 4",
                    "%isLast = icmp uge i32 %t, 96\n"
                    "  %wrong = select i1 %isLast, i64 64, i64 0\n"
                    "  %right = lshr i64 %low.a, 4\n"
                    "  %start.a = add i64 %right, %wrong"),
            Fault::Divergence);
}
