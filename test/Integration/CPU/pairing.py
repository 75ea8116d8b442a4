"""State that is a copy of other state, or one step from it: heavy ball, Nesterov, FISTA,
rollback, a proximal anchor, averages, the values of the last steps, and populations that change places. The results that replace it are found with names
and without, with results in the order of the arguments and reversed, as a tuple, a
dictionary and a data class, in f32 and in bf16, and the step then computes what JAX does.

    python pairing.py FP8_RUN FOLDER [CASE...]
"""

import dataclasses
import itertools
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "steps"))

import families  # noqa: E402
import fp8_testing as t  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import exporting  # noqa: E402

t.compile_quickly()
STEPS, WIDTH, CLASSES, BATCH = 6, 16, 4, 8
RATE, MOMENTUM = 0.05, 0.9
# Error bounds relative to the largest entry, after the roundings of six steps.
BOUND = {jnp.float32: 1e-5, jnp.bfloat16: 4e-2}

tree = jax.tree.map

# `@update` is for functions `update(gradient_of, *state)` that return the loss and the new state by name. `gradient_of(params)`
# gives loss and gradients, of a loss with a teacher's outputs if there is one. The names of the parameters name the state.
update = t.Cases()


# ------------------------------------------------------------------ the cases


@update
def heavy_ball(gradient_of, p, prev):
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, q, g: p + MOMENTUM * (p - q) - RATE * g, p, prev, g), "prev": p}


@update
def nesterov(gradient_of, x, y):
    loss, g = gradient_of(y)
    new = tree(lambda y, g: y - RATE * g, y, g)
    return loss, {"x": new, "y": tree(lambda a, b: a + MOMENTUM * (a - b), new, x)}


@update
def fista(gradient_of, x, y, t):
    loss, g = gradient_of(y)
    after = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
    new = tree(lambda y, g: y - RATE * g, y, g)
    return loss, {"x": new, "y": tree(lambda a, b: a + ((t - 1) / after).astype(a.dtype) * (a - b), new, x), "t": after}


@update
def rollback(gradient_of, p, old):
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, o, g: jnp.where(loss > 5, o, p - RATE * g), p, old, g), "old": p}


@update
def proximal_anchor(gradient_of, p, anchor):
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, a, g: p - RATE * (g + 0.1 * (p - a)), p, anchor, g), "anchor": p}


@update
def average(gradient_of, p, ema):
    loss, g = gradient_of(p)
    p = tree(lambda p, g: p - RATE * g, p, g)
    return loss, {"p": p, "ema": tree(lambda e, p: 0.9 * e + 0.1 * p, ema, p)}


@update
def last_gradient(gradient_of, p, last):
    """Optimistic gradient descent."""
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, g, h: p - 2 * RATE * g + RATE * h, p, g, last), "last": g}


@update
def adams_bashforth(gradient_of, p, g1, g2):
    loss, g = gradient_of(p)
    step = lambda p, d, e, f: (p - RATE * (23 * d - 16 * e + 5 * f) / 12).astype(p.dtype)
    return loss, {"p": tree(step, p, g, g1, g2), "g1": g, "g2": g1}


@update
def three_points(gradient_of, p, p1, p2):
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, q, r, d: p + 0.6 * (p - q) + 0.2 * (q - r) - RATE * d, p, p1, p2, g), "p1": p, "p2": p1}


@update
def delayed_gradient(gradient_of, p, g1, g2):
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, d: p - RATE * d, p, g2), "g1": g, "g2": g1}


@update
def lagged_teacher(gradient_of, p, t1, t2):
    loss, g = gradient_of(p, t2)
    return loss, {"p": tree(lambda p, d: p - RATE * d, p, g), "t1": p, "t2": t1}


@update
def last_losses(gradient_of, p, l1, l2):
    loss, g = gradient_of(p)
    rate = RATE * (1 + 0.1 * jnp.tanh(l2))
    return loss, {"p": tree(lambda p, d: (p - rate * d).astype(p.dtype), p, g), "l1": loss, "l2": l1}


@update
def accept(gradient_of, p, y, best):
    """Takes the candidate y if its loss is the least so far. Data flow does not tell p and y apart."""
    loss, g = gradient_of(y)
    p = tree(lambda y, p: jnp.where(loss < best, y, p), y, p)
    return loss, {"p": p, "y": tree(lambda p, d: p - RATE * d, p, g), "best": jnp.minimum(loss, best)}


@update
def populations(gradient_of, p, idle):
    """Trains one of two sets of weights, which then change places."""
    loss, g = gradient_of(p)
    return loss, {"p": idle, "idle": tree(lambda p, d: p - RATE * d, p, g)}


@update
def round_robin(gradient_of, p, first, second):
    loss, g = gradient_of(p)
    return loss, {"p": first, "first": second, "second": tree(lambda p, d: p - RATE * d, p, g)}


@update
def kept_copy(gradient_of, p, idle):
    """Carries weights that the step does not read."""
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, d: p - RATE * d, p, g), "idle": idle}


@update
def weighted_points(gradient_of, p, p1, p2):
    """Data flow does not tell the last point but one from a frozen one."""
    loss, g = gradient_of(p)
    return loss, {"p": tree(lambda p, q, r, d: 1.6 * p - 0.4 * q - 0.2 * r - RATE * d, p, p1, p2, g), "p1": p, "p2": p1}


# Only names and order pair these; without either, the step is refused.
BY_ORDER = {"accept", "populations", "round_robin", "kept_copy", "weighted_points"}
# The reversed results of one of these steps are the results in order of another one.
SYMMETRIC = {"populations", "round_robin", "kept_copy"}


