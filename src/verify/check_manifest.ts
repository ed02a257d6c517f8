import { hash } from 'node:crypto';
import { partitionColumns, partitionIn, partitionOf } from '../destination/partitions.ts';
import type { Manifest } from '../destination/manifest.ts';
import { expectedRows } from '../domain/difference.ts';
import { fileSequences } from '../domain/exported_files.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { allRows } from '../source/row_selection.ts';
import type { RowRange } from '../source/source.ts';
import {
  checkedRows,
  earlierFilesOf,
  earlierRows,
  exceptEarlier,
  type FileReadContext,
} from './checked_files.ts';
import { keyedDifferences, unkeyedDifferences } from './compare_rows.ts';
import {
  createEventClassifier,
  createPersonClassifier,
  readRejectedRows,
  type RejectedRows,
} from './difference_classifier.ts';
import { extensionsOf } from '../readers/read_rows.ts';
import type { Expirations } from './gaps.ts';
import { findKeptRows, type KeptDifferences, noteKeptRows } from './kept_findings.ts';
import { intervalOf, type RangeContext, rangeOfManifest } from './locations.ts';
import type { LoadedManifest } from './manifests.ts';
import { createFindingCollector, type FindingCollector } from './report.ts';
import { compareKeys, type RowShape, type ComparedRow } from '../readers/row.ts';
import {
  inOrder,
  maxSortableRows,
  observeRows,
  OutOfOrder,
  readAll,
  sorted,
  within,
} from './ordered_rows.ts';
import {
  addSums,
  createRowFingerprint,
  differingIndexes,
  fingerprintOf,
  rowsOf,
  sumsOf,
} from './row_fingerprint.ts';
import type { SourceRows } from './source_rows.ts';

