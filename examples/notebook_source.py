"""What happened, in Spark: the events of a broker, or of its archive, as a DataFrame.

pip install 'tocsin[spark]'
python examples/notebook_source.py [http://127.0.0.1:8400 | DIRECTORY]
"""

import sys
import tempfile

from pyspark.sql import functions as F

from tocsin.pipeline import source

where = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"
spark = source.session()

# Everything there is. Of an archive only what is asked for is read, of a broker all columns.
events = spark.read.format("tocsin").load(where)
events.groupBy("type").count().orderBy(F.desc("count")).show()

# Name the columns you need: a broker is then read ten times faster.
ends = (
    spark.read.format("tocsin")
    .option("columns", "run, activity, at, facts.ExitCode")
    .load(where)
    .where("facts.ExitCode is not null")
)
failed = ends.where("facts.ExitCode <> 0").select("at", "run", "activity", "facts.ExitCode")
print(f"{ends.count()} activities ended, {failed.count()} of them in failure")
failed.orderBy("at").show(5)

# The same as a stream. Run it again with the same checkpoint and it goes on with what is new.
stream = spark.readStream.format("tocsin").option("columns", "seq, type, topic, run").load(where)
with tempfile.TemporaryDirectory() as scratch:
    out = stream.writeStream.format("parquet").option("checkpointLocation", f"{scratch}/checkpoint")
    out.trigger(availableNow=True).start(f"{scratch}/events").awaitTermination()
    print(f"{spark.read.parquet(f'{scratch}/events').count()} events went through the stream")
