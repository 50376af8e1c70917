"""A finished folder is what its manifest says: no file less, none changed, none more, whatever was cut off."""

import json

import pytest

from checkrein.base import manifest
from checkrein.base.errors import StorageError
from checkrein.base.manifest import MANIFEST, Manifest

KNOWN = {"one.txt", "two.txt", "inside"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inside").mkdir()
    for name in ("one.txt", "two.txt", "inside/a", "inside/b", "notes"):
        (tmp_path / name).write_text(name)
    manifest.seal(tmp_path, KNOWN)
    return tmp_path


def refused(folder):
    with pytest.raises(StorageError) as found:
        manifest.require_whole(folder, KNOWN)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_what_is_sealed_is_whole_and_what_nobody_reads_is_nobodys_business(folder):
    (folder / "notes").write_text("other")
    (folder / "more notes").write_text("new")
    manifest.require_whole(folder, KNOWN)
    assert set(Manifest.read(folder).files) == {"one.txt", "two.txt", "inside/a", "inside/b"}


@pytest.mark.parametrize("name", ["one.txt", "inside/b"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert f"{name} is missing" in refused(folder)
    manifest.require_whole(folder, KNOWN, may_lack={name})


@pytest.mark.parametrize("name", ["one.txt", "inside/b"])
def test_a_changed_file_is_named(folder, name):
    (folder / name).write_text("other")
    assert f"{name} is not the file that" in refused(folder)


def test_swapped_files_are_noticed(folder):
    (folder / "inside/a").write_text("inside/b")
    (folder / "inside/b").write_text("inside/a")
    assert "changed or swapped" in refused(folder)


def test_an_added_file_is_noticed(folder):
    (folder / "inside/c").write_text("new")
    assert "inside/c is not listed" in refused(folder)


def test_a_folder_in_the_place_of_a_file_is_a_missing_file(folder):
    (folder / "one.txt").unlink()
    (folder / "one.txt").mkdir()
    assert "one.txt is missing" in refused(folder)


def test_a_folder_without_a_manifest_or_that_is_written_anew_is_not_finished(folder):
    manifest.begin(folder)
    assert "holds no finished run" in refused(folder)
    (folder / MANIFEST).unlink()
    assert "holds no finished run: there is no manifest.json" in refused(folder)
    assert "holds no finished run" in refused(folder / "nowhere")
    assert "holds no finished run" in refused(folder / "one.txt")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "{}", '{"format": 1, "files": 3, "writing": {}}', '{"format": 1}', "[" * 100_000, "\udcff"],
)
def test_a_damaged_manifest_is_one_message(folder, content):
    (folder / MANIFEST).write_text(content, errors="surrogateescape")
    assert "manifest.json" in refused(folder)


def test_a_manifest_of_a_later_format_is_refused(folder):
    there = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(there | {"format": 2}))
    assert "has format 2" in refused(folder)


def test_a_file_that_is_written_later_joins(folder):
    with manifest.joining(folder / "two.txt") as place:
        place.write_text("later")
    (folder / "one.txt").unlink()
    with manifest.joining(folder / "one.txt") as place:
        place.write_text("again")
    manifest.require_whole(folder, KNOWN)
    assert (folder / "two.txt").read_text() == "later"


class GoneError(Exception):
    """As if the process had been killed here."""


@pytest.mark.parametrize("before", range(6))
def test_whatever_is_cut_off_while_a_file_joins_the_folder_is_whole(folder, before, monkeypatch):
    """The joining file is new or not, and its writer ends before each of the steps."""
    steps = 0

    def counted(function):
        def step(*arguments, **options):
            nonlocal steps
            steps += 1
            if steps > before:
                raise GoneError
            return function(*arguments, **options)

        return step

    for name in ("one.txt", "inside"):  # there already, and not
        (folder / "inside").rename(folder / "away") if name == "inside" else None
        manifest.seal(folder, KNOWN)
        steps = 0
        with monkeypatch.context() as patch:
            patch.setattr(manifest, "write_atomically", counted(manifest.write_atomically))
            patch.setattr(manifest.Path, "replace", counted(manifest.Path.replace))
            try:
                with manifest.joining(folder / name) as place:
                    place.write_text("later")
            except GoneError:
                assert before < 5
        manifest.require_whole(folder, KNOWN)
        with manifest.joining(folder / "two.txt") as place:  # and stays so when another one joins
            place.write_text("after that")
        manifest.require_whole(folder, KNOWN)
