import type { Model } from '../../domain/batch_export.ts';
import { allRows } from '../../source/row_selection.ts';
import type { DryRunService } from './dry_run.ts';

/** How long the source may take to return its first row, in milliseconds. */
export const firstRowTimeoutMs = 3_000;

/** Reads when the first row of a model and project was inserted, by the index of the source. Null without rows. */
export async function findFirstRow(
  { source }: Pick<DryRunService, 'source'>,
  { model, team_id }: { readonly model: Model; readonly team_id: number },
  signal: AbortSignal,
): Promise<string | null> {
  const interval = { start: '1970-01-01T00:00:00.000Z', end: new Date().toISOString() };
  const range = { model, team_id, interval, selection: allRows };
  const block = await source.sample(range, { rows: 1, cutsValues: true, signal });
  return block && new Date(block.first.inserted_at).toISOString();
}
