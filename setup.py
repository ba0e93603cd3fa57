"""Map `agents/` and `wrappers/` to `memenvs.agents` and `memenvs.wrappers`.

Everything else is in pyproject.toml.
"""

from setuptools import find_packages, setup

MAPPED = ("agents", "wrappers")  # top-level folders; as top-level packages they would clash with other distributions

setup(
    packages=[
        *find_packages(include=["memenvs", "memenvs.*"]),
        *(f"memenvs.{name}" for folder in MAPPED for name in find_packages(include=[folder, f"{folder}.*"])),
    ],
    package_dir={f"memenvs.{folder}": folder for folder in MAPPED},
)
