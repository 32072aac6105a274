"""The documentation as a web site, built by Sphinx from the pages that stand in the repository."""
