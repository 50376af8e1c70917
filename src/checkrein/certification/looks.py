"""Looks: which claims have been judged on which episodes. Judging another policy on the same episodes is paid for."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from checkrein.base.arrays import frozen
from checkrein.base.errors import DataError
from checkrein.base.lock import wait_for
from checkrein.certification.bounds import EpisodeScoreBound, Method
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import certify, fingerprint
from checkrein.certification.diagnostics import copies_check
from checkrein.data.copies import Copies
from checkrein.data.identity import EpisodeKeys
from checkrein.problem import AtMost, Problem
from checkrein.protocols import Policy

FILE = "checkrein-looks.jsonl"
STATE = "CHECKREIN_STATE"  # where the user's own record lies, if set


class Look(NamedTuple):
    """A claim that was judged on some episodes."""

    claim: str
    episodes: str  # their digest; empty in a record of an earlier version, which counts for all logs beside it
    number: int


@dataclass(frozen=True)
class Looks:
    """Files with one line for each claim that was judged: one beside the log, and one that is the user's own.

    A look is charged to the episodes that it used, wherever the log lies and whatever else it holds by then. The keys
    of a set of episodes stand in the first line of each file that speaks of them.
    """

    paths: tuple[Path, ...]

    @classmethod
    def beside(cls, folder: Path) -> "Looks":
        """Return the record of logs in a folder."""
        return cls((folder / FILE, state_folder() / FILE))

    def certify(
        self,
        policy: Policy,
        problem: Problem,
        *,
        episodes: EpisodeKeys,
        copies: Copies | None,
        excluded: int,
        confidence: float,
        method: Method,
        seed: int,
        what: str,
    ) -> tuple[Certificate, list[str]]:
        """Judge a policy with what earlier looks at these episodes have left to err by, and record it.

        copies: those that were left out of the log before; excluded: how many others were, as they were learned from
        Returns the certificate, and what went wrong with the recording.
        """
        way = method.name
        if isinstance(method, EpisodeScoreBound) and method.largest_weight is not None:
            way += f" of weights up to {method.largest_weight}"
        claim = claim_key(fingerprint(policy, problem.dataset), problem.constraints, confidence, way, seed)
        certificate = certify(
            policy,
            problem.dataset,
            constraints=problem.constraints,
            discount=problem.discount,
            objective=problem.objective,
            confidence=confidence,
            method=method,
            seed=seed,
            look=self.number(episodes, claim),
        )
        checks = [*copies_check(copies), *certificate.checks]
        certificate = certificate.model_copy(update={"checks": checks, "excluded": excluded})
        return certificate, self.record(episodes, claim, verdict=certificate.verdict, what=what)

    def number(self, episodes: EpisodeKeys, claim: str) -> int:
        """Return the how-many-th look a claim is: its own number if it was judged on these before, else the next one.

        The next after the most looks that any one of the episodes has been used for.
        """
        looks: set[Look] = set()
        known: dict[str, EpisodeKeys] = {}
        for path in self.paths:
            for look, keys in _lines(path):
                looks.add(look)
                if keys is not None:
                    known.setdefault(look.episodes, keys)
        digest = episodes.digest
        for look in looks:
            if (look.claim, look.episodes) == (claim, digest):
                return look.number
        used = np.zeros(len(episodes), np.int64)
        seen = {which: keys.seen_in(episodes) for which, keys in known.items()}
        for _, which in {(look.claim, look.episodes) for look in looks}:
            used += seen[which] if which else 1
        return 1 + int(used.max())

    def record(self, episodes: EpisodeKeys, claim: str, *, verdict: str, what: str) -> list[str]:
        """Write a look down, once in each file; return what went wrong."""
        digest, number, trouble = episodes.digest, self.number(episodes, claim), []
        for path in dict.fromkeys(self.paths):
            lines = [look for look, _ in _lines(path)]
            if any((look.claim, look.episodes) == (claim, digest) for look in lines):
                continue
            told = {"claim": claim, "look": number, "verdict": verdict, "what": what, "episodes": digest}
            if digest not in {look.episodes for look in lines}:
                told["keys"] = _packed(episodes)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                _append(path, json.dumps(told))
            except OSError as reason:
                trouble.append(f"that these episodes were used could not be recorded in {path}: {reason.strerror}")
        return trouble


def state_folder() -> Path:
    """Return where the user's own record lies: $CHECKREIN_STATE, else where the system keeps such files."""
    if STATE in os.environ:
        return Path(os.environ[STATE])
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "checkrein"


def claim_key(policy: str, constraints: Sequence[AtMost], confidence: float, method: str, seed: int) -> str:
    """SHA-256 of a policy's fingerprint, the limits it is judged by and how."""
    limits = [(c.name, c.words, c.limit, c.range) for c in constraints]
    return hashlib.sha256(repr((policy, limits, confidence, method, seed)).encode()).hexdigest()


def _lines(path: Path) -> Iterator[tuple[Look, EpisodeKeys | None]]:
    """Yield the looks of a file, each with its episodes where they are told for the first time."""
    if not path.exists():
        return
    told: set[str] = {""}
    content = path.read_bytes()
    for number, text in enumerate(content[: _whole(content)].splitlines(), start=1):
        try:
            line = json.loads(text)
            if "episodes" in line:
                look = Look(str(line["claim"]), str(line["episodes"]), int(line["look"]))
            else:  # of an earlier version, which named the log instead
                look = Look(f"{line['log']} {line['claim']}", "", 0)
            keys = None if look.episodes in told else _unpacked(line["keys"], look.episodes)
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"line {number} of {path} is damaged: it records which claims were judged on which episodes. "
                "Restore it, or delete the line if it was never a look"
            ) from None
        told.add(look.episodes)
        yield look, keys


def _append(path: Path, line: str) -> None:
    """Add a line, in place of one that was cut off in the middle of a write; who comes at the same moment waits."""
    with path.open("a+b") as file:
        wait_for(file.fileno())
        file.seek(0)
        content = file.read()
        whole = content[: _whole(content)]
        file.truncate(len(whole))
        file.write(b"\n" * (not whole.endswith(b"\n") and whole != b"") + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _whole(content: bytes) -> int:
    """Return the length of a record without a last line that was cut off: its look was never told to anybody."""
    begins = content.rfind(b"\n") + 1
    try:
        json.loads(content[begins:] or b"0")
    except ValueError:
        return begins
    return len(content)


def _packed(episodes: EpisodeKeys) -> str:
    keys = np.concatenate([episodes.names, episodes.decisions, episodes.paths]).astype("<u8")
    return base64.b64encode(keys.tobytes()).decode("ascii")


def _unpacked(text: str, digest: str) -> EpisodeKeys:
    keys = np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64)
    found = EpisodeKeys(*(frozen(part) for part in keys.reshape(3, -1)))
    if found.digest != digest:
        raise ValueError("the keys are not those of the digest")
    return found
