"""bridle: learn a policy from logged decisions, minimise one cost, keep the others under their limits."""

from bridle.best_response import FQI, LSPI
from bridle.certification import Certificate, Climb, Rung, certify, climb
from bridle.dataset import Dataset
from bridle.deploy import load_policy
from bridle.errors import BridleError
from bridle.evaluation import FQE, LSTDQ, Estimates, evaluate
from bridle.frames import FrameStack, stack_frames
from bridle.functions import (
    Ensemble,
    FrozenFeatures,
    Linear,
    Neural,
    OneHot,
    Polynomial,
    Regressor,
    Tabular,
    Trees,
)
from bridle.game import Round, Solution, Status, rounds, solve
from bridle.iteration import Iteration, Watch
from bridle.logs.hdf5 import read_hdf5
from bridle.logs.minari import read_minari
from bridle.logs.stream import read_compressed
from bridle.logs.table import read_logs
from bridle.online import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent
from bridle.policies import (
    GreedyPolicy,
    MixturePolicy,
    SoftminPolicy,
    TabularPolicy,
    save_policy,
)
from bridle.problem import AtLeast, AtMost, Problem, Values
from bridle.storage import storable
from bridle.support import Support
from bridle.tabular_mdp import TabularMDP

__version__ = "0.1.0"

__all__ = [
    "FQE",
    "FQI",
    "LSPI",
    "LSTDQ",
    "AtLeast",
    "AtMost",
    "BridleError",
    "Certificate",
    "Climb",
    "CuttingPlane",
    "Dataset",
    "Ensemble",
    "Estimates",
    "ExponentiatedGradient",
    "FrameStack",
    "FrozenFeatures",
    "GreedyPolicy",
    "Iteration",
    "Linear",
    "MixturePolicy",
    "Neural",
    "OneHot",
    "OnlineGradientDescent",
    "Polynomial",
    "Problem",
    "Regressor",
    "Round",
    "Rung",
    "SoftminPolicy",
    "Solution",
    "Status",
    "Support",
    "Tabular",
    "TabularMDP",
    "TabularPolicy",
    "Trees",
    "Values",
    "Watch",
    "certify",
    "climb",
    "evaluate",
    "load_policy",
    "read_compressed",
    "read_hdf5",
    "read_logs",
    "read_minari",
    "rounds",
    "save_policy",
    "solve",
    "stack_frames",
    "storable",
]
