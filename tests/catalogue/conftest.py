import pytest

from tests.catalogue.given import Example, read_example


@pytest.fixture(scope="session")
def example() -> Example:
    return read_example()
