"""Romanian of the docstrings of recurrent networks, attention and what belongs to sequences."""

from __future__ import annotations

from typing import Final

#: Each text by its English words.
TEXTS: Final = {
    "Attention: every query gets the mean of the values, weighted by how well their keys "
    "match it.": (
        "Atenție: fiecare interogare primește media valorilor, ponderată după cât de bine i se "
        "potrivesc cheile lor."
    ),
    "Scaled dot-product attention over H heads, G of them for keys and values.": (
        "Atenție prin produse scalare, scalate, cu H capete; cheile și valorile au G."
    ),
    "A query may look at a key where all that is given agrees: `mask` is True, the key is "
    "one of its sequence's first `lengths`, and, if `causal`, it does not come after the "
    "query, the first query standing at the position `offset` of the keys. One that may look "
    "nowhere gets y = 0, and all gradients through it are 0. `scale` is 1/√d unless given. "
    "Dropout switches weights off after the softmax and scales the others by 1/(1 − "
    "dropout_p); at inference leave it at 0.": (
        "O interogare vede o cheie unde tot ce este dat o permite: `mask` este True, cheia "
        "este printre primele `lengths` ale secvenței ei și, cu `causal`, nu vine după "
        "interogare, prima interogare fiind la poziția `offset` a cheilor. O interogare care "
        "nu vede nimic primește y = 0, iar toți gradienții prin ea sunt 0. `scale` este 1/√d "
        "dacă nu se dă altul. Dropout-ul anulează ponderi după softmax și le scalează pe "
        "celelalte cu 1/(1 − dropout_p); la inferență se lasă 0."
    ),
    "Each of the G key-value heads serves H/G heads that stand one after another; dk and dv "
    "are sums over these, dbias is summed over the axes along which bias was broadcast.": (
        "Fiecare dintre cele G capete de chei și valori servește H/G capete consecutive; "
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
    "No mask is kept but that of the dropout, `keep`: a masked weight is 0, and so is all "
    "that comes through it. Of the bias only its shape is needed.": (
        "Nu se păstrează altă mască decât a dropout-ului, `keep`: o pondere mascată este 0 și "
        "la fel tot ce trece prin ea. Din bias este nevoie doar de formă."
    ),
    "Additive attention: a decoder's states look at an encoder's, scored by a small network.": (
        "Atenție aditivă: stările unui decodor privesc stările unui codificator, cu scoruri "
        "date de o rețea mică."
    ),
    "Additive attention of the states s over the states h, which are keys and values at once.": (
        "Atenție aditivă a stărilor s asupra stărilor h, care sunt deodată chei și valori."
    ),
    "W_s and W_h are the two blocks of the matrix that Yamanishi applies to [s; h]. s_j may "
    "look at h_i where `mask` is True and i is below its sequence's entry of `lengths`, as "
    "far as they are given; if it may look nowhere, c_j and all gradients through it are 0.": (
        "W_s și W_h sunt cele două blocuri ale matricei pe care Yamanishi o aplică lui [s; h]. "
        "s_j poate privi h_i unde `mask` este True și i este sub intrarea din `lengths` a "
        "secvenței sale, în măsura în care acestea sunt date; dacă nu poate privi nicăieri, "
        "c_j și toți gradienții prin el sunt 0."
    ),
    "A weight of 0, as of a pair that is masked, stands for a product that is left out or is "
    "made: what is NaN or infinite there in s, h or dc may or may not reach the results.": (
        "O pondere 0, ca a unei perechi mascate, stă pentru un produs care se omite sau se "
        "face: ce este NaN sau infinit acolo în s, h sau dc poate ajunge ori nu în rezultat."
    ),
    "s (N, J, D), h (N, T, E) with T at least 1, weight_s (A, D), weight_h (A, E), v (A,), c "
    "(N, J, E); mask broadcasts to (N, J, T); lengths (N,), integers from 0 to T.": (
        "s (N, J, D), h (N, T, E) cu T cel puțin 1, weight_s (A, D), weight_h (A, E), v (A,), "
        "c (N, J, E); mask se extinde la (N, J, T); lengths (N,), întregi de la 0 la T."
    ),
    "The inputs, the hidden values u of the score's network and the weights α.": (
        "Intrările, valorile ascunse u ale rețelei care dă scorurile și ponderile α."
    ),
    "u is kept for tanh′ = 1 − u²; it is the largest array here, one vector per pair of states.": (
        "u se păstrează pentru tanh′ = 1 − u²; este cel mai mare tablou de aici, câte un "
        "vector pentru fiecare pereche de stări."
    ),
    "Cosine attention: a decoder's states look at an encoder's, scored by the angle between "
    "them.": (
        "Atenție cosinus: stările unui decodor privesc stările unui codificator, cu scoruri "
        "date de unghiul dintre ele."
    ),
    "Cosine attention of the states s over the states h, which are keys and values at once.": (
        "Atenție cosinus a stărilor s asupra stărilor h, care sunt deodată chei și valori."
    ),
    "A state of zeros has cosine 0 with every other as long as eps > 0. s_j may look at h_i "
    "where `mask` is True and i is below its sequence's entry of `lengths`, as far as they "
    "are given; if it may look nowhere, c_j and all gradients through it are 0.": (
        "O stare numai din zerouri are cosinusul 0 cu oricare alta, cât timp eps > 0. s_j "
        "poate privi h_i unde `mask` este True și i este sub intrarea din `lengths` a "
        "secvenței sale, în măsura în care acestea sunt date; dacă nu poate privi nicăieri, "
        "c_j și toți gradienții prin el sunt 0."
    ),
    "s, c (N, J, D), h (N, T, D) with T at least 1; mask broadcasts to (N, J, T); lengths "
    "(N,), integers from 0 to T.": (
        "s, c (N, J, D), h (N, T, D) cu T cel puțin 1; mask se extinde la (N, J, T); lengths "
        "(N,), întregi de la 0 la T."
    ),
    "h as the values, both states at length 1 with what brought them there, and the weights α.": (
        "h ca valori, ambele stări aduse la lungimea 1, cu ce le-a adus acolo, și ponderile α."
    ),
    "CTC loss: scores of every step against labels, over every way to align the two.": (
        "Pierderea CTC: scorurile fiecărui pas față de etichete, peste toate felurile de a le "
        "alinia."
    ),
    "Connectionist temporal classification: −log of the probability, under softmax(x), of "
    "all paths that spell the target once repeated labels are merged and blanks are removed.": (
        "Clasificare temporală conexionistă: −log al probabilității, sub softmax(x), a tuturor "
        "drumurilor care dau ținta după ce etichetele repetate se contopesc și cele vide se "
        "elimină."
    ),
    "α, β and γ are computed as logarithms. The softmax is fused: log p of log probabilities "
    "is these themselves, so what PyTorch's ctc_loss takes as log_probs can be x; then loss "
    "and gradient are its own.": (
        "α, β și γ se calculează ca logaritmi. Softmax-ul este contopit: log p al unor "
        "logaritmi de probabilități sunt chiar aceștia, deci x poate fi ce primește ctc_loss "
        "din PyTorch ca log_probs; atunci pierderea și gradientul sunt ale lui."
    ),
    "Of example n, the first input_lengths[n] steps and target_lengths[n] labels count, "
    "without these all; dx of the other steps is 0 and their x does not matter, even where "
    "it is NaN. A target that no path spells, as one longer than its steps, counting one "
    "more between two equal labels, has loss ∞ and at its steps gradient NaN; with "
    "zero_infinity, loss and gradient 0. An empty target is spelt by blanks alone. An "
    "example without steps has loss 0 for an empty target, ∞ for another. An empty batch has "
    "loss 0 (PyTorch: NaN). Targets and lengths have no gradient.": (
        "Din exemplul n contează primii input_lengths[n] pași și primele target_lengths[n] "
        "etichete, iar fără acestea toate; dx al celorlalți pași este 0 și valorile x de acolo "
        "nu contează, nici dacă sunt NaN. O țintă pe care niciun drum nu o dă, ca una mai "
        "lungă decât pașii ei, numărând încă unul între două etichete egale, are pierderea ∞ "
        "și, la pașii ei, gradientul NaN; cu zero_infinity, pierderea și gradientul 0. O țintă "
        "goală este dată numai de etichete vide. Un exemplu fără pași are pierderea 0 pentru o "
        "țintă goală și ∞ pentru alta. Un lot gol are pierderea 0 (PyTorch: NaN). Țintele și "
        "lungimile nu au gradient."
    ),
    "x (N, T, C) with T and C at least 1, where PyTorch has (T, N, C); targets (N, L), "
    'input_lengths, target_lengths (N,); loss (), or (N,) with "none".': (
        "x (N, T, C) cu T și C cel puțin 1, unde PyTorch are (T, N, C); targets (N, L), "
        'input_lengths, target_lengths (N,); loss (), sau (N,) cu "none".'
    ),
    "log p (N, T, C), log α before the first step and after each (N, T + 1, S), the labels "
    "l′ of the S = 2L + 1 states, log β after the last step (N, S), and log p(l) (N,).": (
        "log p (N, T, C), log α înaintea primului pas și după fiecare (N, T + 1, S), "
        "etichetele l′ ale celor S = 2L + 1 stări, log β după ultimul pas (N, S) și log p(l) "
        "(N,)."
    ),
    "log p of the labels is looked up again, and β is computed backward only. `share` is "
    "what each loss is multiplied by, `active` the steps that are no padding.": (
        "log p al etichetelor se caută din nou, iar β se calculează numai la pasul înapoi. "
        "`share` este factorul fiecărei pierderi, `active` sunt pașii care nu sunt umplutură."
    ),
    "Embedding: one row of a table per token.": (
        "Încorporare (embedding): un rând al unui tabel pentru fiecare token."
    ),
    "Table lookup.": "Căutare într-un tabel.",
    "The row `padding_idx` (counted from the end if negative) is looked up like any other, "
    "and its gradient is 0. Tokens have no gradient, so backward returns dW alone.": (
        "Rândul `padding_idx` (numărat de la sfârșit dacă este negativ) se caută ca oricare "
        "altul, iar gradientul lui este 0. Tokenii nu au gradient, deci pasul înapoi dă numai "
        "dW."
    ),
    "tokens any shape, weight (V, D), y (*tokens.shape, D).": (
        "tokens de orice formă, weight (V, D), y (*tokens.shape, D)."
    ),
    "The tokens, and the number of rows of the table; the gradient does not need its values.": (
        "Tokenii și numărul de rânduri ale tabelului; gradientul nu are nevoie de valorile lui."
    ),
    "Gated recurrent unit: one layer, in one direction, over whole sequences.": (
        "Unitate recurentă cu porți (GRU): un strat, într-o direcție, peste secvențe întregi."
    ),
    "Gated recurrent unit; gives y = (h_1, ..., h_T) and the final state.": (
        "Unitate recurentă cu porți; dă y = (h_1, ..., h_T) și starea finală."
    ),
    "The gates stand in the weights in the order r, z, n: W_ih = [W_ir; W_iz; W_in], W_hh, "
    "b_ih and b_hh likewise. The reset gate acts after the product with W_hn, as in PyTorch "
    "and cuDNN. `reverse`, `lengths` and a missing h0 are as in `rnn`.": (
        "Porțile stau în ponderi în ordinea r, z, n: W_ih = [W_ir; W_iz; W_in], iar W_hh, b_ih "
        "și b_hh la fel. Poarta de resetare acționează după produsul cu W_hn, ca în PyTorch și "
        "cuDNN. `reverse`, `lengths` și un h0 absent sunt ca la `rnn`."
    ),
    "x (N, T, D) with T at least 1, weight_ih (3H, D), weight_hh (3H, H), bias_ih, bias_hh "
    "(3H,), h0 and the final state (N, H), lengths (N,), y (N, T, H).": (
        "x (N, T, D) cu T cel puțin 1, weight_ih (3H, D), weight_hh (3H, H), bias_ih, bias_hh "
        "(3H,), h0 și starea finală (N, H), lengths (N,), y (N, T, H)."
    ),
    "The inputs, states and gates of every step, in running order.": (
        "Intrările, stările și porțile fiecărui pas, în ordinea rulării."
    ),
    "`h` is (N, T + 1, H), the initial state first; `gates` is (N, T, 4H): r, z, n and u, "
    "the part of n that comes from h. Of what is optional only whether it was there.": (
        "`h` este (N, T + 1, H), starea inițială prima; `gates` este (N, T, 4H): r, z, n și u, "
        "partea din n care vine de la h. Despre ce este opțional, doar dacă a existat."
    ),
    "Leaky units: a moving average of what comes in, with a fixed rate for every unit.": (
        "Unități cu scurgere: o medie glisantă a ceea ce intră, cu o rată fixă pentru fiecare "
        "unitate."
    ),
    "Leaky units h_t = α h_{t−1} + (1 − α) g_t; gives y = (h_1, ..., h_T) and the final state.": (
        "Unități cu scurgere h_t = α h_{t−1} + (1 − α) g_t; dau y = (h_1, ..., h_T) și starea "
        "finală."
    ),
    "No matrix stands between h_{t−1} and h_t, so a gradient fades by α for every step and "
    "by no more. α is fixed, one number or one for every unit, and has no gradient: 0 "
    "forgets at once, 1 never takes anything in. `reverse`, `lengths` and a missing h0 are "
    "as in `rnn`.": (
        "Între h_{t−1} și h_t nu stă nicio matrice, deci un gradient scade la fiecare pas cu "
        "factorul α și nu mai mult. α este fix, un singur număr sau câte unul pentru fiecare "
        "unitate, și nu are gradient: 0 uită imediat, 1 nu primește niciodată nimic. "
        "`reverse`, `lengths` și un h0 absent sunt ca la `rnn`."
    ),
    "x (N, T, D) with T at least 1, weight_ih (H, D), bias_ih (H,), alpha a number or (H,), "
    "h0 and the final state (N, H), lengths (N,), y (N, T, H).": (
        "x (N, T, D) cu T cel puțin 1, weight_ih (H, D), bias_ih (H,), alpha un număr sau "
        "(H,), h0 și starea finală (N, H), lengths (N,), y (N, T, H)."
    ),
    "The inputs and g_t = tanh a_t of every step, in running order; no gradient needs the "
    "states.": (
        "Intrările și g_t = tanh a_t ale fiecărui pas, în ordinea rulării; niciun gradient nu "
        "are nevoie de stări."
    ),
    "Of what is optional only whether it was there.": (
        "Despre ce este opțional, doar dacă a existat."
    ),
    "Long short-term memory: one layer, in one direction, over whole sequences.": (
        "Memorie lungă de scurtă durată (LSTM): un strat, într-o direcție, peste secvențe întregi."
    ),
    "Long short-term memory; gives y = (h_1, ..., h_T) and the final states (h_n, c_n).": (
        "Memorie lungă de scurtă durată; dă y = (h_1, ..., h_T) și stările finale (h_n, c_n)."
    ),
    "There are no peepholes. The gates stand in the weights in the order i, f, g, o, as in "
    "PyTorch; `gate_order` brings weights to and from Yeung's i, f, o, c′, where c′ is g. "
    "`reverse`, `lengths` and a missing h0 or c0 are as in `rnn`. `backward` can also be had "
    "in two parts, `backward_data` and `backward_weights`.": (
        "Nu există conexiuni „peephole”. Porțile stau în ponderi în ordinea i, f, g, o, ca în "
        "PyTorch; `gate_order` trece ponderile în ordinea i, f, o, c′ a lui Yeung și înapoi, "
        "unde c′ este g. `reverse`, `lengths` și un h0 sau c0 absent sunt ca la `rnn`. "
        "`backward` se poate face și în două părți, `backward_data` și `backward_weights`."
    ),
    "x (N, T, D) with T at least 1, weight_ih (4H, D), weight_hh (4H, P), bias_ih, bias_hh "
    "(4H,), weight_hr (P, H), without it P = H; h0 and h_n (N, P), c0 and c_n (N, H), "
    "lengths (N,), y (N, T, P).": (
        "x (N, T, D) cu T cel puțin 1, weight_ih (4H, D), weight_hh (4H, P), bias_ih, bias_hh "
        "(4H,), weight_hr (P, H), fără ea P = H; h0 și h_n (N, P), c0 și c_n (N, H), lengths "
        "(N,), y (N, T, P)."
    ),
    "The inputs, states and gates of every step, in running order; tanh c is computed again.": (
        "Intrările, stările și porțile fiecărui pas, în ordinea rulării; tanh c se calculează "
        "din nou."
    ),
    "`h` is (N, T + 1, P) and `c` (N, T + 1, H), the initial states first; `gates` is (N, T, "
    "4H): i, f, g, o. Of what is optional and has no part in other gradients only whether it "
    "was there.": (
        "`h` este (N, T + 1, P) și `c` (N, T + 1, H), stările inițiale primele; `gates` este "
        "(N, T, 4H): i, f, g, o. Despre ce este opțional și nu apare în alți gradienți, doar "
        "dacă a existat."
    ),
    "Positional encoding: sines and cosines of the position, added to the features.": (
        "Codificare pozițională: sinusuri și cosinusuri ale poziției, adunate la trăsături."
    ),
    "Sinusoidal positions added to the features of every step.": (
        "Poziții sinusoidale, adunate la trăsăturile fiecărui pas."
    ),
    "`offset` is the position of the first step, for a sequence that continues an earlier "
    "call. The table is computed in float64 and rounded to the type of x.": (
        "`offset` este poziția primului pas, pentru o secvență care continuă un apel anterior. "
        "Tabelul se calculează în float64 și se rotunjește la tipul lui x."
    ),
    "x, y (..., T, D).": "x, y (..., T, D).",
    "Empty: the gradient needs nothing.": "Nimic: gradientul nu are nevoie de nimic.",
    "Simple recurrent network: one layer, in one direction, over whole sequences.": (
        "Rețea recurentă simplă (RNN): un strat, într-o direcție, peste secvențe întregi."
    ),
    "Recurrent network h_t = f(a_t); gives y = (h_1, ..., h_T) and the final state.": (
        "Rețea recurentă h_t = f(a_t); dă y = (h_1, ..., h_T) și starea finală."
    ),
    "f is tanh or, as `nonlinearity`, relu, whose derivative at 0 is 0. With `reverse` the "
    "steps run from the last to the first; y_t still belongs to x_t. Without h0 the initial "
    "state is 0.": (
        "f este tanh sau, ca `nonlinearity`, relu, a cărei derivată în 0 este 0. Cu `reverse` "
        "pașii merg de la ultimul la primul; y_t aparține tot lui x_t. Fără h0 starea inițială "
        "este 0."
    ),
    "With `lengths`, sequence n has lengths[n] steps, and what follows is padding: y is 0 "
    "there, and the values of x and dy there do not count, even where they are NaN. The "
    "final state is that after the last of its own steps to run. A sequence of length 0 ends "
    "in its initial state.": (
        "Cu `lengths`, secvența n are lengths[n] pași, iar ce urmează este umplutură: acolo y "
        "este 0, iar valorile lui x și dy nu contează, nici dacă sunt NaN. Starea finală este "
        "cea de după ultimul dintre pașii ei care rulează. O secvență de lungime 0 se termină "
        "în starea ei inițială."
    ),
    "x (N, T, D) with T at least 1, weight_ih (H, D), weight_hh (H, H), bias_ih, bias_hh "
    "(H,), h0 and the final state (N, H), lengths (N,), y (N, T, H).": (
        "x (N, T, D) cu T cel puțin 1, weight_ih (H, D), weight_hh (H, H), bias_ih, bias_hh "
        "(H,), h0 și starea finală (N, H), lengths (N,), y (N, T, H)."
    ),
    "The inputs and states of every step, in running order; a is not kept, as f′ follows from h.": (
        "Intrările și stările fiecărui pas, în ordinea rulării; a nu se păstrează, căci f′ "
        "rezultă din h."
    ),
    "`h` is (N, T + 1, H), the initial state first. Of what is optional only whether it was "
    "there.": (
        "`h` este (N, T + 1, H), starea inițială prima. Despre ce este opțional, doar dacă a "
        "existat."
    ),
    "Rotary positions: pairs of features turned by an angle that grows with the position.": (
        "Poziții rotative: perechi de trăsături rotite cu un unghi care crește cu poziția."
    ),
    "Rotary positions for the queries and keys of attention.": (
        "Poziții rotative pentru interogările și cheile atenției."
    ),
    "The product of a query and a key that were both turned depends only on the distance of "
    "their positions. `offset` is the position of the first step, for a sequence that "
    "continues an earlier call. `frequencies` are other ω, such as those that Llama 3.1 "
    "stretches for longer texts; then `base` does not count. The angles are computed in "
    "float64, their cosines and sines rounded to the type of x.": (
        "Produsul dintre o interogare și o cheie, ambele rotite, depinde numai de distanța "
        "dintre pozițiile lor. `offset` este poziția primului pas, pentru o secvență care "
        "continuă un apel anterior. `frequencies` sunt alte ω, ca acelea pe care Llama 3.1 le "
        "întinde pentru texte mai lungi; atunci `base` nu contează. Unghiurile se calculează "
        "în float64, iar cosinusurile și sinusurile lor se rotunjesc la tipul lui x."
    ),
    "x, y (..., T, d) with an even d, such as (N, H, T, d).": (
        "x, y (..., T, d) cu d par, de pildă (N, H, T, d)."
    ),
    "The cosine and sine of every angle; x is not needed, because a rotation is linear.": (
        "Cosinusul și sinusul fiecărui unghi; de x nu este nevoie, fiindcă o rotație este liniară."
    ),
}
