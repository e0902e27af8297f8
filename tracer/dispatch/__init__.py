"""Which kernel does this call run? The checkout's own host code, interpreted for one call on one device.

Each name is loaded when it is first used: a question needs less than a table or a profile.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.dispatch.answers import (
        Argument,
        Assumption,
        Call,
        Decision,
        Device,
        Launch,
        Operator,
        Outcome,
        Prediction,
        Reached,
        Refusal,
        Tensor,
        Unsupported,
        Warned,
    )
    from tracer.dispatch.decoding import DecodedName, Decoder, ExampleCall, decode
    from tracer.dispatch.gpus import custom_device, device, devices
    from tracer.dispatch.kernel_name import KernelNameError
    from tracer.dispatch.profiles import KernelTime, kernels_in_text, read_profile
    from tracer.dispatch.query import Dispatcher, predict
    from tracer.dispatch.questions import Answer, Question, ask, predict_question
    from tracer.dispatch.records import answer_calls, prediction_record
    from tracer.dispatch.tables import Drift, TileRow, TileTable, all_specializations, gpu_classes

__all__ = [
    "Answer",
    "Argument",
    "Assumption",
    "Call",
    "Decision",
    "DecodedName",
    "Decoder",
    "Device",
    "Dispatcher",
    "Drift",
    "ExampleCall",
    "KernelNameError",
    "KernelTime",
    "Launch",
    "Operator",
    "Outcome",
    "Prediction",
    "Question",
    "Reached",
    "Refusal",
    "Tensor",
    "TileRow",
    "TileTable",
    "Unsupported",
    "Warned",
    "all_specializations",
    "answer_calls",
    "ask",
    "custom_device",
    "decode",
    "device",
    "devices",
    "gpu_classes",
    "kernels_in_text",
    "predict",
    "predict_question",
    "prediction_record",
    "read_profile",
]

_MODULES = {
    "Answer": "questions",
    "Argument": "answers",
    "Assumption": "answers",
    "Call": "answers",
    "Decision": "answers",
    "DecodedName": "decoding",
    "Decoder": "decoding",
    "Device": "answers",
    "Dispatcher": "query",
    "Drift": "tables",
    "ExampleCall": "decoding",
    "KernelNameError": "kernel_name",
    "KernelTime": "profiles",
    "Launch": "answers",
    "Operator": "answers",
    "Outcome": "answers",
    "Prediction": "answers",
    "Question": "questions",
    "Reached": "answers",
    "Refusal": "answers",
    "Tensor": "answers",
    "TileRow": "tables",
    "TileTable": "tables",
    "Unsupported": "answers",
    "Warned": "answers",
    "all_specializations": "tables",
    "answer_calls": "records",
    "ask": "questions",
    "custom_device": "gpus",
    "decode": "decoding",
    "device": "gpus",
    "devices": "gpus",
    "gpu_classes": "tables",
    "kernels_in_text": "profiles",
    "predict": "query",
    "predict_question": "questions",
    "prediction_record": "records",
    "read_profile": "profiles",
}


def __getattr__(name: str) -> Any:
    """Load a name from its module."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'tracer.dispatch' has no attribute '{name}'")
    return getattr(importlib.import_module(f"tracer.dispatch.{module}"), name)
