"""Damage of every kind to tables, problem files and run folders; the same seed does the same."""

import contextlib
import json
import re
import shutil

import numpy as np
import polars as pl

NASTY = (
    "", " ", "0", "1", "-1", "2", "nan", "NaN", "inf", "-inf", "1e300", "-1e31", "1e-320", "9" * 19, "9" * 25, "9" * 45,
    "true", "no", "(missing)", "NA", "null", "2020-01-05", "1/2/2020", "2020-01-05T10:00:00+02:00", "0,5", "1.5",
    "low ", "LOW", "é", "日本", "\0", '"', '""', "'", ",", ";", "\t", "\n", "\r", "\\", "<script>", "=1+1", "previous_drug",
    "__row__", "first", "x" * 3000, "\u202e", "\ud7ff", "1_000", "0x10", "--", "$", "{}", "[]", "%s",
)  # fmt: skip
KEYS = {
    "[data]": ("path", "episode", "step", "state", "action", "terminal", "propensity", "cluster", "missing", "n_actions"),
    "[objective]": ("minimize", "maximize", "name"),
    "[[constraint]]": ("name", "cost", "kind", "at_most", "at_least", "unit", "range"),
    "[learn]": (
        "discount", "functions", "folds", "seed", "holdout", "margin", "learner", "bound", "rate", "min_count", "tolerance",
        "min_probability", "max_rounds", "degree", "ridge", "n_trees", "hidden", "certificate",
    ),
}  # fmt: skip
VALUES = (
    "0", "1", "-1", "2", "0.5", "1e300", "1e-300", "1e400", "inf", "nan", "-0.0", "10", "true", '""', '"x"', '"patient"',
    '"hour"', '"drug"', '"dose"', '"death"', '"severity"', '"first"', '["severity", "dose"]', '["dose"]', "[]", "[[]]", "{}",
    '["severity", "severity"]', '"75% of behavior"', '"-5% of behavior"', '"1e400% of behavior"', '"features"', '"linear"',
    '"trees"', '"holdout"', '"cross-fitted"', '"cutting-plane"', '"exponentiated-gradient"', '"ever"', '"entropy"',
    '"kl divergence"', '"switching"', '"per step"', '"POW(10, 400)"', '"dose / 0"', '"SUM(dose)"', '"(SELECT 1)"',
    '"dose > 0.5"', '"drug"', '"dose + previous_dose"', '"COUNT(*)"', '"RANDOM()"', '"NULL"', '"1"', '"death; death"',
    '"dr-studentised"', '"pdis-betting"', '"log.*"', '"."', '"/dev/null"', '"minari:x"', '"log.h5"', '"none"', '"auto"',
    "[0, 20]", "[20, 0]", "2020-01-01", "99999999999999999999", '"""', "'''x'''",
)  # fmt: skip
LEAVES = (
    None,
    True,
    0,
    -1,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    {},
    [[]],
    [1, [2]],
    {"type": "object"},
    10**30,
)


def table_bytes(rng, content):
    """Damage the bytes of a CSV file."""
    for _ in range(_times(rng)):
        content = CSV[int(rng.integers(len(CSV)))](rng, content)
    return content


def _times(rng):
    """Mostly once: what is broken twice is refused for the first."""
    return 1 + int(rng.integers(6) == 0)


def _lines(content):
    return content.split(b"\n")


def _cell(rng, content):
    lines = _lines(content)
    place = int(rng.integers(len(lines)))
    cells = lines[place].split(b",")
    cells[int(rng.integers(len(cells)))] = _nasty(rng)
    lines[place] = b",".join(cells)
    return b"\n".join(lines)


def _column(rng, content):
    """Put one nasty value, or one of two, into a whole column."""
    lines = [line.split(b",") for line in _lines(content)]
    place, values = int(rng.integers(len(lines[0]))), [_nasty(rng), _nasty(rng)]
    for line in lines[1:]:
        if place < len(line) and rng.random() < 0.7:
            line[place] = values[int(rng.integers(2))]
    return b"\n".join(b",".join(line) for line in lines)


