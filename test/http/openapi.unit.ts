import { describe, expect, it, beforeAll } from '@jest/globals';
import { Registry } from 'prom-client';
import { readSettings } from '../../src/config/settings.ts';
import { createApp, type HttpDependencies } from '../../src/http/app.ts';
import { createLogger } from '../../src/telemetry/logger.ts';

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

/** Describing the API needs no server. */
async function describeApi(): Promise<unknown> {
  const settings = readSettings({
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    EXPORTD_LOG_LEVEL: 'silent',
  });
  const app = await createApp({
    settings,
    logger: createLogger('test', settings),
    metrics: new Registry(),
    pool: { connect: () => Promise.reject(new Error('No database.')) },
    queries: { settings, running: { interrupt: () => undefined } },
  } as unknown as HttpDependencies);
  const { body } = await app.inject('/api/schema');
  await app.close();
  return JSON.parse(body);
}

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

  it.each([
    ['BatchExportCreateInput', 'name', { maxLength: 255, pattern: '\\S' }],
    ['BatchExportCreateInput', 'interval', { pattern: expect.stringContaining('every') }],
    ['DashboardCreateInput', 'name', { maxLength: 400, pattern: '\\S' }],
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
