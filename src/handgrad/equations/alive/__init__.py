"""The numbers of a run opened into what they are computed from, for pages that a script steps."""
