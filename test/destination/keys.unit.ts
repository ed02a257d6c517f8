import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  fileKey,
  keyLengthProblem,
  manifestKey,
  prefixProblem,
  rejectedKey,
} from '../../src/destination/keys.ts';

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
  ])('under %j, generation %i', (prefix, generation, extension, key) => {
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
  ])('of generation %i, range %p, file %i', (generation, range, file, ending) => {
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

describe('keys of rejected rows', () => {
  it.each([
    [1, '-rejected.jsonl'],
    [2, '-g2-rejected.jsonl'],
  ])('of generation %i', (generation, ending) => {
    expect(rejectedKey('{table}/{hour}', spec, { generation, mark: null })).toBe(
      `events/10/20261101T100000Z-20261101T110000Z${ending}`,
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

describe('invalid prefixes', () => {
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
  ])('%j', (prefix, message) => {
    expect(prefixProblem(prefix)).toContain(message);
  });

  it('a prefix whose keys exceed the limit of S3 in bytes', () => {
    expect(keyLengthProblem('ä'.repeat(480))).toContain('1024');
    expect(keyLengthProblem('a'.repeat(480))).toBeNull();
    expect(keyLengthProblem('a'.repeat(960))).toContain('1024');
    expect(keyLengthProblem('{data_interval_start}'.repeat(60))).toContain('1024');
    expect(keyLengthProblem('{minute}'.repeat(400))).toBeNull();
  });
});
