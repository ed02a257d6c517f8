import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { toClientOptions } from '@temporalio/envconfig';
import { SettingsError, type Settings } from '../config/settings.ts';

/** The settings of a connection. */
export type ConnectionSettings = Pick<
  Settings,
  'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE' | 'temporal_profile'
>;

/**
 * Options of a client's or a worker's connection. Certificates are read now, so a process has to be restarted after they
 * were renewed.
 * @throws SettingsError when a certificate or key cannot be read
 */
export function connectionOptions({ TEMPORAL_ADDRESS, temporal_profile }: ConnectionSettings) {
  try {
    const { apiKey, tls, metadata } = toClientOptions(temporal_profile).connectionOptions;
    if (typeof tls === 'object' && tls !== null) checkCertificates(tls);
    return {
      address: TEMPORAL_ADDRESS,
      ...(apiKey !== undefined && { apiKey }),
      ...(tls !== undefined && tls !== null && { tls }),
      ...(metadata !== undefined && { metadata }),
    };
  } catch (error) {
    const reason = Error.isError(error) ? error.message : String(error);
    throw new SettingsError(
      `The certificates for Temporal cannot be used: ${reason}. Check TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH, or their values in temporal.toml.`,
    );
  }
}

type Tls = Exclude<
  ReturnType<typeof toClientOptions>['connectionOptions']['tls'],
  boolean | null | undefined
>;

/** The libraries report a certificate that is not PEM, or a key of another one, as a failed connection. */
function checkCertificates({ serverRootCACertificate: ca, clientCertPair: pair }: Tls): void {
  if (ca) new X509Certificate(ca);
  if (pair) createSecureContext({ cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) });
}

/** How a process reaches Temporal, for people: the address, the namespace and how it authenticates. */
export function describeConnection(settings: ConnectionSettings): string {
  const { apiKey, tls } = toClientOptions(settings.temporal_profile).connectionOptions;
  const how = [
    ...(tls ? [typeof tls === 'object' && tls.clientCertPair ? 'mTLS' : 'TLS'] : []),
    ...(apiKey === undefined ? [] : ['API key']),
  ];
  return [settings.TEMPORAL_ADDRESS, `namespace ${settings.TEMPORAL_NAMESPACE}`, ...how].join(', ');
}
