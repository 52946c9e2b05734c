package tocsin;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CatalystScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The events in (after, through], which may begin or end within a file. */
public class ArchiveRange extends BaseRelation implements CatalystScan {
    private static final StructField NUMBER =
        new StructField("seq", DataTypes.LongType, false, Metadata.empty());

    private final SQLContext context;
    private final ArchiveFiles files;
    private final StructType schema;
    private final String condition;

    /** `condition` says which of the events in those files; null: all. */
    public ArchiveRange(
            SQLContext context, ArchiveFiles files, StructType schema, String condition) {
        this.context = context;
        this.files = files;
        this.schema = schema;
        this.condition = condition;
    }

    /** As a batch of a stream. */
    public Dataset streamed() {
        Seq columns = DataTypeUtils.toAttributes(schema);
        return Dataset.ofRows(spark(), new Project(columns, events(columns, true)));
    }

    /** Filters may be left out: Spark applies them to what is returned. */
    public RDD buildScan(Seq columns, Seq filters) {
        LogicalPlan plan = events(columns, false);
        Iterator each = CollectionConverters.asJava(filters).iterator();
        while (each.hasNext()) {
            Expression filter = (Expression) each.next();
            if (filter.deterministic() && !SubqueryExpression.hasSubquery(filter)) {
                plan = new Filter(filter, plan);
            }
        }
        return Dataset.ofRows(spark(), new Project(columns, plan)).queryExecution().toRdd();
    }

    /** Rows come as Spark has them within: none is copied. */
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
        return files.sizeInBytes();
    }

    private LogicalPlan events(Seq columns, boolean isStreaming) {
        Seq read = withNumber(columns);
        LogicalRelation all = new LogicalRelation(
            files.relation(DataTypeUtils.fromAttributes(read), spark()), read, Option.empty(),
            isStreaming, Option.empty());
        if (condition == null) {
            return all;
        }
        return Dataset.ofRows(spark(), all).filter(condition).queryExecution().analyzed();
    }

    private static Seq withNumber(Seq columns) {
        List read = new ArrayList(CollectionConverters.asJava(columns));
        for (int place = 0; place < read.size(); place++) {
            if (((Attribute) read.get(place)).name().equals(NUMBER.name())) {
                return columns;
            }
        }
        read.add(DataTypeUtils.toAttribute(NUMBER));
        return CollectionConverters.asScala(read).toList();
    }

    private SparkSession spark() {
        return (SparkSession) context.sparkSession();
    }
}
