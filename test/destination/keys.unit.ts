import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseS3Config } from '../../src/destination/config.ts';
import { fileKey, keyLengthProblem, manifestKey, rejectedKey } from '../../src/destination/keys.ts';
import { fileFolder, prefixProblem } from '../../src/destination/prefix.ts';
import { keysCollide, type KeySource, prefixesOverlap } from '../../src/destination/key_collisions.ts';
import { locationOf } from '../../src/destination/bucket_location.ts';
import { partitionIn, partitionOf } from '../../src/destination/partitions.ts';
import { checkTable } from '../../src/tables/table_formats.ts';
import { CommandRejected } from '../../src/domain/errors.ts';
import { randomCases } from '../setup/effort.ts';
import { previewOf } from '../../src/destination/config_preview.ts';

describe('the names of objects', () => {
  const spec = {
    batch_export_id: '018f0000-0000-4000-8000-000000000001',
    model: 'events',
    data_interval_start: '2026-11-01T10:00:00.000Z',
    data_interval_end: '2026-11-01T11:00:00.000Z',
  } as const;

  const only = { range: null, file: null, mark: null };

  /** A random interval and file identity. */
  const keyedFileArb = fc.record({
    spec: fc
      .tuple(fc.integer({ min: 0, max: 5_000_000 }), fc.integer({ min: 1, max: 50_000 }))
      .map(([start, minutes]) => ({
        ...spec,
        data_interval_start: new Date(start * 60_000).toISOString(),
        data_interval_end: new Date((start + minutes) * 60_000).toISOString(),
      })),
    file: fc
      .tuple(
        fc.integer({ min: 1, max: 30 }),
        fc.oneof(
          fc.constant(only),
          fc.record({ range: fc.constant(null), file: fc.nat(30), mark: fc.constant(null) }),
          fc.record({
            range: fc.nat(30),
            file: fc.nat(30),
            mark: fc.constantFrom(null, '01234567', 'abcdef01'),
          }),
        ),
      )
      .map(([generation, file]) => ({ generation, ...file })),
  });

  describe('keys of files', () => {
    it.each([
      ['exports', 1, 'jsonl', 'exports/20261101T100000Z-20261101T110000Z.jsonl'],
      ['exports/', 2, 'jsonl.gz', 'exports/20261101T100000Z-20261101T110000Z-g2.jsonl.gz'],
      ['', 1, 'jsonl', '20261101T100000Z-20261101T110000Z.jsonl'],
      [
        'a/{table}/y={year}/{month}-{day}/{hour}{minute}{second}',
        1,
        'jsonl',
        'a/events/y=2026/11-01/100000/20261101T100000Z-20261101T110000Z.jsonl',
      ],
      [
        '{data_interval_start}/{data_interval_end}',
        1,
        'jsonl',
        '20261101T100000Z/20261101T110000Z/20261101T100000Z-20261101T110000Z.jsonl',
      ],
    ])('are below the prefix %j, and name the generation %i', (prefix, generation, extension, key) => {
      expect(fileKey(prefix, spec, { generation, ...only }, extension)).toBe(key);
    });

    it('renders variables from the start in UTC, whatever its offset', () => {
      const local = { ...spec, data_interval_start: '2026-11-01T01:00:00+03:00' };
      expect(fileKey('{day}/{hour}', local, { generation: 1, ...only }, 'jsonl')).toMatch(
        /^31\/22\/20261031T220000Z-/,
      );
    });

    it.each([
      [1, null, 0, '-0.csv'],
      [1, null, 12, '-12.csv'],
      [3, null, 0, '-0-g3.csv'],
      [1, 0, 0, '-0.0.csv'],
      [2, 7, 4, '-7.4-g2.csv'],
    ])('name generation %i, range %p and file %i', (generation, range, file, ending) => {
      expect(fileKey('a', spec, { generation, range, file, mark: null }, 'csv')).toBe(
        `a/20261101T100000Z-20261101T110000Z${ending}`,
      );
    });

    it('differ for different intervals or files', () => {
      fc.assert(
        fc.property(
          keyedFileArb,
          keyedFileArb,
          fc.constantFrom('', 'a/{day}/{hour}', '{data_interval_end}'),
          (one, other, prefix) => {
            fc.pre(JSON.stringify(one) !== JSON.stringify(other));
            const keys = [one, other].flatMap((of) => [
              fileKey(prefix, of.spec, of.file, 'jsonl'),
              fileKey(prefix, of.spec, of.file, 'parquet'),
            ]);
            expect(new Set(keys).size).toBe(4);
          },
        ),
      );
    });
  });

  describe('keys in partitions', () => {
    const file = { ...only, generation: 2 };
    const identity = { generation: 1, mark: null };
    it.each([
      [
        { prefix: 'events/', partition_by: ['date'] },
        'events/date=2026-11-01',
        'events/_rejected/date=2026-11-01',
      ],
      [
        { prefix: '', partition_by: ['date', 'hour'] },
        'date=2026-11-01/hour=10',
        '_rejected/date=2026-11-01/hour=10',
      ],
      [
        { prefix: 'a/{table}', partition_by: ['date', 'hour'] },
        'a/events/date=2026-11-01/hour=10',
        'a/events/_rejected/date=2026-11-01/hour=10',
      ],
      [{ prefix: 'events/{year}', partition_by: [] }, 'events/2026', 'events/_rejected/2026'],
      [{ prefix: 'events' }, 'events', 'events/_rejected'],
    ] as const)('of %j', (fields, folder, rejected) => {
      const name = '20261101T100000Z-20261101T110000Z';
      expect(fileKey(fileFolder(fields), spec, file, 'parquet')).toBe(`${folder}/${name}-g2.parquet`);
      expect(rejectedKey(fields, spec, identity)).toBe(`${rejected}/${name}-rejected.jsonl`);
    });

    it('have the values of their interval', () => {
      const partition_by = ['date', 'hour'] as const;
      const key = fileKey(fileFolder({ prefix: 'events', partition_by }), spec, file, 'csv');
      expect(partitionIn(key, partition_by)).toEqual(partitionOf(spec.data_interval_start, partition_by));
      expect(partitionIn(key, [])).toEqual({});
      expect(partitionIn('events/date=2026-11-01/a.csv', partition_by)).toEqual({ date: '2026-11-01' });
    });
  });

  it('collide with those of an export that has the same folders in its prefix', () => {
    const sourceOf = (prefix: string, partition_by?: string[]): KeySource => {
      const given = {
        bucket_name: 'b',
        region: 'r',
        endpoint_url: null,
        file_format: 'CSV',
        compression: null,
      };
      return { model: 'events', config: { ...given, on_bad_row: 'fail', prefix, partition_by } };
    };
    const partitioned = sourceOf('events', ['date', 'hour']);
    expect(keysCollide(partitioned, sourceOf('events/date={year}-{month}-{day}/hour={hour}'))).toBe(true);
    expect(keysCollide(partitioned, sourceOf('{table}', ['date', 'hour']))).toBe(true);
    for (const other of [
      sourceOf('events'),
      sourceOf('events', ['date']),
      sourceOf('clicks', ['date', 'hour']),
    ])
      expect(keysCollide(partitioned, other)).toBe(false);
  });

  describe('keys of rejected rows', () => {
    it.each([
      [1, '-rejected.jsonl'],
      [2, '-g2-rejected.jsonl'],
    ])('name generation %i', (generation, ending) => {
      expect(rejectedKey({ prefix: '{table}/{hour}' }, spec, { generation, mark: null })).toBe(
        `events/_rejected/10/20261101T100000Z-20261101T110000Z${ending}`,
      );
    });
  });

  describe('keys of manifests', () => {
    it.each([
      ['exports/{year}/{month}', 'exports/'],
      ['exports/all/', 'exports/all/'],
      ['exports/y={year}/fixed', 'exports/'],
      ['{table}/x', ''],
      ['', ''],
    ])('are below the constant part of %j', (prefix, constant) => {
      expect(manifestKey(prefix, spec)).toBe(
        `${constant}_manifests/${spec.batch_export_id}/20261101T100000Z-20261101T110000Z.json`,
      );
    });
  });

  describe('a prefix', () => {
    it.each([
      ['/exports', 'start with "/"'],
      ['a/../b', '".."'],
      ['..', '".."'],
      ['a//b', '"//"'],
      ['a/{minutes}', '{minutes}'],
      ['a/{}', '{}'],
      ['a/{year', 'brace'],
      ['a/year}', 'brace'],
      ['a\nb', 'control characters'],
      ['a\u202eb', 'control characters'],
      ['a\\b', 'backslashes'],
      ['_manifests/x', '"_manifests"'],
      ['a/{year}/_rejected', '"_rejected"'],
      ['a/_delta_log/', '"_delta_log"'],
      ['_exportd_test', '"_exportd_test"'],
    ])('is invalid: %j', (prefix, message) => {
      expect(prefixProblem(prefix)).toContain(message);
    });

    it('is invalid if its keys exceed the limit of S3 in bytes', () => {
      expect(keyLengthProblem('ä'.repeat(480))).toContain('1024');
      expect(keyLengthProblem('a'.repeat(480))).toBeNull();
      expect(keyLengthProblem('a'.repeat(960))).toContain('1024');
      expect(keyLengthProblem('{data_interval_start}'.repeat(60))).toContain('1024');
      expect(keyLengthProblem('{minute}'.repeat(400))).toBeNull();
    });
  });
});

