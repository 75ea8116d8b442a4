"""Losses over logits in the spellings that people use: which of them are computed in
slices of rows, and that gradients equal JAX's.

    logits.py fp8-opt fp8-run FOLDER [CASE...]

A case is a step of plain gradient descent whose rate is so large that the update
consists of the gradient. Relative to the gradient of JAX in f64, the norm of the error
is at most twice that of JAX in the step's own types, or 1e-6 of the gradient's norm.
"""

import dataclasses
import pathlib
import re
import sys
from dataclasses import dataclass
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

import fp8_testing as t

t.compile_jax_quickly()

BATCH, SEQUENCE, WIDTH, VOCABULARY = 4, 32, 16, 96
BYTES = 8192
RATE = 2.0**16


@dataclass
class Case:
    """`loss(params, h, labels)` takes activations [batch, sequence, width]; `slices` has the number
    of slices of each op that computes logits (empty: none is sliced)."""

    loss: Callable
    slices: tuple = (8,)
    dtype: str = "float32"
    # The step sums the gradients of two halves of the batch in a loop.
    micro_batches: bool = False
    batch: int = BATCH
    tokens: int = BATCH * SEQUENCE
    vocabulary: int = VOCABULARY
    # The largest size of a slice.
    bytes: int = BYTES
    # Adds results to the step.
    metrics: Callable = lambda params, h, labels: ()


def head(params, h):
    return h @ params["head"].astype(h.dtype)


def optax_loss(params, h, labels):
    return optax.softmax_cross_entropy_with_integer_labels(head(params, h).astype(params["head"].dtype), labels).mean()


def one_hot(params, h, labels):
    return optax.softmax_cross_entropy(head(params, h), jax.nn.one_hot(labels, VOCABULARY, dtype=h.dtype)).mean()


def smoothed(params, h, labels):
    targets = optax.smooth_labels(jax.nn.one_hot(labels, VOCABULARY, dtype=h.dtype), 0.1)
    return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(head(params, h)), axis=-1))


def masked(params, h, labels):
    logits = head(params, h)
    losses = jax.nn.logsumexp(logits, axis=-1) - jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    valid = (labels % 5 != 0).astype(h.dtype)
    return jnp.sum(losses * valid) / jnp.maximum(jnp.sum(valid), 1)


def log_softmax(params, h, labels, rows=slice(None)):
    """The gradient of the labels' log probabilities depends on no logits."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(head(params, h)[:, rows]), labels[:, rows, None], axis=-1))


def focal(params, h, labels):
    """The gradient of a row depends on the loss of the row."""
    loss = optax.softmax_cross_entropy_with_integer_labels(head(params, h), labels)
    return jnp.mean((1 - jnp.exp(-loss)) ** 2 * loss)


def clipped_ratio(params, h, labels):
    """PPO's loss, of probabilities beside those of an older policy."""
    loss = optax.softmax_cross_entropy_with_integer_labels(head(params, h), labels)
    ratio = jnp.exp(-loss - jnp.sin(labels.astype(h.dtype)) + 4)
    return -jnp.mean(jnp.minimum(ratio * jnp.cos(labels), jnp.clip(ratio, 0.8, 1.2) * jnp.cos(labels)))


def z_loss(params, h, labels):
    logits = head(params, h)
    z = jax.nn.logsumexp(logits, axis=-1)
    return jnp.mean(z - jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]) + 1e-2 * jnp.mean(z**2)


def biased(params, h, labels):
    return optax.softmax_cross_entropy_with_integer_labels(head(params, h) + params["bias"], labels).mean()


def transposed(params, h, labels):
    return optax.softmax_cross_entropy_with_integer_labels(jnp.einsum("bsd,vd->bsv", h, params["head"].T), labels).mean()


def vocabulary_first(params, h, labels):
    logits = jnp.einsum("dv,bsd->vbs", params["head"], h)
    return jnp.mean(jax.nn.logsumexp(logits, axis=0) - jnp.take_along_axis(logits, labels[None], axis=0)[0])


def flat_rows(params, h, labels):
    return optax.softmax_cross_entropy_with_integer_labels(head(params, h.reshape(-1, WIDTH)), labels.reshape(-1)).mean()


