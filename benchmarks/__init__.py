"""What the documentation says of speed and memory, measured: ``make bench``, or ``make bench PART=clax``.

Every figure is a ratio of CPU times within one run, because seconds depend on the machine and on who else uses it; the
exceptions say so in their names. Each side of a ratio runs in a process of its own, several times in turn, and the
median counts. Logs are simulated, so that the truth is known and anybody can make them again.

A part is one small file, and one dated file of results. The first two are what ``make bench`` runs:

==============  ======================================================================================
limits          counting and ranking against the bare query, the bare scan, and each other
experiments     the paper's Fig. 2 against plain loops
plain           click models against loops over sessions in plain Python
clax            click models against CLAX, which trains them by gradients
sizes           time and memory from 100,000 to 10,000,000 lists
pairs           ranking 100,000,000 context-item pairs within 4 GB
evaluate        splitting a log, and evaluating a policy on a million held-out lists within 60 s and 1 GB
spark           counting by Spark on this machine against DuckDB
==============  ======================================================================================

`docs/benchmarks.py` writes the page from the latest results of each.
"""
