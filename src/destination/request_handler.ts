/** Connections to S3 servers and to AWS STS: timeouts, trusted authorities, proxies, and no private address. */
import { type AgentOptions, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { Settings } from '../config/settings.ts';
import { hasProxy, type Proxies, throughProxies } from '../network/proxies.ts';
import type { S3Config } from './config.ts';
import { DestinationError } from './destination.ts';
import { endpointLookup, endpointProblem, requirePublicEndpoint } from './endpoint.ts';
import { ProxiedRequestHandler, S3RequestHandler } from './responses.ts';

/** Contexts by the text of a CA bundle: parsing all certificates takes milliseconds, and clients are created often. */
const contexts = new Map<string, SecureContext>();

/** A TLS context that trusts the CAs of a bundle besides those that Node trusts, `NODE_EXTRA_CA_CERTS` included. */
function secureContextOf(caBundle: string): SecureContext {
  const known = contexts.get(caBundle);
  if (known) return known;
  const context = createSecureContext({ ca: [...getCACertificates('default'), caBundle] });
  contexts.set(caBundle, context);
  return context;
}
/** Maximum number of connections per destination: one for each part in flight, and a few more. */
const maxSockets = 16;

export function requestHandler(config: S3Config, settings: Settings): S3RequestHandler {
  const { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowPrivate, EXPORTD_S3_CA_BUNDLE: bundle } = settings;
  const problem = config.endpoint_url === null ? null : endpointProblem(config.endpoint_url, allowPrivate);
  if (problem !== null)
    throw new DestinationError('EndpointNotAllowed', `The endpoint_url is not allowed: ${problem}.`, {
      transient: false,
    });
  const isAws = config.endpoint_url === null;
  return createHandler(settings, {
    agent: {
      keepAlive: true,
      maxSockets: maxSockets,
      ...(!isAws && { lookup: endpointLookup(allowPrivate) }),
    },
    ...(bundle !== undefined && { secureContext: secureContextOf(bundle) }),
    admit: (host) => (isAws ? Promise.resolve() : requirePublicEndpoint(host, allowPrivate)),
  });
}

interface Connections {
  readonly agent: AgentOptions;
  readonly secureContext?: SecureContext;
  /** Rejects for a host that no request may be sent to through a proxy. */
  readonly admit: (host: string) => Promise<void>;
}

export function createHandler(
  settings: Pick<Settings, 'EXPORTD_S3_REQUEST_TIMEOUT'> & Proxies,
  { agent, secureContext, admit }: Connections,
): S3RequestHandler {
  const { EXPORTD_S3_REQUEST_TIMEOUT: timeout } = settings;
  const optionsOf = (options: AgentOptions) => ({
    httpAgent: new HttpAgent(options),
    httpsAgent: new HttpsAgent({ ...options, ...(secureContext && { secureContext }) }),
    connectionTimeout: timeout,
    // Limits the time without data, not the duration of a request: a part may take long on a slow connection.
    socketTimeout: timeout,
  });
  if (!hasProxy(settings)) return new S3RequestHandler(optionsOf(agent));
  const proxied = optionsOf(throughProxies(settings, agent));
  return new ProxiedRequestHandler(optionsOf(agent), proxied, { proxies: settings, admit });
}
