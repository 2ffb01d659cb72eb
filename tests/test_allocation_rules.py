"""The rules behind ds.Allocation: shares within limits, burn-in and permuted blocks, against exact counterparts."""

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.errors import SettingError
from doublesampling.rules import allocate, assign
from doublesampling.rules.compiled import plain
from doublesampling.rules.permuted_blocks import fill_block
from tests import oracle_allocation as oracle
from tests.chance import assert_counts


def shares(w, allocation, active=None):
    w = np.asarray(w, dtype=float)
    return assign.shares_within(w, allocation.limits(w.size), None if active is None else np.asarray(active))


def random_shares(rng, arms):
    w = rng.dirichlet(np.full(arms, 0.4))
    if rng.random() < 0.3:
        w = np.zeros(arms)
        w[rng.integers(arms)] = 1.0
    return w


class TestShares:
    def test_floor_is_additive(self):
        assert shares([1.0, 0.0, 0.0], ds.Allocation(floor=0.1)) == pytest.approx([0.8, 0.1, 0.1])
        assert shares([0.5, 0.3, 0.2], ds.Allocation(floor=0.1)) == pytest.approx([0.45, 0.31, 0.24])

    def test_published_results_of_adaptr(self):
        """The expectations of adaptr's own tests of its rule."""
        w = [0.1, 0.3, 0.6]
        assert shares(w, ds.Allocation()) == pytest.approx(w)
        assert shares(w, ds.Allocation(fixed={0: 0.2})) == pytest.approx([0.2, 0.2666667, 0.5333333], abs=1e-6)
        assert shares(w, ds.Allocation(fixed={0: 0.2, 2: 0.4})) == pytest.approx([0.2, 0.4, 0.4])
        found = shares(w, ds.Allocation(minimum={0: 0.15, 1: 0.2}))
        assert found == pytest.approx([0.15, 0.2833333, 0.5666667], abs=1e-6)
        found = shares(w, ds.Allocation(control={2: "match"}))
        assert found == pytest.approx([0.1428571, 0.4285714, 0.4285714], abs=1e-6)

    @pytest.mark.parametrize(("arms", "share"), [(2, 0.5), (3, 0.4142136), (4, 0.3660254)])
    def test_square_root_control(self, arms, share):
        w = np.linspace(1.0, 2.0, arms)
        found = shares(w / w.sum(), ds.Allocation(control=0))
        assert found[0] == pytest.approx(share, abs=1e-6)
        assert found[1:] / found[1:].sum() == pytest.approx(w[1:] / w[1:].sum())

    def test_against_fractions_with_minimum_or_cap(self):
        rng = np.random.default_rng(1)
        for _ in range(300):
            arms = int(rng.integers(2, 7))
            w = random_shares(rng, arms)
            low, high = rng.uniform(0.0, 1.0 / arms), rng.uniform(1.0 / arms, 1.0)
            fixed = {int(rng.integers(arms)): 0.25} if arms > 2 and rng.random() < 0.5 else None
            one_sided: Any = {"minimum": 0.75 * low} if rng.random() < 0.5 else {"cap": max(high, 0.75)}
            exact = oracle.clip_and_rescale(
                [Fraction(part) for part in w],
                [Fraction(one_sided.get("minimum", 0.0))] * arms,
                [Fraction(one_sided.get("cap", 1.0))] * arms,
                [Fraction((fixed or {})[a]) if a in (fixed or {}) else None for a in range(arms)],
            )
            found = shares(w, ds.Allocation(fixed=fixed, **one_sided))
            assert found == pytest.approx([float(part) for part in exact], abs=1e-12)

    def test_minimum_and_cap_together(self):
        """The rule of adaptr where its result keeps all limits; otherwise the shares between them that exist."""
        rng = np.random.default_rng(2)
        kept = other = 0
        for _ in range(400):
            arms = int(rng.integers(2, 6))
            w = random_shares(rng, arms)
            low, high = rng.uniform(0.0, 1.0, arms) / arms, rng.uniform(1.0, 2.5, arms) / arms
            high = np.minimum(high, 1.0)
            given = ds.Allocation(minimum=dict(enumerate(low)), cap=dict(enumerate(high)))
            found = shares(w, given)
            assert found.sum() == pytest.approx(1.0, abs=1e-12)
            assert (found >= low - 1e-12).all()
            assert (found <= high + 1e-12).all()
            simple = np.array([float(part) for part in oracle.clip_and_rescale(w, low, high, [None] * arms)])
            if abs(simple.sum() - 1.0) < 1e-9:
                kept += 1
                assert found == pytest.approx(simple, abs=1e-12)
            elif (w > 0).all():
                other += 1
                assert found == pytest.approx(oracle.fill_between(w, low, high), abs=1e-9)
        assert min(kept, other) > 20

    def test_properties(self):
        rng = np.random.default_rng(3)
        for _ in range(300):
            arms = int(rng.integers(2, 7))
            w = random_shares(rng, arms)
            settings: Any = {"floor": min(rng.uniform(0.0, 0.5 / arms), 0.2), "cap": rng.uniform(0.8, 1.0)}
            control: Any = [None, 0, {0: "match"}, {0: 0.2}][rng.integers(4)]
            given = ds.Allocation(control=control, **settings)
            found = shares(w, given)
            assert found.sum() == pytest.approx(1.0, abs=1e-12)
            assert found.min() >= settings["floor"] - 1e-12
            assert found[1:].max() <= settings["cap"] + 1e-12
            if control == {0: "match"}:
                assert found[0] == found[1:].max()
            order = np.concatenate([[0], 1 + rng.permutation(arms - 1)])
            assert shares(w[order], given) == pytest.approx(found[order], abs=1e-12)

    def test_only_active_arms_take_part(self):
        w, active = np.array([0.2, 0.0, 0.5, 0.3]), [True, False, True, True]
        for given in (ds.Allocation(floor=0.1), ds.Allocation(control=0), ds.Allocation(minimum=0.25)):
            found = shares(w, given, active)
            assert found[1] == 0.0
            assert found[[0, 2, 3]] == pytest.approx(shares(w[[0, 2, 3]], given))

    def test_limits_that_fewer_arms_cannot_keep_are_rescaled(self):
        assert shares([0.9, 0.1, 0.0], ds.Allocation(cap=0.4), [True, True, False]) == pytest.approx([0.5, 0.5, 0.0])
        given = ds.Allocation(fixed={0: 0.3, 1: 0.2})
        assert shares([0.1, 0.1, 0.8], given, [True, True, False]) == pytest.approx([0.6, 0.4, 0.0])
        assert shares([0.1, 0.1, 0.8], ds.Allocation(control=0), [True, False, False]) == pytest.approx([1.0, 0.0, 0.0])


