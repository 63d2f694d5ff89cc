from .events import WINDOW as WINDOW, Shape as Shape
from .figures import STAGES as STAGES, Day as Day, Lane as Lane, Part as Part, Result as Result, Stage as Stage
from .playback import LANES as LANES, Playback as Playback, settings_in as settings_in
from .report import COLUMNS as COLUMNS, headline as headline, report as report, rows as rows
from .runs import Runs as Runs
