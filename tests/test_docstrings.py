"""Docstrings name the parameters of the signature, in its order; what is public is described in full."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

import pytest

import parsim
from tests.test_architecture import modules

HEADER = re.compile(r"^(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", re.MULTILINE)


def section(node: ast.FunctionDef | ast.ClassDef, title: str) -> list[str] | None:
    """Return the names that a section of a docstring describes, None where there is no such section."""
    lines = inspect.cleandoc(ast.get_docstring(node) or "").splitlines()
    starts = [i for i in range(len(lines) - 1) if lines[i] == title and set(lines[i + 1]) == {"-"}]
    if not starts:
        return None
    inside = lines[starts[0] + 2 :]
    ends = [i for i in range(len(inside) - 1) if inside[i + 1] and set(inside[i + 1]) == {"-"}]
    text = "\n".join(inside[: ends[0]] if ends else inside)
    return [name.strip("*") for found in HEADER.finditer(text) for name in found["names"].split(", ")]


def arguments(function: ast.FunctionDef) -> list[str]:
    given = function.args
    every = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
    names = [each.arg for each in every if each]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def fields(node: ast.ClassDef) -> list[str]:
    """Return the annotated fields of a dataclass or a named tuple."""
    targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    return [target.id for target in targets if isinstance(target, ast.Name) and not target.id.startswith("_")]


def differences(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found, wanted = section(node, "Parameters"), arguments(node)
        elif isinstance(node, ast.ClassDef):
            inits = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
            found, wanted = section(node, "Parameters"), arguments(inits[0]) if inits else fields(node)
            if not inits and found is None:  # a field whose name says all may be left out
                found = section(node, "Attributes") or []
                wanted = [name for name in wanted if name in found]
        else:
            continue
        if found is not None and found != wanted:
            yield f"line {node.lineno}: {node.name} describes {found}, has {wanted}"


@pytest.mark.parametrize("package", ["parsim", "qconf"])
def test_parameters_are_those_of_the_signature(package: str) -> None:
    found = [f"{path}, {each}" for _, path in modules(package) for each in differences(ast.parse(path.read_text()))]
    assert not found, "\n".join(found)


def public() -> dict[str, object]:
    """Return the functions and classes that `parsim` exports, and those of the modules that it exports."""
    found = {name: getattr(parsim, name) for name in parsim.__all__}
    for module in [each for each in found.values() if inspect.ismodule(each)]:
        names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    return {
        name: each
        for name, each in found.items()
        if (inspect.isfunction(each) or inspect.isclass(each)) and each.__module__.startswith("parsim")
    }


def described(each: object) -> bool:
    """Whether a docstring has the sections of a class, or of a function."""
    text = inspect.getdoc(each) or ""
    if inspect.isclass(each):
        return re.search(r"^(Parameters|Attributes)\n---", text, re.MULTILINE) is not None
    returns = "\nReturns\n---" in text or inspect.signature(each).return_annotation == "None"  # type: ignore[arg-type]
    return "\nParameters\n---" in text and returns


def test_what_is_public_is_described_in_full() -> None:
    assert [name for name, each in public().items() if not described(each)] == []
