"""Loaded once by the fork server: workers start with the rules compiled, in milliseconds."""

from contextlib import suppress

import doublesampling as ds
import doublesampling.live.stores.sqlite

_belief = ds.BetaBernoulli(arms=3)
ds.decide(ds.DoubleSampling(), _belief, _belief.prior())
with suppress(ImportError):
    import doublesampling.live.stores.postgres
