"""The choices of a draw. Each is drawn independently from a hash of the seed
and its name, so that one can be overridden without changing the others."""

import hashlib
import types

# The first option of each is the simplest, to which a reduction goes. The number
# is how many times more often it is drawn than each of the others.
CHOICES = {
    "task": (["supervised", "byol", "td3", "gan", "distill"], 10),
    "model": (["dense", "transformer", "conv", "encdec", "rnn", "ssm"], 1),
    "depth": ([2, 1, 3, 4], 1),
    "spelling": (["unrolled", "scan", "nested", "fori", "index", "dynamic_index", "unrolled_scan"], 2),
    "remat": (["none", "full", "dots_saveable", "dots_with_no_batch_dims_saveable", "everything_saveable"], 3),
    "micro": (["none", "scan", "unrolled", "updates", "epochs"], 3),
    "dtype": (["f32", "cast_inside", "cast_outside", "masters", "all_bf16"], 4),
    "transform": (["none", "half", "transposed", "mask", "weight_norm", "round_trip", "lora", "lora_parallel"], 5),
    "transform_at": (["layer", "step"], 1),
    "frozen": (["none", "stop", "argument", "returned", "optimizer"], 5),
    "share": (["none", "layers"], 6),
    "activation": (["relu", "gelu", "silu", "tanh", "relu2"], 1),
    "gated": (["none", "fused", "separate"], 1),
    "norm": (["none", "rms", "layer"], 1),
    "residual": (["yes", "no"], 3),
    "bias": (["no", "yes"], 1),
    "ffn": (["mlp", "moe_dense", "moe_sorted"], 3),
    "attention": (["mha", "gqa", "mqa", "mla"], 1),
    "position": (["learned", "rope"], 1),
    "cell": (["vanilla", "gru", "lstm"], 1),
    "ssm": (["scan", "associative", "gated"], 1),
    "tied": (["no", "yes"], 1),
    "heads": (["one", "two"], 3),
    "loss": (["ce", "mse", "smooth", "z", "masked", "huber"], 2),
    "dropout": (["none", "key"], 4),
    "optimizer": (None, 1),
    "wrap": (["none", "multi_steps", "apply_if_finite", "masked", "partition", "inject", "lookahead", "chain_decay", "named_chain"], 6),
    "clip": (["none", "global_norm", "adaptive", "block_rms", "value"], 4),
    "schedule": (["constant", "warmup"], 2),
    "scaling": (["none", "static", "dynamic"], 4),
    "ema": (["none", "plain", "warm", "read"], 5),
    "metrics": (["loss", "dict", "many"], 1),
    "container": (["arguments", "tuple", "dict", "dataclass", "namedtuple", "leaves"], 2),
    "arguments": (["state_first", "batch_first", "permuted"], 1),
    "results": (["state_first", "metrics_first", "permuted", "dict"], 1),
    "donate": (["no", "yes"], 1),
    "debug": (["yes", "no", "stripped"], 1),
    "logits": (["whole", "sliced"], 2),
    "recipe": (["tensorwise", "fp8", "rowwise", "blockwise", "mxfp8", "delayed", "fp8_lm", "scaling_fp8", "coat", "switchback", "rowwise_gw_hp", "bf16"], 1),
}


def register(name, options):
    CHOICES[name] = (list(options), CHOICES[name][1])


def number(seed, *names):
    """A number that depends on these and nothing else."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def draw(seed, fixed=None):
    drawn = {}
    for name, (options, weight) in CHOICES.items():
        if len(options) > 20:
            # Each option once in as many draws as there are options.
            block, at = divmod(seed, len(options))
            drawn[name] = sorted(options, key=lambda option: number(block, name, option))[at]
            continue
        at = number(seed, name) % (len(options) + weight - 1)
        drawn[name] = options[max(0, at - weight + 1)]
    for name, value in (fixed or {}).items():
        assert name in CHOICES, f"expected a choice of {sorted(CHOICES)} but got {name}"
        options = CHOICES[name][0]
        texts = [str(o) for o in options]
        assert str(value) in texts, f"expected {name} to be one of {texts} but got {value}"
        drawn[name] = options[texts.index(str(value))]
    return drawn


def simplest(name):
    return CHOICES[name][0][0]


def reads(c):
    """Returns the choices that this draw's model and task use."""
    model = c["model"]
    attends = model in ("transformer", "encdec")
    unread = set()
    if model == "conv":
        unread |= {"gated", "ffn"}
    if model in ("rnn",):
        unread |= {"gated", "ffn", "activation", "norm", "residual"}
    if not attends:
        unread |= {"attention", "position", "tied"}
    if model != "rnn":
        unread.add("cell")
    if model != "ssm":
        unread.add("ssm")
    if c["transform"] == "none" or c["transform"] == "lora_parallel":
        unread.add("transform_at")
    if c["task"] in ("byol", "td3", "gan"):
        unread |= {"loss", "heads"}
    return [name for name in CHOICES if name not in unread]


