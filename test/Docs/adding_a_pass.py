"""Follows docs/AddingAPass.md without building the compiler anew: declares the pass in a
copy of the TableGen file, compiles its source as the other sources of its library, and
parses the input of its test.

    python3 adding_a_pass.py FP8_OPT MLIR_TBLGEN ROOT BUILD FOLDER
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys

FOLDER = "Dialect/StableHLO/Transforms"
PASS = "FoldNegations"


def main():
    fp8_opt, tblgen = sys.argv[1:3]
    root, build, out = map(pathlib.Path, sys.argv[3:])
    text = (root / "docs/AddingAPass.md").read_text()
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S))
    assert set(blocks) == {"tablegen", "cpp", "cmake", "mlir", "sh"}, sorted(blocks)

    # The files of the new pass do not exist; all other files that the page names do.
    named = set(re.findall(r"(?<![/\w])(?:docs|include|lib|scripts|test)/[\w./-]*\w", text))
    new = {f"lib/{FOLDER}/{PASS}.cpp", "test/Dialect/StableHLO/Transforms/fold-negations.mlir"}
    missing = sorted(name for name in named - new if not (root / name).exists())
    assert not missing, f"expected these files to exist: {missing}"
    assert new <= named, f"expected {sorted(new)} to be named"

    # 1. The declaration.
    include = out / "include/fp8" / FOLDER
    include.mkdir(parents=True, exist_ok=True)
    passes = (root / "include/fp8" / FOLDER / "Passes.td").read_text()
    head, end = passes.rsplit("#endif", 1)
    (include / "Passes.td").write_text(f"{head}{blocks['tablegen']}\n#endif{end}")
    command = [tblgen, "-gen-pass-decls", "-name", "StableHLO", include / "Passes.td", "-o", include / "Passes.h.inc"]
    subprocess.run([*command, "-I", root / "include", "-I", "/usr/lib/llvm-22/include"], check=True)

    # 2. and 3. The source, compiled with the command of its neighbours in the list.
    source = out / f"{PASS}.cpp"
    source.write_text(blocks["cpp"])
    sources = (root / "lib" / FOLDER / "CMakeLists.txt").read_text()
    assert "add_fp8_library(FP8StableHLOTransforms" in sources and blocks["cmake"].strip() == source.name
    # The neighbours may be compiled in batches.
    folders = (f"{root}/lib/{FOLDER}/", f"{build}/lib/{FOLDER}/")
    entries = json.loads((build / "compile_commands.json").read_text())
    entry = next(entry for entry in entries if entry["file"].startswith(folders))
    command = [str(source) if word == entry["file"] else word for word in shlex.split(entry["command"]) if word not in ("ccache", "-c")]
    at = command.index("-o")
    command = [command[0], f"-I{out / 'include'}", *command[1:at], *command[at + 2 :], "-fsyntax-only", "-Werror"]
    subprocess.run(command, check=True, cwd=build)

    # 4. The input of the test, and the example in the description.
    example = re.search(r"```mlir\n(.*?)```", blocks["tablegen"], re.S).group(1)
    for module in (example, blocks["mlir"]):
        subprocess.run([fp8_opt, "-o", "/dev/null", "-"], input=module, text=True, check=True)


if __name__ == "__main__":
    main()
