// The package's `exportd/client`, which browsers load too: it imports nothing of other folders.
import { ExactNumber, parseJson, stringifyJson } from './exact_numbers.ts';
import type { Job, Operations } from './operations.ts';

export type * from './operations.ts';
export { ExactNumber, parseJson, stringifyJson };

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
type Operation = keyof Operations;

/** The paths of the API that have a method: below the project, or whole as `/api/projects`. */
export type PathOf<Verb extends Method> = Operation extends infer Name ? PathIn<Name, Verb> : never;
type PathIn<Name, Verb extends Method> = Name extends `${Verb} ${infer Path}` ? Path : never;
type OperationAt<Verb extends Method, Path extends string> = `${Verb} ${Path}` extends infer Name extends
  Operation
  ? Operations[Name]
  : never;

/** Paths of lists, which are read page by page. */
type ListPath = {
  [Path in PathOf<'GET'>]: ResultOf<'GET', Path> extends Page<unknown> ? Path : never;
}[PathOf<'GET'>];

/** The body of a response: of an accepted command that is not applied yet (202), it has `detail`. */
export type ResultOf<Verb extends Method, Path extends string> = OperationAt<Verb, Path>['result'];
type ItemOf<Path extends string> = ResultOf<'GET', Path> extends Page<infer Item> ? Item : never;

/** A page of a list. */
export interface Page<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: readonly Item[];
}

/** What any request may have. */
interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Lets a command be sent again: the server applies those with the same key once. */
  readonly idempotencyKey?: string;
}

/** What an operation takes: the ids of its `path`, its `query` and its `body`. */
export type OptionsOf<Verb extends Method, Path extends string> = RequestOptions &
  Omit<OperationAt<Verb, Path>, 'result'>;

/** The argument of a call, which may be left out where nothing is required. */
export type ArgumentOf<Options> = Partial<Options> extends Options ? [options?: Options] : [options: Options];

/** A value of a query; null and undefined are left out, a list is joined by commas. */
type QueryValue = string | number | boolean | null | undefined | readonly (string | number)[];

/** A request to any path, as `Client.request` takes it. */
export interface UntypedRequest extends RequestOptions {
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, QueryValue>> | undefined;
  readonly body?: unknown;
  /** The media type of the response, by default JSON. A body of another type is a text. */
  readonly accept?: string;
}

/** A response of 2xx. */
export interface ApiResponse {
  readonly status: number;
  /** Parsed, if it is JSON; null without one. */
  readonly body: unknown;
  /** URL of what the request created. */
  readonly location: string | null;
}

/** A request that failed. */
export class ExportdError extends Error {
  override readonly name: string = 'ExportdError';
  /** Of the response; 0 without one. */
  readonly status: number;
  /** Why, as a word for programs: `required`, `not_found`, … */
  readonly code: string;
  /** The invalid field of the request, its path joined by `__`; null if none is. */
  readonly attr: string | null;
  /** The whole body of the response; null without one. */
  readonly body: unknown;

  constructor(
    status: number,
    { code, detail, attr = null }: { code: string; detail: string; attr?: string | null },
    { body = null, ...options }: ErrorOptions & { readonly body?: unknown } = {},
  ) {
    super(detail, options);
    this.body = body;
    this.status = status;
    this.code = code;
    this.attr = attr;
  }
}

/** The service rejected the request (4xx), or could not carry it out (5xx). */
export class ApiError extends ExportdError {
  override readonly name = 'ApiError';
}

/** No response of exportd: the service is out of reach, or something else responds at its URL. */
export class ConnectionError extends ExportdError {
  override readonly name = 'ConnectionError';
}

/** How a client reaches the service. */
export interface ClientOptions {
  /** URL of the service; by default that of the page. */
  readonly baseUrl?: string;
  /** API key; a page of the console has a cookie instead. */
  readonly key?: string | undefined;
  /** Id of the project; by default the only one of the key. A function is called for each request. */
  readonly project?: number | (() => number | Promise<number>) | undefined;
  /** Headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends requests; by default the `fetch` of Node or the browser. */
  readonly fetch?: typeof fetch;
}

/**
 * Client of the HTTP API. Each function throws an ApiError or a ConnectionError. A job that the service answers with 202 is
 * polled, and its result returned; it throws an ExportdError if it fails.
 */
export interface Client {
  get<Path extends PathOf<'GET'>>(
    path: Path,
    ...options: ArgumentOf<OptionsOf<'GET', Path>>
  ): Promise<ResultOf<'GET', Path>>;
  post<Path extends PathOf<'POST'>>(
    path: Path,
    ...options: ArgumentOf<OptionsOf<'POST', Path>>
  ): Promise<ResultOf<'POST', Path>>;
  patch<Path extends PathOf<'PATCH'>>(
    path: Path,
    ...options: ArgumentOf<OptionsOf<'PATCH', Path>>
  ): Promise<ResultOf<'PATCH', Path>>;
  delete<Path extends PathOf<'DELETE'>>(
    path: Path,
    ...options: ArgumentOf<OptionsOf<'DELETE', Path>>
  ): Promise<ResultOf<'DELETE', Path>>;
  /** All items of a list, which is read page by page as the loop needs them. `query.limit` is the size of a page. */
  list<Path extends ListPath>(
    path: Path,
    ...options: ArgumentOf<OptionsOf<'GET', Path>>
  ): AsyncGenerator<ItemOf<Path>, void, undefined>;
  /** Sends a request to any path, below the project unless it is one of `/api`, `/console` or of monitoring. */
  request(method: Method, path: string, options?: UntypedRequest): Promise<ApiResponse>;
}

