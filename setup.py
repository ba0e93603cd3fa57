"""Map `agents/` and `wrappers/` to `memenvs.agents` and `memenvs.wrappers`.

Everything else is in pyproject.toml.
"""

from setuptools import find_packages, setup
from setuptools.command.editable_wheel import editable_wheel

MAPPED = ("agents", "wrappers")  # top-level folders; as top-level packages they would clash with other distributions
CORE = find_packages(include=["memenvs", "memenvs.*"])


class EditableWheel(editable_wheel):
    """An editable install that only puts this folder on the path.

    `memenvs/checkout.py` finds the mapped folders. Setuptools would make a finder of them, which comes after the path.
    So any folder called memenvs would hide the package: that of the clone, or what an uninstalled wheel left behind.
    """

    def finalize_options(self):
        """Leave out the mapping, which setuptools would make a finder of."""
        self.distribution.packages, self.distribution.package_dir = CORE, {"": "."}
        super().finalize_options()


setup(
    packages=[
        *CORE,
        *(f"memenvs.{name}" for folder in MAPPED for name in find_packages(include=[folder, f"{folder}.*"])),
    ],
    package_dir={f"memenvs.{folder}": folder for folder in MAPPED},
    cmdclass={"editable_wheel": EditableWheel},
)
