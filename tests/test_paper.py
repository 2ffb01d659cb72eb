"""The reproduction: problems, measures, figures and verdicts from known numbers, and the whole run at a tiny scale."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from doublesampling.bandits import BernoulliBandit, LinearGaussianBandit
from doublesampling.cli.main import main
from doublesampling.engine.simulate import simulate
from doublesampling.errors import DoubleSamplingError, Interrupted, OutputError, SettingError
from doublesampling.paper import claims, figures, linear_claims, measures, published, reproduce, verdicts
from doublesampling.paper.document import Block, Heading, Paragraph, Picture, Table, to_html, to_markdown
from doublesampling.paper.experiments import EXPERIMENTS, GRID, LINEAR_PROBLEMS, ONE_CANDIDATE
from doublesampling.paper.published import BAYES_UCB, FAIR, KL_EDGES, OURS, RIVALS, THOMPSON


def test_the_sweeps_hold_the_problems_that_the_paper_names() -> None:
    """153 pairs and 816 triples in ascending order; linear problems on their grid, no two alike."""
    bernoulli: Any = EXPERIMENTS["bernoulli-sweep"].bandits
    found = [bandit.probabilities for bandit in bernoulli]
    assert len(set(map(tuple, found))) == 153 + 816
    assert all(list(theta) == sorted(theta) and set(theta) <= set(GRID) for theta in found)
    for name in ("linear-sweep", "linear-sweep-free"):
        linear: Any = EXPERIMENTS[name].bandits
        weights = np.array([bandit.weights for bandit in linear])
        noise = np.array([float(np.max(bandit.noise)) for bandit in linear])
        assert len({(*w.ravel(), n) for w, n in zip(weights, noise, strict=True)}) == LINEAR_PROBLEMS
        assert np.allclose(weights * 10, np.round(weights * 10))
        assert abs(weights).max() <= 1.0
        assert np.allclose(noise * 10, np.round(noise * 10))
        assert noise.min() >= 0.1
        assert noise.max() <= 1.0


def test_figure_6_is_run_as_its_authors_ran_it() -> None:
    """Equal entries in ascending order, one path of contexts, their axis and their prior; the text's grid beside it."""
    as_run, free = EXPERIMENTS["linear-sweep"], EXPERIMENTS["linear-sweep-free"]
    for problem in as_run.bandits:
        assert isinstance(problem, LinearGaussianBandit)
        (worse, same), (better, again) = problem.weights
        assert worse == same < better == again
        assert problem.path == "shared"
        gap = better - worse  # E (x_1 + x_2)^2 = 7 / 6 on the unit square
        assert as_run.divergence(problem) == pytest.approx(0.5 * 7 / 6 * gap**2 / problem.noise, rel=1e-12)
        assert measures.one_arm_dominates(problem)
    crossing = [measures.one_arm_dominates(problem) for problem in free.bandits]  # type: ignore[arg-type]
    assert 0.3 < np.mean(crossing) < 0.7
    for experiment in (as_run, free, EXPERIMENTS["linear"]):
        assert (experiment.belief.mean, experiment.belief.covariance) == (1.0, 1.0), "the paper's prior"
        assert experiment.belief.alpha == experiment.belief.beta == 1.0


def test_divergences_against_scipy_and_sampling() -> None:
    """The Bernoulli one by SciPy's entropy; the linear one by averaging over contexts."""
    theta = (0.2, 0.5, 0.7)
    expected = min(stats.entropy([p, 1 - p], [0.7, 0.3]) for p in theta[:2])
    assert measures.bernoulli_divergence(BernoulliBandit(theta)) == pytest.approx(expected, rel=1e-12)
    bandit = LinearGaussianBandit(weights=[[0.3, -0.5], [0.9, 0.1]], noise=0.4)
    points = (np.arange(400) + 0.5) / 400
    x = np.stack(np.meshgrid(points, points), axis=-1)
    gap = x @ (np.array([0.3, -0.5]) - np.array([0.9, 0.1]))
    assert measures.linear_divergence(bandit) == pytest.approx((gap**2).mean() / (2 * 0.4**2), rel=1e-4)


