package tocsin;

import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.PrunedScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The events in (after, through], which may begin or end within a file. */
public class ArchiveRange extends BaseRelation implements PrunedScan {
    private final SQLContext context;
    private final Map options;
    private final StructType schema;
    private final Map range;

    /** `range` is as for ArchiveFiles. */
    public ArchiveRange(SQLContext context, Map options, StructType schema, Map range) {
        this.context = context;
        this.options = options;
        this.schema = schema;
        this.range = range;
    }

    public Dataset events(String[] names, boolean isStreaming) {
        SparkSession spark = (SparkSession) context.sparkSession();
        StructType read = schema;
        if (!schema.getFieldIndex("seq").isDefined()) {
            read = schema.add("seq", DataTypes.LongType, false);
        }
        Column[] columns = new Column[names.length];
        for (int number = 0; number < names.length; number++) {
            columns[number] = functions.col(names[number]);
        }
        LogicalRelation files =
            LogicalRelation$.MODULE$.apply(files().relation(read, spark), isStreaming);
        Dataset all = Dataset.ofRows(spark, files);
        // Spark compiles a condition for its numbers, so with each batch of a stream anew.
        Dataset within = range.get("files") != null ? all : all.filter(condition());
        return within.select(columns);
    }

    public RDD buildScan(String[] names) {
        return events(names, false).queryExecution().toRdd();
    }

    /** Rows come as Spark has them within: none is made anew. */
    public boolean needConversion() {
        return false;
    }

    public SQLContext sqlContext() {
        return context;
    }

    public StructType schema() {
        return schema;
    }

    public long sizeInBytes() {
        return files().sizeInBytes();
    }

    private ArchiveFiles files() {
        return new ArchiveFiles(options, range);
    }

    private String condition() {
        Object after = range.get("after");
        Object through = range.get("through");
        return (after == null ? "true" : "seq > " + after)
            + (through == null ? "" : " AND seq <= " + through);
    }
}