# ----------------------------------------------------------------- the steps


def model(dtype):
    random = np.random.default_rng(0)
    matrix = lambda *shape: jnp.asarray(random.normal(0, shape[0] ** -0.5, shape), dtype)
    params = {"a": matrix(WIDTH, WIDTH), "b": jnp.zeros(WIDTH, dtype), "c": matrix(WIDTH, CLASSES)}

    def apply(params, x):
        return jax.nn.relu(x @ params["a"] + params["b"]) @ params["c"]

    def loss_of(params, x, y, teacher=None):
        square = lambda v: jnp.mean(jnp.square(v).astype(jnp.float32))
        out = apply(params, x)
        return square(out - y) + (0.1 * square(out - apply(teacher, x)) if teacher else 0)

    return params, loss_of


SCALARS = {"t": 1, "l1": 0, "l2": 0, "best": 1e9}


def initial(name, params, dtype):
    shifted = tree(lambda p: (p * 0.9).astype(dtype), params)
    if name in SCALARS:
        return jnp.float32(SCALARS[name])
    return zeros(params) if name in ("last", "g1", "g2") else params if name in ("p", "y") else shifted


def zeros(params):
    return tree(jnp.zeros_like, params)


def make_result(container, values):
    """Returns (name, value) pairs in one container, in their order."""
    if container == "tuple":
        return tuple(value for _, value in values)
    if container == "dict":
        return dict(values)
    cls = dataclasses.make_dataclass("Result", [name for name, _ in values])
    jax.tree_util.register_dataclass(cls, [name for name, _ in values], [])
    return cls(**dict(values))


def make_step(function, names, container, permuted, dtype):
    """Returns a families.Step; with `permuted` the results are reversed, with the loss first."""
    params, loss_of = model(dtype)
    random = np.random.default_rng(1)
    x = random.normal(0, 1, (STEPS, BATCH, WIDTH)).astype(np.float32)
    y = random.normal(0, 1, (STEPS, BATCH, CLASSES)).astype(np.float32)
    data = {"x_in": jnp.asarray(x, dtype), "y_in": jnp.asarray(y, dtype)}

    def step(*args):
        state, batch = dict(zip(names, args)), args[len(names) :]
        loss, new = function(lambda p, *teacher: jax.value_and_grad(loss_of)(p, *batch, *teacher), **state)
        values = [(name, new[name]) for name in names] + [("loss", loss)]
        return make_result(container, values[::-1] if permuted else values)

    # Export reads the names of the arguments from the signature.
    import inspect

    step.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in [*names, *data]]
    )
    order = [*names, "loss"][:: -1 if permuted else 1]
    pick = lambda result, name: (
        result[order.index(name)] if container == "tuple" else result[name] if container == "dict" else getattr(result, name)
    )
    state = {name: initial(name, params, dtype) for name in names}
    return families.Step(step, state, data, lambda r: pick(r, "loss"), lambda r: {name: pick(r, name) for name in names})


# ---------------------------------------------------------------- the checks


def check(fp8_run, folder, label, step, bound, named, refused):
    folder.mkdir(parents=True, exist_ok=True)
    export = exporting.Export(step, donate=False, steps=STEPS)
    text, names = export.debug, {path: path for path in export.paths}
    if not named:
        text, order, _ = t.strip_names(export.text, seed=len(label), donated=False)
        names = {export.paths[old]: f"arg{new}" for new, old in enumerate(order)}
    (folder / "step.mlir").write_text(text)
    options = exporting.feeds(folder, export, names.get)
    options += ["--recipe", "none", "--steps", STEPS, "--overwrite", "--quiet"]
    if refused:
        error = t.run([fp8_run, folder / "step.mlir", *options, "--out", folder / "out"], check=False).stderr
        assert "ambiguous state: several results could replace" in error, f"{label}: expected an ambiguity but got {error}"
        return
    log = t.train(fp8_run, folder, folder / "out", *options)
    want = [float(scalars[export.loss]) for scalars in export.scalars]
    assert exporting.apart(t.losses(log), want) <= bound, f"{label}: expected losses {want} but got {t.losses(log)}"
    checkpoint = t.load_tensors(folder / "out" / f"checkpoint-{STEPS}.safetensors")
    for path, value in export.final.items():
        difference = exporting.apart(checkpoint[names[path]], value)
        assert difference <= bound, f"{label}: expected {path} within {bound} of JAX's but got {difference:.1e}"


def run(fp8_run, folder, name):
    function = update[name]
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    variants = itertools.product((True, False), ("tuple", "dict", "dataclass"), (False, True), (jnp.float32, jnp.bfloat16))
    for named, container, permuted, dtype in variants:
        # Without names containers do not differ, and bf16 only adds rounding.
        if (not named and container != "tuple") or (dtype == jnp.bfloat16 and (container != "tuple" or named == permuted)):
            continue
        if name in SYMMETRIC and named and container == "tuple" and permuted:
            continue
        label = f"{name}, {'named' if named else 'stripped'}, {container}, {'permuted' if permuted else 'in order'}, {dtype.__name__}"
        step = make_step(function, names, container, permuted, dtype)
        refused = name in BY_ORDER and (not named or (container == "tuple" and permuted))
        check(fp8_run, folder / label.replace(", ", "-").replace(" ", "-"), label, step, BOUND[dtype], named, refused)


def main():
    fp8_run, folder, *chosen = sys.argv[1:]
    cases = {name: lambda fixture, name=name: run(*fixture, name) for name in update}
    t.run_cases(cases, chosen, (fp8_run, pathlib.Path(folder)))


if __name__ == "__main__":
    main()
