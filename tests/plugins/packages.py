"""Packages of strangers: written to a folder as if they had been installed there."""

from pathlib import Path


def install(folder: Path, distribution: str, *, studies: dict[str, str], code: dict[str, str] | None = None) -> None:
    """Write a distribution that offers studies, and the modules it brings along.

    studies: "module:Class" by name
    code: the text of each module by name
    """
    information = folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
    offers = "".join(f"{name} = {value}\n" for name, value in studies.items())
    (information / "entry_points.txt").write_text(f"[checkrein.studies]\n{offers}")
    for module, text in (code or {}).items():
        (folder / f"{module}.py").write_text(text)
