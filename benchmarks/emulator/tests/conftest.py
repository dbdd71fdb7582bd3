"""The emulator that these tests run on, as in tests/emulator."""

from tests.emulator.conftest import library as library
from tests.emulator.conftest import native as native
