import { describe, expect, it } from '@jest/globals';
import { CommandRejected } from '../../src/domain/errors.ts';
import { previewOf } from '../../src/destination/config.ts';

const spec = {
  batch_export_id: '<id>',
  model: 'events',
  data_interval_start: '2026-11-01T10:00:00.000Z',
  data_interval_end: '2026-11-01T11:00:00.000Z',
} as const;

describe('the preview of an S3 config', () => {
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
  ])('rejects an invalid %s', (field, config) => {
    expect(() => previewOf(config)).toThrow(CommandRejected);
    expect(() => previewOf(config)).toThrow(
      expect.objectContaining({ attr: `destination__config__${field}` }),
    );
  });
});
