import { deriveKeys } from '../../config/key_ring.ts';
import type { Settings } from '../../config/settings.ts';
import { countIntervals, type DataInterval, instantOfLocalTime } from '../../domain/intervals.ts';
import type { Pool } from '../../journal/database.ts';
import { invalid } from '../api_error.ts';
import type { BatchExportRow } from '../batch_exports/read_model.ts';
import { readIntervalPage } from '../intervals/read_model.ts';
import type { IntervalResponse } from '../intervals/schema.ts';
import type { Proof, ProofEntry, SignedProof } from './schema.ts';
import { type DocumentSignature, signDocument } from './signature.ts';

const pageSize = 1_000;
/** With more entries a month is listed by day: of minutes, it has 44,640 intervals. */
const maxEntries = 1_000;
const dayMs = 86_400_000;

/** The bounds of a month in a time zone, as far as it has passed. @throws ApiError 400 for a month that has not begun */
function boundsOfMonth(month: string, timezone: string, now: Date): DataInterval {
  const [year = 0, number = 0] = month.split('-').map(Number);
  const [start, end] = [number - 1, number].map((index) =>
    instantOfLocalTime(Date.UTC(year, index), timezone),
  ) as [Date, Date];
  if (start >= now) throw invalid('The month has not begun yet.', 'month');
  return { start: start.toISOString(), end: (end < now ? end : now).toISOString() };
}

