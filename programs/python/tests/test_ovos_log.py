"""What OVOS's logger prints becomes lines of the service's log, with their levels."""

from __future__ import annotations

import io
import logging
import unittest
from typing import List, Tuple

from ovos_tools_python.ovos_log import OvosLog

AT = "2026-01-31 12:34:56.789 - "


class Lines(unittest.TestCase):
    def test_each_line_has_its_level_and_everything_else_passes(self) -> None:
        other = io.StringIO()
        records: List[Tuple[str, int, str]] = []

        class Keep(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                records.append((record.name, record.levelno, record.getMessage()))

        keep = Keep()
        logging.getLogger().addHandler(keep)
        self.addCleanup(logging.getLogger().removeHandler, keep)
        log = OvosLog(other)
        for text in (
            f"{AT}OVOS - sample.tools:logs:7 - WARNING - the moon is low\nin the west\n", f"{AT}sample:x:1 - DEBUG - 50 % - done\n",
            "printed\n", f"{AT}no line of it\n",
        ):
            log.write(text)
        self.assertEqual(
            records,
            [("sample.tools", logging.WARNING, "the moon is low\nin the west"), ("sample", logging.DEBUG, "50 % - done")],
        )
        self.assertEqual(other.getvalue(), f"printed\n{AT}no line of it\n")

    def test_it_has_all_that_a_text_stream_has(self) -> None:
        raw = io.BytesIO()
        other = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace")
        log = OvosLog(other)
        log.writelines(["one\n"])
        print("two", file=log, flush=True)
        log.buffer.write(b"three\n")
        log.flush()
        self.assertEqual(raw.getvalue(), b"one\ntwo\nthree\n")
        for name in ("encoding", "errors", "newlines", "closed", "line_buffering", "name", "mode"):
            with self.subTest(name):
                self.assertEqual(getattr(log, name, None), getattr(other, name, None))
        self.assertEqual((log.readable(), log.writable(), log.isatty()), (other.readable(), other.writable(), False))
        log.reconfigure(line_buffering=True)
