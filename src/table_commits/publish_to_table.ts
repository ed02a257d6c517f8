import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { ReadSelection } from '../destination/config_versions.ts';
import { DestinationError } from '../destination/destination.ts';
import { listedFingerprint } from '../destination/manifest.ts';
import { tableOf, type TableStore } from '../tables/table_store.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import { requireGeneration, withBase } from '../domain/run.ts';
import {
  earlierGenerationsOf,
  type ExistingRun,
  exportedFingerprint,
  finishedOf,
} from '../domain/run_state.ts';
import { writesParquet } from '../encoding/parquet/file.ts';
import { intervalOf } from '../export/run_interval.ts';
import type { Publication, PublishTarget } from '../export/publish_target.ts';
import { additionOf, commitOf, type NewCommit, type TablePublication } from '../tables/commit.ts';
import { type FoundCommit, readCommit, readSnapshot, type Snapshot, writeCommit } from '../tables/log.ts';
import { isMaintained, maintainLog } from '../tables/retention.ts';
import { tableError } from '../tables/table_error.ts';
import { type NewestTableCommit, tableCommitOf, type TableCommitRecorder } from './recorded_commits.ts';
import { filesHaveKeys } from '../source/read_fingerprints.ts';

/** What committing to a table needs. */
interface TableDependencies {
  readonly recorder: Pick<RunRecorder, 'read' | 'readReplacedFiles' | 'log'>;
  readonly commits: TableCommitRecorder;
  readonly readSelection: ReadSelection;
}

/** A run whose files a table gets. */
interface TableRun extends Publication {
  readonly dependencies: TableDependencies;
}

/** The tables of destinations as what gets the files of runs besides manifests. */
export const createTableTarget = (dependencies: TableDependencies): PublishTarget => ({
  hasFilesOf: async (replaced, run) => {
    const table = await dependencies.commits.readTableLocation(run);
    return table === null || isInTable(replaced, table);
  },
  open: async (publication, { checks }) => {
    const call = { ...publication, dependencies };
    const checked = checks ? await checkTable(call) : null;
    return { commit: () => commitToTable(call, checked) };
  },
});

const tableOfRun = ({ destination, run }: Pick<TableRun, 'destination' | 'run'>): TableStore | null =>
  tableOf(destination, run.spec.model);

/** Whether a run neither adds nor removes files: an interval without rows. */
const isNothing = ({ files, replaced }: TableRun): boolean => files.length === 0 && replaced === null;

/** Whether a run replaces files that the table has, as far as the journal knows. */
function isInTable({ adopted_by, run }: ReplacedRun, location: string): boolean {
  const commit = tableCommitOf(run);
  return adopted_by === null && commit?.location === location && commit.etag !== null;
}

/** A table as it was before the manifest was written. */
interface CheckedTable {
  readonly snapshot: Snapshot | null;
  /** The newest commit of the journal then. */
  readonly newest: NewestTableCommit | undefined;
}

/**
 * Checks before the manifest is written that the table would accept the commit of the run, so that manifest and table do not
 * differ. Does nothing without a table, and for a run that only adds files to what it knows.
 * @returns the table for `commitToTable`; null if it was not read
 * @throws DestinationError
 */
async function checkTable(call: TableRun): Promise<CheckedTable | null> {
  const table = tableOfRun(call);
  return table && !isNothing(call) ? reportingErrors(call, () => check(call, table)) : null;
}

/** Stores for the condition of the export that its table is not what exportd made it. */
async function reportingErrors<Result>(
  { dependencies: { commits }, run }: TableRun,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DestinationError) await commits.reportTableError(run, error);
    throw error;
  }
}

async function check(call: TableRun, table: TableStore): Promise<CheckedTable | null> {
  await table.requireConditionalWrites(call.signal);
  const newest = await call.dependencies.commits.readNewestTableCommit(call.run, table.location);
  if (await onlyAdds(call, newest)) return null;
  const snapshot = await readTable(table, newest, call.signal);
  commitOf(table, snapshot, await publicationOf(call, call.run, table));
  return { snapshot, newest };
}

