"""How often `checkrein.sensitivity` promises too much: logs with a hidden factor of known strength, exact truth.

In each world a hidden binary factor, drawn anew at each step, changes the odds of the policy's action by exactly the
odds ratio, in the way that is worst for the policy. The limit lies just below the policy's true value, so a certificate
that is said to survive the true odds ratio is wrong. At 95 % that may happen in 5 % of the logs.

    python benchmarks/sensitivity.py --runs 400
"""

import argparse
import time

import numpy as np
from scipy import stats

import checkrein

STATES, ACTIONS, DISCOUNT = 6, 3, 0.95


def world(seed: int, rare: float) -> tuple[checkrein.TabularMDP, np.ndarray, checkrein.TabularPolicy]:
    """Draw what is observed: moves with an end, what each next state costs (the end's last), behavior."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(STATES + 1, 0.5), size=(STATES, ACTIONS))
    moves[..., -1] = 0.2
    moves[..., :-1] *= 0.8 / moves[..., :-1].sum(axis=-1, keepdims=True)
    paid = rng.uniform(0, 1, STATES + 1)
    if rare > 0:  # one state costs, and is seldom come to
        paid = np.zeros(STATES + 1)
        paid[STATES - 1] = 1.0
        moves[..., STATES - 1] = rare * rng.uniform(0.2, 2, size=(STATES, ACTIONS))
        others = moves[..., : STATES - 1]
        others *= (0.8 - moves[..., STATES - 1 : STATES]) / others.sum(axis=-1, keepdims=True)
    nothing = {"harm": np.ones((STATES, ACTIONS))}  # it depends on where a step leads: `cell` fills it in
    start = np.append(np.full(STATES - 1, 1 / (STATES - 1)), 0.0)
    mdp = checkrein.TabularMDP(moves[..., :-1], nothing, start, DISCOUNT)
    return mdp, paid, checkrein.TabularPolicy(rng.dirichlet(np.full(ACTIONS, 3.0), size=STATES))


def truth(mdp: checkrein.TabularMDP, paid: np.ndarray, behavior: np.ndarray, policy: np.ndarray, odds: float) -> float:
    """Return the policy's value under the worst factor, by plain value iteration over sorted outcomes."""
    values = np.zeros(STATES)
    for _ in range(2000):
        ahead = paid + DISCOUNT * np.append(values, 0.0)
        order = np.argsort(-ahead)
        new = np.zeros(STATES)
        for state in range(STATES):
            for action in np.flatnonzero(policy[state]):
                chances = np.append(mdp.transitions[state, action], 1 - mdp.transitions[state, action].sum())[order]
                p = behavior[state, action]
                low, high, tail = p + (1 - p) / odds, p + (1 - p) * odds, 1 / (1 + odds)
                above = np.clip(tail - (np.cumsum(chances) - chances), 0, chances)
                new[state] += policy[state, action] * ((low * chances + (high - low) * above) @ ahead[order])
        if np.abs(new - values).max() < 1e-12:
            break
        values = new
    return float(mdp.initial @ values)


def cell(episodes: int, odds: float, rare: float, runs: int) -> str:
    passed = over = 0
    found, began = [], time.perf_counter()
    for seed in range(runs):
        mdp, paid, behavior = world(seed, rare)
        rng = np.random.default_rng((seed, episodes))
        policy = np.eye(ACTIONS)[rng.integers(ACTIONS, size=STATES)]
        log = mdp.simulate(behavior, episodes=episodes, max_steps=200, rng=rng)
        log = log.with_costs({"harm": paid[np.where(log.terminals, STATES, log.next_states)]})
        limit = truth(mdp, paid, behavior.probabilities(np.arange(STATES)), policy, odds) * (1 - 1e-9)
        constraints = [checkrein.AtMost("harm", limit)]
        said = checkrein.sensitivity(
            checkrein.TabularPolicy(policy), log, constraints=constraints, discount=DISCOUNT, seed=seed
        )
        passed += said.passed
        over += said.odds_ratio is not None and said.odds_ratio >= odds
        found += [] if said.odds_ratio is None else [said.odds_ratio]
    low, high = stats.binomtest(over, runs).proportion_ci(method="exact")
    middle = f"{np.median(found):.2f}" if found else "-"
    took = time.perf_counter() - began
    return (
        f"| {episodes:,} | {odds:g} | {'rare' if rare else 'common'} | {passed / runs:.0%} | {over / runs:.1%} "
        f"({low:.1%} to {high:.1%}) | {middle} | {took:.0f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    print("| episodes | true odds ratio | cost | passes | said to survive the true one | median found | took |")
    print("|---|---|---|---|---|---|---|")
    for rare in (0.0, 0.03):
        for odds in (1.25, 2.0):
            for episodes in (300, 2000):
                print(cell(episodes, odds, rare, runs), flush=True)


if __name__ == "__main__":
    main()
