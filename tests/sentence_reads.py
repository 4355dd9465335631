"""Find code that reads a sentence, in Python and JavaScript: programs read facts, and sentences are for people.

A sentence is a literal with a letter and a space, a field or a result that is annotated `Sentence`, anything of the package of words, and
what a function derives from these. To read one is to compare it, search it, cut it, replace a part of it, or match it.
"""

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

WORDS: Final = "monitor.words"
ALIAS: Final = "Sentence"
"""The annotation of a sentence in the schemas."""

_CUTS: Final = ("partition", "rpartition", "split", "rsplit", "replace", "removeprefix", "removesuffix", "sub", "subn")
_FINDS: Final = ("startswith", "endswith", "find", "rfind", "index", "rindex", "count", "__contains__", "__eq__")
_METHODS: Final = frozenset([*_CUTS, *_FINDS, "search", "match", "fullmatch", "findall", "finditer"])
_LOOKS_UP: Final = frozenset(["get", "setdefault", "pop"])
"""Methods that read a sentence only where it is the key."""
_KEEPS: Final = frozenset(
    [
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "casefold",
        "capitalize",
        "title",
        "format",
        "join",
        "removeprefix",
        "removesuffix",
        "replace",
    ]
)
"""Methods that return another form of the same sentence."""


def is_sentence(text: str) -> bool:
    """Return whether a literal is a sentence, or part of one: words with a space."""
    return " " in text and re.search(r"[^\W\d_]", text) is not None


