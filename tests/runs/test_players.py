"""Which players a problem file's [learn] asks for."""

import pytest

from checkrein.policies import Support
from checkrein.runs.players import functions_of, players_for
from checkrein.runs.sections import Learn
from numeric_worlds import logged


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, 0.0), ({"conservatism": 2.5}, 2.5)],
)
def test_networks_are_as_conservative_as_the_file_says(given, expected):
    pytest.importorskip("torch")
    learn = Learn(functions="neural", **given)
    players = players_for(learn, functions_of(learn), logged(0, 40), Support())
    assert players.best_response.conservatism == expected


def test_classes_that_average_need_no_conservatism():
    learn = Learn(functions="trees")
    assert players_for(learn, functions_of(learn), logged(0, 40), Support()).best_response.conservatism == 0.0
