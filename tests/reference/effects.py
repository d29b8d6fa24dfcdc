"""Levels and slopes as weights of a Bayesian linear model beside a GP, densely."""

import numpy as np


def weights(features, prior, rest, y):
    """Return mean and covariance of w in y ~ N(features w, rest), w ~ N(0, diag(prior)).

    `rest` is the covariance of all else: other terms of the kernel, and noise.
    """
    precision = np.diag(1.0 / prior) + features.T @ np.linalg.inv(rest) @ features
    covariance = np.linalg.inv(precision)
    return covariance @ features.T @ np.linalg.inv(rest) @ y, covariance
