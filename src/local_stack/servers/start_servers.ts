import { Connection } from '@temporalio/client';
import { setTimeout as delay } from 'node:timers/promises';
import { type Child, type ChildProcesses, type ProgramSpec, waitUntilReady } from '../child_processes.ts';
import { type DataFolder, loadOrCreateSecrets, writeFileAtomically } from '../data_folder.ts';
import { assignPorts } from '../ports.ts';
import type { Report } from '../report.ts';
import { searchAttributeNames } from '../../temporal/search_attributes.ts';
import { findServer } from './find_server.ts';
import {
  isObjectStoreReady,
  objectStoreProgram,
  objectStoreRegion,
  objectStoreServer,
} from './object_store.ts';
import { isPostgresqlReady, postgresqlProgram, postgresqlUrl } from './postgresql.ts';
import { type TemporalPorts, temporalDatabase, temporalProgram, temporalServer } from './temporal.ts';
import { dropUnusedIndexes } from './temporal_indexes.ts';

/** Address and credentials of an S3 server. */
export interface ObjectStore {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Address of a Temporal server. */
export interface TemporalServer {
  readonly address: string;
  readonly namespace: string;
  /** URL of its UI, if known. */
  readonly ui?: string;
  /** A `temporal.toml` with its address, if the stack started it. */
  readonly configFile?: string;
}

/** The three servers. Each starts independently and is ready when its promise resolves. */
interface Servers {
  readonly postgresql: Promise<string>;
  readonly temporal: Promise<TemporalServer>;
  readonly objectStore: Promise<ObjectStore>;
}

interface ServerOptions {
  /** Whether data survives a crash of the machine. If not, servers are faster. */
  readonly durable: boolean;
  /** Whether to use the servers that the environment names (`DATABASE_URL` and so on) instead of starting them. */
  readonly useEnvironment: boolean;
  /** Where PostgreSQL keeps its data; by default with all else. */
  readonly databases?: DataFolder;
  /** Called with each started process, to supervise it. */
  readonly onStarted?: (child: Child) => void;
}

/**
 * Starts PostgreSQL, Temporal and an S3 server, or uses those that the environment names. Brings those that are missing.
 */
export async function startServers(
  folder: DataFolder,
  children: ChildProcesses,
  options: ServerOptions,
  report: Report,
): Promise<Servers> {
  const { durable, databases = folder } = options;
  const environment = options.useEnvironment ? process.env : {};
  const names = ['postgresql', 'temporal', 'temporalUi', 's3'] as const;
  const ports = await assignPorts(folder.inside('ports.json'), names);
  const secrets = loadOrCreateSecrets(folder);

  const startProgram = async (program: ProgramSpec, isReady: () => Promise<boolean>) => {
    const child = children.start(program);
    await waitUntilReady(child, isReady);
    options.onStarted?.(child);
  };

  const startPostgresql = async (): Promise<string> => {
    const given = environment.DATABASE_URL;
    if (given) return given;
    const { postgresqlPassword: password } = secrets;
    const program = await postgresqlProgram(databases, ports.postgresql, password, durable, { report });
    await startProgram(program, () => isPostgresqlReady(ports.postgresql, password));
    report(`PostgreSQL listens on 127.0.0.1:${ports.postgresql}`);
    return postgresqlUrl(ports.postgresql, password);
  };

  const startTemporal = async (command: string | undefined): Promise<TemporalServer> => {
    const namespace = environment.TEMPORAL_NAMESPACE ?? 'default';
    if (command === undefined) {
      const ui = environment.TEMPORAL_UI_URL;
      return { address: environment.TEMPORAL_ADDRESS ?? '', namespace, ...(ui && { ui }) };
    }
    const temporal = { durable, searchAttributes: searchAttributeNames };
    await startProgram(temporalProgram(command, folder, ports, temporal), () => isTemporalReady(ports));
    dropUnusedIndexes(temporalDatabase(folder));
    report(`Temporal listens on 127.0.0.1:${ports.temporal}`);
    const ui = `http://127.0.0.1:${String(ports.temporalUi)}`;
    const address = `127.0.0.1:${ports.temporal}`;
    const configFile = folder.inside('temporal.toml');
    writeFileAtomically(configFile, `[profile.default]\naddress = "${address}"\nnamespace = "default"\n`);
    return { address, namespace: 'default', configFile, ...(durable && { ui }) };
  };

  const startObjectStore = async (command: string | undefined): Promise<ObjectStore> => {
    if (command === undefined)
      return {
        endpoint: environment.S3_ENDPOINT ?? '',
        region: environment.AWS_REGION ?? objectStoreRegion,
        accessKeyId: environment.AWS_ACCESS_KEY_ID ?? '',
        secretAccessKey: environment.AWS_SECRET_ACCESS_KEY ?? '',
      };
    const endpoint = `http://127.0.0.1:${String(ports.s3)}`;
    const start = (attributes: 'extended' | 'files') =>
      startProgram(objectStoreProgram(command, folder, ports.s3, secrets, attributes), () =>
        isObjectStoreReady(endpoint),
      );
    await start('extended').catch(async (error: unknown) => {
      if (!String(error).includes('xattrs are not supported')) throw error;
      await start('files');
    });
    report(`The S3 server listens on 127.0.0.1:${ports.s3}`);
    const { s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey } = secrets;
    return { endpoint, region: objectStoreRegion, accessKeyId, secretAccessKey };
  };

  const find = async (given: string | undefined, server: typeof temporalServer) =>
    given ? undefined : findServer(server, report);
  const postgresql = startPostgresql();
  const temporal = find(environment.TEMPORAL_ADDRESS, temporalServer).then(startTemporal);
  const objectStore = find(environment.S3_ENDPOINT, objectStoreServer).then(startObjectStore);
  // A caller that awaits one of them must not crash on the unhandled rejection of another.
  for (const server of [postgresql, temporal, objectStore]) server.catch(() => delay(0));
  return { postgresql, temporal, objectStore };
}

/** Whether Temporal is ready and has created its namespace. Rejects when it does not respond. */
export async function isTemporalReady(ports: TemporalPorts): Promise<boolean> {
  const address = `127.0.0.1:${String(ports.temporal)}`;
  const connection = await Connection.connect({ address, connectTimeout: 2_000 });
  try {
    await connection.workflowService.describeNamespace({ namespace: 'default' });
    return true;
  } finally {
    await connection.close();
  }
}
