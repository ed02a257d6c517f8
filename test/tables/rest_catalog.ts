import { createHash, createHmac, randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';

type Json = Record<string, unknown>;

/** A request to the catalog, with its body as text. */
export interface CatalogRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  status: number | null;
}

/** What the client gets instead: a broken connection, or a status. */
type Outcome = 'broken' | number | undefined;

interface Hooks {
  /** Before the catalog does anything. */
  readonly before?: (request: CatalogRequest) => Promise<Outcome> | Outcome;
  /** After it has done everything, before it responds. */
  readonly after?: (request: CatalogRequest) => Promise<Outcome> | Outcome;
}

/** The metadata of a table, as the REST catalog specification has it. */
export interface CatalogTable extends Json {
  'table-uuid': string;
  'last-sequence-number': number;
  'last-column-id': number;
  'current-schema-id': number;
  'default-spec-id': number;
  'last-partition-id': number;
  'partition-specs': (Json & { 'spec-id': number })[];
  schemas: (Json & { 'schema-id': number; fields: Json[] })[];
  'current-snapshot-id': bigint;
  snapshots: (Json & {
    'snapshot-id': bigint;
    'sequence-number': number;
    'manifest-list': string;
    summary: Record<string, string>;
  })[];
  refs: Record<string, { 'snapshot-id': bigint; type: string }>;
  properties: Record<string, string>;
}

/** 64-bit ids stay what they are. */
const parse = (text: string): Json =>
  JSON.parse(text, ((key: string, value: unknown, { source }: { source: string }) =>
    /snapshot-ids?$/.test(key) && typeof value === 'number'
      ? BigInt(source)
      : typeof value === 'number' && !Number.isSafeInteger(value)
        ? BigInt(source)
        : value) as Parameters<typeof JSON.parse>[1]) as Json;
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown };
const format = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? rawJSON(String(inner)) : inner));

/** The key with which requests are signed. */
interface AwsKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
  readonly service: string;
}

/**
 * The Authorization header of a signed request, by "Create a signed AWS API request" of AWS's documentation. The path is encoded
 * once more than it is sent, as for every service but S3.
 */
