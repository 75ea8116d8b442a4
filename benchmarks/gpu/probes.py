"""Probes are small kernels whose results show how tensor cores lay out fragments, how
they add, and how conversions round. make-bundle runs them in the emulator and
benchmarks/gpu/run on a card, and the results are compared. Those of sm_90a also have
wgmma, whose operands lie in shared memory as a matrix descriptor says.

A probe reads `in` and writes `out`; each thread has its own part of both.
"""

import functools
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
# name: formats of the two operands, their bits, and the span of the swizzle (0: none)
WGMMA = {
    **{f"{a}-{b}": ((a, b), 8, 128) for a, b in (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"))},
    **{form: ((form, form), 16, 128) for form in ("bf16", "f16")},
    **{f"e4m3-e4m3-{span}": (("e4m3", "e4m3"), 8, span) for span in (0, 32, 64)},
}
# Rows of the operands of wgmma, threads of a warpgroup, and the blocks of a probe.
ROWS, COLUMNS, WARPGROUP, GROUPS = 64, 16, 128, 2
# The numbers of stages, of 32 bytes along k for mma.sync and 128 for wgmma, of the sums whose bits are measured.
STAGES = (1, 4, 16, 64)
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


@functools.cache
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


def mma_text(symbol, intrinsic, word, inputs, outputs, stages=1):
    """Each warp multiplies its stages one after another: a thread has six words of each, and then four sums to begin with."""
    types, result = [word] * 6 * stages + ["f32"] * 4, "!llvm.struct<(f32, f32, f32, f32)>"
    lines = [HEAD.format(symbol=symbol, inputs=inputs, outputs=outputs), f"      %each = llvm.mlir.constant({len(types)} : i32) : i32\n",
             "      %at = llvm.mul %i, %each : i32\n", "      %p = llvm.getelementptr %in[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32\n"]  # fmt: skip
    for k, kind in enumerate(types):
        lines.append(f"      %p{k} = llvm.getelementptr %p[{k}] : (!llvm.ptr) -> !llvm.ptr, i32\n      %v{k} = llvm.load %p{k} : !llvm.ptr -> {kind}\n")
    sums = [f"%v{k}" for k in range(6 * stages, len(types))]
    for stage in range(stages):
        values = ", ".join([f"%v{k}" for k in range(6 * stage, 6 * stage + 6)] + sums)
        lines.append(f'      %d{stage} = llvm.call_intrinsic "llvm.nvvm.mma.{intrinsic}"({values}) : ({", ".join([word] * 6 + ["f32"] * 4)}) -> {result}\n')
        sums = [f"%s{stage}_{k}" for k in range(4)]
        lines += [f"      {value} = llvm.extractvalue %d{stage}[{k}] : {result}\n" for k, value in enumerate(sums)]
    lines.append("      %four = llvm.mlir.constant(4 : i32) : i32\n      %to = llvm.mul %i, %four : i32\n")
    lines.append("      %q = llvm.getelementptr %out[%to] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n")
    for k, value in enumerate(sums):
        lines.append(f"      %q{k} = llvm.getelementptr %q[{k}] : (!llvm.ptr) -> !llvm.ptr, f32\n      llvm.store {value}, %q{k} : f32, !llvm.ptr\n")
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


def width_of(span):
    """Returns the bytes along k of a stage."""
    return span or 64


def stage_bytes(span):
    """Returns the bytes of a stage of both operands, as whole copies of 16 bytes by all threads."""
    return -(-(ROWS + COLUMNS) * width_of(span) // (16 * WARPGROUP)) * 16 * WARPGROUP


def place_of(rows, row, byte, span):
    """Returns where a byte of a row lies in the shared memory of an operand."""
    if not span:
        return byte // 16 * rows * 16 + row * 16 + byte % 16
    line = row * span // 128 % (span // 16)
    return row * span + ((byte // 16) ^ line) * 16 + byte % 16


def descriptor_of(rows, span):
    """Returns the matrix descriptor of an operand without its address."""
    leading, stride = (16, 8 * span) if span else (16 * rows, 128)
    return leading // 16 << 16 | stride // 16 << 32 | {0: 0, 128: 1, 64: 2, 32: 3}[span] << 62


def wgmma_text(symbol, forms, bits, span, stages, inputs, outputs):
    """Each block multiplies its stages one after another; each thread stores its sums."""
    each, width, size = COLUMNS // 2, width_of(span), stage_bytes(span)
    struct_type = f"!llvm.struct<({', '.join(['f32'] * each)})>"
    constants = {"one": 1, "stages": stages, "size": size, "piece": 16, "each": each}
    lines = [f"      %c_{name} = llvm.mlir.constant({value} : i32) : i32" for name, value in constants.items()]
    lines += ["      %zero = llvm.mlir.constant(0 : i32) : i32", "      %f0 = llvm.mlir.constant(0.0 : f32) : f32",
              "      %window = llvm.mlir.constant(262143 : i64) : i64", "      %four = llvm.mlir.constant(4 : i64) : i64",
              f"      %memory = llvm.mlir.addressof @{symbol}_memory : !llvm.ptr<3>", f"      %s0 = llvm.mlir.undef : {struct_type}"]  # fmt: skip
    lines += [f"      %s{i + 1} = llvm.insertvalue %f0, %s{i}[{i}] : {struct_type}" for i in range(each)]
    for name, offset, rows in (("a", 0, ROWS), ("b", ROWS * width, COLUMNS)):
        layout = descriptor_of(rows, span)
        lines += [f"      %p{name} = llvm.getelementptr %memory[{offset}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8",
                  f"      %i{name} = llvm.ptrtoint %p{name} : !llvm.ptr<3> to i64", f"      %w{name} = llvm.and %i{name}, %window : i64",
                  f"      %h{name} = llvm.lshr %w{name}, %four : i64",
                  f"      %l{name} = llvm.mlir.constant({layout - (layout >> 63 << 64)} : i64) : i64",
                  f"      %d{name} = llvm.or %h{name}, %l{name} : i64"]  # fmt: skip
    lines += ["      %own = llvm.mul %b, %c_stages : i32", "      %lane = llvm.mul %t, %c_piece : i32",
              f"      llvm.br ^loop(%zero, %s{each} : i32, {struct_type})", f"    ^loop(%stage: i32, %sums0: {struct_type}):",
              "      %number = llvm.add %own, %stage : i32", "      %begin = llvm.mul %number, %c_size : i32",
              "      %from = llvm.add %begin, %lane : i32"]  # fmt: skip
    for at in range(0, size, 16 * WARPGROUP):
        lines += [f"      %o{at} = llvm.mlir.constant({at} : i32) : i32", f"      %from{at} = llvm.add %from, %o{at} : i32",
                  f"      %to{at} = llvm.add %lane, %o{at} : i32", f"      %source{at} = llvm.getelementptr %in[%from{at}] : (!llvm.ptr, i32) -> !llvm.ptr, i8",
                  f"      %target{at} = llvm.getelementptr %memory[%to{at}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8",
                  f"      %v{at} = llvm.load %source{at} {{alignment = 16 : i64}} : !llvm.ptr -> vector<4xi32>",
                  f"      llvm.store %v{at}, %target{at} {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<3>"]  # fmt: skip
    lines += ["      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}", "      nvvm.barrier0",
              "      nvvm.wgmma.fence.aligned"]  # fmt: skip
    for step in range(width // 32):
        for name, rows in (("a", ROWS), ("b", COLUMNS)):
            lines += [f"      %x{name}{step} = llvm.mlir.constant({step * (32 if span else 32 * rows) // 16} : i64) : i64",
                      f"      %d{name}{step} = llvm.add %d{name}, %x{name}{step} : i64"]  # fmt: skip
        lines.append(f"      %sums{step + 1} = nvvm.wgmma.mma_async %da{step}, %db{step}, %sums{step}, #nvvm.shape<m = 64, n = {COLUMNS}, k = {256 // bits}>, "
                     f"D [<f32>, #nvvm.wgmma_scale_out<one>], A [<{forms[0]}>, #nvvm.wgmma_scale_in<one>, <row>], "
                     f"B [<{forms[1]}>, #nvvm.wgmma_scale_in<one>, <col>] : {struct_type} -> {struct_type}")  # fmt: skip
    last = f"%sums{width // 32}"
    lines += ["      nvvm.wgmma.commit.group.sync.aligned", "      nvvm.wgmma.wait.group.sync.aligned 0", "      nvvm.barrier0",
              "      %next = llvm.add %stage, %c_one : i32", '      %more = llvm.icmp "ult" %next, %c_stages : i32',
              f"      llvm.cond_br %more, ^loop(%next, {last} : i32, {struct_type}), ^end", "    ^end:", "      %place = llvm.mul %i, %c_each : i32",
              "      %q = llvm.getelementptr %out[%place] : (!llvm.ptr, i32) -> !llvm.ptr, f32"]  # fmt: skip
    for i in range(each):
        lines += [f"      %r{i} = llvm.extractvalue {last}[{i}] : {struct_type}", f"      %q{i} = llvm.getelementptr %q[{i}] : (!llvm.ptr) -> !llvm.ptr, f32",
                  f"      llvm.store %r{i}, %q{i} : f32, !llvm.ptr"]  # fmt: skip
    memory = f"    llvm.mlir.global internal @{symbol}_memory() {{addr_space = 3 : i32, alignment = 1024 : i64}} : !llvm.array<{size} x i8>\n"
    head = HEAD.format(symbol=symbol, inputs=inputs, outputs=outputs).replace("{\n", "{\n" + memory, 1)
    return head + "\n".join(lines) + "\n" + TAIL


def stages_of(forms, bits, span, count, draw):
    """Returns stages of two operands in the layout of shared memory."""
    data, width, each = bytearray(), width_of(span), bits // 8
    for _ in range(count):
        stage = bytearray(stage_bytes(span))
        for form, offset, rows in ((forms[0], 0, ROWS), (forms[1], ROWS * width, COLUMNS)):
            for row in range(rows):
                for byte in range(0, width, each):
                    at = offset + place_of(rows, row, byte, span)
                    stage[at : at + each] = element(draw(), form).to_bytes(each, "little")
        data += stage
    return bytes(data)


def fragments(bits, forms, draw, sums, tiles=TILES, stages=1):
    """Returns the registers of all threads: six words of operands for each stage, and four sums."""
    data = bytearray()
    for _ in range(tiles * THREADS):
        for word in range(6 * stages):
            codes = [element(draw(), forms[word % 6 >= 4]) for _ in range(32 // bits)]
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


def unsigned(data, bits):
    """Returns operands without their signs."""
    return bytes(byte if bits == 16 and at % 2 == 0 else byte & 0x7F for at, byte in enumerate(data))


def make(chip):
    """Returns the text of the module of all probes of a GPU, and the probes with their inputs."""
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
    for name, (forms, bits, span) in WGMMA.items() if chip == "sm_90a" else ():
        symbol, outputs = "wgmma_" + name.replace("-", "_"), GROUPS * WARPGROUP * COLUMNS // 2 * 4
        exact = stages_of(forms, bits, span, GROUPS, lambda: draw.randrange(-7, 8))
        wide = stages_of(forms, bits, span, GROUPS, lambda: draw.choice((-1, 1)) * draw.choice((1, 1.25, 1.5)) * 2.0 ** draw.randrange(-5, 5))
        text.append(wgmma_text(symbol, forms, bits, span, 1, len(exact), outputs))
        add(f"fragments-wgmma-{name}", symbol, "f32", exact, outputs, GROUPS, WARPGROUP, layout=[forms, bits, span])
        add(f"sizes-wgmma-{name}", symbol, "f32", unsigned(wide, bits), outputs, GROUPS, WARPGROUP, emulator_alone=True)
        add(f"sums-wgmma-{name}", symbol, "f32", wide, outputs, GROUPS, WARPGROUP, sizes=f"sizes-wgmma-{name}")
    # Sums of more and more products, of as many signs of either kind.
    def near():
        return draw.choice((-1, 1)) * draw.choice((1, 1.25, 1.5)) * 2.0 ** max(-5, min(5, round(draw.gauss(0, 1.4))))

    def add_sums(symbol, k, bits, data, outputs, blocks, threads):
        add(symbol.replace("_", "-"), symbol, "f32", data, outputs, blocks, threads, products=k, products_at_once=256 // bits, core_bits=14 if bits == 8 else 24)

    for form, name, bits in (("e4m3", "e4m3-e4m3", 8), ("bf16", "bf16", 16)):
        for stages in STAGES:
            k, (intrinsic, word, _, forms) = stages * 256 // bits, MMA[name]
            symbol, data, outputs = f"accumulate_mma_{form}_{k}", fragments(bits, forms, near, lambda: 0.0, 2, stages), 2 * THREADS * 16
            text.append(mma_text(symbol, intrinsic, word, len(data), outputs, stages))
            add_sums(symbol, k, bits, data, outputs, 2, THREADS)
        for stages in STAGES if chip == "sm_90a" else ():
            k, forms, outputs = stages * 1024 // bits, (form, form), WARPGROUP * COLUMNS // 2 * 4
            symbol, data = f"accumulate_wgmma_{form}_{k}", stages_of(forms, bits, 128, stages, near)
            text.append(wgmma_text(symbol, forms, bits, 128, stages, len(data), outputs))
            add_sums(symbol, k, bits, data, outputs, 1, WARPGROUP)
    for name, intrinsic in CASTS.items():
        symbol, data = name.replace("-", "_"), floats(draw)
        text.append(cast_text(symbol, intrinsic, len(data), len(data) // 4))
        add(name, symbol, "f8E4M3FN" if "e4m3" in name else "f8E5M2", data, len(data) // 4, len(data) // 8 // 128, 128)
    for name, intrinsic in DECODES.items():
        symbol, data = name.replace("-", "_"), bytes(code for low in range(256) for code in (low, 255 - low))
        text.append(decode_text(symbol, intrinsic, len(data), 2 * len(data)))
        add(name, symbol, "f16", data, 2 * len(data), 2, 128)
    return "module attributes {gpu.container_module} {" + "".join(text) + "}\n", probes
