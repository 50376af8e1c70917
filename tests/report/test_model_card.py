"""The model card: Markdown that says what a policy is for and what is known of it."""

import re

import pytest

from checkrein_studies import icu
from cli.commands import checkrein_command


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    _, problem = icu.write(folder, patients=1200, seed=0)
    problem.write_text(problem.read_text().replace("Intensive care", "Care <b>*now*</b> | then"))
    assert checkrein_command("fit", problem, "--out", folder / "run").code in (0, 5, 6)
    return folder / "run"


def test_a_card_says_what_a_reader_must_know(run):
    assert checkrein_command("export", run, "--format", "card").code == 0
    card = (run / "card.md").read_text()
    for heading in ("Intended use", "Data", "Objective and limits", "Certificate", "Assumptions", "Repeat"):
        assert f"\n## {heading}\n" in card
    assert card.startswith("# Care \\<b\\>\\*now\\*\\</b\\> | then")
    assert "at most 2.5" in card
    assert "1,200 episodes" in card
    assert "may act" in card
    assert re.search(r"\| death \| minimise \| [\d.]+% \| [\d.]+% \|", card)
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows[:5]} == {7}


def test_a_certificate_by_another_method_stands_beside_the_runs_own(run):
    own, later = (run / "certificate.json").read_text(), run.parent / "later"
    icu.write(later, patients=400, seed=5)
    for options in ([], ["--method", "fqe-t"]):
        done = checkrein_command("certify", run, "--data", later / "icu.csv", *options)
        assert done.code in (0, 5, 6), done
        assert "Report: " in done.out
    assert (run / "certificate.json").read_text() == own
    assert {"certificate-new.json", "certificate-new-fqe-t.json"} <= {path.name for path in run.iterdir()}
    page = (run / "report.html").read_text()
    section = page[page.index('<section id="other-certificates">') :]
    assert "certificate-new.json" in section
    assert "certificate-new-fqe-t.json" in section
    assert checkrein_command("report", run).code == 0
    assert '<section id="other-certificates">' in (run / "report.html").read_text()
