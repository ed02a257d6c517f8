import { Readable } from 'node:stream';
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyReply } from 'fastify';
import { createJsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { installedPath, isBuild } from '../../config/installation.ts';
import { basePathOf, type Settings } from '../../config/settings.ts';
import { ApiError } from '../api_error.ts';
import { outgoingMessages, resourceExamples, resourceTags } from '../resources.ts';
import type { HttpApp } from '../route_context.ts';
import { createTurns } from '../../concurrency/keyed_semaphore.ts';
import jobs from '../jobs/examples.json' with { type: 'json' };
import errors from './errors.json' with { type: 'json' };

/** Examples of a body by name. In the document, the spaces of a name are underscores. */
type Examples = Readonly<Record<string, unknown>>;

interface ErrorExample {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly attr?: string | null;
}

/** The examples of an operation. An operation of the document without them fails `test/http/openapi`. */
interface OperationExamples {
  readonly body?: Examples;
  /** By status code. */
  readonly responses?: Readonly<Record<string, Examples>>;
  /** Errors of this operation only, besides those of operations of its kind. */
  readonly errors?: readonly ErrorExample[];
}

/** The examples of every operation, by its method and its path below the project. They stand beside their schemas. */
export const examples: Readonly<Record<string, OperationExamples>> = resourceExamples;

/** Every error that the API responds with, by the kind of operations that do. */
export const errorsByKind: Readonly<Record<keyof typeof errors, readonly ErrorExample[]>> = errors;

/** The parts of an OpenAPI document that are completed here. */
interface Document {
  readonly components?: { schemas?: Readonly<Record<string, unknown>> };
  paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks?: unknown;
}
interface Operation {
  operationId?: string;
  tags?: readonly string[];
  readonly summary?: string;
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, Response>>;
}
interface Response {
  description?: string;
  readonly content?: Content;
}
type Content = Readonly<
  Record<
    string,
    { readonly schema?: Readonly<Record<string, unknown>>; examples?: Readonly<Record<string, NamedExample>> }
  >
>;
interface NamedExample {
  readonly summary: string;
  readonly value: unknown;
}

/** The tags of the document. */
const documentTags = resourceTags.map(({ name }) => ({ name }));

const descriptions: Readonly<Record<string, string>> = {
  '200': 'Success.',
  '201': 'Created. `Location` is its URL.',
  '202': 'Accepted and not applied yet.',
  '204': 'Success, without a body.',
  '4XX': 'The request was rejected. `code` says why, `attr` names the invalid field.',
  '5XX': 'The request could not be carried out. Retry it; commands with the same `Idempotency-Key`.',
};

/** The path below the project, or the whole path of an operation that has no project in it. */
export const pathInProject = (path: string): string =>
  path.replace(/^\/api\/(projects|environments)\/\{project_id\}/, '');

/**
 * Adds ids, tags, descriptions of responses and examples to each operation of a document, in place. Sorts its schemas, which
 * have the order in which modules were loaded, and leaves out those that nothing refers to.
 */
function completeDocument<Given extends object>(document: Given): Given {
  const described = document as Document;
  const { components, webhooks } = described;
  described.paths = { ...described.paths, ...monitoring };
  const { paths } = described;
  if (components?.schemas) {
    const used = referredSchemas([paths, webhooks], components.schemas);
    components.schemas = Object.fromEntries(
      Object.entries(components.schemas)
        .filter(([name]) => used.has(name))
        .sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  }
  for (const [path, operations] of Object.entries(paths))
    for (const [method, operation] of Object.entries(operations)) {
      operation.operationId = operationIdOf(operation.summary ?? '', path);
      completeOperation(method.toUpperCase(), pathInProject(path), operation);
    }
  return document;
}

/** The names of the schemas that a value refers to, and those that they refer to. */
function referredSchemas(
  value: unknown,
  schemas: Readonly<Record<string, unknown>>,
  found = new Set<string>(),
): ReadonlySet<string> {
  if (typeof value !== 'object' || value === null) return found;
  for (const [key, inner] of Object.entries(value)) {
    const name = key === '$ref' ? String(inner).replace('#/components/schemas/', '') : undefined;
    if (name === undefined) referredSchemas(inner, schemas, found);
    else if (!found.has(name)) {
      found.add(name);
      referredSchemas(schemas[name], schemas, found);
    }
  }
  return found;
}

/**
 * What clients that are made from the document call an operation: its summary without articles, such as `listBackfills`. The
 * operations below `environments` are the same, and an id names one.
 */
function operationIdOf(summary: string, path: string): string {
  const words = summary.split(' ').filter((word) => !/^(a|an|the)$/.test(word));
  const [first = '', ...others] = words.map(
    (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase(),
  );
  return [first.toLowerCase(), ...others, path.startsWith('/api/environments/') ? 'InEnvironment' : ''].join(
    '',
  );
}

/** Whether a response is a job that takes longer than its request has waited. */
const isJob = (response: Response | undefined): boolean =>
  response?.content?.['application/json']?.schema?.$ref === '#/components/schemas/Job';

/** The same in all operations. */
const pendingJob = {
  description: 'It takes longer than the server waits. `Location` is where to poll the job.',
  examples: { pending: jobs['GET /jobs/{id}'].responses['200'].pending },
};

function completeOperation(method: string, path: string, operation: Operation): void {
  const own = examples[`${method} ${path}`];
  const accepted = operation.responses?.['202'];
  operation.tags = [tagOf(path)];
  addExamples(operation.requestBody?.content, own?.body);
  const rejections = errorExamples(
    {
      always: true,
      of_path_ids: path.includes('{'),
      of_bodies: operation.requestBody !== undefined,
      of_commands: accepted !== undefined && !isJob(accepted),
      of_creations: method === 'POST' && /^\/batch_exports(\/check)?$/.test(path),
      // Dry runs count the rows of the source.
      of_source_reads: method === 'POST' && /\/backfills?$/.test(path),
      of_queries: (method === 'POST' && path === '/query') || path === '/query/draft_sql',
      of_drafts: path === '/query/draft_sql',
      of_runs: path.includes('/runs/{id}'),
      // A worker carries them out while the request waits.
      of_tests: method === 'POST' && /\/(test|run_test_step(_new)?)$/.test(path),
      of_tables: /\/table(\/|$)/.test(path),
    },
    own?.errors ?? [],
  );
  for (const [status, response] of Object.entries(operation.responses ?? {})) {
    if (status === '202' && isJob(response)) {
      addExamples(response.content, pendingJob.examples);
      response.description = pendingJob.description;
      continue;
    }
    const isError = status === '4XX' || status === '5XX';
    addExamples(response.content, isError ? rejections[status] : own?.responses?.[status]);
    // Users and projects are read in their lists.
    const description = status === '201' && path.startsWith('/api/') ? 'Created.' : descriptions[status];
    if (description !== undefined) response.description = description;
  }
}

/** The examples of an operation's error responses, as `4XX` and `5XX` of the document. */
function errorExamples(
  kinds: Readonly<Record<keyof typeof errors, boolean>>,
  own: readonly ErrorExample[],
): Readonly<Record<'4XX' | '5XX', Examples>> {
  const possible = [
    ...Object.entries(errorsByKind).flatMap(([kind, given]) =>
      kinds[kind as keyof typeof errors] ? given : [],
    ),
    ...own,
  ];
  const examplesOf = (isOf: (status: number) => boolean): Examples =>
    Object.fromEntries(
      possible
        .filter(({ status }) => isOf(status))
        .sort((one, other) => one.status - other.status)
        .map(({ status, code, detail, attr = null }) => [
          `${status}_${code}`,
          new ApiError(status, code, detail, { attr }).body(),
        ]),
    );
  return {
    '4XX': examplesOf((status) => status < 500),
    '5XX': examplesOf((status) => status >= 500),
  };
}

function addExamples(content: Content | undefined, given: Examples | undefined): void {
  if (content === undefined || given === undefined) return;
  const named = Object.entries(given).map(([name, value]): [string, NamedExample] => [
    name,
    { summary: name.replaceAll('_', ' '), value },
  ]);
  for (const media of Object.values(content)) media.examples = Object.fromEntries(named);
}

/** The tag with the longest matching prefix. */
function tagOf(path: string): string {
  const matching = resourceTags.flatMap(({ name, prefixes }) =>
    prefixes.filter((prefix) => path.startsWith(prefix)).map((prefix) => ({ name, length: prefix.length })),
  );
  return matching.sort((one, other) => other.length - one.length)[0]?.name ?? 'Other';
}

const text = { type: 'string' as const };

/** A response of health or readiness, with its process: another server may be listening on the expected port. */
const report = (description: string, properties: Readonly<Record<string, object>>, example: object) => ({
  description,
  content: {
    'application/json': {
      schema: {
        type: 'object' as const,
        properties: { ...properties, pid: { type: 'integer' } },
        required: [...Object.keys(properties), 'pid'],
      },
      examples: { report: { summary: 'report', value: { ...example, pid: 4711 } } },
    },
  },
});

const alive = (summary: string) => ({
  get: {
    summary,
    security: [],
    responses: { '200': report('Success.', { status: text }, { status: 'ok' }) },
  },
});

const abilities = {
  status: { enum: ['ok', 'degraded', 'unavailable'] },
  read: text,
  queue: text,
  act: text,
  needs_newer: { type: ['string', 'null'] },
  operator_faults: {
    type: ['array', 'null'],
    items: {
      type: 'object',
      properties: {
        type: text,
        opened_at: { type: 'string', format: 'date-time' },
        incident_id: { ...text, description: 'Only with a key that has `installation:admin`.' },
        message: { ...text, description: 'Only with a key that has `installation:admin`.' },
        waiting_runs: { type: 'integer', description: 'Only with a key that has `installation:admin`.' },
      },
      required: ['type', 'opened_at'],
    },
  },
};
const able = { read: 'ok', queue: 'ok', act: 'ok', needs_newer: null, operator_faults: [] };
const unable = 'Temporal cannot be reached.';

/** The paths that need no key. Their routes have no schema: what they say must not fail because of one. */
const monitoring = {
  '/healthz': alive('Check health'),
  '/livez': alive('Check liveness'),
  '/readyz': {
    get: {
      summary: 'Check readiness',
      description: 'What the server can do, each `ok` or the problem, and what the operator has to fix.',
      security: [],
      parameters: [
        {
          name: 'for',
          in: 'query' as const,
          description: 'What it has to be ready for.',
          schema: { type: 'string' as const, enum: ['read', 'queue', 'act'], default: 'queue' },
        },
      ],
      responses: {
        '200': report('It is ready.', abilities, { status: 'ok', ...able }),
        '400': {
          description: 'The parameter is invalid.',
          content: {
            'application/json': {
              schema: { $ref: '#/components/schemas/Error' },
              examples: {
                invalid: {
                  summary: 'invalid',
                  value: new ApiError(400, 'invalid_input', "Must be one of: 'read', 'queue', 'act'.", {
                    attr: 'for',
                  }).body(),
                },
              },
            },
          },
        },
        '503': report('It is not ready.', abilities, {
          status: 'unavailable',
          ...able,
          queue: unable,
          act: unable,
        }),
      },
    },
  },
};

/** How the OpenAPI document is made from the schemas of the routes. */
export const documentOptions: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'exportd',
      version: '1',
      description:
        'Batch exports of events and persons to object storage, dashboards and queries. Each path of a project exists ' +
        'below `/api/projects/{project_id}` and `/api/environments/{project_id}`, with or without a trailing slash.',
    },
    components: { securitySchemes: { personalApiKey: { type: 'http', scheme: 'bearer' } } },
    security: [{ personalApiKey: [] }],
    tags: documentTags,
    webhooks: outgoingMessages,
  },
  // The one that the library exports keeps the schemas of the first document of a process, also where others were loaded since.
  transform: createJsonSchemaTransform({}),
  transformObject: (document) => completeDocument(jsonSchemaTransformObject(document)),
};