function signatureOf(
  { method, path, text, headers }: CatalogRequest,
  { accessKeyId, secretAccessKey, region, service }: AwsKey,
): string {
  const encoded = (value: string): string =>
    encodeURIComponent(value).replaceAll(
      /[!'()*]/g,
      (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const sha256 = (value: string): string => createHash('sha256').update(value).digest('hex');
  const [route = '', query = ''] = path.split('?');
  const parameters = [...new URLSearchParams(query)].map(
    ([name, value]) => `${encoded(name)}=${encoded(value)}`,
  );
  const [, signed = ''] = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '') ?? [];
  const time = String(headers['x-amz-date']);
  const scope = [time.slice(0, 8), region, service, 'aws4_request'];
  const canonical = [
    ...[method, route.split('/').map(encoded).join('/'), parameters.sort().join('&')],
    ...signed.split(';').map((name) => `${name}:${String(headers[name]).trim()}`),
    ...['', signed, sha256(text)],
  ].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(canonical)].join('\n');
  const key = [...scope, toSign].reduce(
    (secret: string | Buffer, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${secretAccessKey}`,
  );
  return `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope.join('/')}, SignedHeaders=${signed}, Signature=${key.toString('hex')}`;
}

class Refused extends Error {
  readonly status: number;
  constructor(status: number, type: string) {
    super(type);
    this.status = status;
  }
}
const refuse = (status: number, type: string): never => {
  throw new Refused(status, type);
};

/** Whether a requirement of a commit holds, by the REST catalog specification. */
function holds(table: CatalogTable, requirement: Json): boolean {
  switch (requirement.type) {
    case 'assert-table-uuid':
      return requirement.uuid === table['table-uuid'];
    case 'assert-ref-snapshot-id': {
      const found = table.refs[String(requirement.ref)];
      const wanted = requirement['snapshot-id'];
      return wanted === null ? !found : found !== undefined && wanted === found['snapshot-id'];
    }
    case 'assert-current-schema-id':
      return requirement['current-schema-id'] === table['current-schema-id'];
    case 'assert-last-assigned-field-id':
      return requirement['last-assigned-field-id'] === table['last-column-id'];
    case 'assert-last-assigned-partition-id':
      return requirement['last-assigned-partition-id'] === table['last-partition-id'];
    default:
      return refuse(400, 'BadRequestException');
  }
}

function apply(table: CatalogTable, update: Json): void {
  switch (update.action) {
    case 'add-schema': {
      const schema = update.schema as CatalogTable['schemas'][number];
      const id = Math.max(...table.schemas.map((known) => known['schema-id'])) + 1;
      table.schemas.push({ ...schema, 'schema-id': id });
      table['last-column-id'] = Math.max(
        table['last-column-id'],
        ...schema.fields.map(({ id }) => Number(id)),
      );
      return;
    }
    case 'set-current-schema': {
      const id = Number(update['schema-id']);
      table['current-schema-id'] = id === -1 ? (table.schemas.at(-1)?.['schema-id'] ?? 0) : id;
      return;
    }
    case 'add-spec': {
      const spec = update.spec as { readonly fields: readonly { 'source-id': number; 'field-id': number }[] };
      const schema = table.schemas.find((one) => one['schema-id'] === table['current-schema-id']);
      if (!spec.fields.every((field) => schema?.fields.some(({ id }) => id === field['source-id'])))
        refuse(400, 'ValidationException');
      table['partition-specs'].push({ ...spec, 'spec-id': table['partition-specs'].length });
      table['last-partition-id'] = Math.max(
        table['last-partition-id'],
        ...spec.fields.map((field) => field['field-id']),
      );
      return;
    }
    case 'set-default-spec':
      table['default-spec-id'] = table['partition-specs'].length - 1;
      return;
    case 'add-snapshot': {
      const snapshot = update.snapshot as CatalogTable['snapshots'][number];
      if (snapshot['sequence-number'] <= table['last-sequence-number']) refuse(400, 'ValidationException');
      table['last-sequence-number'] = snapshot['sequence-number'];
      table.snapshots.push({ ...snapshot, 'snapshot-id': snapshot['snapshot-id'] });
      return;
    }
    case 'set-snapshot-ref': {
      const id = update['snapshot-id'] as bigint;
      table.refs[String(update['ref-name'])] = { 'snapshot-id': id, type: String(update.type) };
      if (update['ref-name'] === 'main') table['current-snapshot-id'] = id;
      return;
    }
    case 'remove-snapshots': {
      const ids = new Set((update['snapshot-ids'] as (number | bigint)[]).map(BigInt));
      table.snapshots = table.snapshots.filter((snapshot) => !ids.has(snapshot['snapshot-id']));
      return;
    }
    case 'set-properties':
      Object.assign(table.properties, update.updates);
      return;
    default:
      refuse(400, 'BadRequestException');
  }
}

/** Ids of columns are chosen by the catalog when a table is created, like those of Iceberg's own. */
const created = (request: Json): CatalogTable => {
  const schema = request.schema as { fields: Json[] };
  return {
    ...{ 'format-version': 2, 'table-uuid': randomUUID(), location: request.location },
    ...{ 'last-sequence-number': 0, 'last-updated-ms': Date.now(), 'last-column-id': schema.fields.length },
    'current-schema-id': 0,
    schemas: [
      {
        ...{ type: 'struct', 'schema-id': 0 },
        fields: schema.fields.map((field, index) => ({ ...field, id: index + 1 })),
      },
    ],
    'default-spec-id': 0,
    'partition-specs': [{ 'spec-id': 0, fields: [] }],
    ...{
      'last-partition-id': 999,
      'default-sort-order-id': 0,
      'sort-orders': [{ 'order-id': 0, fields: [] }],
    },
    properties: request.properties as Record<string, string>,
    'current-snapshot-id': -1n,
    ...{ snapshots: [], refs: {}, 'snapshot-log': [], 'metadata-log': [] },
  };
};

/**
 * An Iceberg REST catalog in memory that checks what a commit requires, as the specification says, and can be disturbed.
 * @param credentials that it demands: a token, a client that gets one, or signatures of AWS
 */
export async function startRestCatalog(
  credentials: { readonly token?: string; readonly client?: string; readonly signature?: AwsKey } = {},
) {
  const namespaces = new Set<string>();
  const tables = new Map<string, CatalogTable>();
  const requests: CatalogRequest[] = [];
  const hooks = new Set<Hooks>();
  const tokens = new Set(credentials.token === undefined ? [] : [credentials.token]);
  const handle = (request: CatalogRequest): unknown => {
    const { method, path, text, authorization } = request;
    const [, , ...segments] = (path.split('?')[0] ?? '').split('/').map(decodeURIComponent);
    if (segments.join('/') === 'oauth/tokens') {
      const form = new URLSearchParams(text);
      if (`${form.get('client_id')}:${form.get('client_secret')}` !== credentials.client)
        refuse(401, 'NotAuthorizedException');
      const token = randomUUID();
      tokens.add(token);
      return { access_token: token, token_type: 'bearer', expires_in: 3_600 };
    }
    const isOpen = credentials.client === undefined && credentials.token === undefined;
    if (!isOpen && !tokens.has(authorization?.replace('Bearer ', '') ?? ''))
      refuse(401, 'NotAuthorizedException');
    if (credentials.signature && authorization !== signatureOf(request, credentials.signature))
      refuse(403, 'ForbiddenException');
    if (segments[0] === 'config') return { defaults: {}, overrides: { prefix: 'lake' } };
    if (segments[0] !== 'lake') refuse(404, 'NoSuchWarehouseException');
    const [, , namespace, , name] = segments;
    const body = text === '' ? {} : parse(text);
    if (namespace === undefined) {
      const made = (body.namespace as string[]).join('\u001f');
      if (namespaces.has(made)) refuse(409, 'AlreadyExistsException');
      namespaces.add(made);
      return { namespace: body.namespace };
    }
    if (!namespaces.has(namespace)) refuse(404, 'NoSuchNamespaceException');
    const key = `${namespace}/${name ?? String(body.name)}`;
    if (name === undefined) {
      if (tables.has(key)) refuse(409, 'AlreadyExistsException');
      tables.set(key, created(body));
    }
    const table = tables.get(key) ?? refuse(404, 'NoSuchTableException');
    if (name !== undefined && method === 'POST') {
      const { requirements = [], updates = [] } = body as { requirements?: Json[]; updates?: Json[] };
      if (!requirements.every((requirement) => holds(table, requirement)))
        refuse(409, 'CommitFailedException');
      const next = structuredClone(table);
      for (const update of updates) apply(next, update);
      tables.set(key, next);
    }
    return { 'metadata-location': 's3://catalog/metadata.json', metadata: tables.get(key), config: {} };
  };
  const respond = (response: ServerResponse, status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(format(body));
  };
  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = '';
    for await (const chunk of incoming) text += String(chunk);
    const { method = '', url: path = '' } = incoming;
    const request: CatalogRequest = {
      ...{ method, path, text, status: null },
      authorization: incoming.headers.authorization,
      headers: incoming.headers,
    };
    requests.push(request);
    const inject = async (when: keyof Hooks): Promise<boolean> => {
      for (const hook of hooks) {
        const outcome = await hook[when]?.(request);
        if (outcome === undefined) continue;
        if (outcome === 'broken') incoming.socket.destroy();
        else respond(response, outcome, { error: { type: 'Injected', code: outcome } });
        return true;
      }
      return false;
    };
    if (await inject('before')) return;
    let status = 200;
    let body: unknown;
    try {
      body = handle(request);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      status = error.status;
      body = { error: { message: 'No.', type: error.message, code: status } };
    }
    request.status = status;
    if (!(await inject('after'))) respond(response, status, body);
  };
  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((error: unknown) => {
      respond(response, 500, { error: { type: String(error), code: 500 } });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    uri: `http://127.0.0.1:${port}`,
    requests,
    tables,
    /** Takes no token that it has given any more. */
    revokeTokens: (): void => tokens.clear(),
    /** Changes a table as another client does. */
    update: (key: string, ...updates: readonly Json[]): void => {
      const next = structuredClone(tables.get(key) ?? refuse(404, 'NoSuchTableException'));
      for (const update of updates) apply(next, update);
      tables.set(key, next);
    },
    /** @returns a function that removes the hooks */
    intercept: (added: Hooks): (() => void) => {
      hooks.add(added);
      return () => hooks.delete(added);
    },
    close: async (): Promise<void> => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export type RestCatalog = Awaited<ReturnType<typeof startRestCatalog>>;

/** Whether a request is a commit that adds a snapshot. */
export const isCommit = ({ method, text }: CatalogRequest): boolean =>
  method === 'POST' && text.includes('"add-snapshot"');
