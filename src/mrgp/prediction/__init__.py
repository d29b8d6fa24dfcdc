"""Predictions: a task, or what a source reports of it, on any support."""

from mrgp.prediction.predicting import predict, predict_values
from mrgp.prediction.values import Prediction

__all__ = ["Prediction", "predict", "predict_values"]
