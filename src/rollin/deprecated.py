"""Names of the version before, which work for one version more and warn."""

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar, TypeVar

RENAMED = {
    "School": "CurriculumCoordinator",
    "Visited": "ReachedGoalsTeacher",
    "Walk": "SequentialTeacher",
}
"""Public names of version 0.2.0, and what they are called now."""

MOVED = {
    "rollin.curriculum.rules": "rollin.curriculum.contexts",
    "rollin.deep.own_agent": "rollin.agents.own_agent",
    "rollin.deep.practical": "rollin.deep.rollin_sac",
    "rollin.envs.wrappers": "rollin.envs.contextual",
    "rollin.school": "rollin.agents.coordinator",
    "rollin.tabular.four_rooms": "rollin.tabular.families",
    "rollin.tabular.grid": "rollin.tabular.families",
    "rollin.wrapper": "rollin.agents.wrapper",
}
"""Modules of version 0.2.0 that its pages or public names come from, and where they are now."""

Kind = TypeVar("Kind", bound=type[Any])


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a name has changed; stacklevel: 3 names the caller of the caller."""
    warnings.warn(f"{old} is now called {new}.", DeprecationWarning, stacklevel)


def renamed_public(name: str) -> str:
    """Return the new name of a public name, with a warning; raise AttributeError if it is none."""
    if name not in RENAMED:
        raise AttributeError(f"module 'rollin' has no attribute {name!r}")
    warn_renamed(f"rollin.{name}", f"rollin.{RENAMED[name]}", stacklevel=4)
    return RENAMED[name]


def renamed(**names: str) -> Callable[[Kind], Kind]:
    """Decorate a class so that it still takes and has attributes and methods by their old names.

    names: the new name of each old one.
    """

    def decorate(kind: Kind) -> Kind:
        init = kind.__init__

        @wraps(init)
        def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
            for old, new in names.items():
                if old in given:
                    warn_renamed(f"{kind.__name__}({old}=…)", f"{new}=…")
                    given[new] = given.pop(old)
            init(self, *args, **given)

        kind.__init__ = __init__
        for old, new in names.items():
            setattr(kind, old, _alias(kind.__name__, old, new))
        return kind

    return decorate


def _alias(owner: str, old: str, new: str) -> property:
    def get(self: Any) -> Any:
        warn_renamed(f"{owner}.{old}", new)
        return getattr(self, new)

    return property(get)


class RenamedKeys(dict[str, Any]):
    """Values by name that are also found by the names of version 0.2.0, with a warning."""

    old: ClassVar = {"hidden": "rollin_steps", "cut": "failed_rollin_steps"}

    def __missing__(self, name: str) -> Any:
        if name not in self.old:
            raise KeyError(name)
        warn_renamed(f'["{name}"]', f'["{self.old[name]}"]')
        return self[self.old[name]]


class MovedModules:
    """Imports a module by its old name, with a warning.

    It has the methods of a finder and loader without their base classes, whose module takes longer
    to import than the rest of `rollin --help`.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find the modules of `MOVED` only."""
        loader: Any = self
        return ModuleSpec(name, loader) if name in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the moved module, with old names of what it holds, in place of the one imported."""
        name = module.__name__
        warn_renamed(name, MOVED[name])
        moved = import_module(MOVED[name])
        for old, new in RENAMED.items():
            if hasattr(moved, new):
                setattr(moved, old, getattr(moved, new))
        sys.modules[name] = moved
