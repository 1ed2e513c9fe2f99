"""Hosts the OPM toolboxes that are installed for this Python interpreter, as a program of ovos-tools.

Nothing here imports anything but the standard library until a toolbox is opened.
"""
