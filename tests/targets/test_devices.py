"""Finding AMD devices: the kernel's list of them, and a driver that cannot answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgx_mlir.targets import devices


def test_gfx_names_from_the_kernel_s_list(tmp_path: Path) -> None:
    for node, text in {
        "0": "cpu_cores_count 64\nsimd_count 0\ngfx_target_version 0\n",
        "1": "simd_count 1216\ngfx_target_version 90402\n",
        "2": "simd_count 416\ngfx_target_version 90010\n",
        "10": "simd_count 192\ngfx_target_version 110000\n",
        "11": "simd_count 128\ngfx_target_version 120001\n",
        "12": "simd_count 1024\ngfx_target_version 90500\n",
        "13": "damaged",
    }.items():
        (tmp_path / node).mkdir()
        (tmp_path / node / "properties").write_text(text)
    want = ["gfx942", "gfx90a", "gfx1100", "gfx1201", "gfx950"]
    assert devices.topology_archs(tmp_path) == want
    assert devices.topology_archs(tmp_path / "none") == []


@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is an AMD device here")
def test_a_library_that_is_no_driver_means_no_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IREE_HIP_DYLIB_PATH", str(tmp_path))
    devices._probed.cache_clear()
    assert devices.gpu_devices() == ()
    why = f"no AMD GPU can be used through the HIP library in {tmp_path}; UNAVAILABLE; "
    assert devices.why_no_device().startswith(why)
    monkeypatch.setattr(devices, "_PROBE", "import os; os.abort()")
    devices._probed.cache_clear()
    assert devices.gpu_devices() == ()
    assert "HIP ended its process with status -6" in devices.why_no_device()
    monkeypatch.setattr(devices, "_PROBE", 'print(\'[["a", "gfx90a"], ["b", ""]]\')')
    devices._probed.cache_clear()
    found = [(d.index, d.name, d.arch) for d in devices.gpu_devices()]
    assert found == [(0, "a", "gfx90a"), (1, "b", "")]
    devices._probed.cache_clear()
