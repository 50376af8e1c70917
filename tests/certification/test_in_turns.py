"""What is computed in turns where a log is large is the same as all at once."""

import numpy as np
import pytest

from checkrein import Dataset
from checkrein.certification import calibration, moments
from checkrein.certification.calibration import calibration_of
from checkrein.certification.past import past_tested
from checkrein.evaluation.propensities import propensities_of
from checkrein.problem import Episodes
from problems import problem_of, random_log


def test_what_the_past_tells_does_not_depend_on_how_many_columns_are_looked_at_at_once(monkeypatch):
    log = random_log(0, episodes=400)
    whole = past_tested(problem_of(log))
    monkeypatch.setattr(moments, "AT_ONCE", 0)
    parts = past_tested(problem_of(log))
    assert whole is not None
    assert parts is not None
    assert whole.tested.comparisons > 0
    np.testing.assert_allclose(parts.tested.scores, whole.tested.scores, rtol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 0.1])  # a propensity for each pair, or one for each row
def test_calibration_does_not_depend_on_how_many_rows_are_looked_at_at_once(noise, monkeypatch):
    rng = np.random.default_rng(0)
    states, actions = rng.integers(0, 4, 900), rng.integers(0, 3, 900)
    log = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states,
        costs={"c": rng.random(900), "g0": rng.random(900), "g1": rng.random(900)},
        terminals=np.ones(900, bool),
        episodes=np.arange(900),
        propensities=1 / 3 + noise * rng.random(900),
    )
    episodes = Episodes.of(problem_of(log))
    whole = calibration_of(episodes, propensities_of(log))
    monkeypatch.setattr(calibration, "AT_ONCE", 5)
    parts = calibration_of(episodes, propensities_of(log))
    assert whole is not None
    assert parts is not None
    assert np.isfinite(whole.tested.scores).any()
    np.testing.assert_array_equal(parts.tested.scores, whole.tested.scores)
