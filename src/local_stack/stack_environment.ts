import type { Settings } from '../config/settings.ts';
import { temporal as temporalSettings } from '../config/temporal_settings.ts';
import { type DataFolder, LaunchError, type StackEnvironment } from './data_folder.ts';
import { readDemoState, saveDemoState } from './demo/demo_file.ts';
import type { TemporalServer } from './servers/start_servers.ts';

/** Addresses of the servers of a stack. */
interface Addresses {
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
  // The demo has no users beside the one who may open its Temporal UI.
  EXPORTD_MANUAL_SIGNALS: 'true',
};

/** The settings of the server and the worker: those of the user, and the addresses of this stack's servers. */
export function stackEnvironment(
  { databaseUrl, temporal, httpPort }: Addresses,
  encryptionKeys: string,
  demo: boolean,
): StackEnvironment {
  const userSettings = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && /^(EXPORTD_|TEMPORAL_|SOURCE_(PRIMARY_)?DATABASE_URL$)/.test(entry[0]),
  );
  return {
    ...(demo && demoSettings),
    ...linksTo(httpPort),
    EXPORTD_ENCRYPTION_KEYS: encryptionKeys,
    // The S3 server of the stack listens on the loopback address.
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'loopback',
    ...Object.fromEntries(userSettings.filter(([, value]) => value !== '')),
    DATABASE_URL: databaseUrl,
    ...temporalEnvironment(temporal),
    EXPORTD_PORT: String(httpPort),
  };
}

/** The URL for links in the Temporal UI. Other machines use another address than this one, so links then follow the request. */
function linksTo(port: number): StackEnvironment {
  const host = process.env.EXPORTD_HOST ?? '127.0.0.1';
  return isAnyAddress(host) ? {} : { EXPORTD_BASE_URL: baseUrl({ EXPORTD_HOST: host }, port) };
}

/**
 * The settings of a Temporal server. Credentials of the user are for another server than one that the stack started, so
 * they are emptied, and the user's profiles are not read.
 */
function temporalEnvironment({ address, namespace, ui, configFile }: TemporalServer): StackEnvironment {
  const names = Object.keys(temporalSettings).filter((name) => name.startsWith('TEMPORAL_'));
  return {
    ...(configFile !== undefined && {
      ...Object.fromEntries(names.map((name) => [name, ''])),
      TEMPORAL_CONFIG_FILE: configFile,
    }),
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    ...(ui !== undefined && { TEMPORAL_UI_URL: ui }),
  };
}

const isAnyAddress = (host: string): boolean => ['0.0.0.0', '::', ''].includes(host);

/** URL of the HTTP API on this machine. */
export function baseUrl(settings: Pick<Settings, 'EXPORTD_HOST'>, port: number): string {
  const host = isAnyAddress(settings.EXPORTD_HOST) ? '127.0.0.1' : settings.EXPORTD_HOST;
  return `http://${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
}

/**
 * Remembers whether the exports of a data folder read a database of the user. The exports of one source would miss all
 * of their rows in the other one.
 * @throws LaunchError if the folder was started with the other source
 */
export function requireSameSource(folder: DataFolder, hasOwnSource: boolean): void {
  const { own_source, project_id } = readDemoState(folder);
  if (project_id !== undefined && (own_source ?? false) !== hasOwnSource)
    throw new LaunchError(
      hasOwnSource
        ? `The exports of ${folder.path} read the demo data. Set EXPORTD_DATA_DIR to another folder to read the database of SOURCE_DATABASE_URL.`
        : `The exports of ${folder.path} read your database. Set SOURCE_DATABASE_URL again, or set EXPORTD_DATA_DIR to another folder for the demo.`,
    );
  saveDemoState(folder, { own_source: hasOwnSource });
}
