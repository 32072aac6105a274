"""The fixed words of the notes, one table for each language.

A new word is a new line in every table, under the same key; a test asserts that none is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handgrad.errors import ArgumentError

LABELS = {
    "en": {
        "after_rounds": "After the last step:",
        "alive": "Step by step",
        "alive_changed": (
            "Changed by hand: the numbers here are computed anew, those of the page are its run's."
        ),
        "alive_closed": "This number is shown as it is: what it is made of is not followed.",
        "alive_fold": "Fold",
        "alive_given": "This number is given.",
        "alive_goes": "{} goes into {} of the {} numbers of {}.",
        "alive_help": (
            "Point at a number to see what it is made of, or where it goes. The keys ← and → step; "
            "in a matrix the arrows walk."
        ),
        "alive_edit": "Enter or a double click changes a number that is given.",
        "alive_more": "and {} more",
        "alive_next": "Next step",
        "alive_part": "in part",
        "alive_pause": "Pause",
        "alive_play": "Play",
        "alive_previous": "Previous step",
        "alive_reset": "Numbers of the run",
        "alive_row": "row {}, column {}",
        "alive_step": "step {} of {}",
        "alive_value": "New value",
        "again": "again, as in",
        "arriving": "From the next node come",
        "backward": "Backward",
        "board": "Given",
        "bound": "bound",
        "bytes_cached": "bytes cached",
        "cached": "Kept for the backward pass",
        "central differences": "central differences",
        "central differences, beside a kink": "central differences, beside a kink",
        "complex step": "complex step",
        "elementwise": (
            "Functions, powers and ⊙ act element by element; [condition] is 1 where the "
            "condition holds and 0 elsewhere; ⟨z⟩ is a mean of z. Sums run over what their "
            "index counts, and leave every other axis as it is."
        ),
        "equation": "Equation",
        "error": "error",
        "figure": "Figure",
        "figure_elsewhere": "The drawing is in the HTML, LaTeX and PDF versions.",
        "finite_differences": "Checked against finite differences",
        "flops_backward": "FLOPs backward",
        "flops_forward": "FLOPs forward",
        "for_every": "For",
        "rounds": (
            "← gives a symbol a new value; on the right of it stands the one that it had before."
        ),
        "forward": "Forward",
        "from_code": "Sentences from the code are in English.",
        "gradient": "gradient",
        "if": "if",
        "in_code": "in the code",
        "incoming": "What comes in from the next node has the shape of what went out:",
        "input": "input",
        "kinks": "At kinks and edges",
        "last_node": "The output is the loss itself, so ∂L/∂L = 1 is not written.",
        "layer": "layer",
        "costs": "Layers and their costs",
        "learning_rate": "The learning rate is",
        "measured": (
            "Along a random direction, with a random gradient coming in, each gradient is compared "
            "with the derivative of the forward pass. It is right where the two differ by no more "
            "than the bound that the difference formula's own error allows; at a kink, where there "
            "is no derivative, a larger error decides nothing."
        ),
        "measured_elsewhere": "Other settings are not measured here. This tries them:",
        "method": "method",
        "model_batch": "N is the number of examples in a batch.",
        "model_block": "Block",
        "model_inputs_one": "{} are the inputs and {} the output.",
        "model_of_block": "{} belongs to block {}.",
        "model_of_step": "{} belongs to step {}.",
        "model_one": "{} is the input and {} the output.",
        "model_step": "Step",
        "model_cached": (
            "Bytes cached: what the caches of a forward pass in training hold for {} examples, "
            "measured. An array that several layers keep counts at the first of them; "
            "parameters count nowhere."
        ),
        "model_arriving": "{} is {}, or as much of it as has come back.",
        "model_copy": "{} is the {} that goes into part {}.",
        "model_drawing": "Data flow",
        "model_flops": (
            "FLOPs are for one example; a multiplication and an addition are 2. Backward is "
            "counted from forward: a layer with parameters does its work once for the gradient "
            "of its input and once for those of its parameters, any other layer once. Where a "
            "value forks, adding its gradients counts at the sum that ends the fork. Gradients "
            "of values that no parameter has gone into, such as the data, are not computed."
        ),
        "model_fork": "{} forks: its gradients add up",
        "model_inputs": "{} are the inputs and {} what layer {} gives.",
        "model_lines_on": "The drawing goes on from there.",
        "model_lines": (
            "Values go down along solid lines, each with its shape; gradients come back up along "
            "dashed lines; ⊕ adds."
        ),
        "model_opaque": (
            "The code of this layer cannot be read, so it is written as one function with its "
            "derivatives."
        ),
        "model_part": "{} belongs to part {} of the model.",
        "model_passed": "{} goes into a sum, which passes its gradient on",
        "model_stops": (
            "No parameter has gone into {}, so training needs no gradient there and computes none."
        ),
        "model_symbols": "{} is the input and {} what layer {} gives.",
        "model_too_large": "The numbers are left out, because they would fill pages:",
        "model_update": "{} stands for each of {}; {}.",
        "not finite": "not finite",
        "one-sided, at a kink": "one-sided, at a kink",
        "otherwise": "otherwise",
        "output": "output",
        "parameters": "parameters",
        "right": "right",
        "shape": "shape",
        "shape_or_meaning": "shape or meaning",
        "shapes": "Shapes",
        "source": "Source",
        "steps": (
            "The index {} counts the steps of a sequence from 1; a state with the index 0 is the "
            "one before the first step."
        ),
        "symbol": "symbol",
        "symbols": "Symbols",
        "table": "Table",
        "the direction is zero": "the direction is zero",
        "total": "total",
        "undecided": "undecided",
        "update": "Update",
        "variants": "With other settings",
        "verdict": "verdict",
        "without": "without {}",
        "wrong": "wrong",
        "wrong_gradient": (
            "Wrong: {}. Finite differences of the forward pass give something else; the numbers "
            "stand under {}."
        ),
        "given": "Given:",
        "where": "where",
        "guards": "Guarded against infinities and empty rows",
        "guarded": (
            "No infinity or empty row is among the usual numbers. With them, these stand in "
            "the place of {}:"
        ),
        "picture": "{}: operands and result",
        "picture_lines": (
            "Every array with its shape. Values go down along solid lines; gradients come "
            "back up along dashed ones."
        ),
        "proved": (
            "Right: each gradient agrees with finite differences of the forward pass, measured now."
        ),
        "settings": "Settings",
        "sources": "Sources",
    },
    "ro": {
        "after_rounds": "După ultimul pas:",
        "alive": "Pas cu pas",
        "alive_changed": (
            "Schimbat de mână: numerele de aici sunt calculate din nou, cele din pagină sunt ale "
            "rulării ei."
        ),
        "alive_closed": "Numărul este arătat așa cum este: din ce e făcut nu se urmărește.",
        "alive_fold": "Strânge",
        "alive_given": "Numărul este dat.",
        "alive_goes": "{} intră în {} din cele {} numere ale lui {}.",
        "alive_help": (
            "Arată un număr ca să vezi din ce e făcut, sau unde intră. Tastele ← și → fac pașii; "
            "într-o matrice săgețile merg prin ea."
        ),
        "alive_edit": "Enter sau un dublu clic schimbă un număr dat.",
        "alive_more": "și încă {}",
        "alive_next": "Pasul următor",
        "alive_part": "în parte",
        "alive_pause": "Pauză",
        "alive_play": "Pornește",
        "alive_previous": "Pasul dinainte",
        "alive_reset": "Numerele rulării",
        "alive_row": "rândul {}, coloana {}",
        "alive_step": "pasul {} din {}",
        "alive_value": "Valoare nouă",
        "again": "din nou, ca în",
        "arriving": "De la nodul următor vin",
        "backward": "Înapoi",
        "board": "Date",
        "bound": "limită",
        "bytes_cached": "octeți păstrați",
        "cached": "Ce se păstrează pentru pasul înapoi",
        "central differences": "diferențe centrale",
        "central differences, beside a kink": "diferențe centrale, lângă un punct unghiular",
        "complex step": "pas complex",
        "elementwise": (
            "Funcțiile, puterile și ⊙ se aplică element cu element; [condiție] este 1 unde "
            "condiția este îndeplinită și 0 în rest; ⟨z⟩ este o medie a lui z. Sumele merg "
            "peste ce numără indicele lor și lasă celelalte axe cum sunt."
        ),
        "equation": "Ecuația",
        "error": "eroare",
        "figure": "Figura",
        "figure_elsewhere": "Desenul se află în versiunile HTML, LaTeX și PDF.",
        "finite_differences": "Verificare prin diferențe finite",
        "flops_backward": "operații înapoi",
        "flops_forward": "operații înainte",
        "for_every": "Pentru",
        "rounds": (
            "← dă unui simbol o valoare nouă; în dreapta lui stă cea pe care o avea înainte."
        ),
        "forward": "Înainte",
        "from_code": "Textele preluate din cod sunt în engleză.",
        "gradient": "gradient",
        "if": "dacă",
        "in_code": "în cod",
        "incoming": "Ce vine de la nodul următor are forma a ceea ce a ieșit:",
        "input": "intrare",
        "kinks": "În puncte unghiulare și la margini",
        "last_node": "Ieșirea este chiar pierderea, deci ∂L/∂L = 1 nu se scrie.",
        "layer": "strat",
        "costs": "Straturile și costurile lor",
        "learning_rate": "Rata de învățare este",
        "measured": (
            "Pe o direcție aleatoare, cu un gradient aleator la intrare, fiecare gradient se "
            "compară cu derivata pasului înainte. Este corect unde cele două diferă cu cel mult "
            "cât permite eroarea proprie a formulei cu diferențe; într-un punct unghiular, unde "
            "nu există derivată, o eroare mai mare nu decide nimic."
        ),
        "measured_elsewhere": "Alte setări nu se măsoară aici. Aceasta le încearcă:",
        "method": "metodă",
        "model_batch": "N este numărul de exemple dintr-un lot.",
        "model_block": "Blocul",
        "model_inputs_one": "{} sunt intrările și {} ieșirea.",
        "model_of_block": "{} ține de blocul {}.",
        "model_of_step": "{} ține de pasul {}.",
        "model_one": "{} este intrarea și {} ieșirea.",
        "model_step": "Pasul",
        "model_cached": (
            "Octeți păstrați: cât ocupă, măsurat, ce se păstrează după un pas înainte, în "
            "antrenare, cu {} exemple. Un tablou păstrat de mai multe straturi se numără la "
            "primul dintre ele; parametrii nu se numără."
        ),
        "model_arriving": "{} este {}, sau cât din el s-a întors până aici.",
        "model_copy": "{} este acel {} care intră în partea {}.",
        "model_drawing": "Fluxul datelor",
        "model_flops": (
            "Operațiile sunt pentru un exemplu; o înmulțire și o adunare sunt 2. Înapoi se "
            "numără din înainte: un strat cu parametri face munca o dată pentru gradientul "
            "intrării și o dată pentru cele ale parametrilor, orice alt strat o dată. Unde o "
            "valoare se ramifică, adunarea gradienților ei se numără la suma care încheie "
            "ramificația. Gradienții valorilor în care nu a intrat niciun parametru, cum sunt "
            "datele, nu se calculează."
        ),
        "model_fork": "{} se ramifică: gradienții se adună",
        "model_inputs": "{} sunt intrările și {} ce dă stratul {}.",
        "model_lines_on": "Desenul continuă de acolo.",
        "model_lines": (
            "Valorile coboară pe linii pline, fiecare cu forma ei; gradienții urcă pe linii "
            "întrerupte; ⊕ adună."
        ),
        "model_opaque": (
            "Codul acestui strat nu poate fi citit, deci este scris ca o funcție cu derivatele ei."
        ),
        "model_part": "{} ține de partea {} a modelului.",
        "model_passed": "{} intră într-o sumă, care îi transmite gradientul",
        "model_stops": (
            "Niciun parametru nu a intrat în {}, deci antrenarea nu are nevoie de gradient "
            "acolo și nu îl calculează."
        ),
        "model_symbols": "{} este intrarea și {} ce dă stratul {}.",
        "model_too_large": "Numerele lipsesc, fiindcă ar umple pagini:",
        "model_update": "{} stă pentru fiecare dintre {}; {}.",
        "not finite": "nu este finit",
        "one-sided, at a kink": "dintr-o parte, într-un punct unghiular",
        "otherwise": "altfel",
        "output": "ieșire",
        "parameters": "parametri",
        "right": "corect",
        "shape": "formă",
        "shape_or_meaning": "formă sau sens",
        "shapes": "Forme",
        "source": "Sursa",
        "steps": (
            "Indicele {} numără pașii unei secvențe de la 1; o stare cu indicele 0 este cea "
            "dinaintea primului pas."
        ),
        "symbol": "simbol",
        "symbols": "Simboluri",
        "table": "Tabelul",
        "the direction is zero": "direcția este zero",
        "total": "total",
        "undecided": "nedecis",
        "update": "Actualizare",
        "variants": "Cu alte setări",
        "verdict": "rezultat",
        "without": "fără {}",
        "wrong": "greșit",
        "wrong_gradient": (
            "Greșit: {}. Diferențele finite ale pasului înainte dau altceva; numerele stau la {}."
        ),
        "given": "Date:",
        "where": "unde",
        "guards": "Ce apără de infinit și de rânduri goale",
        "guarded": (
            "Printre numerele obișnuite nu este niciun infinit și niciun rând gol. Unde este "
            "vreunul, în locul lui {} stă:"
        ),
        "picture": "{}: operanzi și rezultat",
        "picture_lines": (
            "Fiecare tablou cu forma lui. Valorile coboară pe linii pline; gradienții urcă "
            "pe cele întrerupte."
        ),
        "proved": (
            "Corect: fiecare gradient se potrivește cu diferențele finite ale pasului "
            "înainte, măsurate acum."
        ),
        "settings": "Setări",
        "sources": "Surse",
    },
}


def label(lang: str, key: str) -> str:
    """The word for `key`. Raises ArgumentError for a language that has no table."""
    if lang not in LABELS:
        raise ArgumentError(f"notes: lang {lang!r} is not known; allowed: {', '.join(LABELS)}")
    return LABELS[lang][key]


#: Parts of models by their names in the code, in every language.
_PARTS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "attention": "Attention",
        "cell": "Cell",
        "cross_attention": "Cross-attention",
        "decoder": "Decoder",
        "dense": "Output",
        "dropout": "Dropout",
        "embedding": "Embedding",
        "encoder": "Encoder",
        "feed_forward": "Feed-forward",
        "first": "First state",
        "head": "Head",
        "matmul": "Product",
        "norm": "Normalisation",
        "positions": "Positions",
        "recurrent": "Recurrent layer",
        "score": "Attention",
        "softmax": "Softmax",
        "source": "Source embedding",
        "source_positions": "Positions",
        "standardize": "Standardisation",
        "target": "Target embedding",
        "target_positions": "Positions",
        "tokens": "Embedding",
        "types": "Token types",
    },
    "ro": {
        "attention": "Atenția",
        "cell": "Celula",
        "cross_attention": "Atenția la memorie",
        "decoder": "Decodorul",
        "dense": "Ieșirea",
        "dropout": "Dropout",
        "embedding": "Încorporarea",
        "encoder": "Codificatorul",
        "feed_forward": "Rețeaua feed-forward",
        "first": "Prima stare",
        "head": "Capul",
        "matmul": "Produsul",
        "norm": "Normalizarea",
        "positions": "Pozițiile",
        "recurrent": "Stratul recurent",
        "score": "Atenția",
        "softmax": "Softmax",
        "source": "Încorporarea sursei",
        "source_positions": "Pozițiile",
        "standardize": "Standardizarea",
        "target": "Încorporarea țintei",
        "target_positions": "Pozițiile",
        "tokens": "Încorporarea",
        "types": "Tipurile",
    },
}


def part_name(name: str, lang: str) -> str:
    """A part of a model in words; one without words of its own by its name in the code."""
    return _PARTS[lang].get(name, name.replace("_", " "))
