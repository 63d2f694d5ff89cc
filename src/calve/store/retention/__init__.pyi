from .retention import SqlRetention as SqlRetention
