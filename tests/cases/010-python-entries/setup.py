from setuptools import setup

NAME = "beta"
setup(name=NAME, ext_modules=[])
