"""What stands in the fenced blocks of README.md and docs/*.md. Every block is of one of these kinds, or a mistake.

python: runs, the blocks of a page one after another, in an empty folder
no kind: right after a python block, what it prints, to the letter; a block that prints must show it
toml: a problem file; a fragment is read as the change of a whole one
sh: commands that exist, with options and arguments that they take
text: all else (pictures, what a long command showed)
"""

import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

import typer

from checkrein.cli.shared import app
from checkrein.runs.problem_file import ProblemFile

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KINDS = {"python", "toml", "sh", "text", ""}
PYTHON, OUTPUT = "python", ""
FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
UsageError = typer.BadParameter.__base__  # typer brings a click of its own
WHOLE = {
    "data": {"path": "log.csv", "episode": "patient", "state": ["severity"], "action": "treatment"},
    "objective": {"minimize": "death"},
}


class Block(NamedTuple):
    """A fenced block."""

    kind: str  # the whole of what stands behind the fence
    text: str
    line: int  # of its fence, from 1
    after: int  # the line that the block before it ended in, if only empty ones lie between; else 0


def blocks_of(text):
    """All fenced blocks of a page, in their order."""
    found, inside, last, blank = [], None, 0, True
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if inside is not None:
            mark, kind, begin, after, content = inside
            if fence and fence[1].startswith(mark) and not fence[2].strip():
                found.append(Block(kind, "".join(content), begin, after))
                inside, last, blank = None, number, True
            else:
                content.append(line + "\n")
        elif fence:
            inside = fence[1], fence[2].strip(), number, last if blank else 0, []
        elif line.strip():
            blank = False
    if inside is not None:
        raise ValueError(f"the block that begins in line {inside[2]} does not end")
    return found


def examples_of(blocks):
    """Each python block, and what it must print."""
    shown = {block.after: block.text for block in blocks if block.kind == OUTPUT}
    ends = [block.line + block.text.count("\n") + 1 for block in blocks]
    pairs = zip(blocks, ends, strict=True)
    return [(block, shown.get(end, "")) for block, end in pairs if block.kind == PYTHON]


def require_kind(blocks):
    """Raise where a block is of no known kind, or is output of nothing."""
    ends = {block.line + block.text.count("\n") + 1 for block in blocks if block.kind == PYTHON}
    for block in blocks:
        if block.kind not in KINDS:
            raise ValueError(
                f"line {block.line}: no kind of block is called {block.kind!r}: use {sorted(KINDS - {''})}"
            )
        if block.kind == OUTPUT and block.after not in ends:
            raise ValueError(f"line {block.line}: not right after a python block: say what it is, or that it is text")


def read_problem(text):
    """Read a problem file, or a fragment as the change of a whole one."""
    return ProblemFile.model_validate(WHOLE | tomllib.loads(text))


def commands_in(text):
    """The words of each command, without comments; lines that end in a backslash go on."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def require_command(words):
    """Raise unless the command exists and takes these options and arguments; nothing is run."""
    name, *arguments = words
    if name == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        unknown = [target for target in arguments if target not in targets]
    elif name == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        known = {".", "checkrein", *(f"checkrein[{extra}]" for extra in extras)}
        unknown = arguments[1:] if arguments[:1] != ["install"] else [x for x in arguments[1:] if x not in known]
    elif name == "checkrein":
        group = typer.main.get_command(app)
        unknown = [] if arguments and arguments[0] in group.commands else arguments[:1] or [name]
        if not unknown:
            command, rest = group.commands[arguments[0]], list(arguments[1:])
            while rest and rest[0] in getattr(command, "commands", {}):
                command, rest = command.commands[rest[0]], rest[1:]
            if hasattr(command, "commands"):
                unknown = rest[:1] or [words[-1]]
            else:
                command.make_context(arguments[0], rest)  # a mistake is a UsageError
    else:
        unknown = [name]
    if unknown:
        raise UsageError(f"{' '.join(words)!r}: there is no {', '.join(unknown)}")
