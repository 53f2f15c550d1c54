"""Registries: who adds something writes its module and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dpntk.common.features.base import FEATURE_MAPS
from dpntk.common.registry import Registry
from dpntk.embed.exact.base import EXACT_FORMS
from dpntk.generate.kernels.base import KERNELS


def test_modules_of_a_folder_add_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "forms_of_animals"
    for module, lines in {
        "__init__.py": "",
        "base.py": "from dpntk.common.registry import Registry\nFORMS = Registry(__package__)\n",
        "cat.py": "from .base import FORMS\n@FORMS.add('cat')\ndef meow(): return 'meow'\n",
        "birds/__init__.py": "",
        "birds/owl.py": "from ..base import FORMS\n@FORMS.add('owl')\ndef hoot(): return 'hoot'\n",
    }.items():
        (folder / module).parent.mkdir(exist_ok=True)
        (folder / module).write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    import forms_of_animals.base  # type: ignore[import-not-found]

    try:
        forms = forms_of_animals.base.FORMS.entries()
        assert {name: say() for name, say in forms.items()} == {"cat": "meow", "owl": "hoot"}
    finally:
        for name in [name for name in sys.modules if name.startswith("forms_of_animals")]:
            del sys.modules[name]


def test_nothing_takes_the_place_of_another() -> None:
    registry: Registry[str, int] = Registry("nowhere")
    registry.add("one")(1)
    with pytest.raises(ValueError, match="two entries of one"):
        registry.add("one")(2)


def test_every_feature_map_has_its_forms() -> None:
    """All can be summed exactly; those that are parts of others have no kernel of their own."""
    maps: dict[str, object] = {**FEATURE_MAPS.entries()}
    assert {*EXACT_FORMS.entries()} == {*maps.values()}
    assert {*KERNELS.entries()} == {maps[kind] for kind in {*maps} - {"joint", "marginals"}}
