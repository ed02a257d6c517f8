import { readFileSync, statSync } from 'node:fs';
import * as z from 'zod';
import { bounds, boundText } from '../../config/bounds.ts';
import { CliError } from '../cli_error.ts';

const time = z.iso.datetime({ offset: true, error: 'Expected an ISO 8601 time with an offset.' });

/**
 * A batch export as PostHog's API returns it. Fields are absent where its version does not know them, and fields that are
 * not listed here are ignored: they say nothing about what is exported.
 */
const posthogExport = z.object({
  id: z.string().nullish(),
  team_id: z.number().nullish(),
  name: z.string(),
  model: z.string().nullish(),
  destination: z.object({
    type: z.string(),
    config: z.record(z.string(), z.unknown()).nullish(),
    integration: z.unknown().optional(),
  }),
  interval: z.string(),
  /** Absent before 2026, when every schedule ran in UTC. */
  timezone: z.string().nullish(),
  offset_hour: z.number().int().nullish(),
  offset_day: z.number().int().nullish(),
  paused: z.boolean().nullish(),
  start_at: time.nullish(),
  end_at: time.nullish(),
  latest_runs: z
    .array(z.object({ status: z.string(), data_interval_start: time.nullish(), data_interval_end: time }))
    .nullish(),
  filters: z.array(z.unknown(), "'filters' is no list.").nullish(),
  hogql_query: z.string().nullish(),
  schema: z.unknown().optional(),
  hogql_modifiers: z.unknown().optional(),
  primary_key: z.unknown().optional(),
  version_key: z.unknown().optional(),
  incremental_mode: z.unknown().optional(),
});
export type PosthogExport = z.infer<typeof posthogExport>;

const page = z.object({ results: z.array(z.unknown()), next: z.string().nullish() });

/**
 * Reads the exports of a JSON value: one export, a list of them, or a page of PostHog's list.
 * @throws CliError with the export and the field that is not as expected; it shows no value
 */
function exportsIn(value: unknown, origin: string): PosthogExport[] {
  const asPage = page.safeParse(value);
  const found = asPage.success ? asPage.data.results : Array.isArray(value) ? (value as unknown[]) : [value];
  return found.map((one, index) => {
    const parsed = posthogExport.safeParse(one);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const path = (issue?.path ?? []).map(String).join('.');
    throw new CliError(
      `${origin}: item ${index + 1} is no batch export of PostHog${path === '' ? '' : `, see ${path}`}. ${issue?.message ?? ''}`,
    );
  });
}

const parseJson = (text: string, problem: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new CliError(problem);
  }
};

const tooLarge = (origin: string): CliError =>
  new CliError(`${origin} has more than ${boundText(bounds.exportsFile)}, which are no batch exports.`);

/**
 * Reads exports from a file with what PostHog's API returned. `-` reads stdin.
 * @throws CliError, also for a page of a list that has others
 */
export function readPosthogFile(path: string): PosthogExport[] {
  let text: string;
  try {
    if (path !== '-' && statSync(path).size > bounds.exportsFile.max) throw tooLarge(path);
    text = readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new CliError(`${path} cannot be read (${code}).`);
  }
  if (text.length > bounds.exportsFile.max) throw tooLarge(path);
  const value = parseJson(text, `${path} is not JSON.`);
  const asPage = page.safeParse(value);
  if (asPage.success && (asPage.data.next ?? null) !== null)
    throw new CliError(
      `${path} is one page of a list that has others. Read the list with a larger limit, or pass --url.`,
    );
  return exportsIn(value, path);
}

/** A project of an installation of PostHog, and who reads it. */
interface PosthogProject {
  readonly url: string;
  readonly project: string;
  /** A personal API key: no message shows it. */
  readonly key: string;
}

const pageSize = 100;
/** The most pages that are read: a list that never ends is an error. */
const maxPages = 100;
const requestTimeoutMs = 30_000;