def _nasty(rng):
    return NASTY[int(rng.integers(len(NASTY)))].encode("utf-8", "replace")


def _flip(rng, content):
    if not content:
        return content
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 20))):
        damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
    return bytes(damaged)


def _quote(rng, content):
    for _ in range(int(rng.integers(1, 3))):
        place = int(rng.integers(len(content) + 1))
        if rng.random() < 0.7:  # where a cell begins or ends
            place = content.find(b",", place) + int(rng.integers(2))
        content = content[:place] + b'"' + content[place:]
    return content


def _drop_line(rng, content):
    lines = _lines(content)
    del lines[int(rng.integers(len(lines)))]
    return b"\n".join(lines)


def _double_line(rng, content):
    lines = _lines(content)
    lines.insert(int(rng.integers(len(lines) + 1)), lines[int(rng.integers(len(lines)))])
    return b"\n".join(lines)


def _shuffle(rng, content):
    first, *lines = _lines(content)
    rng.shuffle(lines)
    return b"\n".join([first, *lines])


def _cut(rng, content):
    return content[: int(rng.integers(len(content) + 1))]


def _again(rng, content):
    header, _, rest = content.partition(b"\n")
    return content + rest if rng.random() < 0.5 else content + header + b"\n" + rest


def _written_otherwise(rng, content):
    old, new = ((b"\n", b"\r\n"), (b"\n", b"\r"), (b",", b";"), (b",", b"\t"), (b"\n", b",\n"), (b"\n", b"\n\n"))[
        int(rng.integers(6))
    ]
    return content.replace(old, new)


def _encoded_otherwise(rng, content):
    codec = ("utf-16", "utf-8-sig", "latin-1", "utf-32")[int(rng.integers(4))]
    return content.decode("utf-8", "replace").encode(codec, "replace")


def _header(rng, content):
    header, _, rest = content.partition(b"\n")
    names = header.split(b",")
    names[int(rng.integers(len(names)))] = _nasty(rng) if rng.random() < 0.5 else names[int(rng.integers(len(names)))]
    return b",".join(names) + b"\n" + rest


CSV = (_cell, _cell, _cell, _column, _column, _flip, _quote, _quote, _drop_line, _double_line, _shuffle, _cut, _again,
       _written_otherwise, _encoded_otherwise, _header)  # fmt: skip

KINDS = (
    pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.String, pl.Boolean, pl.Categorical, pl.Decimal(20, 3), pl.Date, pl.Datetime,
    pl.Duration, pl.Time, pl.Binary, pl.Null,
)  # fmt: skip
FLOATS = (np.nan, np.inf, -np.inf, 1e300, -1e31, 1e-320, -1.0, 0.5, 2.0**60, None)


def damaged_table(rng, table):
    """Change what a table holds: types, values, names, order and size."""
    for _ in range(_times(rng)):
        with contextlib.suppress(pl.exceptions.PolarsError):  # not every kind can be turned into every other
            table = _damaged_once(rng, table)
    return table


def _damaged_once(rng, table):
    name = table.columns[int(rng.integers(table.width))]
    match int(rng.integers(8)):
        case 0:
            table = _cast(table, name, KINDS[int(rng.integers(len(KINDS)))])
        case 1:
            nested = (pl.concat_list(name), pl.struct(name), pl.col(name).cast(pl.String).cast(pl.Binary))
            table = table.with_columns(nested[int(rng.integers(3))].alias(name))
        case 2:
            rows = pl.Series(rng.random(table.height) < rng.choice([0.01, 0.5, 1.0]))
            value = FLOATS[int(rng.integers(len(FLOATS)))]
            if table.schema[name].is_numeric():
                table = table.with_columns(pl.when(rows).then(pl.lit(value, pl.Float64)).otherwise(name).alias(name))
        case 3:
            rows = pl.Series(rng.random(table.height) < rng.choice([0.01, 0.5, 1.0]))
            value = pl.lit(NASTY[int(rng.integers(len(NASTY)))])
            if not table.schema[name].is_nested() and table.schema[name] != pl.Binary:
                text = pl.col(name).cast(pl.String, strict=False) if table.schema[name] != pl.Duration else value
                table = table.with_columns(pl.when(rows).then(value).otherwise(text).alias(name))
        case 4:
            table = table.sample(fraction=1.0, shuffle=True, seed=int(rng.integers(2**31)))
        case 5:
            table = pl.concat([table, table.sample(fraction=float(rng.random()), seed=1)])
        case 6:
            table = table.head(int(rng.integers(table.height + 1)))
        case 7:
            new = ("first", "__row__", "", "previous_x", "len", "a b", 'a"b')[int(rng.integers(7))]
            table = table.rename({name: new}) if new not in table.columns else table.drop(name)
    return table


