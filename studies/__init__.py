"""The papers' tables and other long studies: run from a checkout, not part of the installed package."""
