"""Every block of README.md and the docs is run or checked, by its kind: there is no tag that lets one through."""

import contextlib
import io
import re

import pytest
from pydantic import ValidationError

from checkrein import AtMost
from checkrein.reproduction import descriptions
from checkrein_studies import frozen_lake
from documented import (
    PAGES,
    ROOT,
    UsageError,
    blocks_of,
    commands_in,
    examples_of,
    read_problem,
    require_command,
    require_kind,
)

SLOW = {"certificates.md"}  # whole pages that learn for long


def pages():
    return [pytest.param(page, id=page.name) for page in PAGES]


def blocks(page, kind):
    return [block for block in blocks_of(page.read_text()) if block.kind == kind]


@pytest.mark.parametrize("page", pages())
def test_every_block_is_of_a_known_kind(page):
    require_kind(blocks_of(page.read_text()))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in SLOW))
        for page in PAGES
        if blocks(page, "python")
    ],
)
def test_examples_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block, shown in examples_of(blocks_of(page.read_text())):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, f"{page.name}, line {block.line}", "exec"), names)  # noqa: S102
        assert printed.getvalue() == shown


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page.values[0], "toml")])
def test_problem_files_are_read_by_our_own_parser(page):
    for block in blocks(page, "toml"):
        read_problem(block.text)


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page.values[0], "sh")])
def test_commands_exist_and_take_what_they_are_given(page):
    for block in blocks(page, "sh"):
        for words in commands_in(block.text):
            require_command(words)
            if words[:2] == ["checkrein", "reproduce"] and len(words) > 2:
                assert words[2] in descriptions()


def test_the_readme_has_an_example_and_commands():
    assert blocks(ROOT / "README.md", "python")
    assert blocks(ROOT / "README.md", "sh")


ONE = "```python\nprint(1)\n```\n"


@pytest.mark.parametrize(
    "page",
    [
        "```py\nprint(1)\n```\n",
        "```python skip\nprint(1)\n```\n",
        "```\nno example before it\n```\n",
        ONE + "\nwords\n\n```\n1\n```\n",
        ONE + "```\n1\n```\n```\n1\n```\n",
        "```console\n$ checkrein fit\n```\n",
        "~~~Python\nprint(1)\n~~~\n",
        "```python\nprint(1)\n",
    ],
)
def test_a_block_that_would_not_be_checked_is_refused(page):
    with pytest.raises(ValueError, match="line"):
        require_kind(blocks_of(page))


def test_output_belongs_to_the_example_before_it():
    (block, shown), (_, nothing) = examples_of(blocks_of(ONE + "\n```\n1\n```\n\nwords\n\n" + ONE))
    assert (block.text, shown, nothing) == ("print(1)\n", "1\n", "")


@pytest.mark.parametrize(
    "line",
    [
        "checkrein fitt icu.toml",
        "checkrein fit icu.toml --outt run",
        "checkrein fit",
        "checkrein fit one.toml two.toml",
        "checkrein export run --format",
        "checkrein bounds guess",
        "checkrein bounds lock --length 3",
        "make coffee",
        "pip install 'checkrein[everything]'",
        "pip uninstall checkrein",
        "rm -r run",
    ],
)
def test_a_command_that_does_not_exist_is_refused(line):
    (words,) = commands_in(f"{line}  # what it would do\n")
    with pytest.raises(UsageError):
        require_command(words)


@pytest.mark.parametrize("text", ["[learn]\nroundz = 3\n", "[certify]\nconfidence = 2\n", "[objective]\n"])
def test_a_fragment_with_a_mistake_is_refused(text):
    read_problem("[learn]\nmax_rounds = 3\n")
    with pytest.raises(ValidationError):
        read_problem(text)


@pytest.mark.parametrize("page", pages())
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
