"""Best responses: policies that do well against given multipliers."""

from bridle.best_response.fqi import FQI
from bridle.best_response.lspi import LSPI

__all__ = ["FQI", "LSPI"]
