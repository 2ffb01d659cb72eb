"""The engine plays the arms that are on file (tests/golden.py), whatever happened to its structure."""

import json
from typing import Any

import pytest

from tests import golden

FILED = json.loads(golden.FILE.read_text())
EVERY = 5  # of the policies: each is compiled for each family, which takes a second or two


def check(bandit: Any, belief: Any, policies: list[Any]) -> None:
    filed = FILED[golden.name_of(bandit, belief)]
    played = golden.arms_played(bandit, belief, policies)
    assert not [name for name in played if played[name] != filed[name]]


@pytest.mark.parametrize("case", range(len(golden.CASES)))
def test_the_engine_plays_what_is_on_file(case: int) -> None:
    """A few policies on each problem, others on the next: all of them on some problem."""
    bandit, belief, policies = golden.CASES[case]
    check(bandit, belief, policies[case % EVERY :: EVERY])


@pytest.mark.slow
@pytest.mark.parametrize(("bandit", "belief", "policies"), golden.CASES, ids=lambda value: type(value).__name__)
def test_the_engine_plays_all_that_is_on_file(bandit: Any, belief: Any, policies: list[Any]) -> None:
    check(bandit, belief, policies)
    assert {repr(policy) for policy in policies} == set(FILED[golden.name_of(bandit, belief)])
