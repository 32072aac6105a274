"""Romanian of what is said of layers, models and helpers, and names of layers in pictures."""

from __future__ import annotations

from typing import Final

#: Each text by its English words.
TEXTS: Final = {
    "Q (N, D) with D even; each head (N, D/2).": "Q (N, D), cu D par; fiecare cap (N, D/2).",
    "A transformer encoder that gives every token, or a whole text, a vector.": (
        "Un codificator transformer care dă un vector fiecărui token sau unui text întreg."
    ),
    "A decoder-only transformer that says what comes next.": (
        "Un transformer numai cu decodor, care spune ce urmează."
    ),
    "A decoder-only transformer with RMSNorm, SwiGLU, rotary positions and grouped heads.": (
        "Un transformer numai cu decodor, cu RMSNorm, SwiGLU, poziții rotative și capete grupate."
    ),
    "Convolution stages, then a dense classifier.": (
        "Etape de convoluție, apoi un clasificator dens."
    ),
    "A fully connected network of any depth.": "O rețea complet conectată, de orice adâncime.",
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
    "An element-wise function, or softmax, as a layer of its own.": (
        "O funcție aplicată element cu element, sau softmax, ca strat de sine stătător."
    ),
    "A learned vector for each level of some columns of a table.": (
        "Câte un vector învățat pentru fiecare nivel al unor coloane dintr-un tabel."
    ),
    "Cross-correlation of sequences (N, C, T), weight (out, in / groups, K), then an activation.": (
        "Corelația încrucișată a secvențelor (N, C, T), weight (out, in / groups, K), apoi o "
        "activare."
    ),
    "Cross-correlation of images (N, C, H, W), weight (out, in / groups, KH, KW), then an "
    "activation.": (
        "Corelația încrucișată a imaginilor (N, C, H, W), weight (out, in / groups, KH, KW), "
        "apoi o activare."
    ),
    "The input gradient of a convolution as a layer": (
        "Gradientul intrării unei convoluții, ca strat"
    ),
    "Every output depends on every input.": "Fiecare ieșire depinde de fiecare intrare.",
    "Values switched off at random in training.": "Valori anulate la întâmplare la antrenare.",
    "A learned row for every token.": "Câte un rând învățat pentru fiecare token.",
    "Every example as one row.": "Fiecare exemplu ca un singur rând.",
    "Gated recurrent unit, gates in the order r, z, n": (
        "Unitate recurentă cu porți, cu porțile în ordinea r, z, n"
    ),
    "GroupNorm in which each channel is a group": ("GroupNorm în care fiecare canal este un grup"),
    "Long short-term memory, gates in the order i, f, g, o": (
        "Memorie lungă de scurtă durată, cu porțile în ordinea i, f, g, o"
    ),
    "From a sequence to one vector, the mean or the largest of its steps.": (
        "De la o secvență la un singur vector, media sau maximul pașilor ei."
    ),
    "From a sequence to one vector, behind a recurrent layer.": (
        "De la o secvență la un singur vector, după un strat recurent."
    ),
    "A Dense layer whose weight stays, beside a product of two small matrices.": (
        "Un strat dens ale cărui ponderi rămân, alături de produsul a două matrice mici."
    ),
    "The largest value of every window of (N, C, T)": (
        "Cea mai mare valoare a fiecărei ferestre din (N, C, T)"
    ),
    "The largest value of every window of (N, C, H, W)": (
        "Cea mai mare valoare a fiecărei ferestre din (N, C, H, W)"
    ),
    "Values around every example, zeros or those of the example itself.": (
        "Valori în jurul fiecărui exemplu: zerouri sau ale exemplului însuși."
    ),
    "A layer whose cache is made again in backward instead of being kept.": (
        "Un strat al cărui cache se reface la pasul înapoi, în loc să fie păstrat."
    ),
    "A branch beside a skip connection.": "O ramură alături de o conexiune reziduală.",
    "One layer after another.": "Un strat după altul.",
    "Every sample to mean 0 and variance 1.": (
        "Fiecare exemplu este adus la media 0 și varianța 1."
    ),
    "Self-attention, with `cross` then attention to a memory, then the feed-forward network.": (
        "Autoatenție, cu `cross` apoi atenție la o memorie, apoi rețeaua feed-forward."
    ),
    "Blocks of causal self-attention, attention to a memory, and feed-forward network.": (
        "Blocuri de autoatenție cauzală, atenție la o memorie și rețea feed-forward."
    ),
    "A recurrent network with one label for each sequence.": (
        "O rețea recurentă cu o etichetă pentru fiecare secvență."
    ),
    "A recurrent network with scores at every step, trained through time.": (
        "O rețea recurentă cu scoruri la fiecare pas, antrenată prin timp."
    ),
    "Careddu's network, with its gradients vectorised and as a chain of Jacobians.": (
        "Rețeaua lui Careddu, cu gradienții vectorizați și ca lanț de jacobieni."
    ),
    "The sigmoid and the negative logarithm of the right answer in one.": (
        "Sigmoida și logaritmul cu minus al răspunsului corect, într-una."
    ),
    "Scores of every step against labels of which nobody says when.": (
        "Scorurile fiecărui pas față de etichete despre care nimeni nu spune când."
    ),
    "The softmax and the negative logarithm of the right class in one.": (
        "Softmax-ul și logaritmul cu minus al clasei corecte, într-una."
    ),
    "The distance to the target, squared.": "Distanța până la țintă, la pătrat.",
    "The losses of the examples added up, each times a weight of its own.": (
        "Pierderile exemplelor adunate, fiecare înmulțită cu o pondere a ei."
    ),
    "(N, H, T, d) to (N, T, H·d): the heads side by side.": (
        "De la (N, H, T, d) la (N, T, H·d): capetele unul lângă altul."
    ),
    "(N, T, H·d) to (N, H, T, d): head i has the columns i·d to (i+1)·d − 1.": (
        "De la (N, T, H·d) la (N, H, T, d): capul i are coloanele i·d până la (i+1)·d − 1."
    ),
    "1/(1 + exp(−x)), computed from exp(−|x|), which cannot overflow.": (
        "1/(1 + exp(−x)), calculat din exp(−|x|), care nu poate depăși domeniul numerelor."
    ),
    "Error function, 2/√π ∫₀ˣ exp(−t²) dt, within 3e-16 in float64 and 3e-7 in float32.": (
        "Funcția erorilor, 2/√π ∫₀ˣ exp(−t²) dt, cu eroare sub 3e-16 în float64 și 3e-7 în float32."
    ),
    "P[t, 2i] = sin(p base^(−2i/D)) and P[t, 2i+1] = cos(p base^(−2i/D)) with p = offset + t.": (
        "P[t, 2i] = sin(p base^(−2i/D)) și P[t, 2i+1] = cos(p base^(−2i/D)), cu p = offset + t."
    ),
    "The mask of keys that are among the first `lengths`: so many axes, keys along the last.": (
        "Masca cheilor care sunt printre primele `lengths`: atâtea axe, cheile de-a lungul ultimei."
    ),
    "The axes in this order, counted from 0.": "Axele în această ordine, numărate de la 0.",
    "The values of the last axis, or of that below, backwards.": (
        "Valorile ultimei axe, sau ale celei de jos, de la coadă la cap."
    ),
    "Positions are counted from 0.": "Pozițiile se numără de la 0.",
    "The values in this shape, repeated where they are fewer.": (
        "Valorile în această formă, repetate unde sunt mai puține."
    ),
    "The transpose of `pad`: without what was added.": (
        "Transpusa lui `pad`: fără ce s-a adăugat."
    ),
    "The transpose of `window`: the values at V[..., m·d :: s], and 0 elsewhere.": (
        "Transpusa lui `window`: valorile la V[..., m·d :: s] și 0 în rest."
    ),
    "`value` on both sides of every axis of positions.": (
        "`value` de ambele părți ale fiecărei axe de poziții."
    ),
    "da = dh f′(a), from the value a before the activation.": (
        "da = dh f′(a), din valoarea a dinaintea activării."
    ),
    "h = f(a)": "h = f(a)",
    "log Σ α over the states that lead to s: s, s − 1, and s − 2 if these are unlike labels.": (
        "log Σ α peste stările care duc la s: s, s − 1 și, dacă etichetele sunt diferite, s − 2."
    ),
    "l′, the labels of the states: a blank, then each label with a blank behind it.": (
        "l′, etichetele stărilor: una vidă, apoi fiecare etichetă urmată de una vidă."
    ),
    "θ[t, i] = (offset + t) ω_i with ω_i = base^(−2i/d), or frequencies[i], in float64.": (
        "θ[t, i] = (offset + t) ω_i cu ω_i = base^(−2i/d), sau frequencies[i], în float64."
    ),
    "The gradients of the parameters by Careddu's equations (1) to (16), summed over samples.": (
        "Gradienții parametrilor după ecuațiile (1)–(16) ale lui Careddu, adunați peste exemple."
    ),
}

