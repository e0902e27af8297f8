"""Turns answers into text: one module per output format. It knows answers, not checkouts."""
