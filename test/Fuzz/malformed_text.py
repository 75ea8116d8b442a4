#!/usr/bin/env python3
"""Malformed StableHLO text: every tool reports an error or accepts it.

    malformed_text.py --tools build/bin --seeds 0:2000 --jobs 2

A case is a seed: a file of the corpus (text from JAX and our own tests), damaged
in a few places: truncated, bytes changed, tokens swapped, dropped or taken from
elsewhere, or numbers, types and op names replaced. One of the tools' pipelines
reads it. A case fails on a crash, an abort, a run longer than --limit seconds, or
a nonzero exit without "error:". Failing cases are kept in --keep DIR. CI runs the
few cases of malformed-text.test; by hand, run thousands.
"""

import argparse
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = re.compile(r'"[^"]*"|#?[A-Za-z_][\w.$-]*|[%@^!#][\w.$-]*|0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?|->|[^\sA-Za-z0-9]')
TYPES = "i1 i2 i4 i8 i32 ui8 ui32 i64 ui64 f8E4M3FN f8E5M2 f8E8M0FNU bf16 f16 f32 f64 index complex<f32> f80 none i128 tf32".split()
NUMBERS = ["0", "1", "2", "3", "-1", "7", "64", "255", "65536", "2147483648", "9223372036854775807", "-9223372036854775808",
           "18446744073709551616", "1.5", "1e999", "0x7FC00000", "true"]  # fmt: skip
PIPELINES = [
    ["fp8-opt"],
    ["fp8-opt", "--fp8-import"],
    ["fp8-opt", "--fp8-structure"],
    ["fp8-opt", "--fp8-import", "--fp8-quantize=recipe=tensorwise", "--fp8-structure"],
    ["fp8-opt", "--fp8-structure", "--fp8-kernels", "--fp8-codegen", "--fp8-to-llvm"],
    ["fp8-run", "--explain-signature"],
    ["fp8-run", "--entry", "main", "--inputs", "/dev/null", "--outputs", "/dev/null", "--quiet"],
]


def corpus():
    """Returns the modules to mutate by name: the parts of our tests with StableHLO ops."""
    texts = {}
    for folder in ["test/Dialect/StableHLO", "test/Pipelines", "test/Conversion/StableHLOToLinalg", "test/Kernels"]:
        for path in sorted((ROOT / folder).rglob("*.mlir")):
            text = path.read_text()
            parts = text.split("// -----")
            for i, part in enumerate(parts):
                part = re.sub(r"^\s*// .*\n", "", part, flags=re.M)
                if "stablehlo." in part and len(part) < 12000:
                    texts[f"{path.relative_to(ROOT)}#{i}"] = part
    assert len(texts) > 50, "expected a corpus"
    return texts


def spans(text):
    return [m.span() for m in TOKEN.finditer(text)]


def mutate(text, others, rng):
    """Returns the text with one mutation."""
    kind = rng.randrange(12)
    tokens = spans(text)
    if not tokens:
        return text
    begin, end = rng.choice(tokens)
    if kind == 0:
        return text[: rng.randrange(len(text) + 1)]
    if kind == 1:
        at = rng.randrange(len(text))
        return text[:at] + chr(rng.choice([0, 9, 34, 37, 60, 62, 64, 92, 123, 125, 127, 255, rng.randrange(32, 127)])) + text[at + 1 :]
    if kind == 2:
        return text[:begin] + text[end:]
    if kind == 3:
        other = rng.choice(tokens)
        (a, b), (c, d) = sorted([(begin, end), other])
        return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:] if b <= c else text
    if kind == 4:
        c, d = rng.choice(tokens)
        return text[:begin] + text[c:d] + text[end:]
    if kind == 5:
        other = rng.choice(others)
        c, d = rng.choice(spans(other) or [(0, 0)])
        return text[:begin] + other[c:d] + text[end:]
    if kind in (6, 7):
        found = [m.span() for m in re.finditer(r"-?\d+", text)]
        if not found:
            return text
        a, b = rng.choice(found)
        return text[:a] + rng.choice(NUMBERS) + text[b:]
    if kind == 8:
        found = [m.span() for m in re.finditer(r"\b(?:u?i\d+|f\d+\w*|bf16)\b", text)]
        if not found:
            return text
        a, b = rng.choice(found)
        return text[:a] + rng.choice(TYPES) + text[b:]
    if kind == 9:
        found = [m.span() for m in re.finditer(r"(?:stablehlo|chlo|sdy)\.\w+", text)]
        names = re.findall(r"(?:stablehlo|chlo|sdy)\.\w+", rng.choice(others))
        if not found or not names:
            return text
        a, b = rng.choice(found)
        return text[:a] + rng.choice(names) + text[b:]
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    if kind == 10:
        return "\n".join(lines[:at] + lines[at + 1 :])
    return "\n".join(lines[:at] + [rng.choice(lines)] + lines[at:])


def case(seed, texts):
    rng = random.Random(seed)
    name = rng.choice(sorted(texts))
    text, others = texts[name], list(texts.values())
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        text = mutate(text, others, rng)
    return name, text, rng.choice(PIPELINES)


def is_sanitized(tools):
    """Returns whether the tools use AddressSanitizer, which reserves more address space than a
    limit leaves."""
    return b"__asan_init" in (pathlib.Path(tools) / "fp8-opt").read_bytes()


def limits(memory):
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_seed(seed, texts, options, folder):
    """Returns None, or a description of the failure."""
    name, text, pipeline = case(seed, texts)
    path = pathlib.Path(folder) / f"case{seed}.mlir"
    path.write_bytes(text.encode("latin-1", "replace"))
    command = [os.path.join(options.tools, pipeline[0]), str(path), *pipeline[1:]]
    if pipeline[0] == "fp8-opt":
        command += ["-o", "/dev/null"]
    wrong = None
    try:
        done = subprocess.run(command, capture_output=True, timeout=options.limit, preexec_fn=lambda: limits(options.memory))
        error = done.stderr.decode("utf-8", "replace")
        if done.returncode not in (0, 1):
            wrong = f"exit code {done.returncode}"
        elif done.returncode == 1 and "error:" not in error:
            wrong = "failed without an error"
        elif any(word in error for word in ("Stack dump", "LLVM ERROR", "Assertion", "UNREACHABLE", "runtime error:", "AddressSanitizer")):
            wrong = "crash"
        if wrong:
            wrong += ": " + error[-options.tail :]
    except subprocess.TimeoutExpired:
        wrong = f"no end after {options.limit} s"
    if wrong and options.keep:
        pathlib.Path(options.keep).mkdir(parents=True, exist_ok=True)
        (pathlib.Path(options.keep) / path.name).write_bytes(path.read_bytes())
    path.unlink()
    return f"seed {seed} ({name}, {' '.join(pipeline)}): {wrong}" if wrong else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, help="folder of fp8-opt and fp8-run")
    parser.add_argument("--seeds", default="0:100", help="N or FROM:TO")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--keep")
    parser.add_argument("--tail", type=int, default=600, help="how many characters to show of a failing case's messages")
    parser.add_argument("--show", action="store_true", help="print the seeds' text")
    options = parser.parse_args()
    options.memory = 0 if is_sanitized(options.tools) else 16 << 30
    bounds = [int(b) for b in options.seeds.split(":")]
    seeds = range(*bounds) if len(bounds) > 1 else bounds
    texts = corpus()
    if options.show:
        for seed in seeds:
            print(*case(seed, texts), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda seed: run_seed(seed, texts, options, folder), seeds))
    failures = [r for r in results if r]
    print("\n".join(failures))
    print(f"{len(results)} cases, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
