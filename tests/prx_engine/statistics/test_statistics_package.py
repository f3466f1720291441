from __future__ import annotations

import subprocess
import sys

import pytest

import prx_engine.statistics as package


@pytest.mark.parametrize("module", ["sample_ratio", "spending"])
def test_listings_load_neither_numpy_nor_scipy(module: str) -> None:
    code = f"import sys, prx_engine.statistics.{module}; print(*{{'numpy', 'scipy'}} & sys.modules.keys())"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def test_the_whole_package_does_without_scipy_stats() -> None:
    code = "import sys; from prx_engine.statistics import *; print('scipy.stats' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "False"


@pytest.mark.parametrize("name", package.__all__)
def test_every_public_name_is_found(name: str) -> None:
    assert getattr(package, name) is not None
    assert name in dir(package)


def test_other_names_are_refused_as_usual() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'median'"):
        package.median  # noqa: B018
