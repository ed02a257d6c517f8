import { bounds } from '../config/bounds.ts';
import { parseS3Config } from '../destination/config.ts';
import { readConfig, selectionOfConfig } from '../destination/config_versions.ts';
import { DestinationError } from '../destination/destination.ts';
import type { Manifest } from '../destination/manifest.ts';
import { openS3 } from '../destination/open_destination.ts';
import { tableOf, type TableStore } from '../tables/table_store.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { writesParquet } from '../encoding/parquet/file.ts';
import type { Pool } from '../journal/database.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import { filesOf, type TableFile, type WantedFile } from '../tables/files.ts';
import { readSnapshot, type Snapshot } from '../tables/log.ts';
import { overlaps, type TimeRange } from '../verify/gaps.ts';
import {
  createVersionFinder,
  type ExportDefinition,
  foreignManifestBecause,
  intervalOf,
  type LocationDependencies,
  openLocations,
  readDefinition,
} from '../verify/locations.ts';
import { listManifests, readManifest } from '../verify/manifests.ts';
import { CannotVerify, type Finding, type FindingKind } from '../verify/report.ts';
import type { TargetCheck } from '../verify/verify_batch_export.ts';
import { clearTableFault, storeTableFault } from './recorded_commits.ts';
import { filesHaveKeys } from '../source/read_fingerprints.ts';

/** What reading a table needs. */
export type { LocationDependencies };

/** The table of an export, in the bucket and folder that it writes to now. */
interface OpenTable {
  readonly table: TableStore;
  close(): void;
}

/** Opens the table of an export; null if it has none. @throws CommandRejected, SecretUnreadable, DestinationError */
async function openTable(
  { pool, keyRing, settings, onError }: LocationDependencies,
  { team_id, batch_export_id, config_version, model }: ExportDefinition,
): Promise<OpenTable | null> {
  const { config } = await readConfig(pool, keyRing, batch_export_id, config_version);
  const destination = openS3(parseS3Config(config, settings), { settings, team_id, onError });
  const table = tableOf(destination, model);
  if (table) return { table, close: destination.close };
  destination.close();
  return null;
}

/** A table, and the export that it is of. */
export interface TableOfExport {
  readonly definition: ExportDefinition;
  readonly table: TableStore;
}

/** Uses the table of an export. @throws CannotVerify without one; what `openTable` and `use` throw */
export async function withTable<Result>(
  dependencies: LocationDependencies,
  batchExportId: string,
  use: (found: TableOfExport) => Promise<Result>,
): Promise<Result> {
  const definition = await readDefinition(dependencies.pool, batchExportId);
  const opened = await openTable(dependencies, definition);
  if (!opened) throw new CannotVerify('The export has no table: its table_format is null.');
  try {
    return await use({ definition, table: opened.table });
  } finally {
    opened.close();
  }
}

/** What people are told who ask for a table that has no version yet. */
export const absentTable = ({ name }: TableStore): CannotVerify =>
  new CannotVerify(`There is no table at ${name} yet. The first run with rows creates it.`);

/** In what a table differs from the current manifests of its export. */
export interface TableDifferences {
  /** Null if there is no table, or `damage` is why it cannot be read. */
  readonly snapshot: Snapshot | null;
  readonly damage: DestinationError | null;
  /** Versions that another writer has replaced since exportd wrote them. */
  readonly overwritten: readonly number[];
  /** The newest version that exportd wrote, if the log has no such version. */
  readonly lost: number | null;
  /** Files of manifests that the table has not. */
  readonly missing: readonly WantedFile[];
  /** Files of the table that no manifest lists. */
  readonly unexpected: readonly TableFile[];
  /** All files of the manifests that the table can have. */
  readonly wanted: readonly WantedFile[];
  readonly columns: readonly ExportedColumn[];
  /** Intervals that are not compared: their runs are active, or their files are not those of a table. */
  readonly left: readonly DataInterval[];
}

/** What comparing a table needs. */
interface TableContext {
  readonly pool: Pool;
  readonly definition: ExportDefinition;
  readonly table: TableStore;
  readonly signal: AbortSignal;
  /** The time of the database before the manifests were read. */
  readonly since: string;
  /** Only what overlaps it is compared. */
  readonly range: TimeRange;
}

