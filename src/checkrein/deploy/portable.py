"""What a policy is without its code: a table of probabilities, a linear rule, or a vote of such rules.

Every export is written from this.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray, frozen
from checkrein.base.errors import StorageError
from checkrein.bellman.iteration import BoundedQ
from checkrein.data.encoding import Encoding
from checkrein.deploy.models import TiltedMember, ValuesMember, model_of
from checkrein.functions import LinearQ, OneHot, Polynomial, TabularQ
from checkrein.policies import (
    BehaviorMask,
    ChoiceMask,
    CountMask,
    EveryAction,
    GreedyPolicy,
    MajorityPolicy,
    RestrictedPolicy,
    SoftminPolicy,
    TabularPolicy,
    members_of,
)
from checkrein.protocols import Policy

KEEP = "keep the run folder and load it with checkrein.deploy.load"


@dataclass(frozen=True, eq=False)
class TableMember:
    """One member over finite states, written out."""

    probabilities: FloatArray  # (S, A)


@dataclass(frozen=True, eq=False)
class LinearMember:
    """One member over feature vectors: values linear in the monomials of the features, and how to choose by them.

    temperature: of a softmin; None: greedy
    support: which actions may be chosen; None: all
    """

    degree: int
    weights: FloatArray  # (A, monomials)
    temperature: float | None
    support: BehaviorMask | None

    @property
    def n_actions(self) -> int:
        """A."""
        return len(self.weights)

    @property
    def around(self) -> tuple[FloatArray, FloatArray] | None:
        """(d,) where the log's states lie, and how far they spread; None: it does not know."""
        return None if self.support is None else (self.support.centre, self.support.scale)


Rule = LinearMember | ValuesMember | TiltedMember


@dataclass(frozen=True, eq=False)
class MajorityMember:
    """One member over feature vectors that takes the action to which its rules give the most weight."""

    rules: tuple[Rule, ...]
    weights: FloatArray  # (rules,)


Member = TableMember | MajorityMember | Rule


