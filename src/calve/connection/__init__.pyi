from .change import Change as Change
from .connection import Connection as Connection, connect as connect
from .definition_files import (
    SUFFIXES as SUFFIXES,
    load_file as load_file,
    step_files as step_files,
    vocabulary_of as vocabulary_of,
)
from .notebook import Graph as Graph, Instance as Instance, Records as Records
from .options import CaptureOptions as CaptureOptions, PlanOptions as PlanOptions
