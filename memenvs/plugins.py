"""Classes and functions of other packages: found by name, and added by entry points."""

from __future__ import annotations

import sys
import threading
import warnings
from importlib import import_module
from importlib.metadata import entry_points, packages_distributions, version
from typing import Any

_LOADED: set[str] = set()
_LOCK = threading.RLock()


def load_plugins(group: str) -> None:
    """Call the functions that packages name in a group of entry points, once in a process.

    One that cannot be imported or raises is left out, with one warning that names it; the others are loaded. One that
    looks up names itself finds those registered before it. Other threads wait.

    Args:
        group: Name of the group, such as "memenvs.environments". The functions take no arguments.
    """
    with _LOCK:
        if group in _LOADED:
            return
        _LOADED.add(group)
        for point in entry_points(group=group):
            try:
                point.load()()
            except Exception as error:  # the package of someone else: whatever is wrong there must not stop the others
                package = "" if point.dist is None else f" of {point.dist.name} {point.dist.version}"
                raised = f"{point.value} raised {type(error).__name__}: {error}"
                warnings.warn(f"{group}: {point.name!r}{package} is left out: {raised}", stacklevel=2)


def package_versions(module: str, group: str) -> dict[str, str]:
    """Find the installed packages that have a module, and their versions; mostly one.

    Args:
        module: Full name of the module.
        group: Entry points that know the package of a module where an editable install does not say it.

    Returns:
        Name of the package -> version; empty for a module that is not installed, such as one beside a script.
    """
    top = module.partition(".")[0]
    named = {p.dist.name for p in entry_points(group=group) if p.dist is not None and p.module.partition(".")[0] == top}
    return {name: version(name) for name in sorted({*packages_distributions().get(top, ()), *named})}


def class_path(cls: type) -> str | type:
    """Return "module:Class" if that finds a class again; else the class itself."""
    module = sys.modules.get(cls.__module__)
    is_found = getattr(module, cls.__name__, None) is cls
    return f"{cls.__module__}:{cls.__name__}" if is_found else cls


def check_class_path(name: str, path: str) -> str:
    """Return the text of an argument if it has the form "module:Class"; else raise a ValueError."""
    if path.count(":") != 1 or not all(part.replace(".", "_").isidentifier() for part in path.split(":")):
        raise ValueError(f"{name} must be a class or 'module:Class', got {path!r}")
    return path


def load_class(path: str | type) -> type[Any]:
    """Import the class of "module:Class"; return a class as it is.

    Raises:
        ImportError: There is no such module or class.
    """
    if not isinstance(path, str):
        return path
    module, _, name = path.partition(":")
    loaded = import_module(module)
    if not hasattr(loaded, name):
        raise ImportError(f"{path!r}: the module has no {name!r}")
    cls: type[Any] = getattr(loaded, name)
    return cls


def caller_place() -> str:
    """File and line of the code that called the caller of this function."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