const keyOf = ({ start, end }: DataInterval): string => `${start} ${end}`;

/**
 * Compares a table with the manifests, of which there is one for each interval, and with the journal. The table is read after
 * them, so that it has what they have unless a run is in between: intervals whose runs were active meanwhile are left out.
 * @throws DestinationError when the bucket cannot be read
 */
export async function compareTable(
  { pool, definition, table, signal, since, range }: TableContext,
  manifests: readonly Manifest[],
): Promise<TableDifferences> {
  const { batch_export_id, model } = definition;
  const changing = await readChangingIntervals(pool, batch_export_id, since);
  const { repaired, commits } = await readTableCommits(pool, batch_export_id, table.location);
  const read = await readSnapshot(table, signal)
    .then((snapshot) => ({ snapshot, damage: null }))
    .catch((error: unknown) => {
      const isDamaged = error instanceof DestinationError && damages.has(error.type);
      if (!isDamaged) throw error;
      return { snapshot: null, damage: error };
    });
  const { snapshot } = read;
  const committed = new Set(
    commits.map(({ interval, generation }) => `${keyOf(interval)} ${String(generation)}`),
  );
  const left = new Map(changing.map((interval) => [keyOf(interval), interval]));
  const columns = new Map<string, ExportedColumn>();
  const wanted = new Map<string, WantedFile>();
  /** Files that may be in the table and need not. */
  const allowed = new Set<string>();
  const hasKeys = keyFinder(pool, definition);
  const isBelow = (key: string): boolean => key.startsWith(`${table.root}/`);
  for (const manifest of manifests) {
    const interval = intervalOf(manifest);
    if (
      manifest.model !== model ||
      !writesParquet(manifest.encoder) ||
      !manifest.files.every(({ key }) => isBelow(key))
    )
      left.set(keyOf(interval), interval);
    if (left.has(keyOf(interval))) continue;
    for (const { name, type } of manifest.columns) columns.set(name, { name, type: type as ColumnType });
    for (const { key, rows, bytes, first, last, generation = manifest.generation } of manifest.files)
      wanted.set(key, {
        key,
        rows,
        bytes,
        first,
        last,
        generation,
        interval,
        hasKeys: await hasKeys(manifest.config_version),
      });
    for (const { key, rows, bytes, generation } of manifest.earlier) {
      allowed.add(key);
      if (isBelow(key) && committed.has(`${keyOf(interval)} ${String(generation)}`))
        wanted.set(key, {
          key,
          rows,
          bytes,
          generation,
          interval,
          first: null,
          last: null,
          hasKeys: false,
        });
    }
  }
  const live = new Map((snapshot ? filesOf(table, snapshot.state) : []).map((file) => [file.key, file]));
  const isCompared = ({ interval }: TableFile): boolean =>
    interval === null
      ? range.from === null && range.to === null
      : overlaps(interval, range) && !left.has(keyOf(interval));
  const newest = commits.at(-1)?.version ?? repaired?.version ?? -1;
  const isNewer = ({ version }: { readonly version: number }): boolean => version > (repaired?.version ?? -1);
  const changed = [...commits.filter(isNewer), ...(repaired ? [repaired] : [])].filter(
    ({ version, etag }) => {
      const found = snapshot?.etags.get(version) ?? '';
      return found !== '' && etag !== '' && found !== etag;
    },
  );
  return {
    ...read,
    overwritten: changed.map(({ version }) => version).sort((one, other) => one - other),
    lost: !read.damage && (snapshot?.version ?? -1) < newest ? newest : null,
    missing: read.damage ? [] : [...wanted.values()].filter(({ key }) => !live.has(key)),
    unexpected: [...live.values()].filter(
      (file) => isCompared(file) && !wanted.has(file.key) && !allowed.has(file.key),
    ),
    wanted: [...wanted.values()],
    columns: [...columns.values()],
    left: [...left.values()],
  };
}

/** Errors that say what is wrong with the log itself. */
const damages: ReadonlySet<string> = new Set(['TableDamaged', 'TableTooLarge']);

