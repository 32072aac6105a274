"""Romanian of the remarks behind a source."""

from __future__ import annotations

from typing import Final

#: Each remark by its English words.
TEXTS: Final = {
    "layer normalisation, with σ² + eps under a root": (
        "normalizarea pe strat, cu σ² + eps sub radical"
    ),
    "attention, with Aᵀ in dV, no transpose in dQ and a mask that is added": (
        "atenția, cu Aᵀ în dV, fără transpunere în dQ și cu o mască ce se adună"
    ),
    "for grouped heads": "pentru capete grupate",
    "equation 4, with the outer product it leaves out": (
        "ecuația 4, cu produsul exterior care lipsește acolo"
    ),
    "section 4, for half_sum": "secțiunea 4, pentru half_sum",
    "losses, for the mean": "pierderile, pentru medie",
    "sections 3 and 4, with a third row of X, and on to W1, b1 and X": (
        "secțiunile 3 și 4, cu un al treilea rând în X, și mai departe până la W1, b1 și X"
    ),
    "undated": "nedatat",
    "section 2": "secțiunea 2",
    "section 3": "secțiunea 3",
    "section 4": "secțiunea 4",
    "section 5": "secțiunea 5",
    "section 7": "secțiunea 7",
    "batch normalisation, with the statistics of the batch": (
        "normalizarea pe lot, cu statisticile lotului"
    ),
    "dropout, with the 1/(1 − p) that it leaves out": (
        "dropout, cu factorul 1/(1 − p) care lipsește acolo"
    ),
    "embedding layer": "stratul de încorporare",
    "equation 11, whose sign is turned": "ecuația 11, cu semnul schimbat",
    "equation 9, on one axis, with padding, dilation, groups and a bias": (
        "ecuația 9, pe o singură axă, cu bordare, dilatare, grupuri și bias"
    ),
    "equation 9, with padding, dilation, groups and a bias": (
        "ecuația 9, cu bordare, dilatare, grupuri și bias"
    ),
    "equations 10 to 12, with outer products, and without a term t + 1 at the last step": (
        "ecuațiile 10–12, cu produse exterioare și fără termenul t + 1 la ultimul pas"
    ),
    "equations 13 to 15, where h and x are one vector and the gates act element by element": (
        "ecuațiile 13–15, unde h și x sunt un singur vector, iar porțile acționează element cu "
        "element"
    ),
    "equations 18 to 20, with one vector v": "ecuațiile 18–20, cu un singur vector v",
    "equations 18 to 20, with states of one size, and eps against division by 0": (
        "ecuațiile 18–20, cu stări de aceeași mărime și eps împotriva împărțirii la 0"
    ),
    "equations 3 to 5: the outer products, and the next layer's weight, put right": (
        "ecuațiile 3–5, cu produsele exterioare și ponderile stratului următor îndreptate"
    ),
    "equations 6 to 9, c, g and h, on one axis, with padding, dilation, groups and a bias": (
        "ecuațiile 6–9, c, g și h, pe o singură axă, cu bordare, dilatare, grupuri și bias"
    ),
    "equations 6 to 9, c, g and h, with padding, dilation, groups and a bias": (
        "ecuațiile 6–9, c, g și h, cu bordare, dilatare, grupuri și bias"
    ),
    "for s_0, e_j and the additive score": "pentru s_0, e_j și scorul aditiv",
    "for the forget gates' bias of 1": "pentru bias-ul 1 al porților de uitare",
    "for the mean": "pentru medie",
    "for the part with a memory": "pentru partea cu memorie",
    "for the projection": "pentru proiecție",
    "for the bias of the forget gate": "pentru biasul porții de uitare",
    "for the largest score": "pentru scorul cel mai mare",
    "for the skip connection": "pentru ocolire",
    "for log Σ exp": "pentru log Σ exp",
    "for γ and β": "pentru γ și β",
    "section 3.2.1, for 1/√d": "secțiunea 3.2.1, pentru 1/√d",
    "algorithm 1": "algoritmul 1",
    "Adam, with its 1 − βT and √v̂ corrected to 1 − βᵗ and √v̂ + ε": (
        "Adam, cu 1 − βT și √v̂ corectate în 1 − βᵗ și √v̂ + ε"
    ),
    "losses": "pierderile",
    "section 1, with d_k = d₂, an eps under the root, the composite's X standardised, and s "
    "− y for z − y in the backward's (1) to (4), (13) and (14)": (
        "secțiunea 1, cu d_k = d₂, un eps sub radical, X standardizat la funcția compusă și s "
        "− y în loc de z − y la pasul înapoi, în (1)–(4), (13) și (14)"
    ),
    "section 2, with an eps under the root, the composite's X standardised and transposed, "
    "and brackets in the backward's (3), (5) and (7)": (
        "secțiunea 2, cu un eps sub radical, X standardizat și transpus la funcția compusă și "
        "paranteze la pasul înapoi, în (3), (5) și (7)"
    ),
    "section 2, with outer products in (3) and (4) and W⁽ⁱ⁺¹⁾ᵀ in (5)": (
        "secțiunea 2, cu produse exterioare în (3) și (4) și W⁽ⁱ⁺¹⁾ᵀ în (5)"
    ),
    "section 3, which goes by its list of modes": ("secțiunea 3, care urmează lista ei de moduri"),
    "section 3, with f_t ∘ c_{t−1} + i_t ∘ c′_t and W_hr m_t put right": (
        "secțiunea 3, cu f_t ∘ c_{t−1} + i_t ∘ c′_t și W_hr m_t îndreptate"
    ),
    "section 3, with the x that its formula leaves out": (
        "secțiunea 3, cu x, care lipsește din formula ei"
    ),
    "section 3.2, for the global mean": "secțiunea 3.2, pentru media globală",
    "section 4, with one label in place of one at every step": (
        "secțiunea 4, cu o singură etichetă în loc de una la fiecare pas"
    ),
    "section 4, with softmax − one-hot in (11) and outer products in (11), (12)": (
        "secțiunea 4, cu softmax − one-hot în (11) și produse exterioare în (11), (12)"
    ),
    "section 4, with β_t without p_t": "secțiunea 4, cu β_t fără p_t",
    "section 4.1, with the first values of the package peft": (
        "secțiunea 4.1, cu valorile inițiale ale pachetului peft"
    ),
    "section 5 and figure 7": "secțiunea 5 și figura 7",
    "section 5, for post": "secțiunea 5, pentru post",
    "section 5, with V_i in head i": "secțiunea 5, cu V_i în capul i",
    "section 7, with W_O": "secțiunea 7, cu W_O",
    "section 7, with absolute positions": "secțiunea 7, cu poziții absolute",
    "section 9.3, on one axis": "secțiunea 9.3, pe o singură axă",
    "sections 1 and 2, with the eps that they leave out": (
        "secțiunile 1 și 2, cu eps, care lipsește acolo"
    ),
    "transformer block": "blocul transformer",
    "transformer block, for pre": "blocul transformer, pentru pre",
    "with feature i paired with i + d/2 as in GPT-NeoX and Llama, where the paper pairs 2i "
    "with 2i + 1": (
        "cu trăsătura i în pereche cu i + d/2, ca în GPT-NeoX și Llama, unde articolul pune în "
        "pereche 2i cu 2i + 1"
    ),
    "with ∂y/∂x = 1 + ∂f/∂x": "cu ∂y/∂x = 1 + ∂f/∂x",
    "section 1": "secțiunea 1",
    "section 2.2": "secțiunea 2.2",
    "section 2.3": "secțiunea 2.3",
    "section 3.1": "secțiunea 3.1",
    "section 3.5": "secțiunea 3.5",
    "section 4.3": "secțiunea 4.3",
    "section 6": "secțiunea 6",
    "section 9.3": "secțiunea 9.3",
    "equation 4": "ecuația 4",
    "equations 3 and 4": "ecuațiile 3 și 4",
    "sections 3 and 4": "secțiunile 3 și 4",
    "sections 3 to 5": "secțiunile 3–5",
}
