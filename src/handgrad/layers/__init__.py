"""Layers: parameters and one op, or a composition of layers. One small file per family."""

from handgrad.layers.activation import Activation
from handgrad.layers.add_norm import AddNorm
from handgrad.layers.attention import KeysValues, MultiHeadAttention
from handgrad.layers.base import Layer, OpLayer, Row, merge, part, walk
from handgrad.layers.conv import Conv1d, Conv2d, ConvTranspose2d
from handgrad.layers.dense import Dense
from handgrad.layers.dropout import Dropout
from handgrad.layers.embedding import Embedding
from handgrad.layers.feed_forward import FeedForward
from handgrad.layers.flat import FlatArrays
from handgrad.layers.flatten import Flatten
from handgrad.layers.gru import GRU
from handgrad.layers.last_step import LastStep
from handgrad.layers.lstm import LSTM
from handgrad.layers.normalization import BatchNorm, LayerNorm, RMSNorm
from handgrad.layers.pooling import AvgPool2d, MaxPool2d
from handgrad.layers.positions import LearnedPositions, PositionalEncoding
from handgrad.layers.residual import Residual
from handgrad.layers.rnn import RNN, LeakyRNN
from handgrad.layers.sequential import Sequential
from handgrad.layers.standardize import Standardize
from handgrad.layers.transformer import TransformerDecoder, TransformerEncoder
from handgrad.layers.transformer_block import TransformerBlock

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Activation",
    "AddNorm",
    "AvgPool2d",
    "BatchNorm",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "Dense",
    "Dropout",
    "Embedding",
    "FeedForward",
    "FlatArrays",
    "Flatten",
    "KeysValues",
    "LastStep",
    "Layer",
    "LayerNorm",
    "LeakyRNN",
    "LearnedPositions",
    "MaxPool2d",
    "MultiHeadAttention",
    "OpLayer",
    "PositionalEncoding",
    "RMSNorm",
    "Residual",
    "Row",
    "Sequential",
    "Standardize",
    "TransformerBlock",
    "TransformerDecoder",
    "TransformerEncoder",
    "merge",
    "part",
    "walk",
]
