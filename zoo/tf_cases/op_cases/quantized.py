"""Cases of quantisation operators."""

from __future__ import annotations

import numpy as np
from make_op_cases import Cases, group


@group
def quantisation(g: Cases) -> None:
    x = g.floats(4, 5, low=-7, high=7)
    f = np.float32
    g.op("FakeQuantWithMinMaxArgs", inputs=x)
    g.op("FakeQuantWithMinMaxArgs", inputs=x, min=-2.3, max=5.1, num_bits=4, narrow_range=True)
    g.op("FakeQuantWithMinMaxVars", inputs=x, min=f(-3.3), max=f(4.7))
    g.op("FakeQuantWithMinMaxVars", inputs=x, min=g.input(0.5, "float32"), max=f(4.7))
    g.op("FakeQuantWithMinMaxVarsPerChannel", inputs=x, min=f([-1, -2, -3, -4, -5]),
         max=f([1, 2, 3, 4, 5.5]), narrow_range=True)  # fmt: skip
    for narrow in (False, True):
        for signed in (False, True):
            g.op("QuantizeAndDequantizeV2", input=x, input_min=f(-3), input_max=f(5),
                 signed_input=signed, range_given=True, narrow_range=narrow)  # fmt: skip
    g.op("QuantizeAndDequantizeV2", input=x, input_min=f(0), input_max=f(0))
    g.op("QuantizeAndDequantizeV3", input=x, input_min=f(-3), input_max=f(5), num_bits=6)
    g.op("QuantizeAndDequantizeV4", input=x, input_min=f(-3), input_max=f(5),
         range_given=True, round_mode="HALF_UP")  # fmt: skip
    raw = g.tf.raw_ops
    for kind in ("quint8", "qint8"):
        for mode in ("MIN_COMBINED", "SCALED"):
            q = raw.QuantizeV2(input=x, min_range=f(-3), max_range=f(5), T=kind, mode=mode)
            g.keep(q[1])
            g.keep(q[2])
            g.keep(raw.Bitcast(input=q[0], type=kind[1:]))
            g.op("Dequantize", input=q[0], min_range=q[1], max_range=q[2], mode=mode)
