"""checkrein: learn a policy from logged decisions, minimise one cost, keep the others under their limits."""

from checkrein.base.errors import CheckreinError
from checkrein.base.storage import storable
from checkrein.bellman.iteration import Iteration, Watch
from checkrein.best_response import FQI, LSPI
from checkrein.certification import Certificate, certify
from checkrein.data.dataset import Dataset
from checkrein.data.frames import FrameStack, stack_frames
from checkrein.deploy import load_policy
from checkrein.evaluation import FQE, LSTDQ, Estimates, evaluate
from checkrein.functions import (
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
from checkrein.game import Round, Solution, Status, rounds, solve
from checkrein.logs.hdf5 import read_hdf5
from checkrein.logs.minari import read_minari
from checkrein.logs.stream import read_compressed
from checkrein.logs.table import read_logs
from checkrein.online import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent
from checkrein.policies import (
    GreedyPolicy,
    MixturePolicy,
    SoftminPolicy,
    Support,
    TabularPolicy,
    save_policy,
)
from checkrein.problem import AtLeast, AtMost, Problem, Values
from checkrein.selection.fixed_sequence import Candidate, CertifiedPolicy, learn_certified
from checkrein.tabular_mdp import TabularMDP

__version__ = "0.1.0"

__all__ = [
    "FQE",
    "FQI",
    "LSPI",
    "LSTDQ",
    "AtLeast",
    "AtMost",
    "Candidate",
    "Certificate",
    "CertifiedPolicy",
    "CheckreinError",
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
    "evaluate",
    "learn_certified",
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
