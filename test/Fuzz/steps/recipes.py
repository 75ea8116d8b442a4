"""Random recipes: every key of docs/Recipes.md, drawn from a seed. A recipe is a dictionary from dotted keys to values; a
key that it lacks has its default."""

import json
import math
import re
import types

from .choices import number

# The options of each key and how many times more often the default, which leaves the key out, is drawn than each of them.
OPERAND = {
    "format": (["f8E4M3FN", "f8E4M3FN", "f8E5M2", "f8E4M3", "f8E4M3FNUZ", "f8E5M2FNUZ"], 0),
    "tile": (["tensor", "row", "1x128", "128x128", "1x32"], 2),
    "scale": (["exact", "pow2", "ocp_floor"], 1),
    "margin": ([0, 1, 2, 16], 16),
    "rounding": (["nearest_even", "stochastic"], 3),
    "overflow": (["saturate", "nan"], 4),
    "scaling": (["current", "delayed"], 1),
    "history": ([1, 2, 3, 1024], 1),
    "algorithm": (["max", "most_recent"], 1),
    "initial": (["current", "one"], 6),
}
STORED = {
    "format": (["f32", "bf16", "f16", "f8E4M3FN", "f8E5M2"], 0),
    "tile": (["none", "tensor", "1x128"], 1),
    "scale": (["exact", "pow2"], 2),
    "margin": ([0, 1, 2, 16], 20),
    "rounding": (["nearest_even", "stochastic"], 1),
    "scaling": (["current", "delayed"], 1),
    "history": ([1, 2, 5], 1),
    "algorithm": (["max", "most_recent"], 1),
    "expand": (["false", "true"], 1),
}
ACCUMULATOR = {"bits": ([14, 32], 6), "promote": ([0, 32, 64, 128, 256], 2)}
DOTS = {"forward": ("activation", "weight"), "dgrad": ("gradient", "weight"), "wgrad": ("activation", "gradient")}
ARRAYS = ["optimizer.moment1", "optimizer.moment2", "optimizer.master", "gradients"]
SMOOTH = {key: OPERAND[key] for key in ("margin", "scaling", "history", "algorithm", "initial")} | {"scale": (["pow2", "exact"], 1)}
OTHERS = {
    "wgrad.copy": (["saved", "recomputed", "requantized"], 1),
    "compute.unquantized_dots": (["f32", "bf16"], 1),
    "compute.attention": (["same", "f32", "bf16", "f8"], 2),
    "compute.saved": (["f32", "bf16"], 1),
    "compute.saved_norms": (["same", "f8E4M3FN", "f8E5M2"], 2),
    "compute.saved_gated": (["same", "f8E4M3FN", "f8E5M2"], 2),
    "compute.logits_bytes": ([0, 64, 256, 16777216], 3),
    "optimizer.min_elements": ([0, 100, 300], 0),
    "optimizer.keep": ([["*"], ["*'up'*"], ["*1*", "?*"]], 30),
    "optimizer.clip_update": (["false", "true"], 3),
    "all_reduce.format": (["none", "bf16", "f8E4M3FN", "f8E5M2"], 3),
    "all_reduce.tile": (["tensor", "1x128"], 1),
    "weight_copies": (["step", "state"], 1),
    "seed": ([0, 7, 2**63 - 1], 3),
}
CONDITIONS = {
    "part": (["head", "linear"], 1),
    "role": (["forward", "dgrad", "wgrad"], 1),
    "path": (["*", "?*", "*1*", "*'up'*"], 12),
    "layers": ([[0], [1, 3]], 60),
    "first": ([1, 2], 60),
    "last": ([1, 2], 60),
    **{f"{side}_{size}": ([1, 16, 24, 64], 60) for size in "mnk" for side in ("min", "max")},
}


# Keys without which a recipe's losses are near JAX's. Most recipes lack them.
COARSE = re.compile(r"optimizer\.(master|moment2)\.|optimizer\.moment1\.scaling: delayed|.*\.(margin: 16|initial: one|overflow: nan)")


def pick(seed, key, options, weight):
    """Returns one of the options, or None for the default."""
    at = number(seed, "recipe", key) % (len(options) + weight)
    return options[at] if at < len(options) else None


def some(seed, prefix, table):
    """Returns those of a table's keys that are drawn, with a prefix."""
    drawn = {prefix + key: pick(seed, prefix + key, *table[key]) for key in table}
    return {key: value for key, value in drawn.items() if value is not None}


def rules(seed):
    """Returns up to three rules. The last ones may match nothing that is left, which is an error."""
    drawn = []
    for i in range(number(seed, "rules") % 9 % 6 % 4):
        conditions = some(seed, f"{i}.", CONDITIONS)
        if conditions:
            drawn.append({pick(seed, f"verb {i}", ["keep", "quantize"], 0): {key[2:]: value for key, value in conditions.items()}})
    return drawn


