"""One policy instead of a mixture: the best member, the best deterministic policy, the averaged weights."""

from checkrein.game.derandomise.averaging import averaged_weights
from checkrein.game.derandomise.kinds import SinglePolicies, single_policies
from checkrein.game.derandomise.members import best_member
from checkrein.game.derandomise.search import best_deterministic
from checkrein.game.derandomise.single import Derandomised

__all__ = [
    "Derandomised",
    "SinglePolicies",
    "averaged_weights",
    "best_deterministic",
    "best_member",
    "single_policies",
]
