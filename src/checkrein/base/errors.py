"""What can go wrong, by kind; every message shows the numbers and says what to do."""


class CheckreinError(Exception):
    """Anything that checkrein raises on purpose."""


class DataError(CheckreinError, ValueError):
    """The logged transitions are malformed."""


class ProblemError(CheckreinError, ValueError):
    """The objective, a constraint or the discount does not fit the data."""


class ArgumentError(CheckreinError, ValueError):
    """A parameter of an algorithm lies outside its range."""


class EndlessPolicyError(CheckreinError, ValueError):
    """At discount 1 a policy need not end, so its expected sum of costs is not defined."""


class DivergenceError(CheckreinError, ArithmeticError):
    """A fitted iteration has no limit."""


class StorageError(CheckreinError, ValueError):
    """A value cannot be written without code, or a file cannot be read."""


class WriteError(StorageError):
    """The disk is full, or a folder may not be written to."""


class CheckpointError(StorageError):
    """A run folder belongs to another run, or is damaged."""


class ResourceError(CheckreinError, MemoryError):
    """A step needs more memory than there is."""


class UncertifiedError(CheckreinError, ValueError):
    """A run has no policy that passed: behavior should go on."""


class PluginError(CheckreinError):
    """What another package offers cannot be used."""


class MissingExtraError(CheckreinError, ImportError):
    """A package that only some readers need is not installed."""

    def __init__(self, what: str, extra: str, reason: object) -> None:
        super().__init__(f"{what} needs packages that are not installed ({reason}): pip install 'checkrein[{extra}]'")


class Stopped(BaseException):
    """The process was told to end, by Ctrl-C or SIGTERM; nobody takes it for an error.

    code: the exit code; told: whether the user has been told
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code, self.told = code, False
