"""Point estimates against scope-rl 0.2.1, an independent implementation, on episodes of one length: equal to 1e-8.

The peer is put into a temporary folder without its dependencies: its basic estimators need only NumPy and
scikit-learn, and what else its modules import by name (gym, d3rlpy) is stood in for by empty modules.

Run: python benchmarks/scope_rl.py
"""

import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

from checkrein import TabularPolicy
from checkrein.evaluation import DoublyRobust, evaluate
from checkrein.functions.tabular import TabularQ
from checkrein_studies import graph

PEER = "scope-rl==0.2.1"
THEIRS = {
    "is": "TrajectoryWiseImportanceSampling",
    "pdis": "PerDecisionImportanceSampling",
    "wis": "SelfNormalizedTIS",
    "cwpdis": "SelfNormalizedPDIS",
    "dr": "DoublyRobust",
    "wdr": "SelfNormalizedDR",
}
TOLERANCE = 1e-8


def peer(folder: Path) -> ModuleType:
    """Install the peer into a folder and import its basic estimators alone."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), PEER]
    subprocess.run(pip, check=True)
    sys.path.insert(0, str(folder))
    sys.modules["gym"] = ModuleType("gym")
    sys.modules["gym"].Env = object  # type: ignore[attr-defined]
    preprocessing = ModuleType("d3rlpy.preprocessing")
    preprocessing.ActionScaler = object  # type: ignore[attr-defined]
    sys.modules |= {"d3rlpy": ModuleType("d3rlpy"), "d3rlpy.preprocessing": preprocessing}
    for name in ("scope_rl", "scope_rl.ope", "scope_rl.ope.discrete"):  # without what their __init__ would import
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder.joinpath(*name.split(".")))]
    return import_module("scope_rl.ope.discrete.basic_estimators")


def compare(estimators: ModuleType, seed: int) -> dict[str, float]:
    """Return the relative difference of each estimator on one log of the graph."""
    rng = np.random.default_rng(seed)
    horizon = 8
    mdp = graph.graph(horizon, slip=0.2)
    behavior = TabularPolicy(rng.dirichlet([2, 2], mdp.n_states))
    policy = TabularPolicy(rng.dirichlet([2, 2], mdp.n_states))
    log = graph.log(mdp, behavior, episodes=200, rng=rng)
    q = rng.normal(size=(mdp.n_states, 2))
    ours = evaluate(
        policy,
        log,
        costs=[graph.REWARD],
        discount=mdp.discount,
        estimators=[
            *list(THEIRS)[:4],
            DoublyRobust(TabularQ(np.stack([q, q], axis=2))),
            DoublyRobust(TabularQ(np.stack([q, q], axis=2)), normalised=True),
        ],
    )
    found = {}
    for name, theirs in THEIRS.items():
        value = getattr(estimators, theirs)().estimate_policy_value(
            step_per_trajectory=horizon,
            action=log.actions,
            reward=log.cost(graph.REWARD),
            pscore=log.propensities,
            evaluation_policy_action_dist=policy.probabilities(log.states),
            state_action_value_prediction=q[log.states],
            gamma=mdp.discount,
        )
        found[name] = abs(ours.value(name, graph.REWARD) - value) / abs(value)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        estimators = peer(Path(folder))
        differences = [compare(estimators, seed) for seed in range(20)]
    worst = {name: max(found[name] for found in differences) for name in THEIRS}
    for name, difference in worst.items():
        print(f"{name:8} {difference:.1e}")
    sys.exit(1 if max(worst.values()) > TOLERANCE else 0)


if __name__ == "__main__":
    main()
