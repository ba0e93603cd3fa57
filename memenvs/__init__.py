"""Environments that measure the memory of embodied agents.

`import memenvs` registers every id with Gymnasium, those of installed plugins too.
"""

from memenvs.checkout import find_folders_beside
from memenvs.compilation import choose_cache_folder
from memenvs.plugins import load_plugins
from memenvs.registry import ENVIRONMENTS, PLUGINS, environments, register, register_all

__all__ = ["ENVIRONMENTS", "__version__", "environments", "register"]

__version__ = "0.1.0"

find_folders_beside()
choose_cache_folder()
register_all()
load_plugins(PLUGINS)
