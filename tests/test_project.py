"""The project itself: public names, light imports, a cache that knows its sources, equations that can be found."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import doublesampling as ds

ROOT = Path(__file__).parent.parent


def test_public_names_exist_once():
    assert len(set(ds.__all__)) == len(ds.__all__)  # ruff keeps them in order
    for name in ds.__all__:
        assert getattr(ds, name) is not None
    assert set(dir(ds)) == set(ds.__all__)
    assert callable(ds.decide)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(ds, "simulat")


def test_importing_alone_loads_nothing_heavy():
    code = "import sys, doublesampling; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numba", "numpy", "scipy", "matplotlib"} & set(loaded)


def test_decisions_do_not_need_scipy_stats_or_matplotlib():
    code = (
        "import sys, doublesampling as ds; b = ds.BetaBernoulli(arms=2);"
        "ds.decide(ds.DoubleSampling(), b, b.prior()); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"scipy.stats", "matplotlib"} & set(loaded)


def test_a_service_starts_without_matplotlib():
    pytest.importorskip("fastapi")
    code = "import sys, doublesampling.service.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"scipy.stats", "matplotlib", "dask"} & set(loaded)


def test_editing_a_rule_is_seen_by_code_kept_on_disk(tmp_path):
    """Numba alone would go on using machine code of the old rule: its cache does not look at what a function calls."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'src')!r});"
        "import numpy as np, doublesampling.rules.entry_points as d;"
        "assert d.__file__.startswith(sys.path[0]), d.__file__;"
        "print(d.choose_largest(np.array([1.0, 3.0, 2.0]), True, np.zeros(4, dtype=np.uint64)))"
    )

    def arm() -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert arm() == "1"
    assert arm() == "1"
    rule = tmp_path / "src/doublesampling/rules/choose/mode.py"
    text = rule.read_text()
    assert "if values[a] > values[best]:" in text
    rule.write_text(text.replace("if values[a] > values[best]:", "if values[a] < values[best]:"))
    assert arm() == "0"


def test_rules_have_no_machine_code_of_their_own():
    """Their callers have it; where another Numba compiled them in full, everything would take longer to start."""
    from doublesampling.rules import special
    from tests.compiled_rules import callable_rule

    callable_rule(special.logistic)(0.3)
    library = next(iter(special.logistic.overloads.values())).library  # type: ignore[attr-defined]
    assert type(library).__module__ == "doublesampling.rules.linked_rules"


@pytest.mark.slow
def test_rules_that_are_compiled_in_full_give_the_same_results(tmp_path):
    """As they are with a Numba that lacks what rules/linked_rules.py overrides."""
    code = (
        "import doublesampling.rules.linked_rules as linked; {}; import doublesampling as ds;"
        "b = ds.BetaBernoulli(arms=3); state = b.update_batch(b.prior(), [0, 0, 1, 2, 2], [0, 1, 1, 1, 0]);"
        "d = ds.decide(ds.DoubleSampling(), b, state, seed=5); print(d.arm, d.probability_optimal, d.propensities)"
    )
    found: list[str] = []
    for change in ("assert linked.OPTIONS", "linked.OPTIONS.clear()"):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / str(len(found)))}
        command = [sys.executable, "-c", code.format(change)]
        found.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1]


def test_every_equation_of_the_method_is_where_the_docs_say():
    """docs/explanation/method.md maps the paper's equations to code as `module.name`; each must exist."""
    page = (ROOT / "docs" / "explanation" / "method.md").read_text()
    names = re.findall(r"`((?:rules|beliefs|policies|decision)[\w.]*\.\w+)`", page)
    assert len(set(names)) >= 20
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(f"doublesampling.{module}"), attribute), name
