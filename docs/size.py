"""How large the code is, and how much of it a command executes.

python -m docs.size
"""

import ast
import io
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "rollin", ROOT / "tests"
TRAIN = "train point-umaze --steps 300 --warmup 64 --log-every 100 --eval-episodes 1 --out runs/one"
COMMANDS = {"rollin train point-umaze": (TRAIN,), "rollin report": (TRAIN, "report runs")}
"""What is counted, and the commands that come before it."""
COUNT = """
import sys
from rollin.cli import main
try:
    main(sys.argv[1:])
finally:
    names = {name for name in sys.modules if name.split(".")[0] == "rollin"}
    print("modules:", len(names))
"""


def lines_in(paths: Sequence[Path]) -> int:
    """Lines of all files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def code_lines(path: Path) -> int:
    """Lines of a module without blank ones, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    kept: set[int] = set()
    skipped = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENCODING, tokenize.ENDMARKER,
    }  # fmt: skip
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            kept.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                kept.difference_update(range(first, last + 1))
    return len(kept)


def parallel_assignments(path: Path) -> Iterator[ast.Assign]:
    """Every `a, b = x, y` of a module; swaps and unpacking of one value do not count."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            (target, *_) = node.targets
            if isinstance(target, ast.Tuple):
                left = {ast.unparse(part) for part in target.elts}
                right = {ast.unparse(part) for part in node.value.elts}
                if left != right:
                    yield node


def executed(commands: Sequence[str]) -> int:
    """Modules of rollin that the last of some commands has imported when it ends."""
    with tempfile.TemporaryDirectory() as directory:
        printed = ""
        for command in commands:
            printed = subprocess.run(
                [sys.executable, "-c", COUNT, *command.split()],
                cwd=directory, check=True, capture_output=True, text=True,
            ).stdout  # fmt: skip
    return int(printed.rpartition("modules:")[2])


def main() -> None:
    """Print the table."""
    source, tests = sorted(SOURCE.rglob("*.py")), sorted(TESTS.rglob("*.py"))
    total = lines_in(source)
    pairs = sum(1 for path in source for _ in parallel_assignments(path))
    rows = {
        "source lines": f"{total:,}",
        "modules": str(len(source)),
        "code lines (no docstrings, comments, blanks)": f"{sum(map(code_lines, source)):,}",
        "parallel assignments per 1,000 lines": f"{1000 * pairs / total:.1f}",
        "test lines": f"{lines_in(tests):,}",
    }
    rows |= {f"modules imported by `{name}`": str(executed(c)) for name, c in COMMANDS.items()}
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:{width}}  {value:>8}")


if __name__ == "__main__":
    main()
