"""What an expression of a job file is worth: Ruby's meaning of the few things ``expression.py`` lets through.

Values are nil, booleans, numbers, strings, lists and the job's mappings. Only nil and false are false, integers
divide downwards, ``'16t'.to_i`` is 16. Every evaluation has a budget, so no file can keep the robot busy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bisectbot.jobs.expression import (
    Binary,
    Call,
    Case,
    Expression,
    If,
    Index,
    Listing,
    Literal,
    Name,
    Node,
    Regex,
    Span,
    Text,
    Unary,
)
from bisectbot.jobs.origin import Origin

MAX_STEPS = 2_000  # nodes visited by one expression
MAX_DEPTH = 100  # of its nodes
MAX_LENGTH = 10_000  # characters of a string, elements of a list or range
MAX_DIGITS = 30  # of a number
MAX_MATCHED = 200  # characters that a regular expression looks at

Lookup = Callable[[str], Any]
"""The value of a name; raises KeyError where there is none."""


class _Wrong(Exception):  # noqa: N818 - internal: becomes a UserError with the place
    """What is wrong with the operands at hand."""


def evaluate(expression: Expression, lookup: Lookup) -> Any:
    """The value of an expression. Raises UserError with file:line."""
    evaluation = _Evaluation(expression.origin, lookup)
    try:
        return evaluation.value(expression.node)
    except _Wrong as wrong:
        raise expression.origin.error(f"{wrong} in the expression `{expression.source}`") from None


def truthy(value: object) -> bool:
    """Ruby's truth: everything but nil and false."""
    return value is not None and value is not False


def as_text(value: object) -> str:
    """A value as Ruby prints it (nil is empty)."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return "[" + ", ".join(as_text(item) for item in value) + "]"
        case _:
            return str(value)


class _Evaluation:
    def __init__(self, origin: Origin, lookup: Lookup) -> None:
        self.origin = origin
        self.lookup = lookup
        self.steps = 0
        self.depth = 0

    def value(self, node: Node) -> Any:
        self.steps += 1
        self.depth += 1
        if self.steps > MAX_STEPS or self.depth > MAX_DEPTH:
            raise _Wrong(f"more than {MAX_STEPS} steps, or nested deeper than {MAX_DEPTH}")
        value = self.kind(node)
        self.depth -= 1
        return value

    def kind(self, node: Node) -> Any:  # noqa: C901, PLR0912 - one line per kind of node
        match node:
            case Literal(value):
                return value
            case Text(parts):
                return _bounded("".join(p if isinstance(p, str) else as_text(self.value(p.node)) for p in parts))
            case Regex(pattern):
                return pattern
            case Name(name):
                return self.name(name)
            case Listing(items):
                return [self.value(item) for item in items]
            case Span(low, high, open_end):
                return _span(self.value(low), self.value(high), open_end=open_end)
            case Index(target, key):
                return _index(self.value(target), self.value(key))
            case Call(target, method, args, safe):
                receiver = self.value(target)
                if safe and receiver is None:
                    return None
                return _bounded(_call(receiver, method, [self.value(arg) for arg in args]))
            case Unary("!", operand):
                return not truthy(self.value(operand))
            case Unary(_, operand):
                return -_number(self.value(operand), "-")
            case Binary(operator, left, right):
                return self.binary(operator, left, right)
            case If(condition, then, otherwise):
                return self.value(then if truthy(self.value(condition)) else otherwise)
            case Case(subject, branches, otherwise):
                found = self.value(subject)
                for wanted, body in branches:
                    if any(_matches(self.value(one), found) for one in wanted):
                        return self.value(body)
                return self.value(otherwise)

    def name(self, name: str) -> Any:
        try:
            return self.lookup(name)
        except KeyError:
            raise _Wrong(f"`{name}` is no key of the job (nor of a host file: is --host missing?)") from None

    def binary(self, operator: str, left: Node, right: Node) -> Any:
        first = self.value(left)
        if operator == "&&":
            return self.value(right) if truthy(first) else first
        if operator == "||":
            return first if truthy(first) else self.value(right)
        second = self.value(right)
        match operator:
            case "==":
                return _same(first, second)
            case "!=":
                return not _same(first, second)
            case "=~":
                return _search(second, first)
            case "!~":
                return _search(second, first) is None
            case "<" | "<=" | ">" | ">=":
                return _compare(operator, first, second)
            case "+" if isinstance(first, str) and isinstance(second, str):
                return _bounded(first + second)
            case "+" if isinstance(first, list) and isinstance(second, list):
                return _bounded(first + second)
            case "-" if isinstance(first, list) and isinstance(second, list):
                return [item for item in first if item not in second]
            case _:
                return _arithmetic(operator, first, second)


def _bounded(value: Any) -> Any:
    if isinstance(value, str | list) and len(value) > MAX_LENGTH:
        raise _Wrong(f"a value longer than {MAX_LENGTH}")
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise _Wrong(f"a number of more than {MAX_DIGITS} digits")
    if isinstance(value, float) and not math.isfinite(value):
        raise _Wrong("a number that is not finite")
    return value


def _kind(value: object) -> str:
    if value is None:
        return "nil"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list", range: "a range"}
    return names.get(type(value), "a mapping" if isinstance(value, Mapping) else "a regular expression")


def _number(value: object, operator: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Wrong(f"`{operator}` expects numbers, not {_kind(value)} ({as_text(value)!r})")
    return value


def _arithmetic(operator: str, first: object, second: object) -> int | float:
    a, b = _number(first, operator), _number(second, operator)
    try:
        match operator:
            case "+":
                result = a + b
            case "-":
                result = a - b
            case "*":
                result = a * b
            case "/":
                result = a // b if isinstance(a, int) and isinstance(b, int) else a / b
            case "%":
                result = a % b
            case _:
                result = _power(a, b)
    except ZeroDivisionError:
        raise _Wrong("division by zero") from None
    except OverflowError:
        raise _Wrong("a number too large") from None
    checked: int | float = _bounded(result)
    return checked


def _power(base: float, exponent: float) -> int | float:
    if abs(exponent) > 100 or (base < 0 and not isinstance(exponent, int)):
        raise _Wrong("a power beyond 100")
    result: int | float = base**exponent
    return result


def _same(first: object, second: object) -> bool:
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return first == second


def _compare(operator: str, first: object, second: object) -> bool:
    if isinstance(first, str) and isinstance(second, str):
        order = (first > second) - (first < second)
    else:
        a, b = _number(first, operator), _number(second, operator)
        order = (a > b) - (a < b)
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]


def _matches(wanted: object, found: object) -> bool:
    """Ruby's ``===``: what ``when`` asks."""
    if isinstance(wanted, re.Pattern):
        return isinstance(found, str) and _search(wanted, found) is not None
    if isinstance(wanted, range):
        return isinstance(found, int) and found in wanted
    return _same(wanted, found)


