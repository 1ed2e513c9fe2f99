"""Asks the ovos-tools service from an OVOS skill, or from any other client of the messagebus. Read ToolsClient."""
from .client import Call, ToolsClient
from .errors import BusAway, CallLost, ConfirmationRequired, NoAnswer, RunFailed, ToolsError
from .models import CallResult, Confirmation, Plan, PlannedAction, Progress, RunResult, RunStep, StepReport, Tool

__all__ = [
    "BusAway", "Call", "CallLost", "CallResult", "Confirmation", "ConfirmationRequired", "NoAnswer", "Plan", "PlannedAction",
    "Progress", "RunFailed", "RunResult", "RunStep", "StepReport", "Tool", "ToolsClient", "ToolsError",
]
