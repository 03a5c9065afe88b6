"""The settings that the driver gives to a workload."""

import os

QUICK = bool(os.environ.get("BANK_QUICK"))
SCALE = float(os.environ.get("BANK_TIME_SCALE", "1"))
DEVICES = int(os.environ.get("BANK_DEVICES", "1"))


def sized(usual, quick):
    return quick if QUICK else usual


def times(usual, quick=1):
    """A number of repetitions."""
    return max(1, round((quick if QUICK else usual) * SCALE))