def _search(pattern: object, text: object) -> int | None:
    if isinstance(text, re.Pattern):
        pattern, text = text, pattern
    if not isinstance(pattern, re.Pattern):
        raise _Wrong(f"`=~` expects a /regular expression/, not {_kind(pattern)}")
    if text is None:
        return None
    found = pattern.search(as_text(text)[:MAX_MATCHED])
    return None if found is None else found.start()


def _span(low: object, high: object, *, open_end: bool) -> range:
    if type(low) is not int or type(high) is not int:
        raise _Wrong(f"a range expects two integers, not {_kind(low)} and {_kind(high)}")
    if high - low > MAX_LENGTH:
        raise _Wrong(f"a range of more than {MAX_LENGTH}")
    return range(low, high if open_end else high + 1)


def _index(target: object, key: object) -> Any:
    if isinstance(target, Mapping):
        return target.get(as_text(key))
    if isinstance(target, str | list) and type(key) is int:
        return target[key] if -len(target) <= key < len(target) else None
    if isinstance(target, str) and isinstance(key, re.Pattern):
        found = key.search(target[:MAX_MATCHED])
        return None if found is None else found.group()
    if isinstance(target, str) and isinstance(key, str):
        return key if key in target else None
    raise _Wrong(f"`[…]` cannot look up {_kind(key)} in {_kind(target)}")


def _to_i(value: Any) -> int:
    if isinstance(value, str):
        found = re.match(r"\s*([-+]?\d{1,30})", value)
        return int(found[1]) if found else 0
    return int(value or 0)


def _to_f(value: Any) -> float:
    if isinstance(value, str):
        found = re.match(r"\s*[-+]?\d{1,30}(\.\d{1,30})?", value)
        return float(found.group()) if found else 0.0
    return float(value or 0)


