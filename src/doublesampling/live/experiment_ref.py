"""A reference to a stored experiment: its store, id, name and design."""

from dataclasses import dataclass

from doublesampling.live.design import Design
from doublesampling.live.stores.contract import Store


@dataclass(frozen=True)
class ExperimentRef:
    """One experiment of a store. Queries need no more than this."""

    store: Store
    id: int
    name: str
    design: Design