def _cast(table, name, kind):
    try:
        return table.with_columns(pl.col(name).cast(kind, strict=False))
    except pl.exceptions.PolarsError:
        return table.with_columns(pl.lit(None, dtype=kind).alias(name))


def problem_text(rng, text):
    """Damage a problem file: its keys, values, lines and characters."""
    for _ in range(_times(rng)):
        lines = text.split("\n")
        place = int(rng.integers(len(lines)))
        match int(rng.integers(7)):
            case 0 | 1:
                if "=" in lines[place]:
                    lines[place] = lines[place].split("=")[0] + "= " + VALUES[int(rng.integers(len(VALUES)))]
            case 2 | 3:
                section = ("[data]", "[objective]", "[[constraint]]", "[learn]")[int(rng.integers(4))]
                keys, begins = KEYS[section], lines.index(section) + 1 if section in lines else place
                key = keys[int(rng.integers(len(keys)))]
                lines = [line for line in lines if line.split(" =")[0] != key]
                lines.insert(begins, f"{key} = {VALUES[int(rng.integers(len(VALUES)))]}")
            case 4:
                del lines[place]
            case 5:
                lines.insert(place, lines[int(rng.integers(len(lines)))])
            case 6:
                where = int(rng.integers(len(lines[place]) + 1))
                nasty = NASTY[int(rng.integers(len(NASTY)))]
                lines[place] = lines[place][:where] + nasty + lines[place][where:]
        text = "\n".join(lines)
    return text


def damage_folder(rng, folder):
    """Damage one file of a run folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = files[int(rng.integers(len(files)))]
    content = file.read_bytes()
    match int(rng.integers(8)):
        case 0:
            file.unlink()
        case 1:
            file.unlink()
            file.mkdir()
        case 2:
            file.write_bytes(_cut(rng, content))
        case 3:
            file.write_bytes(_flip(rng, content))
        case 4:
            other = files[int(rng.integers(len(files)))]
            if other != file:
                shutil.copyfile(other, file)
        case 5:
            file.write_bytes(b"")
        case _:
            _damage_values(rng, file, content)
    return file.name


def _damage_values(rng, file, content):
    """Change one value of a JSON file, or one cell of a number elsewhere."""
    if file.suffix != ".json":
        text = content.decode("latin-1")
        numbers = list(re.finditer(r"\d+", text))
        if numbers:
            one = numbers[int(rng.integers(len(numbers)))]
            file.write_bytes(
                (text[: one.start()] + "9" * int(rng.integers(1, 30)) + text[one.end() :]).encode("latin-1")
            )
        return
    tree = json.loads(content)
    parents = [tree]
    for parent in parents:
        parents += [child for child in _children(parent) if isinstance(child, dict | list) and child]
    parent = parents[int(rng.integers(len(parents)))]
    keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
    key = keys[int(rng.integers(len(keys)))]
    if rng.random() < 0.3:
        del parent[key]
    else:
        parent[key] = LEAVES[int(rng.integers(len(LEAVES)))]
    file.write_text(json.dumps(tree))


def _children(parent):
    return parent.values() if isinstance(parent, dict) else parent