def flat_logits(params, h, labels):
    return optax.softmax_cross_entropy_with_integer_labels(head(params, h).reshape(-1, params["head"].shape[1]), labels.reshape(-1)).mean()


def flat_after_shift(params, h, labels):
    """Sequence first: the rows of the slice and those of the batch are one dimension."""
    logits = head(params, jnp.swapaxes(h, 0, 1))[:-1].reshape(-1, VOCABULARY)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels.T[1:].reshape(-1)).mean()


def padded(params, h, labels):
    """Each position has the logits of the one before."""
    logits = jax.lax.pad(head(params, h), 0.0, ((0, 0, 0), (1, -1, 0), (0, 0, 0)))
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def soft_capped(params, h, labels):
    return optax.softmax_cross_entropy_with_integer_labels(5 * jnp.tanh(head(params, h) / 5), labels).mean()


def shifted(params, h, labels):
    return optax.softmax_cross_entropy_with_integer_labels(head(params, h)[:, :-1], labels[:, 1:]).mean()


def without_last(params, h, labels):
    return optax_loss(params, h[:, :-3], labels[:, 3:])


def shifted_log_softmax(params, h, labels):
    return log_softmax(params, h, labels, rows=slice(-1))


def shifted_one_hot(params, h, labels):
    logits, targets = head(params, h)[:, :-1], jax.nn.one_hot(labels[:, 1:], VOCABULARY, dtype=h.dtype)
    return optax.softmax_cross_entropy(logits, targets).mean() + 1e-2 * jnp.mean(jax.nn.logsumexp(logits, axis=-1) ** 2)


def after_prompt(params, h, labels):
    """The first tokens have no loss."""
    logits = head(params, h)[:, 9:-1]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels[:, 10:]).mean() + 0.1 * jnp.mean(logits**2)


def largest_after_prompt(params, h, labels):
    return after_prompt(params, h, labels) + 0.1 * jnp.max(head(params, h)[:, 9:-1])


def shifted_perplexity(params, h, labels):
    return jnp.exp(shifted(params, h, labels) / 4)


def binary(params, h, labels):
    targets = (jnp.arange(VOCABULARY) % (labels[..., None] + 2) == 0).astype(h.dtype)
    return optax.sigmoid_binary_cross_entropy(head(params, h), targets).sum(-1).mean()


def chunks(params, h, labels, wrap=jax.checkpoint):
    def one(total, rows):
        return total + optax_loss(params, *rows), None

    return jax.lax.scan(wrap(one), jnp.zeros((), h.dtype), (h.reshape(2, 2, SEQUENCE, WIDTH), labels.reshape(2, 2, SEQUENCE)))[0] / 2


def stacked(params, h, labels):
    return chunks(params, h, labels, wrap=lambda f: f)


def checkpointed(params, h, labels):
    return jax.checkpoint(optax_loss)(params, h, labels)


def two_heads(params, h, labels):
    return optax_loss(params, h, labels) + optax_loss({"head": params["second"]}, h[:, ::-1], (labels + 1) % VOCABULARY)


def accuracy(params, h, labels):
    return (jnp.mean(jnp.argmax(head(params, h), axis=-1) == labels),)


def weighted_by_loss(params, h, labels):
    loss = optax_loss(params, h, labels)
    return loss * loss


def perplexity(params, h, labels):
    return jnp.exp(optax_loss(params, h, labels) / 4)


def relative_to_largest(params, h, labels):
    """The gradients of all rows depend on the largest logit. It reads normalized activations, which are no smaller than the
    logits of a small vocabulary."""
    logits = head(params, h * jax.lax.rsqrt(jnp.mean(h * h, axis=-1, keepdims=True)))
    logits = logits / (1 + jax.lax.stop_gradient(jnp.max(jnp.abs(logits))))
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def preferences(params, h, labels):
    """DPO's loss: the first half of the sequences is preferred to the second."""
    of_tokens = -optax.softmax_cross_entropy_with_integer_labels(head(params, h), labels)
    better, worse = jnp.split(of_tokens.sum(-1), 2)
    return -jax.nn.log_sigmoid(0.05 * (better - worse)).mean()


