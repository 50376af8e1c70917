"""What other packages offer: the entry points of a group, imported one at a time and only when asked for."""

from importlib.metadata import EntryPoint, entry_points

from checkrein.base.errors import PluginError


def offered(group: str) -> dict[str, list[EntryPoint]]:
    """Return who offers something of each name; nothing is imported."""
    found: dict[str, list[EntryPoint]] = {}
    for offer in sorted(entry_points(group=group), key=lambda offer: (offer.name, distribution(offer))):
        found.setdefault(offer.name, []).append(offer)
    return found


def loaded(what: str, name: str, offers: list[EntryPoint]) -> object:
    """Import what one distribution offers by a name; of several, or where that fails, say whose it is."""
    if len(offers) > 1:
        who = " and ".join(distribution(offer) for offer in offers)
        raise PluginError(f"the {what} {name!r} is offered by {who}: uninstall all but one of them")
    (offer,) = offers
    try:
        return offer.load()
    except Exception as reason:  # whatever a stranger's module does when it is imported
        why = f"{type(reason).__name__}: {reason}"
        raise PluginError(
            f"the {what} {name!r} of {distribution(offer)} cannot be imported ({why}): install what it needs"
        ) from reason


def distribution(offer: EntryPoint) -> str:
    """Return whose an entry point is."""
    return "an unnamed distribution" if offer.dist is None else f"{offer.dist.name} {offer.dist.version}"
