"""A folder of finished pieces, so that a killed simulation goes on where it stopped.

Each chunk of blocks is one file, written under another name and moved into place: what is there is whole. The folder
knows the settings it was made by, and refuses others.
"""

import hashlib
import json
import os
import zipfile
from pathlib import Path

import numpy as np

from doublesampling import checks
from doublesampling.engine.blocks import Block, Unit
from doublesampling.engine.plan import BLOCK, Plan
from doublesampling.errors import SettingError, StoreError
from doublesampling.rules.cached import sources_digest

_SETTINGS = "settings.json"


class Store:
    """Finished blocks on disk, by their place in the simulation."""

    def __init__(self, folder: str | os.PathLike[str], plan: Plan) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise SettingError(f"store must be the name of a folder, got {checks.shown(folder)}.")
        self._folder = Path(folder)
        self._places: dict[Unit, tuple[Path, int]] = {}
        self._open: tuple[Path, list[Block]] | None = None
        settings = _settings(plan)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            found = self._folder / _SETTINGS
            if found.exists():
                _compare(json.loads(found.read_text()), settings, self._folder)
            elif any(self._folder.iterdir()):
                raise StoreError(f"The folder {str(self._folder)!r} holds other files. Name an empty or a new one.")
            else:
                found.write_text(json.dumps(settings, indent=1))
            self._index()
        except OSError as problem:
            raise StoreError(
                f"The store {str(self._folder)!r} cannot be used: {problem.strerror or problem}."
            ) from None
        except ValueError as problem:
            if isinstance(problem, StoreError):
                raise
            raise StoreError(f"The store {str(self._folder)!r} has a damaged {_SETTINGS}. Name a new one.") from None

    def _index(self) -> None:
        for path in sorted(self._folder.glob("chunk-*.npz")):
            try:
                with path.open("rb") as file, np.load(file) as content:
                    for i, unit in enumerate(content["units"].tolist()):
                        self._places[Unit(*unit)] = path, i
            except (zipfile.BadZipFile, KeyError, EOFError):
                continue  # not one of ours, or damaged: it is played again

    def find(self, unit: Unit) -> Block | None:
        """Return a finished block, or None."""
        place = self._places.get(unit)
        if place is None:
            return None
        path, index = place
        if self._open is None or self._open[0] != path:
            with path.open("rb") as file, np.load(file) as content:
                count = len(content["units"])
                self._open = path, [Block(*(content[f"{name}_{i}"] for name in Block._fields)) for i in range(count)]
        return self._open[1][index]

    def write(self, units: list[Unit], blocks: list[Block]) -> None:
        """Keep finished blocks: all of them, or none if the disk is full."""
        name = "chunk-{}-{}-{}".format(*units[0])
        arrays = {f"{part}_{i}": getattr(b, part) for i, b in enumerate(blocks) for part in Block._fields}
        unfinished = self._folder / f".{name}.{os.getpid()}.tmp"
        try:
            with unfinished.open("wb") as file:
                np.savez(file, units=np.array(units), **arrays)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._folder / f"{name}-{len(units)}.npz")
        except OSError as problem:
            unfinished.unlink(missing_ok=True)
            raise StoreError(f"The store {str(self._folder)!r} cannot be written: {problem.strerror}.") from None


def _settings(plan: Plan) -> dict[str, str]:
    """Return everything that decides the numbers, in words where there are words, else as a digest."""
    digest = hashlib.sha256()
    for problem in plan.problems:
        for part in (*problem.world, *problem.prior):
            digest.update(np.asarray(part).tobytes())
    for policy in plan.policies:
        digest.update(repr((policy.kind, policy.form, *policy.settings[:-1])).encode())
    return plan.settings | {
        "seed": str(plan.seed),
        "horizon": str(plan.horizon),
        "realizations": str(plan.realizations),
        "times": hashlib.sha256(plan.times.tobytes()).hexdigest()[:16],
        "trajectories": str(plan.trajectories),
        "block": str(BLOCK),
        "problems": digest.hexdigest()[:16],
        "rules": sources_digest(),
    }


def _compare(found: dict[str, str], wanted: dict[str, str], folder: Path) -> None:
    for name in wanted:
        if found.get(name) != wanted[name]:
            raise StoreError(
                f"The store {str(folder)!r} was made with {name} = {found.get(name)!r}, this run has {wanted[name]!r}. "
                "Name another folder, or use the same settings."
            )
