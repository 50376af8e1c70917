"""Which studies there are: the entry points of one group, from whatever distributions are installed."""

import difflib
from dataclasses import is_dataclass
from importlib.metadata import EntryPoint, entry_points

from checkrein.base.errors import ArgumentError, StudyError
from checkrein.reproduction.study import Study

GROUP = "checkrein.studies"


def offered() -> dict[str, list[EntryPoint]]:
    """Return who offers a study of each name; nothing is imported."""
    found: dict[str, list[EntryPoint]] = {}
    for offer in sorted(entry_points(group=GROUP), key=lambda offer: (offer.name, _distribution(offer))):
        found.setdefault(offer.name, []).append(offer)
    return found


def load_study(name: str) -> type[Study]:
    """Import the study of a name, and no other."""
    offers = offered()
    if name not in offers:
        near = difflib.get_close_matches(name, offers, n=1, cutoff=0.4)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise ArgumentError(f"no study is called {name!r}: {meant}There are {', '.join(offers) or 'none'}")
    return _loaded(name, offers[name])


def descriptions() -> dict[str, str]:
    """Return what each study is about, by name; of one that cannot be used, why."""
    found = {}
    for name, offers in offered().items():
        try:
            found[name] = (_loaded(name, offers).__doc__ or "").strip().partition("\n")[0]
        except StudyError as reason:  # one broken package must not hide what the others offer
            found[name] = str(reason)
    return found


def _loaded(name: str, offers: list[EntryPoint]) -> type[Study]:
    if len(offers) > 1:
        who = " and ".join(_distribution(offer) for offer in offers)
        raise StudyError(f"the study {name!r} is offered by {who}: uninstall all but one of them")
    (offer,) = offers
    who = _distribution(offer)
    try:
        kind = offer.load()
    except Exception as reason:  # whatever a stranger's module does when it is imported
        why = f"{type(reason).__name__}: {reason}"
        raise StudyError(f"the study {name!r} of {who} cannot be imported ({why}): install what it needs") from reason
    if not (isinstance(kind, type) and is_dataclass(kind) and issubclass(kind, Study)):
        raise StudyError(
            f"the study {name!r} of {who} is {offer.value}, which is not a Study: it must be a frozen dataclass with "
            "the class method `quick` and the method `run`"
        )
    return kind


def _distribution(offer: EntryPoint) -> str:
    return "an unnamed distribution" if offer.dist is None else f"{offer.dist.name} {offer.dist.version}"
