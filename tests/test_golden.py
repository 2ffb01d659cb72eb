"""The engine plays the arms that are on file (tests/golden.py), whatever happened to its structure."""

import json
from typing import Any

import pytest

from tests import golden
from tests.short import short

FILED = json.loads(golden.FILE.read_text())


def check(bandit: Any, belief: Any, policies: list[Any]) -> None:
    filed = FILED[golden.name_of(bandit, belief)]
    played = golden.arms_played(bandit, belief, policies)
    assert not [name for name in played if played[name] != filed[name]]


@pytest.mark.parametrize("case", range(len(golden.CASES)))
def test_the_engine_plays_what_is_on_file(case: int) -> None:
    """All policies on two or three Bernoulli arms, some of them on the others."""
    bandit, belief, policies = golden.CASES[case]
    check(bandit, belief, short(policies, bandit, belief))


def test_the_short_form_plays_every_policy_and_every_family() -> None:
    played = [(case, short(policies, bandit, belief)) for case, (bandit, belief, policies) in enumerate(golden.CASES)]
    assert {type(policy) for _, some in played for policy in some} == {
        type(p) for _, _, all_ in golden.CASES for p in all_
    }
    beside_beta = {type(p).__name__ for case, some in played if case > 2 for p in some}
    assert beside_beta == {type(p).__name__ for _, _, all_ in golden.CASES for p in all_}


@pytest.mark.slow
@pytest.mark.parametrize(("bandit", "belief", "policies"), golden.CASES, ids=lambda value: type(value).__name__)
def test_the_engine_plays_all_that_is_on_file(bandit: Any, belief: Any, policies: list[Any]) -> None:
    check(bandit, belief, policies)
    assert {repr(policy) for policy in policies} == set(FILED[golden.name_of(bandit, belief)])
