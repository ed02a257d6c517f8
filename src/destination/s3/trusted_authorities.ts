import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** Contexts by the text of a CA bundle: parsing all certificates takes milliseconds, and clients are created often. */
const contexts = new Map<string, SecureContext>();

/** A TLS context that trusts the CAs of a bundle besides those that Node trusts, `NODE_EXTRA_CA_CERTS` included. */
export function secureContextOf(caBundle: string): SecureContext {
  const known = contexts.get(caBundle);
  if (known) return known;
  const context = createSecureContext({ ca: [...getCACertificates('default'), caBundle] });
  contexts.set(caBundle, context);
  return context;
}
