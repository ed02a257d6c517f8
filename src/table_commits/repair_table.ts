import type { NewCommit } from '../tables/commit.ts';
import { newestVersion, readCommit, writeCommit } from '../tables/log.ts';
import { finishRepair, repairOf, type TableRepairOutcome } from '../tables/repair.ts';
import { tableError } from '../tables/table_error.ts';
import {
  compareTable,
  findMissingObjects,
  type LocationDependencies,
  readCurrentManifests,
  readTime,
  type TableDifferences,
  type TableOfExport,
  withTable,
} from './check_table.ts';
import { createRepairRecorder } from './recorded_commits.ts';

interface RepairCall {
  readonly batchExportId: string;
  /** A repair that is repeated with its id writes one version. */
  readonly repairId: string;
  readonly signal: AbortSignal;
}

/** How many other commits a repair may lose a version to. */
const maxRounds = 20;

/**
 * Makes the table of an export what its current manifests say, with one version, once however often it is repeated: it is planned
 * in the database, sent with `If-None-Match`, and recorded. The files of intervals whose runs are active stay as they are.
 * @throws CannotVerify, DestinationError
 */
export const repairTable = (
  dependencies: LocationDependencies,
  call: RepairCall,
): Promise<TableRepairOutcome> =>
  withTable(dependencies, call.batchExportId, (found) => repair(dependencies, found, call));

async function repair(
  dependencies: LocationDependencies,
  { definition, table }: TableOfExport,
  call: RepairCall,
): Promise<TableRepairOutcome> {
  const { repairId, signal } = call;
  const { location } = table;
  const repairs = createRepairRecorder(dependencies.pool, definition.batch_export_id, repairId);
  await table.requireConditionalWrites(signal);
  for (let round = 0; round < maxRounds; round += 1) {
    const found = await repairs.find();
    const planned = found?.location === location ? found : undefined;
    if (planned) {
      const commit = await readCommit(table, planned.version, signal);
      if (commit?.repair_id === repairId) {
        const { version, etag, adds, removes } = commit;
        if (planned.etag === null) await repairs.record({ version, etag, adds, removes });
        await finishRepair(table, version, signal);
        return { version, adds, removes };
      }
    }
    const since = await readTime(dependencies.pool);
    const manifests = await readCurrentManifests(dependencies, definition, signal);
    const context = { ...dependencies, definition, table, signal, since, range: { from: null, to: null } };
    const differences = await compareTable(context, manifests);
    const wanted = await commitOf(dependencies, { definition, table, differences, call });
    if (!wanted) return { version: null, adds: 0, removes: 0 };
    const { version, adds, removes } = wanted;
    await repairs.plan({ location, version });
    const etag = await writeCommit(table, wanted, signal);
    if (etag === null) continue;
    await repairs.record({ version, etag, adds, removes });
    await finishRepair(table, version, signal);
    return { version, adds, removes };
  }
  throw tableError('TableBusy', 'Other commits were written to the table while it was repaired. Repeat it.');
}

/** @returns null if nothing differs @throws DestinationError when the table cannot be what the manifests say */
async function commitOf(
  dependencies: LocationDependencies,
  {
    definition,
    table,
    differences,
    call: { repairId, signal },
  }: TableOfExport & {
    readonly differences: TableDifferences;
    readonly call: RepairCall;
  },
): Promise<NewCommit | null> {
  const { damage, snapshot, lost, overwritten, missing, unexpected, wanted, columns, left } = differences;
  // A log with a gap is no table: the version has everything, and its checkpoint makes readers start there.
  const isWhole = snapshot === null || lost !== null;
  if (!isWhole && overwritten.length === 0 && missing.length === 0 && unexpected.length === 0) return null;
  if (!snapshot && !damage && lost === null && wanted.length === 0) return null;
  const isMixed = isWhole || unexpected.some(({ interval }) => interval === null);
  if (isMixed && left.length > 0)
    throw tableError(
      'TableBusy',
      `The table ${table.name} cannot be repaired now: of ${left.length} intervals, such as ${left[0]?.start} to ${left[0]?.end}, a run is active, or has just ended, or the files are not those of a table. Pause the export and wait for its runs, or export these intervals again into another prefix.`,
    );
  const adds = isWhole ? wanted : missing;
  const absent = await findMissingObjects(dependencies, definition, {
    table,
    signal,
    keys: adds.map(({ key }) => key),
  });
  if (absent.length > 0)
    throw tableError(
      'TableDamaged',
      `The table ${table.name} cannot be repaired: ${absent.length} files of its manifests do not exist, such as ${absent[0]}. Restore them, or export their intervals again into another prefix.`,
    );
  const former = isWhole ? null : snapshot;
  const version = (former?.version ?? Math.max(await newestVersion(table, signal), lost ?? -1)) + 1;
  return repairOf(table, former, version, {
    batch_export_id: definition.batch_export_id,
    repair_id: repairId,
    columns: adds.length === 0 ? [] : columns,
    adds,
    removes: isWhole ? [] : unexpected,
    now: Date.now(),
  });
}
