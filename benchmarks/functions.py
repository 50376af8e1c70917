"""Trees and networks: as fast as the machine, and faster than a peer at the same error.

python benchmarks/functions.py [peer | samples | heads | memory | growth ...]

peer     one policy, three costs, 50,000 transitions: CPU seconds until all are within 5 % of the truth, d3rlpy 2.8.1
         (in a virtualenv of its own under bench-results, made when it is missing) over checkrein; claimed: at least 10
samples  samples per second of `Neural` over a bare PyTorch loop on the same network; claimed: at least 0.8
heads    8 heads as one batched model over one after another, by batch size; claimed: at most 0.5 at 256
memory   peak memory of training on 100,000 frames of 96 x 96 over their bytes; claimed: 1.3 times plus 500 MB
growth   seconds of one fit of linear, trees and neural for 10^4 to 10^7 rows
All on one thread.
"""

import json
import os
import resource
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

import clinic
from checkrein import (
    FQE,
    AtMost,
    Dataset,
    FrozenFeatures,
    Linear,
    Neural,
    Polynomial,
    Problem,
    Support,
    Trees,
    stack_frames,
)

RESULTS = Path("bench-results")
WITHIN = 0.05
EVERYTHING = Support(0, 0)


def cpu(work: Callable[..., Any], *given: Any, **named: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and what it returned."""
    begin = time.process_time()
    found = work(*given, **named)
    return time.process_time() - begin, found


def peer(rows: int = 50_000, steps: int = 8_000, seeds: int = 1) -> None:
    python = peer_python()
    policy = clinic.target()
    for seed in range(seeds):
        log = clinic.log(rows, seed)
        problem = Problem(
            log, objective="burden", constraints=[AtMost("distance", 1), AtMost("event", 1)], discount=clinic.DISCOUNT
        )
        truth = clinic.truth(policy, log.initial_states)
        evaluate = FQE(Neural(steps=100), iterations=3, support=EVERYTHING, last_layer=1.0)
        ours, values = cpu(evaluate, problem, policy, rng=np.random.default_rng(seed))
        errors = values.row / truth - 1
        print(f"seed {seed}: checkrein {ours:.1f} s, errors {np.round(errors, 3)}", flush=True)
        for scale in (1.0, 0.05):
            theirs = peer_seconds(python, log, policy, truth, steps, seed, scale)
            words = [
                f"{'not in ' if s is None else ''}{end if s is None else s:.0f} s ({e:+.3f})" for s, end, e in theirs
            ]
            total = sum(end if s is None else s for s, end, _ in theirs)
            more = "more than " if any(s is None for s, _, _ in theirs) else ""
            print(f"        d3rlpy, costs times {scale:g}: {', '.join(words)}", end="; ")
            print(f"d3rlpy / checkrein {more}{total / ours:.1f} (claimed: at least 10)", flush=True)


def peer_seconds(python, log, policy, truth, steps, seed, scale) -> list[tuple[float | None, float, float]]:
    """Return for each cost CPU seconds after which it stays within 5 %, if ever, all of them, and the last error."""
    order = log.order()
    ends = np.append(np.diff(log.episodes[order]) != 0, True)
    given, taken = RESULTS / "clinic.npz", RESULTS / "d3rlpy.json"
    np.savez(
        given,
        states=log.states[order],
        actions=log.actions[order],
        next_states=log.next_states[order],
        costs=log.costs[order],
        terminals=log.terminals[order],
        episode_ends=ends,
        initial_states=log.initial_states,
        discount=clinic.DISCOUNT,
        W=policy.weights,
        b=policy.offset,
    )
    call = [python, "benchmarks/d3rlpy_side.py", "fqe", given, taken]
    options = {"--steps": steps, "--every": 500, "--seed": seed, "--scale": scale}
    subprocess.run(
        [*map(str, call), *(str(item) for pair in options.items() for item in pair)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    found = []
    for curve, true in zip(json.loads(taken.read_text())["costs"], truth, strict=True):
        errors = [at["estimate"] / true - 1 for at in curve]
        outside = [i for i, error in enumerate(errors) if abs(error) > WITHIN]
        first = outside[-1] + 1 if outside else 0  # from where on it stays within
        found.append(
            (curve[first]["cpu_seconds"] if first < len(curve) else None, curve[-1]["cpu_seconds"], errors[-1])
        )
    return found


def peer_python() -> Path:
    """Return the peer's own Python, torch installed first."""
    folder = RESULTS / "d3rlpy"
    python = folder / "bin" / "python"
    if not python.exists():
        RESULTS.mkdir(exist_ok=True)
        venv.create(folder, with_pip=True)
        constraint = RESULTS / "torch.txt"
        constraint.write_text("torch==2.13.0\n")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(constraint)]
        subprocess.run([*pip, "torch"], check=True)
        subprocess.run([*pip, "d3rlpy==2.8.1"], check=True)
    return python


