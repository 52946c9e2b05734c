package tocsin;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What Spark finds under the name `tocsin`, before the source in Python of the same name.
 *
 * An archive is read by Spark itself. For anything else this is the source in Python.
 */
public class DefaultSource extends PythonDataSourceV2
        implements RelationProvider, SchemaRelationProvider, StreamSourceProvider {

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return schemaOf(opening(options.asCaseSensitiveMap(), null));
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map options) {
        if ((Boolean) opening(options, schema).get("is_plain")) {
            return new Elsewhere(schema);
        }
        return super.getTable(schema, partitioning, options);
    }

    public BaseRelation createRelation(
            SQLContext context, scala.collection.immutable.Map options) {
        return relation(context, CollectionConverters.asJava(options), null);
    }

    public BaseRelation createRelation(
            SQLContext context, scala.collection.immutable.Map options, StructType schema) {
        return relation(context, CollectionConverters.asJava(options), schema);
    }

    public Tuple2 sourceSchema(
            SQLContext context, Option schema, String name,
            scala.collection.immutable.Map options) {
        Map given = CollectionConverters.asJava(options);
        return new Tuple2(name, schemaOf(opening(given, asked(schema))));
    }

    public Source createSource(
            SQLContext context, String metadata, Option schema, String name,
            scala.collection.immutable.Map options) {
        Map given = new HashMap(CollectionConverters.asJava(options));
        Map opening = opening(given, asked(schema));
        long rowsMax = ((Number) opening.get("rows_per_trigger")).longValue();
        return new ArchiveStream(context, given, schemaOf(opening), rowsMax);
    }

    private static BaseRelation relation(SQLContext context, Map options, StructType schema) {
        Map given = new HashMap(options);
        Map opening = opening(given, schema);
        StructType read = schemaOf(opening);
        ArchiveFiles files = new ArchiveFiles(given, Collections.emptyMap());
        String condition = (String) opening.get("condition");
        if (condition == null) {
            return files.relation(read, context.sparkSession());
        }
        return new ArchiveRange(context, files, read, condition);
    }

    private static Map opening(Map options, StructType schema) {
        Map more = new HashMap();
        more.put("schema", schema == null ? null : schema.json());
        return Planner.ask("opening", options, more);
    }

    private static StructType schemaOf(Map opening) {
        return (StructType) DataType.fromJson((String) opening.get("schema"));
    }

    private static StructType asked(Option schema) {
        return schema.isEmpty() ? null : (StructType) schema.get();
    }

    /** A table that can do nothing, which makes Spark ask for a relation or a source instead. */
    private static final class Elsewhere implements Table {
        private final StructType schema;

        Elsewhere(StructType schema) {
            this.schema = schema;
        }

        public String name() {
            return "tocsin";
        }

        public StructType schema() {
            return schema;
        }

        public Set capabilities() {
            return Collections.emptySet();
        }
    }
}
