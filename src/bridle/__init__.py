"""bridle: learn a policy from logged decisions, minimise one cost, keep the others under their limits."""

from bridle.best_response import FQI, LSPI
from bridle.certification import Certificate, certify
from bridle.dataset import Dataset
from bridle.deploy import load_policy
from bridle.errors import BridleError
from bridle.evaluation import FQE, LSTDQ, Estimates, evaluate
from bridle.functions import Linear, OneHot, Polynomial, Tabular
from bridle.game import Round, Solution, Status, rounds, solve
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
    "CuttingPlane",
    "Dataset",
    "Estimates",
    "ExponentiatedGradient",
    "GreedyPolicy",
    "Linear",
    "MixturePolicy",
    "OneHot",
    "OnlineGradientDescent",
    "Polynomial",
    "Problem",
    "Round",
    "SoftminPolicy",
    "Solution",
    "Status",
    "Support",
    "Tabular",
    "TabularMDP",
    "TabularPolicy",
    "Values",
    "certify",
    "evaluate",
    "load_policy",
    "read_compressed",
    "read_hdf5",
    "read_logs",
    "read_minari",
    "rounds",
    "save_policy",
    "solve",
    "storable",
]
