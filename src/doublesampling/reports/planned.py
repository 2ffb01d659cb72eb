"""``ds.protocol``: the design of an experiment or trial as a document, before the first decision."""

from collections.abc import Sequence
from typing import Any

from doublesampling.errors import SettingError
from doublesampling.live.experiment import Experiment
from doublesampling.paper.document import Block, Heading, Paragraph
from doublesampling.reports.characteristics import Truth, Truths, characteristics_blocks, named
from doublesampling.reports.design_words import analysis_blocks, design_blocks, rule_blocks, versions_blocks
from doublesampling.reports.page import NO_CLAIM, Report


def protocol(subject: Any, truths: Sequence[Truth] | Truths = (), *, realizations: int = 1000, seed: int = 1) -> Report:
    """Return the protocol of an Experiment, or of a design without a store (a Trial).

    ``truths`` are scenarios, each with the assumed expected reward of every arm (with contexts: its weights), such as
    [[0.3, 0.3], [0.3, 0.5]], or a mapping from their names.
    The design is computed exactly on them where that is possible and quick, else simulated, and compared with equal
    allocation.

    >>> import doublesampling as ds
    >>> trial = ds.Trial(arms=["old", "new"], policy=ds.ThompsonSampling(), horizon=40)
    >>> ds.protocol(trial).title
    'Protocol of the trial'
    """
    design, name = _design(subject)
    title = f"Protocol of {name}"
    blocks: list[Block] = [Heading(title, 1), Paragraph(NO_CLAIM)]
    blocks += design_blocks(design, name)
    blocks += rule_blocks(design)
    blocks += characteristics_blocks(design, named(truths, design), realizations=realizations, seed=seed)
    blocks += analysis_blocks(design)
    commands = ("doublesampling protocol STORE NAME --truth ...", "doublesampling experiment simulate NAME --truth ...")
    blocks += versions_blocks(design, commands)
    return Report(title, tuple(blocks))


def _design(subject: Any) -> tuple[Any, str]:
    if isinstance(subject, Experiment):
        return subject.design, f"experiment {subject.name!r}"
    if all(hasattr(subject, part) for part in ("arms", "belief", "policy", "simulate")):
        return subject, "the trial"
    raise SettingError("protocol takes an Experiment or a Trial. Use ds.Experiment.load(name, storage=...).")
