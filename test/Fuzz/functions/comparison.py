"""Runs a function, or three steps, with fp8-run, and compares the results with JAX's."""

import json
import os
import subprocess

import numpy as np

from .program import build, evaluate

STEPS = 3


class Mismatch(Exception):
    pass


def run_tool(command, directory):
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=300)
    if done.returncode != 0:
        raise Mismatch(f"exit code {done.returncode}: {(done.stderr or done.stdout)[-1500:]}")


def compile_and_run(program, tool, directory, threads):
    import jax
    from safetensors.numpy import load_file, save_file

    path = os.path.join(directory, "f.mlir")
    save = {f"arg{i}": np.array(a, order="C") for i, a in enumerate(program.inputs.values())}
    with open(path, "w") as file:
        lowered = jax.jit(build(program, False), keep_unused=True).lower(*program.inputs.values())
        file.write(lowered.as_text())
    out = os.path.join(directory, f"out{threads}.safetensors")
    save_file(save, os.path.join(directory, "in.safetensors"))
    run_tool(
        [tool, path, "--entry", "main", "--inputs", "in.safetensors"] + ["--outputs", out, "--threads", str(threads), "--quiet"],
        directory,
    )
    found = load_file(out)
    if len(found) != len(program.results):
        raise Mismatch(f"expected {len(program.results)} results but got {list(found)}")
    single = "result" in found
    return [found["result" if single else f"result[{i}]"] for i in range(len(found))]


def train(program, tool, directory, threads):
    """Runs three steps; returns the states of the last checkpoint."""
    import jax
    from safetensors.numpy import load_file, save_file

    states = [s for s, _ in program.states]
    batch = [n for n in program.inputs if n not in states]
    f = build(program, False)

    def step(state, batch):
        results = f(**state, **{n: batch[n] for n in batch if n != "unused"})
        return dict(zip(states, results)), results[-1]

    state_values = {s: program.inputs[s] for s in states}
    batch_values = {n: program.inputs[n] for n in batch}
    batch_values = batch_values or {"unused": np.zeros(3, np.float32)}
    path = os.path.join(directory, "f.mlir")
    with open(path, "w") as file:
        lowered = jax.jit(step, keep_unused=True).lower(state_values, batch_values)
        file.write(lowered.as_text(debug_info=True))
    save_file(
        {f"state['{s}']": np.array(a, order="C") for s, a in state_values.items()},
        os.path.join(directory, "in.safetensors"),
    )
    command = [tool, path, "--init", "in.safetensors", "--recipe", "none", "--steps", str(STEPS)]
    for name, array in batch_values.items():
        file = f"batch_{name}.safetensors"
        save_file({"t": np.array(array[None], order="C")}, os.path.join(directory, file))
        command += ["--batch", f"batch['{name}']={file}"]
        command += ["--role", f"batch['{name}']=batch"]
    for s in states:
        command += ["--state", f"state['{s}']=result[0]['{s}']"]
    command += ["--loss", "result[1]"]
    out = f"run{threads}"
    run_tool(
        command + ["--out", out, "--overwrite", "--threads", str(threads), "--quiet"],
        directory,
    )
    directory = os.path.join(directory, out)
    checkpoint = [n for n in os.listdir(directory) if n.startswith("checkpoint-")]
    found = load_file(os.path.join(directory, checkpoint[0]))
    with open(os.path.join(directory, "log.jsonl")) as file:
        loss = json.loads(file.read().splitlines()[-1])["loss"]
    return [found[f"state['{s}']"] for s in states] + [np.float32(loss)]


def reference(program, double, perturb=0.0):
    if not program.states:
        return evaluate(program, double, perturb)
    inputs = dict(program.inputs)
    for _ in range(STEPS):
        results = evaluate(program, double, perturb, inputs)
        for (state, _), result in zip(program.states, results):
            inputs[state] = result
    return results


def check(program, tool, directory):
    exact = reference(program, True)
    single = reference(program, False)
    run = train if program.states else compile_and_run
    if program.states and not all(np.isfinite(s).all() for s in single):
        return
    got = run(program, tool, directory, 1)
    again = run(program, tool, directory, 2)
    moved = None
    for i, (g, a, e, s) in enumerate(zip(got, again, exact, single)):
        if g.tobytes() != a.tobytes():
            raise Mismatch(f"result {i} differs between 1 and 2 threads")
        if g.shape != s.shape or g.dtype != s.dtype:
            raise Mismatch(f"result {i}: expected {s.dtype}{s.shape} but got {g.dtype}{g.shape}")
        if s.dtype != np.float32:
            wrong = (g != s) & (s == e)
        else:
            scale = np.max(np.abs(e[np.isfinite(e)]), initial=0)
            relative = 2e-2 if program.low_precision else 1e-5
            limit = relative * (scale + np.abs(e)) + 20 * np.abs(s - e)
            with np.errstate(invalid="ignore"):
                wrong = np.abs(g - e) > limit
            wrong |= np.isfinite(s) & ~np.isfinite(g)
            wrong |= np.isnan(s) & ~np.isnan(g)
            if wrong.any():
                # The function itself may be that steep here.
                moved = moved or [reference(program, True, p) for p in (3e-7, -1e-6)]
                for m in moved:
                    with np.errstate(invalid="ignore"):
                        wrong &= ~(np.abs(g - e) <= limit + 100 * np.abs(m[i] - e))
        if wrong.any():
            if s.dtype != np.float32:
                # A comparison may go either way.
                moved = moved or [reference(program, True, p) for p in (3e-7, -1e-6)]
                for m in moved:
                    wrong &= m[i] == e
                if not wrong.any():
                    continue
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            raise Mismatch(f"result {i} ({program.results[i]}) of shape {g.shape}: {int(wrong.sum())} of {g.size} wrong, first at {at}: expected {e[at]} but got {g[at]}")
