"""Arguments and results of every one-byte float: all 256 values of each format are read, written,
and widened to f32 with the bits that ml_dtypes gives."""

import json
import pathlib
import struct
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

import fp8_testing as t

# The names that safetensors has for the formats; it holds the others as bytes.
FORMATS = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
           "float8_e8m0fnu": "F8_E8M0", "float8_e4m3": None, "float8_e3m4": None, "float8_e4m3b11fnuz": None}  # fmt: skip


def write(path, name, data, dtype, metadata):
    header = {"__metadata__": metadata} if metadata else {}
    header[name] = {"dtype": dtype, "shape": [len(data)], "data_offsets": [0, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def entry(fp8_run, module, inputs, outputs):
    return subprocess.run([fp8_run, module, "--entry", "main", "--inputs", inputs, "--outputs", outputs],
                          capture_output=True, text=True)  # fmt: skip


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    codes = bytes(range(256))
    for name, stored in FORMATS.items():
        dtype = getattr(ml_dtypes, name)
        values = np.frombuffer(codes, dtype)
        module = folder / f"{name}.mlir"
        lowered = jax.jit(lambda x: {"same": x[::-1], "wide": x.astype(jnp.float32)}).lower(jax.ShapeDtypeStruct((256,), dtype))
        module.write_text(lowered.as_text(debug_info=True))
        inputs, outputs = folder / f"{name}-in.safetensors", folder / f"{name}-out.safetensors"
        metadata = {} if stored else {"fp8.dtypes": json.dumps({"x": name})}
        write(inputs, "x", codes, stored or "U8", metadata)
        result = entry(fp8_run, module, inputs, outputs)
        assert result.returncode == 0, f"{name}: {result.stderr}"
        got = {key.split("'")[1]: value for key, value in t.load_tensors(outputs).items()}
        assert got["same"].dtype == dtype, f"{name}: got {got['same'].dtype}"
        assert got["same"].tobytes() == codes[::-1], name
        wide = values.astype(np.float32)
        same = (got["wide"].view(np.uint32) == wide.view(np.uint32)) | (np.isnan(wide) & np.isnan(got["wide"]))
        assert same.all(), f"{name}: {np.flatnonzero(~same)}: got {got['wide'][~same]}, expected {wide[~same]}"
        print(f"{name}: ok")

    # Wrong type names in the metadata give an error, not a guess.
    for metadata, message in (({"fp8.dtypes": '{"y": "float8_e3m4"}'}, "expected the type of a tensor of bytes but got 'y'"),
                              ({"fp8.dtypes": '{"x": "F32"}'}, "expected the type of a tensor of bytes but got 'x'"),
                              ({"fp8.dtypes": "["}, "metadata 'fp8.dtypes': not valid JSON"),
                              ({}, "expected f8e3m4[256] but got u8[256]")):  # fmt: skip
        inputs = folder / "bad.safetensors"
        write(inputs, "x", codes, "U8", metadata)
        result = entry(fp8_run, folder / "float8_e3m4.mlir", inputs, folder / "bad-out.safetensors")
        assert result.returncode != 0 and message in result.stderr, (metadata, result.stderr)
        print(f"refused: {message}")


if __name__ == "__main__":
    main()
