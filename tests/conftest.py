"""One thread per process: two workers share the cores, and idle threads of a BLAS spin (they took half of all CPU)."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
