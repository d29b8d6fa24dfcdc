"""Simulated worlds with a known truth."""

from mrgp.datasets.simulators import Simulation, city, dependent

__all__ = ["Simulation", "city", "dependent"]
