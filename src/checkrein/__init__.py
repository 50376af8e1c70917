"""checkrein: learn a policy from logged decisions, minimise one cost, keep the others under their limits.

Every public name is imported when it is first asked for: `import checkrein` alone costs next to nothing.
"""

TYPE_CHECKING = False  # as type checkers know it; importing typing would take longer than all else here

if TYPE_CHECKING:
    from checkrein.base.errors import CheckreinError
    from checkrein.base.storage import storable
    from checkrein.bellman.iteration import Iteration, Watch
    from checkrein.best_response import FQI, LSPI
    from checkrein.certification import Certificate
    from checkrein.certification.certify import certify
    from checkrein.certification.derandomise import derandomise
    from checkrein.certification.sensitivity import sensitivity
    from checkrein.certification.survival import Sensitivity
    from checkrein.costs import (
        Disagreement,
        Entropy,
        EverEntered,
        KLDivergence,
        StateActionCost,
        Switching,
        TotalVariation,
    )
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
    from checkrein.game import Derandomised, Round, Solution, Status, rounds
    from checkrein.game.regularized import regularized
    from checkrein.game.regularized_grid import regularized_grid
    from checkrein.game.solve import solve
    from checkrein.logs.hdf5 import read_hdf5
    from checkrein.logs.minari import read_minari
    from checkrein.logs.stream import read_compressed
    from checkrein.logs.table import read_logs
    from checkrein.one_call import Run, fit
    from checkrein.online import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent
    from checkrein.policies import GreedyPolicy, MixturePolicy, SoftminPolicy, Support, TabularPolicy, save_policy
    from checkrein.problem import AdmissibleActions, AtLeast, AtMost, Problem, Values
    from checkrein.selection.fixed_sequence import Candidate, CertifiedPolicy, learn_certified
    from checkrein.selection.frontier import Frontier, frontier
    from checkrein.tabular_mdp import TabularMDP

__version__ = "0.1.0"

__all__ = [
    "FQE",
    "FQI",
    "LSPI",
    "LSTDQ",
    "AdmissibleActions",
    "AtLeast",
    "AtMost",
    "Candidate",
    "Certificate",
    "CertifiedPolicy",
    "CheckreinError",
    "CuttingPlane",
    "Dataset",
    "Derandomised",
    "Disagreement",
    "Ensemble",
    "Entropy",
    "Estimates",
    "EverEntered",
    "ExponentiatedGradient",
    "FrameStack",
    "Frontier",
    "FrozenFeatures",
    "GreedyPolicy",
    "Iteration",
    "KLDivergence",
    "Linear",
    "MixturePolicy",
    "Neural",
    "OneHot",
    "OnlineGradientDescent",
    "Polynomial",
    "Problem",
    "Regressor",
    "Round",
    "Run",
    "Sensitivity",
    "SoftminPolicy",
    "Solution",
    "StateActionCost",
    "Status",
    "Support",
    "Switching",
    "Tabular",
    "TabularMDP",
    "TabularPolicy",
    "TotalVariation",
    "Trees",
    "Values",
    "Watch",
    "certify",
    "derandomise",
    "evaluate",
    "fit",
    "frontier",
    "learn_certified",
    "load_policy",
    "read_compressed",
    "read_hdf5",
    "read_logs",
    "read_minari",
    "regularized",
    "regularized_grid",
    "rounds",
    "save_policy",
    "sensitivity",
    "solve",
    "stack_frames",
    "storable",
]

_MODULES = {  # where each public name is from; type checkers read the same from the imports above
    "FQE": "checkrein.evaluation",
    "FQI": "checkrein.best_response",
    "LSPI": "checkrein.best_response",
    "LSTDQ": "checkrein.evaluation",
    "AdmissibleActions": "checkrein.problem",
    "AtLeast": "checkrein.problem",
    "AtMost": "checkrein.problem",
    "Candidate": "checkrein.selection.fixed_sequence",
    "Certificate": "checkrein.certification",
    "CertifiedPolicy": "checkrein.selection.fixed_sequence",
    "CheckreinError": "checkrein.base.errors",
    "CuttingPlane": "checkrein.online",
    "Dataset": "checkrein.data.dataset",
    "Derandomised": "checkrein.game",
    "Disagreement": "checkrein.costs",
    "Ensemble": "checkrein.functions",
    "Entropy": "checkrein.costs",
    "Estimates": "checkrein.evaluation",
    "EverEntered": "checkrein.costs",
    "ExponentiatedGradient": "checkrein.online",
    "FrameStack": "checkrein.data.frames",
    "Frontier": "checkrein.selection.frontier",
    "FrozenFeatures": "checkrein.functions",
    "GreedyPolicy": "checkrein.policies",
    "Iteration": "checkrein.bellman.iteration",
    "KLDivergence": "checkrein.costs",
    "Linear": "checkrein.functions",
    "MixturePolicy": "checkrein.policies",
    "Neural": "checkrein.functions",
    "OneHot": "checkrein.functions",
    "OnlineGradientDescent": "checkrein.online",
    "Polynomial": "checkrein.functions",
    "Problem": "checkrein.problem",
    "Regressor": "checkrein.functions",
    "Round": "checkrein.game",
    "Run": "checkrein.one_call",
    "Sensitivity": "checkrein.certification.survival",
    "SoftminPolicy": "checkrein.policies",
    "Solution": "checkrein.game",
    "StateActionCost": "checkrein.costs",
    "Status": "checkrein.game",
    "Support": "checkrein.policies",
    "Switching": "checkrein.costs",
    "Tabular": "checkrein.functions",
    "TabularMDP": "checkrein.tabular_mdp",
    "TabularPolicy": "checkrein.policies",
    "TotalVariation": "checkrein.costs",
    "Trees": "checkrein.functions",
    "Values": "checkrein.problem",
    "Watch": "checkrein.bellman.iteration",
    "certify": "checkrein.certification.certify",
    "derandomise": "checkrein.certification.derandomise",
    "evaluate": "checkrein.evaluation",
    "fit": "checkrein.one_call",
    "frontier": "checkrein.selection.frontier",
    "learn_certified": "checkrein.selection.fixed_sequence",
    "load_policy": "checkrein.deploy",
    "read_compressed": "checkrein.logs.stream",
    "read_hdf5": "checkrein.logs.hdf5",
    "read_logs": "checkrein.logs.table",
    "read_minari": "checkrein.logs.minari",
    "regularized": "checkrein.game.regularized",
    "regularized_grid": "checkrein.game.regularized_grid",
    "rounds": "checkrein.game",
    "save_policy": "checkrein.policies",
    "sensitivity": "checkrein.certification.sensitivity",
    "solve": "checkrein.game.solve",
    "stack_frames": "checkrein.data.frames",
    "storable": "checkrein.base.storage",
}


if not TYPE_CHECKING:  # else a type checker would take any name for one of ours

    def __getattr__(name):
        """Import a public name from its module, once (PEP 562)."""
        import importlib  # noqa: PLC0415

        if name not in _MODULES:
            import difflib  # noqa: PLC0415

            near = difflib.get_close_matches(name, _MODULES, n=1)
            meant = f": did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
        value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
