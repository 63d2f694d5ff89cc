from .histories import run_histories as run_histories
from .pyiceberg_writer import PyIcebergWriter as PyIcebergWriter
from .replicas import Row as Row, Rows as Rows, apply_change as apply_change
from .spark_writer import SparkWriter as SparkWriter
from .writers import Ability as Ability, Record as Record, Writer as Writer