class TestBurnIn:
    def test_every_order_of_a_block_is_equally_likely(self):
        """Products of conditional propensities along every sequence of two blocks."""
        chance = {}

        def walk(drawn, probability):
            counts = np.bincount(drawn, minlength=3) if drawn else np.zeros(3, dtype=np.int64)
            out = assign.burn_in_propensities(counts.astype(np.int64), np.ones(3, dtype=bool), 2)
            if out is None:
                chance[tuple(drawn)] = probability
                return
            assert out.sum() == pytest.approx(1.0)
            for arm in np.flatnonzero(out):
                walk([*drawn, int(arm)], probability * out[arm])

        walk([], 1.0)
        assert set(chance) == {a + b for a in permutations(range(3)) for b in permutations(range(3))}
        assert list(chance.values()) == pytest.approx([1.0 / 36.0] * 36)

    def test_only_active_arms_take_part(self):
        active = np.array([True, False, True])
        out = assign.burn_in_propensities(np.array([1, 0, 0]), active, 2)
        assert out is not None
        assert out.tolist() == [0.0, 0.0, 1.0]
        assert assign.burn_in_propensities(np.array([2, 0, 2]), active, 2) is None


class TestBlocks:
    def test_slots_are_the_shares_rounded_by_largest_remainder(self):
        words = np.array([1, 0, 0, 1], dtype=np.uint64)
        assert assign.new_block(np.array([0.5, 0.3, 0.2]), 10, words).tolist() == [5, 3, 2]
        assert assign.new_block(np.array([0.54, 0.33, 0.13]), 6, words).tolist() == [3, 2, 1]
        assert assign.new_block(np.array([0.1, 0.9]), 4, words).tolist() == [0, 4]
        rng = np.random.default_rng(4)
        for _ in range(200):
            w, slots = rng.dirichlet(np.ones(4)), int(rng.integers(2, 30))
            left = assign.new_block(w, slots, words)
            assert left.sum() == slots
            assert (np.abs(left - slots * w) < 1.0).all()
            remainder = slots * w - np.floor(slots * w)
            raised = left > np.floor(slots * w)
            if raised.any() and not raised.all():
                assert remainder[raised].min() >= remainder[~raised].max()

    def test_equal_remainders_are_drawn_from_fairly(self):
        third = np.full(3, 1.0 / 3.0)
        found = [assign.new_block(third, 4, np.array([7, 0, i, 1], dtype=np.uint64)) for i in range(3000)]
        assert all(sorted(left.tolist()) == [1, 1, 2] for left in found)
        assert_counts(np.bincount([int(left.argmax()) for left in found], minlength=3), third)

    @pytest.mark.parametrize("slots", [(2, 1), (2, 2, 1), (3, 0, 2)])
    def test_propensities_are_those_of_all_orders(self, slots):
        def walk(left, drawn):
            if not left.sum():
                return
            out = np.empty(left.size)
            plain(fill_block)(left, out)
            assert out == pytest.approx([float(part) for part in oracle.next_of_block(slots, drawn)])
            for arm in np.flatnonzero(out):
                rest = assign.rest_of_block(out, int(arm), int(left.sum()))
                assert rest is not None
                after = left.copy()
                after[arm] -= 1
                assert rest.tolist() == after.tolist()
                walk(after, [*drawn, int(arm)])

        walk(np.array(slots), [])

    def test_other_propensities_make_no_block(self):
        assert assign.rest_of_block(np.array([0.3, 0.7]), 0, 4) is None
        assert assign.rest_of_block(np.array([0.0, 1.0]), 0, 4) is None

    def test_arms_are_drawn_with_their_shares(self):
        p = np.array([0.0, 0.15, 0.6, 0.25, 0.0])
        words = np.zeros((20_000, 4), dtype=np.uint64)
        words[:, 0], words[:, 2] = 5, np.arange(20_000)
        found = assign.draw_arms(np.tile(p, (20_000, 1)), words)
        assert_counts(np.bincount(found, minlength=5), p)


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"floor": 0.6}, "floor must be a number from 0 to 0.5, got 0.6"),
            ({"floor": -0.1}, "floor"),
            ({"floor": math.nan}, "floor"),
            ({"minimum": 0.5, "cap": 0.2}, "minimum=0.5 and cap=0.2"),
            ({"floor": 0.4, "cap": 0.2}, "floor=0.4 and cap=0.2"),
            ({"fixed": {"a": 0.7, "b": 0.6}}, "sum 1.3"),
            ({"fixed": {"a": 1.2}}, r"fixed\['a'\]"),
            ({"fixed": 0.3}, "dictionary of shares by arm"),
            ({"fixed": {"a": "root"}}, "'sqrt', 'match'"),
            ({"fixed": {"a": "sqrt", "b": "match"}}, "one arm only"),
            ({"control": {"a": 0.3, "b": 0.3}}, "one arm"),
            ({"control": 1.5}, "control"),
            ({"control": True}, "control"),
            ({"burn_in": -1}, "burn_in"),
            ({"block": 1}, "block"),
            ({"update": "monthly"}, "update"),
            ({"flor": 0.1}, "Did you mean 'floor'"),
        ],
    )
    def test_refused_at_birth(self, given, said):
        with pytest.raises(SettingError, match=said):
            ds.Allocation(**given)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"floor": 0.4}, r"at least 1\.2.*floor can be at most 0\.333"),
            ({"minimum": 0.4}, r"at least 1\.2"),
            ({"cap": 0.3}, r"at most 0\.9"),
            ({"fixed": {"x": 0.5}}, "'x', which is none of the 3 arms: 'a', 'b', 'c'"),
            ({"fixed": {3: 0.5}}, "names the arm 3"),
            ({"fixed": {0: 0.5, "a": 0.4}}, "two entries"),
            ({"fixed": {"a": 0.2, "b": 0.2, "c": 0.2}}, r"at most 0\.6"),
            ({"fixed": {"a": 0.8}, "minimum": 0.2}, r"at least 1\.2"),
            ({"fixed": {"a": 0.05}, "floor": 0.1}, "below the floor"),
            ({"minimum": {"a": 0.5}, "cap": {"a": 0.3}}, r"at least 0\.5 and at most 0\.3"),
            ({"control": "sqrt"}, "write control={'a': \"sqrt\"}"),
            ({"control": "x"}, "control names the arm 'x'"),
            ({"control": {"a": 0.2}, "fixed": {"a": 0.3}}, "given twice"),
            ({"control": "a", "fixed": {"b": "sqrt"}}, "Name one"),
            ({"control": {"a": "match"}, "fixed": {"b": 0.3}}, "matches the largest share"),
        ],
    )
    def test_refused_when_the_arms_are_known(self, given, said):
        with pytest.raises(SettingError, match=said):
            ds.Allocation(**given).limits(["a", "b", "c"])

    def test_shares_of_exactly_one_are_accepted(self):
        assert ds.Allocation(floor=0.1).limits(10).floor == 0.1
        assert ds.Allocation(fixed={0: 0.1, 1: 0.2, 2: 0.7}).limits(3).fixed.tolist() == [0.1, 0.2, 0.7]

    def test_the_control_by_name_or_number_and_its_share(self):
        for given, rule in (
            (ds.Allocation(control="b"), allocate.SQUARE_ROOT),
            (ds.Allocation(control=1), allocate.SQUARE_ROOT),
            (ds.Allocation(control={"b": "sqrt"}), allocate.SQUARE_ROOT),
            (ds.Allocation(fixed={"b": "sqrt"}), allocate.SQUARE_ROOT),
            (ds.Allocation(control="b", fixed={"b": "match"}), allocate.MATCH),
            (ds.Allocation(control="b", fixed={"b": 0.3}), allocate.FREE),
            (ds.Allocation(control={"b": 0.3}), allocate.FREE),
        ):
            limits = given.limits(["a", "b", "c"])
            assert (limits.control, limits.control_rule) == (1, rule)
            assert (limits.fixed[1] == 0.3) == (rule == allocate.FREE)

    def test_names_replace_numbers(self):
        given = ds.Allocation(control=0, fixed={1: 0.3}, cap={2: 0.5}, minimum=0.1).named(["a", "b", "c"])
        assert given == ds.Allocation(control="a", fixed={"b": 0.3}, cap={"c": 0.5}, minimum=0.1)
        assert hash(given) == hash(given.named(["a", "b", "c"]))
        assert repr(given) == "Allocation(minimum=0.1, cap={'c': 0.5}, fixed={'b': 0.3}, control='a')"
