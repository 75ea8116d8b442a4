"""FP8 training steps: `step8 = fp8.compile(step, state, batch)` beside `jax.jit(step)`.

>>> import fp8
>>> step8 = fp8.compile(step, state, batch, recipe="fp8")         # doctest: +SKIP
>>> state, metrics = step8(state, batch)                           # doctest: +SKIP
>>> print(step8.verdicts)                                          # doctest: +SKIP

Importing takes a few milliseconds: the compiler, NumPy and JAX are loaded on
first use. docs/Python.md is the guide.
"""

import importlib

# The module of each public name.
_PLACES = {
    "compile": "compiler",
    "CompileError": "compiler",
    "CompileWarning": "compiler",
    "version": "compiler",
    "evaluate": "evaluation",
    "export_weights": "evaluation",
    "Group": "group",
    "RankError": "group",
    "load": "package",
    "opt": "passes",
    "Recipe": "recipe",
    "report": "report_page",
    "ReportError": "report_page",
    "Step": "step",
    "StateArray": "state",
    "AlarmStop": "trainer",
    "AlarmWarning": "trainer",
    "Trainer": "trainer",
    "copy": "state",
    "Verdicts": "verdicts",
}

__all__ = sorted(_PLACES)


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(f"module 'fp8' has no attribute '{name}'; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"fp8.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *__all__])
