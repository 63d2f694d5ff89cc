"""Maven: the installed one, or one that is downloaded like Spark's packages, and cached."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from calve.lake import java
from calve.settings import Settings

_MAVEN = "3.9.9"
_RESOLVER = "1.9.22"
_JARS = (
    f"org.apache.maven:maven-embedder:{_MAVEN}",
    f"org.apache.maven:maven-compat:{_MAVEN}",
    f"org.apache.maven.resolver:maven-resolver-connector-basic:{_RESOLVER}",
    f"org.apache.maven.resolver:maven-resolver-transport-http:{_RESOLVER}",
    "org.slf4j:slf4j-simple:1.7.36",
)


def command(settings: Settings, project: Path) -> list[str]:
    """Return how to run Maven on a project."""
    installed = shutil.which("mvn")
    return [installed] if installed else fetched(settings, project)


def fetched(settings: Settings, project: Path) -> list[str]:
    """Return how to run a Maven that needs nothing but Java; it is fetched the first time."""
    program = str(java.find(settings.spark.java_home).executable)
    jars = settings.spark.jars_cache.parent / f"maven-{_MAVEN}"
    if not jars.is_dir():
        _fetch(program, jars)
    return [
        *(program, "-cp", f"{jars}/*", f"-Dmaven.multiModuleProjectDirectory={project}"),
        "org.apache.maven.cli.MavenCli",
    ]


def _fetch(program: str, jars: Path) -> None:
    """Let Spark's Ivy fetch the jars, then move them into place as a whole."""
    import pyspark

    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        spark = Path(pyspark.__file__).parent / "jars" / "*"
        words = [
            *(program, "-Xmx512m", "-cp", str(spark), "org.apache.spark.deploy.SparkSubmit", "--master", "local[1]"),
            *("--packages", ",".join(_JARS), "--conf", f"spark.jars.ivy={folder}"),
            *("--class", "org.apache.ivy.Main", "spark-internal", "-version"),
        ]
        said = subprocess.run(words, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        (Path(folder) / "jars").rename(jars)
