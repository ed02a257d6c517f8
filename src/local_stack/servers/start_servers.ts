import { setTimeout as delay } from 'node:timers/promises';
import type { Child, Children, Program } from '../children.ts';
import type { DataFolder } from '../data_folder.ts';
import { keepPorts } from '../ports.ts';
import { untilReady } from '../ready.ts';
import type { Report } from '../report.ts';
import { keepSecrets } from '../secrets.ts';
import { findServer } from './built_server.ts';
import {
  objectStoreAnswers,
  objectStoreProgram,
  objectStoreRegion,
  objectStoreServer,
} from './object_store.ts';
import { postgresqlAnswers, postgresqlProgram, postgresqlUrl } from './postgresql.ts';
import { temporalAnswers, temporalProgram, temporalServer } from './temporal.ts';

/** Where an S3 server is and how to sign in. */
export interface ObjectStore {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Where Temporal is. */
export interface TemporalServer {
  readonly address: string;
  readonly namespace: string;
  /** Address of its UI; undefined when nobody knows one. */
  readonly ui?: string;
}

/** The three servers, each of which starts on its own and answers when its promise resolves. */
export interface Servers {
  readonly postgresql: Promise<string>;
  readonly temporal: Promise<TemporalServer>;
  readonly objectStore: Promise<ObjectStore>;
}

export interface ServerOptions {
  /** Whether data outlive a crash of the machine. Without it they are faster, and Temporal keeps its state in memory. */
  readonly durable: boolean;
  /** Whether servers that the environment names (`DATABASE_URL` and so on) are used instead of starting some. */
  readonly useEnvironment: boolean;
  /** Told about each process that was started, to supervise it. */
  readonly onStarted?: (child: Child) => void;
}

/**
 * Starts PostgreSQL, Temporal and an S3 server, or takes those that the environment names.
 * Programs that have to be built first are built one after the other, since each build uses every core.
 */
export async function startServers(
  folder: DataFolder,
  children: Children,
  options: ServerOptions,
  report: Report,
): Promise<Servers> {
  const { durable } = options;
  const environment = options.useEnvironment ? process.env : {};
  const names = ['postgresql', 'temporal', 'temporalUi', 'temporalHttp', 's3'] as const;
  const ports = await keepPorts(folder.inside('ports.json'), names);
  const secrets = keepSecrets(folder);

  const begin = async (program: Program, answers: () => Promise<boolean>) => {
    const child = children.start(program);
    await untilReady(child, answers);
    options.onStarted?.(child);
  };

  const startPostgresql = async (): Promise<string> => {
    const given = environment.DATABASE_URL;
    if (given) return given;
    const { postgresqlPassword: password } = secrets;
    const program = await postgresqlProgram(folder, ports.postgresql, password, durable);
    await begin(program, () => postgresqlAnswers(ports.postgresql, password));
    report(`PostgreSQL listens on 127.0.0.1:${ports.postgresql}`);
    return postgresqlUrl(ports.postgresql, password);
  };

  const startTemporal = async (command: string | undefined): Promise<TemporalServer> => {
    const namespace = environment.TEMPORAL_NAMESPACE ?? 'default';
    if (command === undefined) {
      const ui = environment.TEMPORAL_UI_URL;
      return { address: environment.TEMPORAL_ADDRESS ?? '', namespace, ...(ui && { ui }) };
    }
    await begin(temporalProgram(command, folder, ports, durable), () => temporalAnswers(ports));
    report(`Temporal listens on 127.0.0.1:${ports.temporal}`);
    const ui = `http://127.0.0.1:${String(ports.temporalUi)}`;
    return { address: `127.0.0.1:${ports.temporal}`, namespace: 'default', ...(durable && { ui }) };
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
      begin(objectStoreProgram(command, folder, ports.s3, secrets, attributes), () =>
        objectStoreAnswers(endpoint),
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
  const temporalCommand = find(environment.TEMPORAL_ADDRESS, temporalServer);
  const objectStoreCommand = temporalCommand.then(() => find(environment.S3_ENDPOINT, objectStoreServer));
  const temporal = temporalCommand.then(startTemporal);
  const objectStore = objectStoreCommand.then(startObjectStore);
  // Whoever waits for one of them must not be ended by the failure of another that it does not wait for yet.
  for (const server of [postgresql, temporal, objectStore]) server.catch(() => delay(0));
  return { postgresql, temporal, objectStore };
}