/** How many other commits a run may lose a version to in one attempt. */
const maxRounds = 50;
/** After so many the table is read: the journal may lack versions, as after it was restored. */
const maxQuickRounds = 4;

/**
 * Commits the files of a run to the table of its destination, once however often it is repeated. The version is planned in
 * the journal before the commit is sent. An attempt that finds a plan reads that version: if it is the run's it is recorded, if it is
 * missing it is sent again, and if another commit has it the next version is planned. A commit that arrives late finds its
 * version taken. Does nothing without a table, and if the table is as the run wants it.
 * @param checked what `checkTable` has read. A commit that came since takes the version, so that the table is read again.
 * @throws DestinationError, RunEnded, GenerationSuperseded
 */
async function commitToTable(call: TableRun, checked: CheckedTable | null): Promise<void> {
  const table = tableOfRun(call);
  if (table && !isNothing(call)) await reportingErrors(call, () => commit(call, table, checked));
}

async function commit(call: TableRun, table: TableStore, checked: CheckedTable | null): Promise<void> {
  const { dependencies, runId, signal } = call;
  const { recorder, commits } = dependencies;
  const { generation } = call.run;
  await table.requireConditionalWrites(signal);
  for (let round = 0; round < maxRounds; round += 1) {
    const run = requireGeneration(await recorder.read(runId), generation);
    const known = tableCommitOf(run);
    const planned = known?.location === table.location ? known : undefined;
    if (planned && planned.etag !== null) return;
    const found = planned && (await readCommit(table, planned.version, signal));
    if (found && isOwn(found, runId, run)) {
      await record(call, table, { ...found, ...countsOf(call) });
      return;
    }
    const newest = await commits.readNewestTableCommit(run, table.location);
    const publication = await publicationOf(call, run, table);
    const next =
      round < maxQuickRounds ? await quickVersion(call, newest, planned ? found : undefined) : null;
    let wanted: NewCommit | null;
    if (next !== null) wanted = additionOf(table, next, publication);
    else {
      const isKnown = checked !== null && !planned && checked.newest?.version === newest?.version;
      const snapshot = isKnown ? checked.snapshot : await readTable(table, newest, signal);
      // Another attempt of the run may have committed since; it has planned that before.
      const now = tableCommitOf(await recorder.read(runId));
      if (now?.version !== known?.version || now?.etag !== known?.etag) continue;
      if (planned && (snapshot?.version ?? -1) + 1 < planned.version) throw versionsLost(table);
      wanted = commitOf(table, snapshot, publication);
    }
    if (!wanted) return;
    await commits.planTableCommit(runId, generation, { location: table.location, version: wanted.version });
    const etag = await writeCommit(table, wanted, signal);
    if (etag === null) continue;
    await record(call, table, { ...wanted, etag });
    await maintain(call, table, wanted.version);
    return;
  }
  throw new DestinationError(
    'TableBusy',
    `${maxRounds} other commits were written to the table while this one was tried.`,
    { transient: true },
  );
}

/** Whether a commit is that of the run, or of one whose files it inherited. */
const isOwn = (
  { publication }: FoundCommit,
  runId: string,
  { generation, claimed_by }: ExistingRun,
): boolean => publication?.generation === generation && [runId, ...claimed_by].includes(publication.run_id);

/** What a commit whose response was lost has, as far as it is known without reading the table. */
const countsOf = ({ files, replaced }: TableRun) => ({
  adds: files.length,
  removes: replaced ? replaced.run.ranges.reduce((sum, range) => sum + range.files.count, 0) : 0,
});

/** Whether a run only adds files, with the columns of the newest commit, so that the table need not be read. */
async function onlyAdds(
  { dependencies: { readSelection, commits }, run: { spec }, replaced, selection, destination }: TableRun,
  newest: NewestTableCommit | undefined,
): Promise<boolean> {
  if (replaced || newest?.model !== spec.model || newest.config_version === null) return false;
  const { config_version } = newest;
  if (config_version === spec.config_version) return true;
  const version = { config_version, batch_export_id: spec.batch_export_id };
  const { query } = await readSelection(version);
  const partitions = await commits.readPartitions(version);
  return (
    JSON.stringify(query) === JSON.stringify(selection.query) &&
    String(partitions) === String(destination.partitionColumns)
  );
}

