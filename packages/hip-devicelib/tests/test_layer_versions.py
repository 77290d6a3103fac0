from types import ModuleType

import pytest

from hip_devicelib.layer_versions import check_layer


def layer(version: str) -> ModuleType:
    module = ModuleType("some_layer")
    module.__version__ = version  # type: ignore[attr-defined]
    module.__file__ = "/somewhere/some_layer/__init__.py"
    return module


@pytest.mark.parametrize("version", ["0.2", "0.2.0", "0.2.7", "0.2.1rc1", "0.2.0.dev3+g12ab", "0.10.0", "0.11.9"])
def test_releases_that_fit(version: str) -> None:
    check_layer("a-package", layer(version), "some-layer>=0.2,<0.12")


@pytest.mark.parametrize("version", ["0.1.0", "0.1.99", "0.2.0", "0.2.2rc1", "0.3.0", "0.12.1", "1.0", "1"])
def test_releases_that_do_not(version: str) -> None:
    with pytest.raises(ImportError, match="a-package needs") as caught:
        check_layer("a-package", layer(version), "some-layer>=0.2.3,<0.3")
    assert str(caught.value) == (
        f"a-package needs some-layer>=0.2.3,<0.3, and {version} is what it found, in "
        "/somewhere/some_layer/__init__.py: pip install 'some-layer>=0.2.3,<0.3'"
    )
    assert (caught.value.name, caught.value.path) == ("some_layer", "/somewhere/some_layer/__init__.py")
