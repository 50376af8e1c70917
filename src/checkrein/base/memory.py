"""What memory there is, and a refusal before a step that needs more of it."""

import re
from contextlib import suppress
from pathlib import Path

from checkrein.base.errors import ArgumentError, ResourceError

UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30, "TIB": 2.0**40}
WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B)\s*", re.IGNORECASE)
MACHINE, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
USED = Path("/proc/self/statm")


def memory_of(text: str) -> float:
    """Return the bytes that a text such as 8GB or 500 MiB says."""
    found = WRITTEN.fullmatch(text)
    if found is None or not float(found.group(1)) > 0:
        raise ArgumentError(f"the memory {text!r} is not understood: write it like 8GB or 500MB")
    return float(found.group(1)) * UNITS[found.group(2).upper()]


def in_words(size: float) -> str:
    """Return bytes as people write them: 3.1 GB."""
    unit = next((unit for unit in ("MB", "GB") if size < 1000 * UNITS[unit]), "TB")
    number = size / UNITS[unit]
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


def available() -> float:
    """Return the bytes that this process may still take; infinite where the system does not say."""
    found = [float("inf")]
    with suppress(OSError, ValueError, AttributeError, TypeError):
        listed = re.search(r"^MemAvailable:\s+(\d+) kB", MACHINE.read_text(), re.MULTILINE)
        found.append(float(listed.group(1)) * 1024 if listed else float("inf"))
    with suppress(OSError, ValueError):  # a container's; "max" where it has no limit
        most = int((GROUP / "memory.max").read_text())
        found.append(most - int((GROUP / "memory.current").read_text()))
    with suppress(ImportError, OSError, ValueError):  # ulimit -v
        import resource  # noqa: PLC0415  # not everywhere

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            found.append(most - int(USED.read_text().split()[0]) * resource.getpagesize())
    return max(min(found), 0.0)


def require_memory(needed: float, what: str, advice: str, most: float | None = None) -> None:
    """Raise unless there is as much memory as a step is estimated to need; most: in place of what the machine has."""
    there = available() if most is None else most
    if needed > there:
        whose = "are free" if most is None else "may be used"
        raise ResourceError(f"{what} needs about {in_words(needed)} of memory, and {in_words(there)} {whose}: {advice}")
