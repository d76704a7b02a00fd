"""The commands of ``tacit``: one file each, imported only when it is called.

A command is a thin shell: it reads options, calls a class of `tacit.apps`, and writes files. What all of them share is
here too: the options (`options`), one run with its record (`run`), the folder that appears whole or not at all
(`folder`), and what an error becomes (`failures`).
"""
