"""Assembles all GPU kernels of a module of stage 4, and counts those with spills."""

import csv
import pathlib
import subprocess
import sys


def assemble(opt, module, folder, chip):
    subprocess.run(
        [opt, module, f"--fp8-target=nvptx={chip}", "--fp8-gpu-codegen", "--fp8-to-nvvm"] + [f"--fp8-emit-gpu-code=image=cubin directory={folder}", "-o", "/dev/null"],
        check=True,
    )
    with open(folder / "resources.csv") as file:
        return list(csv.DictReader(file))


def main(opt, module, folder, *chips):
    for chip in chips:
        rows = assemble(opt, module, pathlib.Path(folder) / chip, chip)
        spilled = [row for row in rows if int(row["spilled"]) or int(row["stack"])]
        print(f"{chip}: {len(rows)} kernels, {len(spilled)} with spills")
        for row in spilled:
            print(f"  {row['kernel']}: {row['spilled']} bytes, {row['registers']} registers")


main(*sys.argv[1:])
