"""Which studies there are: the entry points of one group, from whatever distributions are installed."""

import difflib
from dataclasses import is_dataclass
from importlib.metadata import EntryPoint

from checkrein.base.errors import ArgumentError, PluginError
from checkrein.base.plugins import distribution, loaded, offered
from checkrein.reproduction.study import Study

GROUP = "checkrein.studies"


def load_study(name: str) -> type[Study]:
    """Import the study of a name, and no other."""
    offers = offered(GROUP)
    if name not in offers:
        near = difflib.get_close_matches(name, offers, n=1, cutoff=0.4)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise ArgumentError(f"no study is called {name!r}: {meant}There are {', '.join(offers) or 'none'}")
    return _loaded(name, offers[name])


def descriptions() -> dict[str, str]:
    """Return what each study is about, by name; of one that cannot be used, why."""
    found = {}
    for name, offers in offered(GROUP).items():
        try:
            found[name] = (_loaded(name, offers).__doc__ or "").strip().partition("\n")[0]
        except PluginError as reason:  # one broken package must not hide what the others offer
            found[name] = str(reason)
    return found


def _loaded(name: str, offers: list[EntryPoint]) -> type[Study]:
    kind = loaded("study", name, offers)
    if not (isinstance(kind, type) and is_dataclass(kind) and issubclass(kind, Study)):
        raise PluginError(
            f"the study {name!r} of {distribution(offers[0])} is {offers[0].value}, which is not a Study: it must be a "
            "frozen dataclass with the class method `quick` and the method `run`"
        )
    return kind
