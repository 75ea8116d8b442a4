"""Training steps of many kinds, traced by JAX, with JAX's names and with every name
stripped and the arguments and results in random order: the role that fp8-run finds for
each argument, the result that replaces it, and the loss must be those of the Python
source. All layers have matrices of one shape, so that shapes do not distinguish them.

    python check.py FP8_RUN FOLDER FAMILY [CASE...]

A family is a module beside this file with the cases.
"""

import concurrent.futures
import importlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import fp8_testing as t  # noqa: E402
import jax  # noqa: E402
from cases import case as cases  # noqa: E402

t.compile_quickly()


def labels_of(tree):
    """Returns the paths of the leaves of a dictionary of arguments, each with its argument's name."""
    return [name + jax.tree_util.keystr(keys) for name, value in tree.items() for keys, _ in jax.tree_util.tree_flatten_with_path(value)[0]]


def explain(fp8_run, path, *options):
    """Returns what fp8-run prints of each argument and result: (path, role, kind or state)."""
    lines = t.run([fp8_run, path, "--explain-signature", *options]).stdout.splitlines()
    split = lines.index("results:")
    arguments = [re.split(r"  +", line.strip())[:4] for line in lines[1:split]]
    results = [re.split(r"  +", line.strip())[:4] for line in lines[split + 1 :]]
    return arguments, results


def check_unclear(fp8_run, path, error, options):
    result = t.run([fp8_run, path, "--explain-signature", *options], check=False)
    return [] if error in result.stderr else [f"expected '{error}' but got {result.stderr[:200]}"]


def check(name, fp8_run, folder):
    case = cases[name]()
    new_state, out = jax.eval_shape(case.step, **case.args)
    result_labels = labels_of({key: new_state[key] for key in case.state}) + ["out" + jax.tree_util.keystr(keys) for keys, _ in jax.tree_util.tree_flatten_with_path(out)[0]]

    def flat(*args):
        new_state, out = case.step(**dict(zip(case.args, args)))
        return [new_state[key] for key in case.state], out

    # Exports once: without donation the stripped text equals that of an export without donation.
    donate = [i for i, key in enumerate(case.args) if key in case.state]
    lowered = jax.jit(flat, donate_argnums=donate).lower(*case.args.values())
    kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    arg_labels = [labels_of(case.args)[i] for i in kept]
    text, problems = lowered.as_text(), set()
    path = folder / f"{name}.mlir"
    path.write_text(lowered.as_text(debug_info=True))
    problems.update(compare(case, explain(fp8_run, path), arg_labels, result_labels))
    for seed, donated in ((0, False), (1, True)):
        stripped, order, result_order = t.strip_names(text, seed=seed, donated=donated)
        path = folder / f"{name}-{seed}.mlir"
        path.write_text(stripped)
        labels, options = [arg_labels[i] for i in order], []
        for label in case.unclear:
            number = labels.index(label)
            problems.update(check_unclear(fp8_run, path, f"ambiguous state: 'arg{number}' is", options))
            options.append(f"--role=arg{number}={case.roles[label]}")
        problems.update(compare(case, explain(fp8_run, path, *options), labels, [result_labels[i] for i in result_order]))
    return sorted(problems)


def compare(case, explained, arg_labels, result_labels):
    arguments, results = explained
    assert len(arguments) == len(arg_labels) and len(results) == len(result_labels)
    problems = []

    def expect(label, what, expected, got):
        if expected != got:
            problems.append(f"{label}: expected {what} {expected} but got {got}")

    by_path = {path: label for (path, *_), label in zip(arguments, arg_labels)}
    state = set(arg_labels) & set(result_labels)
    for (_, _, role, *_), label in zip(arguments, arg_labels):
        if label not in state:
            expected = next((role for root, role in case.roles.items() if re.match(root + r"\b", label)), "constant")
            expect(label, "role", expected, role)
            continue
        expected = next((kind for pattern, kind in case.kinds if re.search(pattern, label)), "other")
        expect(label, "role", f"state {expected or role.partition(' ')[2]}", role)
    for (_, _, kind, *_), label in zip(results, result_labels):
        if label in state:
            path = kind.partition(" ")[2]
            replaced = by_path.get(path, kind)
            if not (re.search(case.alike, label) and re.search(case.alike, replaced)):
                expect(label, "replaced argument", label, replaced)
        elif label == "out" + case.loss:
            expect(label, "kind", "loss", kind)
        elif kind not in ("metric", "output"):
            problems.append(f"{label}: expected metric or output but got {kind} ({by_path.get(kind.partition(' ')[2])})")
    return problems


def main():
    fp8_run, folder, family, *only = sys.argv[1:]
    importlib.import_module(family)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    failed = []

    def attempt(name):
        try:
            return check(name, fp8_run, folder)
        except SystemExit as error:
            return [str(error)]

    names = only or list(cases)
    # Two threads: one case is traced while fp8-run reads another.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(attempt, names))
    for name, problems in zip(names, found):
        print(name, "as written" if not problems else f"{len(problems)} mistakes")
        for problem in problems[:8]:
            print("   ", problem)
        failed += [name] * bool(problems)
    if failed:
        raise SystemExit(f"expected every signature to be recognized but got mistakes in {', '.join(failed)}")


main()
