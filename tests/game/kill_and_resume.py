"""A run that is killed again and again: prints how often, and how far it had come each time, as JSON."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from checkrein import ExponentiatedGradient, solve
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT  # ask whether a child ended, and leave it to be waited for


def play(folder: Path) -> None:
    mdp = random_mdp(0, n_constraints=3, n_states=20)
    problem = exact_problem(mdp, binding_limits(mdp))
    learner = ExponentiatedGradient(5.0, 0.02)
    solve(problem, **PLAYERS, learner=learner, tolerance=1e-9, max_rounds=400, checkpoint=folder)


def start(folder: Path) -> int:
    child = os.fork()
    if child == 0:
        play(folder)
        os._exit(0)
    return child


def recorded(folder: Path) -> int:
    path = folder / "rounds.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main(folder: Path, kills: int) -> None:
    rng = np.random.default_rng(0)
    os.waitpid(start(folder / "unbroken"), 0)
    progress = []
    for _ in range(kills):
        wanted = recorded(folder / "killed") + int(rng.integers(0, 11))
        child = start(folder / "killed")
        while recorded(folder / "killed") < wanted and os.waitid(os.P_PID, child, ENDED) is None:
            time.sleep(0.0002)
        time.sleep(rng.uniform(0, 0.02))  # into the start-up, the replay, a fit, or the middle of a write
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        progress.append(recorded(folder / "killed"))
    os.waitpid(start(folder / "killed"), 0)
    sys.stdout.write(json.dumps(progress))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
