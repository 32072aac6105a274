from typing import Final

from . import additive_attention as additive_attention
from . import attention as attention
from . import avg_pool1d as avg_pool1d
from . import avg_pool2d as avg_pool2d
from . import batch_norm as batch_norm
from . import binary_cross_entropy as binary_cross_entropy
from . import conv1d as conv1d
from . import conv2d as conv2d
from . import conv_transpose1d as conv_transpose1d
from . import conv_transpose2d as conv_transpose2d
from . import cosine_attention as cosine_attention
from . import cross_entropy as cross_entropy
from . import ctc_loss as ctc_loss
from . import dense as dense
from . import dropout as dropout
from . import embedding as embedding
from . import erf as erf
from . import geglu as geglu
from . import gelu as gelu
from . import group_norm as group_norm
from . import gru as gru
from . import layer_norm as layer_norm
from . import leaky_relu as leaky_relu
from . import leaky_rnn as leaky_rnn
from . import linear as linear
from . import lstm as lstm
from . import matmul as matmul
from . import max_pool1d as max_pool1d
from . import max_pool2d as max_pool2d
from . import positional_encoding as positional_encoding
from . import relu as relu
from . import rms_norm as rms_norm
from . import rnn as rnn
from . import rotary as rotary
from . import sigmoid as sigmoid
from . import silu as silu
from . import sin as sin
from . import softmax as softmax
from . import squared_error as squared_error
from . import standardize as standardize
from . import swiglu as swiglu
from . import tanh as tanh

OPS: Final[tuple[str, ...]]
