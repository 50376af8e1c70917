"""From a table to a certificate: CPU seconds and peak memory as the table grows, and what of it is solving.

python benchmarks/front_door.py                            # all sizes, with the certificate that `fit` makes by default
python benchmarks/front_door.py --certificate holdout      # the same with a part held out
python benchmarks/front_door.py --world bandit --sizes 10000

The states: S of them as texts, 10 rows each, 2 actions, episodes of 10 steps, a limit on a harm. Each pair of state and
action leads to three states drawn at random, so that a factorisation would fill up. The bandit: 80 actions, 50
contexts, logged propensities.

Of one and the same run, from the problem file to the report on disk:

read         the log, from the file to a problem that can be solved
solve        all that is spent inside `solve`: best responses, values and prices, for all folds and aims
certificate  all the rest: tables of the log, scores, refits, checks, bounds, the report

The limit is on certificate / (read + solve): what it takes to come to a policy from the same file. Certificate / solve
is shown beside it. Of single decisions it grows with the rows, because `solve` sees equal rows once and a certificate
has to look at every episode. "Alone" is one `solve` from the same file at the same limits.

Each case runs in a process of its own, whose peak memory is its own, on one thread, and is kept in a file as it ends.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

SIZES = {"states": (1_000, 10_000, 100_000), "bandit": (10_000, 100_000, 1_000_000)}
ROWS, SUCCESSORS, ENDING = 10, 3, 0.05
ACTIONS, CONTEXTS = 80, 50
MOST_RATIO, MOST_MEMORY = 5.0, 2e9
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
RESULTS = Path("bench-results/front_door.jsonl")
Found = dict[str, Any]


def states_table(n_states: int) -> Any:
    """Log a walk over many states, some of them more often visited than others."""
    import numpy as np  # noqa: PLC0415  # after the number of threads is set
    import polars as pl  # noqa: PLC0415

    rng = np.random.default_rng(0)
    popular = 1 / (np.arange(n_states) + 0.1 * n_states)
    popular = rng.permutation(popular / popular.sum())
    successors = rng.choice(n_states, (n_states, 2, SUCCESSORS), p=popular)
    harm = rng.beta(2.0, 48.0, (n_states, 2)) * np.array([1.0, 2.0])
    effort = rng.uniform(size=(n_states, 2)) + np.array([0.3, 0.0])
    found, alive = [], np.arange(n_states)
    states = rng.choice(n_states, n_states, p=popular)
    for step in itertools.count():
        actions = (rng.random(states.size) < 0.4).astype(np.int64)
        happened = rng.random(states.size) < harm[states, actions]
        ended = happened | (rng.random(states.size) < ENDING)
        found.append(
            (alive, np.full(states.size, step), states, actions, 1.0 * happened, effort[states, actions], ended)
        )
        states = successors[states, actions, rng.integers(0, SUCCESSORS, states.size)][~ended]
        alive = alive[~ended]
        if alive.size == 0:
            break
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    names = ("episode", "step", "place", "action", "harm", "effort", "ended")
    table = pl.DataFrame(dict(zip(names, columns, strict=True)))
    return table.with_columns(place=pl.format("p{}", "place")).sort("episode", "step")


def bandit_table(rows: int) -> Any:
    """Log single decisions among 80 actions, by known propensities."""
    import numpy as np  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415

    rng = np.random.default_rng(0)
    odds = np.exp(rng.normal(size=(CONTEXTS, ACTIONS)))
    chances = 0.8 * odds / odds.sum(axis=1, keepdims=True) + 0.2 / ACTIONS
    gain, harm = (rng.beta(0.5, many, (CONTEXTS, ACTIONS)) for many in (2, 4))
    x = rng.integers(0, CONTEXTS, rows)
    a = (rng.random(rows)[:, None] > chances.cumsum(axis=1)[x]).sum(axis=1).clip(max=ACTIONS - 1)
    return pl.DataFrame(
        {
            "context": x,
            "action": a,
            "propensity": chances[x, a],
            "loss": 1.0 - (rng.random(rows) < gain[x, a]),
            "harm": 1.0 * (rng.random(rows) < harm[x, a]),
        }
    ).with_columns(context=pl.format("c{}", "context"))


def problem_file(world: str, certificate: str) -> str:
    """Return the problem that is put to a table."""
    columns = {
        "states": 'episode = "episode"\nstep = "step"\nstate = "place"\nterminal = "ended"\n',
        "bandit": 'state = "context"\npropensity = "propensity"\n',
    }
    objective = {"states": "effort", "bandit": "loss"}
    discount = {"states": 1.0, "bandit": 1.0}
    limit = {"states": "120% of behavior", "bandit": "90% of behavior"}
    return (
        f'[data]\npath = "log.parquet"\naction = "action"\n{columns[world]}'
        f'[objective]\nminimize = "{objective[world]}"\n'
        f'[[constraint]]\nname = "harm"\nat_most = "{limit[world]}"\n'
        f'[learn]\nfunctions = "tabular"\ndiscount = {discount[world]}\ncertificate = "{certificate}"\n'
    )


class Measured:
    """The CPU seconds of calls of a function, those inside others counted once."""

    def __init__(self) -> None:
        self.seconds, self.calls, self.inside = 0.0, 0, 0

    def of(self, call: Any) -> Any:
        """Return a function that does the same, measured."""

        def run(*args: Any, **kwargs: Any) -> Any:
            begun = time.process_time()
            self.inside += 1
            try:
                return call(*args, **kwargs)
            finally:
                self.inside -= 1
                if self.inside == 0:
                    self.seconds += time.process_time() - begun
                    self.calls += 1

        return run


def write(world: str, size: int, certificate: str, place: Path) -> None:
    """Write a log and what is asked of it."""
    table = states_table(size) if world == "states" else bandit_table(size)
    table.write_parquet(place / "log.parquet")
    (place / "problem.toml").write_text(problem_file(world, certificate))


def one_case(world: str, size: int, certificate: str, place: Path) -> Found:
    """Go from a table on disk to a certificate; in this process."""
    import checkrein  # noqa: PLC0415
    from checkrein.base.errors import EndlessPolicyError  # noqa: PLC0415
    from checkrein.runs import players, prepare  # noqa: PLC0415
    from checkrein.selection import learning  # noqa: PLC0415

    solving, reading = Measured(), Measured()
    for module in (players, learning):
        module.solve = solving.of(module.solve)
    prepare.prepare = reading.of(prepare.prepare)
    begun = time.process_time()
    run = checkrein.fit(place / "problem.toml", out=place / "run")
    taken = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {"read": reading.seconds, "solve": solving.seconds, "solves": solving.calls}
    found["certificate"] = taken - solving.seconds - reading.seconds
    begun = time.process_time()
    with suppress(EndlessPolicyError):  # which folds and support rules get round
        checkrein.solve(prepare.prepare(place / "problem.toml", hold_out=certificate == "holdout").problem)
    found |= {"alone": time.process_time() - begun, "peak": peak}
    verdict = "none" if run.certificate is None else run.certificate.verdict
    return {"world": world, "size": size, "kind": certificate, "verdict": verdict, **found}


def in_processes(world: str, size: int, certificate: str) -> Found:
    """Write a case in one process and run it in another, where nothing else has taken memory."""
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | THREADS | {"CHECKREIN_STATE": place}  # no looks of others are read, nor left
        for step in ("write", "run"):
            case = [sys.executable, __file__, "--step", step, world, str(size), certificate, place]
            done = subprocess.run(case, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{world} {size} {certificate} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def shown(found: Found) -> bool:
    """Print one case; return whether it keeps the limits."""
    ratio, strict = found["certificate"] / (found["read"] + found["solve"]), found["certificate"] / found["solve"]
    kept = ratio <= MOST_RATIO and (found["world"] != "states" or found["peak"] < MOST_MEMORY)
    print(
        f"{found['world']:>6} {found['size']:>9,} {found['kind']:>12}: read {found['read']:.1f} s, solve "
        f"{found['solve']:.1f} s in {found['solves']}, certificate {found['certificate']:.1f} s: ratio {ratio:.2f} "
        f"({strict:.2f} to solve; alone {found['alone']:.1f} s), {found['peak'] / 1e6:,.0f} MB, {found['verdict']}"
        f"{'' if kept else '  <- beyond the limit'}",
        flush=True,
    )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=[*SIZES, "all"], default="all")
    parser.add_argument("--sizes", type=int, nargs="*", help="states, or rows of the bandit")
    parser.add_argument("--certificate", choices=["cross-fitted", "holdout"], default="cross-fitted")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--step", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        warnings.simplefilter("ignore")
        step, world, size, certificate, place = chosen.step
        if step == "write":
            write(world, int(size), certificate, Path(place))
        else:
            print(json.dumps(one_case(world, int(size), certificate, Path(place))))
        return
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    kept = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    known = {(one["world"], one["size"], one["kind"]): one for one in kept}
    kept_limits = True
    for world in SIZES if chosen.world == "all" else [chosen.world]:
        for size in chosen.sizes or SIZES[world]:
            case = (world, size, chosen.certificate)
            if case not in known:
                known[case] = in_processes(*case)
                with chosen.out.open("a") as file:
                    print(json.dumps(known[case]), file=file)
            kept_limits &= shown(known[case])
    sys.exit(not kept_limits)


if __name__ == "__main__":
    main()
