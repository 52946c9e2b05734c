package tocsin;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;

/**
 * Which files, and how far: decided in Python, in the process that made the session.
 *
 * Types here and in the other classes are raw, and nothing is a lambda: the compiler that Spark
 * carries knows little of either.
 */
public abstract class Planner {
    /** A question and its answer, both JSON; set by tocsin.pipeline.source.native. */
    public static volatile Function python;

    private static final ObjectMapper JSON = new ObjectMapper();

    /** An answer that is an error is thrown in its own words. */
    public static Map ask(String what, Map options, Map more) {
        Map question = new HashMap(more);
        question.put("ask", what);
        question.put("options", options);
        Map answer;
        try {
            String text = (String) python.apply(JSON.writeValueAsString(question));
            answer = (Map) JSON.readValue(text, Map.class);
        } catch (java.io.IOException broken) {
            throw new IllegalStateException("the planner's answer is no JSON", broken);
        }
        if (answer.containsKey("error")) {
            throw new IllegalArgumentException((String) answer.get("error"));
        }
        return answer;
    }
}