@dataclass
class Known:
    """The names of sentences in the sources of a program.

    Attributes
    ----------
    fields, functions : set of str
        Fields and properties, and functions, that are annotated as sentences, by name.
    constants : dict of str to set of str
        By module, its names that are bound to sentences.
    codes : set of str
        Members of closed enumerations, which may have a space.
    """

    fields: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    constants: dict[str, set[str]] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, trees: Mapping[str, ast.Module]) -> "Known":
        """Return the names in some modules."""
        known = cls()
        for module, tree in trees.items():
            if not module.startswith(WORDS):  # its names are followed where they are imported
                known._annotations(tree)
        for module, tree in trees.items():
            bound = {name for name, value in _bindings(tree) if known._is_constant(value)}
            known.constants[module] = bound
        return known

    def _annotations(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _mentions(node.annotation):
                self.fields.add(node.target.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _mentions(node.returns):
                self.fields.add(node.name)
                self.functions.add(node.name)
            elif isinstance(node, ast.Subscript) and _name(node.value) == "Literal":
                self.codes |= {each.value for each in ast.walk(node) if _is_text(each)}
            elif isinstance(node, ast.ClassDef) and any(_name(base) in {"Enum", "StrEnum"} for base in node.bases):
                self.codes |= {
                    each.value.value for each in node.body if isinstance(each, ast.Assign) and _is_text(each.value)
                }

    def _is_constant(self, value: ast.expr) -> bool:
        parts = [
            each.value for each in ast.walk(value) if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        if isinstance(value, ast.Constant | ast.JoinedStr | ast.BinOp):
            return is_sentence("".join(parts)) and "".join(parts) not in self.codes
        if isinstance(value, ast.Tuple | ast.List | ast.Set):
            return any(is_sentence(part) and part not in self.codes for part in parts)
        return False


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _name(node: ast.AST | None) -> str:
    """Return the last name of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _mentions(annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    return any(_name(node) == ALIAS for node in ast.walk(annotation))


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


@dataclass(frozen=True)
class Read:
    """One place that reads a sentence."""

    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.line}: {self.code}"


def python_reads(tree: ast.Module, module: str, known: Known) -> list[Read]:
    """Return every place of a module that reads a sentence."""
    return sorted(set(_Reader(tree, module, known).reads()), key=lambda read: (read.line, read.code))


class _Reader:
    def __init__(self, tree: ast.Module, module: str, known: Known) -> None:
        self._tree, self._known = tree, known
        self._words: set[str] = set(known.constants.get(module, ()))
        """Names of this module that are sentences."""
        nodes = list(ast.walk(tree))
        self._errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
        """Names of exceptions: what they say is a sentence, of rankwatch or of another program."""
        self._modules: dict[str, str] = {}
        """Imported modules by name."""
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                for each in node.names:
                    name, full = each.asname or each.name, f"{node.module}.{each.name}"
                    if full in known.constants:
                        self._modules[name] = full
                    elif node.module.startswith(WORDS) or each.name in known.constants.get(node.module, ()):
                        self._words.add(name)
            elif isinstance(node, ast.Import):
                self._modules |= {each.asname or each.name: each.name for each in node.names}

    def reads(self) -> Iterator[Read]:
        yield from self._inside(self._tree, frozenset(self._words))

    def _inside(self, scope: ast.AST, env: frozenset[str]) -> Iterator[Read]:
        """Yield the reads of a scope, and of the scopes in it, whose names include those around them."""
        local = set(env)
        own = list(_own(scope))
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            args = scope.args
            named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
            local |= {arg.arg for arg in named if _mentions(arg.annotation)}
        bound = [pair for node in own for pair in _bound(node)]
        for _ in range(3):  # a name may be derived from another one, which is bound below in a loop
            for name, value in bound:
                if self._says(value, local):
                    local.add(name)
        for node in own:
            if self._is_read(node, local):
                yield Read(node.lineno, ast.unparse(node)[:160])
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield from self._inside(node, frozenset(local))

    def _says(self, node: ast.AST | None, env: Iterable[str]) -> bool:  # noqa: PLR0911 - a case a form
        """Return whether an expression is a sentence, or a collection of sentences."""
        known = self._known
        match node:
            case ast.Constant(value=str(text)):
                return is_sentence(text) and text not in known.codes
            case ast.JoinedStr(values=parts):
                text = "".join(each.value for each in parts if isinstance(each, ast.Constant))
                return is_sentence(text) or any(
                    self._says(each.value, env) for each in parts if isinstance(each, ast.FormattedValue)
                )
            case ast.Name(id=name):
                return name in env or name in known.functions
            case ast.Attribute(value=value, attr=attribute):
                full = self._modules.get(_name(value), "")
                return attribute in known.fields or full.startswith(WORDS) or attribute in known.constants.get(full, ())
            case ast.Subscript(value=value, slice=key):
                return self._says(value, env) or (_is_text(key) and key.value in known.fields)
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=args):
                if method in _KEEPS and (self._says(value, env) or any(self._says(arg, env) for arg in args)):
                    return True
                if method == "get" and args and _is_text(args[0]) and args[0].value in known.fields:
                    return True
                return self._says(node.func, env)
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[argument]):
                return self._says(argument, env) or _name(argument) in self._errors
            case ast.Call(func=function):
                return self._says(function, env)
            case ast.BinOp(left=left, right=right):
                return self._says(left, env) or self._says(right, env)
            case ast.BoolOp(values=values):
                return any(self._says(each, env) for each in values)
            case ast.Tuple(elts=values) | ast.List(elts=values) | ast.Set(elts=values):
                return bool(values) and all(self._says(each, env) for each in values)
            case ast.IfExp(body=body, orelse=other):
                return self._says(body, env) or self._says(other, env)
            case ast.NamedExpr(value=value) | ast.Starred(value=value) | ast.Await(value=value):
                return self._says(value, env)
            case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._says(element, env)
        return False

    def _is_read(self, node: ast.AST, env: Iterable[str]) -> bool:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                return any(
                    isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
                    and (self._says_part(a, env) or self._says_part(b, env))
                    and not (_is_empty(a) or _is_empty(b))
                    for a, op, b in zip(sides, ops, others, strict=False)
                )
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=args):
                return self._is_reading_call(value, method, args, env)
            case ast.Subscript(value=value, slice=key):
                return not _is_text(key) and not isinstance(key, ast.Slice) and self._says(key, env)
            case ast.Match(subject=subject, cases=cases):
                patterns = [each for case in cases for each in ast.walk(case.pattern)]
                values = [each.value for each in patterns if isinstance(each, ast.MatchValue)]
                return any(self._says(each, env) for each in (subject, *values))
        return False

    def _is_reading_call(self, value: ast.expr, method: str, args: list[ast.expr], env: Iterable[str]) -> bool:
        if method in _LOOKS_UP:
            return bool(args) and not _is_text(args[0]) and self._says(args[0], env)
        if method == "replace" and args and _is_text(args[0]) and len(args[0].value) == 1:
            return False  # one character for another: an escape
        if _name(value) != "re" and method not in _METHODS:
            return False
        return any(self._says_part(arg, env) for arg in args) or (not _is_text(value) and self._says(value, env))

    def _says_part(self, node: ast.AST, env: Iterable[str]) -> bool:
        """Return whether an operand is a sentence, or lists one among others."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(self._says(each, env) for each in node.elts)
        return self._says(node, env)


def _is_empty(node: ast.AST) -> bool:
    """Return whether an operand is no text, or none: nothing of a sentence is compared with it."""
    return isinstance(node, ast.Constant) and (not node.value or isinstance(node.value, int | float))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, but not of the functions in it."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a node binds, with their values; a loop over sentences binds one."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _pairs(target, value)
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield from _pairs(target, value)
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            if not isinstance(target, ast.Tuple):
                yield from _pairs(target, value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, of in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, of)


def modules(root: Path, rooms: Iterable[str]) -> dict[str, ast.Module]:
    """Return the trees of all modules of some packages, by name."""
    gc.disable()  # a million nodes that all stay: to look for cycles in them takes longer than to parse
    try:
        paths = sorted(path for room in rooms for path in (root / room).rglob("*.py"))
        names = (".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for path in paths)
        return {name: ast.parse(path.read_text("utf-8")) for name, path in zip(names, paths, strict=True)}
    finally:
        gc.freeze()
        gc.enable()
