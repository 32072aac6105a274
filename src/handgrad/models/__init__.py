"""Whole models, one readable file each: a `Layer` from its inputs to the scores.

Scores have the classes last: (N, K), or (N, T, K) for every step of a sequence, which
`hg.losses.CrossEntropy(class_axis=-1)` takes. How text is made with a trained model is in
`decoding`, from and to text in `translating`.
"""

from typing import TYPE_CHECKING

from handgrad.models.bert import Bert
from handgrad.models.cls_encoder import ClsEncoder
from handgrad.models.cnn import CNN
from handgrad.models.decoding import Hypothesis, beam, greedy, sample
from handgrad.models.gpt import GPT
from handgrad.models.llama import Llama
from handgrad.models.mlp import MLP
from handgrad.models.seq2seq import Seq2Seq
from handgrad.models.sequence_classifier import SequenceClassifier
from handgrad.models.sequence_tagger import SequenceTagger
from handgrad.models.transformer import Transformer
from handgrad.models.translating import translate
from handgrad.models.two_layer_net import TwoLayerNet
from handgrad.suggestions import suggesting

__all__ = [
    "CNN",
    "GPT",
    "MLP",
    "Bert",
    "ClsEncoder",
    "Hypothesis",
    "Llama",
    "Seq2Seq",
    "SequenceClassifier",
    "SequenceTagger",
    "Transformer",
    "TwoLayerNet",
    "beam",
    "greedy",
    "sample",
    "translate",
]

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)
