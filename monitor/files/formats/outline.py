"""Recognise JSON by the names of its fields, from its first bytes alone."""

import re
from typing import Any, Final

_TOKEN: Final = re.compile(rb'\s*+(?:("(?:[^"\\]++|\\.)*+")|([{}\[\]])|([:,])|([^\s{}\[\]:,"]++))', re.DOTALL)

EVERY: Final = "*"  # in a path: any field of an object, or any element of an array


def outline(head: bytes) -> Any:  # noqa: ANN401 - any JSON value
    r"""Return the value that a JSON text begins with, however it is cut; leaves are left as bytes.

    >>> outline(b'{"results": [{"id": 1, "text": "cut o')
    {'results': [{'id': b'1'}]}
    """
    root: list[Any] = []
    stack: list[dict[str, Any] | list[Any]] = [root]
    name: str | None = None
    position = 0
    while (match := _TOKEN.match(head, position)) is not None:
        position = match.end()
        text, bracket, _, word = match.groups()
        parent = stack[-1]
        if bracket in {b"}", b"]"}:
            if len(stack) > 1:
                stack.pop()
            name = None
        elif text is not None and name is None and isinstance(parent, dict):
            name = text[1:-1].decode("utf-8", "replace")
        elif text is not None or word is not None or bracket:
            value: Any = {} if bracket == b"{" else [] if bracket else text or word
            if isinstance(parent, list):
                parent.append(value)
            elif name is not None:
                parent[name] = value
            name = None
            if bracket:
                stack.append(value)
        if len(stack) == 1 and root:
            break
    return root[0] if root else None


def has_path(value: object, path: str) -> bool:
    """Return whether a value has a field, named with dots; `*` means any field or element.

    >>> has_path({"results": [{"id": 1}]}, "results.*.id")
    True
    """
    name, _, rest = path.partition(".")
    if name == EVERY:
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    else:
        inner = [value[name]] if isinstance(value, dict) and name in value else []
    return bool(inner) if not rest else any(has_path(each, rest) for each in inner)
