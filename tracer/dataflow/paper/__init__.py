"""The papers' algorithms as executable listings.

Each module is one algorithm: a NumPy function whose variables are the paper's symbols, and a table of those symbols.
The functions are read as syntax by :mod:`tracer.dataflow.listing`, which needs no NumPy, and run by the tests.
"""
