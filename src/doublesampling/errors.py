"""The exception family: every error that a user can cause is one of these, and says what to do."""


class DoubleSamplingError(Exception):
    """Any error of this package. ``code`` is a short name that stays the same in every version.

    >>> import doublesampling as ds
    >>> try:
    ...     ds.BetaBernoulli(arms=1)
    ... except ds.DoubleSamplingError as error:
    ...     print(f"{error.code}: {error}")
    setting: arms must be a whole number of at least 2, got 1. A bandit needs two arms to choose between.
    """

    code = "error"


class SettingError(DoubleSamplingError, ValueError):
    """A belief, policy, bandit or call was given a setting that it cannot have."""

    code = "setting"


class ArmError(DoubleSamplingError, ValueError):
    """An arm that does not exist."""

    code = "arm"


class RewardError(DoubleSamplingError, ValueError):
    """A reward that the belief cannot absorb."""

    code = "reward"


class ContextError(DoubleSamplingError, ValueError):
    """A context that is missing, superfluous, of the wrong length or not finite."""

    code = "context"


class StateError(DoubleSamplingError, ValueError):
    """A state that does not belong to the belief, or text that is no state."""

    code = "state"


class DrawsError(DoubleSamplingError, ValueError):
    """Posterior draws that cannot be decided from."""

    code = "draws"


class OutputError(DoubleSamplingError, OSError):
    """A file that cannot be written."""

    code = "output"


class StoreError(DoubleSamplingError, ValueError):
    """A folder of finished pieces that cannot be used, or was made by other settings."""

    code = "store"


class LogError(DoubleSamplingError, ValueError):
    """A log that cannot be evaluated; the message names the row and the column."""

    code = "log"


class PropensityError(LogError):
    """Propensities so small that no estimate from the log is valid; the message names the floor that would do."""

    code = "propensity"


class MissingExtraError(DoubleSamplingError, ImportError):
    """Something that is installed separately is not there."""

    code = "extra"


def missing_extra(what: str, extra: str) -> MissingExtraError:
    """Say which extra is missing and how to install it, from an index or from a clone."""
    return MissingExtraError(
        f"{what}: pip install 'doublesampling[{extra}]'; until the package is on an index, pip install '.[{extra}]' "
        "in a clone of it."
    )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation. ``partial`` is the dataset of what was finished."""

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class LongRunWarning(UserWarning):
    """A policy that was made for short runs is played in a long one."""


class ConflictError(DoubleSamplingError, ValueError):
    """What is told contradicts what is stored; nothing was written."""

    code = "conflict"


class VoidedError(ConflictError):
    """A decision that was voided: it is not to be carried out, and has no outcome."""

    code = "voided"


class NotFoundError(DoubleSamplingError, LookupError):
    """An experiment or a decision that the store does not hold."""

    code = "not-found"


class OtherExperimentError(NotFoundError):
    """A decision that belongs to another experiment."""

    code = "other-experiment"


class NameTakenError(DoubleSamplingError, ValueError):
    """A name that another experiment, or another arm, already has."""

    code = "name-taken"


class PausedError(DoubleSamplingError, RuntimeError):
    """A paused experiment gives no new decisions."""

    code = "paused"


class StoppedError(PausedError):
    """An experiment that its stopping rule ended, or that has all its participants, gives no new decisions."""

    code = "stopped"


class StorageError(DoubleSamplingError, OSError):
    """A database that cannot be reached, opened or written."""

    code = "storage"


class StorageFullError(StorageError):
    """No room is left; nothing was half-written."""

    code = "storage-full"


class StorageReadOnlyError(StorageError):
    """A database that may only be read."""

    code = "storage-read-only"


class StorageBusyError(StorageError):
    """Somebody else kept the database locked for too long."""

    code = "storage-busy"


class StorageReplacedError(StorageError):
    """A database that was removed, or replaced by another one, under the running process; nothing was written."""

    code = "storage-replaced"


class NotOursError(StorageError):
    """A database that holds something else."""

    code = "not-ours"


class TooNewError(StorageError):
    """A store written by a newer version of this package."""

    code = "schema-too-new"


class TooOldError(StorageError):
    """A store that must be brought up to date first."""

    code = "schema-too-old"