/** The path of the rendered OpenAPI document. */
const path = '/api/docs';
const jsonType = 'application/json; charset=utf-8';

/** No other host, no inline script and no inline style. The page's icons are `data:` URLs in its style sheet. */
const contentSecurityPolicy = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': ["'self'", 'data:'],
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

const styles = `
  body { background: Canvas; }
  .swagger-ui .info { margin: 24px 0; }
  .swagger-ui .scheme-container { box-shadow: none; padding: 12px 0; }
`;

/** The document in a build, with Brotli. */
export const builtDocumentFile = 'openapi.json.br';

/** The text of the document, which a build has. A clone makes it for the first who asks, which takes 0.3 s. */
const readDocument = (app: HttpApp): Buffer =>
  isBuild
    ? brotliDecompressSync(readFileSync(installedPath(builtDocumentFile)))
    : Buffer.from(JSON.stringify(app.swagger()));

/**
 * Serves the OpenAPI document, and as a page. Its assets come from the package of Swagger UI. The document needs no key, so its
 * text is made once; as YAML it would take as long for each request.
 */
export async function addApiDocs(app: HttpApp, settings: Pick<Settings, 'EXPORTD_BASE_URL'>): Promise<void> {
  const basePath = basePathOf(settings);
  const read = (): Buffer => atBasePath(readDocument(app), basePath);
  let whole: Buffer | undefined;
  let shown: Buffer | undefined;
  app.get('/api/schema', { schema: { hide: true } }, (_request, reply) =>
    sendSlowly(reply.type(jsonType), (whole ??= read())),
  );
  await app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, done) => {
      const { method, routeOptions } = request;
      // JSON is YAML too.
      const type = { [`${path}/json`]: jsonType, [`${path}/yaml`]: 'application/x-yaml' }[
        routeOptions.url ?? ''
      ];
      if (type === undefined || (method !== 'GET' && method !== 'HEAD')) done();
      else void sendSlowly(reply.type(type), (shown ??= onlyBelowProjects((whole ??= read()))));
    });
    scope.addHook('onSend', (_request, reply, _payload, done) => {
      // Swagger UI redirects to itself.
      const location = reply.getHeader('location');
      if (typeof location === 'string') void reply.header('location', basePath + location);
      void reply.headers({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
      done();
    });
    await scope.register(swaggerUi, {
      routePrefix: path,
      indexPrefix: basePath,
      staticCSP: contentSecurityPolicy,
      theme: { title: 'exportd API', css: [{ filename: 'exportd.css', content: styles }] },
      uiConfig: {
        // Without the bar that loads documents of other hosts.
        layout: 'BaseLayout',
        deepLinking: true,
        docExpansion: 'list',
        defaultModelsExpandDepth: 0,
        persistAuthorization: false,
        validatorUrl: null,
      },
    });
  });
}

