"""The decisions so far, as an allocation with a burn-in or blocks needs them to make the next one."""

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.assignment import Past
from doublesampling.live.design import Design
from doublesampling.live.records import unpack
from doublesampling.live.stores.schema import decisions


def read_past(connection: Connection, experiment: int, design: Design) -> Past | None:
    """Return what the next decision depends on; None for a design where it depends on no earlier one.

    Voided decisions count: they had used a slot of their block.
    """
    if not design.in_order or design.allocation is None:
        return None
    mine = decisions.c.experiment == experiment
    columns = (decisions.c.number, decisions.c.arm, decisions.c.propensities)
    last = connection.execute(sa.select(*columns).where(mine).order_by(decisions.c.number.desc()).limit(1)).first()
    if last is None:
        return Past(0, np.zeros(len(design.arms), dtype=np.int64))
    shares, counts = unpack(last.propensities), None
    if last.number <= design.allocation.burn_in * len(design.arms):
        counts = np.zeros(shares.size, dtype=np.int64)
        grouped = sa.select(decisions.c.arm, sa.func.count()).where(mine).group_by(decisions.c.arm)
        for arm, count in connection.execute(grouped):
            counts[arm] = count
    return Past(int(last.number), counts, int(last.arm), shares)
