from handgrad.io.files import load_weights as load_weights
from handgrad.io.files import save as save

from . import hf as hf
