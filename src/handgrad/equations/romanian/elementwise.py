"""Romanian of the docstrings of dense layers, activations, normalisations and losses."""

from __future__ import annotations

from typing import Final

#: Each text by its English words.
TEXTS: Final = {
    "Layer normalisation: every row to mean 0 and variance 1, then scaled and shifted.": (
        "Normalizare pe strat: fiecare rând este adus la media 0 și varianța 1, apoi scalat și "
        "deplasat."
    ),
    "Layer normalisation over the last axis.": "Normalizare pe strat de-a lungul ultimei axe.",
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
    "Softmax over the keys": "Softmax peste chei",
    "True with probability 1 − p, from one float32 per value in row-major order.": (
        "True cu probabilitatea 1 − p, dintr-un float32 pentru fiecare valoare, rând cu rând."
    ),
    "Sum over the axes along which the operand was broadcast.": (
        "Suma pe axele de-a lungul cărora operandul a fost extins."
    ),
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
    "ReLU: keep what is positive, drop the rest.": (
        "ReLU: ce este pozitiv rămâne, restul devine 0."
    ),
    "Rectified linear unit.": "Unitate liniară rectificată.",
    "The derivative at x = 0 is taken as 0. NaN stays NaN going forward.": (
        "Derivata în x = 0 se ia 0. NaN rămâne NaN la pasul înainte."
    ),
    "x, y any shape.": "x, y de orice formă.",
    "The output: y > 0 exactly where x > 0, so one array serves the next op and this backward.": (
        "Ieșirea: y > 0 exact unde x > 0, deci un singur tablou servește operației următoare "
        "și acestui pas înapoi."
    ),
    "Matrix product, whole or in tiles.": "Înmulțirea matricelor, întregi sau pe blocuri.",
    "Matrix product of the last two axes; those before them broadcast, as in numpy.matmul.": (
        "Înmulțirea matricelor din ultimele două axe; axele dinaintea lor se extind, ca în "
        "numpy.matmul."
    ),
    "A 1-D `a` counts as one row and a 1-D `b` as one column, and that axis is dropped from C.": (
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
    "Squared error between a prediction and its target.": (
        "Eroarea pătratică dintre o predicție și ținta ei."
    ),
    "Squared error, with n the number of values.": ("Eroarea pătratică; n este numărul de valori."),
    "The target is taken as a constant and has no gradient. The loss of an empty batch is 0.": (
        "Ținta este o constantă și nu are gradient. Pierderea unui lot gol este 0."
    ),
    'x, target any one shape; loss (), or that of x with "none".': (
        'x și target de aceeași formă, oricare; loss (), sau forma lui x cu "none".'
    ),
    "The difference, and the number that turns it into the derivative for this reduction.": (
        "Diferența și numărul care face din ea derivata pentru această reducere."
    ),
    "Batch normalisation: mean 0 and variance 1 for every channel, then an activation.": (
        "Normalizare pe lot: media 0 și varianța 1 pentru fiecare canal, apoi o activare."
    ),
    "Batch normalisation per channel: batch statistics in training, running ones at inference.": (
        "Normalizare pe lot, canal cu canal: statisticile lotului la antrenare, cele rulante "
        "la inferență."
    ),
    "The running statistics have no gradient. An empty batch leaves them as they are.": (
        "Statisticile rulante nu au gradient. Un lot gol le lasă așa cum sunt."
    ),
    "x, y (N, C, ...), gamma, beta, running_mean, running_var (C,).": (
        "x, y (N, C, ...), gamma, beta, running_mean, running_var (C,)."
    ),
    "The normalised values, 1/√(variance + eps) per channel (broadcastable to x), γ, and a, "
    "the value before the activation.": (
        "Valorile normalizate, 1/√(varianță + eps) pentru fiecare canal (extensibil la x), γ "
        "și a, valoarea dinaintea activării."
    ),
    "Also the running statistics after this call, which are an output beside y: the caller "
    "keeps them for the next call. At inference they are the ones that came in.": (
        "Și statisticile rulante de după acest apel, care sunt o ieșire pe lângă y: apelantul "
        "le păstrează pentru apelul următor. La inferență sunt cele care au intrat."
    ),
    "Binary cross-entropy on logits: the sigmoid is fused into the loss.": (
        "Entropie încrucișată binară pe logiți: sigmoida este contopită cu pierderea."
    ),
    "Binary cross-entropy of logits x against targets t between 0 and 1.": (
        "Entropia încrucișată binară a logiților x față de țintele t între 0 și 1."
    ),
    "x, target any one shape; weight and pos_weight broadcast to it; loss (), or that of x.": (
        "x, target de aceeași formă, oricare; weight și pos_weight se extind la ea; loss (), "
        "sau forma lui x."
    ),
    "The derivative of each value's loss, as cheap in forward as what it is made of, and n.": (
        "Derivata pierderii fiecărei valori, la fel de ieftină în pasul înainte ca lucrurile "
        "din care este făcută, și n."
    ),
    'n is what the sum is divided by: the number of values for "mean", 1 otherwise.': (
        'n este numărul la care se împarte suma: numărul de valori pentru "mean", altfel 1.'
    ),
    "Cross-entropy with its softmax fused: class scores and a target to a loss.": (
        "Entropie încrucișată cu softmax-ul contopit: din scorurile claselor și o țintă, o "
        "pierdere."
    ),
    "Cross-entropy between softmax(x) and a target: class indices, or one probability per class.": (
        "Entropia încrucișată dintre softmax(x) și o țintă: indici de clasă sau câte o "
        "probabilitate pentru fiecare clasă."
    ),
    "If all targets are ignored, or there are none, loss and gradient are 0 (PyTorch: NaN). "
    "A class with q = 0 adds nothing even if its score is −∞. The target and the weights "
    "have no gradient.": (
        "Dacă toate țintele sunt ignorate, sau nu există ținte, pierderea și gradientul sunt 0 "
        "(PyTorch: NaN). O clasă cu q = 0 nu adaugă nimic, chiar dacă scorul ei este −∞. Ținta "
        "și ponderile nu au gradient."
    ),
    "x (C,), (N, C) or (N, C, d1, ..., dK); target that of x without C (indices) or that of "
    'x (probabilities); weight (C,); loss (), or with "none" that of x without C.': (
        "x (C,), (N, C) sau (N, C, d1, ..., dK); target de forma lui x fără C (indici) sau de "
        'forma lui x (probabilități); weight (C,); loss (), sau cu "none" forma lui x fără C.'
    ),
    "Probabilities p and weighted targets q, of which the gradient is the difference.": (
        "Probabilitățile p și țintele ponderate q; gradientul este diferența lor."
    ),
    '`total` is what the sum is divided by: for "mean" the weight of all targets, otherwise 1.': (
        '`total` este numărul la care se împarte suma: pentru "mean" ponderea tuturor '
        "țintelor, altfel 1."
    ),
    "Dense: a linear map and its activation in one op, h = f(x Wᵀ + b).": (
        "Strat dens: o proiecție liniară și activarea ei într-o singură operație, h = f(x Wᵀ + b)."
    ),
    "Dense layer: linear map of the last axis, bias, activation.": (
        "Strat dens: proiecție liniară a ultimei axe, bias, activare."
    ),
    "`activation` is identity, relu, leaky_relu (with `negative_slope`), sigmoid, tanh, gelu "
    "(with `approximate`), silu, erf or sin; the value at a kink is that of the op of that "
    "name.": (
        "`activation` este identity, relu, leaky_relu (cu `negative_slope`), sigmoid, tanh, "
        "gelu (cu `approximate`), silu, erf sau sin; valoarea într-un punct unghiular este cea "
        "a operației cu acel nume."
    ),
    "x (..., in), weight (out, in) as PyTorch keeps it, bias (out,), h (..., out).": (
        "x (..., in), weight (out, in), cum o păstrează PyTorch, bias (out,), h (..., out)."
    ),
    "x and W for the two products of backward, and a, from which f′(a) is computed again.": (
        "x și W, pentru cele două produse ale pasului înapoi, și a, din care se calculează din "
        "nou f′(a)."
    ),
    "Of b only whether there was one; the rest says which f it was.": (
        "Despre b, doar dacă a existat; restul spune care f a fost."
    ),
    "Dropout: switch values off at random in training, and scale up those that stay.": (
        "Dropout: la antrenare anulează la întâmplare valori și le mărește pe cele care rămân."
    ),
    "Inverted dropout: the expectation of y is x, so nothing is left to do at inference.": (
        "Dropout inversat: valoarea medie a lui y este x, deci la inferență nu mai rămâne "
        "nimic de făcut."
    ),
    "At inference, and with p = 0, y = x and nothing is drawn from `rng`. With p = 1, y = 0 "
    "and dx = 0. A value that is dropped gives 0 whatever it was, NaN included.": (
        "La inferență, și cu p = 0, y = x și nu se extrage nimic din `rng`. Cu p = 1, y = 0 și "
        "dx = 0. O valoare anulată dă 0 orice ar fi fost, chiar și NaN."
    ),
    "x, y any shape. `rng` is advanced by one float32 per value of x.": (
        "x, y de orice formă. `rng` avansează cu un float32 pentru fiecare valoare din x."
    ),
    "The mask, True where a value stayed, and the scale; mask None means that all passed as is.": (
        "Masca, True unde o valoare a rămas, și factorul de scalare; masca None înseamnă că "
        "toate au trecut neschimbate."
    ),
    "Erf: the error function, which takes any number to a value between −1 and 1.": (
        "Erf: funcția erorilor, care duce orice număr la o valoare între −1 și 1."
    ),
    "Error function.": "Funcția erorilor.",
    "±∞ give exactly ±1, with derivative 0.": "±∞ dau exact ±1, cu derivata 0.",
    "x, because the derivative cannot be had from an output that is rounded to 1.": (
        "x, fiindcă derivata nu se poate afla dintr-o ieșire rotunjită la 1."
    ),
    "GEGLU: one half of the features, gated by the GELU of the other.": (
        "GEGLU: o jumătate a trăsăturilor, modulată de GELU al celeilalte."
    ),
    "GELU-gated linear unit of the two halves of the last axis, x = [a, b].": (
        "Unitate liniară cu poartă GELU din cele două jumătăți ale ultimei axe, x = [a, b]."
    ),
    "One linear map of 2H outputs gives both halves in one product, and takes dx as it is: "
    "its first H rows are the W of Source, whose product goes through GELU, and the others "
    "its V.": (
        "O singură proiecție liniară cu 2H ieșiri dă ambele jumătăți într-un produs și "
        "primește dx așa cum este: primele ei H rânduri sunt W din Source, al cărui produs "
        "trece prin GELU, iar celelalte sunt V."
    ),
    "x (..., 2H), y (..., H).": "x (..., 2H), y (..., H).",
    "x, both halves, and the form; the probability is computed again.": (
        "x, ambele jumătăți, și varianta; probabilitatea se calculează din nou."
    ),
    "GELU: x weighted by the probability that a standard normal value lies below it.": (
        "GELU: x ponderat cu probabilitatea ca o valoare normală standard să fie mai mică decât el."
    ),
    'Gaussian error linear unit, exact ("none") or in its tanh form.': (
        'Unitate liniară cu eroare gaussiană, exactă ("none") sau în varianta ei cu tanh.'
    ),
    "x and the form; the probability is computed again.": (
        "x și varianta; probabilitatea se calculează din nou."
    ),
    "Group normalisation: every group of channels of an example to mean 0 and variance 1.": (
        "Normalizare pe grup: fiecare grup de canale al unui exemplu este adus la media 0 și "
        "varianța 1."
    ),
    "Group normalisation: of each example, every C/G neighbouring channels together.": (
        "Normalizare pe grup: la fiecare exemplu, câte C/G canale vecine împreună."
    ),
    "With num_groups = C every channel is a group of its own: instance normalisation. With "
    "num_groups = 1 all of an example is one group. A group of equal values gives β as long "
    "as eps > 0.": (
        "Cu num_groups = C fiecare canal este un grup: normalizare pe instanță. Cu num_groups "
        "= 1 tot exemplul este un singur grup. Un grup de valori egale dă β, cât timp eps > 0."
    ),
    "x, y (N, C, ...) with at least one channel and one position, gamma, beta (C,); G is "
    "num_groups and divides C.": (
        "x, y (N, C, ...) cu cel puțin un canal și o poziție, gamma, beta (C,); G este "
        "num_groups și divide C."
    ),
    "The normalised values in the shape of x, 1/√(variance + eps) per group (N, G, 1), and γ.": (
        "Valorile normalizate, în forma lui x, 1/√(varianță + eps) pentru fiecare grup (N, G, "
        "1), și γ."
    ),
    "x and its means drop out; β has no part in any gradient.": (
        "x și mediile lui dispar din formule; β nu apare în niciun gradient."
    ),
    "Leaky ReLU: keep what is positive, shrink the rest.": (
        "Leaky ReLU: ce este pozitiv rămâne, restul se micșorează."
    ),
    "Leaky rectified linear unit.": (
        "Unitate liniară rectificată, cu pantă și în partea negativă."
    ),
    "The derivative at x = 0 is taken as negative_slope, as in PyTorch.": (
        "Derivata în x = 0 se ia negative_slope, ca în PyTorch."
    ),
    "x, whose sign picks the slope; y would not do, as the slope may be 0 or negative.": (
        "x, al cărui semn alege panta; y nu ar ajunge, căci panta poate fi 0 sau negativă."
    ),
    "RMS normalisation: every row to mean square 1, then scaled.": (
        "Normalizare RMS: fiecare rând este adus la media pătratică 1, apoi scalat."
    ),
    "Root mean square normalisation over the last axis.": (
        "Normalizare prin rădăcina mediei pătratice, de-a lungul ultimei axe."
    ),
    "A row of zeros gives 0 as long as eps > 0.": "Un rând de zerouri dă 0, cât timp eps > 0.",
    "x, y (..., D) with D at least 1; gamma (D,).": ("x, y (..., D) cu D cel puțin 1; gamma (D,)."),
    "The normalised rows and 1/√(mean square + eps), in which backward is written, and γ.": (
        "Rândurile normalizate și 1/√(medie pătratică + eps), prin care se scrie pasul înapoi, "
        "și γ."
    ),
    "Sigmoid: any number to a value between 0 and 1.": (
        "Sigmoidă: din orice număr, o valoare între 0 și 1."
    ),
    "Logistic sigmoid.": "Sigmoida logistică.",
    "No x overflows; ±∞ give exactly 0 and 1.": (
        "Niciun x nu depășește domeniul numerelor; ±∞ dau exact 0 și 1."
    ),
    "The output, in which the derivative is a polynomial; x is not needed again.": (
        "Ieșirea, în care derivata este un polinom; de x nu mai este nevoie."
    ),
    "SiLU, also called swish: x times its own sigmoid.": (
        "SiLU, numită și swish: x înmulțit cu propria sigmoidă."
    ),
    "Sigmoid linear unit.": "Unitate liniară cu sigmoidă.",
    "x; its sigmoid is cheaper to compute again than to keep.": (
        "x; este mai ieftin să i se calculeze din nou sigmoida decât să fie păstrată."
    ),
    "Sine: a wave, by which networks represent signals with their derivatives.": (
        "Sinus: o undă, prin care rețelele reprezintă semnale împreună cu derivatele lor."
    ),
    "Sine of an angle in radians.": "Sinusul unui unghi în radiani.",
    "±∞ have no sine: they give NaN.": "±∞ nu au sinus: dau NaN.",
    "x, because y has the derivative but for its sign.": (
        "x, fiindcă y are derivata fără semnul ei."
    ),
    "Standardize: mean 0 and variance 1 over the chosen axes.": (
        "Standardizare: media 0 și varianța 1 peste axele alese."
    ),
    "Standardisation over `axes`: the whole matrix of each sample by default, or any axes.": (
        "Standardizare peste `axes`: implicit întreaga matrice a fiecărui exemplu, sau orice axe."
    ),
    "None takes all axes but the first: each sample of a batch as a whole, whatever its rank.": (
        "None ia toate axele afară de prima: fiecare exemplu al unui lot ca întreg, oricâte "
        "axe ar avea."
    ),
    "A constant x gives 0 as long as eps > 0.": "Un x constant dă 0, cât timp eps > 0.",
    "x, y any shape with these axes; (..., n, m) for the default, (N, ...) for None.": (
        "x, y de orice formă cu aceste axe; (..., n, m) pentru varianta implicită, (N, ...) "
        "pentru None."
    ),
    "The output and 1/√(variance + eps), in which backward is written; the mean drops out.": (
        "Ieșirea și 1/√(varianță + eps), prin care se scrie pasul înapoi; media dispare din "
        "formule."
    ),
    "SwiGLU: one half of the features, gated by the SiLU of the other.": (
        "SwiGLU: o jumătate a trăsăturilor, modulată de SiLU al celeilalte."
    ),
    "Swish-gated linear unit of the two halves of the last axis, x = [a, b].": (
        "Unitate liniară cu poartă Swish din cele două jumătăți ale ultimei axe, x = [a, b]."
    ),
    "One linear map of 2H outputs gives both halves in one product, and takes dx as it is: "
    "its first H rows are the W of Source, whose product goes through Swish, and the others "
    "its V.": (
        "O singură proiecție liniară cu 2H ieșiri dă ambele jumătăți într-un produs și "
        "primește dx așa cum este: primele ei H rânduri sunt W din Source, al cărui produs "
        "trece prin Swish, iar celelalte sunt V."
    ),
    "x, both halves; σ(a) is cheaper to compute again than to keep.": (
        "x, ambele jumătăți; este mai ieftin să se calculeze din nou σ(a) decât să fie păstrată."
    ),
    "Tanh: any number to a value between −1 and 1.": (
        "Tanh: din orice număr, o valoare între −1 și 1."
    ),
    "Hyperbolic tangent.": "Tangenta hiperbolică.",
}