describe('the keys of two exports', () => {
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
      ...[
        's3.amazonaws.com',
        's3-us-west-2.amazonaws.com',
        's3.dualstack.eu-west-1.amazonaws.com',
        's3-fips.us-east-1.amazonaws.com',
        's3-accelerate.dualstack.amazonaws.com',
        'bucket.vpce-0a1b-2c3d.s3.us-east-1.vpce.amazonaws.com',
      ].map((host) => [`the address ${host}`, { endpoint_url: `https://${host}` }, {}] as const),
      [
        'the default port',
        { endpoint_url: 'https://Store.test:443/' },
        { endpoint_url: 'https://store.test' },
      ],
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
      ...[
        's3.amazonaws.com',
        's3-us-west-2.amazonaws.com',
        's3.dualstack.eu-west-1.amazonaws.com',
        's3-fips.us-east-1.amazonaws.com',
        's3-accelerate.dualstack.amazonaws.com',
        'bucket.vpce-0a1b-2c3d.s3.us-east-1.vpce.amazonaws.com',
      ].map((host) => [`the address ${host}`, { endpoint_url: `https://${host}` }, {}] as const),
      [
        'the default port',
        { endpoint_url: 'https://Store.test:443/' },
        { endpoint_url: 'https://store.test' },
      ],
    ])('lead to the same location despite %s', (_difference, one, other) => {
      expect(locationOf(source(one).config)).toBe(locationOf(source(other).config));
    });

    it.each([
      ['partition of AWS', { region: 'cn-north-1' }, {}],
      // Anybody can have such hosts.
      ...[
        'ec2-1-2-3-4.compute-1.amazonaws.com',
        's3-1234567890.us-east-1.elb.amazonaws.com',
        'abc123.execute-api.us-east-1.amazonaws.com',
        's3.evil.amazonaws.com',
        's3.us-east-1.amazonaws.com.evil.test',
      ].map((host) => [`host than S3, ${host}`, { endpoint_url: `http://${host}` }, {}] as const),
      ['path', { endpoint_url: 'https://store.test/one' }, { endpoint_url: 'https://store.test/other' }],
    ])('lead to other locations with another %s', (_difference, one, other) => {
      expect(locationOf(source(one).config)).not.toBe(locationOf(source(other).config));
    });

    it.each([
      ['bucket', { bucket_name: 'other' }, {}],
      ['prefix', { prefix: 'other' }, {}],
      ['partition of AWS', { region: 'cn-north-1' }, {}],
      // Anybody can have such hosts.
      ...[
        'ec2-1-2-3-4.compute-1.amazonaws.com',
        's3-1234567890.us-east-1.elb.amazonaws.com',
        'abc123.execute-api.us-east-1.amazonaws.com',
        's3.evil.amazonaws.com',
        's3.us-east-1.amazonaws.com.evil.test',
      ].map((host) => [`host than S3, ${host}`, { endpoint_url: `http://${host}` }, {}] as const),
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
});

