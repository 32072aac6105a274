"""Ten exercises, from easy to hard: a forward is given, and the learner writes its backward.

A module per exercise is all there is of it: its docstring is the task, `forward` is given,
`backward` is the solution, and the file to start from is its source without that. HINTS go from a
nudge to nearly the answer. MISTAKES are those that the exercise has better words for than the
checker: a part of the solution, what learners put there, a kind of fault and a sentence. OP has the
same with more settings.
"""

from handgrad.exercises.course import NAMES as NAMES
from handgrad.exercises.course import Exercise as Exercise
from handgrad.exercises.course import exercise as exercise
