"""The compiled initializer gives JAX's values, and another seed gives others.

    python initializer.py FP8_RUN FOLDER
"""

import pathlib
import sys

import fp8_testing as t
import jax
import numpy as np
from safetensors.numpy import load_file, save_file


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    import export

    cfg = t.export_model(folder, **t.TINY)
    init, _, _ = export.make_functions(cfg)
    outputs = {}
    for seed in (3, 4):
        save_file({"seed": np.array(seed, np.uint32)}, folder / "in.safetensors")
        t.run([fp8_run, folder / "init.mlir", "--entry", "main",
               "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors"])  # fmt: skip
        got = load_file(folder / "out.safetensors")
        expected = jax.jit(init)(np.uint32(seed))
        leaves = jax.tree_util.tree_flatten_with_path(expected)[0]
        assert len(got) == len(leaves), f"expected {len(leaves)} tensors but got {sorted(got)}"
        for path, leaf in leaves:
            # JAX names the results result[0]['embed'], ...; they are matched by suffix.
            suffix = jax.tree_util.keystr(path)
            names = [name for name in got if name.endswith(suffix)]
            assert len(names) == 1, f"expected one tensor for {suffix} but got {names}"
            np.testing.assert_array_equal(got[names[0]], np.asarray(leaf), err_msg=suffix)
        outputs[seed] = got
    assert any(not np.array_equal(outputs[3][name], outputs[4][name]) for name in outputs[3])


main()
