"""How the package's adapters were made: data, recipes, measurements.

Not part of the installed package.
"""
