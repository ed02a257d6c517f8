import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { errorsByKind, examples, pathInProject } from '../../../src/http/openapi/openapi.ts';
import { describeApi } from '../describe_api.ts';

interface Media {
  readonly schema: object;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
type Body = { readonly content?: Readonly<Record<string, Media>> } | undefined;
interface Operation {
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}
type Operations = Readonly<Record<string, Readonly<Record<string, Operation>>>>;
interface Document {
  readonly paths: Operations;
  /** What exportd sends to the webhooks of users. */
  readonly webhooks: Operations;
}

/** A body of an operation, with the pointer to its schema. */
interface DocumentedBody {
  readonly name: string;
  readonly pointer: string;
  readonly media: Media;
}

const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** Every body of requests and responses in a section of the document. */
const bodiesOf = (section: 'paths' | 'webhooks', all: Operations): DocumentedBody[] =>
  Object.entries(all).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody, responses }]) => {
      const bodies: [string, Body][] = [
        ['requestBody', requestBody],
        ...Object.entries(responses).map(([status, body]): [string, Body] => [`responses/${status}`, body]),
      ];
      return bodies.flatMap(([where, body]) =>
        Object.entries(body?.content ?? {}).map(([type, media]) => ({
          name: `${method.toUpperCase()} ${path} ${where}`,
          pointer: `#/${section}/${escapePointer(path)}/${method}/${where}/content/${escapePointer(type)}/schema`,
          media,
        })),
      );
    }),
  );

let document: Document;
let bodies: DocumentedBody[];
beforeAll(async () => {
  document = (await describeApi()) as Document;
  bodies = [...bodiesOf('paths', document.paths), ...bodiesOf('webhooks', document.webhooks)];
});

describe('the examples of the OpenAPI document', () => {
  it('exist for every body and every error of every operation', () => {
    const without = bodies.filter(({ media }) => Object.keys(media.examples ?? {}).length === 0);
    expect(bodies.length).toBeGreaterThan(200);
    // A new operation needs an entry in an examples.json of src/http.
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  it('match their schemas', () => {
    // Keywords of OpenAPI, and formats, which zod states as patterns too.
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
    ajv.addSchema(document, 'openapi');
    // Most operations have the same errors, and to compile a schema takes longest.
    const compiled = new Map<string, ValidateFunction>();
    const problems = bodies.flatMap(({ name, pointer, media }) => {
      const schema = JSON.stringify(media.schema);
      const validate = compiled.get(schema) ?? ajv.compile({ $ref: `openapi${pointer}` });
      compiled.set(schema, validate);
      return Object.entries(media.examples ?? {}).flatMap(([example, { value }]) =>
        validate(value) ? [] : [`${name}, ${example}: ${ajv.errorsText(validate.errors)}`],
      );
    });
    expect(problems).toEqual([]);
  });

  it('are found to differ from a schema', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'openapi');
    const created = bodies.find(
      ({ name }) => name === 'POST /api/projects/{project_id}/webhooks requestBody',
    );
    expect(ajv.validate({ $ref: `openapi${created?.pointer ?? ''}` }, { events: ['nonsense'] })).toBe(false);
  });

  it('belong to operations that exist', () => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${pathInProject(path)}`),
    );
    expect(Object.keys(examples).filter((operation) => !operations.includes(operation))).toEqual([]);
  });

  it('show every error that the API responds with', () => {
    const documented = new Set(
      [
        ...Object.values(errorsByKind).flat(),
        ...Object.values(examples).flatMap(({ errors = [] }) => errors),
      ].map(({ status, code }) => `${status} ${code}`),
    );
    expect(errorsInCode().filter((error) => !documented.has(error))).toEqual([]);
  });
});

const root = join(import.meta.dirname, '../../..');
/** What only the console receives, and a client that is no longer there. */
const undocumented = ['src/http/console/'];
const unreceived = ['403 csrf_failed', '499 client_disconnected'];

/** Status and code of each error in the code of the API and of queries. */
function errorsInCode(): string[] {
  const files = ['src/http', 'src/queries'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((file) => `${folder}/${file}`)
      .filter((file) => file.endsWith('.ts') && !undocumented.some((prefix) => file.startsWith(prefix))),
  );
  const found = files.flatMap((file) => {
    const code = readFileSync(join(root, file), 'utf8');
    return [
      ...[...code.matchAll(/new ApiError\(\s*(\d+),\s*'(\w+)'/g)].map(
        ([, status, name]) => `${status} ${name}`,
      ),
      ...[...code.matchAll(/new QueryError\(\s*'(\w+)'/g)].map(([, name]) => `400 ${name}`),
    ];
  });
  return [...new Set(found)].filter((error) => !unreceived.includes(error)).sort();
}
