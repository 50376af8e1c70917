"""What a bound rests on."""

from dataclasses import dataclass

from checkrein.evaluation.propensities import Propensities
from checkrein.policies import Support
from checkrein.protocols import FunctionClass


@dataclass(frozen=True)
class Assumptions:
    """What a bound rests on, which the diagnostics then look at.

    weighs: whether it stands or falls with the importance weights of episodes (else with refits of Q)
    stops_at_cut_off: whether its sums leave out what follows where an episode was cut off
    """

    functions: FunctionClass
    support: Support
    propensities: Propensities | None  # None: the log's own, else estimated
    weighs: bool
    stops_at_cut_off: bool = False
