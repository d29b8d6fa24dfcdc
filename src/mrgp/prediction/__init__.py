"""Predictions: a task, or what a source reports of it, on any support."""

from mrgp.prediction.predicting import predict
from mrgp.prediction.values import Prediction

__all__ = ["Prediction", "predict"]
