import jakarta.xml.ws.Dispatch;
import jakarta.xml.ws.Service;
import jakarta.xml.ws.soap.AddressingFeature;
import jakarta.xml.ws.soap.SOAPBinding;
import jakarta.xml.ws.soap.SOAPFaultException;
import java.io.StringReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import javax.security.auth.callback.CallbackHandler;
import javax.xml.namespace.QName;
import javax.xml.transform.Source;
import javax.xml.transform.stream.StreamSource;
import org.apache.cxf.jaxws.DispatchImpl;
import org.apache.cxf.ws.security.wss4j.WSS4JOutInterceptor;
import org.apache.wss4j.common.ext.WSPasswordCallback;

/**
 * Apache CXF with WS-Security: one message, signed in as the arguments say.
 *
 * <p>What comes back, or the code of the fault, is one line on standard output.
 */
public final class CxfSecurity {
    private static final String BODY =
        "<b:CreatePullPoint xmlns:b=\"http://docs.oasis-open.org/wsn/b-2\"/>";
    private static final String ADDRESSING = "http://www.w3.org/2005/08/addressing";

    private CxfSecurity() { }

    /** Arguments: how, soap, url, user, password; for signatures the key store instead of the user. */
    public static void main(String[] arguments) {
        try {
            System.out.println(send(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]));
        } catch (SOAPFaultException fault) {
            QName code = fault.getFault().getFaultCodeAsQName();
            java.util.Iterator<?> subcodes =
                "1.2".equals(arguments[1]) ? fault.getFault().getFaultSubcodes() : null;
            Object named = subcodes != null && subcodes.hasNext() ? subcodes.next() : code;
            System.out.println("fault " + named);
        } catch (Throwable problem) {
            problem.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static String send(String how, String soap, String url, String user, String password) {
        QName port = new QName("urn:example", "Port");
        Service service = Service.create(new QName("urn:example", "Service"));
        boolean old = "1.1".equals(soap);
        service.addPort(port, old ? SOAPBinding.SOAP11HTTP_BINDING : SOAPBinding.SOAP12HTTP_BINDING, url);
        Dispatch<Source> dispatch = service.createDispatch(
            port, Source.class, Service.Mode.PAYLOAD, new AddressingFeature(true));
        dispatch.getRequestContext().put(Dispatch.SOAPACTION_USE_PROPERTY, true);
        dispatch.getRequestContext().put(Dispatch.SOAPACTION_URI_PROPERTY,
            "http://docs.oasis-open.org/wsn/bw-2/CreatePullPoint/CreatePullPointRequest");
        // SOAP 1.2 has its senders' faults come with 400, which CXF reads if it is told to.
        dispatch.getRequestContext().put("org.apache.cxf.transport.process_fault_on_http_400", true);
        ((DispatchImpl<?>) dispatch).getClient().getOutInterceptors()
            .add(new WSS4JOutInterceptor(options(how, old, user, password)));
        Source body = new StreamSource(new StringReader(BODY));
        if (url.startsWith("http://")) {
            dispatch.invokeOneWay(body);  // to somebody who looks at it, and answers nothing
            return "sent";
        }
        dispatch.invoke(body);
        return "answered";
    }

    private static Map<String, Object> options(String how, boolean old, String user, String password) {
        CallbackHandler secret = callbacks -> ((WSPasswordCallback) callbacks[0]).setPassword(password);
        Map<String, Object> options = new HashMap<>();
        options.put("passwordCallbackRef", secret);
        if ("text".equals(how) || "digest".equals(how)) {
            options.put("action", "Timestamp UsernameToken");
            options.put("user", user);
            options.put("passwordType", "text".equals(how) ? "PasswordText" : "PasswordDigest");
            options.put("addUsernameTokenNonce", "true");
            options.put("addUsernameTokenCreated", "true");
            return options;
        }
        Properties store = new Properties();
        String merlin = "org.apache.wss4j.crypto.merlin.keystore.";
        store.put("org.apache.wss4j.crypto.provider", "org.apache.wss4j.common.crypto.Merlin");
        store.put(merlin + "type", "pkcs12");
        store.put(merlin + "file", user);
        store.put(merlin + "password", password);
        options.put("action", "Timestamp Signature");
        options.put("user", "alice");
        options.put("store", store);
        options.put("signaturePropRefId", "store");
        options.put("signatureKeyIdentifier", how.contains("serial") ? "IssuerSerial"
            : how.contains("identifier") ? "X509KeyIdentifier" : "DirectReference");
        String more = "http://www.w3.org/2001/04/xmldsig-more#";
        if (how.contains("sha1")) {
            options.put("signatureAlgorithm", "http://www.w3.org/2000/09/xmldsig#rsa-sha1");
            options.put("signatureDigestAlgorithm", "http://www.w3.org/2000/09/xmldsig#sha1");
        } else if (!how.contains("default")) {
            options.put("signatureAlgorithm", more + (how.contains("ec") ? "ecdsa-sha256" : "rsa-sha256"));
            options.put("signatureDigestAlgorithm", "http://www.w3.org/2001/04/xmlenc#sha256");
        }
        String space = old
            ? "http://schemas.xmlsoap.org/soap/envelope/" : "http://www.w3.org/2003/05/soap-envelope";
        String parts = "{}{" + space + "}Body;{}{http://docs.oasis-open.org/wss/2004/01/"
            + "oasis-200401-wss-wssecurity-utility-1.0.xsd}Timestamp";
        if (how.contains("all")) {
            for (String each : new String[] {"To", "Action", "MessageID", "ReplyTo"}) {
                parts += ";{}{" + ADDRESSING + "}" + each;
            }
        }
        options.put("signatureParts", parts);
        return options;
    }
}
