package tocsin;

import java.net.URI;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The files that hold a range of events: those of it, or as they are when a query begins. */
public class ArchiveFiles implements FileIndex {
    private static final long BLOCK_BYTES = 128L << 20;
    private static final Map READING = reading();

    private final Map options;
    private final Map range;

    /**
     * `range` is that of a batch of a stream, or empty: then the options say. If it has `files`,
     * these hold just its events.
     */
    public ArchiveFiles(Map options, Map range) {
        this.options = options;
        this.range = range;
    }

    /** What Spark's own reader of Parquet makes of them. */
    public HadoopFsRelation relation(StructType schema, SparkSession spark) {
        return new HadoopFsRelation(
            this, new StructType(), schema, Option.empty(), new ParquetFileFormat(),
            scala.collection.immutable.Map.from(CollectionConverters.asScala(READING)), spark);
    }

    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        List files = files();
        FileStatus[] found = new FileStatus[files.size()];
        for (int number = 0; number < found.length; number++) {
            List file = (List) files.get(number);
            found[number] = new FileStatus(
                ((Number) file.get(1)).longValue(), false, 1, BLOCK_BYTES,
                ((Number) file.get(2)).longValue(),
                new Path(URI.create((String) file.get(0))));
        }
        return one(PartitionDirectory.apply(InternalRow.empty(), found));
    }

    public String[] inputFiles() {
        List files = files();
        String[] found = new String[files.size()];
        for (int number = 0; number < found.length; number++) {
            found[number] = (String) ((List) files.get(number)).get(0);
        }
        return found;
    }

    public long sizeInBytes() {
        return ((Number) Planner.ask("size", options, range).get("bytes")).longValue();
    }

    public Seq rootPaths() {
        return one(new Path((String) options.get("path")));
    }

    public StructType partitionSchema() {
        return new StructType();
    }

    public void refresh() {
        // Nothing is kept from one query to the next.
    }

    /** In anybody's session: nothing is left out in silence, or read as another value. */
    private static Map reading() {
        Map reading = new HashMap();
        reading.put("parquet.page.verify-checksum.enabled", "true");
        reading.put("ignoreCorruptFiles", "false");
        reading.put("ignoreMissingFiles", "false");
        reading.put("datetimeRebaseMode", "CORRECTED");
        return reading;
    }

    private List files() {
        List known = (List) range.get("files");
        return known != null ? known : (List) Planner.ask("files", options, range).get("files");
    }

    private static Seq one(Object element) {
        return CollectionConverters.asScala(Collections.singletonList(element)).toList();
    }
}
