"""What reading logs claims about speed and memory, each as a ratio measured in one run.

(a) seconds to read 20 million ordered rows of a Parquet log into a compressed Dataset / seconds polars takes to group
    the same rows by state, action and terminal with the sums of both costs: at most 3
(b) peak memory of a fresh process that does so at 20 million rows / at 2 million: at most 1.2

Run: python benchmarks/logs.py [ROWS]
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from checkrein.logs.stream import read_compressed

MILLION = 1_000_000
LENGTH = 50  # steps of an episode
COSTS = ["fuel", "harm"]
MAPPING = {"episode": "episode", "step": "step", "state": "state", "action": "action", "terminal": "ended"}
ALONE = f"""
import sys
from pathlib import Path
from checkrein.logs.stream import read_compressed
read_compressed(sys.argv[1], costs={COSTS!r}, **{MAPPING!r})
print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])
"""


def write_log(file: Path, n: int) -> Path:
    """Write n rows over 64 states and 4 actions, made a million at a time."""
    rng = np.random.default_rng(0)
    with TemporaryDirectory(dir=file.parent) as folder:
        for begin in range(0, n, MILLION):
            part = log_rows(rng, np.arange(begin, min(begin + MILLION, n)))
            part.write_parquet(Path(folder) / f"{begin:012}.parquet")
        pl.scan_parquet(Path(folder) / "*.parquet").sink_parquet(file)
    return file


def log_rows(rng: np.random.Generator, rows: np.ndarray) -> pl.DataFrame:
    step = rows % LENGTH
    return pl.DataFrame(
        {
            "episode": rows // LENGTH,
            "step": step,
            "state": rng.integers(0, 64, rows.size),
            "action": rng.integers(0, 4, rows.size),
            "fuel": rng.random(rows.size),
            "harm": 1.0 * (rng.random(rows.size) < 0.1),
            "ended": (step == LENGTH - 1) & (rng.random(rows.size) < 0.7),
        }
    )


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def speed(file: Path, n: int, repeats: int = 3) -> None:
    keys = [MAPPING["state"], MAPPING["action"], MAPPING["terminal"]]

    def grouped() -> None:
        pl.scan_parquet(file).group_by(keys).agg(pl.col(COSTS).sum()).collect(engine="streaming")

    def ours() -> None:
        read_compressed(file, costs=COSTS, **MAPPING)

    taken = [(seconds(grouped), seconds(ours)) for _ in range(repeats)]  # in turns: both meet the same machine
    limit, time_taken = (min(times) for times in zip(*taken, strict=True))
    print(
        f"(a) compress {n:,} rows of Parquet: {time_taken:.2f} s; polars groups them in {limit:.2f} s; "
        f"ratio {time_taken / limit:.2f} (at most 3)"
    )


def megabytes(file: Path) -> float:
    """Return the peak memory of a process of its own (VmHWM: ru_maxrss would start from that of this one)."""
    ran = subprocess.run([sys.executable, "-c", ALONE, str(file)], check=True, capture_output=True, text=True)
    return int(ran.stdout) / 1024


def memory(small: Path, large: Path, n: int) -> None:
    few, many = megabytes(small), megabytes(large)
    print(
        f"(b) peak memory at {n:,} rows: {many:.0f} MB, at {n // 10:,}: {few:.0f} MB; ratio {many / few:.2f} "
        "(at most 1.2)"
    )


if __name__ == "__main__":
    n_rows = int(sys.argv[1]) if sys.argv[1:] else 20 * MILLION
    with TemporaryDirectory() as place:
        logs = [write_log(Path(place) / f"{name}.parquet", n) for name, n in (("few", n_rows // 10), ("many", n_rows))]
        speed(logs[1], n_rows)
        memory(*logs, n_rows)
