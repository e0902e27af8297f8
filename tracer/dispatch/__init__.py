"""Which kernel does this call run? The checkout's own host code, interpreted for one call on one device."""

from __future__ import annotations

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
    Refusal,
    Tensor,
    Unsupported,
    Warned,
)
from tracer.dispatch.decoding import DecodedName, Decoder, ExampleCall, decode
from tracer.dispatch.devices import custom_device, device, devices
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
