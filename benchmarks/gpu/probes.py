"""Probes are small kernels whose results show how tensor cores lay out fragments, how
they add, and how conversions round. make-bundle runs them in the emulator and
benchmarks/gpu/run on a card, and the results are compared.

A probe reads `in` and writes `out`; each thread has its own part of both.
"""

import random
import struct

# name: intrinsic, type of a word of an operand, bits of an element, formats of the two operands
MMA = {
    **{f"{a}-{b}": (f"m16n8k32.row.col.f32.{a}.{b}.f32", "i32", 8, (a, b)) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")},
    "bf16": ("m16n8k16.row.col.bf16", "i32", 16, ("bf16", "bf16")),
    "f16": ("m16n8k16.row.col.f32.f32", "vector<2xf16>", 16, ("f16", "f16")),
}
MANTISSA_AND_BIAS = {"e4m3": (3, 7), "e5m2": (2, 15), "f16": (10, 15), "bf16": (7, 127)}
TILES, THREADS = 16, 32
CASTS = {"to-e4m3": "llvm.nvvm.ff.to.e4m3x2.rn", "to-e5m2": "llvm.nvvm.ff.to.e5m2x2.rn"}
DECODES = {"from-e4m3": "llvm.nvvm.e4m3x2.to.f16x2.rn", "from-e5m2": "llvm.nvvm.e5m2x2.to.f16x2.rn"}

HEAD = """
  gpu.module @{symbol} {{
    llvm.func @{symbol}(%in: !llvm.ptr {{llvm.dereferenceable = {inputs} : i64}}, %out: !llvm.ptr {{llvm.dereferenceable = {outputs} : i64}})
        attributes {{gpu.kernel, nvvm.kernel}} {{
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %b = nvvm.read.ptx.sreg.ctaid.x : i32
      %n = nvvm.read.ptx.sreg.ntid.x : i32
      %first = llvm.mul %b, %n : i32
      %i = llvm.add %first, %t : i32
"""
TAIL = """      llvm.return
    }
  }
"""


def element(value, form):
    """Returns the code of `value`, which has few bits, in a format."""
    mantissa, bias = MANTISSA_AND_BIAS[form]
    bits = (8 if form.startswith("e") else 16) - 1
    sign, value = (1 << bits, -value) if value < 0 else (0, value)
    if value == 0:
        return sign
    exponent = 0
    while value >= 2:
        value, exponent = value / 2, exponent + 1
    while value < 1:
        value, exponent = value * 2, exponent - 1
    return sign | (exponent + bias) << mantissa | int((value - 1) * (1 << mantissa))


def mma_text(symbol, intrinsic, word, inputs, outputs):
    lines = [HEAD.format(symbol=symbol, inputs=inputs, outputs=outputs), "      %ten = llvm.mlir.constant(10 : i32) : i32\n",
             "      %at = llvm.mul %i, %ten : i32\n", "      %p = llvm.getelementptr %in[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32\n"]  # fmt: skip
    types = [word] * 6 + ["f32"] * 4
    for k, kind in enumerate(types):
        lines.append(f"      %p{k} = llvm.getelementptr %p[{k}] : (!llvm.ptr) -> !llvm.ptr, i32\n      %v{k} = llvm.load %p{k} : !llvm.ptr -> {kind}\n")
    values = ", ".join(f"%v{k}" for k in range(10))
    result = "!llvm.struct<(f32, f32, f32, f32)>"
    lines.append(f'      %d = llvm.call_intrinsic "llvm.nvvm.mma.{intrinsic}"({values}) : ({", ".join(types)}) -> {result}\n')
    lines.append("      %four = llvm.mlir.constant(4 : i32) : i32\n      %to = llvm.mul %i, %four : i32\n")
    lines.append("      %q = llvm.getelementptr %out[%to] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n")
    for k in range(4):
        lines.append(f"      %d{k} = llvm.extractvalue %d[{k}] : {result}\n      %q{k} = llvm.getelementptr %q[{k}] : (!llvm.ptr) -> !llvm.ptr, f32\n")
        lines.append(f"      llvm.store %d{k}, %q{k} : f32, !llvm.ptr\n")
    return "".join(lines) + TAIL


def cast_text(symbol, intrinsic, inputs, outputs):
    return HEAD.format(symbol=symbol, inputs=inputs, outputs=outputs) + f"""      %two = llvm.mlir.constant(2 : i32) : i32
      %at = llvm.mul %i, %two : i32
      %p = llvm.getelementptr %in[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, f32
      %x = llvm.load %p : !llvm.ptr -> f32
      %y = llvm.load %q : !llvm.ptr -> f32
      %r = llvm.call_intrinsic "{intrinsic}"(%y, %x) : (f32, f32) -> i16
      %o = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i16
      llvm.store %r, %o : i16, !llvm.ptr
""" + TAIL  # fmt: skip


def decode_text(symbol, intrinsic, inputs, outputs):
    return HEAD.format(symbol=symbol, inputs=inputs, outputs=outputs) + f"""      %p = llvm.getelementptr %in[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i16
      %x = llvm.load %p : !llvm.ptr -> i16
      %r = llvm.call_intrinsic "{intrinsic}"(%x) : (i16) -> vector<2xf16>
      %o = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, vector<2xf16>
      llvm.store %r, %o : vector<2xf16>, !llvm.ptr
""" + TAIL  # fmt: skip


def fragments(bits, forms, draw, sums):
    """Returns the registers of all threads: six words of operands and four sums each."""
    data = bytearray()
    for _ in range(TILES * THREADS):
        for word in range(6):
            codes = [element(draw(), forms[word >= 4]) for _ in range(32 // bits)]
            data += sum(code << (bits * i) for i, code in enumerate(codes)).to_bytes(4, "little")
        data += struct.pack("<4f", *(sums() for _ in range(4)))
    return bytes(data)


def floats(draw):
    """Returns bits of f32 that are hard to round to few bits, and random ones."""
    values = [0.0, -0.0, 448.0, 464.0, 465.0, 480.0, 57344.0, 61440.0, 65536.0, 2.0**-9, 2.0**-10, 1.5 * 2**-10, 2.0**-16, 2.0**-17, 1e-45, 3e38]
    patterns = [struct.unpack("<I", struct.pack("<f", sign * value))[0] for value in values for sign in (1, -1)]
    patterns += [0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF]
    for exponent in range(103, 145):  # midpoints between codes, and their neighbours
        patterns += [exponent << 23 | step << 19 | low for step in range(16) for low in (0, 1, 0x7FFFF)]
    patterns += [draw.getrandbits(32) for _ in range(4096 - len(patterns))]
    return struct.pack(f"<{len(patterns)}I", *patterns)


def absolute(data, bits):
    """Returns all operands and sums without their signs."""
    mask = {8: 0x7F7F7F7F, 16: 0x7FFF7FFF}[bits]
    words = struct.unpack(f"<{len(data) // 4}I", data)
    return struct.pack(f"<{len(words)}I", *(w & (mask if i % 10 < 6 else 0x7FFFFFFF) for i, w in enumerate(words)))


def make():
    """Returns the text of the module of all probes, and the probes with their inputs."""
    draw, text, probes = random.Random(8), [], []

    def add(name, image, kind, data, outputs, blocks, threads, **more):
        probes.append({"name": name, "image": image, "type": kind, "out_bytes": outputs, "blocks": blocks, "threads": threads, **more} | {"in": data})

    for name, (intrinsic, word, bits, forms) in MMA.items():
        symbol = "mma_" + name.replace("-", "_")
        # Small whole numbers: every order of addition is exact, so that only the layout matters.
        exact = fragments(bits, forms, lambda: draw.randrange(-7, 8), lambda: float(draw.randrange(-99, 100)))
        wide = fragments(bits, forms, lambda: draw.choice((-1, 1)) * draw.choice((1, 1.25, 1.5)) * 2.0 ** draw.randrange(-5, 5), lambda: draw.gauss(0, 64))
        outputs = TILES * THREADS * 16
        text.append(mma_text(symbol, intrinsic, word, len(exact), outputs))
        add(f"fragments-{name}", symbol, "f32", exact, outputs, TILES, THREADS)
        # The sums of the products' magnitudes, which are the unit of the error of a sum.
        add(f"sizes-{name}", symbol, "f32", absolute(wide, bits), outputs, TILES, THREADS, emulator_alone=True)
        add(f"sums-{name}", symbol, "f32", wide, outputs, TILES, THREADS, sizes=f"sizes-{name}")
    for name, intrinsic in CASTS.items():
        symbol, data = name.replace("-", "_"), floats(draw)
        text.append(cast_text(symbol, intrinsic, len(data), len(data) // 4))
        add(name, symbol, "f8E4M3FN" if "e4m3" in name else "f8E5M2", data, len(data) // 4, len(data) // 8 // 128, 128)
    for name, intrinsic in DECODES.items():
        symbol, data = name.replace("-", "_"), bytes(code for low in range(256) for code in (low, 255 - low))
        text.append(decode_text(symbol, intrinsic, len(data), 2 * len(data)))
        add(name, symbol, "f16", data, 2 * len(data), 2, 128)
    return "module attributes {gpu.container_module} {" + "".join(text) + "}\n", probes
