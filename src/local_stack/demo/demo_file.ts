import { readFileSync, rmSync } from 'node:fs';
import { startCommand } from '../../config/installation.ts';
import { scopes } from '../../http/scopes.ts';
import { createPool, type Pool } from '../../journal/database.ts';
import { type DataFolder, writeFileAtomically } from '../data_folder.ts';
import { createKey, listKeys } from '../../http/accounts/api_keys.ts';
import { createProject, listProjects } from '../../http/accounts/projects.ts';
import { createUser, listUsers } from '../../http/accounts/users.ts';

/** Content of `.exportd/demo.json`: addresses and keys. The file exists while the stack is ready. */
export interface ServiceFile {
  readonly base_url: string;
  readonly project_id: number;
  readonly api_key: string;
  readonly s3_endpoint: string;
  readonly s3_access_key_id: string;
  readonly s3_secret_access_key: string;
  readonly database_url: string;
  readonly temporal_address: string;
  readonly temporal_namespace: string;
  readonly temporal_ui: string | null;
  /** Of the `/livez`, `/readyz` and `/metrics` of the server. */
  readonly monitoring_url: string;
  /** Of those of the worker. */
  readonly worker_url: string;
  readonly worker_pid: number;
}

/** The same, with what the demo exports. */
export interface DemoFile extends ServiceFile {
  readonly batch_export_id: string;
  readonly bucket: string;
}

/** What the demo has done in earlier starts. */
interface DemoState {
  readonly project_id?: number;
  readonly key_id?: string;
  readonly api_key?: string;
  /** Time of the newest row of the data. */
  readonly anchor?: string;
  /** The project that has the warehouse table. */
  readonly tables_project_id?: number;
  readonly batch_export_id?: string;
  readonly backfilled?: boolean;
  /** Whether the exports of the folder read a database of the user. */
  readonly own_source?: boolean;
}

const ownerOnly = 0o600;

/** Path of the file with the addresses and keys. */
const demoFilePath = (folder: DataFolder): string => folder.inside('demo.json');

export const writeDemoFile = (folder: DataFolder, demo: ServiceFile): void =>
  writeFileAtomically(demoFilePath(folder), `${JSON.stringify(demo, null, 2)}\n`, ownerOnly);

export const removeDemoFile = (folder: DataFolder): void => rmSync(demoFilePath(folder), { force: true });

const statePath = (folder: DataFolder): string => folder.inside('demo-state.json');

/** The state of the last start; empty at the first. */
export function readDemoState(folder: DataFolder): DemoState {
  try {
    return JSON.parse(readFileSync(statePath(folder), 'utf8')) as DemoState;
  } catch {
    return {};
  }
}

/** Adds to the state. @returns The whole state. */
export function saveDemoState(folder: DataFolder, more: DemoState): DemoState {
  const state = { ...readDemoState(folder), ...more };
  writeFileAtomically(statePath(folder), JSON.stringify(state, null, 2), ownerOnly);
  return state;
}

/** The project of a stack and its API key. */
export interface DemoAccounts {
  readonly projectId: number;
  readonly apiKey: string;
}

async function firstUser(pool: Pool) {
  const [first] = await listUsers(pool);
  return first ?? createUser(pool, { email: 'demo@example.com', first_name: 'Demo', last_name: 'User' });
}

/** Runs `work` with a connection to the database. */
export async function withPool<Result>(
  databaseUrl: string,
  work: (pool: Pool) => Promise<Result>,
): Promise<Result> {
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** The user, project and key: those of the last start if they are still valid, otherwise new ones. */
export const ensureAccounts = (
  databaseUrl: string,
  folder: DataFolder,
  projectName: string,
  prepareProject?: (pool: Pool, userId: number, projectId: number) => Promise<void>,
): Promise<DemoAccounts> =>
  withPool(databaseUrl, async (pool) => {
    const saved = readDemoState(folder);
    const user = await firstUser(pool);
    const project =
      (await listProjects(pool)).find(({ id, name }) =>
        saved.project_id === undefined ? name === projectName : id === saved.project_id,
      ) ?? (await createProject(pool, { name: projectName, timezone: 'UTC', week_start_day: 'sunday' }));
    await prepareProject?.(pool, user.id, project.id);
    const keys = await listKeys(pool);
    const isValid = keys.some(
      (key) => key.id === saved.key_id && key.projects.includes(project.id) && key.status === 'active',
    );
    if (isValid && saved.api_key !== undefined) return { projectId: project.id, apiKey: saved.api_key };
    const created = await createKey(pool, {
      user_id: user.id,
      project_ids: [project.id],
      scopes: [...scopes],
      name: 'Local stack',
    });
    saveDemoState(folder, { project_id: project.id, key_id: created.id, api_key: created.key });
    return { projectId: project.id, apiKey: created.key };
  });

/** Compares the revenue in the events with the charges in the warehouse table. */
export const revenueQuery =
  'select c.currency, count() as charges, sum(c.amount) as charged, sum(e.properties.revenue) as tracked from stripe.charges as c join events as e on e.uuid = c.event_uuid group by c.currency order by charged desc';

/** What to try next. */
export function demoInstructions(folder: DataFolder, demo: DemoFile): string {
  const project = `${demo.base_url}/api/environments/${String(demo.project_id)}`;
  return `
${addresses(folder, demo, `, bucket ${demo.bucket}`)}

Try, in another terminal:

  KEY=${demo.api_key}
  EXPORT=${project}/batch_exports/${demo.batch_export_id}
  curl -H "Authorization: Bearer $KEY" $EXPORT/
  curl -H "Authorization: Bearer $KEY" "$EXPORT/runs/?limit=5"
  curl -H "Authorization: Bearer $KEY" $EXPORT/logs/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/pause/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/unpause/
  curl -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" ${project}/query/ \\
    -d '{"query": {"kind": "DialectQuery", "query": "${revenueQuery}"}}'

${stopping}`;
}

/** The way from a database of the user to an export of it. */
export const ownSourceInstructions = (folder: DataFolder, service: ServiceFile, bucket: string): string => `
${addresses(folder, service)}
  API key         ${service.api_key}

Sign in to the console with the key and create an export. The form checks your database, drafts what it lacks and tests the
bucket. Take any S3 server, or the one above:

  Bucket          ${bucket}
  Region          us-east-1
  Endpoint URL    ${service.s3_endpoint}
  Access key      ${service.s3_access_key_id}
  Secret key      ${service.s3_secret_access_key}

${stopping}`;

const stopping = `Press Ctrl-C to stop. ${startCommand} continues with the same data.\n`;

const addresses = (folder: DataFolder, service: ServiceFile, bucket = ''): string =>
  `  Console         ${service.base_url}, sign in with the key below
  HTTP API        ${service.base_url}/api/docs
  Temporal UI     ${service.temporal_ui ?? '(see your Temporal server)'}
  Metrics         ${service.monitoring_url}/metrics and ${service.worker_url}/metrics
  S3              ${service.s3_endpoint}${bucket}
  Keys and IDs    ${demoFilePath(folder)}
  Logs            ${folder.inside('logs')}`;
