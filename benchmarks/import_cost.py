"""What starting costs, in CPU seconds of fresh processes, each as a ratio to what must be there anyway.

(a) `import checkrein` / importing numpy, scipy.sparse, polars and pydantic: at most 1.3
(b) `checkrein --help` / importing these, typer and rich: at most 1.5
(c) `import checkrein` and asking for every public name / the same as (a): no limit, but near 1.3

All are measured in turns, so that a busy machine is busy for all of them; the median counts.

Run: python benchmarks/import_cost.py [REPEATS]
"""

import os
import statistics
import subprocess
import sys

PACKAGES = "import numpy, scipy.sparse, polars, pydantic"
COMMAND = f"{PACKAGES}, typer, rich"
CODES = {
    PACKAGES: PACKAGES,
    COMMAND: COMMAND,
    "import checkrein": "import checkrein",
    "every public name": "import checkrein\nfor name in checkrein.__all__: getattr(checkrein, name)",
    "checkrein --help": "import sys; sys.argv[1:] = ['--help']\nfrom checkrein.cli import main; main()",
}
RATIOS = [
    ("import checkrein", PACKAGES, 1.3),
    ("checkrein --help", COMMAND, 1.5),
    ("every public name", PACKAGES, None),
]


def cpu_seconds(code: str) -> float:
    """Return user and system time of a fresh interpreter that runs some code."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    taken: dict[str, list[float]] = {name: [] for name in CODES}
    for repeat in range(repeats + 1):
        for name, code in CODES.items():
            seconds = cpu_seconds(code)
            if repeat > 0:  # the first reads files from the disk and compiles them
                taken[name].append(seconds)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    for name, median in medians.items():
        print(f"{median:6.2f} CPU s  {name}")
    broken = False
    for name, base, limit in RATIOS:
        ratio = medians[name] / medians[base]
        broken |= limit is not None and ratio > limit
        print(f"{name} / {base}: {ratio:.2f} ({'no limit' if limit is None else f'at most {limit}'})")
    sys.exit(broken)


if __name__ == "__main__":
    main()
