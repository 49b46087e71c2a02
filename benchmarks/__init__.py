"""What the documentation says of speed and memory, measured: ``make bench``, or ``make bench PART=clax``.

Every figure is a ratio of CPU times within one run, because seconds depend on the machine and on who else uses it; the
exceptions say so in their names. Each side of a ratio runs in a process of its own, several times in turn, and the
median counts. Logs are simulated, so that the truth is known and anybody can make them again; only ``models`` reads
real clicks.

A part is one dated file of results. The logs of the table are a part each, for `table` measures all `work` on one log:
from the file to evidence and to a policy, by prudent, by SQL and Polars by hand, and by plain loops.

==============  ======================================================================================
tail            a long tail of contexts
head            few contexts
real            contexts as in logs of search, most of them seen once
integers        the long tail, with integer names
rows            the long tail, with one row for each item of a list
sizes           time and memory from 100,000 to 10,000,000 lists
pairs           ranking 100,000,000 context-item pairs within 3 GB
clax            click models against CLAX, which trains them by gradients
models          click models on real clicks: likelihood and time, against plain loops and CLAX
spark           counting and ranking by Spark on this machine against DuckDB
evaluate        splitting a log, evaluating a policy on a million held-out lists, and reporting on it
experiments     the paper's Fig. 2 against plain loops
==============  ======================================================================================

`docs/benchmarks.py` writes the page from the latest results of each.
"""