describe('the preview of an S3 config', () => {
  const spec = {
    batch_export_id: '<id>',
    model: 'events',
    data_interval_start: '2026-11-01T10:00:00.000Z',
    data_interval_end: '2026-11-01T11:00:00.000Z',
  } as const;

  it('has the names of the manifest and of the first file', () => {
    const config = {
      bucket_name: 'bucket',
      prefix: 'e/{year}/{hour}',
      file_format: 'Parquet',
      compression: 'zstd',
    };
    expect(previewOf(config).namesOf(spec)).toEqual({
      manifest: 's3://bucket/e/_manifests/<id>/20261101T100000Z-20261101T110000Z.json',
      file: 's3://bucket/e/2026/10/20261101T100000Z-20261101T110000Z.parquet',
    });
  });

  it('numbers files with a maximum size', () => {
    const preview = previewOf({ compression: 'gzip', max_file_size_mb: 2 });
    expect(preview.namesOf(spec).file).toBe('s3://…/20261101T100000Z-20261101T110000Z-0.jsonl.gz');
    expect(preview.maxFileBytes).toBe(2 * 1024 * 1024);
  });

  it('needs no other field, and ignores those that decide nothing', () => {
    expect(previewOf({}).selection).toEqual({ include_events: [], exclude_events: [], filters: [] });
    const given = { bucket_name: '', aws_secret_access_key: '', include_events: ['a'] };
    expect(previewOf(given).selection.include_events).toEqual(['a']);
  });

  it.each([
    ['prefix', { prefix: 'a//b' }],
    ['prefix', { prefix: '{unknown}' }],
    ['compression', { file_format: 'CSV', compression: 'snappy' }],
    ['filters__0__key', { filters: [{ type: 'event' }] }],
    ['bucket_name', { bucket_name: '-' }],
    ['table_format', { file_format: 'Parquet', prefix: 'events', table_format: 'hudi' }],
  ])('rejects an invalid %s', (field, config) => {
    expect(() => previewOf(config, { checkTarget: checkTable })).toThrow(CommandRejected);
    expect(() => previewOf(config, { checkTarget: checkTable })).toThrow(
      expect.objectContaining({ attr: `destination__config__${field}` }),
    );
  });
});
