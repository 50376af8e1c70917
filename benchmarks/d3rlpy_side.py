"""The d3rlpy 2.8.1 side of a comparison: discrete FQE of a fixed policy, and offline DQN / CQL.

    python d3rlpy_side.py fqe   INPUT.npz OUTPUT.json --steps 20000 --every 1000
    python d3rlpy_side.py train INPUT.npz OUTPUT.npz  --algo cql --steps 20000 --seed 0
    python d3rlpy_side.py constrained INPUT.npz OUTPUT.npz --seed 0

Everything runs on one CPU thread, without progress bars and without log files.

INPUT.npz, both commands: states (n, d), actions (n,), next_states (n, d), terminals (n,) and
episode_ends (n,) (terminal or timeout), the rows of an episode in their order in time.
  fqe:   costs (n, k), initial_states (e, d), discount, and the fixed policy as W (d, A), b (A,):
         action = argmin_a (state @ W + b)[a]. Optional, to check the policy: target_actions (n,),
         target_next_actions (n,), target_initial_actions (e,).
  train: rewards (n,), or costs (n, k), of which the first is then minimised.
  constrained: costs (n, k), discount. CQL minimises the first, and discrete FQE values what it learned, for every cost.
"""

import argparse
import contextlib
import io
import json
import logging
import os
import time
import types
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import structlog  # noqa: E402
import torch  # noqa: E402

with contextlib.redirect_stderr(io.StringIO()):  # a notice of the old gym, which d3rlpy imports
    import d3rlpy
from d3rlpy.logging import NoopAdapterFactory  # noqa: E402

torch.set_num_threads(1)
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def make_dataset(data, rewards, action_size):
    """Make an MDPDataset that keeps every transition.

    d3rlpy stores no next observations: it takes the next row's observation, and so drops the last
    transition of an episode that ends with a timeout. One more row with the last next state, put
    after each timeout, is what gets dropped instead.
    """
    states, next_states = data["states"], data["next_states"]
    terminals = data["terminals"].astype(bool)
    ends = data["episode_ends"].astype(bool) | terminals
    ends[-1] = True
    inside = np.flatnonzero(~ends)
    if not np.allclose(next_states[inside], states[inside + 1], atol=1e-5):
        raise SystemExit("rows of an episode must follow each other in time")
    last = np.flatnonzero(ends & ~terminals)
    dataset = d3rlpy.dataset.MDPDataset(
        observations=np.insert(states, last + 1, next_states[last], axis=0).astype(np.float32),
        actions=np.insert(data["actions"], last + 1, 0).astype(np.int64),
        rewards=np.insert(rewards, last + 1, 0.0).astype(np.float32),
        terminals=np.insert(terminals, last + 1, False).astype(np.float32),
        timeouts=np.insert(np.zeros(len(states)), last + 1, 1.0).astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=action_size,
    )
    if dataset.transition_count != len(states):
        raise SystemExit("d3rlpy dropped transitions")
    return dataset