/** Whether the files of a config version have the sort keys of their rows. */
function keyFinder(pool: Pool, definition: ExportDefinition): (version: number) => Promise<boolean> {
  const find = createVersionFinder(pool, definition);
  const known = new Map<number, Promise<boolean>>();
  const read = async (version: number): Promise<boolean> => {
    const found = await find(version);
    return found !== undefined && filesHaveKeys({ ...definition, selection: selectionOfConfig(found) });
  };
  return (version) => {
    const result = known.get(version) ?? read(version);
    known.set(version, result);
    return result;
  };
}

/** A commit that a run recorded. */
interface RecordedCommit {
  readonly version: number;
  readonly etag: string;
  readonly interval: DataInterval;
  readonly generation: number;
}

/** Reads the commits to a table that runs recorded since the last repair. */
async function readTableCommits(
  pool: Pool,
  batchExportId: string,
  location: string,
): Promise<{
  readonly repaired: Pick<RecordedCommit, 'version' | 'etag'> | null;
  readonly commits: readonly RecordedCommit[];
}> {
  const newest = await pool.query<Pick<RecordedCommit, 'version' | 'etag'>>(
    `select version, etag from exportd.table_commits
     where batch_export_id = $1 and location = $2 and etag is not null and is_repair
     order by recorded_at desc limit 1`,
    [batchExportId, location],
  );
  const { rows } = await pool.query<Omit<RecordedCommit, 'interval'> & DataInterval>(
    `select version, etag, generation, data_interval_start as start, data_interval_end as end
     from exportd.table_commits
     where batch_export_id = $1 and location = $2 and etag is not null and not is_repair order by version`,
    [batchExportId, location],
  );
  return {
    repaired: newest.rows[0] ?? null,
    commits: rows.map(({ start, end, ...commit }) => ({ ...commit, interval: { start, end } })),
  };
}

/** Reads the intervals of which a run is active, or has ended since a time: their manifests and the table may differ. */
async function readChangingIntervals(
  pool: Pool,
  batchExportId: string,
  since: string,
): Promise<DataInterval[]> {
  const { rows } = await pool.query<DataInterval>(
    `select distinct data_interval_start as start, data_interval_end as end from exportd.batch_export_runs
     where batch_export_id = $1 and generation > 0 and (finished_at is null or finished_at >= $2)`,
    [batchExportId, since],
  );
  return rows;
}

/** Manifests that are read at a time. */
const maxReads = 16;

/**
 * Reads the current manifests of an export in its bucket.
 * @throws CannotVerify when there are too many; DestinationError, errors of opening its buckets
 */
export async function readCurrentManifests(
  dependencies: LocationDependencies,
  definition: ExportDefinition,
  signal: AbortSignal,
): Promise<Manifest[]> {
  const { locations } = await openLocations(dependencies, definition);
  try {
    const current = locations.filter((location) => location.current);
    const range = { from: null, to: null };
    const context = { definition, findVersion: createVersionFinder(dependencies.pool, definition) };
    const { intervals } = await listManifests(current, range, signal, bounds.tableManifests);
    const manifests: Manifest[] = [];
    const waiting = intervals.values();
    const readNext = async (): Promise<void> => {
      for (const { names, start, end } of waiting) {
        const ofInterval: Manifest[] = [];
        for (const name of names) {
          const { manifest, problem = '' } = (await readManifest(name, signal)) ?? {};
          if (!manifest && problem !== '') throw new CannotVerify(`${name.name}: ${problem}`);
          if (
            manifest &&
            (await foreignManifestBecause(context, name.location, { start, end }, manifest)) === null
          )
            ofInterval.push(manifest);
        }
        manifests.push(...ofInterval.sort((one, other) => other.generation - one.generation).slice(0, 1));
      }
    };
    await Promise.all(Array.from({ length: maxReads }, readNext));
    return manifests;
  } finally {
    for (const { reader } of locations) reader.close();
  }
}

/** Finds which of the files do not exist. @throws DestinationError */
export async function findMissingObjects(
  dependencies: LocationDependencies,
  definition: ExportDefinition,
  {
    table,
    keys,
    signal,
  }: { readonly table: TableStore; readonly keys: Iterable<string>; readonly signal: AbortSignal },
): Promise<string[]> {
  const missing = new Set(keys);
  const { locations } = await openLocations(dependencies, definition);
  try {
    const current = locations.find((location) => location.current);
    if (current)
      for await (const key of current.reader.listKeys(`${table.root}/`, signal)) missing.delete(key);
  } finally {
    for (const { reader } of locations) reader.close();
  }
  return [...missing];
}

