package tocsin;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** The events of an archive as they come. An offset is the last sequence number that was read. */
public class ArchiveStream implements Source, SupportsTriggerAvailableNow {
    private static final Map NOTHING = Collections.emptyMap();

    private final SQLContext context;
    private final Map options;
    private final StructType schema;
    private final long rowsMax;
    private String target; // with the available-now trigger: where to end
    private String head;

    public ArchiveStream(SQLContext context, Map options, StructType schema, long rowsMax) {
        this.context = context;
        this.options = options;
        this.schema = schema;
        this.rowsMax = rowsMax;
    }

    public StructType schema() {
        return schema;
    }

    public ReadLimit getDefaultReadLimit() {
        return ReadLimit.maxRows(rowsMax);
    }

    public void prepareForTriggerAvailableNow() {
        target = (String) Planner.ask("reach", options, NOTHING).get("offset");
    }

    public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
            org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
        Map more = new HashMap();
        more.put("start", start == null ? null : start.json());
        more.put("target", target);
        if (limit instanceof ReadMaxRows) {
            more.put("rows", ((ReadMaxRows) limit).maxRows());
        }
        Map answer = Planner.ask("latest", options, more);
        head = (String) answer.get("head");
        String offset = (String) answer.get("offset");
        return offset == null ? null : new Place(offset);
    }

    public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
        return head == null ? null : new Place(head);
    }

    /** Only says what is to be read: also of events that are gone since, which Spark may ask for. */
    public Dataset getBatch(Option start, Offset end) {
        Map bounds = new HashMap();
        bounds.put("start", start.isEmpty() ? null : ((Offset) start.get()).json());
        bounds.put("end", end.json());
        Map range = Planner.ask("range", options, bounds);
        ArchiveFiles files = new ArchiveFiles(options, range);
        String condition = (String) range.get("condition");
        return new ArchiveRange(context, files, schema, condition).streamed();
    }

    public Option getOffset() {
        throw new IllegalStateException("latestOffset is asked instead");
    }

    public void stop() {
        // Nothing is held between two questions.
    }

    public String toString() {
        return "tocsin[" + options.get("path") + "]";
    }

    private static final class Place extends Offset {
        private final String json;

        Place(String json) {
            this.json = json;
        }

        public String json() {
            return json;
        }
    }
}