def draw(seed):
    """Returns a recipe, in nine of ten draws a legal one, in two of three one whose losses can be compared. Operands are often equal, so that dots share payloads: all of
    them, or all that are of one kind."""
    recipe, alike = some(seed, "", OTHERS), number(seed, "alike") % 4
    for dot, operands in DOTS.items():
        if number(seed, dot) % 8 == 0:
            recipe = {key: value for key, value in recipe.items() if not key.startswith(dot)}
            continue
        recipe |= some(seed, f"{dot}.accumulator.", ACCUMULATOR)
        for operand in operands:
            source = [f"{dot}.{operand}", operand, "all", operand][alike]
            recipe |= {f"{dot}.{operand}.{key[len(source) + 1:]}": value for key, value in some(seed, f"{source}.", OPERAND).items()}
    for array in ARRAYS:
        if number(seed, array) % 2:
            recipe |= some(seed, f"{array}.", STORED)
    if number(seed, "smooth") % 2:
        recipe |= {"smooth_swiglu.granularity": pick(seed, "granularity", ["none", "channel", "token"], 0)} | some(seed, "smooth_swiglu.", SMOOTH)
    if rules(seed):
        recipe["rules"] = rules(seed)
    if number(seed, "fine") % 3:
        recipe = {key: value for key, value in recipe.items() if not COARSE.match(f"{key}: {value}")}
    return recipe if number(seed, "illegal") % 10 == 0 else legal(recipe)


# ------------------------------------------------------------------- what is legal


def operand_errors(recipe, at):
    """Yields what an operand's keys contradict, each as the keys that must change to be legal."""
    get = lambda key, default: recipe.get(f"{at}.{key}", default)
    delayed, tile = get("scaling", "current") == "delayed", get("tile", "tensor")
    if not delayed and any(f"{at}.{key}" in recipe for key in ("history", "algorithm", "initial")):
        yield {f"{at}.{key}": None for key in ("history", "algorithm", "initial")}
    if delayed and tile != "tensor":
        yield {f"{at}.scaling": None}
    if tile == "1x32" and get("scale", "exact") == "exact":
        yield {f"{at}.scale": "pow2"}
    if tile == "1x32" and get("format", "") not in ("f8E4M3FN", "f8E5M2"):
        yield {f"{at}.format": "f8E4M3FN"}


def stored_errors(recipe, at):
    get = lambda key, default: recipe.get(f"{at}.{key}", default)
    form, delayed = get("format", "f32"), get("scaling", "current") == "delayed"
    tile = get("tile", "tensor" if form.startswith("f8") else "none")
    if tile not in {"f32": ["none"], "bf16": ["none"], "f16": ["none", "tensor"]}.get(form, ["tensor", "1x128"]):
        yield {f"{at}.tile": None}
    elif tile == "none" and any(f"{at}.{key}" in recipe for key in ("scale", "margin", "scaling")):
        yield {f"{at}.{key}": None for key in ("scale", "margin", "scaling")}
    if form == "f32" and get("rounding", "") == "stochastic":
        yield {f"{at}.rounding": None}
    if not delayed and any(f"{at}.{key}" in recipe for key in ("history", "algorithm")):
        yield {f"{at}.{key}": None for key in ("history", "algorithm")}
    if delayed and (tile != "tensor" or at == "gradients"):
        yield {f"{at}.scaling": None}
    if get("expand", "") == "true" and (tile != "1x128" or get("scale", "exact") != "exact"):
        yield {f"{at}.expand": None}
    if at == "gradients" and tile == "1x128":
        yield {f"{at}.tile": None}


RUN = {"1x128": 128, "128x128": 128, "1x32": 32}


def other_errors(recipe):
    for dot, operands in DOTS.items():
        if any(key.startswith(f"{dot}.") for key in recipe):
            yield from ({f"{dot}.{operand}.format": "f8E4M3FN"} for operand in operands if f"{dot}.{operand}.format" not in recipe)
        run = math.gcd(*(RUN.get(recipe.get(f"{dot}.{operand}.tile"), 0) for operand in operands))
        promote = recipe.get(f"{dot}.accumulator.promote", 0)
        if recipe.get(f"{dot}.accumulator.bits") == 14 and promote and run % promote:
            yield {f"{dot}.accumulator.promote": None}
    form = recipe.get("all_reduce.format")
    if form in (None, "none", "bf16") and "all_reduce.tile" in recipe:
        yield {"all_reduce.tile": None}
    if "smooth_swiglu.granularity" not in recipe and any(key.startswith("smooth_swiglu.") for key in recipe):
        yield {"smooth_swiglu.granularity": "none"}
    if recipe.get("smooth_swiglu.granularity") == "none" and any(f"smooth_swiglu.{key}" in recipe for key in SMOOTH):
        yield {f"smooth_swiglu.{key}": None for key in SMOOTH}
    if recipe.get("smooth_swiglu.scaling") != "delayed" and any(f"smooth_swiglu.{key}" in recipe for key in ("history", "algorithm", "initial")):
        yield {f"smooth_swiglu.{key}": None for key in ("history", "algorithm", "initial")}
    weights = [f"{dot}.weight" for dot in ("forward", "dgrad") if f"{dot}.weight.format" in recipe]
    delayed = lambda at: recipe.get(f"{at}.scaling") == "delayed" and recipe.get(f"{at}.rounding") != "stochastic"
    fits = lambda at: delayed(at) and recipe[f"{at}.format"] in ("f8E4M3FN", "f8E5M2")
    if recipe.get("weight_copies") == "state" and not (weights and all(map(fits, weights))):
        yield {"weight_copies": None}


