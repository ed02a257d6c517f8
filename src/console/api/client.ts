import { computed, signal } from '@preact/signals';
import type { Scope } from '../../http/accounts.ts';
import type { Session } from '../../http/projects/schema.ts';

/** A response that is an error, or a request without a response. `attr` names the field, its path joined by `__`. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  /** 0 without a response. */
  readonly status: number;
  readonly code: string;
  readonly attr: string | null;

  constructor(
    status: number,
    { code, detail, attr }: { readonly code: string; readonly detail: string; readonly attr: string | null },
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.attr = attr;
  }
}

/** Reads the body of an error response; a proxy's may have another form. */
async function failureOf(response: Response): Promise<ApiFailure> {
  const body: unknown = await response.json().catch(() => null);
  const { code, detail, attr } = (body ?? {}) as Record<string, unknown>;
  return new ApiFailure(response.status, {
    code: typeof code === 'string' ? code : 'error',
    detail: typeof detail === 'string' ? detail : `The server responded with status ${response.status}.`,
    attr: typeof attr === 'string' ? attr : null,
  });
}

/** Any error as a failure, so that components show one kind. */
export const toFailure = (error: unknown): ApiFailure =>
  error instanceof ApiFailure
    ? error
    : new ApiFailure(0, {
        code: 'unreachable',
        detail: `The server did not respond: ${error instanceof Error ? error.message : String(error)}`,
        attr: null,
      });

const sessionPath = '/console/session';

/** Who is signed in; null: nobody; undefined: not known yet. */
export const session = signal<Session | null | undefined>(undefined);

/** Reads who is signed in. @throws ApiFailure */
export async function readSession(): Promise<void> {
  session.value = (await api.get<{ session: Session | null }>(sessionPath)).session;
}

/** Signs in with an API key, which the browser then keeps out of reach of scripts. @throws ApiFailure */
export async function signIn(key: string): Promise<void> {
  session.value = (await api.post<{ session: Session }>(sessionPath, { key })).session;
}

/** Signs out: the server removes the cookie. */
export async function signOut(): Promise<void> {
  await api.delete(sessionPath);
  session.value = null;
}

/** Signs out all browsers of the user, this one too. @throws ApiFailure */
export async function signOutEverywhere(): Promise<void> {
  await api.delete('/console/sessions');
  session.value = null;
}

const chosenProject = signal<number | undefined>(undefined);

/** Shows the project with this id, if the key covers it, else the first one of the key. */
export const chooseProject = (id: number | undefined): void => {
  chosenProject.value = id;
};

/** The project that pages show; undefined if nobody is signed in. */
export const project = computed(() => {
  const { projects, project: first } = session.value ?? {};
  return projects?.find(({ id }) => id === chosenProject.value) ?? first;
});

/** Its id, which stays the same when the session is read again. */
export const projectId = computed(() => project.value?.id);

/** @throws ApiFailure 401 if nobody is signed in */
function requireProject(): number {
  const id = projectId.peek();
  if (id === undefined)
    throw new ApiFailure(401, { code: 'not_authenticated', detail: 'Sign in first.', attr: null });
  return id;
}

/** Whether the key covers more than one project. */
const coversProjects = (): boolean => (session.peek()?.projects.length ?? 0) > 1;

const scopes = computed(() => new Set<string>(session.value?.scopes ?? []));

/** Whether the key may do this. What it may not do is not shown as possible. */
export const may = (scope: Scope): boolean => scopes.value.has(scope);

/** The time zone of the project, which times are shown in. */
export const timezone = computed(() => project.value?.timezone ?? 'UTC');

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

interface RequestOptions {
  readonly query?: Query | undefined;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** What the server reads to tell requests of this page from those of other sites. */
const consoleHeader = { 'x-exportd-console': '1' };

/** The absolute path of an operation of the project: `batch_exports/` is `/api/projects/1/batch_exports/`. */
export const apiPath = (path: string, query: Query = {}): string => {
  const set = Object.entries(query).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  const search = set.length === 0 ? '' : `?${new URLSearchParams(set).toString()}`;
  return path.startsWith('/') ? path + search : `/api/projects/${requireProject()}/${path}${search}`;
};

/**
 * Sends a request. `path` is relative to the project, or absolute if it begins with a slash. Returns the body, or null
 * without one.
 * @throws ApiFailure for every response that is not 2xx. A 401 shows the sign-in page.
 */
export async function send<Result>(
  method: Method,
  path: string,
  { query, body, signal }: RequestOptions = {},
): Promise<Result> {
  const response = await fetch(apiPath(path, query), {
    method,
    headers: {
      accept: 'application/json',
      ...(method === 'GET' ? {} : consoleHeader),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiFailure(0, {
      code: 'unreachable',
      detail: 'The exportd server does not respond. Check that it runs, then retry.',
      attr: null,
    });
  });
  if (!response.ok) {
    const failure = await failureOf(response);
    // The key was revoked or the cookie is gone.
    if (failure.status === 401) session.value = null;
    throw failure;
  }
  const text = await response.text();
  return (text === '' ? null : JSON.parse(text)) as Result;
}

/** Requests to the API. Each throws an ApiFailure for an error response. */
export const api = {
  get: <Result>(path: string, query?: Query, signal?: AbortSignal) =>
    send<Result>('GET', path, { query, signal }),
  post: <Result>(path: string, body?: unknown, signal?: AbortSignal) =>
    send<Result>('POST', path, { body, signal }),
  patch: <Result>(path: string, body: unknown) => send<Result>('PATCH', path, { body }),
  delete: <Result>(path: string, body?: unknown) => send<Result>('DELETE', path, { body }),
};

/** A page of a list. */
export interface ListOf<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: readonly Item[];
}

/** A request that an action sends, and the `exportd` command that does the same. */
export interface ActionRequest {
  readonly method: Exclude<Method, 'GET'>;
  /** Relative to the project, as for `api`. */
  readonly path: string;
  readonly body?: unknown;
  /** The arguments of `npx exportd`, such as `['export', 'pause', id]`. Without it, no line is shown. */
  readonly command?: readonly string[] | undefined;
}

/** The request as a line for a shell. The key is read from the environment: no line holds one. */
export function curlLine({ method, path, body }: ActionRequest): string {
  const url = shellWord(window.location.origin + apiPath(path));
  const parts = ['curl -sS', `-X ${method}`, '-H "Authorization: Bearer $EXPORTD_API_KEY"'];
  const content =
    body === undefined ? [] : ["-H 'Content-Type: application/json'", '-d', shellWord(JSON.stringify(body))];
  return [...parts, ...content, url].join(' ');
}

/** The command as a line for a shell. It names the project where the key leaves it open. */
export function exportdLine({ command }: ActionRequest): string | undefined {
  if (!command) return undefined;
  const ofProject =
    coversProjects() && !command.includes('--project') ? ['--project', String(requireProject())] : [];
  return ['npx exportd', ...command.map(shellWord), ...ofProject].join(' ');
}

/** A word as a POSIX shell reads it literally. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
