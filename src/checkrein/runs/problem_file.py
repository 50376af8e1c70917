"""problem.toml: what to learn from which log, checked key by key."""

import difflib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from checkrein.base.errors import ProblemError
from checkrein.certification import METHODS
from checkrein.certification.bounds import BootstrapFQE
from checkrein.logs.first_version import CHANGE
from checkrein.runs.sections import WIDE, CertificateKind, Certify, Data, Learn, Limit, Objective, Section

NO_REFITS = (
    'the method "{method}" refits many times over, but functions = "{functions}" has no closed form: leave the method '
    'out, or choose one that weighs, like "dr-studentised"'
)
UNION = {"str", "int", "float", "list[str]"}  # how pydantic names the arms of a choice of types


class ProblemFile(Section):
    """A whole problem."""

    title: str | None = None
    data: Data
    objective: Objective
    constraint: list[Limit] = Field(default_factory=list)
    learn: Learn = Learn()
    certify: Certify = Certify()

    @property
    def certificate(self) -> CertificateKind:
        """How the policy is to be certified: as asked for, else by the keys that are given."""
        if self.learn.certificate is not None:
            return self.learn.certificate
        return "holdout" if self._held_out_by or not self.constraint else "cross-fitted"

    def settled(self, *, finite: bool, width: int, by_folds: bool) -> "ProblemFile":
        """Return it with the function class that "auto" comes to on a log.

        finite: whether states are; width: how many features they have, if not; by_folds: whether it is cross-fitted
        """
        if self.learn.functions not in ("auto", "features"):
            return self
        functions = "tabular" if finite else "features" if by_folds else "linear"
        return self._learning(functions=functions, degree=2 if width <= WIDE else 1)

    def holding_out(self) -> "ProblemFile":
        """Return it with a certificate by episodes that are held out."""
        if self.certificate == "holdout":
            return self
        functions = "auto" if self.learn.functions == "features" else self.learn.functions
        return self._learning(certificate="holdout", functions=functions)

    def _learning(self, **changes: object) -> "ProblemFile":
        return self.model_copy(update={"learn": self.learn.model_copy(update=changes)})

    @property
    def _held_out_by(self) -> list[str]:
        found = [f"learn.{name}" for name in self.learn.held_out_by]
        return [*found, "certify.method"] if self.certify.method is not None else found

    @model_validator(mode="after")
    def _one_way_to_certify(self) -> "ProblemFile":
        if self.learn.certificate == "cross-fitted" and self._held_out_by:
            raise ValueError(
                f'certificate = "cross-fitted" has no use for {self._held_out_by[0]}: every episode both learns and '
                'judges. Leave that out, or set certificate = "holdout"'
            )
        own = [name for name in ("folds",) if name in self.learn.model_fields_set]
        own += ["functions"] if self.learn.functions == "features" else []
        if own and self.certificate == "holdout" and self.constraint:
            because = "it" if self.learn.certificate else self._held_out_by[0]
            raise ValueError(
                f'learn.{own[0]} is for certificate = "cross-fitted", but {because} asks for episodes that are held '
                "out: leave one of them out"
            )
        return self

    @model_validator(mode="after")
    def _names(self) -> "ProblemFile":
        names = [self.objective.label, *(limit.name for limit in self.constraint)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice!r} names two things: give each constraint, and the objective, a name of its own")
        per_step = next((c.name for c in self.constraint if c.per_step and self.learn.discount == 1), None)
        if per_step is not None:
            raise ValueError(f'constraint {per_step!r}: unit = "per step" needs a discount below 1')
        averaged = next((c.name for c in self.constraint if c.per_step and self.data.one_step), None)
        if averaged is not None:
            raise ValueError(
                f'constraint {averaged!r}: unit = "per step" has no use where each row is an episode: leave it out'
            )
        if not self.learn.closed_form and isinstance(METHODS.get(self.certify.method or ""), BootstrapFQE):
            raise ValueError(NO_REFITS.format(method=self.certify.method, functions=self.learn.functions))
        return self


def read_problem_file(path: Path) -> tuple[ProblemFile, str]:
    """Return a problem and the text it was written in; every mistake is named with its key and what was expected."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ProblemError(f"{path} does not exist: `checkrein init LOG` writes a first version") from None
    except (OSError, UnicodeDecodeError) as reason:
        raise ProblemError(f"{path} cannot be read: {reason}") from None
    return parse_problem(text, path), text


def parse_problem(text: str, path: Path) -> ProblemFile:
    """Check the text of a problem file."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        raise ProblemError(f"{path} is not valid TOML: {reason}") from None
    if left := list(_unanswered(content)):
        raise ProblemError(
            f"{path} still says {CHANGE} ({', '.join(left)}): write a column of the log there, or an expression of its "
            "columns; a [[constraint]] that you do not need may be taken out"
        )
    try:
        return ProblemFile.model_validate(content)
    except ValidationError as mistakes:
        lines = list(dict.fromkeys(_in_words(dict(mistake)) for mistake in mistakes.errors()))
        raise ProblemError("\n".join([f"{path} has {len(lines)} mistake{'s' * (len(lines) > 1)}:", *lines])) from None


def _unanswered(content: object, key: str = "") -> Iterator[str]:
    """Yield the keys at which `init` asked for something that is not there yet."""
    if isinstance(content, dict):
        for name, inside in content.items():
            yield from _unanswered(inside, f"{key}.{name}" if key else str(name))
    elif isinstance(content, list):
        for place, inside in enumerate(content, start=1):
            yield from _unanswered(inside, f"{key}.{place}" if isinstance(inside, dict) else key)
    elif content == CHANGE:
        yield key


def _in_words(mistake: dict[str, Any]) -> str:
    place = [_counted(part) for part in mistake["loc"] if str(part) not in UNION]
    key = ".".join(place) or "the file"
    if mistake["type"] == "missing":
        return f"  {key}: is missing"
    if mistake["type"] == "extra_forbidden":
        return f"  {key}: is not a known key{_closest(place)}"
    if place == ["constraint"] and mistake["type"] == "list_type":
        return "  constraint: write [[constraint]], with two brackets: there may be several"
    message = mistake["msg"].removeprefix("Value error, ")
    if len(place) < len(mistake["loc"]):
        message = "should be text, a number or a list of texts, as the key asks for"
    given = mistake["input"]
    shown = "" if isinstance(given, dict) else f" (it is {given!r})"
    return f"  {key}: {message[0].lower()}{message[1:]}{shown}"


def _counted(part: int | str) -> str:
    """Return a part of a key's place; constraints are counted from 1, as people do."""
    return str(part + 1) if isinstance(part, int) else part


def _closest(place: list[str]) -> str:
    sections: dict[str, type[Section]] = {
        "data": Data,
        "objective": Objective,
        "constraint": Limit,
        "learn": Learn,
        "certify": Certify,
    }
    section = ProblemFile if len(place) == 1 else sections.get(place[0], ProblemFile)
    near = difflib.get_close_matches(place[-1], list(section.model_fields), n=1)
    return f", did you mean {near[0]}?" if near else f": there are {', '.join(section.model_fields)}"
