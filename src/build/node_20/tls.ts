// Node 20 does not list its certificates. esbuild puts this module in place of node:tls.
import { readFileSync } from 'node:fs';
import tls from 'node:tls';

export * from 'node:tls';

/** Those of Node, and of NODE_EXTRA_CA_CERTS. */
function defaultCertificates(): string[] {
  const extra = process.env.NODE_EXTRA_CA_CERTS;
  return extra ? [...tls.rootCertificates, readFileSync(extra, 'utf8')] : [...tls.rootCertificates];
}

export const getCACertificates = 'getCACertificates' in tls ? tls.getCACertificates : defaultCertificates;
