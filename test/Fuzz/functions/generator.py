"""Makes a random function from a seed, one operation after the other."""

import math
import random

import numpy as np

from .program import Program

SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 64, 65, 127, 130]
EINSUMS = """ij,jk->ik ji,jk->ik ij,kj->ik ji,kj->ik ij,jk->ki bij,bjk->bik
bij,bkj->bik bji,bjk->bik bij,jk->bik ibj,jk->ibk ijb,bk->ijk ij,j->i i,ij->j i,i->
i,j->ij ij,ij-> ij,ij->i ijk,jkl->il ijk,lkj->li bthd,bshd->bhts bhts,bshd->bthd
bhij,bhkj->bhik bij,bij->b ij,bjk->bik bij,cjk->bcik ijk,ik->ij bi,bj->bij
bi,bi->b ijk,j->ik bij,bj->bi""".split()


def volume(shape):
    return math.prod(shape)


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
            array = self.np.integers(-50 if low is None else low, 50 if high is None else high, shape).astype(np.int32)
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
        found = [v for v in self.values if (kind is None or v[2] == kind) and (rank is None or len(v[1]) == rank) and (test is None or test(v[1]))]
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
            return self.emit(f"jnp.mean({name}, axis={axis}, keepdims=True)", reduced, "f", value)
        function = "max" if kind == "i" else "any"
        return self.emit(f"jnp.{function}({name}, axis={axis}, keepdims=True)", reduced, kind, value)

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
                    lambda s: all(i == axis or s[i] == shape[i] for i in range(rank)),
                )
                others.append(w or v)
                total += others[-1][1][axis]
            if total * volume(shape) // shape[axis] > self.limit:
                return None
            self.rng.shuffle(others)
            new = list(shape)
            new[axis] = total
            names = ", ".join(o[0] for o in others)
            return self.emit(f"jnp.concatenate([{names}], axis={axis})", new, kind, *others)
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
            return self.emit(f"jnp.roll({name}, {self.rng.randint(-3, 3)}, {axis})", shape, kind, v)
        if choice == 11 and rank >= 2 and kind != "b":
            function = self.rng.choice(["tril", "triu"])
            return self.emit(f"jnp.{function}({name}, {self.rng.randint(-1, 1)})", shape, kind, v)
        return self.emit(f"jnp.squeeze({name})", [d for d in shape if d != 1], kind, v)

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
            return self.emit(f"jnp.{self.rng.choice(['any', 'all'])}({name}, {rest})", new, "b", v)
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
        return self.emit(f"jnp.{function}({v[0]}, axis={axis}).astype(I)", new, "i", v)

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
            return self.emit(f"jnp.take({name}, {index[0]}, axis={axis})", new, kind, v, index)
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
            return self.emit(f"{name}.at[{index[0]}].{how}({updates[0]})", shape, kind, v, index, updates)
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
            return self.emit(f"{name}.at[{part}].set({w[0]}[{part}])", shape, kind, v, w)
        n = self.rng.choice([3, 17, 64])
        if volume(shape) * n > self.limit or kind != "i":
            return None
        return self.emit(f"jax.nn.one_hot({name} % {n}, {n}, dtype=F)", list(shape) + [n], "f", v)

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
            return self.emit(f"lax.fori_loop(0, {trips}, lambda i, t: 0.7 * t + i.astype(F) * {name}, {name})", shape, "f", v)
        if choice == 4:
            return self.emit(f"lax.cond({n[0]} > 1, lambda t: jnp.tanh(t) * 2, lambda t: t - 1, {name})", shape, "f", v, n)
        if choice == 5:
            return self.emit(f"lax.switch({n[0]}, [lambda t: t + 1, lambda t: jnp.cos(t), lambda t: -t], {name})", shape, "f", v, n)
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
            return self.emit(f"(jax.random.bits(jax.random.key({seed}), {shape}, jnp.uint32) >> 9).astype(F) / 8388608", shape, "f")
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
            others = [s for s in states if s is not state and volume(s[1]) == volume(shape) and s[2] == kind]
            made = [v for v in self.values if v[1] == shape and v[2] == kind and v[0].startswith("v")]
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
                new = self.emit(f"{half}jnp.transpose({name}, {order}) + {name}", shape, kind, state)
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
                new = w if self.rng.random() < 0.4 else self.emit(f"{name} - {half}{w[0]}", shape, kind, state, w)
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
        loss = self.emit(" + ".join(terms) or "F(0)", (), "f", *self.values)
        # The loss uses only its own terms; depending on all values orders it last.
        self.program.results = [s for _, s in self.program.states] + [loss[0]]