/** The result of checking a table. */
export interface TableCheck {
  readonly ok: boolean;
  /** Null if there is none, or it cannot be read. */
  readonly version: number | null;
  readonly manifests: number;
  readonly files: number;
  /** Intervals that were not compared, because a run of them is active or their files are not those of a table. */
  readonly left_intervals: number;
  readonly findings: readonly Finding[];
}

/**
 * Compares the table of an export with its manifests, its objects and the journal. What it finds becomes the condition of the
 * export.
 * @throws CannotVerify, DestinationError
 */
export const checkTable = (
  dependencies: LocationDependencies,
  batchExportId: string,
  signal: AbortSignal,
): Promise<TableCheck> =>
  withTable(dependencies, batchExportId, async ({ definition, table }) => {
    const since = await readTime(dependencies.pool);
    const manifests = await readCurrentManifests(dependencies, definition, signal);
    const context = { ...dependencies, definition, table, signal, since, range: { from: null, to: null } };
    const differences = await compareTable(context, manifests);
    const { snapshot } = differences;
    const live = (snapshot ? filesOf(table, snapshot.state) : []).map(({ key }) => key);
    const objects = await findMissingObjects(dependencies, definition, { table, keys: live, signal });
    const findings = tableFindings(table, differences, objects);
    const [first] = findings;
    if (first)
      await storeTableFault(dependencies.pool, definition, { type: 'TableChanged', message: first.detail });
    else await clearTableFault(dependencies.pool, batchExportId);
    return {
      ok: findings.length === 0,
      version: snapshot?.version ?? null,
      manifests: manifests.length,
      files: live.length,
      left_intervals: differences.left.length,
      findings,
    };
  });

/** Compares the table of an export with its manifests as a part of its verification. No finding without a table. */
export const checkTarget: TargetCheck = async (dependencies, context, manifests) => {
  const opened = await openTable(dependencies, context.definition);
  if (!opened) return [];
  const { table } = opened;
  try {
    return tableFindings(table, await compareTable({ ...dependencies, ...context, table }, manifests));
  } finally {
    opened.close();
  }
};

/** The time of the control database. */
export async function readTime(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ now: string }>('select clock_timestamp() as now');
  return rows[0]?.now ?? '';
}

/** How many files a finding names. */
const maxNamed = 20;

/** What is wrong with a table, for people. */
function tableFindings(
  { name }: Pick<TableStore, 'name'>,
  differences: TableDifferences,
  missingObjects: readonly string[] = [],
): Finding[] {
  const { damage, overwritten, lost, missing, unexpected } = differences;
  const finding = (
    kind: FindingKind,
    count: number,
    detail: string,
    { start, end }: { start: string | null; end: string | null } = { start: null, end: null },
    object = name,
  ): Finding => ({ kind, start, end, object, count, rows: [], detail });
  const files = (
    kind: FindingKind,
    found: readonly { readonly key: string; readonly interval: DataInterval | null }[],
    detail: string,
  ): Finding[] => [
    ...found
      .slice(0, maxNamed)
      .map(({ key, interval }) => finding(kind, 1, detail, interval ?? undefined, key)),
    ...(found.length > maxNamed
      ? [
          finding(
            kind,
            found.length - maxNamed,
            `${found.length - maxNamed} more of this kind are not listed.`,
          ),
        ]
      : []),
  ];
  return [
    ...(damage ? [finding('table_unreadable', 1, damage.message)] : []),
    ...(lost === null
      ? []
      : [finding('table_unreadable', 1, `The log of the table lacks version ${lost}, which exportd wrote.`)]),
    ...overwritten.map((version) =>
      finding(
        'table_overwritten',
        1,
        `Version ${version} of the table is not the one that exportd wrote: another writer has overwritten it, as Spark does on S3.`,
      ),
    ),
    ...files('table_missing', missing, 'The table does not have this file of a manifest.'),
    ...files('table_unexpected', unexpected, 'The table has this file, and no manifest lists it.'),
    ...files(
      'table_file_missing',
      missingObjects.map((key) => ({ key, interval: null })),
      'The table needs this file, and it does not exist.',
    ),
  ];
}
