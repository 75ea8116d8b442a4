"""The verdicts on the dots of a step."""

import html
from typing import Any

_COLUMNS = ("verdict", "role", "layer", "m", "n", "k", "lhs", "rhs", "reason", "location")


class Verdicts(list):
    """A list with a dictionary for each dot, as in `verdicts.json`.

    `print(verdicts)` prints the table of fp8-run, a notebook shows it as
    HTML, `verdicts.to_pandas()` returns a DataFrame. `summary` is one line.
    """

    def __init__(self, report, text):
        super().__init__(report["dots"])
        self.report, self.summary = report, report["summary"]
        self._text = text

    def __str__(self):
        return self._text

    __repr__ = __str__

    def _repr_html_(self):
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(str(dot.get(column, '')))}</td>" for column in _COLUMNS) + "</tr>" for dot in self)
        return f"<table><caption>{html.escape(self.summary)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame with a row for each dot."""
        import pandas

        return pandas.DataFrame(list(self))
