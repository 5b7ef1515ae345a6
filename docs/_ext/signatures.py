"""Signatures as they are written in the source.

Autodoc would spell out every alias: an `ArrayLike` alone takes six lines. Classes of ours become
links where the reference has them; all other types stay plain text.
"""

import ast
import inspect
import sys
import textwrap
from dataclasses import is_dataclass
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import rollin


def as_written(
    app: Sphinx, kind: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Parameters and result of a function or a class, from its source."""
    if kind not in ("class", "function", "method"):
        return None
    module = vars(sys.modules[obj.__module__])
    node: Any = ast.parse(textwrap.dedent(inspect.getsource(obj))).body[0]
    if isinstance(node, ast.ClassDef):
        return f"({_of_class(node, obj, module)})", ""
    result = "" if node.returns is None else _type(node.returns, module)
    bound = kind == "method" and not _decorated(node, "staticmethod")
    return f"({_parameters(node.args, module, bound=bound)})", result


def _of_class(node: ast.ClassDef, kind: type[Any], module: dict[str, Any]) -> str:
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _parameters(part.args, module, bound=True)
    if issubclass(kind, tuple):  # a NamedTuple
        return ", ".join(_fields(kind))
    if not is_dataclass(kind):
        return _inherited(kind)
    inherited = [_fields(base) for base in reversed(kind.__mro__[1:]) if is_dataclass(base)]
    return ", ".join(field for some in (*inherited, _fields(kind)) for field in some)


def _inherited(kind: type[Any]) -> str:
    """The parameters of the first base of ours that declares some."""
    for base in kind.__mro__[1:]:
        if base.__module__.startswith("rollin.") and "__init__" in vars(base):
            node: Any = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
            return _of_class(node, base, vars(sys.modules[base.__module__]))
    return ""


def _fields(kind: type[Any]) -> list[str]:
    """The fields that a dataclass or a NamedTuple declares itself."""
    module = vars(sys.modules[kind.__module__])
    node: Any = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    return [
        f"{ast.unparse(part.target)}: {_type(part.annotation, module)}{_default(part.value)}"
        for part in node.body
        if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part.annotation)
    ]


def _default(value: ast.expr | None) -> str:
    """What a field is if not given; None or its factory where it is declared by `field`."""
    if value is None:
        return ""
    if not isinstance(value, ast.Call):
        return f" = {ast.unparse(value)}"
    given = {word.arg: ast.unparse(word.value) for word in value.keywords}
    if "default" in given:
        return f" = {given['default']}"
    return f" = {given['default_factory']}()" if "default_factory" in given else ""


def _parameters(arguments: ast.arguments, module: dict[str, Any], *, bound: bool) -> str:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in (*every, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.annotation is not None:
            text = _type(argument.annotation, module)
            argument.annotation = ast.parse(text, mode="eval").body
    if bound:
        del arguments.args[0]
    return ast.unparse(arguments)


def _type(annotation: ast.expr, module: dict[str, Any]) -> str:
    """An annotation, with the full names of our classes that are not `rollin.NAME`."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            named = module.get(node.id)
            if inspect.isclass(named) and _is_inner(named):
                node.id = f"~{named.__module__}.{named.__qualname__}"
    return ast.unparse(annotation)


def _is_inner(kind: type[Any]) -> bool:
    return kind.__module__.startswith("rollin.") and kind.__name__ not in rollin.__all__


def _decorated(node: ast.FunctionDef, name: str) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == name for mark in node.decorator_list)


def stays_text(app: Sphinx, domain: Any, node: nodes.Element) -> bool | None:
    """Types that the reference does not have are no mistake, unless they are public."""
    if node.get("refdomain") != "py" or node["reftarget"] in rollin.__all__:
        return None
    return True


def setup(app: Sphinx) -> dict[str, Any]:
    """Have autodoc take the signatures from here."""
    app.connect("autodoc-process-signature", as_written)
    app.connect("warn-missing-reference", stays_text)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
