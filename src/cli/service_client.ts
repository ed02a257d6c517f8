import { CliError } from './cli_error.ts';
import { readDemoService, requireOneInstallation, serverUrlOf } from './running_stack.ts';

/** URL and API key of the service. */
export interface ServiceOptions {
  readonly baseUrl?: string;
  readonly key?: string;
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
        readonly message: string;
        readonly opened_at: string;
        readonly waiting_runs: number;
      }[]
    | null;
}

/** Client of the HTTP API, for the project of its key. */
export interface ServiceClient {
  /** Asks the service what it can do. @throws CliError when it cannot be reached */
  readiness(): Promise<Readiness>;
  /** Sends a request. @throws CliError with the error message of the response. */
  call(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown>; location: string | null }>;
}

/** Connects to the service that the options, the environment or the running demo name. @throws CliError */
export function openService(options: ServiceOptions): ServiceClient {
  if (options.baseUrl === undefined) requireOneInstallation(process.env);
  const baseUrl = serverUrlOf(process.env, options.baseUrl);
  const key = options.key ?? process.env.EXPORTD_API_KEY ?? readDemoService().api_key;
  if (baseUrl === undefined)
    throw new CliError(
      'No service: pass --base-url, set EXPORTD_BASE_URL, or start the local stack with "npm start".',
    );
  if (key === undefined) throw new CliError('No API key: pass --key or set EXPORTD_API_KEY.');

  const send = (url: string, init?: RequestInit) =>
    fetch(`${baseUrl.replace(/\/+$/, '')}${url}`, init).catch(() => {
      throw new CliError(`Cannot connect to the service at ${baseUrl}.`);
    });
  const request = async (method: string, url: string, body?: unknown) => {
    const response = await send(url, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const responseBody = text === '' ? {} : parseObject(text);
    if (!response.ok) throw new CliError(errorMessageOf(responseBody, response.status));
    return { status: response.status, body: responseBody, location: response.headers.get('location') };
  };

  let project: Promise<string> | undefined;
  const findProject = async () => {
    const { body } = await request('GET', '/api/projects/');
    const [first] = body.results as { id: number }[];
    if (!first) throw new CliError('The API key has no project.');
    return String(first.id);
  };
  return {
    readiness: async () => {
      // It responds with 503 when it is not ready, and says why.
      const response = await send('/readyz?for=act');
      return { status: 'unknown', ...parseObject(await response.text()) };
    },
    call: async (method, path, body) => {
      project ??= findProject();
      return request(method, `/api/environments/${await project}/${path}`, body);
    },
  };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new CliError('The response is not JSON. Is exportd running at this URL?');
  }
}

function errorMessageOf(responseBody: Record<string, unknown>, status: number): string {
  const detail =
    typeof responseBody.detail === 'string'
      ? responseBody.detail
      : `The service responded with status ${status}.`;
  return typeof responseBody.attr === 'string' ? `${responseBody.attr}: ${detail}` : detail;
}
