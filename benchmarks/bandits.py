"""Certificates on logs of single decisions, with propensities and without: how often they are wrong, and their cost.

python benchmarks/bandits.py --runs 60     # wrong passes, wrong claims of better, and how much is gained
python benchmarks/bandits.py --time        # CPU seconds and memory: 80 actions, 10,000 rows
"""

import argparse
import resource
import time
from dataclasses import dataclass, replace

import numpy as np

import checkrein
from checkrein.base.arrays import FloatArray

WORLDS = {
    "10 actions, 4 states, 2,000 rows": (10, 4, 2000),
    "5 actions, 10 states, 1,000 rows": (5, 10, 1000),
    "40 actions, 5 states, 5,000 rows": (40, 5, 5000),
}
SHARE = 0.9  # of behavior's harm: the limit


@dataclass(frozen=True)
class Bandit:
    """What each action costs on average in each state, and how likely behavior chooses it."""

    harm: FloatArray  # (S, A)
    gain: FloatArray  # (S, A)
    chances: FloatArray  # (S, A)

    @classmethod
    def draw(cls, n_actions: int, n_states: int, rng: np.random.Generator) -> "Bandit":
        """Draw one in which a few actions are good, and a few do harm."""
        size = (n_states, n_actions)
        odds = np.exp(rng.normal(size=size))
        chances = 0.9 * odds / odds.sum(axis=1, keepdims=True) + 0.1 / n_actions
        return cls(rng.beta(0.5, 4, size), rng.beta(0.5, 2, size), chances)

    def log(self, n: int, rng: np.random.Generator) -> checkrein.Dataset:
        """Log decisions."""
        n_states, n_actions = self.chances.shape
        x = rng.integers(0, n_states, n)
        a = (rng.random(n)[:, None] > self.chances.cumsum(axis=1)[x]).sum(axis=1).clip(max=n_actions - 1)
        happened = {"loss": -1.0 * (rng.random(n) < self.gain[x, a]), "harm": 1.0 * (rng.random(n) < self.harm[x, a])}
        return checkrein.Dataset.from_arrays(
            states=x,
            actions=a,
            next_states=x,
            costs=happened,
            terminals=np.ones(n, bool),
            episodes=np.arange(n),
            propensities=self.chances[x, a],
            n_actions=n_actions,
            n_states=n_states,
        )

    def mean(self, chances: FloatArray, of: FloatArray) -> float:
        """Return what choosing so comes to."""
        return float((chances * of).sum(axis=1).mean())


def study(runs: int) -> None:
    """Print how often what passed breaks its limit, or is worse than behavior though it was shown better."""
    for name, (n_actions, n_states, n) in WORLDS.items():
        found: dict[str, list[tuple[float, ...]]] = {"tables": [], "propensities": []}
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            world = Bandit.draw(n_actions, n_states, rng)
            log, before = world.log(n, rng), world.mean(world.chances, world.gain)
            limit = SHARE * world.mean(world.chances, world.harm)
            for weights, data in (("tables", replace(log, propensities=None)), ("propensities", log)):
                constraints = [checkrein.AtMost("harm", limit)]
                problem = checkrein.Problem(data, objective="loss", constraints=constraints, discount=1.0)
                policy = checkrein.learn_certified(problem, seed=0).policy
                if policy is not None:
                    chances = policy.probabilities(np.arange(n_states))
                    gained = world.mean(chances, world.gain) / before - 1
                    found[weights].append((world.mean(chances, world.harm) > limit, gained < 0, gained))
        for weights, rows in found.items():
            broken, worse, gained = np.array(rows).T if rows else np.zeros((3, 1))
            told = f"{len(rows)} of {runs} deployed, {broken.sum():.0f} break the limit, {worse.sum():.0f} are worse"
            print(f"{name}; {weights}: {told}, {gained.mean():+.0%} on average", flush=True)


def cost(rows: int = 10_000, actions: int = 80) -> None:
    """Print what `learn_certified` costs."""
    for kind in ("3 states", "5 numbers"):
        rng = np.random.default_rng(0)
        item = rng.integers(0, actions, rows)
        if kind == "3 states":
            states, click = rng.integers(0, 3, rows), np.clip(rng.lognormal(-3, 0.7, (3, actions)), 0, 0.5)
            chance = click[states, item]
        else:
            states, weights = rng.normal(size=(rows, 5)), rng.normal(0, 0.8, (5, actions))
            chance = 1 / (1 + np.exp(2.5 - (states * weights[:, item].T).sum(axis=1)))
        price = 1 + 0.05 * item
        log = checkrein.Dataset.from_arrays(
            states=states,
            actions=item,
            next_states=states,
            costs={"missed": -1.0 * (rng.random(rows) < chance), "price": price},
            terminals=np.ones(rows, bool),
            episodes=np.arange(rows),
            propensities=np.full(rows, 1 / actions),
            n_actions=actions,
        )
        limit = checkrein.AtMost("price", 1.05 * price.mean())
        problem = checkrein.Problem(log, objective="missed", constraints=[limit], discount=1.0)
        begun = time.process_time()
        found = checkrein.learn_certified(problem)
        spent, memory = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{kind}, {actions} actions, {rows:,} rows: {spent:.1f} CPU s, {memory:.0f} MB at most; {found}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--time", action="store_true")
    asked = parser.parse_args()
    cost() if asked.time else study(asked.runs)
