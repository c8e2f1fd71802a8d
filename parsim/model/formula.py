"""Formulas of PBS's ``job_sort_formula``: parsed safely, run as a postfix program by the kernels.

Subexpressions of the job alone, such as ``walltime ** 1.3``, are computed once per job; the kernel interprets the rest.
Nothing is compiled for a formula, so a search over exponents costs only simulations. All arithmetic is float64. An
undefined operation (division by zero, root of a negative number, logarithm of one that is not positive, overflow) makes
the value of the formula 0 for that job, unless it lies in the branch of a conditional that is not taken.

References
----------
PBS Professional Administrator's Guide, "Using a Formula for Computing Job Execution Priority".
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from parsim.engine import order as op
from parsim.model.fairshare import ACTIVE_NAME, SHARE_NAME, USE_NAMES
from parsim.model.node_types import Request

#: Names whose values depend on the job alone, in the order of the rows that `Formula.columns` takes.
JOB_NAMES = (
    *("queue_priority", "walltime", "ncpus", "job_priority", SHARE_NAME),
    *(_QOS_NAMES := ("qos_priority", "qos_target")),
    *(REQUEST_NAMES := ("ngpus", "mem")),
    (ESTIMATE := "estimate"),
)
_REQUESTED = (("gpus", 1), ("memory", 1024))  #: `REQUEST_NAMES` by the names of resources: PBS counts memory in KiB
TARGET_FACTOR = "qos_target_factor"
OF_USERS = (*USE_NAMES, ACTIVE_NAME)  #: values that change with what users run
NAMES = ("eligible_time", *JOB_NAMES, TARGET_FACTOR, *OF_USERS)
MOST_CHARACTERS = 2000
_CHANGING = ("eligible_time", TARGET_FACTOR, *OF_USERS)
#: `TARGET_FACTOR` by the other names (rule "values of a QOS").
_TARGET_FACTOR = "(qos_target > 0) / max(qos_target - (eligible_time + walltime) / walltime, 0.0001) ** 2"
_USE = -1  # in place of the instruction that reads one of `OF_USERS`, until the number of columns is known

_BINARY = {
    ast.Add: op.ADD,
    ast.Sub: op.SUBTRACT,
    ast.Mult: op.MULTIPLY,
    ast.Div: op.DIVIDE,
    ast.Pow: op.POWER,
}
_COMPARE = {
    ast.Lt: (op.LESS, False),
    ast.LtE: (op.LESS_EQUAL, False),
    ast.Gt: (op.LESS, True),
    ast.GtE: (op.LESS_EQUAL, True),
    ast.Eq: (op.EQUAL, False),
    ast.NotEq: (op.NOT_EQUAL, False),
}
_CALLS = {  # instruction, least and most arguments
    "min": (op.MINIMUM, 2, 16),
    "max": (op.MAXIMUM, 2, 16),
    "pow": (op.POWER, 2, 2),
    "abs": (op.ABSOLUTE, 1, 1),
    "log": (op.LOGARITHM, 1, 1),
    "sqrt": (op.ROOT, 1, 1),
    "floor": (op.FLOOR, 1, 1),
}

Code = list[tuple[int, int]]
Descend = Callable[[ast.expr], Code]


@dataclass(frozen=True, eq=False)
class Formula:
    """A parsed formula: the program that the kernel runs, and a program for each column that is computed beforehand.

    Attributes
    ----------
    code : ndarray(int64), shape (k, 2)
        Instructions and their operands, in postfix order.
    constants : ndarray(float64), shape (c,)
    column_codes : tuple of ndarray(int64)
        A program for each column of `columns`.
    depth : int
        Most values on the stack.
    uses_eligible_time : bool
    uses : tuple of str
        Names of `OF_USERS` that the formula reads; their values are its last columns, after those of `columns`.
    uses_shares : bool
        Whether the formula reads a value of fairshare.
    uses_qos : bool
        Whether it reads a value of the job's QOS.
    uses_requests : bool
        Whether it reads resources other than cores that the job requests.
    uses_estimate : bool
        Whether it reads the predicted run time.
    """

    code: NDArray[np.int64]
    constants: NDArray[np.float64]
    column_codes: tuple[NDArray[np.int64], ...]
    depth: int
    uses_eligible_time: bool
    uses: tuple[str, ...]
    uses_shares: bool
    uses_qos: bool
    uses_requests: bool
    uses_estimate: bool

    @property
    def uses_optional(self) -> bool:
        """Whether the formula reads any of `JOB_NAMES` after the first five, whose rows are optional."""
        return self.uses_qos or self.uses_requests or self.uses_estimate

    def columns(self, base: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate the `column_codes` for each job.

        Parameters
        ----------
        base : ndarray(float64), shape (r, n), r from 5 to 10
            Values of the first r `JOB_NAMES` of each job; the others are 0.

        Returns
        -------
        ndarray(float64), shape (m, n)
        """
        if self.uses_optional and len(base) < len(JOB_NAMES):
            base = np.vstack([base, np.zeros((len(JOB_NAMES) - len(base), base.shape[1]))])
        stack = np.empty((self.depth, op.BATCH))
        out = np.empty((len(self.column_codes), base.shape[1]))
        for row, code in enumerate(self.column_codes):
            out[row] = op.evaluate(code, self.constants, base, stack)
        return out

    def values(
        self,
        base: NDArray[np.float64],
        eligible_time: NDArray[np.float64],
        share: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Evaluate the formula for each job; NaN where it is undefined, which the simulator takes as 0.

        Parameters
        ----------
        base : ndarray(float64), shape (r, n), r from 5 to 10
            Values of the first r `JOB_NAMES` of each job; the others are 0.
        eligible_time : ndarray(float64), shape (n,)
            Seconds.
        share : ndarray(float64), shape (n,), optional
            Value of every name of `OF_USERS`; by default the values of a lone user, whose use equals his share.

        Returns
        -------
        ndarray(float64), shape (n,)
        """
        alone = {"fairshare_tree_usage": 1.0, "fairshare_target": 0.0, ACTIVE_NAME: 0.0}
        uses = np.array([alone.get(name, 0.5) for name in self.uses]).reshape(-1, 1) * np.ones(base.shape[1])
        uses = uses if share is None else np.ones((len(self.uses), 1)) * share
        columns, code = np.vstack([self.columns(base), uses]), self.code.copy()
        code[code[:, 0] == op.ELIGIBLE_TIME] = op.COLUMN, len(columns)
        stack = np.empty((self.depth, op.BATCH))
        found: NDArray[np.float64] = op.evaluate(code, self.constants, np.vstack([columns, eligible_time]), stack)
        return found


def of_requests(requests: Sequence[Request]) -> NDArray[np.float64]:
    """Return the values of `REQUEST_NAMES` that a formula reads of each request (rule "sums over chunks").

    Parameters
    ----------
    requests : sequence of sequence of Chunk
        As `Workload.requests`, memory in MiB.

    Returns
    -------
    ndarray(float64), shape (2, requests + 1)
        GPUs, and memory in KiB. The last column, 0, is of jobs that request only cores.
    """
    found = [
        [float(scale * sum(chunk.count * chunk.amount(name) for chunk in request)) for request in requests]
        for name, scale in _REQUESTED
    ]
    return np.array([[*amounts, 0.0] for amounts in found])


_ALONE = Lock()


def expression(text: str) -> ast.expr:
    """Return the syntax tree of an expression.

    Raises SyntaxError, RecursionError or MemoryError as `ast.parse` does. A lock keeps threads apart: two at once made
    Python 3.11 fail with "AST constructor recursion depth mismatch".
    """
    with _ALONE:
        return ast.parse(text, mode="eval").body


class _Compiler:
    """Compiles a syntax tree in one pass; subtrees that depend on the job alone become columns."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.constants: list[float] = []
        self.columns: list[Code] = []
        self.uses_eligible_time = self.uses_shares = self.uses_qos = False
        self.uses_requests = self.uses_estimate = False
        self.uses: list[str] = []

    def fail(self, node: ast.AST, why: str) -> ValueError:
        start = getattr(node, "col_offset", 0)
        snippet = self.text[start : getattr(node, "end_col_offset", None) or len(self.text)]
        return ValueError(f"formula {self.text!r}: {snippet!r} {why}")

    def static(self, node: ast.AST) -> bool:
        return not any(isinstance(n, ast.Name) and n.id in _CHANGING for n in ast.walk(node))

    def hoist(self, node: ast.expr) -> Code:
        """Compile for the kernel: whole static subtrees are columns."""
        if isinstance(node, ast.Constant) or not self.static(node):
            return self.compile(node, self.hoist)
        code = self.whole(node)
        if code not in self.columns:
            self.columns.append(code)
        return [(op.COLUMN, self.columns.index(code))]

    def whole(self, node: ast.expr) -> Code:
        """Compile a whole subtree for a column; it names values of the job alone."""
        return self.compile(node, self.whole)

    def compile(self, node: ast.expr, descend: Descend) -> Code:
        """Compile one node; `descend` compiles its operands."""
        if isinstance(node, ast.Constant):
            return [(op.CONSTANT, self.constant(node))]
        if isinstance(node, ast.Name) and node.id == TARGET_FACTOR:
            return descend(expression(_TARGET_FACTOR))
        if isinstance(node, ast.Name):
            return [self.name(node)]
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return [*descend(node.left), *descend(node.right), (_BINARY[type(node.op)], 0)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = descend(node.operand)
            return [*inner, (op.NEGATE, 0)] if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Compare):
            if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARE:
                raise self.fail(node, "is not a comparison of two values by <, <=, >, >=, == or !=")
            code, swapped = _COMPARE[type(node.ops[0])]
            left, right = descend(node.left), descend(node.comparators[0])
            return [*right, *left, (code, 0)] if swapped else [*left, *right, (code, 0)]
        if isinstance(node, ast.IfExp):
            return [*descend(node.body), *descend(node.test), *descend(node.orelse), (op.SELECT, 0)]
        if isinstance(node, ast.Call):
            return self.call(node, descend)
        raise self.fail(
            node,
            f"is not allowed: numbers, {', '.join(NAMES)}, + - * / **, comparisons, x if c else y, {', '.join(_CALLS)}",
        )

    def call(self, node: ast.Call, descend: Descend) -> Code:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in _CALLS or node.keywords:
            raise self.fail(node, f"is not one of the functions {', '.join(_CALLS)}")
        code, least, most = _CALLS[name]
        if not least <= len(node.args) <= most:
            count = str(most) if least == most else f"{least} to {most}"
            raise self.fail(node, f"takes {count} argument{'s' if most > 1 else ''}")
        out = list(descend(node.args[0]))
        if most == 1:
            return [*out, (code, 0)]
        for argument in node.args[1:]:
            out += [*descend(argument), (code, 0)]
        return out

    def constant(self, node: ast.Constant) -> int:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self.fail(node, "is not a number")
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self.fail(node, "is not a finite number")
        if value not in self.constants:
            self.constants.append(value)
        return self.constants.index(value)

    def name(self, node: ast.Name) -> tuple[int, int]:
        if node.id == "eligible_time":
            self.uses_eligible_time = True
            return (op.ELIGIBLE_TIME, 0)
        self.uses_shares |= node.id in (SHARE_NAME, *USE_NAMES)
        self.uses_qos |= node.id in _QOS_NAMES
        self.uses_requests |= node.id in REQUEST_NAMES
        self.uses_estimate |= node.id == ESTIMATE
        if node.id in OF_USERS:
            if node.id not in self.uses:
                self.uses.append(node.id)
            return (_USE, self.uses.index(node.id))
        if node.id not in JOB_NAMES:
            raise self.fail(node, f"is unknown; a formula may name {', '.join(NAMES)}")
        return (op.COLUMN, JOB_NAMES.index(node.id))


@lru_cache(maxsize=1024)
def parse(text: str) -> Formula:
    """Parse a formula; nothing of it is ever executed as Python.

    Parameters
    ----------
    text : str
        An expression of `NAMES`, as PBS's ``job_sort_formula`` takes it.

    Returns
    -------
    Formula

    Raises
    ------
    ValueError
        Names the part that is not allowed: an unknown name or operator, a number that is not finite.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"formula: {len(text)} characters, more than {MOST_CHARACTERS}")
    try:
        compiler = _Compiler(text.strip())
        code = compiler.hoist(expression(text.strip()))
    except SyntaxError as error:
        raise ValueError(f"formula {text!r}: not an expression ({error.msg})") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"formula {text[:60]!r}...: nested too deeply") from None
    columns = len(compiler.columns)
    code = [(op.COLUMN, columns + operand) if each == _USE else (each, operand) for each, operand in code]
    programs = [code, *compiler.columns]
    return Formula(
        code=np.array(code, dtype=np.int64),
        constants=np.array(compiler.constants, dtype=np.float64),
        column_codes=tuple(np.array(column, dtype=np.int64) for column in compiler.columns),
        depth=max(_depth(program) for program in programs),
        uses_eligible_time=compiler.uses_eligible_time,
        uses=tuple(compiler.uses),
        uses_shares=compiler.uses_shares,
        uses_qos=compiler.uses_qos,
        uses_requests=compiler.uses_requests,
        uses_estimate=compiler.uses_estimate,
    )


def _depth(code: Code) -> int:
    """Most values that the stack holds at once."""
    depth = most = 0
    for operation, _ in code:
        if operation <= op.CONSTANT:
            depth += 1
        elif operation == op.SELECT:
            depth -= 2
        elif operation not in (op.NEGATE, op.ABSOLUTE, op.LOGARITHM, op.ROOT, op.FLOOR):
            depth -= 1
        most = max(most, depth)
    return most