def settle(c):
    """Returns the choices with conflicts resolved:

    - An unused choice (the attention of an MLP) takes its simplest option.
    - Several whole updates a call, dynamic loss scaling and lookahead around
      another optimizer require a single player.
    - Optimizers that search for a step with the objective (line searches, L-BFGS)
      use the objective itself: no micro-batches and no scaled loss. They are not
      wrapped, since wrappers drop or delay their extra arguments.
    - GaLore does not support trees in two parts, lookahead no bf16 weights, and
      adaptive clipping no kernels stacked twice.
    - Hand-written algorithms update parameters themselves: no optax wrapper
      applies.
    - Shared layers have a single set of weights, which cannot be stacked.
    """
    from . import optimizers

    c = types.SimpleNamespace(**{name: c[name] if name in reads(c) else simplest(name) for name in c})
    if c.spelling == "nested":
        c.depth = 4
    # Unrolled attention takes long to compile, especially in JAX.
    if c.model in ("transformer", "encdec") and c.spelling in ("unrolled", "unrolled_scan"):
        c.depth = min(c.depth, 1 if c.micro == "unrolled" else 2)
    if c.share == "layers" and c.spelling != "unrolled":
        c.spelling = "scan"
    if c.task != "supervised":
        c.ema = "none"
        c.micro = "none" if c.micro in ("updates", "epochs") else c.micro
        c.scaling = "none" if c.scaling == "dynamic" else c.scaling
        c.frozen = "none" if c.frozen in ("optimizer",) else c.frozen
    if c.task == "gan" or c.task == "td3":
        c.frozen = "none"
    if optimizers.by_hand(c.optimizer):
        c.wrap = c.clip = "none"
        c.schedule = "constant"
        if c.frozen == "optimizer":
            c.frozen = "stop"
    if optimizers.searches(c.optimizer):
        c.micro = "none" if c.micro not in ("updates", "epochs") else c.micro
        c.wrap = c.clip = c.scaling = "none"
        c.schedule = "constant"
        if c.frozen == "optimizer":
            c.frozen = "stop"
        # A search contains the objective several times.
        if c.model in ("transformer", "encdec") and c.spelling in ("unrolled", "unrolled_scan"):
            c.depth = 1
    if c.clip == "adaptive" and c.model == "conv" and c.spelling == "nested":
        c.clip = "global_norm"
    if c.frozen == "optimizer" and c.wrap in ("partition", "lookahead"):
        c.wrap = "none"
    # GaLore maps trees with None as leaves, which a tree in two parts has.
    if c.optimizer == "galore" and c.frozen in ("argument", "returned"):
        c.frozen = "stop"
    # Its distances are bf16 before the first step and f32 after it.
    if c.optimizer == "distance_over_gradients" and c.dtype == "all_bf16":
        c.dtype = "masters"
    # Adafactor's momentum is f32 and so are its updates, which apply_if_finite selects from.
    if c.optimizer == "adafactor_momentum" and c.dtype == "all_bf16" and c.wrap == "apply_if_finite":
        c.wrap = "none"
    # lookahead's parameters are a pair, made from f32 parameters.
    if c.wrap == "lookahead" and (c.dtype in ("masters", "all_bf16") or c.task != "supervised"):
        c.wrap = "none"
    return c


def short(c):
    """Returns the choices that are not the simplest, as options."""
    return " ".join(f"{k}={v}" for k, v in c.items() if v != simplest(k))
