"""Loaded once by the fork server: workers and servers start with the rules compiled, in a moment."""

import tempfile
from contextlib import suppress

import doublesampling as ds
import doublesampling.live.stores.sqlite

_belief = ds.BetaBernoulli(arms=3)
ds.decide(ds.DoubleSampling(), _belief, _belief.prior())
with suppress(ImportError):
    import doublesampling.live.stores.postgres
with suppress(ImportError):
    import uvicorn  # noqa: F401

    import doublesampling.cli.serve
    from doublesampling.service.app import create_app

    with tempfile.TemporaryDirectory() as _folder:  # what the first app loads, those of the servers have
        _service = create_app(f"sqlite:///{_folder}/trial.db").state.service
        _service.warm_up()
        _service.close()
