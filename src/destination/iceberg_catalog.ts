/** Requests to an Iceberg REST catalog, which says what the newest version of a table is, and lets one of two commits pass. */
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { HttpRequest } from '@smithy/core/protocols';
import { SignatureV4 } from '@smithy/signature-v4';
import { z } from 'zod';
import { bounds } from '../config/bounds.ts';
import { catalogLookup, type IcebergCatalogConfig } from './catalog_config.ts';
import { DestinationError } from './destination.ts';
import { isTransientStatus } from './errors.ts';
import { secureContextOf, type S3Requests } from './requests.ts';
import type { Settings } from '../config/settings.ts';

/** How a commit ended. `unknown`: it may be there, or arrive later. */
type CatalogOutcome = 'committed' | 'conflict' | 'unknown';

/** A JSON object of the catalog. Integers that are no safe numbers are bigints. */
type Json = Readonly<Record<string, unknown>>;

/** The table of a config in its catalog. All methods throw DestinationError. */
export interface IcebergCatalog {
  /** The namespace and the table, for messages. */
  readonly name: string;
  /** Reads the metadata of the table; null if it does not exist. */
  load(signal: AbortSignal): Promise<Json | null>;
  /** Creates the table, and its namespace if it has none. @returns null if it exists */
  create(definition: Json, signal: AbortSignal): Promise<Json | null>;
  /** Sends a commit once. */
  commit(
    change: { readonly requirements: readonly Json[]; readonly updates: readonly Json[] },
    signal: AbortSignal,
  ): Promise<CatalogOutcome>;
}

interface CatalogContext {
  readonly settings: Pick<
    Settings,
    'EXPORTD_ALLOW_PRIVATE_ENDPOINTS' | 'EXPORTD_S3_REQUEST_TIMEOUT' | 'EXPORTD_S3_CA_BUNDLE'
  >;
  readonly region: string;
  readonly credentials: S3Requests['credentials'];
}

/** What a catalog was asked once: where its tables are, and a token. */
interface Session {
  /** The path of its namespaces, and what separates the levels of one. */
  place?: { readonly namespaces: string; readonly separator: string };
  token?: { readonly text: string; readonly expiresAt: number };
}

/** Sessions by the digest of all that they depend on, secrets included. */
const sessions = new Map<string, Session>();
const maxSessions = 200;

/** How long before its end a token is replaced, and how long one without an end is used, in milliseconds. */
const [tokenMarginMs, tokenTimeMs] = [60_000, 300_000];

const configResponse = z.object({
  defaults: z.record(z.string(), z.unknown()).nullish(),
  overrides: z.record(z.string(), z.unknown()).nullish(),
});
const tokenResponse = z.object({ access_token: z.string().min(1), expires_in: z.number().nullish() });
const tableResponse = z.object({ metadata: z.record(z.string(), z.unknown()) });
const errorResponse = z.object({ error: z.object({ type: z.string() }) });

interface CatalogResponse {
  readonly status: number;
  readonly body: unknown;
}