/** Creates a client of a service. It connects with its first request. */
export function createClient({
  baseUrl = '',
  key,
  project,
  headers = {},
  fetch: send = (...request) => fetch(...request),
}: ClientOptions): Client {
  const base = baseUrl.replace(/\/+$/, '');

  const sendRequest = async (
    method: Method,
    url: string,
    { body, signal, idempotencyKey, accept = 'application/json' }: UntypedRequest,
  ): Promise<ApiResponse> => {
    const response = await send(url, {
      method,
      headers: {
        accept,
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        ...headers,
      },
      body: body === undefined ? null : stringifyJson(body),
      signal: signal ?? null,
    }).catch((error: unknown) => {
      if (signal?.aborted === true) throw error;
      throw new ConnectionError(
        0,
        { code: 'unreachable', detail: `Cannot connect to the service${base && ` at ${base}`}.` },
        { cause: error },
      );
    });
    const { ok, status } = response;
    const type = response.headers.get('content-type') ?? '';
    const isText = ok && accept !== 'application/json' && type.startsWith(accept);
    const text = await response.text();
    const parsed = isText ? { value: text } : parseBody(text);
    if (!ok) throw errorOf(status, parsed?.value);
    if (!parsed) throw new ConnectionError(status, notExportd);
    return { status, body: parsed.value, location: response.headers.get('location') };
  };

  /** Polls a job that a request has started below the same project. @throws ExportdError why it failed */
  const waitForJob = async (
    startUrl: string,
    { id }: Job,
    { signal }: UntypedRequest,
  ): Promise<ApiResponse> => {
    // Not `Location`: the service may know itself by another name, and by another path.
    const projectPath = startUrl.slice(base.length).split('/', 4).join('/');
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, jobPollMs));
      const { status, body } = await sendRequest('GET', `${base}${projectPath}/jobs/${id}/`, { signal });
      const job = body as Job;
      if (job.status === 'completed') return { status, body: job.result, location: null };
      if (job.status === 'failed')
        throw new ExportdError(
          status,
          { code: 'job_failed', detail: job.error ?? 'The job failed.' },
          { body },
        );
    }
  };

  const requestUrl = async (method: Method, url: string, options: UntypedRequest): Promise<ApiResponse> => {
    const response = await sendRequest(method, url, options);
    const { status, body } = response;
    return status === 202 && isJob(body) ? waitForJob(url, body, options) : response;
  };

  let only: Promise<number> | undefined;
  const findOnlyProject = async (): Promise<number> => {
    const { body } = await requestUrl('GET', `${base}/api/projects?limit=2`, {});
    const [first, second] = (body as Page<{ readonly id: number }>).results;
    if (first && !second) return first.id;
    throw new ExportdError(0, {
      code: 'project_required',
      detail: first ? 'The API key has several projects: name one.' : 'The API key has no project.',
    });
  };
  const projectId = (): number | Promise<number> => {
    if (typeof project === 'function') return project();
    return project ?? (only ??= findOnlyProject());
  };

  const urlOf = async (path: string, { path: ids = {}, query = {} }: UntypedRequest): Promise<string> => {
    const named = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(ids[name])));
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
    );
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
    const isWhole = /^\/(api|console|healthz|livez|readyz)(?![^/?])/.test(named);
    const whole = isWhole ? named : `/api/projects/${await projectId()}/${named.replace(/^\//, '')}`;
    return base + whole + search;
  };

  const request = async (method: Method, path: string, options: UntypedRequest = {}): Promise<ApiResponse> =>
    requestUrl(method, await urlOf(path, options), options);

  const call =
    (method: Method) =>
    async (path: string, options?: UntypedRequest): Promise<never> =>
      // The types of a result are those of the document.
      (await request(method, path, options)).body as never;

  async function* list(path: string, options: UntypedRequest = {}): AsyncGenerator<never, void, undefined> {
    let url = await urlOf(path, options);
    for (;;) {
      const { body } = await requestUrl('GET', url, options);
      const { results, next } = body as Page<never>;
      yield* results;
      if (next === null) return;
      // The service may know itself by another name, and by another path.
      url = url.replace(/\?.*$/s, '') + new URL(next).search;
    }
  }

  return {
    get: call('GET'),
    post: call('POST'),
    patch: call('PATCH'),
    delete: call('DELETE'),
    list,
    request,
  };
}

/** How often a job is polled, in milliseconds. */
const jobPollMs = 1_000;

/** Whether a body of 202 is a job. That of a command has `detail` alone, that of a verification no `result`. */
const isJob = (body: unknown): body is Job =>
  typeof body === 'object' && body !== null && 'status' in body && 'result' in body;

const notExportd = {
  code: 'not_exportd',
  detail: 'The response is not JSON. Is exportd running at this URL?',
} as const;

/** The value of a JSON body, null if it is empty; undefined for other text. */
function parseBody(text: string): { readonly value: unknown } | undefined {
  if (text === '') return { value: null };
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
}

/** The error of a response; the body of a proxy may have another form. */
function errorOf(status: number, body: unknown): ApiError {
  const { code, detail, attr } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const reason = {
    code: typeof code === 'string' ? code : 'error',
    detail: typeof detail === 'string' ? detail : `The service responded with status ${status}.`,
    attr: typeof attr === 'string' ? attr : null,
  };
  return new ApiError(status, reason, { body });
}
