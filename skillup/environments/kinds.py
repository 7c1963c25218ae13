"""The kinds of environment, by the words of `environment.type`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from skillup.environments.base import EnvironmentKind, OnHost
from skillup.environments.bubblewrap import BubblewrapKind
from skillup.environments.container import ContainerKind

ENVIRONMENTS: Final[Mapping[str, EnvironmentKind]] = MappingProxyType(
    {"none": OnHost(), "bubblewrap": BubblewrapKind(), "docker": ContainerKind()}
)
"""Every kind that there is; a suite that names another is refused when it is loaded."""
