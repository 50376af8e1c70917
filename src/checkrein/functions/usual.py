"""The class that is taken where none is given."""

from checkrein.data.dataset import Dataset
from checkrein.functions.linear import Linear
from checkrein.functions.tabular import Tabular


def default_functions(dataset: Dataset) -> Linear | Tabular:
    """Return tables for finite states, else a linear class."""
    return Linear() if dataset.n_states is None else Tabular()