def sorted_logits(params, h, labels):
    logits = head(params, h)
    return jnp.mean(jnp.sort(logits, axis=-1)[..., -3:]) - jnp.mean(jnp.take_along_axis(logits, labels[..., None], axis=-1))


CASES = {
    "optax": Case(optax_loss),
    "one-hot labels": Case(one_hot),
    "smoothed labels": Case(smoothed),
    "log-softmax": Case(log_softmax),
    "masked mean": Case(masked),
    "focal": Case(focal),
    "clipped ratio": Case(clipped_ratio),
    "z-loss": Case(z_loss),
    "bias": Case(biased),
    "transposed weight": Case(transposed),
    "vocabulary first": Case(vocabulary_first),
    "flat rows": Case(flat_rows),
    # The rows of a token are not contiguous, so that slices are of the batch.
    "flat logits": Case(flat_logits, (4,)),
    # A prime number of sequences and a large weight: one of zeros is added.
    "flat logits, odd batch": Case(flat_logits, (3,), batch=17, tokens=17 * 48, vocabulary=20000),
    "flat after a shift": Case(flat_after_shift),
    "flat after a shift, one row": Case(flat_after_shift, batch=1),
    "padded": Case(padded, (4,)),
    "padded, one row": Case(padded, (), batch=1),
    "soft cap": Case(soft_capped),
    "shifted": Case(shifted, (4,)),
    # The slices of the batch are too large.
    "shifted, one row": Case(shifted, batch=1),
    "shifted, log-softmax, one row": Case(shifted_log_softmax, batch=1),
    "shifted, one-hot, one row": Case(shifted_one_hot, batch=1),
    "after a prompt, one row": Case(after_prompt, batch=1),
    # The maximum, how many logits equal it, and its gradient follow one another.
    "largest after a prompt, one row": Case(largest_after_prompt, (8, 8, 8), batch=1),
    "perplexity of shifted, one row": Case(shifted_perplexity, (8, 8), batch=1),
    # A prime number of rows, and a large weight, for which the loop needs slices of 256 rows.
    "without the last row": Case(without_last, (2,), batch=1, tokens=512, vocabulary=20000),
    "binary": Case(binary),
    "micro-batches": Case(optax_loss, (4,), micro_batches=True),
    # Slices in the forward pass and in the backward pass.
    "recomputed": Case(checkpointed, (8, 8)),
    "chunks": Case(chunks, (4, 4)),
    "two heads": Case(two_heads, (8, 8)),
    "accuracy": Case(optax_loss, metrics=accuracy),
    "bf16": Case(optax_loss, dtype="bfloat16"),
    # The gradient of each row depends on the loss of all rows: a second loop computes the logits again.
    "weighted by the loss": Case(weighted_by_loss, (8, 8)),
    "perplexity": Case(perplexity, (8, 8)),
    "preferences": Case(preferences, (8, 8)),
    # Slices for the largest logit are of the vocabulary.
    "relative to the largest, small vocabulary": Case(relative_to_largest, (64, 32), vocabulary=64, bytes=256),
    # Sorting needs whole tensors.
    "sorted": Case(sorted_logits, ()),
    # The loop stores all logits for the backward pass.
    "stacked": Case(stacked, ()),
}


def make_step(case):
    def loss(params, x, labels):
        compute = x.dtype if case.dtype == "float32" else case.dtype
        h = jnp.sin(x.astype(compute) @ params["in"].astype(compute))
        return case.loss(params, h, labels), case.metrics(params, h, labels)

    differentiate = jax.value_and_grad(loss, has_aux=True)

    def in_halves(params, x, labels):
        halves = jax.tree.map(lambda a: a.reshape(2, BATCH // 2, *a.shape[1:]), (x, labels))
        add = lambda sums, rows: (jax.tree.map(jnp.add, sums, differentiate(params, *rows)), None)
        zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(differentiate, params, *jax.tree.map(lambda a: a[0], halves)))
        return jax.tree.map(lambda a: a / 2, jax.lax.scan(add, zeros, halves)[0])

    def step(params, x, labels):
        (value, metrics), gradients = (in_halves if case.micro_batches else differentiate)(params, x, labels)
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), value, metrics

    return step


