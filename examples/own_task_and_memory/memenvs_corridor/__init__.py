"""A task, a memory and a preset for memenvs, as a template."""
