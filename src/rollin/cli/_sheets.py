"""What needs no runs: its tables on the screen, and with their records in a directory."""

from pathlib import Path

from rich.console import Console

from rollin.analysis.sheet import Findings
from rollin.report.sheets import sheet_csv, sheet_terminal, sheets_markdown
from rollin.runs.files import make_directory, write_atomically

TABLES = "tables.md"


def show_findings(findings: Findings, directory: Path, console: Console) -> None:
    """Write NAME.csv of every record and tables.md, and print the tables."""
    make_directory(directory)
    for record in findings.records:
        write_atomically(directory / f"{record.name}.csv", sheet_csv(record).encode())
    write_atomically(directory / TABLES, sheets_markdown(findings.tables).encode())
    for sheet in findings.tables:
        console.print(sheet_terminal(sheet))
    for name in (TABLES, *(f"{record.name}.csv" for record in findings.records)):
        console.print(f"Written: {directory / name}", soft_wrap=True)
