"""Virtual environments in which packages are installed."""

import base64
import hashlib
import os
import site
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


class Environment:
    """Virtual environment that also sees the packages with which the tests run.

    Args:
        folder: Folder of the environment.
        sees_tree: Whether `memenvs` is the one that is tested; False leaves it out, also where it is editable.
    """

    def __init__(self, folder: Path, *, sees_tree: bool) -> None:
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        command = [self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        self.packages = Path(found.stdout.strip())
        # A path that a .pth file adds is searched for packages, but its own .pth files are not read: an editable
        # install of this tree stays invisible. `addsitedir` reads them.
        outer = [path for path in sys.path if path.endswith("site-packages")] or site.getsitepackages()
        lines = [f"import site; site.addsitedir({path!r})" if sees_tree else path for path in outer]
        (self.packages / "outer.pth").write_text("\n".join(lines) + "\n")

    def install(self, *requirements: str) -> subprocess.CompletedProcess[str]:
        """Install without dependencies, even if the outer environment has the same distribution."""
        options = ["--no-deps", "--no-build-isolation", "--ignore-installed"]
        command = [*PIP, "--python", str(self.python), "install", *options, *requirements]
        return subprocess.run(command, capture_output=True, text=True)

    def run(self, code: str, folder: Path | None = None) -> str:
        """Run code in a folder, by default one outside the tree, and return its output."""
        done = subprocess.run([self.python, "-c", code], cwd=folder or self.packages, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def changed_files(self, distribution: str) -> list[str]:
        """Files of a distribution that are missing or differ from the hashes in its RECORD."""
        (found,) = metadata.distributions(name=distribution, path=[str(self.packages)])
        paths = {Path(file.locate()): file.hash.value for file in found.files or () if file.hash is not None}
        return [str(path) for path, value in paths.items() if not path.is_file() or _digest(path) != value]


def _digest(path: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
