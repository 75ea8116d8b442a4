"""Yields random windows of this repository's documentation, as bytes: data for the examples."""

import pathlib

import numpy as np

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def batches(rows=8, length=64, seed=0, prompt=0):
    """Yields endless batches {"tokens": int32[rows, length], "next": ..., "mask": float32}; the mask of the first `prompt`
    targets is 0."""
    files = sorted(DOCS.glob("*.md"))
    if not files:
        raise FileNotFoundError(f"expected the documentation, {DOCS}/*.md, to train on but found none: run the examples in a clone of the repository, or set text.DOCS")
    data = np.frombuffer(b"".join(path.read_bytes() for path in files), np.uint8)
    random = np.random.default_rng(seed)
    mask = np.ones((rows, length), np.float32)
    mask[:, :prompt] = 0
    while True:
        windows = np.stack([data[i : i + length + 1] for i in random.integers(0, len(data) - length - 1, rows)]).astype(np.int32)
        yield {"tokens": windows[:, :-1], "next": windows[:, 1:], "mask": mask}
