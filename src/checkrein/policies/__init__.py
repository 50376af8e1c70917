"""Policies, what the log supports, and the one place where no evidence counts at its worst."""

from checkrein.policies.behavior import BehaviorMask, RegressedMask, behavior_policy
from checkrein.policies.column_mask import ColumnMask
from checkrein.policies.evidence import Supported, least
from checkrein.policies.greedy import GreedyPolicy, SoftminPolicy
from checkrein.policies.logistic import LogisticPolicy
from checkrein.policies.majority import MajorityPolicy, one_hot
from checkrein.policies.mixture import MixturePolicy, load_policy, members_of, probabilities_of, save_policy
from checkrein.policies.regularized import ChoiceMask, PermittedMask, RegularizedPolicy, written_out
from checkrein.policies.restricted import AdmissibleMask, RestrictedPolicy
from checkrein.policies.support import CountMask, EveryAction, Support
from checkrein.policies.tabular import TabularPolicy, rows_of
from checkrein.policies.tilted import TiltedPolicy

__all__ = [
    "AdmissibleMask",
    "BehaviorMask",
    "ChoiceMask",
    "ColumnMask",
    "CountMask",
    "EveryAction",
    "GreedyPolicy",
    "LogisticPolicy",
    "MajorityPolicy",
    "MixturePolicy",
    "PermittedMask",
    "RegressedMask",
    "RegularizedPolicy",
    "RestrictedPolicy",
    "SoftminPolicy",
    "Support",
    "Supported",
    "TabularPolicy",
    "TiltedPolicy",
    "behavior_policy",
    "least",
    "load_policy",
    "members_of",
    "one_hot",
    "probabilities_of",
    "rows_of",
    "save_policy",
    "written_out",
]
