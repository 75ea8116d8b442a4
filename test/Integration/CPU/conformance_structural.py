#!/usr/bin/env python3
"""Operations that move, index, window, reduce and contract, with random attributes,
and long sums.

    conformance_structural.py FP8_RUN FOLDER [--seed N] [--cases N] [--only GROUP]

A case is a function of arrays that JAX traces, and a reference, which is the same
function unless the case gives another, evaluated by JAX in f64. Moves and integers
are exact. For sums and dots the error is at most 1e-6 * sum |a b| plus half of the
result type's last place; the sum of magnitudes is the same function of the inputs'
magnitudes. All cases of a group are one module; if that fails, each runs alone.
"""

import argparse
import os
import random
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import fp8_testing
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance_testing import *

fp8_testing.compile_jax_quickly()
jax.config.update("jax_enable_x64", True)


class Case:
    def __init__(self, label, function, arrays, kind="exact", reference=None):
        self.label, self.function, self.arrays = label, function, arrays
        self.kind, self.reference = kind, reference or function


def wide(array):
    return array.astype(np.float64) if array.dtype in (np.float32, np.float16, ml_dtypes.bfloat16) else array


def evaluate(cases, arrays_of):
    """Evaluates the references of all cases as one compiled function."""
    arrays = [arrays_of(case) for case in cases]

    def everything(arrays):
        return [case.reference(*a) for case, a in zip(cases, arrays)]

    return jax.jit(everything)(arrays)


def traced(cases):
    arrays = [a for case in cases for a in case.arrays]

    def everything(*arrays):
        arrays, results = list(arrays), []
        for case in cases:
            mine, arrays = arrays[: len(case.arrays)], arrays[len(case.arrays) :]
            results += jax.tree.leaves(case.function(*mine))
        return tuple(results)

    text = jax.jit(everything, keep_unused=True).lower(*arrays).as_text()
    return re.sub(r' \{jax.result_info = "[^"]*"\}', "", text), {f"arg{i}": np.asarray(a) for i, a in enumerate(arrays)}


def compare(case, got, want, magnitude):
    if got.shape != want.shape:
        return f"expected shape {want.shape} but got {got.shape}"
    arrays = []
    if case.kind == "exact" or got.dtype.kind in "biu":
        with np.errstate(all="ignore"):
            want = np.asarray(want).astype(got.dtype)
        return first_wrong(~same(got, want), got, want, arrays)
    want, magnitude = np.asarray(want, np.float64), np.asarray(magnitude, np.float64)
    info = ml_dtypes.finfo(got.dtype)
    with np.errstate(all="ignore"):
        unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(want), float(info.tiny)))) - info.nmant)
        bound = (1e-13 if got.dtype == np.float64 else 1e-6) * magnitude + unit / 2
        error = np.abs(got.astype(np.float64) - want)
        error = np.where(np.abs(want) > float(info.max), 0, error)
    wrong = ~(error <= bound)
    message = first_wrong(wrong, got, want, arrays)
    if message:
        share = np.max(error / np.maximum(magnitude, 1e-300))
        message += f"; largest error {share:.2e} of the sum of magnitudes"
    return message


def run_group(name, cases, fp8_run, folder):
    text, arrays = traced(cases)
    found = run_function(fp8_run, folder / name, reverse_windows(text, cases), arrays)
    if isinstance(found, str):
        if len(cases) == 1:
            return [f"{cases[0].label}: {found}"]
        failures = [run_group(f"{name}_{i}", [case], fp8_run, folder) for i, case in enumerate(cases)]
        return sum(failures, []) or [f"{name}: together, though not alone: {found}"]
    wants = evaluate(cases, lambda case: [wide(a) for a in case.arrays])
    magnitudes = wants
    if any(case.kind == "sum" for case in cases):
        magnitudes = evaluate(cases, lambda case: [np.abs(wide(a)) if a.dtype.kind not in "bu" else a for a in case.arrays])
    failures, index = [], 0
    for case, want, magnitude in zip(cases, wants, magnitudes):
        for part, size in zip(jax.tree.leaves(want), jax.tree.leaves(magnitude)):
            wrong = compare(case, found[f"result{index}"], np.asarray(part), np.asarray(size))
            index += 1
            if wrong:
                failures.append(f"{case.label}: {wrong}")
    return failures


