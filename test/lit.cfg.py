import os
import shutil
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "FP8"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fp8_obj_root, "test")
llvm_config.with_system_environment(["HOME", "TMP", "TEMP"])
# Tests share a compile cache, which halves the time of the suite, and do not write to the user's
# home.
config.environment["FP8_CACHE_DIR"] = os.path.join(config.test_exec_root, "cache")
# JAX compiles without optimizations in every test.
sys.path.append(os.path.join(config.test_source_root, "Integration", "CPU"))
from fp8_testing import QUICK_XLA  # noqa: E402

config.environment["XLA_FLAGS"] = QUICK_XLA
llvm_config.use_default_substitutions()
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
config.substitutions.append(("%fp8_src_root", config.fp8_src_root))
config.substitutions.append(("%fp8_obj_root", config.fp8_obj_root))
config.substitutions.append(("%fp8_python", config.fp8_python))
config.substitutions.append(("%fp8_bound_python", f"env PYTHONPATH={config.fp8_obj_root}/python JAX_PLATFORMS=cpu {config.fp8_python}"))
config.substitutions.append(("%fp8_cc", config.fp8_cc))
config.substitutions.append(("%fp8_cxx", config.fp8_cxx))
llvm_config.add_tool_substitutions(
    [
        ToolSubst("fp8-check-gpu-kernels", unresolved="ignore"),
        ToolSubst("fp8-lsp-server", unresolved="ignore"),
        ToolSubst("fp8-opt", unresolved="ignore"),
        ToolSubst("fp8-reduce", unresolved="ignore"),
        ToolSubst("fp8-run", unresolved="ignore"),
        ToolSubst("fp8-train", unresolved="ignore"),
    ],
    [config.fp8_tools_dir, config.llvm_tools_dir],
)

# Tests that export from JAX have `REQUIRES: jax`.
find_jax = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('jax'))"
if os.path.exists(config.fp8_python) and subprocess.run([config.fp8_python, "-c", find_jax]).returncode == 0:
    config.available_features.add("jax")
else:
    lit_config.note(f"no JAX in {config.fp8_python}: tests that export from it do not run")

# Tests that need more Python packages have `REQUIRES: notebook` or `REQUIRES: torchax`.
for feature, modules in {
    "notebook": ["nbclient", "ipykernel", "matplotlib"],
    "torchax": ["torch", "torchax"],
}.items():
    find = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {modules})))"
    if os.path.exists(config.fp8_python) and subprocess.run([config.fp8_python, "-c", find]).returncode == 0:
        config.available_features.add(feature)
    else:
        lit_config.note(f"no {' or no '.join(modules)} in {config.fp8_python}: tests of {feature} do not run")

# Tests that run code with the tile registers of AMX have `REQUIRES: amx`.
sys.path.insert(0, os.path.dirname(__file__))
from amx import request_tiles  # noqa: E402

if request_tiles():
    config.available_features.add("amx")
else:
    lit_config.note("no AMX: tests that need it do not run, but its emulation does")

# Tests of the Python package.
if config.fp8_python_bindings:
    config.available_features.add("python-bindings")
else:
    lit_config.note("the Python bindings were not built: their tests do not run")

# Tests that assemble GPU kernels have `REQUIRES: ptxas`.
ptxas = shutil.which("ptxas") or shutil.which("ptxas", path=f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin")
if ptxas:
    config.available_features.add("ptxas")
    config.environment["FP8_PTXAS"] = ptxas
else:
    lit_config.note("no ptxas: tests that assemble kernels of a GPU do not run")

# Tests that read the machine code of a GPU have `REQUIRES: nvdisasm`.
find_nvdisasm = "import nvidia; print(*(path + '/cu13/bin' for path in nvidia.__path__), sep=':')"
packaged = subprocess.run([config.fp8_python, "-c", find_nvdisasm], capture_output=True, text=True).stdout.strip()
nvdisasm = shutil.which("nvdisasm") or shutil.which("nvdisasm", path=packaged)
if nvdisasm:
    config.available_features.add("nvdisasm")
    config.substitutions.append(("%nvdisasm", nvdisasm))
else:
    lit_config.note("no nvdisasm: tests that look at the machine code of a GPU do not run")

# Tests with several ranks have `REQUIRES: mpi`: a launcher, and our plugin for its MPI.
for mpi in ("openmpi", "mpich"):
    launcher = shutil.which(f"mpirun.{mpi}")
    if launcher and os.path.exists(os.path.join(config.fp8_obj_root, "lib", f"libfp8_{mpi}.so")):
        config.available_features.add("mpi")
        config.substitutions.append(("%mpirun", launcher))
        break
else:
    lit_config.note("no Open MPI or MPICH: tests of several ranks do not run")

# Tests that open a page in a browser have `REQUIRES: chromium`.
if shutil.which("chromium"):
    config.available_features.add("chromium")
else:
    lit_config.note("no chromium: tests that look at a page in it do not run")
