"""The engine plays the arms that are on file (tests/golden.py), whatever happened to its structure."""

import json
from typing import Any

import pytest

from tests import golden

FILED = json.loads(golden.FILE.read_text())


@pytest.mark.parametrize(("bandit", "belief", "policies"), golden.CASES, ids=lambda value: type(value).__name__)
def test_the_engine_plays_what_is_on_file(bandit: Any, belief: Any, policies: list[Any]) -> None:
    filed = FILED[golden.name_of(bandit, belief)]
    played = golden.arms_played(bandit, belief, policies)
    different = [name for name in filed if played[name] != filed[name]]
    assert not different
    assert set(played) == set(filed)
