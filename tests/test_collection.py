"""Garbage collection pauses while our rules are compiled, and only then."""

import gc
from types import SimpleNamespace

import pytest

from doublesampling.rules.collection import PauseWhileCompiling


def compilation(module):
    def function():
        raise AssertionError("never called")

    function.__module__ = module
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


@pytest.fixture
def collecting():
    """Collection runs before and after a test, whatever the test does."""
    gc.enable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collecting")
def test_collection_pauses_until_the_last_compilation_ends():
    pause, ours = PauseWhileCompiling(), compilation("doublesampling.rules.draws")
    pause.on_start(ours)
    pause.on_start(ours)
    assert not gc.isenabled()
    pause.on_end(ours)
    assert not gc.isenabled()
    pause.on_end(ours)
    assert gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_who_does_not_collect_is_left_alone():
    pause, ours, theirs = PauseWhileCompiling(), compilation("doublesampling.rules.draws"), compilation("somebody")
    pause.on_start(theirs)
    assert gc.isenabled()
    pause.on_end(theirs)
    gc.disable()
    pause.on_start(ours)
    pause.on_end(ours)
    assert not gc.isenabled()
