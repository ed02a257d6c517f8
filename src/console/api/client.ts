import { computed, signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import { ApiError, ConnectionError, createClient, ExportdError } from '../../client/client.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Session } from '../../http/projects/schema.ts';
import { basePath, serverPath } from '../router/paths.ts';

/** Any error as a failure, so that components show one kind. */
export const toFailure = (error: unknown): ExportdError =>
  error instanceof ExportdError
    ? error
    : new ConnectionError(0, {
        code: 'unreachable',
        detail: `The server did not respond: ${error instanceof Error ? error.message : String(error)}`,
      });

const sessionPath = '/console/session';

export type { ExportdError, Page as ListOf } from '../../client/client.ts';

/** Who is signed in; null without a session; undefined: not known yet. */
export const session = signal<Session | null | undefined>(undefined);

/** Whether the server has ended the session of this tab: the sign-in page says so instead of appearing without a word. */
export const hasSessionEnded = signal(false);

/** Where this tab keeps that it is signed in. */
const signedInKey = 'exportd-signed-in';

function showSession(next: Session | null, isAsked = false): void {
  const { sessionStorage } = window;
  hasSessionEnded.value = next === null && !isAsked && sessionStorage.getItem(signedInKey) !== null;
  if (next === null) sessionStorage.removeItem(signedInKey);
  else sessionStorage.setItem(signedInKey, 'yes');
  session.value = next;
}

/** Reads who is signed in. @throws ExportdError */
export async function readSession(): Promise<void> {
  showSession((await api.get<{ session: Session | null }>(sessionPath)).session);
}

/** Signs in with an API key, which the browser then keeps out of reach of scripts. @throws ExportdError */
export async function signIn(key: string): Promise<void> {
  showSession((await api.post<{ session: Session }>(sessionPath, { key })).session);
}

/** Signs out: the server removes the cookie. */
export async function signOut(): Promise<void> {
  await api.delete(sessionPath);
  showSession(null, true);
}

/** Signs out all browsers of the user, this one too. @throws ExportdError */
export async function signOutEverywhere(): Promise<void> {
  await api.delete('/console/sessions');
  showSession(null, true);
}

const chosenProject = signal<number | undefined>(undefined);

/** Shows the project with this id, if the key covers it, else the first one of the key. */
export const chooseProject = (id: number | undefined): void => {
  chosenProject.value = id;
};

/** The project that pages show; undefined without a session. */
export const project = computed(() => {
  const { projects, project: first } = session.value ?? {};
  return projects?.find(({ id }) => id === chosenProject.value) ?? first;
});

/** Its id, which stays the same when the session is read again. */
export const projectId = computed(() => project.value?.id);

/** @throws ExportdError 401 without a session */
function requireProject(): number {
  const id = projectId.peek();
  if (id === undefined) throw new ApiError(401, { code: 'not_authenticated', detail: 'Sign in first.' });
  return id;
}

/** Whether the key covers more than one project. */
const coversProjects = (): boolean => (session.peek()?.projects.length ?? 0) > 1;

const scopes = computed(() => new Set<string>(session.value?.scopes ?? []));

/** Whether the key may do this. What it may not do is not shown as possible. */
export const may = (scope: Scope): boolean => scopes.value.has(scope);

/** The time zone of the page, if it shows an export. */
const pageTimezone = signal<string | undefined>(undefined);

/** The time zone that times are shown in: that of the export on its pages, else that of the project. */
export const timezone = computed(() => pageTimezone.value ?? project.value?.timezone ?? 'UTC');

/** Shows the times of the page in a time zone, for as long as the component is shown; undefined while it is not known. */
export function useTimezone(name: string | undefined): void {
  useLayoutEffect(() => {
    pageTimezone.value = name;
    return () => {
      pageTimezone.value = undefined;
    };
  }, [name]);
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

interface RequestOptions {
  readonly query?: Query | undefined;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Its header is what the server reads to tell requests of this page from those of other sites. */
const client = createClient({ baseUrl: basePath, headers: { 'x-exportd-console': '1' } });

/** The path of an operation of the project below the server's base: `batch_exports/` is `/api/projects/1/batch_exports/`. */
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
 * @throws ExportdError for every response that is not 2xx. A 401 shows the sign-in page.
 */
export async function send<Result>(
  method: Method,
  path: string,
  { query, body, signal }: RequestOptions = {},
): Promise<Result> {
  try {
    return (await client.request(method, apiPath(path, query), { body, signal })).body as Result;
  } catch (error) {
    // The key was revoked or the cookie is gone.
    if (error instanceof ApiError && error.status === 401 && session.peek()) showSession(null);
    if (!(error instanceof ConnectionError)) throw error;
    const detail = 'The exportd server does not respond. Check that it runs, then retry.';
    throw new ConnectionError(error.status, { code: error.code, detail }, { cause: error });
  }
}

/** Requests to the API. Each throws an ExportdError for an error response. */
export const api = {
  get: <Result>(path: string, query?: Query, signal?: AbortSignal) =>
    send<Result>('GET', path, { query, signal }),
  post: <Result>(path: string, body?: unknown, signal?: AbortSignal) =>
    send<Result>('POST', path, { body, signal }),
  patch: <Result>(path: string, body: unknown) => send<Result>('PATCH', path, { body }),
  delete: <Result>(path: string, body?: unknown) => send<Result>('DELETE', path, { body }),
};

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
  const url = shellWord(window.location.origin + serverPath(apiPath(path)));
  const parts = ['curl -sS', `-X ${method}`, '-H "Authorization: Bearer $EXPORTD_API_KEY"'];
  const content =
    body === undefined ? [] : ["-H 'Content-Type: application/json'", '-d', shellWord(JSON.stringify(body))];
  return [...parts, ...content, url].join(' ');
}

/** The command as a line for a shell. It names the project where the key leaves it open. */
export function exportdLine({ command, path }: ActionRequest): string | undefined {
  if (!command) return undefined;
  const isOfProject = coversProjects() && !path.startsWith('/') && !command.includes('--project');
  const ofProject = isOfProject ? ['--project', String(requireProject())] : [];
  return ['npx exportd', ...command.map(shellWord), ...ofProject].join(' ');
}

/** A word as a POSIX shell reads it literally. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
