"""Measurements, printed as ratios of medians of runs made in turn on the same machine. Nothing here is a test."""
