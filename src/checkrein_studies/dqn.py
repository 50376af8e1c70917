"""A deep Q-network (Mnih et al. 2015) for a finite MDP, trained online: short, and its checkpoint chosen by playing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from checkrein import Dataset, TabularMDP, TabularPolicy
from checkrein.base.arrays import FloatArray
from checkrein.base.errors import MissingExtraError
from checkrein.reproduction import Tell

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class DQN:
    """One hidden layer on one-hot states, a target network, and a memory that keeps each distinct transition once.

    phases: of playing, then training, then copying to the target network and playing greedily for a checkpoint, at most
    """

    hidden: int = 64
    phases: int = 60
    episodes: int = 200  # played in a phase
    max_steps: int = 100
    steps: int = 60  # of gradient descent in a phase
    batch: int = 128
    rate: float = 3e-3
    last_chance: float = 0.1  # of a random action, down from 1
    patience: int = 5  # equally good checkpoints in a row that are enough
    seed: int = 0

    def train(self, mdp: TabularMDP, objective: str, tell: Tell) -> tuple[TabularPolicy, list[float]]:
        """Return the greedy policy of the best checkpoint, and what each checkpoint was worth when played."""
        torch: Any = import_torch()
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self._train(torch, mdp, objective, tell)
        finally:
            torch.set_num_threads(before)

    def _train(self, torch: Any, mdp: TabularMDP, objective: str, tell: Tell) -> tuple[TabularPolicy, list[float]]:
        rng, chance = np.random.default_rng(self.seed), torch.Generator().manual_seed(self.seed)
        online, target = (self._network(torch, mdp, seed) for seed in (self.seed, self.seed))
        optimiser = torch.optim.Adam(online.parameters(), lr=self.rate)
        everything = torch.eye(mdp.n_states)
        memory: dict[tuple[int, ...], float] = {}
        best, worth = TabularPolicy.uniform(mdp.n_states, mdp.n_actions), list[float]()
        for phase in range(self.phases):
            tell(f"training the DQN: phase {phase + 1} of {self.phases}")
            explored = max(1 - 1.5 * phase / self.phases, self.last_chance)
            greedy = _greedy(online(everything))
            curious = TabularPolicy((1 - explored) * greedy + explored / mdp.n_actions)
            played = mdp.simulate(curious, episodes=self.episodes, max_steps=self.max_steps, rng=rng)
            memory |= _distinct(played, objective)
            self._descend(torch, mdp, memory, online, target, optimiser, chance)
            target.load_state_dict(online.state_dict())
            policy = TabularPolicy(_greedy(online(everything)))
            judged = mdp.simulate(policy, episodes=1, max_steps=self.max_steps, rng=rng)
            worth.append(float(judged.returns(mdp.discount)[0, judged.cost_names.index(objective)]))
            if worth[-1] <= min(worth):
                best = policy
            if len(worth) >= self.patience and max(worth[-self.patience :]) <= min(worth) < 0:
                break
        return best, worth

    def _network(self, torch: Any, mdp: TabularMDP, seed: int) -> Any:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            layers = torch.nn.Linear(mdp.n_states, self.hidden), torch.nn.Linear(self.hidden, mdp.n_actions)
            return torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1])

    def _descend(
        self,
        torch: Any,
        mdp: TabularMDP,
        memory: dict[tuple[int, ...], float],
        online: Any,
        target: Any,
        optimiser: Any,
        chance: Any,
    ) -> None:
        """Regress on cost + discount * the least value of the target network."""
        states, actions, following, ended = torch.tensor(list(memory)).T
        costs, everything = torch.tensor(list(memory.values())), torch.eye(mdp.n_states)
        for _ in range(self.steps):
            rows = torch.randint(len(memory), (self.batch,), generator=chance)
            with torch.no_grad():
                later = target(everything[following[rows]]).min(dim=1).values
                wanted = costs[rows] + mdp.discount * later * (1 - ended[rows])
            values = online(everything[states[rows]]).gather(1, actions[rows, None])[:, 0]
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(values, wanted).backward()
            optimiser.step()


def import_torch() -> Any:
    """Import torch, or name the command that installs it."""
    try:
        import torch  # noqa: PLC0415
    except ImportError as reason:
        raise MissingExtraError("the DQN of a study", "studies", reason) from None
    return torch


def _distinct(played: Dataset, objective: str) -> dict[tuple[int, ...], float]:
    """Return the cost of each distinct transition."""
    rows = np.column_stack([played.states, played.actions, played.next_states, played.terminals])
    kept, first = np.unique(rows, axis=0, return_index=True)
    costs = played.cost(objective)[first].astype(np.float32)
    return dict(zip(map(tuple, kept.tolist()), costs.tolist(), strict=True))


def _greedy(values: "Tensor") -> FloatArray:
    """(S, A) one-hot in the least value."""
    least = values.detach().numpy().argmin(axis=1)
    return np.eye(values.shape[1])[least]
