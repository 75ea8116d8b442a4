#!/usr/bin/env python3
"""Random JAX functions, compiled by fp8-run and compared with JAX.

    random_functions.py --fp8-run build/bin/fp8-run --seeds 0:500
    random_functions.py --fp8-run build/bin/fp8-run --seeds 0:200 --steps-only
    random_functions.py --fp8-run build/bin/fp8-run --seeds 17 --show

A case is a seed: a DAG of JAX operations with inputs, printed as Python
source (`--show`). The reference is the same source in float64; JAX's own float32
result and a perturbed evaluation tell how much float32 arithmetic may change.
Results of 1 and 2 threads must be bitwise equal. Every fourth
seed (all with --steps-only) is a training step whose state is updated in place:
by shifted, reversed or transposed reads of itself, swapped with another state, or
read after it is written; three steps run and the checkpoint is compared.

A failing case is reduced (unless --no-reduce): as many operations as possible
are replaced by inputs. The result is printed and kept in --keep DIR. By hand,
run some hundreds of seeds with --jobs 2, and large cases alone with
--seeds 5000:5500:5; CI runs the few cases of
random-functions.test.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import numpy as np

SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 64, 65, 127, 130]
EINSUMS = """ij,jk->ik ji,jk->ik ij,kj->ik ji,kj->ik ij,jk->ki bij,bjk->bik
bij,bkj->bik bji,bjk->bik bij,jk->bik ibj,jk->ibk ijb,bk->ijk ij,j->i i,ij->j i,i->
i,j->ij ij,ij-> ij,ij->i ijk,jkl->il ijk,lkj->li bthd,bshd->bhts bhts,bshd->bthd
bhij,bhkj->bhik bij,bij->b ij,bjk->bik bij,cjk->bcik ijk,ik->ij bi,bj->bij
bi,bi->b ijk,j->ik bij,bj->bi""".split()


def volume(shape):
    return math.prod(shape)


class Program:
    """Source lines over named inputs; `results` are names."""

    def __init__(self):
        self.inputs = {}  # name -> array
        self.lines = []  # (name, source, argument names)
        self.results = []
        self.states = []  # (input name, value name), for steps
        self.low_precision = False

    def source(self):
        text = f"def f({', '.join(self.inputs)}):\n"
        for name, source, _ in self.lines:
            text += f"  {name} = {source}\n"
        return text + f"  return ({', '.join(self.results)},)\n"


class Generator:
    def __init__(self, seed, step=False):
        self.rng = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.program = Program()
        self.values = []  # (name, shape, kind) with kind f, i or b
        self.step = step
        # Every fifth case is large enough that a kernel has many tasks.
        large = seed % 5 == 0
        self.limit = 400_000 if large else 40_000
        self.sizes = SIZES + [100, 256, 300, 513] if large else SIZES
        self.work = 60_000_000 if large else 4_000_000

    def shape(self, rank=None, limit=None):
        if rank is None:
            rank = self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        while True:
            shape = tuple(self.rng.choice(self.sizes) for _ in range(rank))
            if volume(shape) <= (limit or self.limit):
                return shape

    def input(self, shape, kind="f", low=None, high=None):
        name = f"x{len(self.program.inputs)}"
        if kind == "f":
            array = self.np.standard_normal(shape).astype(np.float32)
        elif kind == "i":
            array = self.np.integers(
                -50 if low is None else low, 50 if high is None else high, shape
            ).astype(np.int32)
        else:
            array = self.np.integers(0, 2, shape).astype(bool)
        self.program.inputs[name] = np.asarray(array)
        self.values.append((name, tuple(shape), kind))
        return self.values[-1]

    def emit(self, source, shape, kind, *args):
        name = f"v{len(self.program.lines)}"
        self.program.lines.append((name, source, [a[0] for a in args]))
        self.values.append((name, tuple(shape), kind))
        return self.values[-1]

    def pick(self, kind=None, rank=None, test=None):
        """Returns a value, preferring recent ones. May make an input."""
        found = [
            v
            for v in self.values
            if (kind is None or v[2] == kind)
            and (rank is None or len(v[1]) == rank)
            and (test is None or test(v[1]))
        ]
        if not found or self.rng.random() < 0.05:
            if test is None:
                return self.input(self.shape(rank), kind or "f")
            if not found:
                return None
        index = max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))
        return found[index]

    def partner(self, value):
        """Returns an operand that broadcasts to the shape of `value`."""
        name, shape, kind = value
        same = [v for v in self.values if v[1] == shape and v[2] == kind]
        roll = self.rng.random()
        if roll < 0.55 and len(same) > 1:
            return self.rng.choice(same)
        if roll < 0.8 or not shape:
            keep = [d if self.rng.random() < 0.7 else 1 for d in shape]
            return self.input(keep, kind)
        axis = self.rng.randrange(len(shape))
        reduced = tuple(1 if i == axis else d for i, d in enumerate(shape))
        if kind == "f":
            return self.emit(
                f"jnp.mean({name}, axis={axis}, keepdims=True)", reduced, "f", value
            )
        function = "max" if kind == "i" else "any"
        return self.emit(
            f"jnp.{function}({name}, axis={axis}, keepdims=True)", reduced, kind, value
        )

    # Groups of operations -----------------------------------------------------

    def unary(self):
        v = self.pick("f")
        n = v[0]
        source = self.rng.choice(
            [
                f"jnp.tanh({n})",
                f"jnp.exp(jnp.tanh({n}))",
                f"jnp.log(jnp.abs({n}) + 1)",
                f"jnp.sin({n})",
                f"jnp.cos({n})",
                f"jnp.sqrt({n} * {n} + 0.25)",
                f"lax.rsqrt({n} * {n} + 1)",
                f"jax.nn.sigmoid({n})",
                f"jax.nn.silu({n})",
                f"jax.nn.gelu({n})",
                f"-{n}",
                f"jnp.abs({n})",
                f"{n} * {n} * 0.5",
                f"jnp.clip({n}, -1.5, 0.75)",
                f"jax.nn.relu({n})",
                f"{n} - 0.5",
                f"lax.erf({n})",
                f"lax.expm1(jnp.tanh({n}))",
                f"jax.nn.softplus({n})",
            ]
        )
        return self.emit(source, v[1], "f", v)

    def binary(self):
        v = self.pick("f")
        w = self.partner(v)
        a, b = (v[0], w[0]) if self.rng.random() < 0.7 or w[1] != v[1] else (w[0], v[0])
        source = self.rng.choice(
            [
                f"{a} + {b}",
                f"{a} - {b}",
                f"{a} * {b}",
                f"{a} / (1 + {b} * {b})",
                f"jnp.maximum({a}, {b})",
                f"jnp.minimum({a}, {b})",
                f"jnp.where({a} > {b}, {a}, 2 * {b})",
                f"jnp.power(jnp.abs({a}) + 0.5, jnp.tanh({b}))",
                f"jnp.arctan2({a}, jnp.abs({b}) + 0.5)",
            ]
        )
        return self.emit(source, v[1], "f", v, w)

    def integers(self):
        v = self.pick("i")
        w = self.partner(v)
        a, b = v[0], w[0]
        source = self.rng.choice(
            [
                f"{a} + {b}",
                f"{a} - {b}",
                f"{a} * {b}",
                f"lax.div({a}, jnp.abs({b}) % 100 + jnp.ones_like({a}))",
                f"{a} // (jnp.abs({b}) % 100 + 1)",
                f"{a} % (jnp.abs({b}) % 100 + 1)",
                f"{a} & {b}",
                f"{a} | {b}",
                f"{a} ^ {b}",
                f"~{a}",
                f"{a} << ({b} & 7)",
                f"{a} >> ({b} & 7)",
                f"jnp.maximum({a}, {b})",
                f"jnp.minimum({a}, {b})",
                f"lax.population_count({a})",
                f"lax.clz({a})",
                f"jnp.abs({a})",
                f"jnp.sign({a})",
                f"({a}.astype(jnp.uint32) >> 3).astype(jnp.int32)",
                f"({a}.astype(jnp.uint32) % 7).astype(jnp.int32)",
            ]
        )
        return self.emit(source, v[1], "i", v, w)

    def compare(self):
        v = self.pick(self.rng.choice("ffi"))
        w = self.partner(v)
        op = self.rng.choice(["<", "<=", ">", ">=", "!=", "=="])
        return self.emit(f"{v[0]} {op} {w[0]}", v[1], "b", v, w)

    def booleans(self):
        v = self.pick("b")
        w = self.partner(v)
        op = self.rng.choice("&|^~")
        if op == "~":
            return self.emit(f"~{v[0]}", v[1], "b", v)
        return self.emit(f"{v[0]} {op} {w[0]}", v[1], "b", v, w)

    def select(self):
        v = self.pick()
        w = self.partner(v)
        p = self.pick("b", test=lambda s: s == v[1])
        if p is None:
            p = self.input(v[1], "b")
        return self.emit(f"jnp.where({p[0]}, {v[0]}, {w[0]})", v[1], v[2], p, v, w)

    def convert(self):
        v = self.pick()
        n = v[0]
        if v[2] == "b":
            kind = self.rng.choice("fi")
            return self.emit(f"{n}.astype({kind.upper()})", v[1], kind, v)
        if v[2] == "i":
            return self.emit(f"({n} % 17).astype(F) * 0.125", v[1], "f", v)
        if self.rng.random() < 0.3:
            self.program.low_precision = True
            kind = self.rng.choice(["bfloat16", "float16"])
            return self.emit(f"jnp.tanh({n}).astype(jnp.{kind}).astype(F)", v[1], "f", v)
        return self.emit(f"jnp.isfinite({n})", v[1], "b", v)

    def layout(self):
        v = self.pick(test=lambda s: len(s) > 0)
        if v is None:
            return None
        name, shape, kind = v
        rank = len(shape)
        axis = self.rng.randrange(rank)
        choice = self.rng.randrange(13)
        if choice <= 1:
            order = list(range(rank))
            self.rng.shuffle(order)
            return self.emit(
                f"jnp.transpose({name}, {tuple(order)})",
                [shape[i] for i in order],
                kind,
                v,
            )
        if choice <= 3:
            new = self.regroup(shape)
            return self.emit(f"jnp.reshape({name}, {new})", new, kind, v)
        if choice <= 5:
            parts, new = [], []
            for d in shape:
                start = self.rng.choice([0, 0, self.rng.randrange(d)])
                stop = self.rng.choice([d, self.rng.randint(start + 1, d)])
                step = self.rng.choice([1, 1, 2, 3])
                parts.append(f"{start}:{stop}:{step}")
                new.append(len(range(start, stop, step)))
            return self.emit(f"{name}[{', '.join(parts)}]", new, kind, v)
        if choice == 6:
            return self.emit(f"jnp.flip({name}, {axis})", shape, kind, v)
        if choice == 7:
            others = [v]
            total = shape[axis]
            for _ in range(self.rng.randint(1, 2)):
                w = self.pick(
                    kind,
                    rank,
                    lambda s: all(
                        i == axis or s[i] == shape[i] for i in range(rank)
                    ),
                )
                others.append(w or v)
                total += others[-1][1][axis]
            if total * volume(shape) // shape[axis] > self.limit:
                return None
            self.rng.shuffle(others)
            new = list(shape)
            new[axis] = total
            names = ", ".join(o[0] for o in others)
            return self.emit(
                f"jnp.concatenate([{names}], axis={axis})", new, kind, *others
            )
        if choice == 8:
            config, new = [], []
            for d in shape:
                low, high = self.rng.choice([0, 0, 1, 3]), self.rng.choice([0, 0, 2])
                interior = self.rng.choice([0, 0, 0, 1])
                if d > 3 and self.rng.random() < 0.2:
                    low = -1
                config.append((low, high, interior))
                new.append(low + high + d + (d - 1) * interior)
            if volume(new) > self.limit:
                return None
            zero = {"f": "F(0.5)", "i": "jnp.int32(3)", "b": "jnp.bool_(True)"}[kind]
            return self.emit(f"lax.pad({name}, {zero}, {config})", new, kind, v)
        if choice == 9:
            at = self.rng.randint(0, rank)
            size = self.rng.choice(self.sizes)
            new = list(shape)
            new.insert(at, size)
            if volume(new) > self.limit:
                return None
            return self.emit(
                f"jnp.broadcast_to(jnp.expand_dims({name}, {at}), {tuple(new)})",
                new,
                kind,
                v,
            )
        if choice == 10:
            return self.emit(
                f"jnp.roll({name}, {self.rng.randint(-3, 3)}, {axis})", shape, kind, v
            )
        if choice == 11 and rank >= 2 and kind != "b":
            function = self.rng.choice(["tril", "triu"])
            return self.emit(
                f"jnp.{function}({name}, {self.rng.randint(-1, 1)})", shape, kind, v
            )
        return self.emit(
            f"jnp.squeeze({name})", [d for d in shape if d != 1], kind, v
        )

    def regroup(self, shape):
        factors = []
        for d in shape:
            p = 2
            while d > 1:
                while d % p == 0:
                    factors.append(p)
                    d //= p
                p += 1
        new = []
        for f in factors:
            if new and self.rng.random() < 0.6:
                new[-1] *= f
            else:
                new.append(f)
        if self.rng.random() < 0.3:
            new.insert(self.rng.randint(0, len(new)), 1)
        return tuple(new[:5]) if len(new) <= 5 else (volume(shape),)

    def reduce(self):
        v = self.pick(test=lambda s: len(s) > 0)
        if v is None:
            return None
        name, shape, kind = v
        rank = len(shape)
        axes = tuple(sorted(self.rng.sample(range(rank), self.rng.randint(1, rank))))
        keep = self.rng.random() < 0.4
        new = [1 if i in axes else d for i, d in enumerate(shape)]
        if not keep:
            new = [d for i, d in enumerate(shape) if i not in axes]
        count = volume([shape[i] for i in axes])
        rest = f"axis={axes}, keepdims={keep}"
        if kind == "b":
            return self.emit(
                f"jnp.{self.rng.choice(['any', 'all'])}({name}, {rest})", new, "b", v
            )
        if kind == "i":
            function = self.rng.choice(["sum", "max", "min", "prod"])
            return self.emit(f"jnp.{function}({name}, {rest})", new, "i", v)
        source = self.rng.choice(
            [
                f"jnp.sum({name}, {rest}) * {1 / math.sqrt(count):.4f}",
                f"jnp.sum({name} * {name}, {rest}) * {1 / count:.4f}",
                f"jnp.mean({name}, {rest})",
                f"jnp.max({name}, {rest})",
                f"jnp.min({name}, {rest})",
                f"jnp.prod(1 + jnp.tanh({name}) * {0.5 / count:.5f}, {rest})",
                f"jnp.var({name}, {rest})",
                f"jax.nn.logsumexp({name}, {rest})",
            ]
        )
        return self.emit(source, new, "f", v)

    def along(self):
        """Emits an operation of the same shape in which each element depends on a row."""
        v = self.pick("f", test=lambda s: len(s) > 0)
        if v is None:
            return None
        name, shape, _ = v
        axis = self.rng.randrange(len(shape))
        source = self.rng.choice(
            [
                f"jax.nn.softmax({name}, axis={axis})",
                f"jax.nn.log_softmax({name}, axis={axis})",
                f"{name} * lax.rsqrt(jnp.mean({name} * {name}, axis={axis}, keepdims=True) + 1e-3)",
                f"({name} - jnp.mean({name}, axis={axis}, keepdims=True)) * lax.rsqrt(jnp.var({name}, axis={axis}, keepdims=True) + 1e-2)",
                f"jnp.cumsum({name}, axis={axis}) * {1 / shape[axis]:.4f}",
                f"lax.cummax({name}, axis={axis})",
                f"lax.cumsum({name}, axis={axis}, reverse=True) * {1 / shape[axis]:.4f}",
            ]
        )
        return self.emit(source, shape, "f", v)

    def argument(self):
        v = self.pick("f", test=lambda s: len(s) > 0)
        if v is None:
            return None
        axis = self.rng.randrange(len(v[1]))
        function = self.rng.choice(["argmax", "argmin"])
        new = [d for i, d in enumerate(v[1]) if i != axis]
        return self.emit(
            f"jnp.{function}({v[0]}, axis={axis}).astype(I)", new, "i", v
        )

    def dot(self):
        spec = self.rng.choice(EINSUMS)
        left, right = spec.split("->")[0].split(",")
        out = spec.split("->")[1]
        v = self.pick("f", len(left), lambda s: True)
        if v is None:
            v = self.input(self.shape(len(left)))
        sizes = dict(zip(left, v[1]))
        w = self.pick(
            "f",
            len(right),
            lambda s: all(sizes.get(c, d) == d for c, d in zip(right, s)),
        )
        if w is None or self.rng.random() < 0.4:
            for c in right:
                sizes.setdefault(c, self.rng.choice(self.sizes))
            shape = [sizes[c] for c in right]
            if volume(shape) > self.limit:
                return None
            w = self.input(shape)
        sizes.update(zip(right, w[1]))
        new = [sizes[c] for c in out]
        work = volume(sizes.values())
        if volume(new) > self.limit or work > self.work:
            return None
        scale = 1 / math.sqrt(work / max(1, volume(new)))
        a, b = v[0], w[0]
        return self.emit(f"jnp.einsum('{spec}', {a}, {b}) * {scale:.4f}", new, "f", v, w)

    def indexed(self):
        v = self.pick(test=lambda s: len(s) > 0)
        if v is None:
            return None
        name, shape, kind = v
        rank = len(shape)
        axis = self.rng.randrange(rank)
        size = shape[axis]
        choice = self.rng.randrange(9)
        if choice <= 1:
            index = self.input(self.shape(self.rng.choice([0, 1, 2]), 200), "i", 0, size)
            new = shape[:axis] + index[1] + shape[axis + 1 :]
            if volume(new) > self.limit:
                return None
            return self.emit(
                f"jnp.take({name}, {index[0]}, axis={axis})", new, kind, v, index
            )
        if choice == 2:
            new = list(shape)
            new[axis] = self.rng.choice([1, size])
            index = self.input(new, "i", 0, size)
            return self.emit(
                f"jnp.take_along_axis({name}, {index[0]}, axis={axis})",
                new,
                kind,
                v,
                index,
            )
        if choice <= 4 and kind != "b":
            count = self.rng.choice(self.sizes)
            index = self.input((count,), "i", 0, shape[0])
            updates = self.input((count,) + shape[1:], kind)
            if volume(updates[1]) > self.limit:
                return None
            how = self.rng.choice(["add", "add", "max", "min"])
            return self.emit(
                f"{name}.at[{index[0]}].{how}({updates[0]})", shape, kind, v, index, updates
            )
        if choice == 5:
            at = self.input((), "i", -2, size + 2)
            length = self.rng.randint(1, size)
            new = list(shape)
            new[axis] = length
            return self.emit(
                f"lax.dynamic_slice_in_dim({name}, {at[0]}, {length}, {axis})",
                new,
                kind,
                v,
                at,
            )
        if choice == 6:
            at = self.input((), "i", -2, size + 2)
            new = list(shape)
            new[axis] = self.rng.randint(1, size)
            update = self.input(new, kind)
            return self.emit(
                f"lax.dynamic_update_slice_in_dim({name}, {update[0]}, {at[0]}, {axis})",
                shape,
                kind,
                v,
                at,
                update,
            )
        if choice == 7:
            w = self.pick(kind, test=lambda s: s == shape)
            start = self.rng.randrange(size)
            part = ", ".join([":"] * axis + [f"{start}:"])
            return self.emit(
                f"{name}.at[{part}].set({w[0]}[{part}])", shape, kind, v, w
            )
        n = self.rng.choice([3, 17, 64])
        if volume(shape) * n > self.limit or kind != "i":
            return None
        return self.emit(
            f"jax.nn.one_hot({name} % {n}, {n}, dtype=F)", list(shape) + [n], "f", v
        )

    def control(self):
        """Emits loops and branches over a value."""
        v = self.pick("f")
        name, shape, _ = v
        n = self.input((), "i", -2, 6)
        choice = self.rng.randrange(9)
        if choice == 0 and shape:  # reads and writes rows of a stack
            return self.emit(
                f"lax.scan(lambda c, x: (0.5 * c + x, jnp.tanh(c) - x), {name}[0] * 0, {name}, "
                f"reverse={self.rng.random() < 0.5})[1]",
                shape, "f", v)  # fmt: skip
        if choice == 1 and shape:
            return self.emit(
                f"lax.scan(lambda c, x: (jnp.sin(c) + x, None), jnp.ones({shape[1:]}, F), {name})[0]",
                shape[1:], "f", v)  # fmt: skip
        if choice == 2:
            return self.emit(
                f"lax.while_loop(lambda s: s[0] < {n[0]}, lambda s: (s[0] + 1, 0.9 * jnp.sin(s[1])), (I(0), {name}))[1]",
                shape, "f", v, n)  # fmt: skip
        if choice == 3:
            trips = self.rng.randint(0, 5)
            return self.emit(
                f"lax.fori_loop(0, {trips}, lambda i, t: 0.7 * t + i.astype(F) * {name}, {name})", shape, "f", v
            )
        if choice == 4:
            return self.emit(
                f"lax.cond({n[0]} > 1, lambda t: jnp.tanh(t) * 2, lambda t: t - 1, {name})", shape, "f", v, n
            )
        if choice == 5:
            return self.emit(
                f"lax.switch({n[0]}, [lambda t: t + 1, lambda t: jnp.cos(t), lambda t: -t], {name})", shape, "f", v, n
            )
        if choice == 6:  # the condition is computed from the carried value
            return self.emit(
                f"lax.while_loop(lambda t: jnp.max(jnp.abs(t)) > 0.75, lambda t: 0.5 * t, {name} * 1.0)",
                shape, "f", v)  # fmt: skip
        if choice == 7 and shape and shape[0] > 1:  # updates rows in place and reads other rows
            return self.emit(
                f"lax.fori_loop(1, {shape[0]}, lambda i, t: t.at[i].set(0.5 * t[i - 1] + t[i]), {name})",
                shape, "f", v)  # fmt: skip
        return self.emit(
            f"lax.fori_loop(0, 3, lambda i, t: lax.fori_loop(0, i + 1, lambda j, u: jnp.tanh(u) + 0.1, t), {name})",
            shape, "f", v)  # fmt: skip

    def ordered(self):
        """Emits sorting, windows with a selection, and random bits."""
        v = self.pick("f", test=lambda s: len(s) > 0)
        choice = self.rng.randrange(5)
        if choice == 0 or v is None:
            shape = self.shape(None, 3000)
            seed = self.rng.randrange(1000)
            return self.emit(
                f"(jax.random.bits(jax.random.key({seed}), {shape}, jnp.uint32) >> 9).astype(F) / 8388608", shape, "f"
            )
        name, shape, _ = v
        axis = self.rng.randrange(len(shape))
        if choice == 1:
            return self.emit(f"jnp.sort({name}, axis={axis})", shape, "f", v)
        if choice == 2:
            w = self.input(shape, "i")
            return self.emit(f"jnp.argsort({w[0]}, axis={axis}, stable=True).astype(I)", shape, "i", w)
        if choice == 3:
            k = self.rng.randint(1, shape[-1])
            return self.emit(f"lax.top_k({name}, {k})[0]", shape[:-1] + (k,), "f", v)
        window = [self.rng.randint(1, min(3, d)) for d in shape]
        stride = [self.rng.randint(1, 2) for _ in shape]
        if len(shape) > 3:
            return None
        return self.emit(
            f"jax.grad(lambda t: jnp.sum(lax.reduce_window(t, F(-jnp.inf), lax.max, {tuple(window)}, {tuple(stride)}, 'SAME')))"
            f"({name})",
            shape, "f", v)  # fmt: skip

    def iota(self):
        shape = self.shape(self.rng.choice([1, 2, 3]), 5000)
        axis = self.rng.randrange(len(shape))
        return self.emit(f"lax.broadcasted_iota(I, {shape}, {axis})", shape, "i")

    def generate(self):
        for _ in range(self.rng.randint(1, 3)):
            self.input(self.shape())
        table = (
            [self.unary] * 4
            + [self.binary] * 5
            + [self.integers] * 2
            + [self.compare]
            + [self.booleans]
            + [self.select]
            + [self.convert]
            + [self.layout] * 6
            + [self.reduce] * 3
            + [self.along] * 2
            + [self.argument]
            + [self.dot] * 3
            + [self.indexed] * 2
            + [self.iota]
            + [self.control] * 2
            + [self.ordered] * 2
        )
        states = []
        if self.step:
            shape = self.shape(self.rng.choice([1, 2, 2, 3]), self.limit // 8)
            if self.rng.random() < 0.4 and len(shape) >= 2:
                shape = (shape[0],) * 2 + shape[2:]
            for i in range(self.rng.randint(2, 4)):
                mine = shape
                if i and self.rng.random() < 0.3:
                    mine = self.regroup(shape) or shape
                if i and self.rng.random() < 0.2:
                    mine = tuple(reversed(shape))
                states.append(self.input(mine, "i" if self.rng.random() < 0.1 else "f"))
        length = self.rng.choice([3, 6, 12, 25])
        while len(self.program.lines) < length:
            self.rng.choice(table)()
        if self.step:
            self.update(states)
            return self.program
        made = [v for v in self.values if v[0].startswith("v")]
        results = self.rng.sample(made, min(len(made), self.rng.randint(1, 5)))
        results.append(made[-1])
        if self.rng.random() < 0.2:
            results.append(self.rng.choice(results))
        if self.rng.random() < 0.2:
            results.append(self.values[0])
        if self.rng.random() < 0.3:
            w = self.rng.choice(results)
            new = self.regroup(w[1])
            results.append(self.emit(f"jnp.reshape({w[0]}, {new})", new, w[2], w))
        self.program.results = [r[0] for r in results]
        return self.program

    def update(self, states):
        """Returns new values of the states, chosen to provoke overlaps."""
        current = []
        for name, shape, kind in states:
            state = (name, shape, kind)
            choice = self.rng.randrange(10)
            others = [
                s
                for s in states
                if s is not state and volume(s[1]) == volume(shape) and s[2] == kind
            ]
            made = [
                v
                for v in self.values
                if v[1] == shape and v[2] == kind and v[0].startswith("v")
            ]
            other = self.rng.choice(others) if others else state
            axis = self.rng.randrange(len(shape))
            half = "0.5 * " if kind == "f" else ""
            if choice == 0:
                new = self.emit(f"jnp.reshape({other[0]}, {shape})", shape, kind, other)
            elif choice == 1:
                new = self.emit(f"jnp.flip({name}, {axis})", shape, kind, state)
            elif choice == 2:
                new = self.emit(f"jnp.roll({name}, 1, {axis})", shape, kind, state)
            elif choice == 3 and len(shape) >= 2 and shape[0] == shape[1]:
                order = (1, 0) + tuple(range(2, len(shape)))
                new = self.emit(
                    f"{half}jnp.transpose({name}, {order}) + {name}", shape, kind, state
                )
            elif choice == 4 and current:
                seen = self.rng.choice(current)
                if volume(seen[1]) == volume(shape) and seen[2] == kind:
                    new = self.emit(
                        f"{half}jnp.reshape({seen[0]}, {shape}) + {name}",
                        shape,
                        kind,
                        seen,
                        state,
                    )
                else:
                    new = state
            elif choice <= 6 and made:
                w = self.rng.choice(made)
                new = (
                    w
                    if self.rng.random() < 0.4
                    else self.emit(f"{name} - {half}{w[0]}", shape, kind, state, w)
                )
            elif choice == 7 and len(shape) >= 1 and shape[0] > 1 and kind == "f":
                index = self.input((3,), "i", 0, shape[0])
                new = self.emit(
                    f"{name}.at[{index[0]}].add({name}[:3] if {shape[0]} >= 3 else 1.0)",
                    shape,
                    kind,
                    state,
                    index,
                )
            elif choice == 8 and kind == "f":
                new = self.emit(
                    f"{name} - jnp.mean({name}, axis={axis}, keepdims=True)",
                    shape,
                    kind,
                    state,
                )
            else:
                new = self.emit(
                    f"{half}{name} + jnp.flip(jnp.reshape({other[0]}, {shape}), {axis})",
                    shape,
                    kind,
                    state,
                    other,
                )
            current.append(new)
            self.program.states.append((name, new[0]))
        terms = []
        for v in self.rng.sample(self.values, min(4, len(self.values))):
            terms.append(f"jnp.mean(jnp.tanh({v[0]}.astype(F)))")
        loss = self.emit(
            " + ".join(terms) or "F(0)", (), "f", *self.values
        )
        # The loss uses only its own terms; depending on all values orders it last.
        self.program.results = [s for _, s in self.program.states] + [loss[0]]


# Evaluation -------------------------------------------------------------------


def build(program, double):
    import jax
    import jax.numpy as jnp
    from jax import lax

    scope = {
        "jax": jax,
        "jnp": jnp,
        "lax": lax,
        "F": jnp.float64 if double else jnp.float32,
        "I": jnp.int32,
    }
    exec(program.source(), scope)  # the source is this file's own
    return scope["f"]


def evaluate(program, double, perturb=0.0, inputs=None):
    import jax

    arrays = []
    rng = np.random.default_rng(5)
    for array in (inputs or program.inputs).values():
        if array.dtype == np.float32 and double:
            array = array.astype(np.float64)
            if perturb:
                array = array * (1 + perturb * rng.choice([-1.0, 1.0], array.shape))
        arrays.append(array)
    with jax.enable_x64(double):
        key = "double" if double else "single"
        cache = program.__dict__.setdefault("compiled", {})
        if key not in cache:
            cache[key] = jax.jit(build(program, double))
        results = cache[key](*arrays)
        return [np.asarray(r) for r in results]


class Mismatch(Exception):
    pass


def run_tool(command, directory):
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=300)
    if done.returncode != 0:
        raise Mismatch(
            f"exit code {done.returncode}: {(done.stderr or done.stdout)[-1500:]}"
        )


def compile_and_run(program, tool, directory, threads):
    import jax
    from safetensors.numpy import load_file, save_file

    path = os.path.join(directory, "f.mlir")
    names = list(program.inputs)
    save = {f"arg{i}": np.array(a, order='C') for i, a in enumerate(program.inputs.values())}
    with open(path, "w") as file:
        lowered = jax.jit(build(program, False), keep_unused=True).lower(
            *program.inputs.values()
        )
        file.write(lowered.as_text())
    out = os.path.join(directory, f"out{threads}.safetensors")
    save_file(save, os.path.join(directory, "in.safetensors"))
    run_tool(
        [tool, path, "--entry", "main", "--inputs", "in.safetensors"]
        + ["--outputs", out, "--threads", str(threads), "--quiet"],
        directory,
    )
    found = load_file(out)
    if len(found) != len(program.results):
        raise Mismatch(f"expected {len(program.results)} results but got {list(found)}")
    single = "result" in found
    return [found["result" if single else f"result[{i}]"] for i in range(len(found))]


STEPS = 3


def train(program, tool, directory, threads):
    """Runs three steps; returns the states of the last checkpoint."""
    import jax
    from safetensors.numpy import load_file, save_file

    states = [s for s, _ in program.states]
    batch = [n for n in program.inputs if n not in states]
    f = build(program, False)

    def step(state, batch):
        results = f(**state, **{n: batch[n] for n in batch if n != "unused"})
        return dict(zip(states, results)), results[-1]

    state_values = {s: program.inputs[s] for s in states}
    batch_values = {n: program.inputs[n] for n in batch}
    batch_values = batch_values or {"unused": np.zeros(3, np.float32)}
    path = os.path.join(directory, "f.mlir")
    with open(path, "w") as file:
        lowered = jax.jit(step, keep_unused=True).lower(state_values, batch_values)
        file.write(lowered.as_text(debug_info=True))
    save_file(
        {f"state['{s}']": np.array(a, order='C') for s, a in state_values.items()},
        os.path.join(directory, "in.safetensors"),
    )
    command = [tool, path, "--init", "in.safetensors", "--recipe", "none", "--steps", str(STEPS)]
    for name, array in batch_values.items():
        file = f"batch_{name}.safetensors"
        save_file({"t": np.array(array[None], order='C')}, os.path.join(directory, file))
        command += ["--batch", f"batch['{name}']={file}"]
        command += ["--role", f"batch['{name}']=batch"]
    for s in states:
        command += ["--state", f"state['{s}']=result[0]['{s}']"]
    command += ["--loss", "result[1]"]
    out = f"run{threads}"
    run_tool(
        command + ["--out", out, "--overwrite", "--threads", str(threads), "--quiet"],
        directory,
    )
    directory = os.path.join(directory, out)
    checkpoint = [n for n in os.listdir(directory) if n.startswith("checkpoint-")]
    found = load_file(os.path.join(directory, checkpoint[0]))
    with open(os.path.join(directory, "log.jsonl")) as file:
        loss = json.loads(file.read().splitlines()[-1])["loss"]
    return [found[f"state['{s}']"] for s in states] + [np.float32(loss)]


def reference(program, double, perturb=0.0):
    if not program.states:
        return evaluate(program, double, perturb)
    inputs = dict(program.inputs)
    for _ in range(STEPS):
        results = evaluate(program, double, perturb, inputs)
        for (state, _), result in zip(program.states, results):
            inputs[state] = result
    return results


def check(program, tool, directory):
    exact = reference(program, True)
    single = reference(program, False)
    run = train if program.states else compile_and_run
    if program.states and not all(np.isfinite(s).all() for s in single):
        return
    got = run(program, tool, directory, 1)
    again = run(program, tool, directory, 2)
    moved = None
    for i, (g, a, e, s) in enumerate(zip(got, again, exact, single)):
        if g.tobytes() != a.tobytes():
            raise Mismatch(f"result {i} differs between 1 and 2 threads")
        if g.shape != s.shape or g.dtype != s.dtype:
            raise Mismatch(
                f"result {i}: expected {s.dtype}{s.shape} but got {g.dtype}{g.shape}"
            )
        if s.dtype != np.float32:
            wrong = (g != s) & (s == e)
        else:
            scale = np.max(np.abs(e[np.isfinite(e)]), initial=0)
            relative = 2e-2 if program.low_precision else 1e-5
            limit = relative * (scale + np.abs(e)) + 20 * np.abs(s - e)
            with np.errstate(invalid="ignore"):
                wrong = np.abs(g - e) > limit
            wrong |= np.isfinite(s) & ~np.isfinite(g)
            wrong |= np.isnan(s) & ~np.isnan(g)
            if wrong.any():
                # The function itself may be that steep here.
                moved = moved or [reference(program, True, p) for p in (3e-7, -1e-6)]
                for m in moved:
                    with np.errstate(invalid="ignore"):
                        wrong &= ~(np.abs(g - e) <= limit + 100 * np.abs(m[i] - e))
        if wrong.any():
            if s.dtype != np.float32:
                # A comparison may go either way.
                moved = moved or [reference(program, True, p) for p in (3e-7, -1e-6)]
                for m in moved:
                    wrong &= m[i] == e
                if not wrong.any():
                    continue
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            raise Mismatch(
                f"result {i} ({program.results[i]}) of shape {g.shape}: "
                f"{int(wrong.sum())} of {g.size} wrong, first at {at}: "
                f"expected {e[at]} but got {g[at]}"
            )


# Reduction --------------------------------------------------------------------


def prune(program):
    """Removes everything that no result needs."""
    needed = set(program.results)
    lines = []
    import re

    for line in reversed(program.lines):
        if line[0] in needed:
            lines.append(line)
            needed.update(re.findall(r"\b[xv]\d+\b", line[1]))
    states = {s for s, _ in program.states}
    small = Program()
    small.lines = lines[::-1]
    small.inputs = {
        n: a for n, a in program.inputs.items() if n in needed or n in states
    }
    small.results = program.results
    small.states = program.states
    small.low_precision = program.low_precision
    return small


def reduce_case(program, fails, budget=120):
    """Reduces greedily: fewer results, then operations replaced by inputs."""
    best = program
    if not program.states:
        for result in program.results:
            small = prune(best)
            small.results = [result]
            small = prune(small)
            if fails(small):
                best = small
                break
    changed = True
    while changed and budget > 0:
        changed = False
        for index in reversed(range(len(best.lines))):
            name = best.lines[index][0]
            if not best.states and name in best.results:
                continue
            probe = prune(best)
            probe.results = [name]
            try:
                value = evaluate(probe, False)[0]
            except Exception:
                continue
            small = prune(best)
            small.lines = [l for l in best.lines if l[0] != name]
            small.inputs = {**best.inputs, name: value}
            small = prune(small)
            budget -= 1
            if budget > 0 and fails(small):
                best, changed = small, True
                break
    return best


def run_seed(job):
    seed, options = job
    step = options.steps_only or (seed % 4 == 3 and not options.functions_only)
    program = prune(Generator(seed, step).generate())
    if options.show:
        print(program.source())
    with tempfile.TemporaryDirectory() as directory:

        def failure(candidate):
            try:
                check(candidate, options.fp8_run, directory)
            except Mismatch as mismatch:
                return str(mismatch)
            except subprocess.TimeoutExpired:
                return "does not end within 300 s"
            return None

        try:
            message = failure(program)
        except Exception as error:  # a case that JAX itself rejects
            return seed, "invalid", f"{type(error).__name__}: {error}"[:300]
        if message is None:
            return seed, "ok", ""
        if options.reduce:
            kind = message.split(":")[0][:12]

            def fails(candidate):
                try:
                    found = failure(candidate)
                except Exception:
                    return False
                return found is not None and found[:12].startswith(kind[:8])

            program = reduce_case(program, fails)
            message = failure(program) or message
            if options.keep:
                folder = os.path.join(options.keep, str(seed))
                subprocess.run(["rm", "-rf", folder])
                subprocess.run(["cp", "-r", directory, folder])
        shapes = {n: (a.dtype.name, a.shape) for n, a in program.inputs.items()}
        states = f"states {program.states}\n" if program.states else ""
        return seed, "FAIL", f"{message}\n{shapes}\n{states}{program.source()}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fp8-run", required=True, type=os.path.abspath)
    parser.add_argument("--seeds", default="0:100", help="N, FROM:TO or FROM:TO:STEP")
    parser.add_argument("--steps-only", action="store_true")
    parser.add_argument("--functions-only", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the source")
    parser.add_argument("--no-reduce", dest="reduce", action="store_false")
    parser.add_argument("--keep", type=os.path.abspath, help="folder for failing cases")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    bounds = [int(bound) for bound in options.seeds.split(":")]
    seeds = range(*bounds) if len(bounds) > 1 else bounds
    counts = {"ok": 0, "invalid": 0, "FAIL": 0}
    jobs = [(seed, options) for seed in seeds]
    if options.jobs == 1:
        results = map(run_seed, jobs)
    else:
        results = ProcessPoolExecutor(options.jobs).map(run_seed, jobs)
    for seed, verdict, text in results:
        counts[verdict] += 1
        if verdict != "ok":
            print(f"seed {seed}: {verdict}: {text}", flush=True)
    print(f"{counts['ok']} ok, {counts['FAIL']} failed, {counts['invalid']} invalid")
    return 1 if counts["FAIL"] or counts["invalid"] else 0


if __name__ == "__main__":
    sys.exit(main())
