"""How a notebook shows an experiment: its status, and a row per arm."""

from typing import Any

from doublesampling import html
from doublesampling.errors import DoubleSamplingError
from doublesampling.live.unavailable import NotImportedError


class NotebookView:
    """Shows an experiment as a table where it is the last value of a cell."""

    def _repr_html_(self: Any) -> str:
        try:
            content = self.summary()
        except DoubleSamplingError as problem:  # a store that cannot be read must not break the notebook
            return html.block(html.line(f"Experiment {self.name}", bold=True), html.line(str(problem)))
        known: Any = None
        if self.design.belief.dimension is None:
            try:
                known = self.posterior()
            except NotImportedError:
                known = None
        headings = ["arm", "decisions", "outcomes"] + ([] if known is None else ["posterior mean", "95 %", "P(best)"])
        rows = [_row(arm, None if known is None else known.iloc[i]) for i, arm in enumerate(content["arms"])]
        caption = f"{content['name']}: {content['status']}"
        counts = f"{content['decisions']:,} decisions, {content['outcomes']:,} outcomes, {content['waiting']:,} waiting"
        told = f"{content['belief']}, {content['policy']}, seed {content['seed']}"
        return html.block(html.table(rows, headings, caption=caption), html.line(counts), html.line(told))


def _row(arm: dict[str, Any], law: Any) -> tuple[Any, ...]:
    cells = (arm["name"] + ("" if arm["active"] else " (dropped)"), arm["decisions"], arm["outcomes"])
    if law is None:
        return cells
    return (*cells, law["mean"], f"{law['low']:.4g} to {law['high']:.4g}", html.bar(law["probability_optimal"]))
