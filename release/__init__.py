"""How a release is made: distributions, licences, bill of materials, notes. `make dist`, `make sbom`."""
