import { describe, expect, it, beforeAll } from '@jest/globals';
import { describeApi } from './describe_api.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Every object inside a JSON document. */
function* objectsIn(value: unknown): Generator<Schema> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Schema;
  for (const inner of Object.values(value)) yield* objectsIn(inner);
}

/** What a JSON pointer such as `#/components/schemas/Error` refers to; undefined if nothing. */
const resolve = (document: unknown, pointer: string): unknown =>
  pointer
    .replace('#/', '')
    .split('/')
    .reduce((value: unknown, key) => (value as Schema | undefined)?.[key], document);

describe('the OpenAPI document', () => {
  let document: unknown;
  beforeAll(async () => {
    document = await describeApi();
  });
  const propertyOf = (schema: string, ...path: string[]): unknown =>
    resolve(document, ['#/components/schemas', schema, 'properties', ...path].join('/'));

  it('has no reference to a schema that it does not contain', () => {
    const references = [...objectsIn(document)].flatMap(({ $ref }) =>
      typeof $ref === 'string' ? [$ref] : [],
    );
    expect(references.length).toBeGreaterThan(100);
    expect(references.filter((reference) => resolve(document, reference) === undefined)).toEqual([]);
  });

  it('names every operation once, in words, and has no schema that nothing refers to', () => {
    const { paths, webhooks, components } = document as Record<'paths' | 'webhooks', Schema> & {
      components: { schemas: Schema };
    };
    const ids = [...Object.values(paths), ...Object.values(webhooks)].flatMap((operations) =>
      Object.values(operations as Schema).map((operation) => (operation as Schema).operationId),
    );
    expect(ids.length).toBeGreaterThan(80);
    expect(ids.filter((id) => !/^[a-z]+([A-Z][a-z]*)+$/.test(String(id)))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(
      expect.arrayContaining(['listBackfills', 'listBackfillsInEnvironment', 'retrieveDraftSql']),
    );
    const referred = new Set([...objectsIn(document)].map(({ $ref }) => $ref));
    const unused = Object.keys(components.schemas).filter(
      (name) => !referred.has(`#/components/schemas/${name}`),
    );
    expect(unused).toEqual([]);
  });

  it('has patterns that Python reads as well', () => {
    const patterns = [...objectsIn(document)].flatMap(({ pattern }) =>
      typeof pattern === 'string' ? [pattern] : [],
    );
    expect(patterns.length).toBeGreaterThan(20);
    // Categories of characters, named groups, and sets of sets.
    expect(patterns.filter((pattern) => /\\[pP]\{|\(\?<[^=!]|\\u\{|--|&&/.test(pattern))).toEqual([]);
  });

  it.each([
    ['BatchExportCreateInput', 'name', { maxLength: 255, pattern: '\\S' }],
    ['BatchExportCreateInput', 'interval', { pattern: expect.stringContaining('every') }],
  ])('states the bounds of %s.%s', (schema, field, bounds) => {
    expect(propertyOf(schema, field)).toMatchObject(bounds);
  });

  it('states the fields of a destination config and their bounds', () => {
    const configs = [...objectsIn(propertyOf('BatchExportCreateInput', 'destination'))].filter(
      ({ title }) => title === 'S3',
    );
    expect(configs).toMatchObject([
      {
        required: ['bucket_name', 'region', 'prefix'],
        additionalProperties: false,
        properties: {
          bucket_name: { minLength: 1, pattern: expect.any(String) },
          file_format: { anyOf: [{ enum: ['JSONLines', 'CSV', 'Parquet'] }, { type: 'null' }] },
          filters: { anyOf: [{ items: { required: ['type', 'key'] } }, { type: 'null' }] },
        },
      },
    ]);
  });
});
