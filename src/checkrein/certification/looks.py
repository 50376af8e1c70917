"""Looks: which claims have been judged on which log. Judging another policy on the same episodes is paid for."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checkrein.base.errors import DataError
from checkrein.certification.bounds import Method
from checkrein.certification.certificate import Certificate
from checkrein.certification.certify import certify, fingerprint
from checkrein.data.dataset import Dataset
from checkrein.problem import AtMost, Problem
from checkrein.protocols import Policy

FILE = "checkrein-looks.jsonl"


@dataclass(frozen=True)
class Looks:
    """A file beside a log with one line for each claim that was judged on it."""

    path: Path

    def certify(
        self,
        policy: Policy,
        problem: Problem,
        *,
        log: str,
        confidence: float,
        method: Method,
        seed: int,
        what: str,
    ) -> tuple[Certificate, list[str]]:
        """Judge a policy with what earlier looks at the log have left to err by, and record it.

        Returns the certificate, and what went wrong with the recording.
        """
        claim = claim_key(fingerprint(policy, problem.dataset), problem.constraints, confidence, method.name, seed)
        certificate = certify(
            policy,
            problem.dataset,
            constraints=problem.constraints,
            discount=problem.discount,
            confidence=confidence,
            method=method,
            seed=seed,
            look=self.number(log, claim),
        )
        try:
            self.record(log, claim, verdict=certificate.verdict, what=what)
        except OSError as reason:
            why = f"{self.path}: {reason.strerror}"
            return certificate, [f"that these episodes were used could not be recorded in {why}"]
        return certificate, []

    def number(self, log: str, claim: str) -> int:
        """Return the how-many-th look a claim is: its own number if it was judged before, else the next one."""
        claims = [line["claim"] for line in self._lines() if line["log"] == log]
        return claims.index(claim) + 1 if claim in claims else len(claims) + 1

    def record(self, log: str, claim: str, *, verdict: str, what: str) -> None:
        """Write a look down, once."""
        if any(line["log"] == log and line["claim"] == claim for line in self._lines()):
            return
        line = json.dumps({"log": log, "claim": claim, "verdict": verdict, "what": what})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _lines(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return []
        lines = []
        for number, text in enumerate(self.path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                line = json.loads(text)
                lines.append({key: str(line[key]) for key in ("log", "claim")})
            except (ValueError, KeyError, TypeError):
                raise DataError(
                    f"line {number} of {self.path} is damaged: it records which claims were judged on the log. "
                    "Restore it, or delete the line if it was never a look"
                ) from None
        return lines


def log_key(dataset: Dataset) -> str:
    """SHA-256 of which decisions were made in which episodes, however states and costs are read off them."""
    if dataset.episodes is None:
        raise DataError("without episodes a log cannot be told from another: pass episodes=")
    digest = hashlib.sha256()
    for column in (dataset.episodes, dataset.actions):
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def claim_key(policy: str, constraints: Sequence[AtMost], confidence: float, method: str, seed: int) -> str:
    """SHA-256 of a policy's fingerprint, the limits it is judged by and how."""
    limits = [(c.name, c.words, c.limit, c.range) for c in constraints]
    return hashlib.sha256(repr((policy, limits, confidence, method, seed)).encode()).hexdigest()
