"""gpt2_124m: GPT-2's 12 blocks of width 768 and vocabulary of 50,257; 64 steps, batches of 4.

The CPU setting of llm.c; the table of positions has GPT-2's 1,024 rows.
"""

from __future__ import annotations

from benchmarks.workloads import Workload, gpt_mini


def workload() -> Workload:
    return gpt_mini.workload(
        batch=4, steps=64, vocabulary=50_257, blocks=12, width=768, heads=12, context=1024
    )
