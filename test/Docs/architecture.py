"""What docs/Architecture.md and its neighbours show agrees with the project.

    python3 architecture.py FP8_OPT ROOT      checks
    python3 architecture.py --layers ROOT     prints the layers for the page

- The diagram of the layers has an arrow for each library that another one links
  in the CMake files, except for arrows that follow from others.
- A library links, perhaps through others, each library whose header it includes.
- Each line of an excerpt under "One dot, stage by stage" is in the output of
  the pipelines that the excerpt's first line names, in this order; `...` matches
  any text. Each excerpt is compiled from the output of the previous one.
- Files that these pages name exist.
- docs/Debugging.md describes every discardable attribute of the fp8 dialect.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

PAGES = ("Architecture", "AddingATarget", "Glossary")


def commands(text, name):
    """Returns the words of each call of a CMake command."""
    text = re.sub(r"#.*", "", text)
    for call in re.findall(rf"\b{name}\(([^()]*)\)", text):
        yield call.split()


def linked_libraries(root):
    """Returns what each library and program of the project links."""
    links = {}
    for path in sorted([*root.glob("lib/**/CMakeLists.txt"), *root.glob("tools/**/CMakeLists.txt")]):
        text = path.read_text()
        for command in ("add_library", "add_llvm_executable", "add_executable", "add_fp8_library"):
            for name, *words in commands(text, command):
                links.setdefault(name, set())
                key = None
                for word in words:
                    if word in ("DEPENDS", "FP8_LIBS", "MLIR_LIBS"):
                        key = word
                    elif key == "FP8_LIBS":
                        links[name].add(word)
        for name, *words in commands(text, "target_link_libraries"):
            links.setdefault(name, set()).update(words)
    # Libraries that tests add to fp8-opt are not layers.
    return {name: {other for other in found if other in links} for name, found in links.items()}


def reachable(links, name):
    found, stack = set(), [name]
    while stack:
        for other in links[stack.pop()]:
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def layers(root):
    """Returns the arrows of the diagram, without those that follow from two others."""
    links = linked_libraries(root)
    lines = set()
    for name, found in links.items():
        for other in found:
            if not any(other in reachable(links, between) for between in found - {other}):
                lines.add(f"{name} --> {other}")
    return sorted(lines, key=str.lower)


def check_layers(page, root):
    diagram = re.search(r"^```mermaid\ngraph LR\n(.*?)^```$", page, re.M | re.S).group(1)
    shown = {line.strip() for line in diagram.splitlines() if "-->" in line}
    expected = set(layers(root))
    assert shown == expected, (
        f"the diagram of docs/Architecture.md lacks {sorted(expected - shown)} "
        f"and has {sorted(shown - expected)}: run architecture.py --layers"
    )


def folders_of_libraries(root):
    """Returns the libraries of each folder below lib, with their sources."""
    folders = {}
    for path in root.glob("lib/**/CMakeLists.txt"):
        for name, *words in commands(path.read_text(), "add_fp8_library"):
            sources = [path.parent / word for word in words if word.endswith(".cpp")]
            folders.setdefault(path.parent.relative_to(root / "lib"), {})[name] = sources
    return folders


def check_includes(root):
    links, folders = linked_libraries(root), folders_of_libraries(root)

    def owners(header):
        """Returns the libraries of a header: those of its folder, or else of the folders below it."""
        folder = pathlib.PurePath(header).relative_to("fp8").parent
        below = {name for each, libraries in folders.items() if folder in each.parents for name in libraries}
        return set(folders.get(folder, below))

    for libraries in folders.values():
        for name, sources in libraries.items():
            linked = reachable(links, name) | {name}
            for source in sources:
                for header in re.findall(r'#include "(fp8/.*?)"', source.read_text()):
                    # Passes.td may declare the passes of several libraries.
                    if not header.endswith(("Passes.h", ".inc")) and owners(header):
                        assert owners(header) & linked, f"{source} includes {header}, but {name} links none of {sorted(owners(header))}"


def check_excerpts(page, fp8_opt, root):
    section = page.split("## One dot, stage by stage")[1].split("\n## ")[0]
    excerpts = re.findall(r"^```mlir\n// (--.*?)\n(.*?)^```$", section, re.M | re.S)
    assert len(excerpts) == 6, f"expected 6 excerpts but got {len(excerpts)}"
    source = root / "test/Docs/Inputs/stages.mlir"
    with tempfile.TemporaryDirectory() as folder:
        for number, (flags, excerpt) in enumerate(excerpts, 1):
            output = pathlib.Path(folder) / f"{number}.mlir"
            subprocess.run([fp8_opt, *flags.split(), source, "-o", output], check=True)
            lines = iter(output.read_text().splitlines())
            for wanted in excerpt.splitlines():
                pattern = re.escape(wanted.strip()).replace(r"\.\.\.", ".*")
                assert any(re.search(pattern, line) for line in lines), (
                    f"expected this line, behind those before it, in the output of {flags}:\n{wanted}"
                )
            source = output


def check_names(root):
    for page in PAGES:
        text = (root / f"docs/{page}.md").read_text()
        named = set(re.findall(r"(?<![/\w.])(?:docs|include|lib|scripts|test|tools)/[\w./-]*\w", text))
        # Headers, sources and folders; the page's own target does not exist yet.
        missing = sorted(name for name in named if not (root / name).exists())
        assert not missing, f"docs/{page}.md: expected these files to exist: {missing}"
        for link in re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", text):
            assert (root / "docs" / link).exists(), f"docs/{page}.md: expected {link} to exist"


def check_attributes(root):
    folder = root / "include/fp8/Dialect/FP8/IR"
    names = {name for path in folder.glob("*") for name in re.findall(r'StringLiteral k\w+ = "(fp8\.\w+)"', path.read_text())}
    page = (root / "docs/Debugging.md").read_text()
    missing = sorted(name for name in names if f"`{name}`" not in page)
    assert names and not missing, f"docs/Debugging.md: expected a description of {missing}"


def main():
    if sys.argv[1] == "--layers":
        print("\n".join(f"  {line}" for line in layers(pathlib.Path(sys.argv[2]))))
        return
    fp8_opt, root = sys.argv[1], pathlib.Path(sys.argv[2])
    page = (root / "docs/Architecture.md").read_text()
    check_layers(page, root)
    check_includes(root)
    check_excerpts(page, fp8_opt, root)
    check_names(root)
    check_attributes(root)


if __name__ == "__main__":
    main()
