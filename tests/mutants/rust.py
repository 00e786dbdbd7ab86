"""Mutants of Rust: changes of single expressions, statements and returned values, all written into one source file.

Each mutant is behind a switch (mutant schemata), so that a crate is compiled once for all of them. For example
``a < b`` becomes ``(if crate::mutants::is(17) { (a) <= (b) } else { a < b })``. Comments mark where a mutant begins and
ends, by which an error of the compiler is assigned to its mutant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tree_sitter
import tree_sitter_rust

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))

COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPUTED = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"}
OPERATORS = COMPARED | COMPUTED | {"&&": "||", "||": "&&"}
ASSIGNED = {f"{operator}=": f"{other}=" for operator, other in COMPUTED.items()}
BOOLEANS = {"true": "false", "false": "true"}

CONSTANT = {"const_item", "static_item", "enum_item", "macro_definition", "macro_invocation", "attribute_item"}
"""Items and macros without expressions that are computed when the code runs."""
NOT_COMPUTED = {"pattern", "type", "type_arguments", "return_type", "parameters", "length", "field", "name", "label"}
"""Fields of syntax nodes that hold patterns, types and names."""
INTEGERS = re.compile(r"[iu](8|16|32|64|128|size)")
DEFAULTED = re.compile(r"(\w+::)*\w+(<.*>)?", re.DOTALL)
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod (\w+);")

SWITCH = """
pub(crate) mod mutants {{
    use std::sync::LazyLock;
    use std::sync::atomic::{{AtomicBool, AtomicUsize, Ordering}};
    const UNREAD: usize = usize::MAX;
    static CHOSEN: AtomicUsize = AtomicUsize::new(UNREAD);
    static REACHED: LazyLock<Option<std::ffi::OsString>> =
        LazyLock::new(|| std::env::var_os("HEADSTACK_MUTANTS_REACHED"));
    static SEEN: [AtomicBool; {count}] = [const {{ AtomicBool::new(false) }}; {count}];
    #[inline(always)]
    pub(crate) fn is(number: usize) -> bool {{
        match CHOSEN.load(Ordering::Relaxed) {{
            UNREAD => is_at_first(number),
            chosen => chosen == number,
        }}
    }}
    #[cold]
    fn is_at_first(number: usize) -> bool {{
        if let Some(folder) = &*REACHED {{
            if !SEEN[number].load(Ordering::Relaxed) && !SEEN[number].swap(true, Ordering::Relaxed) {{
                let _ = std::fs::write(std::path::Path::new(folder).join(number.to_string()), "");
            }}
            return false;
        }}
        let chosen = std::env::var("HEADSTACK_MUTANT").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
        CHOSEN.store(chosen, Ordering::Relaxed);
        chosen == number
    }}
}}
"""
"""What lib.rs of a mutated crate gets: the choice of a mutant, and a record of those that a test reaches."""


@dataclass(frozen=True)
class Mutant:
    """A change of the bytes from start to end."""

    start: int
    end: int
    line: int
    mutated: str
    what: str
    is_expression: bool = True

    def written(self, number: int, original: str) -> str:
        """Both forms and the switch between them, between the marks of the mutant."""
        chosen = f"if crate::mutants::is({number}) {{ {self.mutated} }}"
        if self.start != self.end:
            chosen += f" else {{ {original} }}"
        return f"/*{number}[*/{f'({chosen})' if self.is_expression else chosen}/*]{number}*/"


def text(node: tree_sitter.Node | None) -> str:
    """The source of a node."""
    return node.text.decode() if node is not None and node.text is not None else ""


def sources(folder: Path, crate: Path) -> list[Path]:
    """The Rust files of a folder, or the file itself, without modules of tests."""
    texts = [path.read_text(encoding="utf-8") for path in (crate / "src").rglob("*.rs")]
    tests = {"tests"}.union(*(TEST_MODULE.findall(one) for one in texts))
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.rs"))
    return [path for path in files if not tests & {*path.relative_to(crate).with_suffix("").parts}]


def mutants(source: bytes) -> list[Mutant]:
    """All mutants of a source file, in the order of their places."""
    lines = source.decode().splitlines()
    found = []
    for function in functions(PARSER.parse(source).root_node):
        body = function.child_by_field_name("body")
        assert body is not None
        found += [*returned(function, body), *(one for node in computed(body) for one in changes_of(node))]
    named = [
        Mutant(
            one.start,
            one.end,
            one.line,
            one.mutated,
            f"{one.what} in `{lines[one.line - 1].strip()}`",
            one.is_expression,
        )
        for one in found
    ]
    return sorted(named, key=lambda one: (one.start, one.start != one.end, -one.end))


def compiled(node: tree_sitter.Node) -> Iterator[tuple[str | None, tree_sitter.Node]]:
    """The children of a node that are compiled outside tests on every platform, each with its field."""
    is_left_out = False
    for index, child in enumerate(node.children):
        if child.type == "attribute_item":
            is_left_out |= re.match(r"#\[(cfg\(|test\b)", text(child)) is not None
        elif "comment" not in child.type:
            if not is_left_out:
                yield node.field_name_for_child(index), child
            is_left_out = False


def functions(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """The functions with a body that are not computed by the compiler."""
    for _, child in compiled(node):
        if child.type == "function_item" and not re.match(r"[^(]*\bconst (unsafe )?(extern )?fn", text(child)):
            yield child
        if child.type not in CONSTANT:
            yield from functions(child)


def computed(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """The nodes of a function's body; functions within are functions of their own."""
    for field, child in compiled(node):
        if field == "pattern" and child.type == "match_pattern":
            condition = child.child_by_field_name("condition")
            if condition is not None:
                yield condition
                yield from computed(condition)
        elif field not in NOT_COMPUTED and child.type not in {*CONSTANT, "function_item", "const_block"}:
            yield child
            yield from computed(child)


