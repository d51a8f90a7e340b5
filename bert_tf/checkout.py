"""Which state of the code is running."""

import subprocess
from pathlib import Path


def commit() -> str:
    """The commit of the checkout, marked where files differ from it; "" outside of one."""
    folder = Path(__file__).parent
    # An installed copy may stand inside the repository of another project.
    if not (folder.parent / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
