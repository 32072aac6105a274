"""Reviews of a model when its training is over."""

from handgrad.training.reviews.pairs import PairsReview
from handgrad.training.reviews.sequences import SequencesReview
from handgrad.training.reviews.text import TextReview

__all__ = ["PairsReview", "SequencesReview", "TextReview"]