/** Dependencies for checking manifests. */
export interface CheckContext extends RangeContext {
  readonly source: SourceRows;
  readonly deep: boolean;
  readonly fast: boolean;
  readonly expirations: Expirations;
  readonly kept: KeptDifferences;
  /** Counts the bytes of a manifest that was read. @throws CannotVerify when they are too many */
  readonly countManifest: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** The result of checking a manifest. */
export interface ManifestCheck {
  readonly found: LoadedManifest;
  readonly collector: FindingCollector;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number | null;
  /** Whether its files contain the keys of the rows. */
  readonly hasKeys: boolean;
  /** Whether its rows have to be sorted before they can be compared. */
  readonly disordered: boolean;
  /** Rows that belong to another interval. */
  readonly misplacedRows: readonly ComparedRow[];
}

/**
 * Finds repeated ids with eight bytes of memory per id. It compares 64-bit hashes, so its results are candidates that
 * have to be checked.
 */
interface RepeatedIds {
  add(id: string): void;
  /**
   * Returns a predicate for candidates: whether the hash of an id was added more than once. Null when there are none.
   */
  findRepeated(): ((id: string) => boolean) | null;
}

function createRepeatedIds(): RepeatedIds {
  let hashes = new BigUint64Array(1_024);
  let length = 0;
  return {
    add(id) {
      if (length === hashes.length) {
        const larger = new BigUint64Array(hashes.length * 2);
        larger.set(hashes);
        hashes = larger;
      }
      hashes[length] = hashOf(id);
      length += 1;
    },
    findRepeated() {
      const ordered = hashes.subarray(0, length).sort();
      const found = new Set<bigint>();
      for (let index = 1; index < length; index += 1) {
        const value = ordered[index];
        if (value !== undefined && value === ordered[index - 1]) found.add(value);
      }
      return found.size === 0 ? null : (id) => found.has(hashOf(id));
    },
  };
}

const hashOf = (id: string): bigint => hash('sha1', id, 'buffer').readBigUInt64LE();

/** Checks that a manifest is consistent, and adds notes for readers. */
function checkSums(manifest: Manifest, name: string, collector: FindingCollector): void {
  const addProblem = (detail: string) => collector.add('manifest_inconsistent', name, detail);
  for (const field of ['rows', 'bytes'] as const) {
    const sum = manifest.files.reduce((total, file) => total + file[field], 0);
    if (sum !== manifest[field])
      addProblem(`The manifest has ${manifest[field]} ${field}, but the sum of its files is ${sum}.`);
  }
  const differing = bucketsThatDiffer(manifest);
  if (differing > 0)
    addProblem(`The fingerprint of the manifest differs from the sum of its files in ${differing} buckets.`);
  for (const { key, rows, fingerprint: own } of manifest.files)
    if (rowsOf(sumsOf(own)) !== rows) addProblem(`The fingerprint of ${key} has not ${rows} rows.`);
  const earlier = earlierFilesOf(manifest);
  const keys = [...manifest.files, ...earlier].map(({ key }) => key);
  for (const { key, generation } of earlier)
    if (generation >= manifest.generation)
      addProblem(`${key} is no file of an earlier generation, but of generation ${generation}.`);
  if (new Set(keys).size !== keys.length)
    collector.add('file_shared', name, 'The manifest references a file twice.');
  for (const { key, partition } of [...manifest.files, ...earlier]) {
    const columns = partitionColumns.filter((column) => partition?.[column] !== undefined);
    const expected = partitionOf(manifest.data_interval_start, columns);
    const inKey = partitionIn(key, columns);
    if (columns.some((name) => partition?.[name] !== expected[name] || inKey[name] !== expected[name]))
      addProblem(`The partition of ${key} is not that of its interval.`);
  }
  for (const files of fileSequences(manifest.files)) {
    let previous: { key: string; last: NonNullable<Manifest['files'][number]['last']> } | undefined;
    for (const { key, first, last } of files) {
      if (!first || !last) continue;
      if (compareKeys(first, last) > 0) addProblem(`The first key of ${key} is greater than its last.`);
      if (previous && compareKeys(previous.last, first) > 0)
        addProblem(`${key} starts before the end of ${previous.key}.`);
      previous = { key, last };
    }
  }
  if (!manifest.settled)
    collector.note('It was exported while a transaction was open, which may have added rows since.');
  const accounted = manifest.rows + manifest.rejected;
  if (manifest.source_rows !== accounted)
    collector.note(
      `The source had ${manifest.source_rows} rows right after reading; ${accounted} were read.`,
    );
}

/** In how many buckets the fingerprint of a manifest differs from the sum of its files. */
function bucketsThatDiffer({ fingerprint, files, rejected_file }: Manifest): number {
  if (fingerprint.all_events) return 0;
  const parts = [...files, ...(rejected_file ? [rejected_file] : [])].map((file) => sumsOf(file.fingerprint));
  return differingIndexes(sumsOf(fingerprint), addSums(...parts)).length;
}

/**
 * Compares the fingerprint of a manifest with the source, without reading its files. Rows and bytes are those that the
 * manifest states.
 */
async function checkFingerprint(context: CheckContext, found: LoadedManifest): Promise<ManifestCheck> {
  const { manifest, name } = found;
  const collector = createFindingCollector(intervalOf(manifest), name);
  const range = await rangeOfManifest(context, manifest, collector, name);
  checkSums(manifest, name, collector);
  const { rows, bytes, model } = manifest;
  const check = { found, collector, rows, bytes, hasKeys: false, disordered: false, misplacedRows: [] };
  if (model === 'persons') {
    collector.note('Its rows were not compared, because persons move to later intervals.');
    return { ...check, source_rows: null };
  }
  const { all_events } = manifest.fingerprint;
  if (all_events)
    collector.note(
      'All events of its interval were compared, because persons decide which of them are selected.',
    );
  const source = await context.source.fingerprint(
    all_events ? { ...range, selection: allRows } : range,
    manifest.fingerprint,
  );
  const kept = await findKeptRows(context, range, {
    files: manifest.fingerprint,
    source: fingerprintOf(source, manifest.fingerprint),
  });
  const exported = sumsOf(expectedRows(manifest.fingerprint, kept));
  const differing = differingIndexes(exported, source);
  if (differing.length > 0) {
    const sources = { manifest: rowsIn(exported, differing), source: rowsIn(source, differing) };
    const [first = 0] = differing;
    collector.add(
      'fingerprint',
      name,
      `The source has other rows than the manifest in ${differing.length} buckets, ${sources.source} instead of ` +
        `${sources.manifest}; the first is ${formatBucket(range.interval, manifest, first)}.`,
      differing.length,
    );
  }
  return { ...check, source_rows: all_events ? null : rowsOf(source) };
}

const rowsIn = (sums: ReturnType<typeof sumsOf>, indexes: readonly number[]): number =>
  indexes.reduce((total, index) => total + (sums.get(index)?.rows ?? 0), 0);

function formatBucket({ start, end }: DataInterval, { fingerprint }: Manifest, index: number): string {
  const from = Date.parse(start) + index * fingerprint.width_ms;
  const until = Math.min(from + fingerprint.width_ms, Date.parse(end));
  return [from, until].map((time) => new Date(time).toISOString()).join(' to ');
}

/** A manifest whose files contain the columns of an export's query, without the key of the rows. */
interface UnkeyedManifest {
  readonly found: LoadedManifest;
  readonly range: RowRange;
  readonly reading: FileReadContext;
  readonly shape: RowShape;
  readonly rejected: RejectedRows;
}

/**
 * Compares the rows of such a manifest by their values only. Persons are only read and counted, because they change
 * and cannot be identified without keys.
 */
async function checkUnkeyed(
  { source }: Pick<CheckContext, 'source'>,
  { found, range, reading, shape, rejected }: UnkeyedManifest,
): Promise<ManifestCheck> {
  const { collector, totals } = reading;
  const files = checkedRows(reading, found.manifest.files, shape);
  await readAll(earlierRows(reading, found.manifest, null));
  const result = (source_rows: number | null): ManifestCheck => ({
    found,
    collector,
    ...totals,
    source_rows,
    hasKeys: false,
    disordered: false,
    misplacedRows: [],
  });
  if (range.model === 'persons') {
    collector.note(
      'Its rows were not compared with the source, because its files do not contain both _inserted_at and distinct_id.',
    );
    await readAll(files);
    return result(null);
  }
  const rows = { source: 0 };
  const classifier = createEventClassifier(collector, rejected);
  try {
    const sourceRows = observeRows(source.rows(range, shape), () => (rows.source += 1));
    const jsonNullIsNull = found.manifest.files.some(({ key }) => extensionsOf(key).format === 'jsonl');
    for await (const difference of unkeyedDifferences(files, sourceRows, {
      columns: shape.columns,
      jsonNullIsNull,
    }))
      await classifier.add(difference);
    await classifier.finish();
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
    collector.note(
      `Its rows were not compared, because more than ${maxSortableRows} of them are at another position than in the source.`,
    );
    return result(null);
  }
  return result(rows.source);
}

/** Maximum number of rows that are searched for in the manifest of their interval. Further ones are only counted. */
const maxMisplacedRows = 10_000;

/** Checks a manifest: its sums, its files, and their rows against the source. */
export async function checkManifest(context: CheckContext, found: LoadedManifest): Promise<ManifestCheck> {
  if (context.fast) return checkFingerprint(context, found);
  try {
    return await checkRows(context, found, false);
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
  }
  return checkRows(context, found, true);
}

/** The column that identifies the rows of a manifest. */
const idColumnOf = ({ model }: Manifest): string => (model === 'events' ? 'uuid' : 'distinct_id');

async function checkRows(
  context: CheckContext,
  found: LoadedManifest,
  disordered: boolean,
): Promise<ManifestCheck> {
  const { source, deep, signal, expirations } = context;
  const { manifest, location, name } = found;
  const collector = createFindingCollector(intervalOf(manifest), name);
  const range = await rangeOfManifest(context, manifest, collector, name);
  checkSums(manifest, name, collector);
  const totals = { rows: 0, bytes: 0 };
  const readContext: FileReadContext = {
    reader: location.reader,
    collector,
    totals,
    signal,
    isExpired: (key) => expirations.isExpiredFile(range.interval, key),
    createFingerprint: (like) => createRowFingerprint(source.hashIds, range.interval, like),
  };
  const rejected = await readRejectedRows(readContext, manifest);
  const hasKeys = await source.hasKeys(range);
  const shape: RowShape = {
    id: hasKeys ? idColumnOf(manifest) : null,
    columns: deep ? await source.comparedColumns(range, manifest.columns) : [],
  };
  if (!hasKeys) return checkUnkeyed(context, { found, range, reading: readContext, shape, rejected });
  const misplacedRows: ComparedRow[] = [];
  const onMisplacedRow = (row: ComparedRow) => {
    if (misplacedRows.length < maxMisplacedRows) misplacedRows.push(row);
    else collector.row('unexpected', row);
  };
  const ids = manifest.model === 'persons' ? createRepeatedIds() : undefined;
  const read = observeRows(checkedRows(readContext, manifest.files, shape), (row) => ids?.add(row.id));
  const fileRows = within((disordered ? sorted : inOrder)(read), range.interval, onMisplacedRow);
  let source_rows: number | null = 0;
  const sourceRows = observeRows(source.rows(range, shape), () => (source_rows = (source_rows ?? 0) + 1));
  const classifier = ids
    ? createPersonClassifier(collector, rejected, (ids) => source.personStates(range.team_id, ids))
    : createEventClassifier(collector, rejected);
  if (disordered) collector.add('file_order', name, 'The rows of its files are not sorted by their keys.');
  try {
    const compared = keyedDifferences(fileRows, sourceRows, {
      columns: shape.columns,
      jsonNullIsNull: manifest.files.some(({ key }) => extensionsOf(key).format === 'jsonl'),
    });
    const earlier = earlierRows(readContext, manifest, shape.id);
    for await (const difference of exceptEarlier(compared, earlier)) await classifier.add(difference);
    await classifier.finish();
  } catch (error) {
    if (!disordered || !(error instanceof OutOfOrder)) throw error;
    source_rows = null;
    collector.note(
      `Its rows were not compared, because more than ${maxSortableRows} unsorted rows are not supported.`,
    );
  }
  await noteKeptRows(context, range, manifest.fingerprint, collector);
  if (ids) await reportRepeated(ids, rereadRows(readContext, manifest), collector);
  return { found, collector, ...totals, source_rows, hasKeys, disordered, misplacedRows };
}

/** Reads the rows of a manifest's files again, with keys only. Problems of the files have been reported already. */
export function rereadRows(
  readContext: Pick<FileReadContext, 'reader' | 'signal'>,
  manifest: Manifest,
): AsyncGenerator<ComparedRow> {
  const ignored = createFindingCollector(intervalOf(manifest), '');
  const shape = { id: idColumnOf(manifest), columns: [] };
  return checkedRows(
    {
      ...readContext,
      collector: ignored,
      totals: { rows: 0, bytes: 0 },
      isExpired: () => Promise.resolve(false),
      createFingerprint: null,
    },
    manifest.files,
    shape,
  );
}

async function reportRepeated(
  ids: RepeatedIds,
  again: AsyncGenerator<ComparedRow>,
  collector: FindingCollector,
): Promise<void> {
  const mayBeRepeated = ids.findRepeated();
  if (!mayBeRepeated) return;
  const seen = new Set<string>();
  for await (const row of again) {
    if (!mayBeRepeated(row.id)) continue;
    if (seen.has(row.id)) collector.row('duplicate', row);
    seen.add(row.id);
  }
}
