# python/setup.py - the tag of a wheel that holds a library
from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class BinaryDistribution(Distribution):
    """The library makes the wheel one of a platform."""

    def has_ext_modules(self):
        return True


class AnyPython3(bdist_wheel):
    """The library is loaded by cffi in ABI mode: one wheel is for every Python 3."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=BinaryDistribution, cmdclass={"bdist_wheel": AnyPython3})
