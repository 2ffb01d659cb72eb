"""Families: one file for each kind of belief that a simulation can play, and this list of them.

To add one, write a file with a ``FAMILY`` (see common.py) and name it here.
"""

from doublesampling.engine.families import beta, categorical, linear, logistic, pairs
from doublesampling.engine.families.common import Family

FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY for module in (beta, pairs, linear, logistic, categorical)
}
