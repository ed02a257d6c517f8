import type { Connection } from '../journal/database.ts';
import type { StoredEvent } from '../journal/stored_event.ts';
import { backfillsProjection } from './backfills/index.ts';
import { batchExportsProjection } from './batch_exports/index.ts';
import { destinationObjectsProjection } from './destination_objects/index.ts';
import { intervalsProjection } from './intervals/index.ts';
import type { FoldedState } from '../journal/projector.ts';
import type { Projection } from './projection.ts';
import { runsProjection } from './runs/index.ts';
import { unsettledRunsProjection } from './unsettled_runs/index.ts';
import { streamStatesProjection } from './stream_states/index.ts';

/** All read models. A new one is a folder and a line here. Each may read those above it. */
export const projections: readonly Projection[] = [
  streamStatesProjection,
  batchExportsProjection,
  runsProjection,
  backfillsProjection,
  destinationObjectsProjection,
  unsettledRunsProjection,
  intervalsProjection,
];

/** Advisory lock: appends acquire it shared, a rebuild of the projections exclusively. */
export const projectionLock = 7_116_201;

/** Folds a stored event into all read models, in the transaction of the append. See `Projection.apply`. */
export async function applyToProjections(
  connection: Connection,
  event: StoredEvent,
  folded?: FoldedState,
): Promise<void> {
  for (const projection of projections) await projection.apply(connection, event, folded);
}
