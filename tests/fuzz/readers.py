"""Damaged Parquet files and random cost expressions, read in this process: `python -m fuzz.readers`."""

import os
import re
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from checkrein.base.errors import DataError
from checkrein.logs.table import Columns, read_table
from fuzz.attempts import good_table

WORDS = (
    "hour harm patient severity drug dose 1 0 2.5 -1 1e308 9223372036854775807 'a' '' '2020-01-01' ( ) ( ) + - * / // % = <> < > "
    "AND OR NOT IN LIKE IS NULL BETWEEN CASE WHEN THEN ELSE END CAST AS INT DATE TIMESTAMP VARCHAR BOOLEAN INTERVAL SUM MAX "
    "COUNT ABS POW ROUND SUBSTR LEFT LENGTH COALESCE DATE_PART EXTRACT STRPTIME REGEXP_LIKE OVER PARTITION BY ORDER , , , [ ] "
    "ARRAY :: || ~ ! ^ & | REPEAT LPAD EXP LN SQRT ASIN CONCAT_WS NULLIF IF GREATEST SIGN * . x previous_dose DISTINCT FILTER"
).split()
CALLS = (
    "ABS(@);POW(@,@);ROUND(@,@);SUBSTR(@,@,@);LEFT(@,@);LENGTH(@);COALESCE(@,@);DATE_PART(@,@);EXTRACT(YEAR FROM @);"
    "CAST(@ AS INT);CAST(@ AS DATE);CAST(@ AS VARCHAR);@::INT;@ + @;@ * @;@ / @;@ // @;@ % @;@ = @;@ IN (@, @);-@;(@);NOT @;"
    "@ BETWEEN @ AND @;@ LIKE @;CASE WHEN @ THEN @ ELSE @ END;SUM(@);MAX(@) OVER (PARTITION BY @);LPAD(@,@,@);@ || @;@ & @;"
    "REPLACE(@,@,@);REGEXP_LIKE(@,@);STRPTIME(@,@);GREATEST(@,@);@ IS NULL;INTERVAL @;ARRAY_GET(@,@);@[@];LOG(@,@);EXP(@);"
    "ATAN2(@,@);MOD(@,@);REVERSE(@);@ ~ @;RANK() OVER (ORDER BY @);LAG(@,@) OVER (ORDER BY @);FIRST(@);QUANTILE_CONT(@,@);"
    "SPLIT_PART(@,@,@);TIMESTAMP @;STRFTIME(@,@);ARRAY_AGG(@);SIGN(@);FLOOR(@);ARRAY_SUM(@);CONCAT(@,@);COUNT(*);@ ^ @;@ <=> @"
).split(";")
LEAVES = ("hour dose severity previous_dose 1 0 -1 2.5 400 9223372036854775807 'a' '' '%Y' '(' NULL TRUE").split()
COLUMNS = Columns("patient", "severity", "drug", ["death"], "hour", "ended")


def flipped(seed, content):
    """A Parquet file with up to three bytes changed, those of its description more often."""
    rng, damaged = np.random.default_rng(seed), bytearray(content)
    begin = len(damaged) - 1500 if seed % 2 else 0
    for _ in range(int(rng.integers(1, 4))):
        damaged[int(rng.integers(max(begin, 0), len(damaged)))] = int(rng.integers(256))
    return bytes(damaged)


def expression(seed):
    """Words in any order, or calls of functions within each other."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return " ".join(WORDS[int(rng.integers(len(WORDS)))] for _ in range(int(rng.integers(1, 9))))
    text = "@"
    for _ in range(int(rng.integers(1, 4))):
        text = text.replace("@", CALLS[int(rng.integers(len(CALLS)))], 1)
    return re.sub("@", lambda _: LEAVES[int(rng.integers(len(LEAVES)))], text)


def read(source, columns):
    """What came of it: read with all rows, refused, or what it should not be."""
    try:
        rows = len(read_table(source, columns).dataset)
    except DataError:
        return "refused"
    except BaseException as reason:  # a panic of polars is none of the usual exceptions
        return f"{type(reason).__name__}: {str(reason)[:60]}"
    return "read" if rows == good_table().height else f"read with {rows} rows"


def files(count, folder):
    """What came of damaged Parquet files."""
    path = folder / "log.parquet"
    good_table().write_parquet(path)
    whole, found = path.read_bytes(), Counter()
    for seed in range(count):
        path.write_bytes(flipped(seed, whole))
        found[read(path, COLUMNS)] += 1
    return found


def expressions(count):
    """What came of random costs."""
    table = pl.DataFrame(good_table())
    return Counter(
        read(table, Columns("patient", "severity", "drug", {"c": expression(seed)}, "hour")) for seed in range(count)
    )


def main():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # polars writes of its panics
    with tempfile.TemporaryDirectory() as folder:
        print("Parquet files:", dict(files(3000, Path(folder))))
    print("cost expressions:", dict(expressions(6000)))


if __name__ == "__main__":
    main()
