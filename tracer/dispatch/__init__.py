"""Which kernel does this call run? The checkout's own host code, interpreted for one call on one device."""

from __future__ import annotations

from tracer.dispatch.answers import (
    Call,
    Decision,
    Device,
    Launch,
    Operator,
    Prediction,
    Refusal,
    Tensor,
    Unsupported,
)
from tracer.dispatch.devices import custom_device, device, devices
from tracer.dispatch.query import Dispatcher, predict
from tracer.dispatch.questions import Answer, Question, ask, predict_question
from tracer.dispatch.records import answer_calls, prediction_record

__all__ = [
    "Answer",
    "Call",
    "Decision",
    "Device",
    "Dispatcher",
    "Launch",
    "Operator",
    "Prediction",
    "Question",
    "Refusal",
    "Tensor",
    "Unsupported",
    "answer_calls",
    "ask",
    "custom_device",
    "device",
    "devices",
    "predict",
    "predict_question",
    "prediction_record",
]
