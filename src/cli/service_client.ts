import { type Command, Option } from 'commander';
import {
  ApiError,
  type ArgumentOf,
  type BatchExport,
  type Client,
  createClient,
  ExportdError,
  type Method,
  type OptionsOf,
  type PathOf,
  type ResultOf,
  type UntypedRequest,
} from '../client/client.ts';
import { startCommand } from '../config/installation.ts';
import { parseId } from './arguments.ts';
import { CliError } from './cli_error.ts';
import { readDemoService, requireOneInstallation, serverUrlOf } from './running_stack.ts';

/** The largest page that the API sends. */
export const allOfThem = { query: { limit: 1_000 } } as const;

/** URL and API key of the service, and the project. */
interface ServiceOptions {
  readonly baseUrl?: string;
  readonly key?: string;
  /** Its id; by default the only project of the key. */
  readonly project?: number | undefined;
}

/** What a service can do; `unknown` if it does not say. */
export type Readiness = Partial<Omit<ResultOf<'GET', '/readyz'>, 'status'>> & { readonly status: string };

/** What a command led to. */
export interface CommandOutcome {
  /** False while no worker has applied it. */
  readonly applied: boolean;
  /** URL of what it created. */
  readonly location: string | null;
}

/** Client of the HTTP API, for one project of its key. Its functions throw a CliError with the error message of the response. */
export interface ServiceClient extends Pick<Client, 'get' | 'post' | 'patch' | 'delete'> {
  /** Asks the service what it can do. @throws CliError when it cannot be reached */
  readiness(): Promise<Readiness>;
  /** Sends a command whose response has no body of interest. */
  command<Verb extends Method, Path extends PathOf<Verb>>(
    method: Verb,
    path: Path,
    ...options: ArgumentOf<OptionsOf<Verb, Path>>
  ): Promise<CommandOutcome>;
  /** Reads a list of the project as CSV. */
  csv(path: string, query: UntypedRequest['query']): Promise<string>;
  /** Reads all batch exports of the project, newest first. */
  exports(): Promise<BatchExport[]>;
}

/** The things of a project by the part of their path before their id: what they are, and the command that lists them. */
type NamedThings = Readonly<Record<string, readonly [name: string, list: string]>>;

/** Those of most commands. */
const commonThings: NamedThings = {
  batch_exports: ['batch export', 'export list'],
  runs: ['run', 'run list'],
  intervals: ['interval', 'export intervals'],
  backfills: ['backfill', 'backfill list'],
  keys: ['key', 'key list'],
};

/**
 * Connects to the service that the options, the environment or the running demo name.
 * @param things what messages call the other things of the command
 * @throws CliError
 */
export function openService(options: ServiceOptions, things: NamedThings = {}): ServiceClient {
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
    const { results: projects } = await client.get('/api/projects', allOfThem);
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
  const request = (method: Method, path: string, request?: UntypedRequest) =>
    client
      .request(method, path, request)
      .catch((error: unknown) =>
        rethrow(describeMissing(error, path, { ...commonThings, ...things }, request)),
      );
  const call =
    (method: Method) =>
    async (path: string, options?: UntypedRequest): Promise<never> =>
      // The types of a result are those of the document.
      (await request(method, path, options)).body as never;
  return {
    get: call('GET'),
    post: call('POST'),
    patch: call('PATCH'),
    delete: call('DELETE'),
    csv: async (path, query) => String((await request('GET', path, { query, accept: 'text/csv' })).body),
    command: async (method: Method, path: string, options?: UntypedRequest) => {
      const { status, location } = await request(method, path, options);
      return { applied: status !== 202, location };
    },
    readiness: async () => {
      // It responds with 503 when it is not ready, and says why.
      const { body } = await client
        .request('GET', '/readyz?for=act')
        .catch((error: unknown) => (error instanceof ApiError ? error : rethrow(error)));
      return { status: 'unknown', ...(body as Partial<Readiness>) };
    },
    exports: async () => {
      const exports: BatchExport[] = [];
      try {
        for await (const one of client.list('/batch_exports', allOfThem)) exports.push(one);
      } catch (error) {
        rethrow(error);
      }
      return exports;
    },
  };
}

/** An error 404 as a sentence that says what was not found, and how to list what there is. Other errors stay. */
function describeMissing(
  error: unknown,
  path: string,
  things: NamedThings,
  { path: ids = {} }: UntypedRequest = {},
): unknown {
  if (!(error instanceof ApiError) || error.status !== 404) return error;
  // The name of a thing, and the parameter of its id: `/batch_exports/{batch_export_id}/runs/{id}` has two.
  const [outer, inner] = [...path.matchAll(/(\w+)\/\{(\w+)\}/g)].map(([, group = '', parameter = '']) => ({
    named: things[group],
    id: ids[parameter],
  }));
  if (!outer?.named) return error;
  const owner = `${outer.named[0]} "${outer.id}"`;
  const within = path.startsWith('/api/') ? '' : ' in the project';
  if (!inner?.named)
    return new CliError(`There is no ${owner}${within}. "exportd ${outer.named[1]}" lists what there is.`);
  return new CliError(
    `There is no ${inner.named[0]} "${inner.id}" of a ${owner}. "exportd ${inner.named[1]} ${outer.id}" lists what there is.`,
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

/** Fields that a person wrote, or of any object that is printed. */
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

/** A body, or a part of one, as a person wrote it. It is sent as it is: the service validates it. */
export const asWritten = (fields: JsonObject): never => fields as never;

/** What is given of a query: its parameters that are not undefined. */
export const given = <Query extends Readonly<Record<string, unknown>>>(
  query: Query,
): { [Name in keyof Query]?: Exclude<Query[Name], undefined> } =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as never;
