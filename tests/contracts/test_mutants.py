"""A test of the tests: whoever does one thing wrong is caught by the contract that is about it, and only then."""

import numpy as np
import pytest

from checkrein import FQE, FQI, LSPI, GreedyPolicy, Support, Tabular
from checkrein.bellman.backups import Greedy
from checkrein.evaluation import ImportanceSampling, TabularModel
from checkrein.policies import EveryAction
from contracts import test_backup as backups
from contracts import test_best_response as responses
from contracts import test_bound as bounds
from contracts import test_closed_form as closed_forms
from contracts import test_cost as costs
from contracts import test_estimator as estimators
from contracts import test_evaluator as evaluators
from contracts import test_function_class as classes
from contracts import test_online_learner as learners
from contracts import test_policy as policies
from contracts.mutants import (
    AsksOther,
    ByFirstStep,
    Colder,
    DropsTheLastRow,
    FlipsTheSign,
    ForgetsTheOtherConstraint,
    Hard,
    IgnoresAlpha,
    IgnoresItsState,
    IgnoresWeights,
    LeavesTheBall,
    Merged,
    OfAnotherPolicy,
    Refits,
    WrongSide,
    ends_where_it_was_cut_off,
    of_class,
    of_even_rows,
    of_even_starts,
    swaps_costs,
    swaps_prices,
    with_log,
    without_discount,
)
from contracts.worlds import POLICY

FQE_, FQI_ = FQE(Tabular()), FQI(Tabular())
EVALUATED, ANSWERED = evaluators.Case(FQE_), responses.Case(FQI_)
PDIS, BOUND = ImportanceSampling(per_decision=True), bounds.CASES["fqe-t"]
LEARNER = learners.LEARNERS["exponentiated gradient"]
GREEDY = policies.POLICIES["greedy, supported"]
LOG_ITSELF = evaluators.check_values_are_those_of_the_log_itself


def evaluator(mutant):
    return EVALUATED, evaluators.Case(mutant)


def response(mutant):
    return ANSWERED, responses.Case(mutant)


