from .java import Java as Java
from .notebook import Notebook as Notebook
from .python import (
    Python as Python,
    PythonJob as PythonJob,
    python_environment as python_environment,
    run_python as run_python,
)
from .shell import Shell as Shell