/**
 * Reads all batch exports of a project. It only sends GET requests, all of them to `url`: it follows no redirect, and takes
 * only the position from the link to the next page, so that the key reaches no other server.
 * @param timeoutMs for each page
 * @throws CliError
 */
export async function fetchPosthogExports(
  { url, project, key }: PosthogProject,
  timeoutMs = requestTimeoutMs,
): Promise<PosthogExport[]> {
  const list = listUrl(url, project);
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new CliError('The API key of PostHog has characters that no key has, such as spaces.');
  const found: PosthogExport[] = [];
  for (let read = 0; read < maxPages; read += 1) {
    list.searchParams.set('limit', String(pageSize));
    list.searchParams.set('offset', String(found.length));
    const value = await getJson(list, { key, project, timeoutMs });
    const parsed = page.safeParse(value);
    if (!parsed.success)
      throw new CliError(`${list.origin} did not respond with a list of batch exports. Is it PostHog?`);
    found.push(...exportsIn(value, list.origin));
    if ((parsed.data.next ?? null) === null) return found;
    if (parsed.data.results.length === 0) break;
  }
  throw new CliError(`The list of batch exports of ${list.origin} does not end.`);
}

/** @throws CliError for a URL that the key should not be sent to */
function listUrl(text: string, project: string): URL {
  if (!URL.canParse(text)) throw new CliError('--url is no URL. Write it like https://eu.posthog.com.');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    throw new CliError('--url must have no user and no password. Pass --key.');
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal(url.hostname)))
    throw new CliError(
      '--url must begin with https://, because the API key is sent to it. Only localhost may use http.',
    );
  if (!/^[\w@-]+$/.test(project)) throw new CliError('--project is the id of a project in PostHog.');
  const path = url.pathname.replace(/\/+$/, '');
  return new URL(`${url.origin}${path}/api/projects/${project}/batch_exports/`);
}

const isLocal = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host);

interface PageRequest {
  readonly key: string;
  readonly project: string;
  readonly timeoutMs: number;
}

async function getJson(url: URL, { key, project, timeoutMs }: PageRequest): Promise<unknown> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json', authorization: `Bearer ${key}` },
      redirect: 'manual',
      signal,
    });
    rejectStatus(response, url, project);
    const text = await limitedText(response, url.origin);
    return parseJson(text, `${url.origin} did not respond with JSON. Is it PostHog?`);
  } catch (error) {
    if (error instanceof CliError) throw error;
    // The message of an error can show the request, and the request has the key.
    if (signal.aborted) throw new CliError(`${url.origin} did not respond within ${timeoutMs / 1_000} s.`);
    throw new CliError(`Cannot connect to ${url.origin} (${codeOf(error)}).`);
  }
}

const codeOf = (error: unknown): string => {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return typeof cause?.code === 'string' ? cause.code : 'no response';
};

/** @throws CliError for each status but 200 */
function rejectStatus({ status, headers }: Response, { origin }: URL, project: string): void {
  if (status === 200) return;
  const sent = headers.get('location') ?? '';
  const target = URL.canParse(sent, origin) ? new URL(sent, origin).origin : 'another page';
  throw new CliError(
    status >= 300 && status < 400
      ? `${origin} redirects to ${target}. The API key is not sent there: if it is your PostHog, pass it as --url.`
      : status === 401
        ? `${origin} rejects the API key. Pass a personal API key that has not expired; project keys (phc_…) read nothing.`
        : status === 403
          ? `${origin} allows the API key no batch exports of project ${project}. It needs the scope batch_export:read and access to the project.`
          : status === 404
            ? `${origin} has no batch exports of project ${project}. Check --url, which is the address of the app, and --project.`
            : `${origin} responded with status ${status}.`,
  );
}

/** The text of a body, which the server could make as long as it likes. */
async function limitedText({ body }: Response, origin: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > bounds.exportsFile.max) throw tooLarge(`A page of ${origin}`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
