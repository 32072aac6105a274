"""Wrong backwards in varied styles, and the changes that put them right."""