MUTANTS = {  # a contract's check, who passes it, and who does not
    "a table that ignores weights": (classes.check_weights_pull, *of_class("tabular", IgnoresWeights)),
    "trees that ignore weights": (classes.check_weights_pull, *of_class("trees", IgnoresWeights)),
    "a network that ignores weights": (classes.check_weights_pull, *of_class("neural", IgnoresWeights)),
    "a network that predicts zero": (
        classes.check_what_the_class_can_represent_is_learned,
        *of_class("neural", lambda inner: Refits(inner, np.zeros_like)),
    ),
    "trees that predict the mean": (
        classes.check_what_the_class_can_represent_is_learned,
        *of_class("trees", lambda inner: Refits(inner, lambda q: np.broadcast_to(q.mean(axis=(0, 1)), q.shape))),
    ),
    "a class that swaps two costs": (
        classes.check_what_the_class_can_represent_is_learned,
        *of_class("linear, polynomial", lambda inner: Refits(inner, lambda q: q[..., [0, 2, 1]])),
    ),
    "a class that drops the last row": (
        classes.check_rows_without_weight_are_as_if_absent,
        *of_class("linear, ridge", DropsTheLastRow),
    ),
    "a network that drops the last row": (
        classes.check_rows_without_weight_are_as_if_absent,
        *of_class("neural", DropsTheLastRow),
    ),
    "a closed form that forgets the discount": (
        closed_forms.check_the_fixed_point_is_where_the_fitted_iteration_stays,
        *of_class("tabular", lambda inner: Refits(inner, lambda continuation: 0.9 * continuation)),
    ),
    "an evaluator that swaps two costs": (LOG_ITSELF, *evaluator(swaps_costs(FQE_))),
    "an evaluator that forgets the discount": (LOG_ITSELF, *evaluator(AsksOther(FQE_, without_discount))),
    "an evaluator for whom a cut-off is an end": (
        LOG_ITSELF,
        *evaluator(AsksOther(FQE_, with_log(ends_where_it_was_cut_off))),
    ),
    "an evaluator that ignores where episodes begin": (
        LOG_ITSELF,
        *evaluator(AsksOther(FQE_, with_log(of_even_starts))),
    ),
    "a model that ignores weights": (LOG_ITSELF, *evaluator(AsksOther(TabularModel(), with_log(of_even_rows)))),
    "an evaluator of a mixture's first step": (
        evaluators.check_a_mixture_follows_one_member_per_episode,
        *evaluator(ByFirstStep(FQE_)),
    ),
    "an evaluator without the support rule": (
        evaluators.check_what_has_no_evidence_counts_at_its_worst,
        *evaluator(FQE(Tabular(), support=Support(0, 0))),
    ),
    "a best response without the support rule": (
        responses.check_only_logged_actions_are_taken,
        *response(FQI(Tabular(), support=Support(0, 0))),
    ),
    "a best response that swaps two prices": (responses.check_answers_are_best, *response(swaps_prices(FQI_))),
    "a best response for whom a cut-off is an end": (
        responses.check_answers_are_best,
        *response(AsksOther(LSPI(Tabular()), with_log(ends_where_it_was_cut_off))),
    ),
    "a best response that looks one step ahead": (
        responses.check_answers_are_best,
        *response(FQI(Tabular(), iterations=1)),
    ),
    "a greedy policy without the support rule": (
        policies.check_probabilities_are_those_of_the_definition,
        GREEDY,
        GREEDY._replace(policy=GreedyPolicy(policies.Q)),
    ),
    "an estimator of a mixture's first step": (
        estimators.check_a_mixture_follows_one_member_per_episode,
        PDIS,
        ByFirstStep(PDIS),
    ),
    "an estimator that forgets the discount": (
        estimators.check_values_on_a_census_are_exact,
        PDIS,
        AsksOther(PDIS, without_discount),
    ),
    "a learner that ignores its state": (
        learners.check_multipliers_find_the_value_of_a_game,
        LEARNER,
        IgnoresItsState(LEARNER),
    ),
    "a learner that flips the sign of violations": (
        learners.check_a_violated_constraint_raises_its_multiplier,
        LEARNER,
        FlipsTheSign(LEARNER),
    ),
    "a learner that leaves its ball": (
        learners.check_multipliers_stay_in_the_learners_own_ball,
        LEARNER,
        LeavesTheBall(LEARNER),
    ),
    "a cost that ignores the policy": (
        lambda cost: costs.check_it_is_certified_at_its_value(cost, costs.COSTS["of the policy"][1], POLICY),
        costs.Surprisal(),
        OfAnotherPolicy(),
    ),
    "a cost of rows that looks at merged ones": (
        costs.check_rows_are_merged_after_it_was_computed,
        costs.Squared("noisy"),
        Merged("noisy"),
    ),
    "a backup without the support rule": (
        backups.check_its_policy_does_what_its_value_assumes,
        Greedy,
        lambda _, worst: Greedy(EveryAction(3), worst),
    ),
    "a soft backup whose policy is colder": (
        backups.check_its_policy_does_what_its_value_assumes,
        backups.soft(*backups.SOFT),
        lambda support, worst: Colder(support, worst, backups.SOFT),
    ),
    "a soft backup that is hard": (
        backups.check_no_supported_choice_is_better,
        backups.soft(*backups.SOFT),
        lambda support, worst: Hard(support, worst, backups.SOFT),
    ),
    "a backup that hopes where there is no evidence": (
        backups.check_a_state_without_evidence_is_worth_its_worst,
        Greedy,
        lambda mask, _: Greedy(mask, 0.0),
    ),
    "bounds on the wrong side": (bounds.check_the_truth_is_inside_as_often_as_promised, BOUND, WrongSide(BOUND)),
    "bounds that ignore alpha": (bounds.check_bounds_are_as_wide_as_alpha_asks, BOUND, IgnoresAlpha(BOUND)),
    "bounds that do not share alpha": (
        bounds.check_bounds_are_as_wide_as_alpha_asks,
        BOUND,
        ForgetsTheOtherConstraint(BOUND),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught_and_the_original_is_not(name):
    check, original, mutant = MUTANTS[name]
    check(original)
    with pytest.raises(AssertionError):
        check(mutant)
