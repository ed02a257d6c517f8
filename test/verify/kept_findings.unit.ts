/** Which findings a decision to keep rows is about, as rows come back to the source and others leave it. */
import { expect, it } from '@jest/globals';
import type { StoredDecision } from '../../src/domain/difference.ts';
import { bucketWidthMs, type Fingerprint } from '../../src/domain/fingerprint.ts';
import type { RowKey } from '../../src/readers/row.ts';
import { identitiesOf, splitKept } from '../../src/verify/kept_findings.ts';
import { createFindingCollector, type Finding } from '../../src/verify/report.ts';

const interval = { start: '2026-11-20T10:00:00.000Z', end: '2026-11-20T11:00:00.000Z' };

/** A row at the beginning of a minute; all of one minute are in the same bucket. */
const row = (minute: number, number: number): RowKey => ({
  inserted_at: `2026-11-20T10:${String(minute).padStart(2, '0')}:00.00000${number}Z`,
  id: `00000000-0000-4000-8000-0000000${minute + 10}00${number}`,
});

/** What verifying finds of rows that the source lacks. */
function unexpected(...rows: readonly RowKey[]): Finding[] {
  const collector = createFindingCollector(interval, 'the manifest');
  for (const one of rows) collector.row('unexpected', one);
  return collector.findings();
}

/** A decision to keep rows. @param missing their buckets; those of the rows by default */
const keep = (
  rows: readonly RowKey[],
  encoded_buckets = unexpected(...rows)[0]?.encoded_buckets,
): StoredDecision => ({
  decision: 'keep',
  reason: 'ticket 7',
  user_id: 1,
  run_id: 'run',
  at: '2026-11-21T00:00:00.000Z',
  rows: rows.length,
  missing:
    encoded_buckets === undefined
      ? null
      : ({
          hash: 'uuid_hash_extended/0',
          width_ms: bucketWidthMs(interval),
          encoded_buckets,
        } satisfies Fingerprint),
  findings: identitiesOf(unexpected(...rows)),
});

/** How many rows are reported, and how many are noted as kept. */
function split(found: readonly Finding[], decision: StoredDecision) {
  const { findings, notes } = splitKept(found, new Map([[`${interval.start} ${interval.end}`, decision]]));
  return { reported: findings.map(({ count }) => count), kept: notes.length };
}
const isKept = { reported: [], kept: 1 };
const isReported = (count: number) => ({ reported: [count], kept: 0 });

const kept = [row(1, 1), row(1, 2), row(1, 3), row(40, 1)];
const without = (...gone: readonly RowKey[]) => kept.filter((one) => !gone.includes(one));
const [first = row(1, 1), second = row(1, 2)] = kept;

it.each<[string, readonly RowKey[], object]>([
  ['all', kept, isKept],
  ['without a bucket', kept.slice(0, 3), isKept],
  ['without some of a bucket', without(first, second), isKept],
  ['and one more of another bucket', [...kept, row(20, 1)], isReported(5)],
  ['and one more of their bucket', [...kept, row(1, 4)], isReported(5)],
  ['in part, and one of another bucket', [...without(first), row(20, 1)], isReported(4)],
  ['without one of a bucket, and another of it', [...without(first), row(1, 4)], isReported(4)],
  // The bucket has two of its three rows: the sums do not tell which.
  ['without two of a bucket, and another of it', [...without(first, second), row(1, 4)], isKept],
])('kept rows %s', (_, found, expected) => {
  expect(split(unexpected(...found), keep(kept))).toEqual(expected);
});

it('rows of another interval are no kept ones', () => {
  const elsewhere = { ...first, inserted_at: '2026-11-20T11:00:00.000000Z' };
  expect(split(unexpected(elsewhere), keep(kept))).toEqual(isReported(1));
});

it('rows without keys are known as a whole', () => {
  const keyless = [1, 2].map((number) => ({ inserted_at: '', id: `row ${number} of its files` }));
  // The source and the manifest were compared by fingerprint.
  const decision = keep(keyless, unexpected(first, second)[0]?.encoded_buckets);
  expect(split(unexpected(...keyless), decision)).toEqual(isKept);
  expect(split(unexpected(...keyless.slice(1)), decision)).toEqual(isReported(1));
  expect(split(unexpected(...keyless), keep(keyless))).toEqual(isKept);
});