def make_inputs(random, case):
    weight = lambda *shape: (random.standard_normal(shape) * 0.5).astype(np.float32)
    params = {"in": weight(WIDTH, WIDTH), "head": weight(WIDTH, case.vocabulary), "second": weight(WIDTH, VOCABULARY), "bias": weight(VOCABULARY)}
    x = random.standard_normal((case.batch, case.tokens // case.batch, WIDTH)).astype(np.float32)
    return params, x, random.integers(0, case.vocabulary, x.shape[:2]).astype(np.int32)


def gradients_of(before, after):
    return {key: (np.float64(before[key]) - np.float64(after[key])) / RATE for key in before}


def norm(tree):
    return float(np.sqrt(sum(np.sum(a**2) for a in tree.values())))


def distance(a, b):
    return norm({key: a[key] - b[key] for key in a})


def slices_of(fp8_opt, path, rows, limit):
    """Returns the numbers of slices, and whether a tensor as large as the logits is left. Slices are part of their layer."""
    done = t.run([fp8_opt, "--fp8-import", f"--fp8-quantize=recipe=none set=compute.logits_bytes={limit} emit-remarks", "--canonicalize", path])
    whole = re.search(rf"= (?!stablehlo.constant).*-> tensor<({rows}|{BATCH * SEQUENCE})x{VOCABULARY}xf32>|: tensor<{rows}x{VOCABULARY}xf32>", done.stdout)
    assert "not a linear layer" not in done.stderr, f"expected dots of layers but got {done.stderr}"
    return tuple(int(n) for n in re.findall(r"logits are computed in (\d+) slices", done.stderr)), whole and whole[0]


def check(name, fp8_opt, fp8_run, folder):
    case, (params, x, labels) = CASES[name], make_inputs(np.random.default_rng(len(name)), CASES[name])
    folder = folder / name.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    step = make_step(case)
    jitted = jax.jit(step, keep_unused=True)
    expected = gradients_of(params, jitted(params, x, labels)[0])
    with jax.enable_x64(True):
        wide = jax.tree.map(np.float64, params)
        exact = gradients_of(wide, jax.jit(make_step(dataclasses.replace(case, dtype="float32")))(wide, np.float64(x), labels)[0])
    path = folder / "step.mlir"
    path.write_text(jitted.lower(params, x, labels).as_text(debug_info=True))
    found, whole = slices_of(fp8_opt, path, f"{x.shape[0]}x{x.shape[1]}", case.bytes)
    assert found == case.slices, f"expected {case.slices} slices but got {found}"
    assert not (case.slices and whole), f"expected no tensor as large as the logits but got {whole}"
    t.save_tree(folder / "in.safetensors", params=params, x=x, labels=labels)
    moved = {}
    for threads in (1, 3):
        out = folder / f"out{threads}.safetensors"
        t.run([fp8_run, path, "--entry", "main", "--inputs", folder / "in.safetensors", "--outputs", out, "--recipe", "none",
               "--set", f"compute.logits_bytes={case.bytes}", "--threads", threads])  # fmt: skip
        after = t.load_tensors(out)
        moved[threads] = gradients_of(params, {key: after[f"result[0]['{key}']"] for key in params})
    assert all(np.array_equal(moved[1][key], moved[3][key]) for key in params), "expected bits that do not depend on threads"
    ours, theirs, size = distance(moved[1], exact), distance(expected, exact), norm(exact)
    print(f"  {name}: {ours / size:.2e} of the gradient beside {theirs / size:.2e} of JAX")
    limit = max(2 * theirs, 1e-6 * size)
    assert ours <= limit, f"expected an error of at most {limit / size:.3g} but got {ours / size:.3g}"
    for i, metric in enumerate(jitted(params, x, labels)[2]):
        assert (got := after[f"result[2][{i}]"]) == metric, f"expected {metric} but got {got}"


if __name__ == "__main__":
    fp8_opt, fp8_run, folder, names = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
    t.run_cases({name: (lambda fixture, name=name: check(name, *fixture)) for name in CASES}, names, (fp8_opt, fp8_run, folder))
