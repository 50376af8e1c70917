"""Every look at a log is counted, whatever is read off it."""

import numpy as np
import pytest

from checkrein import AtLeast, AtMost
from checkrein.base.errors import DataError
from checkrein.certification.certify import alpha_spent
from checkrein.certification.looks import Looks, claim_key, log_key
from problems import random_log


def test_a_new_claim_is_the_next_look_and_an_old_one_keeps_its_number(tmp_path):
    looks = Looks(tmp_path / "looks.jsonl")
    assert looks.number("log", "a") == 1
    looks.record("log", "a", verdict="pass", what="run")
    looks.record("log", "a", verdict="pass", what="run")
    assert looks.number("log", "a") == 1
    assert looks.number("log", "b") == 2
    looks.record("log", "b", verdict="fail", what="run")
    assert [looks.number("log", claim) for claim in "abc"] == [1, 2, 3]
    assert looks.number("another log", "c") == 1
    assert len((tmp_path / "looks.jsonl").read_text().splitlines()) == 2


def test_all_looks_together_keep_to_the_error_that_is_stated():
    assert sum(alpha_spent(0.05, look) for look in range(1, 60)) <= 0.05 + 1e-15
    assert alpha_spent(0.05, 1) == pytest.approx(0.04)
    assert all(alpha_spent(0.05, look + 1) < alpha_spent(0.05, look) for look in range(1, 20))
    assert alpha_spent(0.05, None) == 0.05


def test_a_log_is_known_by_its_decisions_however_costs_and_states_are_read():
    log = random_log(0)
    assert log_key(log) == log_key(log.with_costs({"other": np.arange(len(log))}))
    assert log_key(log) != log_key(random_log(1))
    assert log_key(log) != log_key(log.part(log.episodes < 10))


def test_another_policy_limit_method_or_confidence_is_another_claim():
    limits = [AtMost("g", 1.0)]
    first = claim_key("policy", limits, 0.95, "fqe-t", 0)
    assert first == claim_key("policy", [AtMost("g", 1.0)], 0.95, "fqe-t", 0)
    others = [
        claim_key("other", limits, 0.95, "fqe-t", 0),
        claim_key("policy", [AtMost("g", 1.1)], 0.95, "fqe-t", 0),
        claim_key("policy", [AtLeast("g", 1.0)], 0.95, "fqe-t", 0),
        claim_key("policy", limits, 0.9, "fqe-t", 0),
        claim_key("policy", limits, 0.95, "dr-t", 0),
        claim_key("policy", limits, 0.95, "fqe-t", 1),
    ]
    assert len({first, *others}) == 7


def test_a_damaged_line_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "looks.jsonl"
    path.write_text('{"log": "a", "claim": "b"}\n{"log": "a"}\n')
    with pytest.raises(DataError, match="line 2"):
        Looks(path).number("a", "b")
