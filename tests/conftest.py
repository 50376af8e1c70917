"""One thread per process, and no record of looks outside the tests' own folders."""

import os

import pytest

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # two workers share the cores, and idle threads of a BLAS spin (half of all CPU)


@pytest.fixture(scope="module", autouse=True)
def own_record_of_looks(tmp_path_factory):
    """Logs of one seed are one log, wherever they lie: each file of tests counts its own looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHECKREIN_STATE", str(tmp_path_factory.mktemp("state")))
        yield
