import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseS3Config } from '../../src/destination/config.ts';
import {
  fileKey,
  keysCollide,
  locationOf,
  prefixesOverlap,
  type KeySource,
} from '../../src/destination/keys.ts';
import { randomCases } from '../setup/effort.ts';

const keys = { aws_access_key_id: 'id', aws_secret_access_key: 'secret' };

const source = (more: object = {}, model: KeySource['model'] = 'events'): KeySource => ({
  config: parseS3Config(
    { bucket_name: 'bucket', region: 'us-east-1', prefix: 'exports', ...keys, ...more },
    { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: true },
  ),
  model,
});

describe('two configs', () => {
  it.each([
    ['themselves', {}, {}],
    ['a slash at the end', { prefix: 'exports/' }, { prefix: 'exports' }],
    ['other credentials', { aws_access_key_id: 'a', aws_secret_access_key: 'b' }, {}],
    ['another region of the same world', { region: 'eu-west-1' }, {}],
    ["AWS's own address", { endpoint_url: 'https://s3.us-east-1.amazonaws.com' }, {}],
    ['the default port', { endpoint_url: 'https://Store.test:443/' }, { endpoint_url: 'https://store.test' }],
    [
      'another Parquet compression',
      { file_format: 'Parquet' },
      { file_format: 'Parquet', compression: 'zstd' },
    ],
    ['a selection of rows', { include_events: ['a'] }, { exclude_events: ['a'] }],
    [
      'another format, by their rejected rows',
      { file_format: 'CSV', on_bad_row: 'reject' },
      { on_bad_row: 'reject' },
    ],
    ['a file size', { max_file_size_mb: 10 }, {}],
  ])('collide despite %s', (_difference, one, other) => {
    expect(keysCollide(source(one), source(other))).toBe(true);
  });

  it.each([
    ['another region of the same partition', { region: 'eu-west-1' }, {}],
    ["AWS's own address", { endpoint_url: 'https://s3.us-east-1.amazonaws.com' }, {}],
    ['the default port', { endpoint_url: 'https://Store.test:443/' }, { endpoint_url: 'https://store.test' }],
  ])('lead to the same location despite %s', (_difference, one, other) => {
    expect(locationOf(source(one).config)).toBe(locationOf(source(other).config));
  });

  it.each([
    ['partition of AWS', { region: 'cn-north-1' }, {}],
    ['path', { endpoint_url: 'https://store.test/one' }, { endpoint_url: 'https://store.test/other' }],
  ])('lead to other locations with another %s', (_difference, one, other) => {
    expect(locationOf(source(one).config)).not.toBe(locationOf(source(other).config));
  });

  it.each([
    ['bucket', { bucket_name: 'other' }, {}],
    ['prefix', { prefix: 'other' }, {}],
    ['partition of AWS', { region: 'cn-north-1' }, {}],
    ['store', { endpoint_url: 'https://store.test' }, {}],
    ['port', { endpoint_url: 'http://store.test:9000' }, { endpoint_url: 'http://store.test' }],
    ['format', { file_format: 'CSV' }, {}],
    ['format, when one rejects no rows', { file_format: 'CSV', on_bad_row: 'reject' }, {}],
    ['ending', { compression: 'gzip' }, { compression: 'zstd' }],
  ])('do not collide with another %s', (_difference, one, other) => {
    expect(keysCollide(source(one), source(other))).toBe(false);
  });

  it('do not collide with another model only if the prefix contains it', () => {
    expect(keysCollide(source({}, 'events'), source({}, 'persons'))).toBe(true);
    const prefix = 'exports/{table}';
    expect(keysCollide(source({ prefix }, 'events'), source({ prefix }, 'persons'))).toBe(false);
    expect(keysCollide(source({ prefix }, 'events'), source({ prefix: 'exports/events' }, 'persons'))).toBe(
      true,
    );
  });
});

describe('two prefixes', () => {
  const meet = (one: string, other: string): boolean =>
    prefixesOverlap({ template: one, table: 'events' }, { template: other, table: 'events' });

  it.each([
    ['a/{year}', 'a/2026'],
    ['a/{month}', 'a/{day}'],
    ['a/{hour}{minute}', 'a/1030'],
    ['a/{data_interval_start}', 'a/{year}{month}{day}T{hour}{minute}{second}Z'],
    ['a/{data_interval_start}', 'a/20261101T100000Z'],
    ['a/{data_interval_end}', 'a/{data_interval_start}'],
    ['{year}/{month}', '2026/{day}/'],
    ['{year}{month}', '{month}{year}'],
  ])('%s and %s overlap', (one, other) => {
    expect(meet(one, other)).toBe(true);
    expect(meet(other, one)).toBe(true);
  });

  it.each([
    ['a/{year}', 'b/{year}'],
    ['a/{month}', 'a/13'],
    ['a/{month}', 'a/0'],
    ['a/{day}', 'a/xx'],
    ['a/{second}', 'a/01'],
    ['a/{year}/{month}', 'a/{year}-{month}'],
    ['{month}/{month}', '01/02'],
    ['a/{data_interval_start}', 'a/20261301T100000Z'],
  ])('%s and %s do not overlap', (one, other) => {
    expect(meet(one, other)).toBe(false);
    expect(meet(other, one)).toBe(false);
  });

  it('overlap whenever they can render the same key', () => {
    const fragmentArb = fc.constantFrom(
      '{year}',
      '{month}',
      '{day}',
      '{hour}',
      '{table}',
      '2026',
      '11',
      '01',
      '0',
      '/',
      'a',
    );
    const template = fc.array(fragmentArb, { maxLength: 5 }).map((fragments) => fragments.join(''));
    const start = fc.integer({ min: 490_000, max: 500_000 }).map((hours) => hours * 3_600_000);
    fc.assert(
      fc.property(template, template, start, (one, other, from) => {
        const spec = {
          batch_export_id: '018f0000-0000-4000-8000-000000000001',
          model: 'events',
          data_interval_start: new Date(from).toISOString(),
          data_interval_end: new Date(from + 3_600_000).toISOString(),
        } as const;
        const file = { generation: 1, range: null, file: null, mark: null };
        const [key, otherKey] = [one, other].map((prefix) => fileKey(prefix, spec, file, 'csv'));
        expect(key !== otherKey || meet(one, other)).toBe(true);
      }),
      { numRuns: randomCases(2_000) },
    );
  });
});