#: Layers and losses as a picture names them.
NAMES: Final = {
    "Activation": "Activare",
    "AvgPool1d": "Pooling cu medie",
    "AvgPool2d": "Pooling cu medie",
    "BatchNorm": "Normalizare pe lot",
    "BinaryCrossEntropy": "Entropie încrucișată binară",
    "ColumnEmbeddings": "Încorporare pe coloane",
    "Conv1d": "Convoluție 1D",
    "Conv2d": "Convoluție",
    "ConvTranspose1d": "Convoluție transpusă 1D",
    "ConvTranspose2d": "Convoluție transpusă",
    "CrossEntropy": "Entropie încrucișată",
    "CTCLoss": "Pierdere CTC",
    "Dense": "Strat dens",
    "Flatten": "Aplatizare",
    "GroupNorm": "Normalizare pe grup",
    "InstanceNorm": "Normalizare pe instanță",
    "LastStep": "Ultimul pas",
    "LayerNorm": "Normalizare pe strat",
    "MaxPool1d": "Pooling cu maxim",
    "MaxPool2d": "Pooling cu maxim",
    "MultiHeadAttention": "Atenție cu mai multe capete",
    "Pad": "Bordare",
    "PositionalEncoding": "Codificare pozițională",
    "RMSNorm": "Normalizare RMS",
    "SquaredError": "Eroare pătratică",
    "Standardize": "Standardizare",
    "StepPooling": "Pooling peste pași",
    "TransformerBlock": "Bloc transformer",
    "TransformerDecoder": "Decodor transformer",
    "TransformerEncoder": "Codificator transformer",
}
