"""examples/quickstart.ipynb runs as it is, with the outputs that it stores."""

import ast
import pathlib
import tempfile
import unittest

import nbclient
import nbformat
from traitlets.config import Config

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


class Quickstart(unittest.TestCase):
    def test_it_runs(self):
        notebook = nbformat.read(EXAMPLES / "quickstart.ipynb", as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.assertTrue(all(not cell.outputs and cell.execution_count is None for cell in code), "expected a notebook without outputs")
        # The client talks to the kernel by sockets in files, for a port that is free now may be taken when the kernel opens it. What a cell
        # prints arrives in one part or in several.
        sockets = self.enterContext(tempfile.TemporaryDirectory())
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}})
        patience = {"timeout": 300, "startup_timeout": 300, "iopub_timeout": 300}
        resources = {"metadata": {"path": str(EXAMPLES)}}
        nbclient.NotebookClient(notebook, kernel_name="python3", resources=resources, config=config, coalesce_streams=True, **patience).execute()

        def outputs(word, kind):
            cell = next(cell for cell in code if word in cell.source)
            return [output["data"][kind] for output in cell.outputs if kind in output.get("data", {})]

        self.assertIn("<table", outputs("step8.verdicts", "text/html")[0])
        (ends,) = (ast.literal_eval(text) for text in outputs("ends[recipe]", "text/plain"))
        self.assertEqual(list(ends), ["none", "tensorwise", "coat"])
        self.assertLess(ends["none"], 4.0)
        for recipe, loss in ends.items():
            self.assertLess(abs(loss - ends["none"]), 0.05 * ends["none"], recipe)
        self.assertEqual(len(outputs("plt.subplots", "image/png")), 1)
        printed = next(cell for cell in code if "state_bytes" in cell.source).outputs[0]["text"]
        self.assertEqual(len(printed.splitlines()), 3)


if __name__ == "__main__":
    unittest.main()
