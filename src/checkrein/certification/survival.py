"""Sensitivity: how strong a factor outside the log may be, as numbers and in words."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from checkrein.base.errors import StorageError
from checkrein.base.storage import write_atomically

LARGEST = 100.0  # odds ratio that is tried


class Survival(BaseModel):
    """One claim of a certificate, and the strongest hidden factor at which it still passes."""

    model_config = ConfigDict(frozen=True)

    name: str
    words: Literal["at most", "at least", "better than behavior"]
    limit: float | None = None  # None: of the objective
    odds_ratio: float | None = None  # rounded down; None: it did not pass in the first place
    varies: bool = True  # False: the cost is the same in all that was logged, which cannot say how a factor moves it

    @property
    def claim(self) -> str:
        """What is claimed."""
        return f"{self.name} {self.words}" + ("" if self.limit is None else f" {self.limit:.4g}")

    @property
    def explanation(self) -> str:
        """What the number means."""
        if self.odds_ratio is None:
            return "nothing to survive: it is not certified even without a hidden factor"
        if not self.varies:
            return "not known: the cost does not vary in the held-out episodes, so they cannot say what would move it"
        if self.odds_ratio >= LARGEST:
            return f"survives a hidden factor that changes the odds of an action by more than {LARGEST:g}"
        if self.odds_ratio < 1.01:
            return "a hidden factor that hardly changes the odds of an action could undo it"
        return f"survives a hidden factor that changes the odds of an action by up to {self.odds_ratio:.2f}"


class Sensitivity(BaseModel):
    """What would have to be hidden before a certificate could be wrong: the marginal sensitivity model."""

    model_config = ConfigDict(frozen=True)

    constraints: list[Survival]
    objective: Survival | None  # None: no objective was judged
    passed: bool  # whether the certificate is a pass
    confidence: float
    episodes: int
    logged_propensities: bool
    dataset: str  # fingerprints
    policy: str

    @property
    def odds_ratio(self) -> float | None:
        """The largest at which every limit passes; None where the certificate is no pass."""
        found = [one.odds_ratio for one in self.constraints]
        return min((one for one in found if one is not None), default=None) if self.passed else None

    @property
    def claims(self) -> list[Survival]:
        """Every claim, the limits first."""
        return [*self.constraints, *([] if self.objective is None else [self.objective])]

    @property
    def explanation(self) -> str:
        """What it comes to, in one or two sentences."""
        odds = self.odds_ratio
        if odds is None:
            return "The certificate is not a pass: there is nothing for a hidden factor to undo."
        name, known = next((one.name, one.varies) for one in self.constraints if one.odds_ratio == odds)
        if odds >= LARGEST:
            said = f"The certificate survives any hidden factor that changes the odds of an action by up to {odds:g}."
        elif not known:
            said = f"What a hidden factor could do is not known: {name} does not vary in the held-out episodes."
        elif odds < 1.01:
            said = "The certificate needs all that matters to be in the log: a hidden factor that hardly changes the "
            said += f"odds of an action could break the limit on {name}."
        else:
            said = f"The certificate survives a hidden factor that changes the odds of an action by up to {odds:.2f}. "
            said += f"One that is stronger could break the limit on {name}."
        if self.logged_propensities:
            said += " The log says how likely each action was: if actions were drawn with just these probabilities, "
            said += "nothing was hidden."
        return said

    def calling(self, objective: str) -> "Sensitivity":
        """Return the same with what the user calls the objective, which may be the negative of what is minimised."""
        if self.objective is None:
            return self
        return self.model_copy(update={"objective": self.objective.model_copy(update={"name": objective})})

    def write(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        text = self.model_dump_json(indent=1) + "\n"
        write_atomically(path, lambda file: file.write(text.encode()))

    @classmethod
    def read(cls, path: Path) -> "Sensitivity":
        """Read what `write` wrote."""
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StorageError(f"{path} does not exist") from None
        except (OSError, UnicodeDecodeError, ValidationError) as reason:
            raise StorageError(f"{path} is not a sensitivity analysis: {str(reason).splitlines()[0]}") from None
