"""Studies: what one is, how they are found, run and written down; which ones there are is for other packages to say."""

from checkrein.reproduction.drawing import COLOURS, DASHES, label_ends, panels
from checkrein.reproduction.registry import GROUP, descriptions, load_study
from checkrein.reproduction.reproduce import PAGE, RESULTS, Reproduction, reproduce
from checkrein.reproduction.settings import study_of
from checkrein.reproduction.study import Claim, Findings, Picture, Study, Table, Tell, TimeLimited
from checkrein.reproduction.work import each, halves

__all__ = [
    "COLOURS",
    "DASHES",
    "GROUP",
    "PAGE",
    "RESULTS",
    "Claim",
    "Findings",
    "Picture",
    "Reproduction",
    "Study",
    "Table",
    "Tell",
    "TimeLimited",
    "descriptions",
    "each",
    "halves",
    "label_ends",
    "load_study",
    "panels",
    "reproduce",
    "study_of",
]