/** Opens the catalog of a config. Sends no request yet. */
export function openIcebergCatalog(config: IcebergCatalogConfig, context: CatalogContext): IcebergCatalog {
  const { catalog_uri, catalog_warehouse, catalog_namespace, catalog_table } = config;
  const base = `${catalog_uri.replace(/\/+$/, '')}/v1`;
  const digest = createHash('sha256').update(JSON.stringify(config)).digest('base64');
  const session = (): Session => {
    const known = sessions.get(digest) ?? {};
    sessions.delete(digest);
    sessions.set(digest, known);
    const [oldest] = sessions.keys();
    if (sessions.size > maxSessions && oldest !== undefined) sessions.delete(oldest);
    return known;
  };

  const readToken = async (credential: string, signal: AbortSignal): Promise<string> => {
    const known = session().token;
    if (known && known.expiresAt > Date.now()) return known.text;
    const colon = credential.indexOf(':');
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      ...(colon > 0 && { client_id: credential.slice(0, colon) }),
      client_secret: credential.slice(colon + 1),
      scope: config.catalog_scope ?? 'catalog',
    });
    const url = config.catalog_oauth2_server_uri ?? `${base}/oauth/tokens`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const { status, body } = await exchange('POST', url, headers, form.toString(), context, signal);
    if (status >= 400) throw rejected('the request for a token', status, body);
    const { access_token, expires_in } = parse(tokenResponse, body);
    const lifeMs = expires_in ? expires_in * 1_000 - tokenMarginMs : tokenTimeMs;
    session().token = { text: access_token, expiresAt: Date.now() + lifeMs };
    return access_token;
  };

  const authorized = async (method: string, url: string, body: string | null, signal: AbortSignal) => {
    const { catalog_token, catalog_credential, catalog_signing_name } = config;
    const headers: Record<string, string> = {
      accept: 'application/json',
      'user-agent': 'exportd',
      ...(body !== null && { 'content-type': 'application/json' }),
    };
    if (catalog_signing_name !== null)
      return sign(method, url, headers, body, { ...context, service: catalog_signing_name });
    const token =
      catalog_token ??
      (catalog_credential === undefined ? undefined : await readToken(catalog_credential, signal));
    return token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
  };

  const send = async (
    method: string,
    path: string,
    body: Json | null,
    signal: AbortSignal,
  ): Promise<CatalogResponse> => {
    const text = body === null ? null : stringify(body);
    const url = `${base}${path}`;
    const once = async () =>
      exchange(method, url, await authorized(method, url, text, signal), text, context, signal);
    const response = await once();
    // The token may have been revoked, or has ended early; nothing was done.
    if (response.status !== 401 || !session().token) return response;
    delete session().token;
    return once();
  };

  /** Where the namespaces are, which the catalog chooses. */
  const place = async (signal: AbortSignal): Promise<NonNullable<Session['place']>> => {
    const known = session().place;
    if (known !== undefined) return known;
    const query = catalog_warehouse === null ? '' : `?warehouse=${encodeURIComponent(catalog_warehouse)}`;
    const { status, body } = await send('GET', `/config${query}`, null, signal);
    if (status >= 400) throw rejected('the request for its configuration', status, body);
    const { defaults, overrides } = parse(configResponse, body);
    const prefix = overrides?.prefix ?? defaults?.prefix ?? '';
    if (typeof prefix !== 'string') throw unexpected();
    const segments = prefix.split('/').filter((segment) => segment !== '');
    const namespaces = `/${[...segments.map(encodeURIComponent), 'namespaces'].join('/')}`;
    const given = overrides?.['namespace-separator'] ?? defaults?.['namespace-separator'];
    const separator = typeof given === 'string' && /^(%[0-9A-F]{2})+$/.test(given) ? given : '%1F';
    const found = { namespaces, separator };
    session().place = found;
    return found;
  };

  const levels = catalog_namespace.split('.');
  const tables = async (signal: AbortSignal): Promise<string> => {
    const { namespaces, separator } = await place(signal);
    return `${namespaces}/${levels.map(encodeURIComponent).join(separator)}/tables`;
  };
  const table = async (signal: AbortSignal): Promise<string> =>
    `${await tables(signal)}/${encodeURIComponent(catalog_table)}`;
  const metadataOf = (body: unknown): Json => parse(tableResponse, body).metadata;

  const load: IcebergCatalog['load'] = async (signal) => {
    const { status, body } = await send('GET', await table(signal), null, signal);
    if (status === 404) return null;
    if (status >= 400) throw rejected('the request for the table', status, body);
    return metadataOf(body);
  };
  return {
    name: `${catalog_namespace}.${catalog_table}`,
    load,
    create: async (definition, signal) => {
      const post = async () =>
        send('POST', await tables(signal), { name: catalog_table, ...definition }, signal);
      let response = await post();
      if (response.status === 404) {
        // Namespaces are created level by level.
        for (let depth = 1; depth <= levels.length; depth += 1) {
          const namespace = levels.slice(0, depth);
          const { namespaces } = await place(signal);
          const made = await send('POST', namespaces, { namespace, properties: {} }, signal);
          if (made.status >= 400 && made.status !== 409)
            throw rejected('the creation of the namespace', made.status, made.body);
        }
        response = await post();
      }
      if (response.status === 409) return null;
      if (response.status >= 400) throw rejected('the creation of the table', response.status, response.body);
      return metadataOf(response.body);
    },
    commit: async (change, signal) => {
      const identifier = { namespace: levels, name: catalog_table };
      const path = await table(signal);
      let response: CatalogResponse;
      try {
        response = await send('POST', path, { identifier, ...change }, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof DestinationError && error.transient) return 'unknown';
        throw error;
      }
      const { status, body } = response;
      if (status < 300) return 'committed';
      if (status === 409) return 'conflict';
      if (status >= 500) return 'unknown';
      throw rejected('a commit', status, body);
    },
  };
}

