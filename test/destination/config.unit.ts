import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import * as z from 'zod';
import { parseS3Config } from '../../src/destination/config.ts';
import { manifestSchema } from '../../src/destination/manifest.ts';
import { CommandRejected } from '../../src/domain/errors.ts';
import { type FilterOperator, filterOperators } from '../../src/filters/schema.ts';
import { defaultConfig } from './default_config.ts';
import { checkTable } from '../../src/tables/table_formats.ts';
import { rejectPartitions } from '../../src/destination/partitions.ts';
import { propertyFilters, rejectSelectionForModel } from '../../src/destination/selection_config.ts';

describe('the config of an S3 destination', () => {
  const minimal = { bucket_name: 'bucket', region: 'us-east-1', prefix: 'exports' };
  const minimalKeys = { aws_access_key_id: 'id', aws_secret_access_key: 'secret' };
  const strict = {
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: false,
    EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: true,
    checkTarget: checkTable,
  };

  function rejectionOf(config: unknown): { detail: string; attr: string | null } {
    try {
      parseS3Config(config, strict);
    } catch (error) {
      if (error instanceof CommandRejected) return { detail: error.message, attr: error.attr };
      throw error;
    }
    throw new Error('The config was accepted.');
  }

  it.each([
    ['JSONLines', [null, 'gzip', 'zstd', 'brotli']],
    ['CSV', [null, 'gzip', 'zstd', 'brotli']],
    ['Parquet', [null, 'zstd', 'snappy', 'gzip', 'brotli', 'lz4']],
  ])('accepts %s with %j', (file_format, compressions) => {
    for (const compression of compressions)
      expect(parseS3Config({ ...minimal, file_format, compression }, strict)).toMatchObject({
        file_format,
        compression,
      });
  });

  it.each([
    ['JSONLines', 'gzip', [1, 9]],
    ['CSV', 'zstd', [1, 19]],
    ['JSONLines', 'brotli', [0, 11]],
    ['Parquet', 'zstd', [1, 19]],
  ])('accepts %s with the levels of %s', (file_format, compression, levels) => {
    for (const compression_level of levels)
      expect(
        parseS3Config({ ...minimal, file_format, compression, compression_level }, strict),
      ).toMatchObject({
        compression_level,
      });
  });

  it.each([
    ['endpoint_url', `https://${'a.'.repeat(2_100)}com`],
    ['prefix', '{year}/'.repeat(140_000)],
    ['kms_key_id', 'a'.repeat(4_097)],
    ['aws_secret_access_key', 'a'.repeat(900_000)],
  ])('rejects a text that is too long to be listed with others: %s', (field, text) => {
    expect(rejectionOf({ ...minimal, [field]: text })).toEqual({
      attr: `destination__config__${field}`,
      detail: 'A text of a configuration has at most 4,096 characters.',
    });
  });

  it('rejects lists that are too long together', () => {
    const include_events = Array.from({ length: 1_000 }, () => 'x'.repeat(300));
    expect(rejectionOf({ ...minimal, include_events })).toEqual({
      attr: 'destination__config',
      detail: 'A configuration has at most 256 KiB, as JSON.',
    });
  });

  it('accepts a table for Parquet under a prefix of its own alone', () => {
    const table = { ...minimal, prefix: 'events/{year}', file_format: 'Parquet', table_format: 'delta' };
    expect(parseS3Config(table, strict)).toMatchObject({ table_format: 'delta' });
    expect(parseS3Config({ ...table, table_format: null }, strict)).toMatchObject({ table_format: null });
    const attr = 'destination__config__table_format';
    expect(rejectionOf({ ...table, file_format: 'CSV' })).toEqual({
      attr,
      detail: "The field 'table_format' requires 'file_format' to be 'Parquet'.",
    });
    expect(rejectionOf({ ...table, table_format: 'hudi' })).toEqual({
      attr,
      detail: "This table format is not supported. Supported table formats are ['delta'].",
    });
    for (const prefix of ['', '{year}', '{data_interval_start}/events'])
      expect(rejectionOf({ ...table, prefix })).toEqual({
        attr: 'destination__config__prefix',
        detail: expect.stringContaining('The first segment of the prefix of a table'),
      });
    expect(parseS3Config({ ...table, prefix: '{table}' }, strict)).toMatchObject({ prefix: '{table}' });
  });

  it('accepts partitions of every format below a prefix without a time', () => {
    for (const partition_by of [[], ['date'], ['date', 'hour']])
      expect(parseS3Config({ ...minimal, partition_by }, strict)).toMatchObject({ partition_by });
    expect(parseS3Config({ ...minimal, partition_by: null }, strict)).toMatchObject({ partition_by: [] });
    const at = (field: string, detail: string) => ({
      attr: `destination__config__${field}`,
      detail: expect.stringContaining(detail),
    });
    const rejected = (partition_by: unknown, more: object = {}) =>
      rejectionOf({ ...minimal, partition_by, ...more });
    for (const partition_by of [['hour'], ['hour', 'date'], ['date', 'date']])
      expect(rejected(partition_by)).toEqual(at('partition_by', "must be ['date'] or ['date', 'hour'],"));
    expect(rejected(['event'])).toEqual(at('partition_by', "Supported are ['date'] or ['date', 'hour']."));
    expect(rejected('date')).toEqual(at('partition_by', "got 'string', expected 'array'"));
    for (const prefix of ['events/{year}', '{data_interval_end}'])
      expect(rejected(['date'], { prefix })).toEqual(at('prefix', 'must have no time in it'));
    expect(rejected(['date'], { prefix: 'date=1/events' })).toEqual(
      at('prefix', 'the partition date already'),
    );
    expect(
      parseS3Config({ ...minimal, prefix: '{table}/hour=1', partition_by: ['date'] }, strict),
    ).toBeDefined();
    const longest = 'a'.repeat(930);
    expect(parseS3Config({ ...minimal, prefix: longest }, strict)).toBeDefined();
    expect(rejected(['date', 'hour'], { prefix: longest })).toEqual(at('prefix', 'The prefix is too long'));
  });

  it('rejects partitions of longer intervals, and those with the name of a column', () => {
    const problem = (partition_by: string[], interval: string, names = ['uuid'], hasQuery = true) => {
      try {
        const columns = names.map((name) => ({ name, type: 'text' as const }));
        rejectPartitions({ partition_by }, { interval, columns, hasQuery });
        return null;
      } catch (error) {
        return error instanceof CommandRejected ? `${error.attr}: ${error.message}` : error;
      }
    };
    for (const interval of ['hour', 'every 5 minutes'])
      expect(problem(['date', 'hour'], interval)).toBe(null);
    expect(problem(['date'], 'day')).toBe(null);
    expect(problem(['date', 'hour'], 'day')).toMatch(
      /^destination__config__partition_by: .*of at most an hour/,
    );
    for (const interval of ['week', 'month'])
      expect(problem(['date'], interval)).toMatch(/^destination__config__partition_by: .*of at most a day/);
    expect(problem(['date'], 'hour', ['Date'])).toMatch(/^dialect_query: .*Rename the column in the query/);
    expect(problem(['date'], 'hour', ['date'], false)).toMatch(/^destination__config__partition_by: /);
    expect(problem(['date'], 'hour', ['hour'])).toBe(null);
    expect(problem([], 'month', ['date'])).toBe(null);
  });

  it('accepts bloom filters for Parquet alone', () => {
    expect(parseS3Config({ ...minimal, file_format: 'Parquet', bloom_filters: true }, strict)).toMatchObject({
      bloom_filters: true,
    });
    expect(rejectionOf({ ...minimal, bloom_filters: true })).toEqual({
      attr: 'destination__config__bloom_filters',
      detail: "The field 'bloom_filters' requires 'file_format' to be 'Parquet'.",
    });
  });

  it.each([
    [{ compression: 'gzip', compression_level: 0 }, 'from 1 to 9 for compression gzip'],
    [{ compression: 'zstd', compression_level: 20 }, 'from 1 to 19 for compression zstd'],
    [{ compression: 'brotli', compression_level: 12 }, 'from 0 to 11 for compression brotli'],
    [{ file_format: 'Parquet', compression: 'snappy', compression_level: 1 }, 'snappy has no levels'],
    [{ compression_level: 1 }, "requires 'compression'"],
    [{ compression: 'gzip', compression_level: 1.5 }, "expected 'int'"],
  ])('rejects the level of %j', (config, detail) => {
    expect(rejectionOf({ ...minimal, ...config })).toEqual({
      attr: 'destination__config__compression_level',
      detail: expect.stringContaining(detail),
    });
  });

  it('accepts every other option', () => {
    const options = {
      max_file_size_mb: 100,
      on_bad_row: 'reject',
      on_missing_rows: 'follow',
      include_events: ['$pageview', 'sign up'],
      exclude_events: ['$ping'],
      filters: [{ type: 'person', key: 'email', operator: 'icontains', value: '@example.com' }],
      role_arn: 'arn:aws:iam::123456789012:role/exports/of-events',
      external_id: 'project-7',
      encryption: 'aws:kms',
      kms_key_id: 'arn:aws:kms:eu-central-1:123456789012:key/1234',
    };
    expect(parseS3Config({ ...minimal, ...options }, strict)).toMatchObject(options);
  });

  it('requires keys or a role if the installation does not provide credentials', () => {
    const closed = { ...strict, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: false };
    expect(() => parseS3Config(minimal, closed)).toThrow(
      expect.objectContaining({ code: 'required', attr: 'destination__config__aws_access_key_id' }),
    );
    expect(parseS3Config({ ...minimal, ...minimalKeys }, closed)).toMatchObject(minimalKeys);
    const role_arn = 'arn:aws:iam::123456789012:role/exports';
    expect(parseS3Config({ ...minimal, role_arn }, closed)).toMatchObject({ role_arn });
  });

  it('assumes roles of the listed accounts with the credentials of the machine, and any with keys', () => {
    const role_arn = 'arn:aws:iam::123456789012:role/exports';
    const listed = { ...strict, EXPORTD_ROLE_ACCOUNTS: ['210987654321'] };
    expect(() => parseS3Config({ ...minimal, role_arn }, listed)).toThrow(
      expect.objectContaining({
        attr: 'destination__config__role_arn',
        message: expect.stringContaining('EXPORTD_ROLE_ACCOUNTS'),
      }),
    );
    expect(parseS3Config({ ...minimal, ...minimalKeys, role_arn }, listed)).toMatchObject({ role_arn });
    const both = { ...strict, EXPORTD_ROLE_ACCOUNTS: ['210987654321', '123456789012'] };
    expect(parseS3Config({ ...minimal, role_arn }, both)).toMatchObject({ role_arn });
  });

  it('never signs for an endpoint_url with the credentials of the machine', () => {
    const endpoint = { ...minimal, endpoint_url: 'https://s3.example.com' };
    expect(() => parseS3Config(endpoint, strict)).toThrow(
      expect.objectContaining({ code: 'required', attr: 'destination__config__aws_access_key_id' }),
    );
    expect(parseS3Config({ ...endpoint, ...minimalKeys }, strict)).toMatchObject(minimalKeys);
    expect(parseS3Config(minimal, strict)).toMatchObject({ endpoint_url: null });
  });

  it('takes the external id of the project, which cannot be chosen', () => {
    const project = { ...strict, external_id: 'exportd-1' };
    const role_arn = 'arn:aws:iam::123456789012:role/exports';
    const external_id = 'exportd-1';
    expect(parseS3Config({ ...minimal, role_arn }, project)).toMatchObject({ external_id });
    expect(parseS3Config({ ...minimal, role_arn, external_id }, project)).toMatchObject({ external_id });
    expect(parseS3Config({ ...minimal, external_id }, project)).toMatchObject({ external_id: null });
    expect(() => parseS3Config({ ...minimal, role_arn, external_id: 'exportd-2' }, project)).toThrow(
      expect.objectContaining({
        attr: 'destination__config__external_id',
        message: expect.stringContaining("'exportd-1'"),
      }),
    );
  });

  it('normalizes empty values to null', () => {
    const nothing = { max_file_size_mb: 0, role_arn: '', external_id: '', endpoint_url: '' };
    expect(parseS3Config({ ...minimal, ...nothing }, strict)).toMatchObject({
      max_file_size_mb: null,
      role_arn: null,
      external_id: null,
      endpoint_url: null,
    });
  });

  it('fills in defaults for omitted fields and null', () => {
    expect(
      parseS3Config({ ...minimal, compression: null, include_events: [], filters: null }, strict),
    ).toEqual({ ...minimal, ...defaultConfig });
  });

  it.each([
    [{ ...minimal, hello: 1 }, 'hello', "Configuration has unknown field/s: 'hello'"],
    [{ ...minimal, b: 1, a: 1 }, 'a', "Configuration has unknown field/s: 'a', 'b'"],
    [{ region: 'r', prefix: '' }, 'bucket_name', "Configuration missing required field: 'bucket_name'"],
    [
      { ...minimal, aws_access_key_id: 'id' },
      'aws_secret_access_key',
      "Configuration missing required field: 'aws_secret_access_key'",
    ],
    [
      { ...minimal, prefix: 7 },
      'prefix',
      "Configuration has invalid type for 'prefix': got 'number', expected 'string'",
    ],
    [{ ...minimal, bucket_name: '' }, 'bucket_name', "The following inputs are empty: ['bucket_name']"],
    [
      { ...minimal, region: '', bucket_name: '', aws_secret_access_key: '', kms_key_id: '' },
      'bucket_name',
      "The following inputs are empty: ['bucket_name', 'region', 'aws_secret_access_key', 'kms_key_id']",
    ],
    [{ ...minimal, prefix: '{when}' }, 'prefix', expect.stringContaining('{when}')],
    [
      { ...minimal, file_format: 'ORC' },
      'file_format',
      "This file format is not supported. Supported file formats are ['JSONLines', 'CSV', 'Parquet'].",
    ],
    [
      { ...minimal, compression: 'snappy' },
      'compression',
      "Compression snappy is not supported for file format JSONLines. Supported compressions are ['gzip', 'zstd', 'brotli'].",
    ],
    [
      { ...minimal, file_format: 'Parquet', compression: 'bzip2' },
      'compression',
      "This compression is not supported for file format Parquet. Supported compressions are ['zstd', 'snappy', 'gzip', 'brotli', 'lz4'].",
    ],
    [{ ...minimal, kms_key_id: 'key' }, 'kms_key_id', expect.stringContaining("'aws:kms'")],
    [{ ...minimal, kms_key_id: 'a key' }, 'kms_key_id', expect.stringContaining('spaces')],
    [
      { ...minimal, on_missing_rows: 'delete' },
      'on_missing_rows',
      expect.stringContaining("'keep' and 'follow'"),
    ],
    [{ ...minimal, on_bad_row: 'skip' }, 'on_bad_row', expect.stringContaining("['fail', 'reject']")],
    [{ ...minimal, max_file_size_mb: -1 }, 'max_file_size_mb', expect.stringContaining('at least 1')],
    [
      { ...minimal, max_file_size_mb: 1.5 },
      'max_file_size_mb',
      "Configuration has invalid type for 'max_file_size_mb': got 'number', expected 'int'",
    ],
    [
      { ...minimal, role_arn: 'exports' },
      'role_arn',
      expect.stringContaining('arn:aws:iam::123456789012:role/'),
    ],
    [{ ...minimal, role_arn: 'arn:aws:iam::1:role/exports' }, 'role_arn', expect.stringContaining('ARN')],
    [{ ...minimal, external_id: 'a' }, 'external_id', expect.stringContaining('2 to 1224')],
    [{ ...minimal, external_id: 'abc' }, 'external_id', "The field 'external_id' requires 'role_arn'."],
    [
      { ...minimal, include_events: '$pageview' },
      'include_events',
      "The field 'include_events' must be a list of non-empty event names.",
    ],
    [
      { ...minimal, exclude_events: ['a', ''] },
      'exclude_events',
      expect.stringContaining("'exclude_events'"),
    ],
    [{ ...minimal, include_events: [7] }, 'include_events', expect.stringContaining("'include_events'")],
    [{ ...minimal, filters: {} }, 'filters', "'filters' should be an array of filters"],
  ])('rejects %j with the field', (config, field, detail) => {
    expect(rejectionOf(config)).toEqual({ attr: `destination__config__${field}`, detail });
  });

  const privateEndpoint = {
    attr: 'destination__config__endpoint_url',
    detail: expect.stringMatching(/private or loopback .* EXPORTD_ALLOW_PRIVATE_ENDPOINTS/),
  };

  it.each([
    'http://127.0.0.1:9000',
    'http://localhost',
    'http://a.localhost.',
    'http://2130706433',
    'http://0x7f.1',
    'http://[::1]',
    'http://[::ffff:10.0.0.1]',
    'https://10.1.2.3',
    'https://172.31.0.1',
    'https://192.168.1.1',
    'http://0177.0.0.1',
    'http://%31%32%37.0.0.1',
    'http://127.0.0.1.',
    'https://[fd00::1]',
  ])('rejects the private endpoint %s unless the installation allows it', (endpoint_url) => {
    expect(rejectionOf({ ...minimal, endpoint_url })).toEqual(privateEndpoint);
    const allowed = { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: true };
    expect(parseS3Config({ ...minimal, ...minimalKeys, endpoint_url }, allowed)).toMatchObject({
      endpoint_url,
    });
  });

  it.each([
    'http://169.254.169.254/latest',
    'http://100.100.100.200',
    'http://168.63.129.16',
    'http://0.0.0.0',
    'https://[fd00:ec2::254]',
    'https://[fe80::1]',
    'https://[::]',
    'https://[::ffff:8.8.8.8]',
    'https://[::127.0.0.1]',
    'https://[::ffff:0:10.0.0.1]',
    'https://[64:ff9b::10.0.0.1]',
    'https://[64:ff9b:1::1]',
    'https://[2002:7f00:1::]',
    'https://[2001:0:1::]',
  ])('rejects the endpoint %s even where private ones are allowed', (endpoint_url) => {
    expect(rejectionOf({ ...minimal, endpoint_url })).toEqual(privateEndpoint);
    const allowed = { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: true };
    expect(() => parseS3Config({ ...minimal, ...minimalKeys, endpoint_url }, allowed)).toThrow(
      'The endpoint_url is not allowed',
    );
  });

  it.each([
    'ftp://example.com',
    'file:///etc/passwd',
    'example.com',
    'https://user:word@example.com',
    'https://user@example.com',
    'https://example.com/?a=1',
    'https://example.com/#a',
    'https://exa\tmple.com',
    ' https://example.com',
    'https://example.com\\@127.0.0.1',
    'https://[fe80::1%25eth0]',
  ])('rejects the invalid endpoint %j', (endpoint_url) => {
    expect(rejectionOf({ ...minimal, endpoint_url }).attr).toBe('destination__config__endpoint_url');
  });

  it.each([
    'https://s3.eu-central-1.amazonaws.com',
    'https://172.15.0.1:9000',
    'http://storage.example.com',
    'https://[2a00:1450:4001::1]/path',
  ])('accepts the endpoint %s', (endpoint_url) => {
    expect(parseS3Config({ ...minimal, ...minimalKeys, endpoint_url }, strict).endpoint_url).toBe(
      endpoint_url,
    );
  });
});

