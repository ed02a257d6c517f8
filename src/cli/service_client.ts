import { type Command, Option } from 'commander';
import { ApiError, type BatchExport, createClient, ExportdError } from '../client/client.ts';
import { startCommand } from '../config/installation.ts';
import { parseId } from './arguments.ts';
import { CliError } from './cli_error.ts';
import { readDemoService, requireOneInstallation, serverUrlOf } from './running_stack.ts';

/** The largest page that the API sends. */
const pageSize = 1_000;

/** URL and API key of the service, and the project. */
interface ServiceOptions {
  readonly baseUrl?: string;
  readonly key?: string;
  /** Its id; by default the only project of the key. */
  readonly project?: number | undefined;
}

/** What a service can do, as `/readyz` says. */
export interface Readiness {
  /** `ok`, `degraded` or `unavailable`. */
  readonly status: string;
  /** `ok`, or why no worker acts on commands. */
  readonly act?: string;
  readonly operator_faults?:
    | readonly {
        readonly type: string;
        readonly opened_at: string;
        /** These two only with a key that has `installation:admin`. */
        readonly message?: string;
        readonly waiting_runs?: number;
      }[]
    | null;
}

/** Client of the HTTP API, for one project of its key. */
export interface ServiceClient {
  /** Asks the service what it can do. @throws CliError when it cannot be reached */
  readiness(): Promise<Readiness>;
  /** Sends a request. @throws CliError with the error message of the response. */
  call(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: JsonObject; location: string | null }>;
  /** Reads all batch exports of the project, newest first. @throws CliError */
  exports(): Promise<BatchExport[]>;
}

/** Connects to the service that the options, the environment or the running demo name. @throws CliError */
export function openService(options: ServiceOptions): ServiceClient {
  if (options.baseUrl === undefined) requireOneInstallation(process.env);
  const baseUrl = serverUrlOf(process.env, options.baseUrl);
  const key = options.key ?? process.env.EXPORTD_API_KEY ?? readDemoService().api_key;
  if (baseUrl === undefined)
    throw new CliError(
      `No service: pass --base-url, set EXPORTD_BASE_URL, or start the local stack with "${startCommand}".`,
    );
  if (key === undefined) throw new CliError('No API key: pass --key or set EXPORTD_API_KEY.');

  let project: Promise<number> | undefined;
  const client = createClient({ baseUrl, key, project: () => (project ??= findProject()) });
  /** The project that the options name, or the only one of the key. */
  const findProject = async () => {
    const { results: projects } = await client.get('/api/projects', { query: { limit: pageSize } });
    const names = projects.map(({ id, name }) => `${id} (${name})`).join(', ');
    const [first] = projects;
    if (!first) throw new CliError('The API key has no project.');
    if (options.project === undefined) {
      if (projects.length === 1) return first.id;
      throw new CliError(`The API key has several projects: ${names}. Pass --project with the id of one.`);
    }
    if (projects.some(({ id }) => id === options.project)) return options.project;
    throw new CliError(`The API key gives no access to project ${options.project}. It has: ${names}.`);
  };
  return {
    readiness: async () => {
      // It responds with 503 when it is not ready, and says why.
      const { body } = await client
        .request('GET', '/readyz?for=act')
        .catch((error: unknown) => (error instanceof ApiError ? error : rethrow(error)));
      return { status: 'unknown', ...(body as JsonObject) };
    },
    call: async (method, path, body) => {
      const response = await client
        .request(method, path, { body })
        .catch((error: unknown) => rethrow(describeMissing(error, path)));
      return { ...response, body: (response.body ?? {}) as JsonObject };
    },
    exports: async () => {
      const exports: BatchExport[] = [];
      try {
        for await (const one of client.list('/batch_exports', { query: { limit: pageSize } }))
          exports.push(one);
      } catch (error) {
        rethrow(error);
      }
      return exports;
    },
  };
}

/** The things of a project by the part of their path before their id: what they are, and the command that lists them. */
const namedThings: Readonly<Record<string, readonly [name: string, list: string]>> = {
  batch_exports: ['batch export', 'export list'],
  runs: ['run', 'run list'],
  backfills: ['backfill', 'backfill list'],
  webhooks: ['webhook', 'webhook list'],
  deliveries: ['delivery', 'webhook deliveries'],
  keys: ['key', 'key list'],
};

/** The parts of a path before and after the id of a thing, decoded. */
const partsOf = (path: string): string[] =>
  (path.split('?')[0] ?? '').split('/').filter(Boolean).map(decodeURIComponent);

/** An error 404 as a sentence that says what was not found, and how to list what there is. Other errors stay. */
function describeMissing(error: unknown, path: string): unknown {
  if (!(error instanceof ApiError) || error.status !== 404) return error;
  const [group = '', id, subgroup = '', nested] = partsOf(path);
  const named = namedThings[group];
  const inner = namedThings[subgroup];
  if (!named || id === undefined) return error;
  const owner = `${named[0]} "${id}"`;
  if (!inner || nested === undefined)
    return new CliError(`There is no ${owner} in the project. "exportd ${named[1]}" lists what there is.`);
  return new CliError(
    `There is no ${inner[0]} "${nested}" of a ${owner}. "exportd ${inner[1]} ${id}" lists what there is.`,
  );
}

/** Throws an error of the service as one line, after the field that it is about. */
function rethrow(error: unknown): never {
  if (!(error instanceof ExportdError)) throw error;
  const { attr, message } = error;
  throw new CliError(attr === null ? message : `${attr}: ${message}`, 1, { cause: error });
}

/** Options of every command that uses the HTTP API. */
export type ServiceCommandOptions = ServiceOptions & { readonly json?: boolean };

/** A response body, or an item of a list in one. */
export type JsonObject = Record<string, unknown>;

/** Which project a command is about. */
const projectOption = (): Option =>
  new Option('--project <id>', 'id of the project; needed if the API key has several').argParser(parseId);

/**
 * A command that uses the HTTP API, with its common options.
 * @param project replaces the option that names the project; null: the command is about none
 */
export function serviceCommand(
  parent: Command,
  name: string,
  description: string,
  project: Option | null = projectOption(),
): Command {
  const command = parent
    .command(name)
    .description(description)
    .option('--base-url <url>', 'URL of the service; by default EXPORTD_BASE_URL or the running demo')
    .option('--key <key>', 'API key; by default EXPORTD_API_KEY or that of the running demo')
    .option('--json', 'print JSON');
  return project === null ? command : command.addOption(project);
}

/** The items of a list response. */
export const results = (body: JsonObject): JsonObject[] =>
  Array.isArray(body.results) ? (body.results as JsonObject[]) : [];

/** The query of a URL with the given parameters; empty without any. */
export function searchOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}