/** Sends a request once. Follows no redirects. @throws DestinationError */
function exchange(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | null,
  { settings }: Pick<CatalogContext, 'settings'>,
  signal: AbortSignal,
): Promise<CatalogResponse> {
  const {
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowed,
    EXPORTD_S3_REQUEST_TIMEOUT: timeout,
    EXPORTD_S3_CA_BUNDLE: bundle,
  } = settings;
  const { promise, resolve, reject } = Promise.withResolvers<CatalogResponse>();
  const fail = (error: unknown): void => {
    reject(signal.aborted ? signal.reason : toError(error));
  };
  const isSecure = url.startsWith('https:');
  const sent = (isSecure ? httpsRequest : httpRequest)(url, {
    method,
    headers: { ...headers, ...(body !== null && { 'content-length': Buffer.byteLength(body) }) },
    agent: false,
    signal,
    timeout,
    lookup: catalogLookup(allowed),
    ...(isSecure && bundle !== undefined && { secureContext: secureContextOf(bundle) }),
  });
  sent.on('timeout', () => sent.destroy(new Error('timeout')));
  sent.on('error', fail);
  sent.on('response', (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bounds.catalogResponse.max) chunks.push(chunk);
      else
        response.destroy(
          new DestinationError('ResponseTooLarge', 'A response of the catalog is too large.', {
            transient: false,
          }),
        );
    });
    response.on('error', fail);
    response.on('end', () => {
      const status = response.statusCode ?? 0;
      if (status >= 300 && status < 400) fail(rejected('a request', status, null));
      else resolve({ status, body: parseJson(Buffer.concat(chunks).toString()) });
    });
    response.on('close', () => {
      if (!response.complete) fail(new Error('the connection broke'));
    });
  });
  sent.end(body ?? undefined);
  return promise;
}

/** Strings, which stay as they are, and integers that doubles may not hold. */
const wideIntegers = /"[^"\\]*(?:\\.[^"\\]*)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Parses JSON with 64-bit integers, such as the ids of snapshots that other writers choose. Undefined for other texts. */
function parseJson(text: string): unknown {
  // No string of the text has this mark. Node 20 gives revivers no source.
  const mark = `${randomUUID()}:`;
  try {
    const marked = text.replaceAll(wideIntegers, (found) =>
      found.startsWith('"') ? found : `"${mark}${found}"`,
    );
    return JSON.parse(marked, (_, value: unknown) => {
      if (typeof value !== 'string' || !value.startsWith(mark)) return value;
      const wide = BigInt(value.slice(mark.length));
      return Number.isSafeInteger(Number(wide)) ? Number(wide) : wide;
    });
  } catch {
    return undefined;
  }
}

/** Formats JSON with bigints as integers. */
function stringify(value: Json): string {
  const mark = `${randomUUID()}:`;
  const marked = JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'bigint' ? `${mark}${inner}` : inner,
  );
  return marked.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1');
}

/** @throws DestinationError when the response is none of a catalog */
function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw unexpected();
  return parsed.data;
}

const unexpected = (): DestinationError =>
  new DestinationError(
    'NotACatalog',
    'The response is not from an Iceberg REST catalog; check catalog_uri of the destination.',
    { transient: false },
  );

/** The message has the name of the catalog's error alone: what else it says may repeat secrets. */
function rejected(what: string, status: number, body: unknown): DestinationError {
  const { data } = errorResponse.safeParse(body);
  const type = data && /^[A-Za-z]{1,80}$/.test(data.error.type) ? `${data.error.type}, ` : '';
  const said = `The Iceberg catalog rejected ${what} (${type}status ${status})`;
  if (status === 401 || status === 403 || status === 419)
    return new DestinationError(
      'CatalogAccessDenied',
      `${said}; check the catalog_token, catalog_credential or catalog_signing_name of the destination, and what they permit.`,
      { transient: false },
    );
  return new DestinationError(
    status >= 500 ? 'CatalogUnavailable' : 'CatalogRejected',
    `${said}; check catalog_uri, catalog_warehouse and catalog_namespace of the destination.`,
    { transient: status >= 500 || isTransientStatus(status) },
  );
}

function toError(error: unknown): DestinationError {
  if (error instanceof DestinationError) return error;
  const code =
    Error.isError(error) && 'code' in error && typeof error.code === 'string' ? error.code : 'no response';
  return new DestinationError(
    'CatalogUnreachable',
    `The Iceberg catalog did not respond (${code}); check catalog_uri of the destination and whether the server is running.`,
    { transient: true },
  );
}

/** Signs a request as AWS expects it, for Glue and S3 Tables. */
async function sign(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | null,
  {
    region,
    credentials,
    service,
  }: Pick<CatalogContext, 'region' | 'credentials'> & { readonly service: string },
): Promise<Record<string, string>> {
  const { protocol, hostname, port, host, pathname, searchParams } = new URL(url);
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const signed = await signer.sign(
    new HttpRequest({
      method,
      protocol,
      hostname,
      ...(port !== '' && { port: Number(port) }),
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: { ...headers, host },
      ...(body !== null && { body }),
    }),
  );
  return signed.headers;
}

/** SHA-256 as the signer calls it. */
class Sha256 {
  readonly #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash =
      secret === undefined
        ? createHash('sha256')
        : createHmac('sha256', typeof secret === 'string' ? secret : bytesOf(secret));
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(typeof data === 'string' ? data : bytesOf(data));
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {
    throw new TypeError('A hash is used once.');
  }
}

const bytesOf = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
