"""How the adapters of the package were made: data, recipes, measurements. Not part of the installed package."""