def slow_lowess(x: np.ndarray, y: np.ndarray, share: float) -> np.ndarray:
    """Cleveland's recipe with NumPy's weighted polynomial fit."""
    size, trust = int(np.ceil(share * x.size)), np.ones(x.size)
    for _ in range(4):
        smooth = np.empty(x.size)
        for i in range(x.size):
            distance = abs(x - x[i])
            weight = np.clip(1 - (distance / np.sort(distance)[size - 1]) ** 3, 0, 1) ** 3 * trust
            smooth[i] = np.polyval(np.polyfit(x, y, 1, w=np.sqrt(weight)), x[i])
        residual = abs(y - smooth)
        trust = np.maximum(np.clip(1 - (residual / (6 * np.median(residual))) ** 2, 0, 1) ** 2, 1e-12)
    return smooth


def test_lowess_against_weighted_fits() -> None:
    """The same curve in any order of the points, and outliers do not move it."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 1, 80))
    y = np.sin(3 * x) + 0.05 * rng.normal(size=80)
    y[10] += 5.0
    curve = measures.lowess(x, y)
    assert curve == pytest.approx(slow_lowess(x, y, 0.3), abs=1e-8)
    order = rng.permutation(80)
    assert measures.lowess(x[order], y[order]) == pytest.approx(curve[order], abs=1e-12)
    assert abs(curve - np.sin(3 * x)).max() < 0.1


def table(regret: dict[str, list[float]], kl: list[float], error: float = 0.01, last: int = 1500) -> xr.Dataset:
    """A dataset with the given final regrets per policy and bandit."""
    values = np.array(list(regret.values())).T[:, :, None]
    dims = ("bandit", "policy", "time")
    filled = {
        name + suffix: (dims, values * factor)
        for name in ("cumulative_regret", "observed_cumulative_regret")
        for suffix, factor in (("", 1.0), ("_error", error), ("_std", error))
    }
    return xr.Dataset(
        filled,
        coords={"policy": list(regret), "time": [last], "kl": ("bandit", kl), "noise": ("bandit", [0.2] * len(kl))},
        attrs={"realizations": "5000"},
    )


def test_relative_differences_by_divergence() -> None:
    """Delta, its error by the delta method, and means between edges."""
    data = table({OURS: [6.0, 9.0, 5.0], THOMPSON: [10.0, 10.0, 10.0]}, kl=[0.3, 0.02, 0.4])
    delta, error = measures.relative_difference(data, OURS, THOMPSON)
    assert delta == pytest.approx([-0.4, -0.1, -0.5])
    assert error == pytest.approx(np.array([0.6, 0.9, 0.5]) * np.sqrt(2) * 0.01)
    (few, hard), (many, easy) = measures.by_divergence(data, OURS, THOMPSON, (0.0, 0.25, np.inf))
    assert (few, many) == (1, 2)
    assert hard.value == pytest.approx(-0.1)
    assert easy.value == pytest.approx(-0.45)
    assert easy.error == pytest.approx(np.hypot(error[0], error[2]) / 2)


def test_paired_differences_cancel_common_luck() -> None:
    """A policy that always loses a tenth more has an error of zero."""
    luck = np.random.default_rng(1).gamma(2.0, size=(3, 50))
    final = xr.Dataset(
        {"final_regret": (("policy", "bandit", "realization"), np.stack([1.1 * luck, luck]))},
        coords={"policy": ["a", "b"]},
    ).transpose("bandit", "policy", "realization")
    delta, error = measures.paired_difference(final, "a", "b")
    assert delta == pytest.approx([0.1] * 3)
    assert error == pytest.approx([0.0] * 3, abs=1e-12)


def judge(name: str, data: verdicts.Datasets) -> str:
    """The verdict on the first claim that begins so."""
    return next(claim for claim in claims.CLAIMS if claim.says.startswith(name)).judge(data).verdict


def test_verdicts_follow_the_numbers() -> None:
    """The same judge says yes to the published numbers, and no to others."""
    at_1000 = {policy: [mean] for policy, (mean, _) in published.FIGURE_3[1000].items()}
    right = {"bernoulli": table(at_1000, [1.0], last=1000)}
    wrong = {"bernoulli": table(at_1000 | {THOMPSON: [9.0]}, [1.0], last=1000)}
    assert judge("the regrets of figure 3", right) == verdicts.REPRODUCED
    assert judge("the regrets of figure 3", wrong) == verdicts.NOT
    for rival, claimed in published.BERNOULLI_REDUCTION.items():
        for delta, verdict in ((-claimed, verdicts.REPRODUCED), (-claimed - 0.1, verdicts.NOTED), (0.1, verdicts.NOT)):
            sweep = table({OURS: [1 + delta], FAIR: [1 + delta], rival: [1.0]}, kl=[0.3])
            assert (
                judge(f"regret reductions around {claimed:.0%}".replace("%", " %"), {"bernoulli-sweep": sweep})
                == verdict
            )
    regret = {OURS: [1.04, 0.6], FAIR: [0.8, 0.6], THOMPSON: [1.0, 1.0]}
    assert judge("performance worsens", {"bernoulli-sweep": table(regret, [0.02, 0.6])}) == verdicts.NOTED
    regret[OURS] = [0.5, 0.6]
    assert judge("performance worsens", {"bernoulli-sweep": table(regret, [0.02, 0.6])}) == verdicts.NOT
    order = {OURS: [5.0, 20.0], THOMPSON: [7.0, 25.0], BAYES_UCB: [9.0, 30.0]}
    assert judge("double sampling has the lowest", {"linear": table(order, [1, 1])}) == verdicts.REPRODUCED
    assert judge("the regrets of figure 5", {"linear": table(order, [1, 1])}) == verdicts.NOT
    exactly = {policy: [value, value] for policy, value in published.FIGURE_5.items()}
    assert judge("the regrets of figure 5", {"linear": table(exactly, [1, 1])}) == verdicts.REPRODUCED
    order[OURS] = [8.0, 20.0]
    assert judge("double sampling has the lowest", {"linear": table(order, [1, 1])}) == verdicts.NOT


def noisy(sweep: xr.Dataset, error: float) -> xr.Dataset:
    """The same means with larger errors: fewer realizations."""
    names = [name for name in sweep.data_vars if str(name).endswith("_error")]
    return sweep.assign({name: sweep[name] * 0 + error for name in names}).assign_attrs(realizations="10")


def test_a_run_that_cannot_support_a_verdict_says_so() -> None:
    """The same means, with errors as large as what is judged: no verdict but "too few realizations"."""
    at_1000 = {policy: [mean] for policy, (mean, _) in published.FIGURE_3[1000].items()}
    bernoulli = table(at_1000, [1.0], last=1000).assign_attrs(realizations="1000")
    assert judge("the regrets of figure 3", {"bernoulli": noisy(bernoulli, 1.5)}) == verdicts.TOO_FEW
    sweep = table({OURS: [0.6, 1.0], FAIR: [0.6, 0.9], THOMPSON: [1.0, 1.0], BAYES_UCB: [0.8, 1.0]}, [0.5, 0.02])
    sure, unsure = {"bernoulli-sweep": sweep}, {"bernoulli-sweep": noisy(sweep, 0.3)}
    for claim in ("regret reductions around 40", "regret reductions around 25", "performance worsens", "near-equiv"):
        assert judge(claim, sure) != verdicts.TOO_FEW
        assert judge(claim, unsure) == verdicts.TOO_FEW
    order = {OURS: [5.0, 20.0], THOMPSON: [7.0, 25.0], BAYES_UCB: [9.0, 30.0]}
    assert judge("double sampling has the lowest", {"linear": noisy(table(order, [1, 1]), 3.0)}) == verdicts.TOO_FEW
    one = table(order, [1, 1])
    one = one.assign({name: one[name] * np.nan for name in one.data_vars if str(name).endswith("_error")})
    assert judge("double sampling has the lowest", {"linear": one}) == verdicts.TOO_FEW, "one realization has no error"


def test_scattered_points_are_told_from_noise() -> None:
    """Problems that differ are scattered; the same picture made by Monte Carlo noise alone is not judged."""
    rng = np.random.default_rng(1)
    kl = np.concatenate([np.full(300, 0.1), np.full(300, 0.5)]).tolist()
    one = np.ones(600)
    spread = one + np.concatenate([0.2 * rng.normal(size=300), 0.02 * rng.normal(size=300)])
    scattered = table({OURS: spread.tolist(), THOMPSON: one.tolist()}, kl, error=0.01)
    assert judge("points are scattered", {"bernoulli-sweep": scattered}) == verdicts.REPRODUCED
    even = table({OURS: (one + 0.1 * rng.normal(size=600)).tolist(), THOMPSON: one.tolist()}, kl, error=0.01)
    assert judge("points are scattered", {"bernoulli-sweep": even}) == verdicts.NOT
    noise = one + np.concatenate([0.35 * rng.normal(size=300), 0.3 * rng.normal(size=300)])
    blurred = table({OURS: noise.tolist(), THOMPSON: one.tolist()}, kl, error=0.22)
    assert judge("points are scattered", {"bernoulli-sweep": blurred}) == verdicts.TOO_FEW


def figure_6_table(shift: float = 0.0, spread: float = 0.02) -> xr.Dataset:
    """Problems whose mean in every bin is the published one, moved by a shift."""
    rng = np.random.default_rng(1)
    kl: list[float] = []
    regret: dict[str, list[float]] = {OURS: [], FAIR: [], THOMPSON: [], BAYES_UCB: []}
    for (low, high), deltas in published.FIGURE_6.items():
        for _ in range(40):
            kl.append(float(rng.uniform(low, high)))
            noise = spread * rng.normal()
            for name in (OURS, FAIR):
                regret[name].append(1.0)
            for rival in RIVALS:
                regret[rival].append(1.0 / (1.0 + deltas[rival] + shift + noise))
    return table(regret, kl)


def test_figure_6_is_judged_bin_by_bin() -> None:
    """The published means are recognised, means that are off by five points are not, a coarse run says nothing."""
    claim = "the points of figure 6"
    assert judge(claim, {"linear-sweep": figure_6_table()}) == verdicts.REPRODUCED
    assert judge(claim, {"linear-sweep": figure_6_table(shift=0.05)}) == verdicts.NOT
    assert judge(claim, {"linear-sweep": figure_6_table(spread=0.2)}) == verdicts.TOO_FEW
    bins = linear_claims.figure_6_bins(figure_6_table(), OURS, THOMPSON)
    assert [(each.low, each.high) for each in bins] == list(published.FIGURE_6)
    assert all(each.problems == 40 for each in bins)


def test_figures_draw_the_numbers_of_their_datasets() -> None:
    """Points and curves of figure 4 are those of the measures; nothing is drawn from elsewhere."""
    rng = np.random.default_rng(1)
    kl = np.sort(rng.uniform(0, 1, 40)).tolist()
    data = table({name: rng.uniform(1, 2, 40).tolist() for name in (OURS, FAIR, *RIVALS)}, kl)
    drawn = figures.draw_relative_regret(data)
    for axes, ours in zip(drawn.axes, (OURS, FAIR), strict=True):
        for points, rival in zip(axes.collections, RIVALS, strict=True):
            delta, _ = measures.relative_difference(data, ours, rival)
            assert np.asarray(points.get_offsets()) == pytest.approx(np.column_stack([kl, delta]))
        labelled = [line for line in axes.lines if str(line.get_label()).startswith("against")]
        for line, rival in zip(labelled, RIVALS, strict=True):
            delta, _ = measures.relative_difference(data, ours, rival)
            assert np.asarray(line.get_ydata()) == pytest.approx(measures.lowess(np.array(kl), delta))


def test_figures_say_how_many_points_lie_outside() -> None:
    """Two points above the axis and two beyond it are counted; where all are shown, that is said."""
    kl = np.linspace(0.01, 1.0, 40)
    regret = {name: [1.0] * 40 for name in (OURS, FAIR, *RIVALS)}
    regret[OURS] = [3.5, *regret[OURS][1:]]
    shown = figures.draw_relative_regret(table(regret, kl.tolist()))
    assert [axes.texts[-1].get_text() for axes in shown.axes] == [
        "6 of 80 points lie outside",  # one problem above the axis and two beyond it, against two rivals
        "4 of 80 points lie outside",
    ]
    right = table({name: [1.0] * 40 for name in (OURS, FAIR, *RIVALS)}, kl.tolist())
    both = figures.draw_linear_relative_regret(table(regret, kl.tolist()), right)
    assert both.axes[0].texts[-1].get_text() == "2 of 80 points lie outside"
    assert both.axes[1].texts[-1].get_text() == "all 80 points are shown"


def test_documents_escape_and_embed(tmp_path: Path) -> None:
    """Nothing of the text becomes markup, and the page carries its pictures."""
    picture = tmp_path / "figures" / "a.png"
    picture.parent.mkdir()
    picture.write_bytes(b"\x89PNG")
    blocks: list[Block] = [
        Heading("a < b"),
        Paragraph("`x<y` & z"),
        Picture(picture, "c"),
        Table(("k",), (("1 | 2",),), marks=()),
    ]
    page = to_html(blocks, "t")
    assert "a &lt; b" in page
    assert "<code>x&lt;y</code> &amp; z" in page
    assert "data:image/png;base64,iVBORw==" in page
    assert "http" not in page
    text = to_markdown(blocks, tmp_path)
    assert "(figures/a.png)" in text
    assert "1 \\| 2" in text


def check_report(out: Path, page: Path) -> dict[str, xr.Dataset]:
    """Every figure is drawn, every claim judged from numbers of the datasets; returns these."""
    for figure in range(1, 7):
        assert (out / "figures" / f"figure{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / "figures" / f"figure{figure}.pdf").read_bytes().startswith(b"%PDF")
    text, shown = (out / "report.md").read_text(), page.read_text()
    ending = text[text.index("## Every claim") :]
    for claim in claims.CLAIMS:
        row = next(line for line in ending.splitlines() if line.startswith(f"| {claim.says} |"))
        words = (verdicts.REPRODUCED, verdicts.NOTED, verdicts.NOT, verdicts.TOO_FEW)
        assert any(f"| {verdict} |" in row for verdict in words)
        assert re.search(r"\d", row.split("|")[4]), "a verdict comes with numbers"
        assert claim.says.replace("<", "&lt;") in shown
    assert "nan" not in text
    assert "not run" not in text
    # pictures stand in the page as base64, which may spell anything
    assert "http" not in re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", shown)
    data = {name: xr.open_dataset(out / "data" / f"{name}.nc", engine="scipy").load() for name in EXPERIMENTS}
    regret = measures.final(data["horizon"], THOMPSON, 0)
    cell = f"| (0.85, 0.9) | {regret.value:.1f} ± {regret.error:.1f} |"
    assert cell in text, "the report's numbers are the datasets'"
    final = data["settings"].final_regret
    assert (final.sel(policy=ONE_CANDIDATE).values == final.sel(policy=THOMPSON).values).all()
    return data


@pytest.fixture
def thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of every 25th problem, and shorter long runs: every line of the reproduction in a few seconds."""
    for name, experiment in EXPERIMENTS.items():
        if "sweep" in name:
            monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, bandits=experiment.bandits[::25]))
        if name == "horizon":
            monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, horizon=3000))