@dataclass(frozen=True, eq=False)
class Portable:
    """A whole policy: its members, how likely each is at the start of an episode, and what its numbers stand for.

    size: how many finite states there are, or how many features
    """

    policies: tuple[Policy, ...]  # what the members were made from
    members: tuple[Member, ...]  # all tables, or none
    weights: FloatArray  # (members,)
    actions: tuple[str, ...]
    size: int
    encoding: Encoding | None

    @property
    def finite(self) -> bool:
        """Say whether states are integers rather than feature vectors."""
        return isinstance(self.members[0], TableMember)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, those that vote among them."""
        return _rules_in(self.members)

    def probabilities(self, states: FloatArray | IntArray) -> FloatArray:
        """(members, n, A) as the policies themselves give them."""
        return np.stack([policy.probabilities(states) for policy in self.policies])


def portable(policy: Policy, encoding: Encoding | None, *, models: bool = False) -> Portable:
    """Reduce a policy to numbers, or say which part of it cannot be and what to do instead.

    models: whether trees, networks and learned features can be written, too
    """
    if encoding is not None and encoding.memory is not None:
        raise StorageError(
            "the policy remembers what happened earlier in an episode, which exports do not: keep the run folder, and "
            'ask load_policy(RUN).act(table) with the columns that it remembers ("previous action", events)'
        )
    pairs = members_of(policy)
    policies = tuple(member for member, _ in pairs)
    n_states = _n_states(policies, encoding)
    members: tuple[Member, ...]
    if n_states is not None:
        members = tables = tuple(_table(member, n_states) for member in policies)
        size, n_actions = n_states, tables[0].probabilities.shape[1]
    else:
        members = tuple(_member(member, models=models) for member in policies)
        rules = _rules_in(members)
        size, n_actions = _n_features(rules, encoding), rules[0].n_actions
    actions = tuple(map(str, range(n_actions))) if encoding is None else encoding.actions
    if len(actions) != n_actions:
        raise StorageError(f"the policy has {n_actions} actions, but its encoding names {len(actions)}: {actions}")
    weights = frozen(np.array([weight for _, weight in pairs]))
    return Portable(policies, members, weights, actions, size, encoding)


def monomials(n_features: int, degree: int) -> list[tuple[int, ...]]:
    """List which features are multiplied in each monomial, in the order of `Polynomial`; the first is the constant."""
    degrees = range(degree + 1)
    return [columns for d in degrees for columns in combinations_with_replacement(range(n_features), d)]


def _n_states(policies: tuple[Policy, ...], encoding: Encoding | None) -> int | None:
    """Return the number of finite states, or None where states are feature vectors."""
    sizes = [size for policy in policies for size in table_sizes(policy)]
    exact = sorted({size for size, is_exact in sizes if is_exact})
    if encoding is None:
        return exact[0] if exact else max((size for size, _ in sizes), default=None)
    if encoding.combinations is None:
        if sizes:
            raise StorageError(
                f"the encoding makes {len(encoding.features)} features, but the policy is a table of {sizes[0][0]} "
                "finite states: pass the encoding of the log that it was learned from"
            )
        return None
    known = len(encoding.combinations)
    if any(size != known for size in exact):
        raise StorageError(
            f"the encoding has {known} states, but the policy {exact}: pass the encoding of the log it was learned from"
        )
    return known


def table_sizes(policy: Policy) -> Iterator[tuple[int, bool]]:
    """Yield the lengths of the tables inside, and whether a state beyond them is an error."""
    if isinstance(policy, TabularPolicy):
        yield len(policy.table), True
    if isinstance(policy, GreedyPolicy | SoftminPolicy):
        if isinstance(policy.q, TabularQ):
            yield len(policy.q.table), False
        if isinstance(policy.q, LinearQ) and isinstance(policy.q.features, OneHot):
            yield policy.q.features.n_states, True
        if isinstance(policy.support, CountMask):
            yield len(policy.support.table), True
    if isinstance(policy, MajorityPolicy):
        for member, _ in members_of(policy.mixture):
            yield from table_sizes(member)


def _table(policy: Policy, n_states: int) -> TableMember:
    with np.errstate(invalid="ignore"):
        table = policy.probabilities(np.arange(n_states))
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        state = int(np.argmax(bad))
        raise StorageError(
            f"the probabilities of {type(policy).__name__} in state {state} are {table[state]}: they must be finite. "
            "The function class diverged, nothing is exported"
        )
    return TableMember(frozen(table))


def _rules_in(members: tuple[Member, ...]) -> tuple[Rule, ...]:
    found = [m.rules if isinstance(m, MajorityMember) else (m,) for m in members if not isinstance(m, TableMember)]
    return tuple(rule for rules in found for rule in rules)


def _member(policy: Policy, *, models: bool) -> Rule | MajorityMember:
    if not isinstance(policy, MajorityPolicy):
        return _rule(policy, models=models)
    pairs = members_of(policy.mixture)
    rules = tuple(_rule(rule, models=models) for rule, _ in pairs)
    return MajorityMember(rules, frozen(np.array([weight for _, weight in pairs])))


def _rule(policy: Policy, *, models: bool) -> Rule:
    model = model_of(policy)
    if model is not None and models:
        return model
    q, support = getattr(policy, "q", None), getattr(policy, "support", None)
    if isinstance(policy, RestrictedPolicy) or isinstance(support, ChoiceMask):
        raise StorageError(
            "which actions are admissible, or permitted by a limit on the policy itself, is asked of every state, and "
            f"cannot be written without code where states are numbers: {KEEP}"
        )
    if model is not None:
        raise _inexpressible(_named(policy), f"export --format onnx (export_onnx) writes it; or {KEEP}")
    match policy:
        case GreedyPolicy():
            temperature = None
        case SoftminPolicy():
            temperature = policy.temperature
        case _:
            raise _inexpressible(_named(policy))
    if not isinstance(q, LinearQ):
        raise _inexpressible(_named(policy))
    if not isinstance(q.features, Polynomial):
        raise _inexpressible(f"the feature map {getattr(q.features, '__name__', type(q.features).__name__)}")
    if not isinstance(support, BehaviorMask | EveryAction | None):
        raise _inexpressible(f"the support {type(support).__name__}")
    weights = np.asarray(q.weights[:, :, 0], dtype=np.float64)
    if not np.isfinite(weights).all():
        raise StorageError("the weights of a member are not finite: the function class diverged, nothing is exported")
    mask = support if isinstance(support, BehaviorMask) else None
    return LinearMember(q.features.degree, frozen(weights), temperature, mask)


def _named(policy: Policy) -> str:
    """Return what of a policy is in the way."""
    if not isinstance(policy, GreedyPolicy | SoftminPolicy):
        return type(policy).__name__
    return type(policy.q.q if isinstance(policy.q, BoundedQ) else policy.q).__name__


def _inexpressible(what: str, instead: str = "") -> StorageError:
    instead = instead or f"learn with Linear(Polynomial(degree)), or make the states finite (Tabular), or {KEEP}"
    return StorageError(f"{what} over feature vectors cannot be written without code: {instead}")


def _n_features(rules: tuple[Rule, ...], encoding: Encoding | None) -> int:
    """Return the number of features that all members agree on."""
    known = {} if encoding is None else {"the encoding": len(encoding.features)}
    for place, rule in enumerate(rules):
        if rule.support is not None:
            known[f"the support of member {place}"] = rule.support.centre.size
        if not isinstance(rule, LinearMember):
            known[f"member {place}"] = rule.n_features
        elif rule.degree > 0:
            count = rule.weights.shape[1]
            known[f"member {place}"] = next(d for d in range(count) if comb(d + rule.degree, rule.degree) >= count)
    if not known:
        raise StorageError("nothing says how many features the states have: pass the encoding")
    if len(set(known.values())) > 1:
        raise StorageError("; ".join(f"{who} has {size} features" for who, size in known.items()) + ": they must agree")
    return next(iter(known.values()))
