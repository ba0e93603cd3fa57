"""The API reference: one page for each package, with the docstrings of its public modules."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module
from itertools import chain
from types import ModuleType

from generate.markdown import page, section, summary, table

#: An editable install has the last two in folders of their own.
ROOTS = ("memenvs", "memenvs.wrappers", "memenvs.agents")
#: Modules that nobody imports: programs, and what only they or other modules of the same folder use.
INTERNAL = re.compile(
    r"""
    memenvs\.(
        .*\b(__main__|_\w*|cli|kernels|weights|worlds\.procedural)
      | four_boxes\.(?!env|config).* | exploration\.(?!roaming|coverage|search|config|env|drive|visibility|nyu40).*
      | objectnav\.(?!env|config|symbolic).* | room_ballet\.observer | vln\.(viewer|worlds\.mp3d_graphs)
      | houses\.(procedural|rendering|navigation|procthor)\.(?!asset_sizes|renderer|camera|occupancy|geodesic).*
      | verbalization\.(plans|signals|likeliest|language\..*)
      | visual_match\.(?!env|config).* | two_rooms\.(?!env|config).* | recall\.(env|homes|tours|turns) | box_rooms
      | \w+\.queries | faces\.(?!env|config|episodes|world|pictures|places).* | ballet3d\.(room|miniworld)
      | grid_viewer | array_files | files | json_records | compilation | checks | resets | threads
      | agents\.(studies | sizes | experiments\.(evaluation_files|progress|seed_groups)
        | algorithms\.(archive|finite|saving|replay_file) | memory\.(clock|step_log)
        | presets\.(relic|smt|sat\w*|mtvm|verbalization))
    )(\..*)?
    """,
    re.VERBOSE,
)


def make_pages() -> dict[str, str]:
    """Make the index and a page a package."""
    packages = public_packages()
    rows = [(f"[{name}]({name}.md)", summary(import_module(name))) for name in packages]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *(f"{_short(name)} <{name}>" for name in packages), "```"])
    pages = {f"{name}.md": _package(name, modules) for name, modules in packages.items()}
    return {"index.md": page("API reference", table(("package", "contents"), rows), toctree), **pages}


def _short(package: str) -> str:
    """Name for the list of pages, where the full ones do not fit."""
    return package.removeprefix("memenvs.")


def public_packages() -> dict[str, list[str]]:
    """List each package and its public modules."""
    packages: dict[str, list[str]] = {root: [] for root in ROOTS}
    for module in chain.from_iterable(
        pkgutil.walk_packages(import_module(root).__path__, f"{root}.") for root in ROOTS
    ):
        if INTERNAL.fullmatch(module.name):
            continue
        if module.ispkg:
            packages.setdefault(module.name, [])
        else:
            modules = packages.setdefault(module.name.rpartition(".")[0], [])
            modules += [module.name] * (module.name not in modules)
    return {name: modules for name, modules in sorted(packages.items()) if modules}


def _package(package: str, modules: list[str]) -> str:
    imported = import_module(package)
    names = [name for name in getattr(imported, "__all__", ()) if _home(imported, name) != package]
    rows = [(f"{{py:obj}}`{name} <{_home(imported, name)}.{name}>`", _summary(imported, name)) for name in names]
    parts = [section(f"Names of {package}", table(("name", "is"), rows) if rows else "")]
    for module in [package, *modules]:
        if module == package and not _defines_names(imported):
            continue
        title = module.removeprefix(f"{package}.")
        parts.append(section(title, f"```{{eval-rst}}\n.. automodule:: {module}\n   :ignore-module-all:\n```"))
    return page(package, summary(imported), *parts)


def _home(package: ModuleType, name: str) -> str:
    """Module that defines a name of a package."""
    return getattr(getattr(package, name), "__module__", package.__name__)


def _summary(package: ModuleType, name: str) -> str:
    member = getattr(package, name)
    return summary(member) if inspect.isclass(member) or inspect.isfunction(member) else ""


def _defines_names(module: ModuleType) -> bool:
    return any(
        not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        for name, value in vars(module).items()
    )
