from .change import Change as Change
from .connection import Connection as Connection, connect as connect
from .notebook import Graph as Graph, Instance as Instance, Records as Records