/** The entries of the ledger that start in a range, and the parts in it of ranges without runs, oldest first. */
async function readEntries(
  pool: Pool,
  { id, interval, timezone, offset_day, offset_hour }: BatchExportRow,
  { start, end }: DataInterval,
): Promise<IntervalResponse[]> {
  const entries: IntervalResponse[] = [];
  let cursor: string | undefined;
  do {
    const page = await readIntervalPage(pool, id, {
      after: start,
      before: end,
      limit: pageSize,
      statuses: undefined,
      ...(cursor !== undefined && { cursor }),
    });
    entries.push(...page.intervals);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  const revision = { interval, timezone, offset_day, offset_hour, effective_from: null };
  return entries.toReversed().flatMap((entry) => {
    if (entry.run_id !== null) return entry.data_interval_start >= start ? [entry] : [];
    const part = {
      start: entry.data_interval_start < start ? start : entry.data_interval_start,
      end: entry.data_interval_end > end ? end : entry.data_interval_end,
    };
    const intervals = countIntervals([revision], part);
    return [{ ...entry, data_interval_start: part.start, data_interval_end: part.end, intervals }];
  });
}

type Fingerprint = ProofEntry['source_fingerprint'];

/** Adds fingerprints, which are sums modulo 2^64. Null if one is missing or of another hash. */
const addFingerprints = (all: readonly Fingerprint[]): Fingerprint =>
  all.reduce((sum, one) => {
    if (!sum || !one || sum.hash !== one.hash) return null;
    const total = BigInt.asUintN(64, BigInt(sum.sum) + BigInt(one.sum));
    return { hash: sum.hash, rows: sum.rows + one.rows, sum: total.toString() };
  }) ?? null;

const sum = (values: readonly (number | null)[]): number =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

const newest = (times: readonly (string | null | undefined)[]): string | null =>
  times.reduce<string | null>(
    (latest, time) => (time && (latest === null || time > latest) ? time : latest),
    null,
  );

const isExported = ({ manifest_run_id }: IntervalResponse): boolean => manifest_run_id !== null;

const differs = ({ comparison }: IntervalResponse): boolean =>
  comparison !== null && comparison.outcome !== 'equal' && comparison.acknowledgement === null;

/** States what some intervals have in common: one, or those of a day. */
function entryOf(group: readonly [IntervalResponse, ...IntervalResponse[]]): ProofEntry {
  const exported = group.filter(isExported);
  const [first] = group;
  const [source, files] = [
    exported.map((one) => one.source_fingerprint),
    exported.map((one) => one.bucket_fingerprint),
  ];
  const source_fingerprint = source.length === 0 ? null : addFingerprints(source);
  const file_fingerprint = files.length === 0 ? null : addFingerprints(files);
  return {
    start: first.data_interval_start,
    end: newest(group.map((one) => one.data_interval_end)) ?? first.data_interval_end,
    intervals: sum(group.map(({ intervals }) => intervals)),
    exported: exported.length,
    status: group.every(({ status }) => status === first.status) ? first.status : null,
    source_rows: sum(source.map((one) => one?.rows ?? null)),
    file_rows: sum(exported.map(({ rows }) => rows)),
    rejected_rows: sum(exported.map(({ rejected_rows }) => rejected_rows)),
    bytes: sum(exported.map(({ bytes }) => bytes)),
    files: sum(exported.map((one) => one.files)),
    source_fingerprint,
    file_fingerprint,
    is_equal:
      source_fingerprint && file_fingerprint
        ? source_fingerprint.sum === file_fingerprint.sum && source_fingerprint.rows === file_fingerprint.rows
        : null,
    exported_at: newest(exported.map(({ completed_at }) => completed_at)),
    compared_at: newest(exported.map(({ comparison }) => comparison?.compared_at)),
    differing: exported.filter(differs).length,
  };
}

/** What is not exported: entries without a manifest, and what lies between the entries of the ledger. */
function holesIn(entries: readonly IntervalResponse[]): Proof['holes'] {
  let until: string | undefined;
  return entries.flatMap((entry) => {
    const { data_interval_start: start, data_interval_end: end, status } = entry;
    const before =
      until !== undefined && until < start ? [{ start: until, end: start, reason: 'never_exported' }] : [];
    until = newest([until, end]) ?? end;
    return [...before, ...(isExported(entry) ? [] : [{ start, end, reason: status }])];
  });
}

/** Reads who allowed exports of these intervals to remove rows. */
async function readAllowedRuns(
  pool: Pool,
  id: string,
  { start, end }: DataInterval,
): Promise<Proof['allowed']> {
  const { rows } = await pool.query<Proof['allowed'][number]>(
    `select 'fewer_rows' as kind, run.data_interval_start as start, run.data_interval_end as end,
       run.finished_at as at, users.email as by, run.records_completed as rows_after, null as reason,
       (select former.records_completed from exportd.batch_export_runs former
        where former.batch_export_id = run.batch_export_id and former.status = 'Completed'
          and former.data_interval_start = run.data_interval_start and former.position < run.position
        order by former.position desc limit 1) as rows_before
     from exportd.batch_export_runs run
     left join exportd.journal_events created on created.stream_type = 'backfill'
       and created.stream_id = run.backfill_id and created.stream_version = 1
     left join exportd.commands command
       on command.id = case when created.cause like 'command:%' then substr(created.cause, 9, 36)::uuid end
     left join exportd.users users on users.id = command.user_id
     where run.batch_export_id = $1 and run.allow_shrink and run.status = 'Completed'
       and run.data_interval_start >= $2 and run.data_interval_start < $3
     order by run.finished_at`,
    [id, start, end],
  );
  return rows;
}

/** Reads the newest verification of each of these intervals that a person requested. */
async function readVerifications(
  pool: Pool,
  id: string,
  { start, end }: DataInterval,
): Promise<Proof['verifications']> {
  const { rows } = await pool.query<Proof['verifications'][number]>(
    `select distinct on (data_interval_start, data_interval_end) data_interval_start as start,
       data_interval_end as end, finished_at as at, deep as every_value, not has_findings as is_equal, users.email as by
     from exportd.verifications verification left join exportd.users users on users.id = verification.user_id
     where batch_export_id = $1 and report is not null and finished_at is not null
       and data_interval_start >= $2 and data_interval_start < $3
     order by data_interval_start, data_interval_end, verification.created_at desc`,
    [id, start, end],
  );
  return rows;
}

const acknowledgementsIn = (entries: readonly IntervalResponse[]): Proof['allowed'] =>
  entries.flatMap(({ data_interval_start, data_interval_end, comparison }) =>
    comparison?.acknowledgement
      ? [
          {
            kind: 'acknowledged' as const,
            start: data_interval_start,
            end: data_interval_end,
            at: comparison.acknowledgement.at,
            by: comparison.acknowledgement.by,
            rows_before: comparison.bucket_rows,
            rows_after: comparison.source_rows,
            reason: comparison.acknowledgement.reason,
          },
        ]
      : [],
  );

/** Reads what exportd states of a month of an export. @throws ApiError 400 for a month that has not begun */
export async function readProof(
  pool: Pool,
  found: BatchExportRow,
  project: Proof['project'],
  month: string,
): Promise<Proof> {
  const now = new Date();
  const { id, name, model, interval, timezone, config } = found;
  const range = boundsOfMonth(month, timezone, now);
  const [entries, runs, verifications] = await Promise.all([
    readEntries(pool, found, range),
    readAllowedRuns(pool, id, range),
    readVerifications(pool, id, range),
  ]);
  const groups = Map.groupBy(entries, ({ data_interval_start: start }) =>
    entries.length > maxEntries ? Math.floor(Date.parse(start) / dayMs) : start,
  );
  const listed = [...groups.values()].flatMap(([first, ...others]) =>
    first ? [entryOf([first, ...others])] : [],
  );
  const holes = holesIn(entries);
  const exported = entries.filter(isExported);
  const unequal = exported.filter(
    (one) =>
      differs(one) ||
      (one.source_fingerprint !== null && one.source_fingerprint.sum !== one.bucket_fingerprint?.sum),
  );
  const definition = { interval, timezone, offset_day: found.offset_day, offset_hour: found.offset_hour };
  return {
    version: 1,
    issued_at: now.toISOString(),
    project,
    batch_export: { id, name, model, interval },
    destination: {
      bucket: String(config.bucket_name),
      prefix: String(config.prefix),
      on_missing_rows: String(config.on_missing_rows),
    },
    month,
    timezone,
    ...range,
    totals: {
      intervals: sum(entries.map(({ intervals }) => intervals)),
      exported: exported.length,
      source_rows: sum(listed.map(({ source_rows }) => source_rows)),
      file_rows: sum(listed.map(({ file_rows }) => file_rows)),
      rejected_rows: sum(listed.map(({ rejected_rows }) => rejected_rows)),
      bytes: sum(listed.map(({ bytes }) => bytes)),
      files: sum(listed.map(({ files }) => files)),
      unequal: unequal.length,
      holes: sum(holes.map((hole) => countIntervals([{ ...definition, effective_from: null }], hole))),
    },
    entries: listed,
    holes,
    verifications,
    allowed: [...runs, ...acknowledgementsIn(entries)].toSorted((one, other) => (one.at < other.at ? -1 : 1)),
  };
}

const purpose = 'exportd proofs';

/** The seed of the key that proofs are signed with: of the newest symmetric key of the ring. */
const proofSeed = ({ EXPORTD_ENCRYPTION_KEYS: keys }: Pick<Settings, 'EXPORTD_ENCRYPTION_KEYS'>): Buffer => {
  const [seed] = deriveKeys(keys ?? '', purpose);
  if (!seed) throw new RangeError('A key ring has a symmetric key.');
  return seed;
};

/** Signs a proof, and keeps the public key: proofs stay verifiable after the ring has lost the key. */
export async function signProof(
  pool: Pool,
  settings: Pick<Settings, 'EXPORTD_ENCRYPTION_KEYS'>,
  proof: Proof,
): Promise<SignedProof> {
  return { proof, signature: await signWithProofKey(pool, settings, proof) };
}

/** Signs a document with the key of proofs, whose public half is kept. */
export async function signWithProofKey(
  pool: Pool,
  settings: Pick<Settings, 'EXPORTD_ENCRYPTION_KEYS'>,
  document: object,
): Promise<DocumentSignature> {
  const signature = signDocument(document, proofSeed(settings));
  await pool.query(
    'insert into exportd.proof_keys (id, public_key) values ($1, $2) on conflict (id) do nothing',
    [signature.key_id, signature.public_key],
  );
  return signature;
}

/** The public keys of all proofs that were signed, the newest first. */
export async function listProofKeys(
  pool: Pool,
  settings: Pick<Settings, 'EXPORTD_ENCRYPTION_KEYS'>,
): Promise<{ key_id: string; public_key: string; first_used_at: string; is_current: boolean }[]> {
  const { key_id: current } = signDocument(null, proofSeed(settings));
  const { rows } = await pool.query<{ key_id: string; public_key: string; first_used_at: string }>(
    'select id as key_id, public_key, first_used_at from exportd.proof_keys order by first_used_at desc, id',
  );
  return rows.map((row) => ({ ...row, is_current: row.key_id === current }));
}
