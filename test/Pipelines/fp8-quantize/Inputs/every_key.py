"""Each change of a recipe's key changes the IR, and each changes it in another way.
Usage: every_key.py FP8_OPT STEP.mlir"""

import subprocess
import sys

OPT, STEP = sys.argv[1:]
OPERANDS = [
    f"{dot}.{operand}"
    for dot, operands in {
        "forward": ("activation", "weight"),
        "dgrad": ("gradient", "weight"),
        "wgrad": ("activation", "gradient"),
    }.items()
    for operand in operands
]


def apply(recipe, *settings):
    options = " ".join([f"recipe={recipe}", *(f"set={s}" for s in settings)])
    return subprocess.run([OPT, STEP, f"--fp8-quantize={options}"], capture_output=True, text=True)


def quantized(recipe, *settings):
    result = apply(recipe, *settings)
    assert result.returncode == 0, f"{recipe} {settings}: {result.stderr}"
    return result.stdout


seen = {}


def changes(recipe, *settings):
    """Checks that these settings give an IR that no other settings give."""
    text = quantized(recipe, *settings)
    assert text not in seen, f"{recipe} {settings} does the same as {seen.get(text)}"
    seen[text] = (recipe, *settings)


changes("tensorwise")
for operand in OPERANDS:
    # The recipe's own format is left out.
    formats = {"f8E4M3FN", "f8E5M2", "f8E4M3", "f8E4M3FNUZ", "f8E5M2FNUZ"}
    formats -= {"f8E5M2" if operand.endswith("gradient") else "f8E4M3FN"}
    for value in sorted(formats):
        changes("tensorwise", f"{operand}.format={value}")
    for setting in ("tile=row", "tile=1x128", "tile=128x128", "scale=pow2", "scale=ocp_floor", "margin=1",
                    "rounding=stochastic", "overflow=nan"):
        changes("tensorwise", f"{operand}.{setting}")
for dot in ("forward", "dgrad", "wgrad"):
    changes("tensorwise", f"{dot}=none")
    changes("tensorwise", f"{dot}.accumulator.bits=14")
    changes("tensorwise", f"{dot}.accumulator.promote=128")
changes("tensorwise", "compute.unquantized_dots=f32")
for value in ("f32", "f8"):
    changes("tensorwise", f"compute.attention={value}")
changes("tensorwise", "compute.saved=f32")
changes("tensorwise", "rules=[]")
changes("tensorwise", "dgrad.gradient.rounding=stochastic", "seed=7")
for recipe in ("fp8", "rowwise", "rowwise_gw_hp", "switchback", "blockwise", "mxfp8", "bf16", "none"):
    changes(recipe)
changes("rowwise", "wgrad.copy=recomputed")
changes("rowwise", "wgrad.copy=requantized")
changes("mxfp8", "forward.weight.scale=ocp_floor")

# The keys of delayed scaling.
for recipe in ("delayed", "scaling_fp8", "fp8_lm"):
    changes(recipe)
for setting in ("history=16", "algorithm=most_recent", "initial=one", "margin=1", "scale=pow2", "scaling=current"):
    changes("delayed", f"forward.activation.{setting}")
changes("delayed", "weight_copies=state")

# Every printed recipe is read back as the same recipe.
names = subprocess.run([OPT, STEP, "--fp8-quantize=recipe=?"], capture_output=True, text=True).stderr
for recipe in names.split("valid recipes: ")[1].split(", or")[0].split(", "):
    options = f"recipe={recipe} print-recipe"
    printed = subprocess.run([OPT, STEP, f"--fp8-quantize={options}", "-o", "/dev/null"], capture_output=True, text=True)
    file = f"{recipe}.printed.yaml"
    with open(file, "w") as out:
        out.write(printed.stdout)
    again = subprocess.run([OPT, STEP, f"--fp8-quantize=recipe={file} print-recipe", "-o", "/dev/null"],
                           capture_output=True, text=True)
    assert printed.stdout.startswith(f"name: {recipe}\n") and again.stdout == printed.stdout, (
        f"{recipe}: {printed.stdout}\nread back as\n{again.stdout}{again.stderr}")