def errors(recipe):
    """Yields the contradictions that docs/Recipes.md forbids, each as the keys that must change."""
    for dot, operands in DOTS.items():
        for operand in operands:
            yield from operand_errors(recipe, f"{dot}.{operand}")
    for array in ARRAYS:
        yield from stored_errors(recipe, array)
    yield from other_errors(recipe)


def legal(recipe):
    """Returns the recipe without its contradictions."""
    while change := next(errors(recipe), None):
        recipe = {key: value for key, value in (recipe | change).items() if value is not None}
    return recipe


# ------------------------------------------------------------------- what it means

BITS = {"f8E5M2": 3, "f8E5M2FNUZ": 3, "bf16": 8, "f16": 11, "f32": 24}


def traits(recipe):
    """Returns what the checks need to know of a recipe:

    - `stored`: it stores state in few bits; `delayed`: it has delayed scales.
    - `bits`: the significant bits of its narrowest operand, with the leading one.
    - `coarse`: why its losses need not be near JAX's: room that flushes most values to zero, a first scale of one, weights
      that lose updates, second moments that are flushed to zero.
    - `unstable`: why it may even end without a finite loss.
    - `slices`: it may compute logits in slices.
    """
    value = lambda end: [recipe[key] for key in recipe if key.endswith(end) and not key.startswith("all_reduce")]
    master, second = recipe.get("optimizer.master.format", "f32"), recipe.get("optimizer.moment2.format", "f32")
    delayed = "delayed" in value(".scaling")
    unstable = ["second moments" for _ in [0] if second.startswith("f8")]
    unstable += ["delayed moments" for array in ARRAYS if recipe.get(f"{array}.scaling") == "delayed"]
    unstable += ["NaN where values overflow" for _ in [0] if "nan" in value(".overflow") and (delayed or "ocp_floor" in value(".scale"))]
    coarse = [*unstable, *("margin" for margin in value(".margin") if margin > 2), *("initial" for initial in value(".initial") if initial == "one")]
    coarse += ["master" for _ in [0] if master != "f32"] + ["second moments" for _ in [0] if second != "f32"]
    bits = [BITS.get(form, 4) for key, form in recipe.items() if re.fullmatch(r"\w+\.(activation|weight|gradient)\.format|gradients\.format", key)]
    stored = any(recipe.get(f"{array}.format", "f32") != "f32" for array in ARRAYS[:3])
    return types.SimpleNamespace(stored=stored, delayed=delayed, bits=min(bits, default=8), coarse=coarse, unstable=unstable, slices="compute.logits_bytes" in recipe)


def twins(recipe):
    """Yields recipes that must give the same bits, by name."""
    # If masters are stored in few bits, a copy that is state is made from the value before it is rounded.
    if recipe.get("weight_copies") == "state" and recipe.get("optimizer.master.format", "f32") == "f32":
        yield "step", recipe | {"weight_copies": "step"}
    copied = "wgrad.activation.format" in recipe and "stochastic" not in (recipe.get("wgrad.activation.rounding"), recipe.get("forward.activation.rounding"))
    saves = [recipe.get("compute.saved", "f32"), recipe.get("compute.saved_norms", "same"), recipe.get("compute.saved_gated", "same")]
    if copied and saves == ["f32", "same", "same"] and recipe.get("wgrad.copy") == "recomputed":
        yield "saved", recipe | {"wgrad.copy": "saved"}


# ------------------------------------------------------------------------- as text


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return str(value) if re.fullmatch(r"\w+", str(value)) else json.dumps(value)


def text(recipe):
    """Returns the recipe as YAML."""
    tree = {"name": "random"}
    for key, value in recipe.items():
        *above, last = key.split(".")
        inner = tree
        for name in above:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return "".join(f"{key}: {flow(value)}\n" for key, value in tree.items())


def smaller(recipe):
    """Yields recipes that lack a part of this one: a whole dot or array first, then single keys, rules and conditions."""
    for prefix in [*DOTS, "optimizer", "compute", "smooth_swiglu", "gradients", "all_reduce", *ARRAYS, *(f"{dot}.accumulator" for dot in DOTS)]:
        yield {key: value for key, value in recipe.items() if not key.startswith(f"{prefix}.")}
    for name in recipe:
        yield {key: value for key, value in recipe.items() if key != name}
        if re.search(r"(activation|weight|gradient)\.format$", name):
            yield recipe | {name: "f8E4M3FN"}
    for i, rule in enumerate(recipe.get("rules", [])):
        others = recipe["rules"][:i], recipe["rules"][i + 1 :]
        yield recipe | {"rules": [*others[0], *others[1]]}
        for verb, conditions in rule.items():
            for name in conditions:
                yield recipe | {"rules": [*others[0], {verb: {key: value for key, value in conditions.items() if key != name}}, *others[1]]}
