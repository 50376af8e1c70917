"""The README's Python runs, and prints what the README shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from checkrein import AtMost
from checkrein_studies import frozen_lake

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page):
    """Each Python block, and the plain block right after it: what it prints."""
    blocks = BLOCK.findall(page.read_text())
    following = [*blocks[1:], ("", "")][: len(blocks)]
    return [
        (code, "" if kind else shown)
        for (lang, code), (kind, shown) in zip(blocks, following, strict=True)
        if lang == "python"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_and_print_what_is_shown(page):
    names = {}
    for code, shown in python_blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)  # noqa: S102
        assert printed.getvalue() == shown


def test_the_readme_has_an_example():
    assert python_blocks(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_exact_rows_of_the_readme_are_exact():
    lake = frozen_lake.lake()
    readme = (ROOT / "README.md").read_text()
    free = lake.optimum(objective="goal").values
    bound = lake.optimum(objective="goal", constraints=[AtMost("hole", frozen_lake.HOLE_LIMIT)]).values
    behavior = lake.values(frozen_lake.behavior(lake))
    for values in (free, bound, behavior):
        assert f"{values['goal']:.5f} │ {values['hole']:.5f}" in readme