describe('property filters', () => {
  const filter = { type: 'event', key: '$browser', operator: 'exact', value: 'Chrome' };
  const message = (filters: unknown): string | undefined =>
    propertyFilters.safeParse(filters).error?.issues[0]?.message;

  describe('property filters', () => {
    it('compare for equality without an operator', () => {
      const { operator, ...without } = filter;
      expect(propertyFilters.parse([without, { ...without, operator: null }])).toEqual([
        { ...filter, operator },
        { ...filter, operator },
      ]);
    });

    it.each([
      ['exact', ['Chrome', 1, true, null]],
      ['is_not', null],
      ['in', ['a', 'b']],
      ['not_in', []],
      ['icontains', 'a'],
      ['not_icontains', 17],
      ['regex', '^a'],
      ['not_regex', ['^a', 'b$']],
      ['is_cleaned_path_exact', '/a/:id'],
      ['gt', 1],
      ['gte', '1.5'],
      ['lt', -1],
      ['lte', 0],
      ['min', 3],
      ['max', 4],
      ['between', [1, 2]],
      ['not_between', ['1', '2']],
      ['is_date_exact', '2026-11-01'],
      ['is_date_before', '2026-11-01T10:00:00Z'],
      ['is_date_after', '2026-11-01T10:00:00.123+02:00'],
    ])('accept with %s the value %j', (operator, value) => {
      expect(propertyFilters.parse([{ ...filter, operator, value }])).toEqual([
        { ...filter, operator, value },
      ]);
    });

    it.each(['is_set', 'is_not_set'])('need no value with %s', (operator) => {
      expect(propertyFilters.parse([{ type: 'person', key: 'email', operator }])).toEqual([
        { type: 'person', key: 'email', operator, value: null },
      ]);
    });

    it('of type hogql or dialect need no value either', () => {
      const parsed = { type: 'hogql', key: '1 = 1', operator: 'exact', value: null };
      for (const type of ['hogql', 'dialect'])
        expect(propertyFilters.parse([{ type, key: '1 = 1' }])).toEqual([parsed]);
    });

    it.each(filterOperators.filter((operator) => !operator.endsWith('_set')))(
      'reject an object as value with %s',
      (operator) => {
        const expected = `The 'value' of a filter with the operator '${operator}' must be `;
        for (const value of [undefined, {}, [{}], [['a']]])
          expect(message([{ ...filter, operator, value }])).toContain(expected);
      },
    );

    it.each([
      ['text', "'filters' should be an array of filters"],
      [{}, "'filters' should be an array of filters"],
      [[7], 'Each filter must be an object'],
      [[null], 'Each filter must be an object'],
      [[[]], 'Each filter must be an object'],
      [
        [filter, {}],
        "Each filter must have a 'type' of one of: event, person, event_metadata, hogql, dialect",
      ],
      [[{ ...filter, type: 'cohort' }], expect.stringContaining("'type' of one of: event, person,")],
      [[{ ...filter, key: '' }], "Each filter must have a 'key'"],
      [[{ ...filter, key: 7 }], "Each filter must have a 'key'"],
      [
        [{ ...filter, operator: 'like' }],
        expect.stringContaining("The 'operator' of a filter must be one of: exact,"),
      ],
      [
        [{ ...filter, data_interval_end: '2026' }],
        expect.stringContaining("run attributes and not 'filters'"),
      ],
      [
        [{ ...filter, label: 'Browser' }],
        expect.stringContaining("only have the fields 'type', 'key', 'operator' and 'value'"),
      ],
    ])('reject %j', (filters, expected) => {
      expect(message(filters)).toEqual(expected);
    });
  });

  describe('a filter that is saved', () => {
    const check = (operator: FilterOperator, value: unknown) => () => {
      rejectSelectionForModel({ filters: propertyFilters.parse([{ ...filter, operator, value }]) }, 'events');
    };

    it.each<[FilterOperator, unknown]>([
      ['gt', null],
      ['exact', null],
      ['is_not', [null]],
      ['icontains', null],
      ['between', 1],
      ['between', [1]],
      ['between', [1, 2, 3]],
      ['between', [1, null]],
      ['between', ['a', 'b']],
      ['is_date_before', 'yesterday'],
      ['is_date_before', '-7d'],
      ['is_date_exact', '2026-02-30'],
      ['is_date_after', 20261101],
      ['regex', '['],
      ['exact', 'x'.repeat(10_001)],
    ])('is rejected with %s of %j', (operator, value) => {
      expect(check(operator, value)).toThrow(
        expect.objectContaining({ attr: expect.stringMatching(/^destination__config__filters__0__value/) }),
      );
    });

    it.each<[FilterOperator, unknown]>([
      ['gt', true],
      ['regex', 1],
      ['in', []],
      ['exact', ['a', null]],
      ['is_date_after', '2026-11-01 10:00'],
    ])('is accepted with %s of %j, as in queries', (operator, value) => {
      expect(check(operator, value)).not.toThrow();
    });
  });

  describe('a selection for the model persons', () => {
    it('can only filter by properties of persons', () => {
      const person = { type: 'person', key: 'email', operator: 'is_set', value: null } as const;
      expect(() =>
        rejectSelectionForModel({ include_events: [], filters: [person] }, 'persons'),
      ).not.toThrow();
    });

    it.each([
      ['include_events', { include_events: ['a'] }],
      ['exclude_events', { exclude_events: ['a'] }],
      ['filters__0__type', { filters: [{ type: 'event', key: 'a', operator: 'is_set', value: null }] }],
    ] as const)('is rejected with %s, which exports of events support', (field, selection) => {
      expect(() => rejectSelectionForModel(selection, 'persons')).toThrow(
        expect.objectContaining({ attr: `destination__config__${field}`, code: 'invalid_input' }),
      );
      expect(() => rejectSelectionForModel(selection, 'events')).not.toThrow();
    });
  });
});

describe('the JSON Schema of manifests', () => {
  const file = join(import.meta.dirname, '../../src/destination/manifest.schema.json');

  it('equals the schema that exportd validates with', () => {
    // After a change of the schema, the file is this as JSON.
    const schema = z.toJSONSchema(manifestSchema, { io: 'input' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(JSON.stringify(schema)));
  });
});
