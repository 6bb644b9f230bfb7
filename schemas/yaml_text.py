"""A document as YAML text: the plain part of the language that every reader knows (YAML 1.2, JSON's scalars in it)."""

import json
import re
from collections.abc import Mapping, Sequence

Node = str | int | float | bool | None | Sequence["Node"] | Mapping[str, "Node"]

_PLAIN_KEY = re.compile(r"[A-Za-z_/$][A-Za-z0-9_/$.{}-]*")
_RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def yaml_text(document: Mapping[str, Node]) -> str:
    """The document in block style, members in their order; strings are quoted as JSON quotes them."""
    return "".join(f"{line}\n" for line in _lines(document))


def _lines(node: Node) -> list[str]:
    if isinstance(node, Mapping) and node:
        found = []
        for name, value in node.items():
            first, *rest = _lines(value)
            if _is_block(value):
                found += [f"{_key(name)}:", *(f"  {line}" for line in (first, *rest))]
            else:
                found.append(f"{_key(name)}: {first}")
        return found
    if isinstance(node, Sequence) and not isinstance(node, str) and node:
        found = []
        for value in node:
            first, *rest = _lines(value)
            found += [f"- {first}", *(f"  {line}" for line in rest)]
        return found
    return [json.dumps(node, ensure_ascii=False)]


def _is_block(node: Node) -> bool:
    return isinstance(node, (Mapping, Sequence)) and not isinstance(node, str) and bool(node)


def _key(name: str) -> str:
    plain = _PLAIN_KEY.fullmatch(name) is not None and name.lower() not in _RESERVED
    return name if plain else json.dumps(name, ensure_ascii=False)
