"""Best responses: policies that do well against given multipliers."""

from checkrein.best_response.fqi import FQI
from checkrein.best_response.lspi import LSPI

__all__ = ["FQI", "LSPI"]
