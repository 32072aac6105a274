"""The native functions of kernels, with the arguments that each takes: calls are drawn from them.

An argument is `name<marks>:<axes>` for an array or `name=<value>` for a setting. Axes and values
are expressions of the letters of a function, which are drawn first. The marks of an array:

    ?    may be None
    >    an output: all of it is written
    ~    an output some of which may be left as it was
    &    read and written
    *    any strides, but rows in one piece; ** any strides at all
    ^    float64 whatever the others are, and . float32
    !    booleans
    #e#  int64 from 0 to e - 1, and #label# labels other than the blank 0
    %    integers as wide as the values, each 0
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from fuzz._letters import (
    Drawn,
    Letters,
    attention,
    classes,
    convolution,
    decoder,
    groups,
    pooling,
    sequences,
    sizes,
    tokens,
)

_KERNELS: Final = Path(__file__).parents[1] / "src" / "handgrad" / "kernels"
#: The macros that bind the functions of a value and a gradient, with the name that they get.
_BOUND: Final = re.compile(r'ActivationOp<[^>]*> \w+\("(\w+)"\)')

_ATTENTION: Final = (
    "bias?*:N,H,T,S mask?!*:N,H,T,S lengths?#S+1#:N keep?!*:N,H,T,S keep_scale=1.5 scale=0.5 "
    "causal=flag offset=offset"
)
_LAYER: Final = "x:N,T,D weight_ih:{g}*H,D weight_hh:{g}*H,P"
_BIASES: Final = "bias_ih?:{g}*H bias_hh?:{g}*H"
_GRADIENTS: Final = "dx?>:N,T,D dweight_ih?>:{g}*H,D dweight_hh?>:{g}*H,P " + (
    "dbias_ih?>:{g}*H dbias_hh?>:{g}*H"
)
_ADAM: Final = (
    "p&:N,D g:N,D m&:N,D v&:N,D step=3 lr=0.1 beta1=0.9 beta2=0.99 eps=1e-8 decay=0.1 scale=0.5"
)
_MOMENTUM: Final = "p&:N,D g:N,D velocity&:N,D lr=0.1 momentum=0.9"
_CROSS: Final = "outer=N classes=C inner=T smoothing=0.1"
_CTC: Final = "x:N,T,C targets#label#:N,L input_lengths?#T+1#:N target_lengths?#L+1#:N"
_STATES: Final = "states:T+1,N,H step:T,N,W alpha:T,N,S"
_V: Final = {"v": "v:A", "": "v=None"}


def _recurrent(name: str, gates: int) -> dict[str, tuple[str, Drawn]]:
    """Forward and backward of an rnn or gru."""
    layer, biases, gradients = (
        text.replace("P", "H").format(g=gates) for text in (_LAYER, _BIASES, _GRADIENTS)
    )
    rows = "" if name == "rnn" else " gates{}:R,4*H"
    relu = "relu=flag " if name == "rnn" else ""
    draw = sequences
    forward = f"{layer} {biases} h0?:N,H lengths=lens {relu}reverse=flag y>:N,T,H h_n>:N,H"
    backward = f"dy:N,T,H dh_n?:N,H {layer} h0?:N,H lengths=lens {relu}reverse=flag y:N,T,H"
    return {
        f"{name}_forward": (forward + rows.format(">"), draw),
        f"{name}_backward": (backward + rows.format("") + f" {gradients} dh0?>:N,H", draw),
    }


def _lstm(projection: str, size: str) -> dict[str, tuple[str, Drawn]]:
    layer, biases, gradients = (
        text.replace("P", size).format(g=4) for text in (_LAYER, _BIASES, _GRADIENTS)
    )
    wanted = projection.replace("weight_hr", "dweight_hr?>") if ":" in projection else "none=None"
    states = f"h0?:N,{size} c0?:N,H lengths=lens reverse=flag"
    kind = "projected" if ":" in projection else "plain"
    draw = sequences
    return {
        f"lstm_forward {kind}": (
            f"{layer} {biases} {projection} {states} y>:N,T,{size} h_n>:N,{size} c_n>:N,H "
            f"gates>:R,4*H c>:R,H",
            draw,
        ),
        f"lstm_backward {kind}": (
            f"dy:N,T,{size} dh_n?:N,{size} dc_n?:N,H {layer} {projection} {states} y:N,T,{size} "
            f"gates:R,4*H c:R,H {gradients} {wanted} dh0?>:N,{size} dc0?>:N,H",
            draw,
        ),
    }


def _decoders() -> dict[str, tuple[str, Drawn]]:
    found: dict[str, tuple[str, Drawn]] = {}
    for v in ("v", ""):
        for kept in ("kept", ""):

            def draw(
                rng: np.random.Generator, additive: bool = v == "v", gru: bool = kept == "kept"
            ) -> Letters:
                while True:
                    letters = decoder(rng)
                    if (letters["score"] == 0, letters["cell"] == 2) == (additive, gru):
                        return letters

            own = "kept{}:T,N,G" if kept else "kept=None"
            dv = "dv>:A" if v else "dv=None"
            found[f"decoder_loop_forward {v}{kept}"] = (
                f"a*:N,T,G keys*:N,S,A values*:N,S,G weight:W,H bias:W {_V[v]} s0:N,H "
                f"lengths?#S+1#:N states>:T+1,N,H step>:T,N,W alpha>:T,N,S {own.format('>')} "
                f"y>:N,T,H score=score cell=cell",
                draw,
            )
            found[f"decoder_loop_backward {v}{kept}"] = (
                f"dy:N,T,H keys*:N,S,A values*:N,S,G weight:W,H {_V[v]} lengths?#S+1#:N "
                f"{_STATES} {own.format('')} da>:N,T,G dstep>:T,N,W dmemory>:N,S,A+G ds0>:N,H "
                f"dbias>:2,G {dv} score=score cell=cell",
                draw,
            )
    return found


def _activations() -> dict[str, tuple[str, Drawn]]:
    draw, found = sizes("ND"), {}
    files = sorted(_KERNELS.glob("*.cpp"))
    texts = (file.read_text(encoding="utf-8") for file in files)
    for name in (name for text in texts for name in _BOUND.findall(text)):
        slope = " slope=0.01" if name == "leaky_relu" else ""
        found[f"{name}_forward"] = (f"x:N,D y>:N,D{slope}", draw)
        found[f"{name}_backward"] = (f"dy:N,D kept:N,D dx>:N,D{slope}", draw)
    for name in ("swiglu", "geglu", "geglu_tanh"):
        found[f"{name}_forward"] = ("x:N,2*D y>:N,D", draw)
        found[f"{name}_backward"] = ("dy:N,D x:N,2*D dx>:N,2*D", draw)
    for name in ("exp", "log", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "reciprocal"):
        found[f"vector_{name}"] = ("x:N y>:N", draw)
    return found


#: By name, and a word for each form where there are several: the arguments and their letters.
TABLE: Final[Mapping[str, tuple[str, Drawn]]] = {
    "adam": (_ADAM, sizes("ND")),
    "adamw": (_ADAM, sizes("ND")),
    "momentum": (f"{_MOMENTUM} dampening=0.1 decay=0.1 scale=0.5", sizes("ND")),
    "nesterov": (f"{_MOMENTUM} decay=0.1 scale=0.5", sizes("ND")),
    "rmsprop": ("p&:N g:N v&:N lr=0.1 alpha=0.9 eps=1e-8 decay=0.1 scale=0.5", sizes("N")),
    "sgd": ("p&:N g:N lr=0.1 decay=0.1 scale=0.5", sizes("N")),
    "sum_of_squares": ("x:N,D", sizes("ND")),
    "add_arrays": ("a:N,D b:N,D y>:N,D", sizes("ND")),
    "add_repeated": ("x:N,T,D p:T,D y>:N,T,D", sizes("NTD")),
    "copy_indices": ("indices#9#:N,T copy#9#>:N,T", sizes("NT")),
    "copy_features": ("x*:N,T,D y>*:N,T,D", sizes("NTD")),
    "matmul": ("a**:N,K b**:K,M c>:N,M", sizes("NKM")),
    "matmul batch": ("a**:B,N,K b**:B,K,M c>:B,N,M", sizes("BNKM")),
    "dense_forward": (
        "x:N,T,D weight:C,D bias?:C residual?:N,T,C y>:N,T,C saved?>:N,T,C activation=code "
        "slope=0.01",
        sizes("NTDC"),
    ),
    "dense_backward": (
        "dh:N,C x:N,D weight:C,D saved:N,C residual?:N,D dx?>:N,D dweight?>:C,D dbias?>:C "
        "activation=code slope=0.01",
        sizes("NDC"),
    ),
    "dropout_forward": (
        "x:N,D drawn.:N,D residual?:N,D mask!>:N,D y>:N,D p=0.5 scale=2.0",
        sizes("ND"),
    ),
    "dropout_backward": ("dy:N,D mask!:N,D dx>:N,D scale=2.0", sizes("ND")),
    "embedding_forward": ("tokens#V#:N,T weight:V,D y>:N,T,D", tokens),
    "embedding_backward": (
        "dy:N,T,D tokens#V#:N,T dweight>:V,D padding=1 more=False",
        tokens,
    ),
    "embedding_backward more": (
        "dy:N,T,D tokens#V#:N,T dweight&:V,D padding=1 more=True",
        tokens,
    ),
    "softmax_forward": ("x:N,C,T y>:N,C,T outer=N width=C inner=T", sizes("NCT")),
    "softmax_backward": ("dy:N,C,T y:N,C,T dx>:N,C,T outer=N width=C inner=T", sizes("NCT")),
    "rotary": ("x*:N,H,T,2*h cos:T,h sin:T,h y>*:N,H,T,2*h back=flag", sizes("NHTh")),
    "squared_error_sum": ("x:N,D target:N,D", sizes("ND")),
    "squared_error_values": ("x:N,D target:N,D losses>:N,D", sizes("ND")),
    "squared_error_backward": (
        "dlosses?:N,D x:N,D target:N,D dx>:N,D factor=2.0",
        sizes("ND"),
    ),
    "binary_cross_entropy_forward": (
        "x:N,D target:N,D weight?:N,D pos_weight?:N,D slope>:N,D losses?>:N,D",
        sizes("ND"),
    ),
    "binary_cross_entropy_backward": ("dlosses?:N,D slope:N,D dx>:N,D factor=2.0", sizes("ND")),
    "layer_norm_forward": (
        "x:N,T,D gamma:D beta:D y>:N,T,D statistics>:N,T,2 eps=1e-5",
        sizes("NTD"),
    ),
    "layer_norm_backward": (
        "dy:N,D x:N,D gamma:D statistics:N,2 residual?:N,D dx?>:N,D dgamma?>:D dbeta?>:D",
        sizes("ND"),
    ),
    "rms_norm_forward": ("x:N,T,D gamma:D y>:N,T,D statistics>:N,T,2 eps=1e-5", sizes("NTD")),
    "rms_norm_backward": (
        "dy:N,D x:N,D gamma:D statistics:N,2 residual?:N,D dx?>:N,D dgamma?>:D",
        sizes("ND"),
    ),
    "standardize_forward": ("x:N,T,D y>:N,T,D statistics>:N,2 width=T*D eps=1e-5", sizes("NTD")),
    "standardize_backward": ("dy:N,D x:N,D statistics:N,2 dx>:N,D width=D", sizes("ND")),
    "batch_norm_forward training": (
        "x:N,C,s gamma:C beta:C mean:C var:C y>:N,C,s statistics>:C,2 next_mean>:C next_var>:C "
        "momentum=0.1 eps=1e-5 activation=code slope=0.01",
        sizes("NCs"),
    ),
    "batch_norm_forward inference": (
        "x:N,C,s gamma:C beta:C mean:C var:C y>:N,C,s statistics>:C,2 none=None none=None "
        "momentum=0.1 eps=1e-5 activation=code slope=0.01",
        sizes("NCs"),
    ),
    "batch_norm_backward": (
        "dy:N,C,s x:N,C,s gamma:C beta:C statistics:C,2 dx?>:N,C,s dgamma?>:C dbeta?>:C "
        "training=flag activation=code slope=0.01",
        sizes("NCs"),
    ),
    "group_norm_forward": ("x:N,C,s gamma:C beta:C y>:N,C,s statistics>:N,G,2 eps=1e-5", groups),
    "group_norm_backward": (
        "dy:N,C,s x:N,C,s gamma:C statistics:N,G,2 dx?>:N,C,s dgamma?>:C dbeta?>:C",
        groups,
    ),
    "cross_entropy_forward_indices": (
        f"x:N,C,T target#C#:N,T weight?:C kept>:4,N*T loss>: divisor^>: mean=flag {_CROSS} "
        "ignore=-100",
        classes,
    ),
    "cross_entropy_forward_probabilities": (
        f"x:N,C,T target:N,C,T weight?:C kept>:4,N*T loss>: divisor^>: mean=flag {_CROSS}",
        classes,
    ),
    "cross_entropy_backward_indices": (
        f"dloss:N,T divisor=None x:N,C,T target#C#:N,T weight?:C kept:4,N*T dx>:N,C,T {_CROSS} "
        "ignore=-100",
        classes,
    ),
    "cross_entropy_backward_indices mean": (
        f"dloss: divisor^: x:N,C,T target#C#:N,T weight?:C kept:4,N*T dx>:N,C,T {_CROSS} ignore=1",
        classes,
    ),
    "cross_entropy_backward_probabilities": (
        f"dloss: divisor^: x:N,C,T target:N,C,T weight?:C kept:4,N*T dx>:N,C,T {_CROSS}",
        classes,
    ),
    "ctc_loss_forward": (
        f"{_CTC} log_alpha^~:N,T,2*L+3 normalizers~:N,T,2 log_p^>:N losses>:N loss>: blank=0 "
        "mean=flag zero_infinity=flag",
        classes,
    ),
    "ctc_loss_backward": (
        f"dloss:N {_CTC} log_alpha^:N,T,2*L+3 normalizers:N,T,2 log_p^:N dx>:N,T,C blank=0 "
        "mean=flag zero_infinity=flag",
        classes,
    ),
    "attention_forward": (
        f"q*:N,H,T,d k*:N,G,S,d v*:N,G,S,e {_ATTENTION} y>*:N,H,T,e log_sums>:N,H,T",
        attention,
    ),
    "attention_backward": (
        f"dy*:N,H,T,e q*:N,H,T,d k*:N,G,S,d v*:N,G,S,e {_ATTENTION} y*:N,H,T,e log_sums:N,H,T "
        "dq?>*:N,H,T,d dk?>*:N,G,S,d dv?>*:N,G,S,e dscores?~*:N,H,T,S",
        attention,
    ),
    "additive_attention_forward": (
        "a_s:N,J,A a_h:N,T,A v:A h:N,T,E mask?!*:N,J,T lengths?#T+1#:N u>:N,J,T,A alpha>:N,J,T "
        "c>:N,J,E",
        sizes("NJTAE"),
    ),
    "additive_attention_backward": (
        "dc:N,J,E v:A h:N,T,E u:N,J,T,A alpha:N,J,T da_s>:N,J,A da_h>:N,T,A dh>:N,T,E dv>:N,A",
        sizes("NJTAE"),
    ),
    "cosine_attention_forward": (
        "s:N,J,D h:N,T,D mask?!*:N,J,T lengths?#T+1#:N eps=1e-8 s_hat>:N,J,D h_hat>:N,T,D "
        "inv_s>:N,J,1 inv_h>:N,T,1 alpha>:N,J,T c>:N,J,D",
        sizes("NJTD"),
    ),
    "cosine_attention_backward": (
        "dc:N,J,D h:N,T,D s_hat:N,J,D h_hat:N,T,D inv_s:N,J,1 inv_h:N,T,1 alpha:N,J,T ds>:N,J,D "
        "dh>:N,T,D",
        sizes("NJTD"),
    ),
    "conv2d_forward": (
        "x:N,C,H,W weight:F,C//g,k,l bias?:F y>:N,F,P,Q saved?>:N,F,P,Q sizes=conv "
        "activation=code slope=0.01",
        convolution,
    ),
    "conv2d_backward": (
        "dy:N,F,P,Q x:N,C,H,W weight:F,C//g,k,l saved:N,F,P,Q dx?>:N,C,H,W dweight?>:F,C//g,k,l "
        "dbias?>:F sizes=conv activation=code slope=0.01",
        convolution,
    ),
    "conv_transpose2d_forward": (
        "x:N,F,P,Q weight:F,C//g,k,l bias?:C y>:N,C,H,W sizes=conv",
        convolution,
    ),
    "conv_transpose2d_backward": (
        "dy:N,C,H,W x:N,F,P,Q weight:F,C//g,k,l dx?>:N,F,P,Q dweight?>:F,C//g,k,l dbias?>:C "
        "sizes=conv",
        convolution,
    ),
    "max_pool2d_forward": ("x:N,C,H,W y>:N,C,P,Q winner>%:N,C,P,Q sizes=pool", pooling),
    "max_pool2d_backward": ("dy:N,C,P,Q winner%:N,C,P,Q dx>:N,C,H,W sizes=pool", pooling),
    "avg_pool2d_forward": ("x:N,C,H,W count:P,Q y>:N,C,P,Q sizes=pool", pooling),
    "avg_pool2d_backward": ("dy:N,C,P,Q count:P,Q dx>:N,C,H,W sizes=pool", pooling),
    "leaky_rnn_forward": (
        "x:N,T,D weight_ih:H,D bias_ih?:H h0?:N,H rates:2,H lengths=lens reverse=flag y>:N,T,H "
        "h_n>:N,H g>:R,H",
        sequences,
    ),
    "leaky_rnn_backward": (
        "dy:N,T,H dh_n?:N,H x:N,T,D weight_ih:H,D rates:2,H lengths=lens reverse=flag g:R,H "
        "dx?>:N,T,D dweight_ih?>:H,D dbias_ih?>:H dh0?>:N,H",
        sequences,
    ),
    **_recurrent("rnn", 1),
    **_recurrent("gru", 3),
    **_lstm("weight_hr=None", "H"),
    **_lstm("weight_hr:P,H", "P"),
    **_decoders(),
    **_activations(),
}
