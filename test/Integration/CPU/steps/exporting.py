"""Exports training steps as JAX lowers them, with JAX's results, and writes their values to files.
"""

import functools
import inspect
import re

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open

# --------------------------------------------------------------- trees by path


def to_numpy(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.array(leaf, order="C")


def by_path(trees):
    """Returns the leaves of {argument: tree} by path, as JAX names them."""
    return {
        name + jax.tree_util.keystr(keys): leaf
        for name, tree in trees.items()
        for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    }


def paths_of(tree, root):
    """Returns the tree with each leaf replaced by its path."""
    return jax.tree_util.tree_map_with_path(lambda keys, _: root + jax.tree_util.keystr(keys), tree)


def apart(got, want):
    """Returns the largest difference of two tensors relative to the second's largest entry."""
    got, want = (np.asarray(x) for x in (got, want))
    assert got.shape == want.shape, f"expected shape {want.shape} but got {got.shape}"
    if not jnp.issubdtype(want.dtype, jnp.floating):
        return 0.0 if np.array_equal(got, want) else np.inf
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if same.all():
        return 0.0
    finite = np.isfinite(want)
    if not (np.isfinite(got) == finite).all():
        return np.inf
    return np.max(np.abs(got - want), where=~same, initial=0) / max(np.max(np.abs(want), where=finite, initial=0), 1e-30)


def read(path):
    with safe_open(str(path), "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


# -------------------------------------------------------------------- exports


class Export:
    """A step as JAX lowers it, and its results in JAX."""

    def __init__(self, made, donate, steps):
        self.parameters = list(inspect.signature(made.function).parameters)
        self.step, self.steps = made, steps
        state = self.state = {name: jax.tree.map(jnp.asarray, tree) for name, tree in made.state.items()}
        self.initial = {path: to_numpy(leaf) for path, leaf in by_path(state).items()}
        self.data = by_path(made.batches)

        shape = jax.eval_shape(made.function, *self.arguments(state, 0))
        results = paths_of(shape, "result")
        self.loss, carried = made.loss(results), made.carry(results)
        donated = tuple(i for i, name in enumerate(self.parameters) if name in carried) if donate else ()
        lowered = jax.jit(made.function, donate_argnums=donated).lower(*self.arguments(state, 0))
        self.debug = lowered.as_text(debug_info=True)
        # jit prunes unused arguments.
        self.paths = re.findall(r'loc\("((?:[^"\\]|\\.)*)"\)', t.main_arguments(self.debug))
        self.replaced = {
            to: by_path({"": carried[name]})[to[len(name) :]]
            for name in carried
            for to in by_path({name: state[name]})
            if to in self.paths
        }
        self.results = list(by_path({"result": shape}))
        self.lowered = lowered

    @functools.cached_property
    def text(self):
        return self.lowered.as_text()

    @functools.cached_property
    def compiled(self):
        return self.lowered.compile()

    @functools.cached_property
    def played(self):
        return self.play(self.state)

    # The scalars of every step, the first step's results, and the state after the first and after
    # the last step.
    scalars, outputs, early, final = (property(lambda self, i=i: self.played[i]) for i in range(4))

    def arguments(self, state, i):
        """Returns the arguments of step i."""
        feed = jax.tree.map(lambda b: jnp.asarray(b[i]), self.step.batches)
        keys = {name: jax.random.fold_in(state[name], i) for name in self.step.keys}
        return [{**state, **feed, **keys}[name] for name in self.parameters]

    def play(self, state):
        """Returns the scalars of every step from this state on, all results of the first step, and the state after the first and
        the last."""
        scalars, outputs = [], {}
        for i in range(self.steps):
            leaves, state = self.advance(state, i)
            scalars.append({path: leaf for path, leaf in leaves.items() if leaf.ndim == 0})
            if i == 0:
                outputs, early = leaves, self.replaced_in(state)
        return scalars, outputs, early, self.replaced_in(state)

    def advance(self, state, i):
        """Returns the results of step i from this state, by path, and the state after it."""
        # Donated arrays are deleted by the call.
        got = self.compiled(*self.arguments(jax.tree.map(jnp.copy, state), i))
        leaves = {path: to_numpy(leaf) for path, leaf in by_path({"result": got}).items()}
        return leaves, {**state, **self.step.carry(got)}

    def replaced_in(self, state):
        """Returns the arrays of a state that a step replaces, by path."""
        return {path: to_numpy(leaf) for path, leaf in by_path(state).items() if path in self.replaced}

    def state_of(self, values):
        """Returns the state with these arrays, by path, and the initial ones elsewhere."""

        def leaf(path, initial):
            if path not in values:
                return initial
            if jnp.issubdtype(initial.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(jnp.asarray(values[path]), impl=jax.random.key_impl(initial))
            return jnp.asarray(values[path])

        return {
            name: jax.tree_util.tree_map_with_path(lambda keys, x, name=name: leaf(name + jax.tree_util.keystr(keys), x), tree)
            for name, tree in self.state.items()
        }

    def has_outputs(self):
        """Returns whether the step returns arrays that are not state."""
        state = set(self.replaced.values())
        return any(leaf.ndim and path not in state for path, leaf in self.outputs.items())


def feeds(folder, export, name_of):
    """Writes initial values and data; returns the options that pass them, with the module's names.
    """
    from safetensors.numpy import save_file

    values = {name_of(p): export.initial[p] for p in export.paths if p in export.initial}
    save_file(values, str(folder / "init.safetensors"))
    options = ["--init", folder / "init.safetensors"]
    for i, path in enumerate(p for p in export.paths if p in export.data):
        np.save(folder / f"batch{i}.npy", export.data[path])
        options += ["--batch", f"{name_of(path)}={folder / f'batch{i}.npy'}"]
    return options
