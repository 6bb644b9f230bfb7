"""The words of the timeline: one file a language, with the same names and the same blanks in each."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Literal, get_args

Language = Literal["th", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Catalogue:
    """The texts of one language by name, such as `withdrawal.status.open`."""

    def __init__(self, language: Language, texts: Mapping[str, str]) -> None:
        self.language = language
        self._texts = dict(texts)

    def text(self, name: str, /, **values: object) -> str:
        """The text with its blanks filled in; KeyError for a name or a blank that there is not."""
        return self._texts[name].format(**values)

    def one_of(self, group: str, name: str, otherwise: str, /, **values: object) -> str:
        """The text `group.name`, or `group.otherwise` where the gateway said something that is not known here."""
        known = f"{group}.{name}"
        return self.text(known if known in self._texts else f"{group}.{otherwise}", **values)

    @property
    def blanks(self) -> dict[str, frozenset[str]]:
        """The blanks of each text."""
        return {
            name: frozenset(blank for _, blank, _, _ in Formatter().parse(text) if blank is not None)
            for name, text in self._texts.items()
        }


@cache
def catalogue(language: Language) -> Catalogue:
    """The texts of a language."""
    file = files("tallyhook.operations.timeline").joinpath(f"texts/{language}.toml")
    return Catalogue(language, dict(_flat("", tomllib.loads(file.read_text(encoding="utf-8")))))


def _flat(path: str, table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        whole = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            yield from _flat(whole, value)
        elif isinstance(value, str):
            yield whole, value
        else:
            raise TypeError(f"{whole} is neither a text nor a table of texts")
