"""Romanian of the paragraphs that say why a part of a layer, an op or an optimizer is there."""

from __future__ import annotations

from typing import Final

#: Each text by its English words.
TEXTS: Final = {
    (
        "Scores are multiplied by 1/√d because q k is a sum of d products: with entries of "
        "variance 1 that do not depend on each other its variance is d, whatever the head is for. "
        "Softmax of such scores would put nearly all weight on one key, and its gradient a (da − "
        "Σ a da) would nearly vanish. With the factor the variance is 1 for heads of every size."
    ): (
        "Scorurile se înmulțesc cu 1/√d fiindcă q k este o sumă de d produse: la elemente de "
        "varianță 1, independente între ele, varianța ei este d, oricare ar fi rostul capului. "
        "Softmax-ul unor astfel de scoruri ar da aproape toată ponderea unei singure chei, iar "
        "gradientul lui, a (da − Σ a da), aproape ar dispărea. Cu acest factor varianța este 1 la "
        "capete de orice mărime."
    ),
    (
        "γ and β are there because without them each row would leave with mean 0 and variance 1, "
        "whatever the loss asks for. They are learned, one of each for every number of a row, and "
        "give every feature a scale and a mean of its own again."
    ): (
        "γ și β există fiindcă fără ele fiecare rând ar ieși cu media 0 și varianța 1, orice ar "
        "cere funcția de pierdere. Se învață câte o pereche pentru fiecare număr al unui rând și "
        "redau fiecărei trăsături o scară și o medie proprii."
    ),
    (
        "γ and β are there because without them each channel would leave with mean 0 and variance "
        "1, whatever the loss asks for. They are learned: with γ the standard deviation and β the "
        "mean, the layer would give back what came in."
    ): (
        "γ și β există fiindcă fără ele fiecare canal ar ieși cu media 0 și varianța 1, orice ar "
        "cere funcția de pierdere. Ele se învață: cu γ abaterea standard și β media, stratul ar "
        "da înapoi ce a intrat."
    ),
    (
        "γ is there because without it each row would leave with mean square 1, whatever the loss "
        "asks for. It is learned, and gives every feature a scale of its own again."
    ): (
        "γ există fiindcă fără el fiecare rând ar ieși cu media pătratelor 1, orice ar cere "
        "funcția de pierdere. El se învață și redă fiecărei trăsături o scară proprie."
    ),
    (
        "The cell goes from step to step by a sum, so that its gradient comes back multiplied by "
        "the forget gate alone, with no matrix in between: where f stays near 1, it neither "
        "vanishes nor grows. That is why a forget gate's bias is often set to 1 or more: with a "
        "bias of 0 and small weights f is about 1/2 before anything is learned, and the gradient "
        "halves with every step."
    ): (
        "Celula trece de la un pas la altul printr-o sumă, așa că gradientul ei se întoarce "
        "înmulțit numai cu poarta de uitare, fără nicio matrice între pași: unde f rămâne aproape "
        "de 1, el nici nu dispare, nici nu crește. De aceea biasul porții de uitare se pune "
        "adesea 1 sau mai mult: cu biasul 0 și ponderi mici f este cam 1/2 înainte de orice "
        "învățare, iar gradientul se înjumătățește la fiecare pas."
    ),
    (
        "The largest score is taken off because exp of a score above 709 is infinite in float64, "
        "and infinity over infinity is no number. It changes nothing else: a factor exp(−max x) "
        "stands above and below the fraction. What is left has no power above 1 and a sum of 1 or "
        "more."
    ): (
        "Scorul cel mai mare se scade fiindcă exp al unui scor peste 709 este infinit în float64, "
        "iar infinit supra infinit nu este un număr. Altceva nu se schimbă: factorul exp(−max x) "
        "stă și deasupra, și dedesubtul fracției. Rămân puteri de cel mult 1 și o sumă de cel "
        "puțin 1."
    ),
    (
        "log p is a score less log Σ exp x, and not the logarithm of a softmax, because a small "
        "probability may be rounded to 0, whose logarithm is −∞: the loss would be lost, and its "
        "gradient with it. Taken together the two have the gradient p − q, in which nothing is "
        "divided by p."
    ): (
        "log p este un scor minus log Σ exp x, și nu logaritmul unui softmax, fiindcă o "
        "probabilitate mică se poate rotunji la 0, al cărui logaritm este −∞: s-ar pierde "
        "valoarea funcției de pierdere și, cu ea, gradientul. Luate împreună, cele două au "
        "gradientul p − q, în care nimic nu se împarte la p."
    ),
    (
        "In y = x + f(x), x goes on beside f because dy then reaches it whole, as one term of its "
        "gradient, whatever f does to the other. So gradients do not fade in a deep stack, and a "
        "layer that has nothing to add can leave x as it is by f near 0."
    ): (
        "În y = x + f(x), x merge mai departe pe lângă f fiindcă astfel dy ajunge la el întreg, "
        "ca un termen al gradientului său, orice ar face f cu celălalt. Așa gradienții nu se "
        "sting într-o stivă adâncă, iar un strat care nu are ce adăuga poate lăsa x cum este, cu "
        "f aproape de 0."
    ),
    (
        "In y = x + f(LN(x)) and y = LN(x + f(x)), x goes on beside f because dy then is one term "
        'of its gradient, whatever f does to the other. With norm="pre" it reaches all earlier '
        'layers whole; with norm="post" it passes the normalisation of each.'
    ): (
        "În y = x + f(LN(x)) și y = LN(x + f(x)), x merge mai departe pe lângă f fiindcă astfel "
        'dy este un termen al gradientului său, orice ar face f cu celălalt. Cu norm="pre" el '
        'ajunge întreg la toate straturile dinainte; cu norm="post" trece prin normalizarea '
        "fiecăruia."
    ),
    (
        "m and v are divided by 1 − β₁ᵗ and 1 − β₂ᵗ because both begin at 0: after t steps with "
        "the same g they are (1 − β₁ᵗ) g and (1 − β₂ᵗ) g². With the division a step is about as "
        "long from the first one on; without it the first would be (1 − β₁)/√(1 − β₂) times as "
        "long, 3.2 times with 0.9 and 0.999."
    ): (
        "m și v se împart la 1 − β₁ᵗ și 1 − β₂ᵗ fiindcă amândouă pornesc de la 0: după t pași cu "
        "același g ele sunt (1 − β₁ᵗ) g și (1 − β₂ᵗ) g². Cu împărțirea, un pas este cam la fel de "
        "lung încă de la primul; fără ea primul ar fi de (1 − β₁)/√(1 − β₂) ori mai lung, de 3.2 "
        "ori cu 0.9 și 0.999."
    ),
    (
        "As in Adam, m and v are divided by 1 − β₁ᵗ and 1 − β₂ᵗ because both begin at 0 and would "
        "be too small at first. The decay stands outside, so that it is the same for weights of "
        "every gradient."
    ): (
        "Ca la Adam, m și v se împart la 1 − β₁ᵗ și 1 − β₂ᵗ fiindcă amândouă pornesc de la 0 și "
        "ar fi la început prea mici. Micșorarea ponderilor stă în afara lor, așa că este aceeași "
        "la ponderi cu orice gradient."
    ),
}
