"""Cases of complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from make_op_cases import Cases, group


def _parts(g: Cases, op: str, x: Any) -> None:
    """Compare both parts of complex numbers that the operator `op` made."""
    for name in ("Real", "Imag"):
        t = getattr(g.tf.raw_ops, name)(input=x, Tout=x.dtype.real_dtype)
        g.keep(t, rtol=1e-4, atol=1e-5)


@group
def spectra(g: Cases) -> None:
    raw = g.tf.raw_ops
    x, y = g.floats(2, 3, 12), g.floats(2, 3, 12)
    for name, lengths in (("RFFT", [12]), ("RFFT", [7]), ("RFFT2D", [3, 12]),
                          ("RFFT2D", [2, 7]), ("RFFT3D", [2, 2, 10])):  # fmt: skip
        _parts(g, name, getattr(raw, name)(input=x, fft_length=lengths))
    padded = g.tf.signal.rfft2d(x, [5, 16])  # the operator itself takes no longer ones
    _parts(g, "RFFT2D", padded)
    c = raw.Complex(real=x, imag=y)
    for name in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D"):
        _parts(g, name, getattr(raw, name)(input=c))
    for name, lengths in (("IRFFT", [22]), ("IRFFT", [9]), ("IRFFT2D", [2, 11]),
                          ("IRFFT3D", [2, 3, 22])):  # fmt: skip
        g.op(name, input=c, fft_length=lengths, rtol=1e-4, atol=1e-5)
    wide = raw.Complex(real=g.floats(2, 9, dtype="float64"), imag=g.floats(2, 9, dtype="float64"),
                       Tout=g.tf.complex128)  # fmt: skip
    _parts(g, "FFT", raw.FFT(input=wide))
    large = g.input([3e30, 4e-30, 0.0, np.inf, -np.inf, 1.0], "float32")
    g.op("ComplexAbs", x=raw.Complex(real=large, imag=large[::-1]))
    g.op("ComplexAbs", x=raw.Complex(real=large, imag=large))
    g.op("Angle", input=c)
    _parts(g, "Conj", raw.Conj(input=c))
    constant = g.tf.constant(np.array([1 + 2j, -3j, 0.5], np.complex64))
    splat = g.tf.constant(np.complex64(2 - 1j), shape=(2, 3, 12))
    moved = g.tf.transpose(g.tf.reshape(c, (4, 6, 3)), (1, 0, 2))[1:5, :, ::-1]
    _parts(g, "Mul", moved * constant + g.tf.concat([moved[:2], -moved[2:]], 0))
    _parts(g, "Exp", g.tf.exp(splat * 0.25) * g.tf.square(c))
    g.keep(g.tf.shape(c))


@group
def dynamic_spectra(g: Cases) -> None:
    raw = g.tf.raw_ops
    x = g.input(g.random.uniform(-1, 1, (2, 200)), "float32", (None, None))
    found = g.tf.signal.stft(x, 64, 32, fft_length=128, pad_end=True)
    magnitude = g.tf.abs(found)
    g.keep(magnitude, rtol=1e-4, atol=1e-5)
    weights = g.tf.signal.linear_to_mel_weight_matrix(12, 65, 16000, 80.0, 7600.0)
    mel = g.tf.math.log(g.tf.tensordot(magnitude, weights, 1) + 1e-3)
    g.keep(g.tf.signal.mfccs_from_log_mel_spectrograms(mel), rtol=1e-4, atol=1e-4)
    g.keep(g.tf.signal.inverse_stft(found, 64, 32, fft_length=128), rtol=1e-4, atol=1e-5)
    half = g.input(g.random.uniform(-1, 1, (2, 3, 7)), "float32", (None, None, None))
    _parts(g, "RFFT2D", raw.RFFT2D(input=half, fft_length=[2, 6]))