def changes_of(node: tree_sitter.Node) -> Iterator[Mutant]:
    """The mutants of one node."""

    def mutant(mutated: str, what: str, at: tree_sitter.Node = node, is_expression: bool = True) -> Mutant:
        return Mutant(at.start_byte, at.end_byte, at.start_point.row + 1, mutated, what, is_expression)

    left, operator, right = (text(node.child_by_field_name(name)) for name in ("left", "operator", "right"))
    condition = node.child_by_field_name("condition")
    match node.type:
        case "binary_expression" if operator in OPERATORS:
            other = OPERATORS[operator]
            yield mutant(f"({left}) {other} ({right})", f"{operator} becomes {other}")
        case "compound_assignment_expr" if operator in ASSIGNED:
            other = ASSIGNED[operator]
            yield mutant(f"{left} {other} {right}", f"{operator} becomes {other}")
        case "unary_expression" if text(node).startswith("!"):
            yield mutant(text(node.children[-1]), "! is deleted")
        case "integer_literal" | "float_literal":
            one = "1.0" if node.type == "float_literal" else "1"
            yield mutant(f"{text(node)} + {one}", f"{text(node)} becomes {text(node)} + {one}")
        case "boolean_literal":
            yield mutant(BOOLEANS[text(node)], f"{text(node)} becomes {BOOLEANS[text(node)]}")
        case "if_expression" if condition is not None and condition.type not in ("let_chain", "let_condition"):
            yield mutant(f"!({text(condition)})", "the condition is negated", condition)
        case "expression_statement" if re.fullmatch(r"(call|try)_expression", node.children[0].type):
            if text(node).endswith(";"):
                yield mutant("", "the call is deleted", is_expression=False)


def returned(function: tree_sitter.Node, body: tree_sitter.Node) -> Iterator[Mutant]:
    """Mutants that return a default at the start of a function."""
    if text(function.child_by_field_name("name")) == "default":
        return
    kind = function.child_by_field_name("return_type")
    start, line = body.start_byte + 1, function.start_point.row + 1
    for value in defaults(kind):
        yield Mutant(start, start, line, f"return {value};", f"{value} is returned", False)


def defaults(kind: tree_sitter.Node | None) -> list[str]:
    """Values of a type, for example 0 and 1 of an integer; none where nothing can be built by its name alone."""
    name = text(kind)
    if INTEGERS.fullmatch(name):
        return ["0", "1"]
    if name in ("f32", "f64"):
        return ["0.0", "1.0"]
    if name == "bool":
        return ["false", "true"]
    if name in ("", "()"):
        return ["()"]
    if re.fullmatch(r"&('\w+ )?str", name):
        return ['""']
    if name.startswith("Option<"):
        return ["None"]
    arguments = kind.child_by_field_name("type_arguments") if kind is not None else None
    if re.match(r"(\w+::)*Result<", name) and arguments is not None:
        return [f"Ok({value})" for value in defaults(arguments.named_children[0])]
    return ["Default::default()"] if DEFAULTED.fullmatch(name) else []


def schemata(source: bytes, chosen: Sequence[tuple[int, Mutant]]) -> bytes:
    """The source with numbered mutants, which are in the order of their places."""
    written, at, rest = b"", 0, list(chosen)
    while rest:
        number, mutant = rest.pop(0)
        inner = [(one, other) for one, other in rest if mutant.start < mutant.end and other.end <= mutant.end]
        rest = rest[len(inner) :]
        moved = [(one, shifted(other, mutant.start)) for one, other in inner]
        original = schemata(source[mutant.start : mutant.end], moved).decode()
        written += source[at : mutant.start] + mutant.written(number, original).encode()
        at = mutant.end
    return written + source[at:]


def shifted(mutant: Mutant, by: int) -> Mutant:
    """The mutant in a text that starts later."""
    start, end = mutant.start - by, mutant.end - by
    return Mutant(start, end, mutant.line, mutant.mutated, mutant.what, mutant.is_expression)


def at_fault(source: bytes, start: int, end: int) -> list[int]:
    """The numbers of the mutants that an error from byte start to end is about: the innermost one around it, else all
    within it."""
    marks = {int(number): place for place, number in marked(rb"/\*(\d+)\[\*/", source)}
    ends = {int(number): place for place, number in marked(rb"/\*\](\d+)\*/", source)}
    around = [number for number, place in marks.items() if place <= start and end <= ends[number]]
    if around:
        return [max(around, key=marks.__getitem__)]
    return [number for number, place in marks.items() if start <= place < end]


def marked(pattern: bytes, source: bytes) -> Iterator[tuple[int, bytes]]:
    """The places of a mark, each with the number in it."""
    return ((found.start(), found[1]) for found in re.finditer(pattern, source))
