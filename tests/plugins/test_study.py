"""A study in a stranger's package, through public names alone."""

import json

from cli.commands import checkrein_command
from plugins.packages import install

STUDY = '''\
from dataclasses import dataclass
import numpy as np
from checkrein import TabularMDP, TabularPolicy
from checkrein.reproduction import Claim, Findings, Picture, Table, panels

@dataclass(frozen=True)
class Corridor:
    """A corridor: whoever goes on pays for every step."""

    length: int = 50
    seed: int = 0

    @classmethod
    def quick(cls):
        return cls(length=5)

    def run(self, tell):
        tell("walking")
        one, n = np.ones((self.length, 1)), self.length
        corridor = TabularMDP(np.eye(n, k=1)[:, None], {"toll": one}, np.eye(n)[0], 1.0)
        paid = corridor.values(TabularPolicy(one))["toll"]
        figure, (axes,) = panels([2.0])
        axes.plot(range(n))
        claims, table = [Claim.at_least("toll", paid, n)], Table("Tolls", ["toll"], [[paid]])
        return Findings("Corridor", "A walk.", claims, {"toll": paid}, [table], [Picture("walk", "A line.", figure)])
'''


def test_a_study_of_another_package_is_listed_and_run(tmp_path, monkeypatch):
    assert len(STUDY.splitlines()) <= 25
    install(tmp_path, "toll-roads", studies={"corridor": "toll_roads_study:Corridor"}, code={"toll_roads_study": STUDY})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    listed = checkrein_command("reproduce", "--list")
    assert "corridor" in listed.out
    assert "whoever goes on pays" in listed.out
    assert "frozen-lake-binding" in listed.out
    done = checkrein_command("reproduce", "corridor", "--quick", "--set", "length=7")
    assert done.code == 0, done.out + done.err
    results = json.loads((tmp_path / "reproduce-corridor" / "results.json").read_text())
    assert results["holds"]
    assert results["numbers"] == {"toll": 7.0}
    assert results["settings"] == {"length": 7, "seed": 0}
    assert results["versions"]["toll-roads"] == "1.5"
    assert "A walk." in (tmp_path / "reproduce-corridor" / "index.html").read_text()
    assert (tmp_path / "reproduce-corridor" / "walk.svg").exists()
