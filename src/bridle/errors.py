"""What can go wrong, by kind; every message shows the numbers and says what to do."""


class BridleError(Exception):
    """Anything that bridle raises on purpose."""


class DataError(BridleError, ValueError):
    """The logged transitions are malformed."""


class ProblemError(BridleError, ValueError):
    """The objective, a constraint or the discount does not fit the data."""


class ArgumentError(BridleError, ValueError):
    """A parameter of an algorithm lies outside its range."""


class EndlessPolicyError(BridleError, ValueError):
    """At discount 1 a policy need not end, so its expected sum of costs is not defined."""


class DivergenceError(BridleError, ArithmeticError):
    """A fitted iteration has no limit."""


class StorageError(BridleError, ValueError):
    """A value cannot be written without code, or a file cannot be read."""


class CheckpointError(StorageError):
    """A run folder belongs to another run, or is damaged."""


class MissingExtraError(BridleError, ImportError):
    """A package that only some readers need is not installed."""

    def __init__(self, what: str, extra: str, reason: object) -> None:
        super().__init__(f"{what} needs packages that are not installed ({reason}): pip install 'bridle[{extra}]'")
