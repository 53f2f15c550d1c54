"""What a pass must have in common with the one that goes on with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from dpntk.embed.run.plan import code_files

LOADED = """
import json, sys
import dpntk.embed.pipeline, dpntk.embed.run.work_folder
ours = [module for name, module in sys.modules.items() if name.startswith("dpntk.")]
print(json.dumps([module.__file__ for module in ours]))
"""


def test_the_code_of_a_pass_is_all_of_dpntk_that_it_loads() -> None:
    """A module that changes sums, and whose change is not noticed, would spoil a resumed pass."""
    finished = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = {Path(file).resolve() for file in json.loads(finished.stdout)}
    assert len(loaded) > 40
    assert loaded <= {file.resolve() for file in code_files().values()}
