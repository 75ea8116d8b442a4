"""Writes the batches in which scripts/tidy checks all sources of lib/ and tools/:

    python3 tidy_batches.py ROOT BUILD

clang-tidy visits every declaration of the headers, which takes 20 seconds whether a
source includes one other source or many. The build's batches are within libraries,
and many libraries are small; so these batches take in the libraries of a folder, as
long as their compiler's options are the same. They lie in BUILD/tidy-batches/plain
(sources that use no LLVM) and .../llvm, with their compile_commands.json.
"""

import json
import pathlib
import re
import shutil
import sys

LARGEST = 32


def sources_of(file):
    """The sources that a compiled file includes, if it is a batch of the build, or itself."""
    return re.findall(r'#include "(.*)"', pathlib.Path(file).read_text()) if is_batch(file) else [file]


def is_batch(file):
    return "/Unity/" in file


def folder_of(source):
    """The folder whose libraries share batches: lib/Codegen, or lib/Dialect/FP8, as dialects have ops of the same name."""
    return source.parts[: 3 if source.parts[1] == "Dialect" else 2]


def batches_of(entries, root):
    """Lists (kind, options, sources) for each batch. A batch of the build stays whole, and what it compiles alone stays alone."""
    batches = []
    for entry in sorted(entries, key=lambda entry: sources_of(entry["file"])):
        sources = sources_of(entry["file"])
        first = pathlib.Path(sources[0]).relative_to(root) if sources[0].startswith(f"{root}/") else pathlib.Path("-")
        if first.parts[0] not in ("lib", "tools"):
            continue
        kind = "plain" if first.parts[:2] in (("lib", "Runtime"), ("lib", "Binding")) else "llvm"
        options = re.sub(r" -o .*", "", entry["command"])
        place = (kind, options, folder_of(first) if is_batch(entry["file"]) else sources)
        batch = next((b for b in batches if b[:3] == place and len(b[3]) + len(sources) <= LARGEST), None)
        if batch:
            batch[3].extend(sources)
        else:
            batches.append((*place, sources))
    return [(kind, options, sources) for kind, options, _, sources in batches]


def main():
    root, build = (pathlib.Path(argument) for argument in sys.argv[1:])
    entries = json.loads((build / "compile_commands.json").read_text())
    folder = build / "tidy-batches"
    shutil.rmtree(folder, ignore_errors=True)
    commands = []
    for number, (kind, options, sources) in enumerate(batches_of(entries, root)):
        file = folder / kind / f"{number}.cpp"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f'#include "{source}"\n' for source in sources))
        commands.append({"directory": str(build), "command": f"{options} -c {file}", "file": str(file)})
    (folder / "compile_commands.json").write_text(json.dumps(commands, indent=1))


if __name__ == "__main__":
    main()
