"""The largest weight of a finite-sample bound, declared in a problem file or on the command line."""

import numpy as np
import polars as pl
import pytest

from checkrein import Certificate
from cli.commands import checkrein_command

TOML = """
[data]
path = "log.csv"
state = "segment"
action = "item"
propensity = "p"
[objective]
minimize = "loss"
[[constraint]]
name = "harm"
at_most = 0.25
range = [0, 1]
[learn]
certificate = "holdout"
margin = "none"
[certify]
method = "pdis-betting"
largest_weight = 4
"""


def log(folder, seed, n=900):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 4, n)
    columns = {"segment": rng.integers(0, 2, n), "item": item, "p": np.full(n, 0.25)}
    columns |= {"loss": rng.random(n) < 0.4 - 0.1 * item, "harm": rng.random(n) < 0.05 + 0.01 * item}
    folder.mkdir(exist_ok=True)
    pl.DataFrame(columns).with_columns(pl.col("loss", "harm").cast(pl.Int64)).write_csv(folder / "log.csv")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    log(folder, 0)
    log(folder / "later", 1)
    (folder / "p.toml").write_text(TOML)
    assert checkrein_command("fit", folder / "p.toml", "--out", folder / "run").code == 0
    return folder / "run"


def test_the_problem_file_declares_it(run):
    certificate = Certificate.read(run / "certificate.json")
    assert (certificate.method, certificate.guarantee, certificate.verdict) == ("pdis-betting", "finite-sample", "pass")


def test_another_largest_weight_is_another_look(run):
    later, found = run.parent / "later" / "log.csv", []
    for name, most in (("a", 4), ("b", 6), ("c", 4)):
        out = run.parent / f"{name}.json"
        done = checkrein_command("certify", run, "--data", later, "--largest-weight", most, "--out", out)
        assert done.code in (0, 6), done
        found.append(Certificate.read(out))
    assert [one.look for one in found] == [1, 2, 1]
    assert found[0].bounds["harm"] < found[1].bounds["harm"]


def test_it_is_refused_beside_other_methods(run, tmp_path):
    later = run.parent / "later" / "log.csv"
    done = checkrein_command("certify", run, "--data", later, "--method", "dr-t", "--largest-weight", 4)
    assert done.code == 2
    assert 'largest_weight is for method = "pdis-betting"' in done.err
    (tmp_path / "p.toml").write_text(TOML.replace('method = "pdis-betting"', 'method = "dr-t"'))
    done = checkrein_command("fit", tmp_path / "p.toml", "--out", tmp_path / "run")
    assert done.code == 2
    assert 'largest_weight is for method = "pdis-betting"' in done.err


def test_what_a_bound_needs_declared_is_asked_for_before_anything_is_learned(tmp_path):
    log(tmp_path, 0)
    for lacking in ("range = [0, 1]\n", "range = [-1, 1]\n"):
        kept = lacking if "-1" in lacking else ""
        (tmp_path / "p.toml").write_text(TOML.replace("range = [0, 1]\n", kept))
        done = checkrein_command("fit", tmp_path / "p.toml", "--out", tmp_path / "run")
        assert done.code == 2
        assert "round" not in done.out
        assert "needs the range of 'harm', and costs of one sign" in done.err
        assert "range = [0, largest]" in done.err
    assert not (tmp_path / "run").exists()