def samples(rows: int = 50_000, batch: int = 512, epochs: int = 4) -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    states, actions, targets = rng.normal(size=(rows, 4)), rng.integers(0, 4, rows), rng.normal(size=(rows, 3))
    functions = Neural(batch=batch, epochs=epochs, held_out=0.0)
    design = functions.design(states, actions, np.ones(rows), n_actions=4)
    design.fit(targets, rng=rng)
    ours, _ = cpu(design.fit, targets, rng=rng)
    x, a, y = torch.tensor(states, dtype=torch.float32), torch.tensor(actions), torch.tensor(targets).float()
    layers = [torch.nn.Linear(4, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(256, 12))
    optimiser = torch.optim.Adam(network.parameters())

    def bare() -> None:
        for _ in range(epochs):
            for drawn in torch.randperm(rows).split(batch):
                values = network(x[drawn]).view(-1, 4, 3)[torch.arange(len(drawn)), a[drawn]]
                optimiser.zero_grad()
                ((values - y[drawn]) ** 2).mean().backward()
                optimiser.step()

    bare()
    theirs, _ = cpu(bare)
    print(
        f"samples per second: checkrein {epochs * rows / ours:,.0f}, bare loop {epochs * rows / theirs:,.0f}", end="; "
    )
    print(f"ratio {theirs / ours:.2f} (claimed: at least 0.8)")


def heads(rows: int = 20_000, models: int = 8, steps: int = 60) -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(rows, 32)), rng.integers(0, 4, rows)
    targets = rng.normal(size=(models, rows, 1))
    for batch in (32, 64, 128, 256, 512, 1024, 2048, 4096):
        head = Neural(hidden=(64,), steps=steps, batch=batch)
        design = FrozenFeatures(Polynomial(1), head).design(states, actions, np.ones(rows), n_actions=4)
        together = design.fit_many(targets, models=models, rng=rng)
        single = together.member(0)
        once, _ = cpu(design.fit_many, targets, models=models, rng=rng, start=together)
        each = sum(cpu(design.fit_many, t[None], models=1, rng=rng, start=single)[0] for t in targets)
        print(f"batch {batch:5}: {models} heads at once over one after another {once / each:.2f}", flush=True)


def memory(frames: int = 100_000, steps: int = 200) -> None:
    """Measure in a process of its own: peaks are of a whole process."""
    if os.environ.get("CHECKREIN_MEMORY") is None:
        subprocess.run([sys.executable, __file__, "memory"], check=True, env=os.environ | {"CHECKREIN_MEMORY": "1"})
        return
    rng = np.random.default_rng(0)
    pixels = np.empty((frames, 96, 96), dtype=np.uint8)
    for begin in range(0, frames, 1000):
        pixels[begin : begin + 1000] = rng.integers(0, 256, (1000, 96, 96), dtype=np.uint8)
    episodes = np.arange(frames) // 250
    log = Dataset.from_arrays(
        **stack_frames(pixels, episodes)._asdict(),
        actions=rng.integers(0, 4, frames),
        costs={"cost": rng.random(frames), "harm": rng.random(frames)},
        terminals=np.zeros(frames, dtype=bool),
        episodes=episodes,
        n_actions=4,
    )
    problem = Problem(log, objective="cost", constraints=[AtMost("harm", 1.0)], discount=0.9)
    functions = Neural((256,), convolutions=((16, 8, 4), (32, 4, 2)), steps=steps, batch=128)
    uniform = type("Uniform", (), {"probabilities": lambda _, states: np.full((len(states), 4), 0.25)})()
    FQE(functions, iterations=2, support=EVERYTHING)(problem, uniform, rng=rng)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    allowed = 1.3 * pixels.nbytes + 500e6
    print(f"{frames:,} frames of {pixels.nbytes / 1e6:,.0f} MB in stacks of 4: peak {peak / 1e6:,.0f} MB", end="; ")
    print(f"{peak / pixels.nbytes:.2f} of their bytes (claimed: at most {allowed / 1e6:,.0f} MB)")


def growth() -> None:
    torch.set_num_threads(1)
    print("one fit of 3 costs, 4 features, 4 actions; CPU seconds")
    for rows in (10**4, 10**5, 10**6, 10**7):
        rng = np.random.default_rng(0)
        states, actions, targets = rng.normal(size=(rows, 4)), rng.integers(0, 4, rows), rng.normal(size=(rows, 3))
        words = []
        for name, functions in (
            ("linear", Linear(Polynomial(2))),
            ("trees", Trees(10, min_leaf=max(5.0, rows / 2000))),
            ("neural", Neural(epochs=1)),
        ):
            if name != "linear" and rows > 10**6 and "--all" not in sys.argv:
                words.append(f"{name} (with --all)")
                continue
            building, design = cpu(functions.design, states, actions, np.ones(rows), n_actions=4)
            seconds, q = cpu(design.fit, targets, rng=rng)
            asking, _ = cpu(q, states)
            words.append(f"{name} design {building:.2f}, fit {seconds:.2f}, values {asking:.2f}")
        print(f"{rows:>10,} rows: {'; '.join(words)}", flush=True)


if __name__ == "__main__":
    parts = {"peer": peer, "samples": samples, "heads": heads, "memory": memory, "growth": growth}
    chosen = [name for name in sys.argv[1:] if name in parts] or list(parts)
    for name in chosen:
        print(f"\n{name}")
        parts[name]()
