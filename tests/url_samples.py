"""How to open every named URL: what tests of access walk through.

An area adds a module to tests/samples with `SAMPLES` (URL name -> UrlSample) and, where its URLs name objects,
`extend(side)`, which makes them and puts them into `side.objects`. Names that a page may show should hold
`side.canary`, so that the isolation tests can see them where they do not belong.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.personas import Side, World, make_side


@dataclass(frozen=True)
class UrlSample:
    kwargs: Callable[[Side], dict[str, Any]]
    get: bool = True
    # Valid data: the outcome must hang on who asks, not on what is sent.
    post: Callable[[Side], dict[str, Any]] | None = None
    headers: dict[str, str] | None = None

    @property
    def methods(self) -> list[str]:
        return [*(["GET"] if self.get else []), *(["POST"] if self.post else [])]


def send(client: Client, name: str, sample: UrlSample, method: str, side: Side, kwargs: dict[str, Any]) -> Any:
    url = reverse(name, kwargs=kwargs)
    if method == "GET":
        return client.get(url, headers=sample.headers)
    assert sample.post is not None
    return client.post(url, sample.post(side), headers=sample.headers)


@dataclass(frozen=True)
class NamedUrl:
    name: str
    arguments: frozenset[str]


def named_urls() -> dict[str, NamedUrl]:
    return {url.name: url for url in _walk(get_resolver(), "", frozenset())}


def _walk(resolver: URLResolver, namespace: str, arguments: frozenset[str]) -> Iterator[NamedUrl]:
    for entry in resolver.url_patterns:
        within = arguments | set(entry.pattern.converters)
        if isinstance(entry, URLResolver):
            inner = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from _walk(entry, inner, within)
        elif isinstance(entry, URLPattern) and entry.name:
            yield NamedUrl(namespace + entry.name, within)


def _modules() -> list[Any]:
    package = importlib.import_module("tests.samples")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"tests.samples.{name}") for name in names]


def samples() -> dict[str, UrlSample]:
    found: dict[str, UrlSample] = {}
    for module in _modules():
        assert not found.keys() & module.SAMPLES.keys(), f"{module.__name__} repeats a URL of another module"
        found |= module.SAMPLES
    return found


def make_world() -> World:
    extend = [module.extend for module in _modules() if hasattr(module, "extend")]
    return World(own=make_side("OWN", extend), other=make_side("OTHER", extend))