/** What the socket of a response gets at once, and how many get it in a turn of the event loop. */
const [sliceBytes, slicesOfTurn] = [65_536, 16];

const waitForTurn = createTurns(slicesOfTurn);

/**
 * Sends a large text in slices, between which other requests have their turn: it needs no key, and the kernel copies it for
 * a millisecond, which 800 connections at once would make a second.
 */
const sendSlowly = (reply: FastifyReply, text: Buffer): FastifyReply =>
  reply.header('content-length', text.length).send(Readable.from(slices(text), { objectMode: false }));

async function* slices(text: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < text.length; start += sliceBytes) {
    await new Promise<void>(waitForTurn);
    yield text.subarray(start, start + sliceBytes);
  }
}

/** The document with the path that the paths of operations are below, relative to the server that sends the document. */
const atBasePath = (text: Buffer, basePath: string): Buffer =>
  basePath === ''
    ? text
    : Buffer.from(
        JSON.stringify({ ...(JSON.parse(text.toString()) as object), servers: [{ url: basePath }] }),
      );

/** Every path below `environments` exists below `projects` too. The page shows it once. */
function onlyBelowProjects(text: Buffer): Buffer {
  const document = JSON.parse(text.toString()) as { readonly paths: Readonly<Record<string, unknown>> };
  const paths = Object.entries(document.paths).filter(([url]) => !url.startsWith('/api/environments/'));
  return Buffer.from(JSON.stringify({ ...document, paths: Object.fromEntries(paths) }));
}
