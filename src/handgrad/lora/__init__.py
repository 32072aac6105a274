"""LoRA: fine-tuning of small matrices beside the weights of a model, which stay as they are.

    model = hg.Llama.from_pretrained("SmolLM-135M")
    hg.lora.adapt(model, rank=8, alpha=16, targets=("q_proj", "v_proj"))
    hg.Trainer(model, hg.losses.CrossEntropy(class_axis=-1), lr=1e-4).fit(x, y, epochs=1)
    hg.lora.save(model, "adapter")          # in the files and names of the package peft
    hg.lora.merge(model)                    # W + (alpha/rank) B A, a model as it was before

Source: Hu et al., LoRA: low-rank adaptation of large language models (2021).
"""

from handgrad.lora.files import load, save
from handgrad.models.adapting import Adaptation, adapt, adapted_layers, is_adapted, merge

__all__ = ["Adaptation", "adapt", "adapted_layers", "is_adapted", "load", "merge", "save"]
