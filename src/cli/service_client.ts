import { CliError } from './cli_error.ts';
import { readDemoService } from './running_stack.ts';

/** Options that say where the service is and who asks. */
export interface ServiceOptions {
  readonly baseUrl?: string;
  readonly key?: string;
}

/** The HTTP interface of a running service, below the project of the key. */
export interface ServiceClient {
  /** Sends a request; the answer's body, and where `Location` points to. @throws CliError with the service's own words. */
  call(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown>; location: string | null }>;
}

/** A client of the service that the options, the environment or the stack of this clone name. */
export function openService(options: ServiceOptions): ServiceClient {
  const demo = readDemoService();
  const baseUrl = options.baseUrl ?? process.env.EXPORTD_BASE_URL ?? demo.base_url;
  const key = options.key ?? process.env.EXPORTD_API_KEY ?? demo.api_key;
  if (baseUrl === undefined)
    throw new CliError(
      'There is no service: give --base-url or set EXPORTD_BASE_URL, or start the stack of this clone with "npm start".',
    );
  if (key === undefined) throw new CliError('There is no API key: give --key or set EXPORTD_API_KEY.');

  const request = async (method: string, url: string, body?: unknown) => {
    const response = await fetch(`${baseUrl.replace(/\/+$/, '')}${url}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch(() => {
      throw new CliError(`The service does not answer at ${baseUrl}.`);
    });
    const text = await response.text();
    const answer = text === '' ? {} : parseObject(text);
    if (!response.ok) throw new CliError(refusalOf(answer, response.status));
    return { status: response.status, body: answer, location: response.headers.get('location') };
  };

  let project: Promise<string> | undefined;
  const findProject = async () => {
    const { body } = await request('GET', '/api/projects/');
    const [first] = body.results as { id: number }[];
    if (!first) throw new CliError('The key is for no project.');
    return String(first.id);
  };
  return {
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
    throw new CliError('What answers there is not exportd.');
  }
}

function refusalOf(answer: Record<string, unknown>, status: number): string {
  const detail = typeof answer.detail === 'string' ? answer.detail : `The service answered ${status}.`;
  return typeof answer.attr === 'string' ? `${answer.attr}: ${detail}` : detail;
}