def test_the_whole_run_in_small(tmp_path: Path, thinned: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure and claim; refused where the folder holds another run, and gone on with where it is the same."""
    out = tmp_path / "run"
    page = reproduce.reproduce(out, scale="quick", realizations=10)
    data = check_report(out, page)
    with pytest.raises(OutputError, match="--resume"):
        reproduce.reproduce(out, scale="quick", realizations=10)
    with pytest.raises(OutputError, match="seed 1, this run has 2"):
        reproduce.reproduce(out, scale="quick", realizations=10, seed=2, resume=True)
    with pytest.raises(OutputError, match="scale quick, this run has paper"):
        reproduce.reproduce(out, scale="paper", realizations=10, resume=True)
    (out / "data" / "linear.nc").unlink()
    monkeypatch.setattr(reproduce, "_write", lambda folder, *_: folder)  # figures of a resumed run: see below
    reproduce.reproduce(out, scale="quick", realizations=10, resume=True)
    again = xr.open_dataset(out / "data" / "linear.nc", engine="scipy").load()
    assert again.drop_attrs().equals(data["linear"].drop_attrs())


@pytest.mark.slow
def test_the_whole_run_against_the_independent_check(tmp_path: Path) -> None:
    """All problems, ten realizations: the means by divergence are those of the check, figure 6's are not far."""
    out = tmp_path / "run"
    data = check_report(out, reproduce.reproduce(out, scale="quick", realizations=10))
    for ours, checked in ((OURS, published.CHECK_FIRST), (FAIR, published.CHECK_FAIR)):
        found = measures.by_divergence(data["bernoulli-sweep"], ours, THOMPSON, KL_EDGES)
        for (_, mean), value in zip(found, checked, strict=True):  # the check is rounded to a point
            assert abs(100 * mean.value - value) < 0.5 + 100 * verdicts.SURE * mean.error
    for rival in RIVALS:
        assert all(
            each.apart < verdicts.SURE for each in linear_claims.figure_6_bins(data["linear-sweep"], OURS, rival)
        )


def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in an experiment keeps what was finished, and the same numbers come out."""
    with monkeypatch.context() as undrawn:
        undrawn.setattr(reproduce, "_write", lambda folder, *_: folder)
        whole = reproduce.reproduce(tmp_path / "a", figures=[1, 3], realizations=70, scale="quick")
    real = simulate

    def stopped(*arguments: object, **options: object) -> xr.Dataset:
        if options["horizon"] == 1000:
            raise Interrupted("stopped", None)
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(reproduce, "simulate", stopped)
    command = [
        "reproduce",
        "--figure",
        "1",
        "3",
        "--realizations",
        "70",
        "--scale",
        "quick",
        "--out",
        str(tmp_path / "b"),
    ]
    assert main(command) == 130
    assert (tmp_path / "b" / "data" / "illustration.nc").exists()
    monkeypatch.setattr(reproduce, "simulate", real)
    assert main([*command, "--resume"]) == 0
    for name in ("illustration", "bernoulli"):
        first, second = (
            xr.open_dataset(d / "data" / f"{name}.nc", engine="scipy").load() for d in (whole, tmp_path / "b")
        )
        assert first.drop_attrs().equals(second.drop_attrs())
    assert "not run" in (tmp_path / "b" / "report.md").read_text(), "claims of other figures are named as not run"


def test_figures_accumulate_in_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figure 1, then figure 3, as the README shows them: both are in the report, and neither is played again."""
    command = ["reproduce", "--realizations", "3", "--scale", "quick", "--out", str(tmp_path / "run")]
    assert main([*command, "--figure", "1"]) == 0
    first = (tmp_path / "run" / "data" / "illustration.nc").read_bytes()
    assert main([*command, "--figure", "3"]) == 0
    assert (tmp_path / "run" / "data" / "illustration.nc").read_bytes() == first
    text = (tmp_path / "run" / "report.md").read_text()
    assert "## Figure 1" in text
    assert "## Figure 3" in text
    assert "## Figure 4" not in text
    assert main([*command, "--figure", "2", "--resume"]) == 0, "of a dataset that is there"
    assert "## Figure 1" in (tmp_path / "run" / "report.md").read_text()
    assert main([*command, "--figure", "1", "3"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("doublesampling: --out ")
    assert "holds figure 1, 3 of this run already. Add --resume" in said
    assert "cannot be written" not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--figure", "7"], "figures 1 to 6"),
        (["--realizations", "1"], "at least 2"),
        (["--device", "gpu"], "device"),
    ],
)
def test_wrong_wishes_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A clear word and no traceback; nothing is left behind that would be in the way."""
    assert main(["reproduce", "--out", str(tmp_path / "x"), "--scale", "quick", *options]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error


def test_folders_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    """A file, a folder with other things, a damaged one."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    for name in ("file", "full"):
        for force in (False, True):
            with pytest.raises(DoubleSamplingError, match="--out"):
                reproduce.reproduce(tmp_path / name, figures=[1], realizations=2, force=force)
    assert (tmp_path / "file").read_text() == (tmp_path / "full" / "thesis.txt").read_text() == "mine"
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "reproduce.json").write_text("{")
    with pytest.raises(OutputError, match="--force"):
        reproduce.reproduce(tmp_path / "broken", figures=[1], realizations=2)
    reproduce.reproduce(tmp_path / "broken", figures=[1], realizations=2, force=True)
    assert json.loads((tmp_path / "broken" / "reproduce.json").read_text())["realizations"] == "2"
    with pytest.raises(SettingError, match="figures 1 to 6"):
        reproduce.check_figures([0])