class Generator:
    def __init__(self, seed):
        self.rng, self.np = random.Random(seed), np.random.default_rng(seed)

    def f32(self, *shape):
        return self.np.standard_normal(shape).astype(np.float32)

    def whole(self, *shape, dtype=np.float32, low=-9, high=9):
        """Returns small integers as floats: their sums are exact in any order."""
        return self.np.integers(low, high + 1, shape).astype(dtype)

    def any(self, shape, elements=None):
        element = self.rng.choice(elements or [e for e in DTYPES if e not in F8] + ["f8E4M3FN", "f8E5M2"])
        dtype = DTYPES[element]
        if element == "i1":
            return self.np.integers(0, 2, shape).astype(bool)
        return self.np.integers(0 if dtype.kind == "u" else -20, 20, shape).astype(dtype)

    def shape(self, rank=None, most=7):
        rank = self.rng.choice([1, 2, 2, 3, 3, 4]) if rank is None else rank
        return tuple(self.rng.randint(1, most) for _ in range(rank))

    def shuffled(self, items):
        items = list(items)
        self.rng.shuffle(items)
        return items

    # Moves ----------------------------------------------------------------------

    def moves(self):
        shape = self.shape()
        x = self.any(shape, [e for e in DTYPES if e not in F8])  # the file format has no f8
        rank = len(shape)
        choice = self.rng.choice(
            "slice pad reverse concatenate dynamic_slice dynamic_update_slice transpose broadcast reshape select".split()
        )
        label = f"{choice} {name_of(x.dtype)}{list(shape)}"
        if choice == "slice":
            start = [self.rng.randint(0, d) for d in shape]
            limit = [self.rng.randint(s, d) for s, d in zip(start, shape)]
            step = [self.rng.randint(1, 4) for _ in shape]
            return Case(f"{label} {start} {limit} {step}", lambda x: lax.slice(x, start, limit, step), [x])
        if choice == "pad":
            config = []
            for d in shape:
                low, high, interior = self.rng.randint(-3, 3), self.rng.randint(-3, 3), self.rng.randint(0, 2)
                while low + high + d + (d - 1) * interior < 0:
                    high += 1
                config.append((low, high, interior))
            value = self.any((), [name_of(x.dtype)])
            return Case(f"{label} {config}", lambda x, v: lax.pad(x, v, config), [x, value])
        if choice == "reverse":
            axes = self.rng.sample(range(rank), self.rng.randint(0, rank))
            return Case(f"{label} {axes}", lambda x: lax.rev(x, axes), [x])
        if choice == "concatenate":
            axis = self.rng.randrange(rank)
            parts = [x]
            for _ in range(self.rng.randint(0, 3)):
                other = list(shape)
                other[axis] = self.rng.randint(0, 5)
                parts.append(self.any(other, [name_of(x.dtype)]))
            return Case(f"{label} {axis} of {len(parts)}", lambda *p: lax.concatenate(p, axis), parts)
        if choice.startswith("dynamic"):
            sizes = [self.rng.randint(1, d) for d in shape]
            kind = self.rng.choice([np.int32, np.int64, np.int8, np.uint32, np.int16])
            low = 0 if kind == np.uint32 else -3
            starts = [np.array(self.rng.randint(low, d + 3), kind) for d in shape]
            label += f" {sizes} at {[int(s) for s in starts]}"

            def begins(at):  # clamped here too, because JAX counts negative indices from the end
                return [jnp.clip(i, 0, d - n).astype(jnp.int32) for i, d, n in zip(at, shape, sizes)]

            if choice == "dynamic_slice":
                return Case(
                    label,
                    lambda x, *at: lax.dynamic_slice_p.bind(x, *at, slice_sizes=tuple(sizes)),
                    [x, *starts],
                    reference=lambda x, *at: lax.dynamic_slice(x, begins(at), sizes),
                )
            update = self.any(sizes, [name_of(x.dtype)])
            return Case(
                label,
                lambda x, u, *at: lax.dynamic_update_slice_p.bind(x, u, *at),
                [x, update, *starts],
                reference=lambda x, u, *at: lax.dynamic_update_slice(x, u, begins(at)),
            )
        if choice == "transpose":
            order = self.shuffled(range(rank))
            return Case(f"{label} {order}", lambda x: lax.transpose(x, order), [x])
        if choice == "broadcast":
            kept = sorted(self.rng.sample(range(rank), self.rng.randint(0, rank)))
            kept = kept if self.rng.random() < 0.7 else self.shuffled(kept)
            small = [1 if self.rng.random() < 0.3 else shape[d] for d in kept]
            x = self.any(small, [name_of(x.dtype)])
            if kept != sorted(kept):  # JAX prints only sorted dimensions
                order = np.argsort(kept)
                return Case(
                    f"{label} {kept}",
                    lambda x: lax.broadcast_in_dim(lax.transpose(x, order), shape, sorted(kept)),
                    [x],
                )
            return Case(f"{label} {kept}", lambda x: lax.broadcast_in_dim(x, shape, kept), [x])
        if choice == "reshape":
            flat = self.shuffled(shape + (1,) * self.rng.randint(0, 2))
            at = self.rng.randrange(len(flat))
            new = flat[:at] + [volume(flat[at : at + 2])] + flat[at + 2 :]
            return Case(f"{label} {new}", lambda x: lax.reshape(x, new), [x])
        y, p = self.any(shape, [name_of(x.dtype)]), self.any(shape, ["i1"])
        return Case(label, lambda p, x, y: lax.select(p, x, y), [p, x, y])

    # Indexing -------------------------------------------------------------------

    def indexed(self):
        """Makes a gather or scatter with random dimension numbers."""
        rank = self.rng.randint(1, 4)
        shape = self.shape(rank, 6)
        dims = self.shuffled(range(rank))
        n_batch = self.rng.choice([0, 0, 1]) if rank > 1 else 0
        n_collapsed = self.rng.randint(0, rank - n_batch)
        batching = sorted(dims[:n_batch])
        collapsed = sorted(dims[n_batch : n_batch + n_collapsed])
        windows = [d for d in range(rank) if d not in batching + collapsed]
        mapped = self.shuffled(d for d in range(rank) if d not in batching and (d in collapsed or self.rng.random() < 0.5))
        mapped = mapped or self.shuffled(d for d in range(rank) if d not in batching)[:1]
        batch_rank = self.rng.randint(n_batch, 2 + n_batch)
        index_batch = self.rng.sample(range(batch_rank), n_batch)
        batch_shape = [self.rng.randint(1, 4) for _ in range(batch_rank)]
        for axis, d in zip(index_batch, batching):
            batch_shape[axis] = shape[d]
        sizes = [1 if d in batching + collapsed else self.rng.randint(1, shape[d]) for d in range(rank)]
        out_rank = batch_rank + len(windows)
        offset = sorted(self.rng.sample(range(out_rank), len(windows)))
        kind = self.rng.choice([np.int32, np.int64, np.int16])
        indices = self.np.integers(-3, 9, batch_shape + [len(mapped)]).astype(kind)
        label = f"{list(shape)} offset {offset} collapsed {collapsed} batching {batching}/{index_batch} map {mapped} sizes {sizes}"
        if self.rng.random() < 0.5:
            x = self.any(shape, ["f32", "i32", "bf16", "ui8", "i1", "f64"])
            numbers = lax.GatherDimensionNumbers(
                tuple(offset), tuple(collapsed), tuple(mapped), tuple(batching), tuple(index_batch)
            )
            return Case(
                f"gather {name_of(x.dtype)}{label}",
                lambda x, i: lax.gather(x, i, numbers, sizes, mode="promise_in_bounds"),
                [x, indices],
                reference=lambda x, i: lax.gather(x, i, numbers, sizes, mode="clip"),
            )
        # If a window is partly out of bounds, the specification decides for each element, but XLA
        # for the whole window. Here windows are inside or far outside.
        room = [max(0, shape[d] - sizes[d]) for d in mapped]
        indices = np.minimum(np.maximum(indices, 0), np.array(room, kind))
        indices = np.where(self.np.random(batch_shape)[..., None] < 0.2, kind(self.rng.choice([-40, 40])), indices)
        out = iter(batch_shape)
        window_sizes = iter([sizes[d] for d in windows])
        updates_shape = [next(window_sizes) if d in offset else next(out) for d in range(out_rank)]
        numbers = lax.ScatterDimensionNumbers(
            tuple(offset), tuple(collapsed), tuple(mapped), tuple(batching), tuple(index_batch)
        )
        x = self.whole(*shape, dtype=self.rng.choice([np.float32, np.int32, np.float64]))
        updates = self.whole(*updates_shape, dtype=x.dtype, low=-2, high=2)
        scatter = self.rng.choice([lax.scatter_add, lax.scatter_add, lax.scatter_max, lax.scatter_min, lax.scatter_mul])
        return Case(
            f"{scatter.__name__} {name_of(x.dtype)}{label}",
            lambda x, i, u: scatter(x, i, u, numbers, mode="promise_in_bounds"),
            [x, indices, updates],
            reference=lambda x, i, u: scatter(x, i, u, numbers, mode="drop"),
        )

    # Windows and reductions -----------------------------------------------------

    def combiner(self):
        """Returns (name, a maker of operands, initial values, computation)."""
        def variadic(a, b):
            better = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
            return jnp.where(better, a[0], b[0]), jnp.where(better, a[1], b[1])

        def mixed(a, b):
            return a[0] + b[0], jnp.maximum(a[1], b[1])

        integers = lambda shape: [self.whole(*shape, dtype=np.int32)]  # noqa: E731
        floats = lambda shape: [self.whole(*shape)]  # noqa: E731
        return self.rng.choice([
            ("add", floats, [np.float32(0)], lax.add),
            ("add i32", integers, [np.int32(0)], lax.add),
            ("mul i32", integers, [np.int32(1)], lax.mul),
            ("max", floats, [np.float32(-np.inf)], lax.max),
            ("min i32", integers, [np.int32(2**31 - 1)], lax.min),
            ("xor", integers, [np.int32(0)], lax.bitwise_xor),
            ("and", lambda s: [self.any(s, ["i1"])], [np.bool_(True)], lax.bitwise_and),
            ("or", lambda s: [self.any(s, ["i1"])], [np.bool_(False)], lax.bitwise_or),
            ("ui8 max", lambda s: [self.any(s, ["ui8"])], [np.uint8(0)], lax.max),
            ("f64 add", lambda s: [self.whole(*s, dtype=np.float64)], [np.float64(0)], lax.add),
            ("saturating", integers, [np.int32(0)], lambda a, b: lax.min(lax.max(a, b), np.int32(7))),
            ("argmax", lambda s: [self.whole(*s), self.np.permutation(volume(s)).reshape(s).astype(np.int32)],
             [np.float32(-np.inf), np.int32(2**31 - 1)], variadic),
            ("add and max", lambda s: [self.whole(*s), self.whole(*s, dtype=np.int32)],
             [np.float32(0), np.int32(-99)], mixed),
        ])  # fmt: skip

    def reductions(self):
        name, make, inits, body = self.combiner()
        shape = self.shape(most=9)
        arrays = make(shape)
        single = len(arrays) == 1

        def of(operands, rest):
            wrapped_body = body if single else lambda a, b: body(a, b)
            return rest(operands[0] if single else tuple(operands), inits[0] if single else tuple(inits), wrapped_body)

        def exact_inits(operands):  # the reference's operands are f64
            return [np.asarray(i).astype(o.dtype) for i, o in zip(inits, operands)]

        def with_types(function):
            def call(*operands):
                local = exact_inits(operands)
                return function(
                    operands[0] if single else tuple(operands), local[0] if single else tuple(local), body
                )
            return call

        if self.rng.random() < 0.4:
            axes = sorted(self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape))))
            return Case(f"reduce {name} {list(shape)} over {axes}", with_types(lambda x, i, f: lax.reduce(x, i, f, axes)), arrays)
        window = [self.rng.randint(1, 4) for _ in shape]
        strides = [self.rng.randint(1, 3) for _ in shape]
        base = [self.rng.choice([1, 1, 2]) for _ in shape]
        dilation = [self.rng.choice([1, 1, 2]) for _ in shape]
        padding = [(self.rng.randint(0, 3), self.rng.randint(0, 3)) for _ in shape]
        if self.rng.random() < 0.2:  # cumulative
            axis = self.rng.randrange(len(shape))
            n = shape[axis]
            window = [n if d == axis else 1 for d in range(len(shape))]
            strides = base = dilation = [1] * len(shape)
            padding = [(n - 1, 0) if d == axis else (0, 0) for d in range(len(shape))]
        for d, (w, k, b) in enumerate(zip(window, dilation, base)):
            while (shape[d] - 1) * b + 1 + sum(padding[d]) < (w - 1) * k + 1:
                padding[d] = (padding[d][0] + 1, padding[d][1])
        label = f"reduce_window {name} {list(shape)} window {window} strides {strides} pad {padding} base {base} dilation {dilation}"
        return Case(label, with_types(lambda x, i, f: lax.reduce_window(x, i, f, window, strides, padding, base, dilation)), arrays)

    # Contractions ---------------------------------------------------------------

    def pair(self, left, right):
        kind = self.rng.choice(["f32", "f32", "bf16", "f16", "i32", "i8", "f64", "bf16 to f32"])
        if kind in ("i32", "i8"):
            return kind, self.any(left, [kind]), self.any(right, [kind]), np.int32
        dtype = DTYPES[kind.split()[0]]
        return kind, self.f32(*left).astype(dtype), self.f32(*right).astype(dtype), np.float32 if " to " in kind else dtype

    def dots(self):
        n_batch, n_contract = self.rng.choice([0, 1, 1, 2]), self.rng.choice([0, 1, 1, 2])
        sizes = {}
        names = {"b": n_batch, "k": n_contract, "m": self.rng.choice([0, 1, 1, 2]), "n": self.rng.choice([0, 1, 1, 2])}
        dims = {letter: [f"{letter}{i}" for i in range(count)] for letter, count in names.items()}
        for d in sum(dims.values(), []):
            sizes[d] = self.rng.choice([1, 2, 3, 5, 8, 17, 33]) if d[0] != "b" else self.rng.randint(1, 3)
        left, right = self.shuffled(dims["b"] + dims["k"] + dims["m"]), self.shuffled(dims["b"] + dims["k"] + dims["n"])
        batch, contract = self.shuffled(dims["b"]), self.shuffled(dims["k"])
        numbers = (
            ([left.index(d) for d in contract], [right.index(d) for d in contract]),
            ([left.index(d) for d in batch], [right.index(d) for d in batch]),
        )
        kind, x, y, out = self.pair([sizes[d] for d in left], [sizes[d] for d in right])

        def dot(x, y):
            element = out if x.dtype != np.float64 else np.float64
            return lax.dot_general(x, y, numbers, preferred_element_type=element)

        return Case(f"dot {kind} {list(x.shape)} {list(y.shape)} {numbers}", dot, [x, y], "sum")

    def dilated_images(self):
        """Convolutions with so many features that phases of the dilation are dots of their own."""
        return self.convolutions(inputs=(100, 103), groups=[(1, 1)], dilated=True)

    def wide_groups(self):
        """Convolutions in groups of so many features that each group is a dot."""
        return self.convolutions(inputs=(8, 12), outputs=(8, 12), batch=(8, 10), groups=[(2, 1), (3, 1), (1, 2), (1, 3)])

    def convolutions(self, inputs=(1, 4), outputs=(1, 4), batch=(1, 2), groups=((1, 1), (1, 1), (2, 1), (3, 1), (1, 2)), dilated=False):
        spatial = self.rng.choice([1, 2, 2, 3])
        letters = "XYZ"[:spatial]
        groups, batch_groups = self.rng.choice(groups)
        n = batch_groups * self.rng.randint(*batch)
        inputs, outputs = self.rng.randint(*inputs), self.rng.randint(*outputs) * groups * batch_groups
        x_sizes = dict(zip(letters, self.shape(spatial, 8))) | {"N": n, "C": inputs * groups}
        k_sizes = dict(zip(letters, self.shape(spatial, 3))) | {"I": inputs, "O": outputs}
        specs = ["".join(self.shuffled(s)) for s in (letters + "NC", letters + "IO", letters + "NC")]
        letters = [c for c in specs[1] if c in letters]  # in the order in which JAX counts them
        strides = [self.rng.randint(1, 3) for _ in letters]
        lhs, rhs = ([self.rng.choice([1, 1, 2]) for _ in letters] for _ in range(2))
        if dilated:
            strides, rhs = [1] * spatial, [1] * spatial
            lhs[0] = self.rng.randint(2, 3)
        padding = [[self.rng.randint(-1, 3) if x_sizes[c] > 2 else 0, self.rng.randint(0, 3)] for c in letters]
        for i, c in enumerate(letters):
            while (x_sizes[c] - 1) * lhs[i] + 1 + sum(padding[i]) < (k_sizes[c] - 1) * rhs[i] + 1:
                padding[i][1] += 1
        reverse = [self.rng.random() < 0.3 for _ in letters]
        kind, x, k, out = self.pair([x_sizes[c] for c in specs[0]], [k_sizes[c] for c in specs[1]])

        def convolution(x, k, flip):
            if flip:
                k = jnp.flip(k, [specs[1].index(c) for c, r in zip(letters, reverse) if r])
            return lax.conv_general_dilated(
                x, k, strides, padding, lhs, rhs, tuple(specs), groups, batch_groups,
                preferred_element_type=out if x.dtype != np.float64 else np.float64)  # fmt: skip

        label = f"convolution {kind} {x.shape} {k.shape} {specs} {strides} {padding} {lhs} {rhs} groups {groups} {batch_groups} reverse {reverse}"
        # JAX has no window reversal: it is added to the text, and the reference reverses the
        # kernel.
        case = Case(label, lambda x, k: convolution(x, k, False), [x, k], "sum", lambda x, k: convolution(x, k, True))
        case.reverse = reverse
        return case


