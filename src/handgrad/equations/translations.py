"""Texts of docstrings in other languages, for the ops that the notes cover in them.

A text is found by its English words, so that no translation outlives what it translates: where a
docstring changes, the notes of its op are in English again, and a test names what is missing.
"""

from __future__ import annotations

import re
from typing import Final

TRANSLATIONS: Final[dict[str, dict[str, str]]] = {
    "ro": {
        # layer_norm
        "Layer normalisation: every row to mean 0 and variance 1, then scaled and shifted.": (
            "Normalizare pe strat: fiecare rând este adus la media 0 și varianța 1, apoi scalat și "
            "deplasat."
        ),
        "Layer normalisation over the last axis.": (
            "Normalizare pe strat de-a lungul ultimei axe."
        ),
        "A constant row gives β as long as eps > 0.": "Un rând constant dă β, cât timp eps > 0.",
        "x, y (..., D) with D at least 1; gamma, beta (D,).": (
            "x, y (..., D), cu D cel puțin 1; gamma, beta (D,)."
        ),
        "The normalised rows and 1/√(variance + eps), in which backward is written, and γ.": (
            "Rândurile normalizate și 1/√(varianță + eps), prin care se scrie pasul înapoi, și γ."
        ),
        "x and its mean drop out; β has no part in any gradient.": (
            "x și media lui dispar din formule; β nu apare în niciun gradient."
        ),
        "layer normalisation, with σ² + eps under a root": (
            "normalizarea pe strat, cu σ² + eps sub radical"
        ),
        # softmax
        "Softmax: scores to probabilities along one axis.": (
            "Softmax: din scoruri, probabilități, de-a lungul unei axe."
        ),
        "Softmax along `axis`, with the largest score taken off first so that nothing overflows.": (
            "Softmax de-a lungul axei `axis`; întâi se scade scorul cel mai mare, ca nimic să nu "
            "depășească domeniul numerelor."
        ),
        "Where every score is −∞ (all masked), y and dx are 0.": (
            "Unde toate scorurile sunt −∞ (totul este mascat), y și dx sunt 0."
        ),
        "x, y any shape with at least one value along `axis`.": (
            "x, y de orice formă cu cel puțin o valoare de-a lungul axei `axis`."
        ),
        "The output, in which the whole Jacobian is written; x is not needed again.": (
            "Ieșirea, prin care se scrie tot jacobianul; de x nu mai este nevoie."
        ),
        # attention
        "Attention: every query gets the mean of the values, weighted by how well their keys match "
        "it.": (
            "Atenție: fiecare interogare primește media valorilor, ponderată după cât de bine i se "
            "potrivesc cheile lor."
        ),
        "Scaled dot-product attention over H heads, G of them for keys and values.": (
            "Atenție prin produse scalare, scalate, cu H head-uri; cheile și valorile au G."
        ),
        "A query may look at a key where all that is given agrees: `mask` is True, the key is one "
        "of its sequence's first `lengths`, and, if `causal`, it does not come after the query, "
        "the first query standing at the position `offset` of the keys. One that may look nowhere "
        "gets y = 0, and all gradients through it are 0. `scale` is 1/√d unless given. Dropout "
        "switches weights off after the softmax and scales the others by 1/(1 − dropout_p); at "
        "inference leave it at 0.": (
            "O interogare vede o cheie unde tot ce este dat o permite: `mask` este True, cheia "
            "este printre primele `lengths` ale secvenței ei și, cu `causal`, nu vine după "
            "interogare, prima interogare fiind la poziția `offset` a cheilor. O interogare care "
            "nu vede nimic primește y = 0, iar toți gradienții prin ea sunt 0. `scale` este 1/√d "
            "dacă nu se dă altul. Dropout-ul anulează ponderi după softmax și le scalează pe "
            "celelalte cu 1/(1 − dropout_p); la inferență se lasă 0."
        ),
        "Each of the G key-value heads serves H/G heads that stand one after another; dk and dv "
        "are sums over these, dbias is summed over the axes along which bias was broadcast.": (
            "Fiecare dintre cele G head-uri de chei și valori servește H/G head-uri consecutive; "
            "dk și dv sunt sume peste acestea, iar dbias se adună pe axele de-a lungul cărora bias "
            "a fost extins."
        ),
        "A weight of 0, as of a pair that is masked, stands for a product that is left out or is "
        "made: what is NaN or infinite there in q, k, v or dy may or may not reach the results.": (
            "O pondere 0, ca a unei perechi mascate, stă pentru un produs care se omite sau se "
            "face: ce este NaN sau infinit acolo în q, k, v sau dy poate ajunge ori nu în rezultat."
        ),
        "q (N, H, T, d), k (N, G, S, d), v (N, G, S, d_v), y (N, H, T, d_v); bias and mask "
        "broadcast to (N, H, T, S); lengths (N,), integers from 0 to S. `rng` is advanced by one "
        "float32 per weight.": (
            "q (N, H, T, d), k (N, G, S, d), v (N, G, S, d_v), y (N, H, T, d_v); bias și mask se "
            "extind la (N, H, T, S); lengths (N,), întregi de la 0 la S. `rng` avansează cu un "
            "float32 pentru fiecare pondere."
        ),
        "q, k and v for the three products of backward, and the weights a before their dropout.": (
            "q, k și v, pentru cele trei produse ale pasului înapoi, și ponderile a de dinainte de "
            "dropout."
        ),
        "No mask is kept but that of the dropout, `keep`: a masked weight is 0, and so is all that "
        "comes through it. Of the bias only its shape is needed.": (
            "Nu se păstrează altă mască decât a dropout-ului, `keep`: o pondere mascată este 0 și "
            "la fel tot ce trece prin ea. Din bias este nevoie doar de formă."
        ),
        "Softmax over the keys": "Softmax peste chei",
        "True with probability 1 − p, from one float32 per value in row-major order.": (
            "True cu probabilitatea 1 − p, dintr-un float32 pentru fiecare valoare, rând cu rând."
        ),
        "Sum over the axes along which the operand was broadcast.": (
            "Suma pe axele de-a lungul cărora operandul a fost extins."
        ),
        "attention, with Aᵀ in dV, no transpose in dQ and a mask that is added": (
            "atenția, cu Aᵀ în dV, fără transpunere în dQ și cu o mască ce se adună"
        ),
        "for grouped heads": "pentru head-uri grupate",
        # linear
        "Linear: y = x Wᵀ + b, the product behind every dense layer.": (
            "Proiecție liniară: y = x Wᵀ + b, produsul din spatele oricărui strat dens."
        ),
        "Linear map of the last axis, with a bias.": "Proiecție liniară a ultimei axe, cu bias.",
        "x (..., in), weight (out, in) as PyTorch keeps it, bias (out,), y (..., out).": (
            "x (..., in), weight (out, in), cum o păstrează PyTorch, bias (out,), y (..., out)."
        ),
        "x and W, for the two products of backward; of b only whether there was one.": (
            "x și W, pentru cele două produse ale pasului înapoi; despre b, doar dacă a existat."
        ),
        "equation 4, with the outer product it leaves out": (
            "ecuația 4, cu produsul exterior care lipsește acolo"
        ),
        # relu
        "ReLU: keep what is positive, drop the rest.": (
            "ReLU: ce este pozitiv rămâne, restul devine 0."
        ),
        "Rectified linear unit.": "Unitate liniară rectificată.",
        "The derivative at x = 0 is taken as 0. NaN stays NaN going forward.": (
            "Derivata în x = 0 se ia 0. NaN rămâne NaN la pasul înainte."
        ),
        "x, y any shape.": "x, y de orice formă.",
        "The output: y > 0 exactly where x > 0, so one array serves the next op and this "
        "backward.": (
            "Ieșirea: y > 0 exact unde x > 0, deci un singur tablou servește operației următoare "
            "și acestui pas înapoi."
        ),
        # matmul
        "Matrix product, whole or in tiles.": "Înmulțirea matricelor, întregi sau pe blocuri.",
        "Matrix product of the last two axes; those before them broadcast, as in numpy.matmul.": (
            "Înmulțirea matricelor din ultimele două axe; axele dinaintea lor se extind, ca în "
            "numpy.matmul."
        ),
        "A 1-D `a` counts as one row and a 1-D `b` as one column, and that axis is dropped from "
        "C.": (
            "Un `a` cu o singură axă este un rând, un `b` cu o singură axă o coloană, iar axa "
            "adăugată dispare din C."
        ),
        "a (..., M, K) or (K,), b (..., K, N) or (K,), C (..., M, N).": (
            "a (..., M, K) sau (K,), b (..., K, N) sau (K,), C (..., M, N)."
        ),
        "Both operands: each is in the gradient of the other.": (
            "Ambii operanzi: fiecare apare în gradientul celuilalt."
        ),
        "The blocks C_ij, each the sum of its partial products, put together.": (
            "Blocurile C_ij, fiecare suma produselor lui parțiale, puse alături."
        ),
        # squared_error
        "Squared error between a prediction and its target.": (
            "Eroarea pătratică dintre o predicție și ținta ei."
        ),
        "Squared error, with n the number of values.": (
            "Eroarea pătratică; n este numărul de valori."
        ),
        "The target is taken as a constant and has no gradient. The loss of an empty batch is 0.": (
            "Ținta este o constantă și nu are gradient. Pierderea unui lot gol este 0."
        ),
        'x, target any one shape; loss (), or that of x with "none".': (
            'x și target de aceeași formă, oricare; loss (), sau forma lui x cu "none".'
        ),
        "The difference, and the number that turns it into the derivative for this reduction.": (
            "Diferența și numărul care face din ea derivata pentru această reducere."
        ),
        "section 4, for half_sum": "secțiunea 4, pentru half_sum",
        "losses, for the mean": "pierderile, pentru medie",
        # The worked examples
        "sections 3 and 4, with a third row of X, and on to W1, b1 and X": (
            "secțiunile 3 și 4, cu un al treilea rând în X, și mai departe până la W1, b1 și X"
        ),
        "Q (N, D) with D even; each head (N, D/2).": "Q (N, D), cu D par; fiecare head (N, D/2).",
        # Models
        "A transformer encoder that gives every token, or a whole text, a vector.": (
            "Un codificator transformer care dă un vector fiecărui token sau unui text întreg."
        ),
        "A decoder-only transformer that says what comes next.": (
            "Un transformer numai cu decodor, care spune ce urmează."
        ),
        "A decoder-only transformer with RMSNorm, SwiGLU, rotary positions and grouped heads.": (
            "Un transformer numai cu decodor, cu RMSNorm, SwiGLU, poziții rotative și capete "
            "grupate."
        ),
        "Convolution stages, then a dense classifier.": (
            "Etape de convoluție, apoi un clasificator dens."
        ),
        "A fully connected network of any depth.": (
            "O rețea complet conectată, de orice adâncime."
        ),
        "From one sequence to another, by recurrent networks with attention between them.": (
            "De la o secvență la alta, prin rețele recurente cu atenție între ele."
        ),
        "From one sequence of tokens to another, by attention alone.": (
            "De la o secvență de tokeni la alta, numai prin atenție."
        ),
        "Careddu's one-layer transformer encoder, its gradients composed and in closed form.": (
            "Codificatorul transformer cu un strat al lui Careddu, cu gradienții compuși și în "
            "formă închisă."
        ),
        "Blocks of self-attention and feed-forward network, one after another.": (
            "Blocuri de autoatenție și rețea feed-forward, unul după altul."
        ),
        # Sources
        "undated": "nedatat",
        "section 2": "secțiunea 2",
        "section 3": "secțiunea 3",
        "section 4": "secțiunea 4",
        "section 5": "secțiunea 5",
        "section 7": "secțiunea 7",
    }
}

#: Author and title, the year, and what of it or why.
_CITATION: Final = re.compile(r"(?P<work>.*) \((?P<year>undated|\d{4})\)(?:, (?P<remark>.*))?")


def translated(text: str, lang: str) -> str:
    """The text in a language; in English where it is not known there."""
    return TRANSLATIONS.get(lang, {}).get(text, text)


def is_translated(text: str, lang: str) -> bool:
    return not text or text in TRANSLATIONS.get(lang, {})


def cited(source: str, lang: str) -> str:
    """Sources with author and title as they are, and the remarks in a language."""
    return "; ".join(_cited(each, lang) for each in source.removesuffix(".").split("; ")) + "."


def _cited(citation: str, lang: str) -> str:
    found = _CITATION.fullmatch(citation)
    if found is None:
        return citation
    remark = f", {translated(found['remark'], lang)}" if found["remark"] else ""
    return f"{found['work']} ({translated(found['year'], lang)}){remark}"
