import { describe, expect, it } from '@jest/globals';
import { fileKey, keyLengthFault, manifestKey } from '../../../src/destination/s3/keys.ts';
import { prefixFault } from '../../../src/destination/s3/prefix.ts';

const subject = {
  batch_export_id: '018f0000-0000-4000-8000-000000000001',
  model: 'events',
  data_interval_start: '2026-11-01T10:00:00.000Z',
  data_interval_end: '2026-11-01T11:00:00.000Z',
} as const;

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
  ])('under %j, generation %i', (prefix, generation, extension, key) => {
    expect(fileKey(prefix, subject, generation, extension)).toBe(key);
  });

  it('takes variables from the start in UTC, whatever offset it is written with', () => {
    const local = { ...subject, data_interval_start: '2026-11-01T01:00:00+03:00' };
    expect(fileKey('{day}/{hour}', local, 1, 'jsonl')).toMatch(/^31\/22\/20261031T220000Z-/);
  });
});

describe('keys of manifests', () => {
  it.each([
    ['exports/{year}/{month}', 'exports/'],
    ['exports/all/', 'exports/all/'],
    ['exports/y={year}/fixed', 'exports/'],
    ['{table}/x', ''],
    ['', ''],
  ])('stand under the constant part of %j', (prefix, constant) => {
    expect(manifestKey(prefix, subject)).toBe(
      `${constant}_manifests/${subject.batch_export_id}/20261101T100000Z-20261101T110000Z.json`,
    );
  });
});

describe('prefixes that are refused', () => {
  it.each([
    ['/exports', 'begin with "/"'],
    ['a/../b', '".."'],
    ['..', '".."'],
    ['a//b', '"//"'],
    ['a/{minutes}', '{minutes}'],
    ['a/{}', '{}'],
    ['a/{year', 'brace'],
    ['a/year}', 'brace'],
    ['a\nb', 'control characters'],
  ])('%j', (prefix, words) => {
    expect(prefixFault(prefix)).toContain(words);
  });

  it('one that makes keys longer than S3 allows, counted in bytes', () => {
    expect(keyLengthFault('ä'.repeat(480))).toContain('1024');
    expect(keyLengthFault('a'.repeat(480))).toBeNull();
  });
});
