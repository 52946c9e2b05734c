"""Native: the classes in `java/` made known to a session, so that Spark reads archives itself.

Spark carries a compiler, for the code that it generates, and so do these: there is no jar that has
to fit a version of Spark, and none to put on a class path. Tasks see nothing of them: what workers
are asked is to read files of Parquet.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from functools import cache
from importlib.resources import files
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from tocsin.pipeline.source.planner import Planner
from tocsin.pipeline.spark.spark_errors import with_cause

PLANNER: Final = "tocsin.Planner"
LOADER: Final = "org.apache.spark.util.MutableURLClassLoader"
JAVA: Final = 8  # the language: what Spark's compiler knows of later ones is little


class NotThisSpark(Exception):
    """A Spark that was started in a way we do not know."""


def is_found(spark: SparkSession, name: str) -> bool:
    """True if Spark is sure to know a source in Python of that name already."""
    try:
        state: Any = spark._jsparkSession.sessionState()
        return bool(state.dataSourceManager().dataSourceExists(name))
    except Py4JError:
        return False


def read_natively(spark: SparkSession) -> None:
    """Have Spark itself read archives for `format("tocsin")`, in all threads of its process.

    Raises NotThisSpark, or Py4JError if its classes are others than we know.
    """
    gateway: Any = spark.sparkContext._gateway
    loader = _loader(gateway.jvm)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    if loader.getResource(f"{PLANNER.replace('.', '/')}.class") is None:
        _load(gateway.jvm, loader, _compiled(gateway, loader))
    loader.loadClass(PLANNER).getField("python").set(None, _planner())


@cache
def _planner() -> Planner:
    """The one of this process."""
    return Planner()


def _loader(jvm: Any) -> Any:
    """The class loader that `spark-submit --jars` adds to, which is above that of any thread."""
    found, loader = None, jvm.java.lang.Thread.currentThread().getContextClassLoader()
    while loader is not None:
        if loader.getClass().getName() == LOADER:
            found = loader
        loader = loader.getParent()
    if found is None:
        raise NotThisSpark("it has no class loader that can be added to")
    return found


def _compiled(gateway: Any, loader: Any) -> dict[str, bytes]:
    """Class files by their names."""
    try:
        return _compiled_by_janino(gateway, loader)
    except (Py4JError, TypeError) as error:  # a class that Java lacks is a package to Py4J
        raise NotThisSpark(f"our classes cannot be compiled: {with_cause(error)}") from error


def _compiled_by_janino(gateway: Any, loader: Any) -> dict[str, bytes]:
    jvm = gateway.jvm
    resources = jvm.org.codehaus.commons.compiler.util.resource
    texts = [
        (each.name, each.read_text())
        for each in (files(__package__) / "java").iterdir()
        if each.name.endswith(".java")
    ]
    units = gateway.new_array(resources.Resource, len(texts))
    for index, (name, text) in enumerate(texts):
        units[index] = resources.StringResource(name, text)
    known = jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader)
    compiler = jvm.org.codehaus.janino.Compiler(
        resources.ResourceFinder.EMPTY_RESOURCE_FINDER, known
    )
    compiler.setSourceVersion(JAVA)
    compiler.setTargetVersion(JAVA)
    made = jvm.java.util.HashMap()
    compiler.setClassFileCreator(resources.MapResourceCreator(made))
    compiler.compile(units)
    return {name: bytes(made.get(name)) for name in made.keySet()}


def _load(jvm: Any, loader: Any, classes: dict[str, bytes]) -> None:
    """By way of a jar, which Java keeps open and nobody else needs."""
    with tempfile.TemporaryDirectory(prefix="tocsin-") as scratch:
        path = os.path.join(scratch, "tocsin.jar")
        with zipfile.ZipFile(path, "w") as jar:
            for name, content in classes.items():
                jar.writestr(name, content)
        loader.addURL(jvm.java.io.File(path).toURI().toURL())
        for name in classes:
            loader.loadClass(name.removesuffix(".class").replace("/", "."))
