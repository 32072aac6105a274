from typing import TYPE_CHECKING

# Type checkers cut circles of imports at those under TYPE_CHECKING: here, and not inside.
if TYPE_CHECKING:
    from handgrad.checking import CheckReport as CheckReport
    from handgrad.checking import check as check
    from handgrad.derivation.notes import Notes as Notes
    from handgrad.derivation.notes import notes as notes
    from handgrad.dispatch import SKIP as SKIP
    from handgrad.dispatch import engine as engine
    from handgrad.dispatch import get_engine as get_engine
    from handgrad.dispatch import get_precision as get_precision
    from handgrad.dispatch import get_threads as get_threads
    from handgrad.dispatch import precision as precision
    from handgrad.dispatch import set_engine as set_engine
    from handgrad.dispatch import set_precision as set_precision
    from handgrad.dispatch import set_threads as set_threads
    from handgrad.dispatch import threads as threads
    from handgrad.layers import GEGLU as GEGLU
    from handgrad.layers import GRU as GRU
    from handgrad.layers import LSTM as LSTM
    from handgrad.layers import RNN as RNN
    from handgrad.layers import Activation as Activation
    from handgrad.layers import AddNorm as AddNorm
    from handgrad.layers import AvgPool1d as AvgPool1d
    from handgrad.layers import AvgPool2d as AvgPool2d
    from handgrad.layers import BatchNorm as BatchNorm
    from handgrad.layers import Conv1d as Conv1d
    from handgrad.layers import Conv2d as Conv2d
    from handgrad.layers import ConvTranspose1d as ConvTranspose1d
    from handgrad.layers import ConvTranspose2d as ConvTranspose2d
    from handgrad.layers import Dense as Dense
    from handgrad.layers import Dropout as Dropout
    from handgrad.layers import Embedding as Embedding
    from handgrad.layers import FeedForward as FeedForward
    from handgrad.layers import Flatten as Flatten
    from handgrad.layers import GroupNorm as GroupNorm
    from handgrad.layers import InstanceNorm as InstanceNorm
    from handgrad.layers import LastStep as LastStep
    from handgrad.layers import LayerNorm as LayerNorm
    from handgrad.layers import LeakyRNN as LeakyRNN
    from handgrad.layers import LearnedPositions as LearnedPositions
    from handgrad.layers import MaxPool1d as MaxPool1d
    from handgrad.layers import MaxPool2d as MaxPool2d
    from handgrad.layers import MultiHeadAttention as MultiHeadAttention
    from handgrad.layers import PositionalEncoding as PositionalEncoding
    from handgrad.layers import Residual as Residual
    from handgrad.layers import RMSNorm as RMSNorm
    from handgrad.layers import Sequential as Sequential
    from handgrad.layers import Standardize as Standardize
    from handgrad.layers import SwiGLU as SwiGLU
    from handgrad.layers import TransformerBlock as TransformerBlock
    from handgrad.layers import TransformerDecoder as TransformerDecoder
    from handgrad.layers import TransformerEncoder as TransformerEncoder
    from handgrad.memory import release_memory as release_memory
    from handgrad.models import CNN as CNN
    from handgrad.models import GPT as GPT
    from handgrad.models import MLP as MLP
    from handgrad.models import ClsEncoder as ClsEncoder
    from handgrad.models import Seq2Seq as Seq2Seq
    from handgrad.models import SequenceClassifier as SequenceClassifier
    from handgrad.models import SequenceTagger as SequenceTagger
    from handgrad.models import Transformer as Transformer
    from handgrad.models import TwoLayerNet as TwoLayerNet
    from handgrad.products import matmul as matmul
    from handgrad.training import Trainer as Trainer

    from . import data as data
    from . import initializers as initializers
    from . import layers as layers
    from . import limits as limits
    from . import losses as losses
    from . import models as models
    from . import ops as ops
    from . import optimizers as optimizers
    from . import training as training

__version__: str
