"""Shared by the benchmarks: a Python that has the modules they need, options and what they write,
docs/Numerics.md and its pictures."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "Numerics.md"
VENV = ROOT / "build" / "venv" / "bin" / "python"
# Appended last, because the folder has a profile.py, and so has Python.
sys.path.append(str(ROOT / "test" / "Integration" / "CPU"))  # fp8_testing


def need(*modules):
    """Continues in the tests' virtual environment if this Python lacks a module."""
    try:
        for module in modules:
            __import__(module)
    except ImportError as error:
        if not VENV.exists() or pathlib.Path(sys.executable) == VENV:
            sys.exit(f"expected {error.name} in this Python or in {VENV} (scripts/test makes it; benchmarks/requirements.txt)")
        os.execv(VENV, [str(VENV), *sys.argv])


# The three sizes of the example in which steps and memory are compared.
SIZES = {
    "tiny": {"layers": 4, "width": 256, "heads": 4, "ffn": 688, "batch": 8, "sequence": 256, "vocab": 4096},
    "small": {"layers": 8, "width": 512, "heads": 8, "ffn": 1376, "batch": 8, "sequence": 256, "vocab": 8192},
    "gpt2-small": {"layers": 12, "width": 768, "heads": 12, "ffn": 2048, "batch": 2, "sequence": 512, "vocab": 32000},
}


# Keeps JAX, and PyTorch's own kernels and libraries, from using AVX-512.
AVX2_ALONE = {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
# LLVM's name of a CPU that has AVX2 and no AVX-512.
AVX2_CPU = "x86-64-v3"


def mpi_launcher():
    """Returns the mpirun of an MPI for which this build has a transport."""
    for mpi in ("openmpi", "mpich"):
        launcher = shutil.which(f"mpirun.{mpi}")
        if launcher and (ROOT / "build" / "lib" / f"libfp8_{mpi}.so").exists():
            return launcher
    sys.exit("expected Open MPI or MPICH, and a build with its transport: install pkgconf, libopenmpi-dev and openmpi-bin (or libmpich-dev and mpich), then build again")


def launched(ranks, command):
    """Returns the command on this many ranks, which share all cores."""
    if ranks == 1:
        return command
    launcher = mpi_launcher()
    return [launcher, *(["--bind-to", "none", "--oversubscribe"] if "openmpi" in launcher else []), "-n", ranks, *command]


def commit():
    """Returns the commit of the working tree, with `-dirty` if the tree differs from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def read_lines(path):
    """Returns the lines of a results file, without the half-written line of a killed run."""
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def append_line(path, line):
    path.parent.mkdir(exist_ok=True)
    with open(path, "a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)  # the half-written line
        file.write(json.dumps(line).encode() + b"\n")


def markdown(header, rows):
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines) + "\n"


def pyplot():
    need("matplotlib")
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fp8"  # makes the same picture from the same data
    import matplotlib.pyplot as plt

    return plt


def save(figure, path):
    figure.savefig(path, metadata={"Date": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def write_block(name, text, report=REPORT):
    """Replaces the text between the marks of this name in the report."""
    page = report.read_text()
    begin, end = f"<!-- {name}: written by a script -->\n", f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        sys.exit(f"expected the marks of {name} in {report}")
    report.write_text(before + begin + "\n" + text + "\n" + end + after)
    print(f"wrote {name} in {report}")


def parser(description):
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_outputs(options, page, tables="the table"):
    """Adds the options that say where `publish` writes; `page` is a file in docs/."""
    options.add_argument("--json", type=pathlib.Path, help="file for the figures")
    options.add_argument("--report", action="store_true", help=f"write {tables} into docs/{page}")
    options.set_defaults(page=ROOT / "docs" / page)


def publish(arguments, tables, **results):
    """Prints the tables, whose keys are the names of their marks in the page, and writes what the
    options ask for."""
    for text in tables.values():
        print(text)
    if arguments.json:
        arguments.json.write_text(json.dumps({"commit": commit(), **results}, indent=2) + "\n")
    if arguments.report:
        for name, text in tables.items():
            write_block(name, text, arguments.page)
