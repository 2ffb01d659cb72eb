"""What a notebook shows: small tables that follow the theme, escaped; figures that are returned; a bar of progress."""

import re
import sys
from html.parser import HTMLParser
from types import ModuleType, SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import doublesampling as ds
from doublesampling import comparison, html, logs, off_policy, progress
from doublesampling.live.operating_characteristics import Characteristics
from doublesampling.plots import NotebookFigure

EVIL = "<script>alert(1)</script>"


class Cells(HTMLParser):
    """Collects the text of cells, and checks that every tag is closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        style = dict(attrs).get("style") or ""
        assert not re.search(r"#[0-9a-fA-F]{3}|rgb\(|white|black", style)  # colours come from the theme
        assert tag in ("div", "span", "table", "thead", "tbody", "tr", "th", "td")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and "table" in self.open and self.cells:
            self.cells[-1] += data


def shown(value: Any) -> list[str]:
    source = value._repr_html_()
    assert len(source) < 20_000
    return Cells(source).cells


def test_a_trial_shows_its_rules_and_its_looks():
    trial = ds.Trial(
        arms=["placebo", EVIL], allocation=ds.Allocation(floor=0.1), horizon=35, delay=3, stopping=ds.Stopping(
            looks=10, superiority=[0.99, 0.98, 0.97, 0.96], futility=0.9, futility_margin=0.1, control="placebo"
        ),
    )  # fmt: skip
    cells = shown(trial)
    assert cells[:4] == ["part", "setting", "arms", f"placebo (control), {EVIL}"]
    assert "Allocation(floor=0.1)" in cells
    start = cells.index("look")
    assert cells[start : start + 8] == ["look", "outcomes", "superiority", "futility", "1", "10", "0.99", "0.9"]
    assert cells[-4:] == ["4", "35", "0.96", "0.9"]
    assert "P(better than the control) is above superiority" in trial._repr_html_()
    assert "No looks" in ds.Trial(arms=["a", "b"], horizon=10)._repr_html_()
    many = ds.Trial(arms=["a", "b"], horizon=1000, stopping=ds.Stopping(looks=10, superiority=0.99))
    assert "100 looks" in many._repr_html_()
    assert len(shown(many)) < 40


def test_an_analysis_and_an_exact_test():
    log = {"arm": [0, 1] * 50, "reward": [0, 1, 1, 1] * 25, "propensities": np.full((100, 2), 0.5)}
    found = ds.analyse(log, (1, 0))
    assert shown(found)[6:8] == ["1 - 0", html.text(found.estimate)]
    assert found.trust in found._repr_html_()
    trial = ds.Trial(arms=["a", "b"], policy=ds.ThompsonSampling(), horizon=6)
    test = trial.exact_test((0, 2), (2, 2))
    assert shown(test)[4:6] == ["two-sided", f"{test.p_value:.4g}"]


def test_a_decision_shows_every_arm():
    belief = ds.BetaBernoulli(arms=3)
    state = belief.update_batch(belief.prior(), arms=[0, 1, 2, 2], rewards=[0, 1, 1, 1])
    decision = ds.decide(ds.DoubleSampling(), belief, state, seed=1)
    cells = shown(decision)
    assert cells[:4] == ["arm", "P(best)", "votes", "propensity"]
    assert len(cells) == 4 * 4
    assert cells[5] == f"{100 * decision.probability_optimal[0]:.1f} %"
    assert f"Play arm {decision.arm}" in decision._repr_html_()
    assert decision._repr_html_().count("font-weight:600") == 1 + 4  # the caption, and the arm that is played
    many = ds.decide_many(ds.ThompsonSampling(), belief, [state] * 60, seed=1)
    assert "and 40 more rows" in many._repr_html_()
    assert len(shown(many)) == 5 * 21


BELIEFS: list[Any] = [
    ds.BetaBernoulli(arms=2), ds.Gaussian(arms=2), ds.LinearGaussian(arms=2, dimension=3),
    ds.GammaPoisson(arms=2), ds.DirichletCategorical(arms=2, values=[0, 1, 5]), ds.Logistic(arms=2, dimension=2),
    ds.HybridLinearGaussian(arms=2, dimension=2),
]  # fmt: skip


@pytest.mark.parametrize("belief", BELIEFS, ids=lambda b: type(b).__name__)
def test_states_show_their_statistics(belief):
    state = belief.prior()
    cells = shown(state)
    assert cells[:2] == ["arm", "observations"]
    assert "root" not in cells
    if isinstance(belief, ds.BetaBernoulli):
        assert cells == ["arm", "observations", "alpha", "beta", "0", "0", "1", "1", "1", "0", "1", "1"]
    assert "mean" in state._repr_html_() or not hasattr(state, "mean")


def test_texts_are_escaped(sqlite_url):
    exp = ds.Experiment.create(EVIL, arms=[EVIL, "b & c"], seed=1, storage=sqlite_url)
    d = exp.ask(unit=EVIL)
    exp.tell(d.id, 1.0)
    for each in (exp, d, exp.explain(d.id), exp.replay()):
        assert "<script" not in each._repr_html_()
        shown(each)
    cells = shown(exp)
    assert EVIL in cells
    assert "b & c" in cells
    assert html.text([EVIL] * 9).count("&lt;") == 12
    assert ds.Features({EVIL: "number"})._repr_html_().count("<script") == 0


def test_an_experiment_shows_its_arms(sqlite_url):
    exp = ds.Experiment.create("t", arms=["a", "b", "c"], seed=1, storage=sqlite_url)
    exp.tell(exp.ask().id, 1.0)
    exp.drop_arm("b")
    cells = shown(exp)
    assert cells[:6] == ["arm", "decisions", "outcomes", "posterior mean", "95 %", "P(best)"]
    assert "b (dropped)" in cells
    assert "t: running" in exp._repr_html_()
    linear = ds.LinearGaussian(arms=2, dimension=2)
    contextual = ds.Experiment.create("c", arms=["a", "b"], belief=linear, seed=1, storage=sqlite_url)
    assert shown(contextual)[:3] == ["arm", "decisions", "outcomes"]  # no posterior without a context


def test_operating_characteristics_show_their_errors():
    found = Characteristics((0.3, 0.6), 20, 50, (0.9, 0.01), None, None, (2.5, 0.1), ((0.25, 0.01), (0.75, 0.01)))
    cells = shown(found)
    assert cells[3:9] == ["best arm wins", "0.9", "0.01", "regret", "2.5", "0.1"]
    assert cells[-3:] == ["share of arm 1", "0.75", "0.01"]


def test_off_policy_results_and_leaderboards_are_tables():
    rng = np.random.default_rng(0)
    log = logs.make_log(rng.choice(["a", "b"], 80).tolist(), rng.integers(0, 2, 80))
    found = off_policy.evaluate(ds.ThompsonSampling(), log)
    cells = shown(found)
    assert [cells[6 * i] for i in range(4)] == ["estimate", "replay", "ips", "dr"]
    rows = comparison.Leaderboard([comparison.Row("<b>", 1.0, 0.1, 0.2, 0.3, float("nan"), 2.0)])
    assert shown(rows)[7:] == ["<b>", "1", "0.1", "0.2", "30.0 %", "–", "2"]
    assert isinstance(rows, list)


def test_figures_are_returned_and_not_shown(monkeypatch):
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a figure was shown")

    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", refuse)
    monkeypatch.setattr(Figure, "show", refuse)
    before, backend = plt.get_fignums(), matplotlib.get_backend()
    result = ds.simulate(ds.BernoulliBandit([0.4, 0.8]), ds.ThompsonSampling(), horizon=5, realizations=2, seed=1)
    for draw in (result.ds.plot_regret, result.ds.plot_optimal_arm, result.ds.plot_candidates):
        figure = draw()
        assert isinstance(figure, NotebookFigure)
        assert figure._repr_png_().startswith(b"\x89PNG")
    assert plt.get_fignums() == before  # pyplot holds no figure, so nothing is drawn twice and nothing leaks
    assert matplotlib.get_backend() == backend


class Output:
    """The outputs of a cell, as IPython keeps them."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def display(self, shown: str, display_id: bool) -> "Output":
        assert display_id
        self.drawn.append(shown)
        return self

    def update(self, shown: str) -> None:
        self.drawn.append(shown)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Output:
    """A Jupyter kernel, as far as progress asks for one."""
    output, ipython, display = Output(), ModuleType("IPython"), ModuleType("IPython.display")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    vars(display).update(display=output.display, HTML=str)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return output


def test_a_notebook_gets_a_bar_that_is_emptied_at_the_end(notebook, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_REDRAW_EVERY", 0.0)
    watched = progress.Progress(None, "simulating <b>")
    with watched.over(4, 0, "blocks"):
        for _ in range(4):
            watched.advance(1)
    assert "2 of 4 blocks" in "".join(notebook.drawn)
    assert "width:50.0%" in "".join(notebook.drawn)
    assert notebook.drawn[-1] == ""
    assert "<b>" not in "".join(notebook.drawn)
    for drawn in notebook.drawn:
        Cells(drawn)
    assert capsys.readouterr().err == ""


def test_nothing_is_drawn_where_progress_is_not_wanted_or_quick(notebook):
    for wish in (False, None):
        watched = progress.Progress(wish, "simulating")
        with watched.over(2, 0, "blocks"):
            watched.advance(2)
    assert notebook.drawn == []


def test_a_terminal_of_ipython_is_not_a_notebook(notebook, monkeypatch):
    assert progress.notebook_display() is not None
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())
    assert progress.notebook_display() is None
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert progress.notebook_display() is None
