"""Layers: parameters and one op, or a composition of layers. One small file per family."""

from handgrad.layers.activation import Activation
from handgrad.layers.base import Layer, OpLayer, Row, merge, part, walk
from handgrad.layers.conv import Conv1d, Conv2d, ConvTranspose2d
from handgrad.layers.dense import Dense
from handgrad.layers.dropout import Dropout
from handgrad.layers.embedding import Embedding
from handgrad.layers.flat import FlatArrays
from handgrad.layers.flatten import Flatten
from handgrad.layers.normalization import BatchNorm, LayerNorm, RMSNorm
from handgrad.layers.pooling import AvgPool2d, MaxPool2d
from handgrad.layers.residual import Residual
from handgrad.layers.sequential import Sequential
from handgrad.layers.standardize import Standardize

__all__ = [
    "Activation",
    "AvgPool2d",
    "BatchNorm",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "Dense",
    "Dropout",
    "Embedding",
    "FlatArrays",
    "Flatten",
    "Layer",
    "LayerNorm",
    "MaxPool2d",
    "OpLayer",
    "RMSNorm",
    "Residual",
    "Row",
    "Sequential",
    "Standardize",
    "merge",
    "part",
    "walk",
]