def _rounded(how: Callable[[float], int]) -> Callable[..., Any]:
    def method(value: float, digits: int = 0) -> int | float:
        if digits == 0:
            return how(value)
        scale = 10.0 ** max(-30, min(30, digits))
        return how(value * scale) / scale

    return method


def _half_away(value: float) -> int:
    return math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)


def _ends(index: int) -> Callable[[Sequence[Any]], Any]:
    return lambda value: value[index] if value else None


def _sorted(value: Sequence[Any]) -> list[Any]:
    items = list(value)
    if not (all(isinstance(i, str) for i in items) or all(isinstance(i, int | float) for i in items)):
        raise _Wrong("`sort` expects only strings or only numbers")
    return sorted(items)


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _number_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | str) and not isinstance(value, bool))


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


_sized = _is(str, list, range, Mapping)
_items = _is(list, range)
_text = _is(str)
_numeric = _is(int, float)
_any = _is(object)

# method → (whose method it is, kinds of its arguments, how many of them are needed, what it does)
_METHODS: dict[str, tuple[Callable[[Any], bool], tuple[tuple[type, ...], ...], int, Callable[..., Any]]] = {
    "to_i": (_number_or_none, (), 0, _to_i),
    "to_f": (_number_or_none, (), 0, _to_f),
    "to_s": (_scalar, (), 0, as_text),
    "to_a": (lambda v: v is None or _items(v), (), 0, lambda v: list(v or ())),
    "nil?": (lambda _: True, (), 0, lambda v: v is None),
    "empty?": (_sized, (), 0, lambda v: len(v) == 0),
    "size": (_sized, (), 0, len),
    "length": (_sized, (), 0, len),
    "include?": (
        _sized,
        ((str, int, float, bool, type(None)),),
        1,
        lambda v, x: not (isinstance(v, str) and not isinstance(x, str)) and x in v,
    ),
    "key?": (_is(Mapping), ((str,),), 1, lambda v, key: key in v),
    "first": (_items, (), 0, _ends(0)),
    "last": (_items, (), 0, _ends(-1)),
    "min": (_items, (), 0, lambda v: _ends(0)(_sorted(v))),
    "max": (_items, (), 0, lambda v: _ends(-1)(_sorted(v))),
    "sort": (_items, (), 0, _sorted),
    "uniq": (_items, (), 0, lambda v: [x for i, x in enumerate(v) if x not in list(v)[:i]]),
    "reverse": (_is(list, str), (), 0, lambda v: v[::-1]),
    "join": (_items, ((str,),), 0, lambda v, by="": by.join(as_text(x) for x in v)),
    "split": (_text, ((str,),), 0, lambda v, by=None: v.split(by or None)),
    "strip": (_text, (), 0, str.strip),
    "upcase": (_text, (), 0, str.upper),
    "downcase": (_text, (), 0, str.lower),
    "start_with?": (_text, ((str,),), 1, str.startswith),
    "end_with?": (_text, ((str,),), 1, str.endswith),
    "sub": (_text, ((str,), (str,)), 2, lambda v, a, b: v.replace(a, b, 1)),
    "gsub": (_text, ((str,), (str,)), 2, lambda v, a, b: v.replace(a, b) if a else v),
    "match?": (_text, ((re.Pattern,),), 1, lambda v, pattern: _search(pattern, v) is not None),
    "abs": (_numeric, (), 0, abs),
    "floor": (_numeric, ((int,),), 0, _rounded(math.floor)),
    "ceil": (_numeric, ((int,),), 0, _rounded(math.ceil)),
    "round": (_numeric, ((int,),), 0, _rounded(_half_away)),
    "zero?": (_numeric, (), 0, lambda v: v == 0),
}


def _call(receiver: object, method: str, args: list[Any]) -> Any:
    if method not in _METHODS:
        raise _Wrong(f"method `{method}` is not understood, only {', '.join(sorted(_METHODS))}")
    accepts, kinds, needed, function = _METHODS[method]
    if not accepts(receiver):
        raise _Wrong(f"{_kind(receiver)} has no method `{method}`")
    if not needed <= len(args) <= len(kinds):
        raise _Wrong(f"`{method}` expects {len(kinds) or 'no'} argument(s), not {len(args)}")
    for arg, kind in zip(args, kinds, strict=False):
        if not isinstance(arg, kind):
            raise _Wrong(f"`{method}` cannot take {_kind(arg)}")
    return function(receiver, *args)
