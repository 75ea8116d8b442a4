"""The bytes that ranks send as --report-cost predicts them, for Llamas of 7 to 175 G parameters of which only shapes exist, compared with a count by hand
and with FP8-LM's Table 5 (arXiv 2310.18313).

    communication.py FP8_OPT FOLDER [CASE...]

The paper's models have 12 d^2 parameters a layer, as a Llama with f = 8/3 d has, and 50,257 tokens. A GPU holds a share of them. Here the share of 2
tensor-parallel ranks is half of the layers, which has as many bytes, and that of 8 x 4 tensor- and pipeline-parallel ranks is 3 of 96 layers and an eighth
of both tables.
"""

import json
import sys
from pathlib import Path

import fp8_testing as t
import jax

import export  # isort: skip (fp8_testing knows where)

# The layers, width and fraction of the tables of a GPU's share; the data-parallel ranks; the GiB that a
# GPU sends in BF16 and in FP8.
PAPER = {
    "7B": (32, 4096, 1, 32, 37.2, 13.9),
    "13B": (20, 5120, 2, 16, 34.3, 12.4),
    "175B": (3, 12288, 8, 4, 23.4, 8.2),
}
TOKENS = 50304  # rounded up to a multiple of 64


def write_step(folder, **config):
    """Writes the step; returns its path and its numbers of parameters in layers and in tables."""
    cfg = export.Config(**config)
    _, step, _ = export.make_functions(cfg)
    _, params, opt_state, tokens = export.example_arguments(cfg)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "step.mlir"
    path.write_text(jax.jit(step, donate_argnums=(0, 1)).lower(params, opt_state, tokens).as_text(debug_info=True))
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    tables = params["embed"].size + params["head"].size
    return path, count - tables, tables


def sent(fp8_opt, path, ranks, recipe, zero):
    """Returns the bytes that a rank sends in a step: the total, that for each parameter, and those for the two tables."""
    options = f"card=h100 network=infiniband-hdr ranks={ranks} recipe={recipe} zero={zero} json"
    report = json.loads(t.run([fp8_opt, f"--report-cost={options}", path, "-o", "/dev/null", "--verify-each=0"]).stdout)["communication"]
    assert report["ranks"] == ranks and report["network"] == "infiniband-hdr"
    collectives = report["collectives"]
    bytes_of = lambda rows: sum(row["runs"] * row["bytes"] for row in rows)
    # Each row has whole bytes.
    assert abs(bytes_of(collectives) - report["bytes"]) <= sum(row["runs"] for row in collectives)
    assert report["seconds"] >= report["bytes"] / 25e9
    return report["bytes"], report["bytes_per_parameter"], bytes_of(row for row in collectives if row["name"].endswith(("params['embed']", "params['head']")))


def expect_near(what, got, want, bound):
    assert abs(got - want) <= bound * want, f"{what}: expected {want:.4g} within {bound:.1%} but got {got:.4g}"


def compare(fixture, name):
    fp8_opt, folder = fixture
    layers, width, parts, ranks, *paper = PAPER[name]
    path, linear, tables = write_step(folder / name, layers=layers, width=width, heads=width // 128, ffn=round(width * 8 / 3), vocab=TOKENS // parts,
                                      batch=2, sequence=2048, compute="bfloat16")  # fmt: skip
    others = (ranks - 1) / ranks
    # Gradients go to their owners in f32, and weights come back in bf16 (the embedding as it is stored, in f32). In FP8 both are f8, and the tables'
    # weights have 16 bits.
    for recipe, of_layers, of_tables, published in (("none", 4 + 2, 4 + (4 + 2) / 2, paper[0]), ("fp8_lm", 1 + 1, 1 + 2, paper[1])):
        bytes_sent, each, for_tables = sent(fp8_opt, path, ranks, recipe, zero=1)
        expect_near(f"{name} {recipe} for each parameter", each, bytes_sent / (linear + tables), 1e-6)
        expect_near(f"{name} {recipe} by hand", bytes_sent, others * (of_layers * linear + of_tables * tables), 1e-3)
        # In the paper both tables send gradients in f32 and weights in bf16.
        alike = bytes_sent - for_tables + others * 6 * tables
        print(f"  {name} of {(linear + tables) / 1e9:.2f} G parameters, {ranks} ranks, {recipe}: {bytes_sent / 2**30:.2f} GiB, "
              f"{each:.2f} bytes a parameter; with the paper's tables {alike / 2**30:.2f} GiB, there {published}")  # fmt: skip
        expect_near(f"{name} {recipe} in the paper", alike / 2**30, published, 0.05)


def whole(fixture):
    """The whole model of 175 G parameters on 1024 ranks, as a scan over layers."""
    fp8_opt, folder = fixture
    path, linear, tables = write_step(folder / "whole", layers=96, width=12288, heads=96, ffn=32768, vocab=TOKENS, batch=2, sequence=2048, compute="bfloat16", loop="remat")
    assert 174e9 < linear + tables < 177e9
    # Without ZeRO gradients are sent twice: to be summed, and as the sum.
    for recipe, each in (("none", 4 + 4), ("fp8_lm", 1 + 1)):
        bytes_sent, *_ = sent(fp8_opt, path, 1024, recipe, zero=0)
        expect_near(f"175 G parameters, {recipe}", bytes_sent, 1023 / 1024 * each * (linear + tables), 1e-3)


if __name__ == "__main__":
    fp8_opt, folder, *names = sys.argv[1:]
    cases = {name: (lambda fixture, name=name: compare(fixture, name)) for name in PAPER} | {"whole": whole}
    t.run_cases(cases, names, (fp8_opt, Path(folder)))
