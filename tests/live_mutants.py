"""Break the live rooms one by one and see whether the tests notice, as tests/mutants.py does for the rules."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIVE = "src/doublesampling/live"

MUTANTS = [
    ("migrations/versions/v0001.py", 'sa.UniqueConstraint("decision", "revision", name="ds_outcomes_revision"),', "",
     "test_live_crowds.py"),
    ("migrations/versions/v0001.py", "BEFORE UPDATE OR DELETE OR TRUNCATE", "BEFORE TRUNCATE", "test_live_store.py"),
    ("migrations/versions/v0001.py", "BEFORE {change} ON", "AFTER INSERT ON", "test_live_experiment.py"),
    ("snapshot.py", "xid < self.xmax and xid not in self.running", "xid < self.xmax", "test_live_store.py"),
    ("postgres.py", 'isolation_level="REPEATABLE READ"', 'isolation_level="READ COMMITTED"', "test_live_store.py"),
    ("memory.py", "extend(belief, settled, rows[cut:]).state", "settled.state", "test_live_store.py"),
    ("memory.py", "if row.xid >= seen.xmin), len(rows))", "if row.xid >= 10**18), len(rows))", "test_live_store.py"),
    ("knowledge.py", "and row.place < fold.watermark", "and False", "test_live_beliefs.py"),
    ("knowledge.py", "beta[row.arm] -= change", "beta[row.arm] += change", "test_live_experiment.py"),
    ("knowledge.py", "return False\n    priors", "return True\n    priors", "test_live_beliefs.py"),
    ("deciding.py", "realization=number)", "realization=0)", "test_live_experiment.py"),
    ("asking.py", "time = known.decisions + 1 + position", "time = known.decisions + 1", "test_live_experiment.py"),
    ("telling.py", "if reward in (against[0]", "if True or reward in (against[0]", "test_live_experiment.py"),
    ("telling.py", "if not row[\"imputed\"]]", "]", "test_live_experiment.py"),
    ("telling.py", "asked[decision].experiment != book.id", "False", "test_live_bad_input.py"),
    ("sqlite.py", "PRAGMA synchronous=FULL", "PRAGMA synchronous=OFF", "test_live_store.py"),
    ("sqlite.py", '"BEGIN IMMEDIATE" if writes else "BEGIN"', '"BEGIN"', "test_live_crowds.py"),
    ("troubles.py", 'name == "SQLITE_FULL"', 'name == "SQLITE_NEVER"', "test_live_crowds.py"),
    ("upgrade.py", "if version > HEAD:", "if False:", "test_live_store.py"),
    ("forward.py", "1.0 - means.mean()", "means.mean()", "test_live_cli.py"),
]  # fmt: skip


def noticed(file: str, right: str, wrong: str, tests: str) -> bool:
    """Whether the tests fail on a copy with one break."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "out", ".*_cache"))
        path = copy / LIVE / file
        text = path.read_text()
        if text.count(right) < 1:
            sys.exit(f"{file} no longer holds {right!r}: bring tests/live_mutants.py up to date.")
        path.write_text(text.replace(right, wrong))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", f"tests/{tests}"]
        environment = {"PYTHONPATH": str(copy / "src"), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        return b"FAILED tests/" in subprocess.run(command, cwd=copy, env=environment, capture_output=True).stdout


def main() -> int:
    """Try every mutant; the exit status is the number that lived."""
    lived = 0
    for file, right, wrong, tests in MUTANTS:
        seen = noticed(file, right, wrong, tests)
        lived += not seen
        print(f"{'noticed' if seen else 'LIVED  '}  {file}: {right}  ->  {wrong or '(nothing)'}", flush=True)
    print(f"{len(MUTANTS) - lived} of {len(MUTANTS)} breaks noticed")
    return lived


if __name__ == "__main__":
    sys.exit(main())
