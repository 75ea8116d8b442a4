"""Shared by the conformance tests: a module of many operations that fp8-run runs once, with a check
for each result."""

import json
import math
import pathlib
import struct
import subprocess

import ml_dtypes
import numpy as np

# StableHLO element types by their numpy types.
DTYPES = {
    "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3, "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
DTYPES = {name: np.dtype(dtype) for name, dtype in DTYPES.items()}
F8 = [name for name in DTYPES if name.startswith("f8")]
FLOATS = ["bf16", "f16", "f32", "f64"]
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["ui8", "ui16", "ui32", "ui64"]
FILE_NAMES = {
    "i1": "BOOL", "i8": "I8", "i16": "I16", "i32": "I32", "i64": "I64", "ui8": "U8", "ui16": "U16",
    "ui32": "U32", "ui64": "U64", "bf16": "BF16", "f16": "F16", "f32": "F32", "f64": "F64",
}  # fmt: skip


def name_of(dtype):
    return next(name for name, known in DTYPES.items() if known == dtype)


def tensor_type(shape, element):
    return "tensor<" + "".join(f"{d}x" for d in shape) + element + ">"


def write_safetensors(path, arrays):
    """Writes arrays of any type that the format has, including bf16."""
    header, offset, parts = {}, 0, []
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": FILE_NAMES[name_of(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        offset += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + o for o in entry["data_offsets"])
        element = next(e for e, f in FILE_NAMES.items() if f == entry["dtype"])
        arrays[name] = np.frombuffer(data[begin:end], DTYPES[element]).reshape(entry["shape"])
    return arrays


class Module:
    """One function of many independent operations. Arrays of f8 types are stored as bytes, because
    the file format does not name every f8 type."""

    def __init__(self, name):
        self.name = name
        self.arguments = []  # arrays as they are stored
        self.known = {}  # id of an array -> (the array, to keep it alive, its value)
        self.lines = []
        self.results = []  # (label, value, type, dtype, check)
        self.count = 0

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text):
        value = self.fresh()
        self.lines.append(f"{value} = {text}")
        return value

    def input(self, array):
        if id(array) in self.known:
            return self.known[id(array)][1]
        element = name_of(array.dtype)
        value = f"%a{len(self.arguments)}"
        if element in F8:
            self.arguments.append(array.view(np.uint8))
            raw = tensor_type(array.shape, "ui8")
            value = self.emit(f"stablehlo.bitcast_convert {value} : ({raw}) -> {tensor_type(array.shape, element)}")
        else:
            self.arguments.append(array)
        self.known[id(array)] = (array, value)
        return value

    def result(self, label, value, shape, element, check):
        """Adds a result; `check(got)` returns a description of what is wrong, or nothing."""
        dtype = DTYPES[element]
        if element in F8:
            value = self.emit(
                f"stablehlo.bitcast_convert {value} : ({tensor_type(shape, element)}) -> {tensor_type(shape, 'ui8')}"
            )
            element = "ui8"
        self.results.append((label, value, tensor_type(shape, element), dtype, check))

    def op(self, label, text, arrays, shape, element, check):
        """Adds an op; `text` has {0}, {1}, ... for the arrays' values and {types} for their types.
        """
        values = [self.input(array) for array in arrays]
        types = ", ".join(tensor_type(array.shape, name_of(array.dtype)) for array in arrays)
        out = tensor_type(shape, element)
        value = self.emit(text.format(*values, types=types, out=out))
        self.result(label, value, shape, element, check)

    def text(self):
        arguments = ", ".join(
            f"%a{i}: {tensor_type(a.shape, name_of(a.dtype))}" for i, a in enumerate(self.arguments)
        )
        types = ", ".join(r[2] for r in self.results)
        body = "".join(f"  {line}\n" for line in self.lines)
        values = ", ".join(r[1] for r in self.results)
        return (
            f"func.func public @main({arguments}) -> ({types}) {{\n{body}  return {values} : {types}\n}}\n"
        )

    def run(self, fp8_run, folder):
        """Returns the failures as text, one for each result."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        found = run_function(
            fp8_run, folder / self.name, self.text(), {f"arg{i}": a for i, a in enumerate(self.arguments)}
        )
        if isinstance(found, str):
            return [f"{self.name}: {found}"]
        failures = []
        for i, (label, _, _, dtype, check) in enumerate(self.results):
            got = found[f"result{i}"]
            wrong = check(got.view(dtype) if got.dtype != dtype else got)
            if wrong:
                failures.append(f"{label}: {wrong}")
        return failures


def run_function(fp8_run, stem, text, arrays, flags=()):
    """Returns the results by name, or the tool's error."""
    stem = pathlib.Path(stem)
    source, inputs, outputs = (stem.with_suffix(s) for s in (".mlir", ".in.safetensors", ".out.safetensors"))
    source.write_text(text)
    write_safetensors(inputs, arrays)
    outputs.unlink(missing_ok=True)
    command = [fp8_run, source, "--entry", "main", "--inputs", inputs, "--outputs", outputs, "--quiet", *flags]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return f"exit code {done.returncode}: {(done.stderr or done.stdout)[:1500]}"
    return read_safetensors(outputs)


def first_wrong(wrong, got, want, arrays):
    if not wrong.any():
        return None
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    inputs = [repr(a[at]) if a.shape == wrong.shape else "" for a in arrays]
    return (
        f"{int(wrong.sum())} of {wrong.size} wrong, first at {at}: expected {want[at]!r} but got {got[at]!r}"
        f" of {', '.join(filter(None, inputs))}"
    )


def same(got, want):
    """Compares elements: NaN equals NaN, and zeros differ by sign."""
    if got.dtype.kind in "biu":
        return got == want
    with np.errstate(all="ignore"):
        signs = np.signbit(got.astype(np.float64)) == np.signbit(want.astype(np.float64))
        return ((got == want) & signs) | (np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64)))


def exact(want, *arrays):
    want = np.asarray(want)

    def check(got):
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"expected {want.dtype}{want.shape} but got {got.dtype}{got.shape}"
        return first_wrong(~same(got, want), got, want, arrays)

    return check


def volume(shape):
    return math.prod(shape)
