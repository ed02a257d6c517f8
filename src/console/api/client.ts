import { ApiFailure, failureOf } from './api_failure.ts';
import { projectOf, signedOut } from './session.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
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
  return path.startsWith('/') ? path + search : `/api/projects/${projectOf()}/${path}${search}`;
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
    if (failure.status === 401) signedOut();
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
