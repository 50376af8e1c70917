"""Packages of strangers: written to a folder as if they had been installed there."""

from pathlib import Path


def install(
    folder: Path,
    distribution: str,
    *,
    studies: dict[str, str] | None = None,
    log_formats: dict[str, str] | None = None,
    code: dict[str, str] | None = None,
) -> None:
    """Write a distribution that offers studies or formats of logs, and the modules it brings along.

    studies, log_formats: "module:name" by name
    code: the text of each module by name
    """
    information = folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
    groups = {"checkrein.studies": studies or {}, "checkrein.log_formats": log_formats or {}}
    lines = [
        line
        for group, offers in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in offers.items()))
    ]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, text in (code or {}).items():
        (folder / f"{module}.py").write_text(text)
