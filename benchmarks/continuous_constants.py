"""Weights of the tuned policies, of the form that `python benchmarks/continuous_worlds.py tune NAME` prints (minutes).

Each is the best, by 30,000 rollouts and with limits kept by a standard error, of two searches: the one that `tune`
runs, and its earlier form (25 rounds, or 15 and 300 trials; 1% kept free). So `tune` prints others. For hiv only the
earlier form was run. "free" is left out where no search found anything better than near behavior.
"""

FOUND: dict[str, dict[str, list[list[float]]]] = {
    "glucose": {
        "near": [[0.9, -0.01, 0.85, -1.12, 1.5, 0.91], [-0.39, 1.22, -0.35, -0.26, 1.52, 0.25]],
        "free": [[0.51, 0.02, 1.1, -1.23, 1.33, 0.7], [-1.74, 1.47, -0.49, -0.52, 0.46, 0.01]],
    },
    "hiv": {
        "near": [
            [0.24, 0.13, 0.73, -1.35, -0.4, -0.12, -1.13],
            [-1.67, 0.35, 1.24, -0.09, -0.82, 0.43, -0.58],
            [-0.57, -0.05, 0.09, 0.31, 0.73, 0.43, -0.29],
        ],
        "free": [
            [0.46, -0.62, 0.66, -1.46, 0.74, -0.9, 0.04],
            [-0.97, 0.4, 0.01, -0.45, -1.84, -0.07, 0.3],
            [-1.11, 0.12, -0.61, 0.6, 0.76, 0.28, -0.47],
        ],
    },
    "epidemic": {
        "near": [[-0.52, 0.09, 1.01, 0.56], [-0.65, -0.0, 0.09, 0.56]],
        "free": [[-0.43, 0.13, 1.54, 0.88], [-0.89, 0.08, -0.17, 0.63]],
    },
    "servers": {"near": [[0.48, 2.49, 0.23, -1.84, 1.14], [-0.2, 2.39, 0.15, -0.25, 0.93]]},
    "pole": {
        "near": [[0.05, 0.69, 0.04, 1.39, 1.62], [-1.56, 0.16, -0.44, 0.17, -0.42]],
        "free": [[0.0, 0.64, 0.25, 1.37, 1.95], [-1.5, 0.09, -0.18, 0.01, -0.26]],
    },
    "stays": {"near": [[0.86, -0.91, -0.61, -0.05, 0.1, 0.38], [0.79, -0.69, -0.1, -0.38, -0.04, -0.06]]},
    "oncology": {
        "near": [[0.51, -0.66, 0.33, -0.02, 0.41, -0.21, 0.25], [-0.29, -0.03, -0.61, -0.07, 0.44, -0.92, -0.62]],
        "free": [[0.98, -0.87, 0.88, 0.04, 0.62, 0.2, 0.38], [-0.65, 0.17, -0.49, -0.32, 0.49, -1.47, -0.85]],
    },
}
