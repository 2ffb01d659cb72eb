"""A real server that is killed while clients use it. `make soak` has the long form."""

import pytest

from tests.soak_client import kills


def check(found):
    assert found["problems"] == []
    assert found["lost"] == 0
    assert found["acknowledged"] == found["asked"]  # every ask was told
    assert found["decisions"] == found["asked"]  # nothing was stored that no client knows of
    assert found["outcomes"] == found["told"] == found["acknowledged"]
    assert found["replay"]


@pytest.mark.slow
def test_a_server_that_is_killed_loses_and_doubles_nothing(sqlite_url):
    found = kills(sqlite_url, times=1, workers=3, seconds=0.6)
    check(found)
    assert found["acknowledged"] > 3


@pytest.mark.slow
def test_servers_that_are_killed_on_both_stores(storage):
    check(kills(storage, times=4, workers=6, seconds=2.0))
