import { readPublicConfig, selectionOfConfig } from '../../destination/config_versions.ts';
import type { SortKey } from '../../domain/sort_key.ts';
import type { ExistingRun } from '../../domain/run_state.ts';
import type { Pool } from '../../journal/database.ts';
import type { RowFinder } from '../../source/source.ts';
import { sourceError } from '../plugins/errors.ts';
import type { IntervalFile, RowLocationResponse } from './detail_schema.ts';
import { type FileRow, readCompletedRuns, toIntervalFile } from './interval_detail.ts';
import type { IntervalResponse } from './schema.ts';

/**
 * Finds the file of a run's generation whose key range contains a key. The times of keys have one form in UTC, and uuids
 * sort like their text.
 */
async function findFileOfKey(
  pool: Pool,
  runId: string,
  { generation }: Pick<ExistingRun, 'generation'>,
  { inserted_at, id }: SortKey,
): Promise<IntervalFile | undefined> {
  const keyOf = (end: 'first' | 'last') =>
    `((file->'${end}'->>'inserted_at') collate "C", (file->'${end}'->>'id') collate "C")`;
  const { rows } = await pool.query<FileRow>(
    `select range, key, file from exportd.destination_objects
     where run_id = $1 and generation = $2 and file is not null
       and ${keyOf('first')} <= ($3::text, $4::text) and ${keyOf('last')} >= ($3::text, $4::text)
     order by range, position limit 1`,
    [runId, generation, inserted_at, id],
  );
  return rows[0] && toIntervalFile({ ...rows[0].file, key: rows[0].key, range: rows[0].range ?? 0 });
}

/** What finding a row needs. */
interface RowLocationDependencies {
  readonly pool: Pool;
  readonly source: RowFinder;
}

const nowhere = { inserted_at: null, file: null };

/**
 * Says which file of an interval's current manifest holds an event. The source knows when it received the event, and the
 * first and last keys of the files say which of them contains that time. No object is read. @throws ApiError of the source
 */
export async function locateRow(
  { pool, source }: RowLocationDependencies,
  { batch_export_id, team_id }: { readonly batch_export_id: string; readonly team_id: number },
  interval: IntervalResponse,
  uuid: string,
  signal: AbortSignal,
): Promise<RowLocationResponse> {
  const bounds = { start: interval.data_interval_start, end: interval.data_interval_end };
  const completed = await readCompletedRuns(pool, batch_export_id, bounds);
  const current = completed.find(({ id }) => id === interval.manifest_run_id);
  if (!current && interval.history_collapsed)
    return {
      location: 'unsupported',
      ...nowhere,
      detail: 'The history of the interval was collapsed. Its manifest in the bucket names its files.',
    };
  if (!current) return { location: 'not_exported', ...nowhere, detail: 'The interval has no manifest yet.' };
  const { model, config_version } = current.state.spec;
  if (model !== 'events')
    return {
      location: 'unsupported',
      ...nowhere,
      detail: 'Only events can be located: a person moves to another interval with each change.',
    };
  const config = await readPublicConfig(pool, batch_export_id, config_version);
  const selection = selectionOfConfig(config);
  const range = { model, team_id, interval: bounds, selection };
  const key = await source.findEventKey(range, uuid, signal).catch((error: unknown) => {
    throw sourceError(error) ?? error;
  });
  if (!key)
    return {
      location: 'not_in_source',
      ...nowhere,
      detail:
        'The source has no event with this uuid in this interval, or the export does not select it. ' +
        'If it was deleted since, only `exportd verify` finds its file.',
    };
  const file = await findFileOfKey(pool, current.id, current.state, key);
  if (file)
    return {
      location: 'file',
      inserted_at: key.inserted_at,
      file,
      detail: 'The key of the event is between the first and the last key of this file.',
    };
  return {
    location: 'not_in_manifest',
    inserted_at: key.inserted_at,
    file: null,
    detail:
      current.state.rejected_file === null
        ? 'No file has the key of the event, so it arrived after the export. The next comparison with the source finds it.'
        : 'No file has the key of the event: it is among the rejected rows, or it arrived after the export.',
  };
}
