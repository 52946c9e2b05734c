import java.io.StringReader;
import java.net.ServerSocket;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.cxf.wsn.client.Consumer;
import org.apache.cxf.wsn.client.CreatePullPoint;
import org.apache.cxf.wsn.client.NotificationBroker;
import org.apache.cxf.wsn.client.Publisher;
import org.apache.cxf.wsn.client.PullPoint;
import org.apache.cxf.wsn.client.Registration;
import org.apache.cxf.wsn.client.Subscription;
import org.apache.cxf.wsn.services.JaxwsCreatePullPoint;
import org.apache.cxf.wsn.services.JaxwsNotificationBroker;
import org.oasis_open.docs.wsn.b_2.NotificationMessageHolderType;
import org.oasis_open.docs.wsn.b_2.TopicExpressionType;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/**
 * Apache CXF's WS-Notification at work: as a client of a broker, or as a service.
 *
 * <p>Each step that went well is a line of its own on standard output.
 */
public final class CxfPeer {
    private static final long PATIENCE_S = 20;
    private static final long SILENCE_MS = 600;

    private CxfPeer() { }

    public static void main(String[] arguments) {
        try {
            if ("client".equals(arguments[0])) {
                beClient(arguments[1]);
            } else {
                beService();
            }
        } catch (Throwable problem) {
            problem.printStackTrace();
            System.exit(1);  // its servers' threads would go on
        }
        System.exit(0);
    }

    private static void beClient(String url) throws Exception {
        NotificationBroker broker = new NotificationBroker(url);
        push(broker);
        pull(broker, url);
        register(broker);
        say("done");
    }

    private static void push(NotificationBroker broker) throws Exception {
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        Consumer consumer = new Consumer(
            message -> heard.add(textOf(message)), "http://127.0.0.1:" + freePort() + "/consumer");
        Subscription subscription = broker.subscribe(consumer, "cxf/push");
        say("subscribed");
        broker.notify("cxf/push", event("one"));
        expect("one", heard.poll(PATIENCE_S, TimeUnit.SECONDS));
        say("heard");
        expect("one", broker.getCurrentMessage("cxf/push").isEmpty() ? null : "one");
        say("current");
        subscription.renew("PT1H");
        say("renewed");
        subscription.pause();
        broker.notify("cxf/push", event("two"));
        expect(null, heard.poll(SILENCE_MS, TimeUnit.MILLISECONDS));
        say("paused");
        subscription.resume();
        expect("two", heard.poll(PATIENCE_S, TimeUnit.SECONDS));
        say("resumed");
        subscription.unsubscribe();
        broker.notify("cxf/push", event("three"));
        expect(null, heard.poll(SILENCE_MS, TimeUnit.MILLISECONDS));
        say("unsubscribed");
        try {
            subscription.renew("PT1H");
            throw new IllegalStateException("a subscription that is over was renewed");
        } catch (org.oasis_open.docs.wsrf.rw_2.ResourceUnknownFault expected) {
            say("unknown");
        }
        consumer.stop();
    }

    private static void pull(NotificationBroker broker, String url) throws Exception {
        PullPoint point = new CreatePullPoint(url).create();
        say("created");
        Subscription subscription = broker.subscribe(point, "cxf/pull");
        broker.notify("cxf/pull", event("four"));
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        List<NotificationMessageHolderType> found = point.getMessages(10);
        while (found.isEmpty() && System.nanoTime() < end) {
            Thread.sleep(50);
            found = point.getMessages(10);
        }
        expect("four", textOf(found.get(0)));
        say("pulled");
        subscription.unsubscribe();
        point.destroy();
        say("destroyed");
    }

    /** A publisher that is asked to publish only while somebody wants it. */
    private static void register(NotificationBroker broker) throws Exception {
        BlockingQueue<String> demanded = new LinkedBlockingQueue<>();
        Publisher publisher = new Publisher(new Publisher.Callback() {
            @Override
            public void subscribe(TopicExpressionType topic) {
                demanded.add("wanted");
            }

            @Override
            public void unsubscribe(TopicExpressionType topic) {
                demanded.add("unwanted");
            }
        }, "http://127.0.0.1:" + freePort() + "/publisher");
        Registration registration = broker.registerPublisher(publisher, "cxf/demand", true);
        say("registered");
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        Consumer consumer = new Consumer(
            message -> heard.add(textOf(message)), "http://127.0.0.1:" + freePort() + "/demander");
        Subscription subscription = broker.subscribe(consumer, "cxf/demand");
        expect("wanted", demanded.poll(PATIENCE_S, TimeUnit.SECONDS));
        say("wanted");
        broker.notify(publisher, "cxf/demand", event("five"));
        expect("five", heard.poll(PATIENCE_S, TimeUnit.SECONDS));
        subscription.unsubscribe();
        registration.destroy();
        expect("unwanted", demanded.poll(PATIENCE_S, TimeUnit.SECONDS));
        say("deregistered");
        consumer.stop();
        publisher.stop();
    }

    private static void beService() throws Exception {
        Configuration configuration = new ConfigurationImpl();
        configuration.addAcceptorConfiguration("vm", "vm://0");
        configuration.setPersistenceEnabled(false);
        configuration.setSecurityEnabled(false);
        EmbeddedActiveMQ queues = new EmbeddedActiveMQ();
        queues.setConfiguration(configuration);
        queues.start();
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("vm://0");
        String root = "http://127.0.0.1:" + freePort() + "/wsn/";
        JaxwsNotificationBroker broker = new JaxwsNotificationBroker("broker", factory);
        broker.setAddress(root + "broker");
        broker.init();
        JaxwsCreatePullPoint points = new JaxwsCreatePullPoint("points", factory);
        points.setAddress(root + "points");
        points.init();
        say("serving " + root);
        while (System.in.read() >= 0) {
            continue;  // until whoever started us closes our input
        }
    }

    private static Element event(String text) throws Exception {
        DocumentBuilderFactory documents = DocumentBuilderFactory.newInstance();
        documents.setNamespaceAware(true);
        String xml = "<e:state xmlns:e=\"urn:example\">" + text + "</e:state>";
        InputSource source = new InputSource(new StringReader(xml));
        return documents.newDocumentBuilder().parse(source).getDocumentElement();
    }

    private static String textOf(NotificationMessageHolderType message) {
        return ((Element) message.getMessage().getAny()).getTextContent();
    }

    private static void expect(String wanted, String found) {
        if (wanted == null ? found != null : !wanted.equals(found)) {
            throw new IllegalStateException("not " + wanted + " but " + found);
        }
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    private static void say(String what) {
        System.out.println(what);
        System.out.flush();
    }
}
