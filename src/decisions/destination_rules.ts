import { configAttribute } from '../destination/config_fields.ts';
import { keysCollide } from '../destination/key_collisions.ts';
import { locationOf } from '../destination/bucket_location.ts';
import type { BatchExportDefinition, LiveBatchExport } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import { canShareIntervals } from '../domain/intervals.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { exportedColumns } from '../source/postgres_source.ts';
import type { ConfigRule } from './config_rule.ts';
import { type ExportWithConfig, readExportsWithConfig } from './exports_with_config.ts';
import { rejectPartitions } from '../destination/partitions.ts';
import { rejectSelectionForModel, selectionOf } from '../destination/selection_config.ts';

/** Whether a change of the definition can affect the result of `checkDestination`. */
export const affectsDestination = (before: BatchExportDefinition, after: BatchExportDefinition): boolean =>
  (['config_version', 'model', 'interval', 'timezone', 'offset_hour', 'offset_day'] as const).some(
    (field) => before[field] !== after[field],
  );

/**
 * Rejects a row selection that does not apply to the export's model, what a rule rejects, and a prefix that produces the same keys as another
 * live (possibly paused) export of the project. Exports of other projects are not compared, or a project could learn of
 * them and keep a prefix from its owner; an object whose key is taken is never overwritten. Call it after the export's
 * events are appended, because it compares read models. It holds a lock until the transaction ends, so of two colliding
 * exports at the same instant one is rejected.
 * @throws CommandRejected with the invalid field of the config.
 */
export async function checkDestination(
  connection: Connection,
  rules: readonly ConfigRule[],
  id: string,
  { definition, revisions }: Pick<LiveBatchExport, 'definition' | 'revisions'>,
): Promise<void> {
  const {
    rows: [owner],
  } = await connection.query<{ team_id: number }>(
    `select team_id, pg_advisory_xact_lock(hashtextextended('destination_keys/' || team_id, 0))
     from exportd.batch_exports where id = $1`,
    [id],
  );
  // Without a row the export is not created.
  if (!owner) return;
  const exports = await readExportsWithConfig(connection, owner.team_id);
  const stored = exports.find((existing) => existing.id === id);
  // Without a stored config the export cannot write.
  if (!stored) return;
  // The state at hand is newer: states are stored at the end of a transaction.
  const own = { ...stored, revisions };
  rejectSelectionForModel(selectionOf(own.config), own.model);
  rejectPartitions(own.config, {
    interval: definition.interval,
    columns: exportedColumns(own.model, { query: own.row_query }),
    hasQuery: own.row_query !== null,
  });
  for (const rule of rules) await rule.check(connection, own, exports);
  const existing = exports.find((other) => other.id !== id && collide(own, other));
  if (existing)
    throw new CommandRejected(
      'invalid_input',
      `The batch export ${existing.id} writes the same keys to this bucket. Use a different prefix.`,
      configAttribute('prefix'),
    );
}

/**
 * Whether two exports write the same keys. No, if this version cannot read one of them: it must not keep others from
 * being created, and what a run finds under its keys is never overwritten.
 */
function collide(one: ExportWithConfig, other: ExportWithConfig): boolean {
  if (one.revisions === null || other.revisions === null) return false;
  try {
    return keysCollide(one, other) && canShareIntervals(one.revisions, other.revisions);
  } catch {
    return false;
  }
}

/** Live exports of two projects that write the same keys. */
interface SharedKeys {
  readonly location: string;
  readonly exports: readonly { readonly id: string; readonly team_id: number }[];
}

/**
 * Finds exports of different projects that write the same keys, for the operator. Neither project learns of the other.
 * Nothing is overwritten: the run that comes second writes to the keys of a later generation.
 */
export async function findSharedKeys(pool: Pool): Promise<SharedKeys[]> {
  const found: SharedKeys[] = [];
  const byLocation = new Map<string, ExportWithConfig[]>();
  for (const one of await readExportsWithConfig(pool, null)) {
    const location = locationOf(one.config);
    const others = byLocation.get(location) ?? [];
    for (const other of others)
      if (other.team_id !== one.team_id && collide(other, one))
        found.push({ location, exports: [other, one].map(({ id, team_id }) => ({ id, team_id })) });
    byLocation.set(location, [...others, one]);
  }
  return found;
}
