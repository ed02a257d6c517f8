import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.*;
import org.eclipse.jetty.server.*;
import org.eclipse.jetty.servlet.*;

/** A REST catalog of Iceberg's own tests. Arguments: port, a folder of its own, warehouse, S3 endpoint. */
public class Main {
  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put("uri", "jdbc:sqlite:file:" + args[1] + "/catalog.db");
    properties.put("jdbc.schema-version", "V1");
    properties.put("warehouse", args[2]);
    properties.put("io-impl", "org.apache.iceberg.aws.s3.S3FileIO");
    properties.put("s3.endpoint", args[3]);
    properties.put("s3.path-style-access", "true");
    properties.put("client.region", "us-east-1");
    properties.put("http-client.type", "urlconnection");
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.initialize("catalog", properties);
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server(new java.net.InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.setHandler(context);
    server.start();
    System.out.println("listens");
    server.join();
  }
}
