"""Romanian of the docstrings of convolutions and pooling."""

from __future__ import annotations

from typing import Final

#: Each text by its English words.
TEXTS: Final = {
    "Average pooling in one dimension: the mean of every window, and an equal share back.": (
        "Pooling cu medie într-o dimensiune: media fiecărei ferestre, iar înapoi câte o parte "
        "egală."
    ),
    'Mean of every window; of the whole sequence with kernel_size="global".': (
        'Media fiecărei ferestre; a întregii secvențe, cu kernel_size="global".'
    ),
    "V is x with zeros around it; `count_include_pad` says whether these count as values. "
    "`stride` is the kernel's size where it is not given.": (
        "V este x înconjurat de zerouri; `count_include_pad` spune dacă acestea se numără ca "
        "valori. `stride` este mărimea nucleului dacă nu este dat."
    ),
    "x (N, C, T) with T at least 1, y (N, C, TO) with TO = ⌊(T + 2·padding − K) / stride⌋ + "
    '1; y (N, C, 1) for "global".': (
        "x (N, C, T) cu T cel puțin 1, y (N, C, TO) cu TO = ⌊(T + 2·padding − K) / stride⌋ + "
        '1; y (N, C, 1) pentru "global".'
    ),
    "The number of values in each window; nothing of x but its length.": (
        "Numărul de valori din fiecare fereastră; despre x, doar lungimea."
    ),
    "Kernel and padding are those of `inner_window`.": (
        "Nucleul și bordarea sunt cele din `inner_window`."
    ),
    "Average pooling: of every window the mean goes on, and every value takes an equal share "
    "back.": (
        "Pooling cu medie: din fiecare fereastră trece mai departe media, iar înapoi fiecare "
        "valoare primește o parte egală."
    ),
    'Mean of every window; of the whole image with kernel_size="global".': (
        'Media fiecărei ferestre; a întregii imagini, cu kernel_size="global".'
    ),
    "V is x with zeros around it; `count_include_pad` says whether these count as values. "
    "Rows are added before columns, KH + KW steps for KH · KW offsets. `stride` is the "
    "kernel's size where it is not given.": (
        "V este x înconjurat de zerouri; `count_include_pad` spune dacă acestea se numără ca "
        "valori. Rândurile se adună înaintea coloanelor, KH + KW pași pentru KH · KW "
        "deplasări. `stride` este mărimea nucleului dacă nu este dat."
    ),
    "x (N, C, H, W) with H and W at least 1, y (N, C, HO, WO) with HO = ⌊(H + 2·padding − "
    'KH) / stride⌋ + 1, and WO likewise; y (N, C, 1, 1) for "global".': (
        "x (N, C, H, W) cu H și W cel puțin 1, y (N, C, HO, WO) cu HO = ⌊(H + 2·padding − KH) "
        '/ stride⌋ + 1, iar WO la fel; y (N, C, 1, 1) pentru "global".'
    ),
    "The number of values in each window; nothing of x but its rows and columns.": (
        "Numărul de valori din fiecare fereastră; despre x, doar numărul de rânduri și de coloane."
    ),
    "Convolution in one dimension: one matrix product per kernel offset, summed.": (
        "Convoluție într-o dimensiune: un produs de matrice pentru fiecare deplasare a "
        "nucleului, adunate."
    ),
    "Cross-correlation of sequences with a kernel, a bias, and an activation on top.": (
        "Corelația încrucișată a secvențelor cu un nucleu, un bias și o activare deasupra."
    ),
    "V is x with zeros around it, s the stride, d the dilation. Last steps that no move of "
    "the kernel reaches have gradient 0. Each group reads only its own C / groups channels.": (
        "V este x înconjurat de zerouri, s pasul (stride), d dilatarea. Ultimii pași, la care "
        "nicio mutare a nucleului nu ajunge, au gradientul 0. Fiecare grup citește numai cele "
        "C / groups canale ale sale."
    ),
    "A weight that is NaN or infinite makes NaN of its products with the zeros around x or "
    "dy; a kernel leaves some of these products out, others it makes where the op has none, "
    "so that steps at the edges may be NaN on one engine alone. Without channels y is the "
    "bias.": (
        "O pondere NaN sau infinită face NaN din produsele ei cu zerourile din jurul lui x sau "
        "al lui dy; un nucleu compilat omite unele dintre aceste produse, pe altele le face "
        "unde operația nu le are, deci pașii de la margini pot fi NaN doar la unul dintre "
        "motoare. Fără canale, y este bias-ul."
    ),
    "x (N, C, T), weight (O, C / groups, K), bias (O,), y (N, O, TO) with TO = ⌊(T + "
    "2·padding − dilation·(K − 1) − 1) / stride⌋ + 1.": (
        "x (N, C, T), weight (O, C / groups, K), bias (O,), y (N, O, TO) cu TO = ⌊(T + "
        "2·padding − dilation·(K − 1) − 1) / stride⌋ + 1."
    ),
    "x as it came (padding it again costs less than keeping a second copy), the weight, and "
    "a, the value before the activation; of the bias only whether there was one.": (
        "x așa cum a venit (a-l borda din nou costă mai puțin decât a păstra o a doua copie), "
        "ponderile și a, valoarea dinaintea activării; despre bias, doar dacă a existat."
    ),
    "Convolution in two dimensions: one matrix product per kernel offset, summed.": (
        "Convoluție în două dimensiuni: un produs de matrice pentru fiecare deplasare a "
        "nucleului, adunate."
    ),
    "Cross-correlation of images with a kernel, a bias, and an activation on top.": (
        "Corelația încrucișată a imaginilor cu un nucleu, un bias și o activare deasupra."
    ),
    "V is x with zeros around it, s the stride, d the dilation. Last rows and columns that "
    "no move of the kernel reaches have gradient 0. Each group reads only its own C / groups "
    "channels.": (
        "V este x înconjurat de zerouri, s pasul (stride), d dilatarea. Ultimele rânduri și "
        "coloane, la care nicio mutare a nucleului nu ajunge, au gradientul 0. Fiecare grup "
        "citește numai cele C / groups canale ale sale."
    ),
    "A weight that is NaN or infinite makes NaN of its products with the zeros around x or "
    "dy; a kernel leaves some of these products out, others it makes where the op has none, "
    "so that positions at the edges may be NaN on one engine alone; so may those near one "
    "that is NaN or infinite, where a kernel computes tiles of outputs. Without channels y "
    "is the bias.": (
        "O pondere NaN sau infinită face NaN din produsele ei cu zerourile din jurul lui x sau "
        "al lui dy; un nucleu compilat omite unele dintre aceste produse, pe altele le face "
        "unde operația nu le are, deci pozițiile de la margini pot fi NaN doar la unul dintre "
        "motoare; la fel cele de lângă una NaN sau infinită, unde un nucleu compilat "
        "calculează blocuri de ieșiri. Fără canale, y este bias-ul."
    ),
    "x (N, C, H, W), weight (O, C / groups, KH, KW), bias (O,), y (N, O, HO, WO) with HO = "
    "⌊(H + 2·padding − dilation·(KH − 1) − 1) / stride⌋ + 1, and WO likewise.": (
        "x (N, C, H, W), weight (O, C / groups, KH, KW), bias (O,), y (N, O, HO, WO) cu HO = "
        "⌊(H + 2·padding − dilation·(KH − 1) − 1) / stride⌋ + 1, iar WO la fel."
    ),
    "Transposed convolution in one dimension: the input gradient of conv1d as a forward pass.": (
        "Convoluție transpusă într-o dimensiune: gradientul intrării lui conv1d, folosit ca "
        "pas înainte."
    ),
    "Transposed convolution of sequences, with a bias.": (
        "Convoluție transpusă a secvențelor, cu bias."
    ),
    "It is the input gradient of conv1d with the same weight, so its own input gradient is a "
    "convolution. `output_padding` adds steps at the end, where conv1d's floor division "
    "would have left some out; V is 0 there.": (
        "Este gradientul intrării lui conv1d cu aceleași ponderi, deci gradientul propriei "
        "intrări este o convoluție. `output_padding` adaugă la sfârșit pași, acolo unde "
        "împărțirea întreagă din conv1d ar fi omis câțiva; V este 0 acolo."
    ),
    "With a weight that is NaN or infinite, steps at the edges may be NaN on one engine "
    "alone, as in conv1d.": (
        "Cu o pondere NaN sau infinită, pașii de la margini pot fi NaN doar la unul dintre "
        "motoare, ca la conv1d."
    ),
    "x (N, C, T), weight (C, O / groups, K), bias (O,), y (N, O, TO) with TO = (T − "
    "1)·stride − 2·padding + dilation·(K − 1) + output_padding + 1.": (
        "x (N, C, T), weight (C, O / groups, K), bias (O,), y (N, O, TO) cu TO = (T − "
        "1)·stride − 2·padding + dilation·(K − 1) + output_padding + 1."
    ),
    "x and the weight, for the products of backward; of the bias only whether there was one.": (
        "x și ponderile, pentru produsele pasului înapoi; despre bias, doar dacă a existat."
    ),
    "Transposed convolution: the input gradient of a convolution, used as a forward pass.": (
        "Convoluție transpusă: gradientul intrării unei convoluții, folosit ca pas înainte."
    ),
    "Transposed convolution of images, with a bias.": (
        "Convoluție transpusă a imaginilor, cu bias."
    ),
    "It is the input gradient of conv2d with the same weight, h of Yamanishi (9), so its own "
    "input gradient is a convolution. `output_padding` adds rows and columns at the end, "
    "where conv2d's floor division would have left some out; V is 0 there.": (
        "Este gradientul intrării lui conv2d cu aceleași ponderi, h din Yamanishi (9), deci "
        "gradientul propriei intrări este o convoluție. `output_padding` adaugă la sfârșit "
        "rânduri și coloane, acolo unde împărțirea întreagă din conv2d ar fi omis câteva; V "
        "este 0 acolo."
    ),
    "With a weight that is NaN or infinite, positions at the edges may be NaN on one engine "
    "alone, as in conv2d.": (
        "Cu o pondere NaN sau infinită, pozițiile de la margini pot fi NaN doar la unul dintre "
        "motoare, ca la conv2d."
    ),
    "x (N, C, H, W), weight (C, O / groups, KH, KW), bias (O,), y (N, O, HO, WO) with HO = "
    "(H − 1)·stride − 2·padding + dilation·(KH − 1) + output_padding + 1, and WO likewise.": (
        "x (N, C, H, W), weight (C, O / groups, KH, KW), bias (O,), y (N, O, HO, WO) cu HO = "
        "(H − 1)·stride − 2·padding + dilation·(KH − 1) + output_padding + 1, iar WO la fel."
    ),
    "Max pooling in one dimension: the largest value of every window takes the whole gradient.": (
        "Pooling cu maxim într-o dimensiune: cea mai mare valoare a fiecărei ferestre primește "
        "tot gradientul."
    ),
    "Largest value of every window.": "Cea mai mare valoare a fiecărei ferestre.",
    "V is x with −∞ around it, which is never taken: of equal values the first takes the "
    "gradient, as in PyTorch. A NaN makes its windows NaN, and the first takes their "
    "gradient. `stride` is the kernel's size where it is not given.": (
        "V este x înconjurat de −∞, care nu este ales niciodată: dintre valori egale prima "
        "primește gradientul, ca în PyTorch. Un NaN face NaN din ferestrele lui, iar primul le "
        "primește gradientul. `stride` este mărimea nucleului dacă nu este dat."
    ),
    "x (N, C, T) with T at least 1, y (N, C, TO) with TO = ⌊(T + 2·padding − dilation·(K − "
    "1) − 1) / stride⌋ + 1.": (
        "x (N, C, T) cu T cel puțin 1, y (N, C, TO) cu TO = ⌊(T + 2·padding − dilation·(K − 1) "
        "− 1) / stride⌋ + 1."
    ),
    "For every output the number of the kernel offset that won; of x only its length.": (
        "Pentru fiecare ieșire, numărul deplasării din nucleu care a câștigat; despre x, doar "
        "lungimea."
    ),
    "Max pooling: of every window the largest value goes on, and takes the whole gradient.": (
        "Pooling cu maxim: din fiecare fereastră trece mai departe cea mai mare valoare, care "
        "primește tot gradientul."
    ),
    "V is x with −∞ around it, which is never taken: of equal values the first of x in "
    "row-major order takes the gradient, as in PyTorch. A NaN makes its windows NaN, and the "
    "first takes their gradient. `stride` is the kernel's size where it is not given.": (
        "V este x înconjurat de −∞, care nu este ales niciodată: dintre valori egale prima din "
        "x, rând cu rând, primește gradientul, ca în PyTorch. Un NaN face NaN din ferestrele "
        "lui, iar primul le primește gradientul. `stride` este mărimea nucleului dacă nu este "
        "dat."
    ),
    "x (N, C, H, W) with H and W at least 1, y (N, C, HO, WO) with HO = ⌊(H + 2·padding − "
    "dilation·(KH − 1) − 1) / stride⌋ + 1, and WO likewise.": (
        "x (N, C, H, W) cu H și W cel puțin 1, y (N, C, HO, WO) cu HO = ⌊(H + 2·padding − "
        "dilation·(KH − 1) − 1) / stride⌋ + 1, iar WO la fel."
    ),
    "For every output the number of the kernel offset that won; of x only its rows and columns.": (
        "Pentru fiecare ieșire, numărul deplasării din nucleu care a câștigat; despre x, doar "
        "numărul de rânduri și de coloane."
    ),
}