def reverse_windows(text, cases):
    """Adds each case's window reversal to the text, in the text's order, because JAX writes none.
    """
    flags = [case.reverse for case in cases if hasattr(case, "reverse")]
    if not flags:
        return text
    each = iter(flags)
    pattern = r"reverse = \[[^]]*\]"
    assert len(re.findall(pattern, text)) == len(flags)
    return re.sub(pattern, lambda _: "reverse = [" + ", ".join(str(f).lower() for f in next(each)) + "]", text)


# Long sums ------------------------------------------------------------------------


def long_sums(g):
    """Sums of millions of terms, of one sign or both, along every axis: summed in sequence they
    exceed the bound."""
    def total(axes):
        return lambda x: lax.reduce(x, np.asarray(0, x.dtype), lax.add, axes)

    positive = lambda *shape: g.np.random(shape).astype(np.float32)  # noqa: E731
    for shape, axes in [
        ((1_000_000,), (0,)), ((999_983,), (0,)), ((1_000_000, 3), (0,)), ((3, 1_000_000), (1,)),
        ((200, 5000, 2), (1,)), ((100, 10000), (0, 1)), ((1000, 1000), (0,)), ((70_000, 16), (0,)),
        ((2, 70_000, 17), (1,)), ((3, 300, 300, 2), (1, 2)), ((300, 2, 300), (0, 2)),
    ]:  # fmt: skip
        yield Case(f"sum {shape} over {axes}", total(axes), [positive(*shape)], "sum")
    tenth = lambda *shape: np.full(shape, 0.1, np.float32)  # noqa: E731
    yield Case("sum of equal terms", total((0,)), [tenth(1_000_000)], "sum")
    yield Case("sum of equal rows", total((0,)), [tenth(300_000, 3)], "sum")
    yield Case("sum of equal columns", total((1,)), [tenth(3, 300_000)], "sum")
    yield Case("dot of equal terms", lambda x, y: lax.dot(x, y), [tenth(65536), tenth(65536)], "sum")
    yield Case("sum of signs", total((0,)), [g.f32(500_000)], "sum")
    yield Case("sum f64", total((0,)), [g.np.random(1_000_000)], "sum")
    for dtype in (np.float16, ml_dtypes.bfloat16):
        yield Case(f"sum {dtype.__name__}", total((0,)), [(positive(300_000) / 16).astype(dtype)], "sum")
        yield Case(f"sum {dtype.__name__} rows", total((0,)), [(positive(20_000, 5) / 16).astype(dtype)], "sum")

    def both(x, y):
        zero = np.asarray(0, x.dtype)
        return lax.reduce((x, y), (zero, zero), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))

    def sum_and_max(x, y):
        return lax.reduce((x, y), (np.asarray(0, x.dtype), np.asarray(-9, y.dtype)),
                          lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])), (0,))  # fmt: skip

    def crossed(x, y):  # two sums, each of which reads the other's operand
        zero = np.asarray(0, x.dtype)
        return lax.reduce((x, y), (zero, zero), lambda a, b: (a[0] + b[0], a[1] + b[1] + a[0] * 0 + b[0] * 0), (0,))

    yield Case("two sums", both, [positive(300_000), positive(300_000)], "sum")
    yield Case("two sums of columns", both, [positive(70_000, 4), positive(70_000, 4)], "sum")
    yield Case("sum and max", sum_and_max, [positive(300_000), positive(300_000)], "sum")
    yield Case("mean and variance", lambda x: (jnp.mean(x), jnp.mean(x * x)), [positive(1_000_000)], "sum")
    yield Case("sum of products by broadcast", lambda x, y: jnp.sum(x[:, None] * y[None, :], axis=0),
               [positive(70_000), positive(3)], "sum")  # fmt: skip
    yield Case("cumulative sum", lambda x: lax.reduce_window(x, np.asarray(0, x.dtype), lax.add, (4096,), (1,), [(4095, 0)]),
               [positive(4096)], "sum")  # fmt: skip
    yield Case("sum pooling", lambda x: lax.reduce_window(x, np.asarray(0, x.dtype), lax.add, (20_000, 1), (10_000, 1), "VALID"),
               [positive(100_000, 2)], "sum")  # fmt: skip
    yield Case("segment sum", lambda x, i: jnp.zeros((3,), x.dtype).at[i].add(x),
               [positive(3000), g.np.integers(0, 3, 3000).astype(np.int32)], "sum")  # fmt: skip
    # A sum that overflows is infinite and stays infinite: clipping by a norm divides by it.
    infinite = lambda sign, *shape: lambda x: jnp.full(shape, sign * jnp.inf)  # noqa: E731
    for sign in (1, -1):
        large = lambda *shape, sign=sign: np.full(shape, sign * 1e35, np.float32)  # noqa: E731
        yield Case(f"sum to {sign} infinity", total((0,)), [large(1_000_000)], reference=infinite(sign))
        yield Case(f"rows to {sign} infinity", total((0,)), [large(100_000, 3)], reference=infinite(sign, 3))
        factors = [np.full((4, 65536), sign * 1e17, np.float32), np.full((65536, 5), 1e18, np.float32)]
        yield Case(f"dot to {sign} infinity", lambda x, y: lax.dot(x, y), factors, reference=lambda x, y, of=infinite(sign, 4, 5): of(x))
        yield Case(f"columns to {sign} infinity", total((1,)), [large(3, 1_000_000)], reference=infinite(sign, 3))
    K = 65536
    for label, left, right, contract, batch in [
        ("matrix", (4, K), (K, 5), ((1,), (0,)), ((), ())),
        ("matrix NT", (33, K), (17, K), ((1,), (1,)), ((), ())),
        ("matrix TN", (K, 7), (K, 9), ((0,), (0,)), ((), ())),
        ("vector", (K,), (K,), ((0,), (0,)), ((), ())),
        ("matrix vector", (5, K), (K,), ((1,), (0,)), ((), ())),
        ("vector matrix", (K,), (K, 5), ((0,), (0,)), ((), ())),
        ("batch", (2, 3, K), (2, K, 4), ((2,), (1,)), ((0,), (0,))),
        ("batch vector", (3, K), (3, K), ((1,), (1,)), ((0,), (0,))),
        ("two", (256, 3, 256), (256, 256, 2), ((0, 2), (1, 0)), ((), ())),
    ]:
        for dtype in (np.float32, ml_dtypes.bfloat16, np.float64):
            def dot(x, y, numbers=(contract, batch)):
                out = np.float64 if x.dtype == np.float64 else np.float32
                return lax.dot_general(x, y, numbers, preferred_element_type=out)

            x, y = ((positive(*s) if dtype != np.float64 else g.np.random(s)).astype(dtype) for s in (left, right))
            yield Case(f"dot {label} K = {K} {np.dtype(dtype).name}", dot, [x, y], "sum")
    yield Case("dot to bf16", lambda x, y: lax.dot(x, y), [(positive(3, K) / 8).astype(ml_dtypes.bfloat16),
               (positive(K, 3) / 8).astype(ml_dtypes.bfloat16)], "sum")  # fmt: skip
    yield Case("convolution of a long window", lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID"),
               [positive(1, 8, 5000), positive(2, 8, 4999)], "sum")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fp8_run")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    total, failures = 0, []
    for name in ["moves", "indexed", "reductions", "dots", "convolutions", "dilated_images", "wide_groups", "long_sums"]:
        if options.only and name not in options.only:
            continue
        g = Generator(f"{name} {options.seed}".encode()[-1] + 1000 * options.seed)
        if name == "long_sums":
            cases = list(long_sums(g))
        else:
            cases = [getattr(g, name)() for _ in range(options.cases)]
        total += len(cases)
        failures += run_group(name, cases, options.fp8_run, options.folder)
    print("\n".join(failures))
    print(f"{total} cases, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
