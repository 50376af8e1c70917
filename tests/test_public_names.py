"""What `import checkrein` offers, and what it costs."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import checkrein
from checkrein.base import storage

SLOW = ("sklearn", "scipy.stats", "plotly", "jinja2", "gymnasium", "torch", "h5py")
ALL_NAMES = "import checkrein\nfor name in checkrein.__all__: getattr(checkrein, name)"


def loaded_by(code):
    call = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(call, capture_output=True, text=True, check=True).stdout.split())


def seen_by_type_checkers():
    """The names that `if TYPE_CHECKING` imports, and from where."""
    (block,) = (node for node in ast.parse(Path(checkrein.__file__).read_text()).body if _checks_types(node))
    return {alias.asname or alias.name: node.module for node in block.body for alias in node.names}


def _checks_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_names_have_one_home_for_python_type_checkers_and_stars():
    assert seen_by_type_checkers() == checkrein._MODULES
    assert sorted(checkrein.__all__) == sorted(checkrein._MODULES)
    assert set(dir(checkrein)) >= {*checkrein.__all__, "__version__"}


@pytest.mark.parametrize("name", checkrein.__all__)
def test_every_name_is_what_its_module_calls_by_it(name):
    assert getattr(checkrein, name) is getattr(importlib.import_module(checkrein._MODULES[name]), name)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"module 'checkrein' has no attribute 'Datset': did you mean 'Dataset'\?"):
        _ = checkrein.Datset
    with pytest.raises(AttributeError, match="has no attribute 'zzz'$"):
        _ = checkrein.zzz
    with pytest.raises(ImportError, match="solv"):
        from checkrein import solv  # noqa: F401, PLC0415


def test_the_package_alone_loads_no_other():
    assert not loaded_by("import checkrein") & {*SLOW, "numpy", "scipy", "polars", "pydantic", "scipy.optimize"}


def test_help_loads_typer_and_rich_and_little_else():
    code = "import sys; sys.argv[1:] = ['--help']\nfrom checkrein.cli import main\ntry: main()\nexcept SystemExit: pass"
    loaded = loaded_by(code)
    assert {"typer", "rich"} <= loaded
    assert not loaded & {*SLOW, "numpy", "scipy", "polars", "pydantic", "checkrein_studies", "importlib.metadata"}


def test_all_names_together_load_nothing_that_only_some_uses_need():
    assert not loaded_by(ALL_NAMES) & {*SLOW, "scipy.optimize", "joblib", "matplotlib", "checkrein_studies"}


@pytest.mark.parametrize("reader", ["load_policy", "solve"])
def test_who_reads_policies_from_disk_knows_every_class_that_may_be_there(reader):
    """What is stored is found by its class's name, so the class must have been imported (a run's own facts apart)."""
    code = f"from checkrein import {reader}\nfrom checkrein.base import storage\nprint(*storage._REGISTERED)"
    everything = loaded_by(f"{ALL_NAMES}\nfrom checkrein.base import storage\nprint(*storage._REGISTERED)")
    kinds = {name for name in everything if name in storage._REGISTERED} - {"Resolved", "EpisodeKeys", "ColumnFunction"}
    assert {"TreesQ", "TabularQ", "GreedyPolicy"} <= kinds
    assert kinds <= loaded_by(code)