def fit_in_chunks(algo, dataset, steps, every):
    """Train, and after each `every` steps give (steps, wall seconds, CPU seconds) of training."""
    wall = cpu = 0.0
    fitter = algo.fitter(
        dataset,
        n_steps=steps,
        n_steps_per_epoch=every,  # d3rlpy trains steps // every whole epochs, no remainder
        logger_adapter=NoopAdapterFactory(),
        show_progress=False,
    )
    for chunk in range(1, steps // every + 1):
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        next(fitter)
        wall += time.perf_counter() - wall_start
        cpu += time.process_time() - cpu_start
        yield chunk * every, wall, cpu


def fixed_policy(weights, b):
    """Stand in for the `algo` of DiscreteFQE: an `impl` with predict_best_action."""

    def act(states):
        return (states @ weights + b).argmin(axis=1)

    def predict_best_action(states):
        return torch.from_numpy(act(states.numpy()))

    return act, types.SimpleNamespace(impl=types.SimpleNamespace(predict_best_action=predict_best_action), predict=act)


def fqe(args):
    data = np.load(args.input)
    act, policy = fixed_policy(data["W"], data["b"])
    for states, actions in [
        ("states", "target_actions"),
        ("next_states", "target_next_actions"),
        ("initial_states", "target_initial_actions"),
    ]:
        if actions in data and np.mean(act(data[states]) != data[actions]) > 1e-3:
            raise SystemExit(f"{actions} are not those of the linear argmin policy")
    initial = data["initial_states"].astype(np.float32)
    initial_actions = act(initial)
    curves, setup = [], 0.0
    for costs in data["costs"].T:
        d3rlpy.seed(args.seed)
        start = time.perf_counter()
        # Scaled by hand, as predict_value does not undo d3rlpy's own reward scaler.
        dataset = make_dataset(data, costs * args.scale, action_size=len(data["b"]))
        setup += time.perf_counter() - start
        config = d3rlpy.ope.FQEConfig(
            gamma=float(data["discount"]),
            batch_size=args.batch,
            learning_rate=args.learning_rate,
            target_update_interval=args.target_interval,
            encoder_factory=d3rlpy.models.VectorEncoderFactory([256, 256]),
        )
        model = d3rlpy.ope.DiscreteFQE(algo=policy, config=config)
        curve = []
        for steps, wall, cpu in fit_in_chunks(model, dataset, args.steps, args.every):
            value = model.predict_value(initial, initial_actions).mean() / args.scale
            curve.append({"steps": steps, "seconds": wall, "cpu_seconds": cpu, "estimate": float(value)})
        curves.append(curve)
        print(f"cost {len(curves) - 1}:", curve[-1], flush=True)
    settings = {k: v for k, v in vars(args).items() if k not in ("run", "input", "output")}
    found = {"settings": settings, "dataset_seconds": setup, "costs": curves}
    Path(args.output).write_text(json.dumps(found, indent=1))


def evaluate_cartpole(algo, episodes, seed):
    """Return the sum of rewards of each of `episodes` greedy episodes, played side by side."""
    import gymnasium  # noqa: PLC0415

    envs = [gymnasium.make("CartPole-v1") for _ in range(episodes)]
    states = np.stack([env.reset(seed=seed + i)[0] for i, env in enumerate(envs)])
    returns, live = np.zeros(episodes), np.arange(episodes)
    while len(live):
        going = []
        for i, action in zip(live, algo.predict(states[live]), strict=True):
            states[i], reward, terminated, truncated, _ = envs[i].step(int(action))
            returns[i] += reward
            if not (terminated or truncated):
                going.append(i)
        live = np.array(going, dtype=int)
    return returns


def train(args):
    data = np.load(args.input)
    rewards = data["rewards"] if "rewards" in data else -data["costs"][:, 0]
    d3rlpy.seed(args.seed)
    dataset = make_dataset(data, rewards, action_size=int(data["actions"].max()) + 1)
    config = {"dqn": d3rlpy.algos.DQNConfig, "cql": d3rlpy.algos.DiscreteCQLConfig}[args.algo]
    changed = {
        name: value
        for name, value in [
            ("batch_size", args.batch),
            ("learning_rate", args.learning_rate),
            ("target_update_interval", args.target_interval),
        ]
        if value is not None
    }
    algo = config(gamma=args.discount, **changed).create(device=False)
    curve = []  # steps, training seconds, training CPU seconds, mean return
    for steps, wall, cpu in fit_in_chunks(algo, dataset, args.steps, args.every or args.steps):
        returns = evaluate_cartpole(algo, args.episodes, args.eval_seed)
        curve.append([steps, wall, cpu, returns.mean()])
        print(
            f"{args.algo}: steps {steps}, seconds {wall:.1f}, mean return {returns.mean():.1f}",
            flush=True,
        )
    np.savez(args.output, curve=curve, returns=returns, mean_return=returns.mean(), **layers_of(algo))


def constrained(args):
    """CQL of the first cost, then FQE of every cost; both see costs in units of how much they vary."""
    data = np.load(args.input)
    gamma, actions = float(data["discount"]), int(data["actions"].max()) + 1
    scales = 1.0 / np.maximum(data["costs"].std(axis=0), 1e-9)
    begins = np.append(True, data["episode_ends"][:-1])
    initial = data["states"][begins].astype(np.float32)
    d3rlpy.seed(args.seed)
    encoder = d3rlpy.models.VectorEncoderFactory([64, 64])
    learner = d3rlpy.algos.DiscreteCQLConfig(
        gamma=gamma, batch_size=256, learning_rate=3e-4, target_update_interval=500, encoder_factory=encoder
    ).create(device=False)
    for _ in fit_in_chunks(
        learner, make_dataset(data, -data["costs"][:, 0] * scales[0], actions), args.steps, args.steps
    ):
        pass
    estimates = []
    for costs, scale in zip(data["costs"].T, scales, strict=True):
        config = d3rlpy.ope.FQEConfig(
            gamma=gamma, batch_size=256, learning_rate=3e-4, target_update_interval=100, encoder_factory=encoder
        )
        model = d3rlpy.ope.DiscreteFQE(algo=learner, config=config)
        for _ in fit_in_chunks(model, make_dataset(data, costs * scale, actions), args.fqe_steps, args.fqe_steps):
            pass
        estimates.append(model.predict_value(initial, learner.predict(initial)).mean() / scale)
    np.savez(args.output, estimates=estimates, **layers_of(learner))


def layers_of(algo):
    """Q(s) = relu(relu(s @ W0.T + b0) @ W1.T + b1) @ W2.T + b2, greedy action = argmax."""
    layers = [m for m in algo.impl.q_function[0].modules() if isinstance(m, torch.nn.Linear)]
    weights = {}
    for i, layer in enumerate(layers):
        weights[f"W{i}"] = layer.weight.detach().numpy()
        weights[f"b{i}"] = layer.bias.detach().numpy()
    return weights


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("fqe")
    one.set_defaults(run=fqe)
    one.add_argument("--batch", type=int, default=256)
    one.add_argument("--learning-rate", type=float, default=1e-4)
    one.add_argument("--target-interval", type=int, default=100)
    one.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="fit costs * scale, and divide the estimate (d3rlpy's loss is Huber's, threshold 1)",
    )
    two = commands.add_parser("train")
    two.set_defaults(run=train)
    two.add_argument("--algo", choices=["dqn", "cql"], required=True)
    two.add_argument("--batch", type=int, help="default: d3rlpy's (32)")
    two.add_argument("--learning-rate", type=float, help="default: d3rlpy's (6.25e-5)")
    two.add_argument("--target-interval", type=int, help="default: d3rlpy's (8000)")
    two.add_argument("--discount", type=float, default=0.99)
    two.add_argument("--episodes", type=int, default=100)
    two.add_argument("--eval-seed", type=int, default=100_000)
    three = commands.add_parser("constrained")
    three.set_defaults(run=constrained, every=None)
    three.add_argument("--fqe-steps", type=int, default=5000)
    for command in (one, two, three):
        command.add_argument("input")
        command.add_argument("output")
        command.add_argument("--steps", type=int, required=command is not three, default=10_000)
        command.add_argument("--seed", type=int, default=0)
    one.add_argument("--every", type=int, required=True)
    two.add_argument("--every", type=int, help="evaluate every so many steps; default: at the end")
    args = parser.parse_args()
    if args.steps % (args.every or args.steps):
        parser.error("--steps must be a multiple of --every")
    args.run(args)


if __name__ == "__main__":
    main()
