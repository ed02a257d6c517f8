import type { Settings } from '../config/settings.ts';
import type { TemporalServer } from './servers/start_servers.ts';
import type { StackEnvironment } from './stack_file.ts';

/** Addresses of the servers of a stack. */
export interface Addresses {
  readonly databaseUrl: string;
  readonly temporal: TemporalServer;
  readonly httpPort: number;
}

/** Settings that make the demo fast. The user's own settings override them. */
const demoSettings = {
  EXPORTD_SETTLE_DELAY: '1s',
  EXPORTD_SETTLE_POLL_INTERVAL: '250ms',
  EXPORTD_WORKFLOW_TASK_TIMEOUT: '3s',
  EXPORTD_JITTER_LONG: '0s',
  EXPORTD_JITTER_SHORT_FRACTION: '0',
};

/** The settings of the server and the worker: those of the user, and the addresses of this stack's servers. */
export function stackEnvironment(
  { databaseUrl, temporal, httpPort }: Addresses,
  encryptionKeys: string,
  demo: boolean,
): StackEnvironment {
  const userSettings = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && /^(EXPORTD_|SOURCE_(PRIMARY_)?DATABASE_URL$)/.test(entry[0]),
  );
  return {
    ...(demo && demoSettings),
    EXPORTD_ENCRYPTION_KEYS: encryptionKeys,
    // The S3 server of the stack listens on the loopback address.
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'loopback',
    ...Object.fromEntries(userSettings.filter(([, value]) => value !== '')),
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    ...(temporal.ui !== undefined && { TEMPORAL_UI_URL: temporal.ui }),
    EXPORTD_PORT: String(httpPort),
  };
}

/** URL of the HTTP API on this machine. */
export function baseUrl(settings: Pick<Settings, 'EXPORTD_HOST'>, port: number): string {
  const host = ['0.0.0.0', '::', ''].includes(settings.EXPORTD_HOST) ? '127.0.0.1' : settings.EXPORTD_HOST;
  return `http://${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
}