/**
 * The next version if nothing of the table has to be read for it: that after the newest one of the journal, or after a commit
 * of another run that got the planned version.
 * @param found the commit with the planned version; undefined if none is planned, null if it is missing
 */
async function quickVersion(
  call: TableRun,
  newest: NewestTableCommit | undefined,
  found: FoundCommit | null | undefined,
): Promise<number | null> {
  if (!newest || found === null || !(await onlyAdds(call, newest))) return null;
  if (found === undefined) return newest.version + 1;
  return found.isPlain ? Math.max(newest.version, found.version) + 1 : null;
}

/** Reads the table. @throws DestinationError `TableOverwritten`, `TableChanged` */
async function readTable(
  table: TableStore,
  newest: NewestTableCommit | undefined,
  signal: AbortSignal,
): Promise<Snapshot | null> {
  const snapshot = await readSnapshot(table, signal);
  if (newest) requireUnchanged(table, snapshot, newest);
  return snapshot;
}

/** @throws DestinationError when the log is not that which the journal knows: not every writer asks before it writes */
function requireUnchanged(
  table: TableStore,
  snapshot: Snapshot | null,
  { version, etag }: NewestTableCommit,
): void {
  if (!snapshot || snapshot.version < version) throw versionsLost(table);
  const found = snapshot.etags.get(version);
  if (found === undefined || found === '' || etag === '' || found === etag) return;
  throw tableError(
    'TableOverwritten',
    `Version ${version} of the table ${table.name} is not the one that exportd wrote: another writer has overwritten it, as Spark does on S3. What the version added is not in the table. exportd must be the only writer of the table: stop the other one, and run "exportd table repair".`,
  );
}

const versionsLost = (table: TableStore): DestinationError =>
  tableError(
    'TableChanged',
    `The table ${table.name} lacks versions that exportd wrote: something has deleted them from its log. Restore them, or run "exportd table repair".`,
  );

async function publicationOf(
  { dependencies: { recorder }, runId, replaced, files, columns, selection }: TableRun,
  run: ExistingRun,
  table: TableStore,
): Promise<TablePublication> {
  return {
    batch_export_id: run.spec.batch_export_id,
    run_id: runId,
    generation: run.generation,
    interval: intervalOf(run.spec),
    columns,
    hasKeys: filesHaveKeys({ model: run.spec.model, selection }),
    files,
    earlier: earlierGenerationsOf(run).earlier,
    kept: earlierGenerationsOf(run).kept,
    replaced: replaced && {
      files: await recorder.readReplacedFiles(replaced),
      areInTable: isInTable(replaced, table.location),
      areUnknown: replaced.adopted_by !== null,
      canBeAdded: writesParquet(finishedOf(replaced.run)?.encoder ?? ''),
    },
    fingerprint: listedFingerprint(exportedFingerprint(withBase(run))),
    now: Date.now(),
  };
}

async function record(
  { dependencies: { commits }, runId, run: { generation } }: TableRun,
  { location }: TableStore,
  { version, etag, adds, removes }: { version: number; etag: string; adds: number; removes: number },
): Promise<void> {
  await commits.recordTableCommit(runId, { generation, location, version, etag, adds, removes });
}

/** The commit is there, whatever happens to the checkpoint: the next one is written after as many commits. */
async function maintain(call: TableRun, table: TableStore, version: number): Promise<void> {
  if (!isMaintained(table, version)) return;
  const { dependencies, run, runId, signal } = call;
  const { recorder, commits } = dependencies;
  try {
    const snapshot = await maintainLog(table, signal);
    const newest = await commits.readNewestTableCommit(run, table.location);
    if (newest && snapshot && newest.version <= snapshot.version) requireUnchanged(table, snapshot, newest);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof DestinationError)) throw error;
    await commits.reportTableError(run, error);
    await recorder.log(run, runId, 'WARNING', `The log of the table was not maintained. ${error.message}`);
  }
}
