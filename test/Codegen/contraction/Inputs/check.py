"""Compiles contractions with test-fp8-contraction, runs them and compares them with float64:
|error| <= 1e-6 * sum |a b|. With --bench it prints GFLOP/s."""

import argparse
import ctypes
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import ml_dtypes
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from amx import request_tiles  # noqa: E402

TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}
LOWERING = (
    "--canonicalize --cse --convert-scf-to-cf --convert-vector-to-llvm=enable-x86vector "
    "--expand-strided-metadata --lower-affine --convert-arith-to-llvm --convert-index-to-llvm "
    "--finalize-memref-to-llvm --convert-func-to-llvm=use-bare-ptr-memref-call-conv "
    "--convert-cf-to-llvm --reconcile-unrealized-casts --allow-unregistered-dialect"
).split()


def run(command, **kwargs):
    result = subprocess.run(command, capture_output=True, text=True, **kwargs)
    if result.returncode:
        sys.exit(" ".join(command) + "\n" + result.stderr)
    return result.stdout


class Case:
    """`dims` is {letter: extent}; `lhs`, `rhs` and `out` have letters in memory order.
    `tiles` has None or {letter: number of elements that share a scale} for lhs and rhs;
    along a missing letter all elements share a scale. `open` is the letter of an open loop.
    `windows` is {letter: (tap, stride, dilation)}: along the letter the lhs is read at
    letter * stride + tap * dilation, from the last tap on if the dilation is negative."""

    def __init__(self, name, lhs, rhs, out, types, tiles=(None, None), promote=None, open=None, windows={}, **dims):
        self.tiles, self.promote, self.open, self.windows = tiles, promote, open, windows
        self.name, self.lhs, self.rhs, self.out = name, lhs, rhs, out
        self.types, self.dims = types, dims
        self.order = out + "".join(c for c in lhs if c not in out)
        if len(out) > 1 and out[0] in rhs and out[0] not in lhs:
            # The result is transposed: its loops have the order of lhs first.
            self.order = "".join(c for c in lhs + rhs if c in out)
            self.order = "".join(dict.fromkeys(self.order + lhs))
        self.order += "".join(tap for tap, _, _ in windows.values())

    def lhs_shape(self):
        shape = self.shape(self.lhs)
        for letter, (tap, stride, dilation) in self.windows.items():
            shape[self.lhs.index(letter)] = (self.dims[letter] - 1) * stride + (self.dims[tap] - 1) * abs(dilation) + 1
        return shape

    def split_windows(self, lhs):
        """Returns the lhs with a dimension for each tap, and the letters of its dimensions."""
        letters = self.lhs
        for letter, (tap, stride, dilation) in self.windows.items():
            axis, count, taps = letters.index(letter), self.dims[letter], self.dims[tap]
            places = np.arange(count)[:, None] * stride + np.arange(taps)[:: 1 if dilation > 0 else -1] * abs(dilation)
            lhs = np.take(lhs, places, axis)
            letters = letters.replace(letter, letter + tap)
        return lhs, letters

    def shape(self, letters):
        return [self.dims[c] for c in letters]

    def operands(self):
        """Returns the letters, and the tiles or None, of the inputs in order."""
        both = [(self.lhs, None), (self.rhs, None)]
        return both + [(x, t) for x, t in zip((self.lhs, self.rhs), self.tiles) if t is not None]

    def scale_shape(self, letters, tiles):
        return [-(-self.dims[c] // tiles.get(c, self.dims[c])) for c in letters]

    def mlir(self):
        position = {c: f"d{i}" for i, c in enumerate(self.order)}

        def memref(letters, element, shape=None):
            return "memref<" + "".join(f"{n}x" for n in shape or self.shape(letters)) + element + ">"

        def place(letter):
            if letter not in self.windows:
                return position[letter]
            tap, stride, dilation = self.windows[letter]
            tap = position[tap] if dilation > 0 else f"({self.dims[tap] - 1} - {position[tap]})"
            return f"{position[letter]} * {stride} + {tap} * {abs(dilation)}"

        def affine(letters):
            inputs = ", ".join(position.values())
            return f"affine_map<({inputs}) -> ({', '.join(position[c] for c in letters)})>"

        iterators = ", ".join(
            '"parallel"' if c in self.out else '"reduction"' for c in self.order
        )
        a, b = self.types
        body = ""
        names = ["%x", "%y"]
        for i, t in enumerate(self.types):
            if t != "f32":
                body += f"    %e{i} = arith.extf {names[i]} : {t} to f32\n"
                names[i] = f"%e{i}"
        types = [memref(self.lhs, a, self.lhs_shape()), memref(self.rhs, b)]
        image = f"affine_map<({', '.join(position.values())}) -> ({', '.join(map(place, self.lhs))})>"
        maps, inputs, arguments = [image, affine(self.rhs)], ["%a", "%b"], [f"%x: {a}", f"%y: {b}"]
        for i, (letters, tiles) in enumerate(zip((self.lhs, self.rhs), self.tiles)):
            if tiles is None:
                continue
            shape = "".join(f"{n}x" for n in self.scale_shape(letters, tiles))
            types.append(f"memref<{shape}f32>")
            places = [f"{position[c]} floordiv {tiles[c]}" if c in tiles else "0" for c in letters]
            maps.append(f"affine_map<({', '.join(position.values())}) -> ({', '.join(places)})>")
            inputs.append(f"%s{i}")
            arguments.append(f"%t{i}: f32")
            body += f"    %f{i} = arith.mulf {names[i]}, %t{i} : f32\n"
            names[i] = f"%f{i}"
        maps.append(affine(self.out))
        parameters = ", ".join(f"{n}: {t}" for n, t in zip(inputs, types))
        attributes = f" attrs = {{fp8.promote_every = {self.promote} : i64}}" if self.promote else ""
        return f"""func.func @{self.name}({parameters}, %c: {memref(self.out, "f32")}) {{
  linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{iterators}]}}
    ins({', '.join(inputs)} : {', '.join(types)}) outs(%c : {memref(self.out, "f32")}){attributes} {{
  ^bb0({', '.join(arguments)}, %z: f32):
{body}    %m = arith.mulf {names[0]}, {names[1]} : f32
    %s = arith.addf %z, %m : f32
    linalg.yield %s : f32
  }}
  return
}}
"""

    def flops(self):
        return 2 * np.prod([float(n) for n in self.dims.values()])


def compile_cases(cases, arguments, directory, timing=False):
    stem = os.path.join(directory, "cases")
    with open(stem + ".mlir", "w") as f:
        f.write("".join(c.mlir() for c in cases))
    times = []
    cpu, options, compiler = arguments.cpu, arguments.options, arguments.compiler
    # Casts of CPUs that convert f16, and of those that do not.
    casts = "fp8-target{cpu=x86-64-v%d},fp8-expand-casts" % (2 if arguments.integer_casts else 3)

    def step(command):
        start = time.time()
        run(command)
        times.append((command[0], time.time() - start))

    step([compiler, stem + ".mlir",
          f"--pass-pipeline=builtin.module(func.func(test-fp8-contraction{{{options}}}),{casts})",
          "-o", stem + ".loops.mlir"])
    step(["mlir-opt", stem + ".loops.mlir"] + LOWERING + ["-o", stem + ".llvm.mlir"])
    step(["mlir-translate", "--mlir-to-llvmir", "--allow-unregistered-dialect", stem + ".llvm.mlir", "-o", stem + ".ll"])
    step(["opt", "-O2", f"-mcpu={cpu}", stem + ".ll", "-o", stem + ".bc"])
    step(["llc", "-O2", f"-mcpu={cpu}", "-filetype=obj", "-relocation-model=pic",
          stem + ".bc", "-o", stem + ".o"])
    step(["ld.lld", "-shared", stem + ".o", "-o", stem + ".so"])
    if timing:
        for name, seconds in times:
            print(f"  {name}: {1e3 * seconds / len(cases):.0f} ms a kernel")
    return ctypes.CDLL(stem + ".so")


def values(rng, shape, element, edges):
    x = rng.standard_normal(shape).astype(np.float32)
    if element.startswith("f8") and edges:
        # Every finite code, including subnormals.
        codes = np.arange(256, dtype=np.uint8)
        codes = codes[np.isfinite(codes.view(TYPES[element]).astype(np.float32))]
        return rng.choice(codes, shape).view(TYPES[element])
    return x.astype(TYPES[element])


def before_end(case, letters):
    """Returns the index of the part of an operand that an open loop covers; of all of it if it has no such loop."""
    return tuple(slice(0, -BEHIND_END) if c == case.open else slice(None) for c in letters)


def behind_end(case, letters):
    """Returns the index of the rest."""
    if case.open is None or case.open not in letters:
        return np.s_[:0] if letters else np.zeros((), bool)
    return tuple(slice(-BEHIND_END, None) if c == case.open else slice(None) for c in letters)


def check(case, library, rng):
    a = values(rng, case.lhs_shape(), case.types[0], True)
    b = values(rng, case.shape(case.rhs), case.types[1], True)
    for x, letters in ((a, case.lhs), (b, case.rhs)):
        x[behind_end(case, letters)] = np.nan
    # Memory after the result must not be written.
    guard = 64
    size = int(np.prod(case.shape(case.out)))
    c = np.full(size + guard, np.nan, np.float32)
    wide, scales = [a.astype(np.float64), b.astype(np.float64)], []
    for i, (letters, tiles) in enumerate(zip((case.lhs, case.rhs), case.tiles)):
        if tiles is None:
            continue
        scale = np.exp2(rng.uniform(-20, 20, case.scale_shape(letters, tiles))).astype(np.float32)
        scales.append(scale)
        for axis, letter in enumerate(letters):
            scale = np.repeat(scale, tiles.get(letter, case.dims[letter]), axis)
        wide[i] = wide[i] * scale[tuple(map(slice, wide[i].shape))].astype(np.float64)
    call(case, library, a, b, *scales, c)
    wide = [x[before_end(case, letters)] for x, letters in zip(wide, (case.lhs, case.rhs))]
    wide[0], lhs = case.split_windows(wide[0])
    spec = f"{lhs},{case.rhs}->{case.out}"
    want = np.einsum(spec, *wide, optimize=True)
    bound = 1e-6 * np.einsum(spec, *map(np.abs, wide), optimize=True)
    got = c[:size].reshape(case.shape(case.out))
    error = np.abs(got[before_end(case, case.out)] - want)
    if not (error <= bound).all() or not np.isnan(c[size:]).all() or not np.isnan(got[behind_end(case, case.out)]).all():
        ratio = np.nanmax(error / np.maximum(bound, 1e-300))
        print(f"{case.name}: {case.mlir()}\nwrong, error {ratio:.3g} of the bound")
        return False
    return True


def call(case, library, *arrays):
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
    getattr(library, case.name)(*pointers)


def check_codes(library, case, element):
    """Multiplies every code by one: the result is exact, for NaN and infinity too."""
    codes = np.arange(256, dtype=np.uint8).view(TYPES[element])
    one = np.ones(1, TYPES[case.types[1 if case.dims["n"] == 1 else 0]])
    c = np.zeros(case.shape(case.out), np.float32)
    call(case, library, *((codes, one) if case.dims["n"] == 1 else (one, codes)), c)
    want = codes.astype(np.float32).reshape(c.shape)
    if not np.array_equal(c, want, equal_nan=True):
        print(f"{element}: codes decoded wrongly: {c} {want}")
        return False
    return True


def layouts(name, m, n, k, types):
    out = []
    for lhs, rhs in itertools.product(["mk", "km"], ["kn", "nk"]):
        out.append(Case(f"{name}_{lhs}_{rhs}", lhs, rhs, "mn", types, m=m, n=n, k=k))
    return out


def test_cases():
    cases = []
    mixes = [("f32", "f32"), ("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E4M3FN"),
             ("f32", "f8E5M2"), ("bf16", "bf16"), ("f8E4M3FN", "f32"), ("f16", "f32")]
    sizes = [(1, 1, 1), (7, 13, 17), (33, 129, 7), (129, 33, 70), (1, 129, 33), (65, 1, 130),
             (64, 96, 700), (50, 88, 352), (17, 16, 688)]
    for i, (m, n, k) in enumerate(sizes):
        for j in range(2 if i else 7):
            types = mixes[(i + 3 * j) % len(mixes)]
            cases += layouts(f"c{m}x{n}x{k}_{types[0]}_{types[1]}", m, n, k, types)
    f8 = ("f8E4M3FN", "f8E5M2")
    # Attention: [B, S, H, D] operands.
    cases.append(Case("scores", "bshd", "bthd", "bhst", f8, b=2, s=24, t=40, h=3, d=16))
    cases.append(Case("context", "bhst", "bthd", "bhsd", ("f32", "f8E4M3FN"), b=2, s=24, t=40, h=3, d=16))
    # The result has heads inside: two groups of dimensions that do not nest.
    cases.append(Case("heads", "bhst", "bthd", "bshd", ("f32", "f32"), b=2, s=9, t=33, h=3, d=20))
    cases.append(Case("wgrad", "bsm", "bsn", "mn", f8, b=3, s=50, m=33, n=65))
    cases.append(Case("wgrad_heads", "bsm", "bhsd", "mhd", f8, b=3, s=20, m=33, h=2, d=24))
    cases.append(Case("split_k", "bmk", "kbn", "mn", ("f32", "f8E4M3FN"), b=3, k=20, m=33, n=24))
    cases.append(Case("transposed", "mk", "kn", "nm", f8, m=30, n=70, k=40))
    cases.append(Case("scattered", "mbk", "kn", "mnb", ("f32", "f8E4M3FN"), m=13, b=3, k=200, n=21))
    cases.append(Case("outer", "m", "n", "mn", ("f32", "f32"), m=13, n=37))
    cases.append(Case("inner", "k", "k", "", ("f32", "f8E4M3FN"), k=300))
    cases.append(Case("mv", "mk", "k", "m", f8, m=45, k=300))
    # Rows of the rhs that are half a page or a page apart, of which two panels are packed together.
    for types, n in (("f32", "f32"), 512), (("bf16", "bf16"), 1024), (f8, 2048), (("f32", "f8E4M3FN"), 4096):
        cases.append(Case(f"pages_{types[0]}_{types[1]}", "mk", "kn", "mn", types, m=40, n=n, k=37))
    cases.append(Case("pages_blocks", "mk", "kn", "mn", f8, ({"k": 128, "m": 1}, {"k": 128, "n": 128}), m=40, n=2048, k=300))
    # Scales in blocks along k, on either side, in every layout; partial ones.
    blocks = {"k": 128, "m": 1}, {"k": 128, "n": 128}
    for i, (lhs, rhs) in enumerate(itertools.product(["mk", "km"], ["kn", "nk"])):
        cases.append(Case(f"blocks_{lhs}_{rhs}", lhs, rhs, "mn", f8 if i % 2 else ("f8E4M3FN",) * 2, blocks,
                          m=50, n=150, k=352))
        cases.append(Case(f"mx_{lhs}_{rhs}", lhs, rhs, "mn", f8, ({"k": 32, "m": 1}, {"k": 32, "n": 1}), m=21, n=40, k=80))
    cases.append(Case("blocks_transposed", "mk", "kn", "nm", f8, blocks, m=30, n=70, k=688))
    cases.append(Case("blocks_left", "mk", "kn", "mn", ("f32", "f8E4M3FN"), (blocks[0], None), m=30, n=70, k=300))
    cases.append(Case("blocks_right", "mk", "nk", "mn", ("bf16", "f8E4M3FN"), (None, blocks[1]), m=30, n=130, k=300))
    cases.append(Case("blocks_mixed", "mk", "nk", "mn", f8, ({"k": 96, "m": 1}, {"k": 64}), m=30, n=30, k=400))
    cases.append(Case("blocks_batch", "bmk", "bkn", "bmn", f8, ({"b": 1, "k": 64}, {"b": 1, "n": 4}), b=3, m=20, n=30, k=160))
    # Rows of two dimensions; a contraction over two dimensions, with blocks along one or both.
    cases.append(Case("blocks_rows", "bsk", "kn", "bsn", f8, ({"b": 1, "s": 1, "k": 128}, blocks[1]), b=3, s=20, k=200, n=40))
    cases.append(Case("blocks_wgrad", "bsm", "bsn", "mn", f8, ({"b": 1, "s": 128, "m": 1}, {"b": 1, "s": 128, "n": 1}),
                      b=3, s=256, m=33, n=65))
    cases.append(Case("blocks_short", "bsm", "bsn", "mn", f8, ({"b": 1, "m": 1}, {"b": 1, "s": 32, "n": 8}), b=3, s=64, m=33, n=65))
    cases.append(Case("blocks_scattered", "mbk", "kn", "mnb", f8, ({"m": 4, "b": 1, "k": 32}, None), m=13, b=3, k=200, n=21))
    cases.append(Case("promote", "mk", "kn", "mn", f8, promote=128, m=20, n=40, k=1000))
    # Convolutions: an image, its kernel's gradient, and its own, whose taps are reversed.
    window = {"y": ("p", 1, 1), "x": ("q", 1, 1)}
    image = dict(b=2, y=9, x=17, p=3, q=3, c=20, o=33)
    for types in (("f32", "f32"), f8, ("bf16", "bf16")):
        name = f"image_{types[0]}"
        cases.append(Case(name, "byxc", "pqco", "byxo", types, windows=window, **image))
        cases.append(Case(f"{name}_dgrad", "byxo", "pqco", "byxc", types, windows={"y": ("p", 1, -1), "x": ("q", 1, -1)}, **image))
        # Windows are as many as taps of the kernel, and the places of the image are their taps.
        cases.append(Case(f"{name}_wgrad", "bpqc", "byxo", "pqco", types, windows={"p": ("y", 1, 1), "q": ("x", 1, 1)}, **image))
    cases.append(Case("image_strided", "byxc", "pqco", "byxo", f8, windows={"y": ("p", 2, 1), "x": ("q", 3, 2)}, **image))
    cases.append(Case("image_features_first", "bcyx", "ocpq", "boyx", ("f32", "f32"), windows=window, **image))
    cases.append(Case("image_of_few_features", "bcx", "ocq", "box", f8, windows={"x": ("q", 4, 1)}, b=2, c=1, x=50, q=70, o=24))
    return cases


# How many elements follow those of an open loop; as in TestContraction.cpp.
BEHIND_END = 64


def open_cases(group):
    """Returns cases whose last dimension of `group` ends at run time, at a multiple of 32; the others are no multiples of it."""
    sizes = {"m": 33, "n": 39, "k": 77}
    cases = []

    def add(name, lhs, rhs, out, types, letter, **others):
        cases.append(Case(f"{name}_{types[0]}_{types[1]}", lhs, rhs, out, types, open=letter, **others))

    for end in (32, 96, 608):
        extent = end + BEHIND_END
        dims = sizes | {group: extent}
        for types in (("f32", "f32"), ("bf16", "bf16"), ("f8E4M3FN", "f8E5M2"), ("f32", "f8E4M3FN")):
            for lhs, rhs in itertools.product(["mk", "km"], ["kn", "nk"]):
                add(f"open{end}_{lhs}_{rhs}", lhs, rhs, "mn", types, group, **dims)
            add(f"transposed{end}", "mk", "nk", "nm", types, group, **dims)
        # The dots of an attention with many queries, with many keys, and with deep heads.
        scores = {"m": "s", "n": "t", "k": "d"}[group]
        add(f"scores{end}", "bshd", "bthd", "bhst", ("bf16", "bf16"), scores, b=2, h=3, **({"s": 20, "t": 24, "d": 16} | {scores: extent}))
        context = {"m": "s", "n": "d", "k": "t"}[group]
        add(f"context{end}", "bhst", "bthd", "bhsd", ("f32", "f32"), context, b=2, h=3, **({"s": 20, "t": 24, "d": 16} | {context: extent}))
        add(f"blocks{end}", "mk", "kn", "mn", ("f8E4M3FN", "f8E5M2"), group, tiles=({"k": 64, "m": 1}, {"k": 128, "n": 128}), **dims)
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--options", default="")
    parser.add_argument("--compiler", default="fp8-opt")
    parser.add_argument("--integer-casts", action="store_true",
                        help="expand casts as for targets without f16 conversions, and check more formats")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--only", default="", help="only cases whose names contain this")
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("--keep", default="")
    arguments = parser.parse_args()
    request_tiles()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        directory = arguments.keep or directory
        if arguments.bench:
            return bench(arguments, rng, directory)
        group = re.search("open=(.)", arguments.options)
        cases = open_cases(group[1]) if group else test_cases()
        formats = ["f8E4M3FN", "f8E5M2"]
        if arguments.integer_casts:
            formats += ["f8E4M3", "f8E4M3FNUZ", "f8E5M2FNUZ"]
            for t in formats[2:]:
                cases += layouts(f"other_{t}", 21, 40, 70, (t, "f8E4M3FN"))
        cases = [c for c in cases if arguments.only in c.name][::arguments.every]
        codes = [Case(f"codes_{t}_{i}", "mk", "kn", "mn", (t, t) if i else (t, "f32"), m=m, k=1, n=n)
                 for t in ([] if group else formats) for i, (m, n) in enumerate([(256, 1), (1, 256)])]
        library = compile_cases(cases + codes, arguments, directory)
        good = [check(c, library, rng) for c in cases]
        good += [check_codes(library, c, c.types[0]) for c in codes]
        print(f"{sum(good)} of {len(good)} right")
        return 0 if all(good) else 1


def aligned(x):
    space = np.empty(x.nbytes + 64, np.uint8)
    start = -space.ctypes.data % 64
    result = space[start:start + x.nbytes].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


def bench(arguments, rng, directory):
    f8 = ("f8E4M3FN", "f8E4M3FN")
    f32 = ("f32", "f32")
    cases = []
    for types in (f8, f32):
        t = "f8" if types is f8 else "f32"
        for m, n, k in [(1024, 256, 256), (1024, 688, 256), (1024, 256, 688)]:
            cases.append(Case(f"nn_{m}x{n}x{k}_{t}", "mk", "kn", "mn", types, m=m, n=n, k=k))
            cases.append(Case(f"nt_{m}x{n}x{k}_{t}", "mk", "nk", "mn", types, m=m, n=n, k=k))
        cases.append(Case(f"tn_256x688x1024_{t}", "km", "kn", "mn", types, m=256, n=688, k=1024))
        cases.append(Case(f"scores_{t}", "bshd", "bthd", "bhst", types, b=8, h=4, s=128, t=128, d=64))
        cases.append(Case(f"context_{t}", "bhst", "bthd", "bshd", types, b=8, h=4, s=128, t=128, d=64))
        cases.append(Case(f"dkeys_{t}", "bhst", "bshd", "bthd", types, b=8, h=4, s=128, t=128, d=64))
    cases = [c for c in cases if arguments.only in c.name]
    library = compile_cases(cases, arguments, directory, True)
    peak = measure_peak(directory)
    print(f"peak {peak:.1f} GFLOP/s")
    for case in cases:
        a = values(rng, case.shape(case.lhs), case.types[0], False)
        b = values(rng, case.shape(case.rhs), case.types[1], False)
        c = np.zeros(case.shape(case.out), np.float32)
        a, b, c = map(aligned, (a, b, c))
        best = 1e9
        for _ in range(30):
            start = time.perf_counter()
            for _ in range(3):
                call(case, library, a, b, c)
            best = min(best, (time.perf_counter() - start) / 3)
        rate = case.flops() / best / 1e9
        print(f"{case.name:28} {1e6 * best:8.0f} us {rate:7.1f} GFLOP/s {100 * rate / peak:5.1f} %")
    return 0


def measure_peak(directory):
    source = os.path.join(directory, "peak.c")
    with open(source, "w") as f:
        f.write("""#include <immintrin.h>
#include <time.h>
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+1e-9*t.tv_nsec;}
double peak(void){double best=0;for(int r=0;r<20;r++){
 __m512 a[24];for(int i=0;i<24;i++)a[i]=_mm512_set1_ps(i);__m512 x=_mm512_set1_ps(0.999f),y=_mm512_set1_ps(0.1f);
 double t=now();for(long i=0;i<1000000;i++){
#pragma clang loop unroll(full)
 for(int j=0;j<24;j++){a[j]=_mm512_fmadd_ps(a[j],x,y);}__asm__ volatile("":::"memory");}
 t=now()-t;__m512 s=a[0];for(int i=1;i<24;i++)s=_mm512_add_ps(s,a[i]);volatile float v=_mm512_reduce_add_ps(s);(void)v;
 double g=24.0*32*1e6/t/1e9;if(g>best)best=g;}return best;}
""")
    library = os.path.join(directory, "peak.so")
    run(["clang-22", "-O2", "-march=native", "-shared", "-fPIC", source, "-o", library])
    peak = ctypes.CDLL(library).peak
    peak.restype = ctypes.c_double
    return peak()


if __name__ == "__main__":
    sys.exit(main())
