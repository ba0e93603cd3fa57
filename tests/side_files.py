"""Files that macOS, Windows and editors put beside those of a folder."""

from pathlib import Path


def put_side_files(folder: Path) -> None:
    """Put such files, some with its suffix, beside each file of a folder and its subfolders."""
    for file in [path for path in folder.rglob("*") if path.is_file()]:
        for name in (f"._{file.name}", f".{file.name}.swp", f"{file.name}~", ".DS_Store", "Thumbs.db", "desktop.ini"):
            file.with_name(name).write_bytes(b"\x00\x05\x16\x07")
        archive = folder / "__MACOSX" / file.relative_to(folder).with_name(f"._{file.name}")
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(b"\x00\x05\x16\x07")
