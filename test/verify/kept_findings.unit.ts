/** Which findings a decision to keep rows is about, as rows come back to the source and others leave it. */
import { expect, it } from '@jest/globals';
import { emptyFingerprint, type Fingerprint } from '../../src/domain/fingerprint.ts';
import { encodeHashes } from '../../src/domain/kept_rows.ts';
import type { RowKey } from '../../src/readers/row.ts';
import { allRows } from '../../src/source/row_selection.ts';
import type { RowRange } from '../../src/source/source.ts';
import {
  identitiesOf,
  type KeptDifference,
  noteKeptRows,
  splitKept,
} from '../../src/verify/kept_findings.ts';
import { createFindingCollector, type FindingCollector } from '../../src/verify/report.ts';
import { hashOfId } from '../../src/verify/row_fingerprint.ts';

const interval = { start: '2026-11-20T10:00:00.000Z', end: '2026-11-20T11:00:00.000Z' };

/** A row at the beginning of a minute; all of one minute are in the same bucket. */
const row = (minute: number, number: number): RowKey => ({
  inserted_at: `2026-11-20T10:${String(minute).padStart(2, '0')}:00.00000${number}Z`,
  id: `00000000-0000-4000-8000-0000000${minute + 10}00${number}`,
});

/** What verifying finds of rows that the source lacks. */
function collectorOf(rows: readonly RowKey[]): FindingCollector {
  const collector = createFindingCollector(interval, 'the manifest');
  for (const one of rows) collector.row('unexpected', one);
  return collector;
}

const fingerprintOf = (encoded_buckets: string): Fingerprint => ({
  ...emptyFingerprint(interval, 'uuid_hash_extended/0'),
  encoded_buckets,
});

/** A decision to keep rows. @param missing their buckets; those of the rows by default */
const keep = (
  rows: readonly RowKey[],
  missing = collectorOf(rows).unexpected(),
  hashes = encodeHashes(rows.map(({ id }) => hashOfId(id))),
): KeptDifference => ({
  decision: 'keep',
  reason: 'ticket 7',
  user_id: 1,
  run_id: 'run',
  at: '2026-11-21T00:00:00.000Z',
  rows: rows.length,
  missing: missing === undefined ? null : fingerprintOf(missing),
  readHashes: () => Promise.resolve(hashes),
  findings: identitiesOf(collectorOf(rows).findings()),
});

/** How many rows are reported, and how many are noted as kept. @param back rows that the source has again */
async function split(found: readonly RowKey[], decision: KeptDifference, back: readonly RowKey[] = []) {
  const decisions = new Map([[`${interval.start} ${interval.end}`, decision]]);
  const source = {
    rows: async function* rows(range: RowRange) {
      const { start, end } = range.interval;
      for (const { inserted_at, id } of back)
        if (Date.parse(inserted_at) >= Date.parse(start) && Date.parse(inserted_at) < Date.parse(end))
          yield await Promise.resolve({ inserted_at, id, values: [] });
    },
  };
  const range: RowRange = { model: 'events', team_id: 1, interval, selection: allRows };
  const collector = collectorOf(found);
  await noteKeptRows({ source, kept: decisions }, range, fingerprintOf(''), collector);
  const { findings, notes } = splitKept(collector.findings(), decisions);
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
  ['without two of a bucket, and another of it', [...without(first, second), row(1, 4)], isReported(3)],
])('kept rows %s', async (_, found, expected) => {
  const back = kept.filter((one) => !found.includes(one));
  expect(await split(found, keep(kept), back)).toEqual(expected);
});

it('rows that are not known one by one are kept by bucket', async () => {
  const decision = keep(kept, undefined, null);
  expect(await split(kept, decision)).toEqual(isKept);
  expect(await split(kept.slice(0, 3), decision, kept.slice(3))).toEqual(isKept);
  expect(await split(without(first), decision, [first])).toEqual(isReported(3));
});

it('rows of another interval are no kept ones', async () => {
  const elsewhere = { ...first, inserted_at: '2026-11-20T11:00:00.000000Z' };
  expect(await split([elsewhere], keep(kept))).toEqual(isReported(1));
});

it('rows without keys are known as a whole', async () => {
  const keyless = [1, 2].map((number) => ({ inserted_at: '', id: `row ${number} of its files` }));
  // The source and the manifest were compared by fingerprint.
  const decision = keep(keyless, collectorOf([first, second]).unexpected(), null);
  expect(await split(keyless, decision)).toEqual(isKept);
  expect(await split(keyless.slice(1), decision)).toEqual(isReported(1));
  expect(await split(keyless, keep(keyless, undefined, null))).toEqual(isKept);
});

it('persons may come back in part', async () => {
  const persons = ['ada', 'bob', 'eve'].map((id) => ({ inserted_at: '2026-11-20T10:01:00.000000Z', id }));
  // Persons are not compared by fingerprint.
  const decision = { ...keep(persons), missing: null };
  expect(await split(persons, decision)).toEqual(isKept);
  expect(await split(persons.slice(1), decision)).toEqual(isKept);
  const [ada = first] = persons;
  expect(await split([ada, { ...ada, id: 'zoe' }], decision)).toEqual(isReported(2));
  expect(await split([ada, ada], decision)).toEqual(isReported(2));
});
