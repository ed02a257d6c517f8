import type { Connection } from '../journal/database.ts';
import type { StoredEvent } from '../journal/stored_event.ts';
import { backfillsProjection } from './backfills/index.ts';
import { batchExportsProjection } from './batch_exports/index.ts';
import { destinationObjectsProjection } from './destination_objects/index.ts';
import type { FoldedState } from '../journal/projector.ts';
import type { Projection } from './projection.ts';
import { rechecksProjection } from './rechecks/index.ts';
import { runsProjection } from './runs/index.ts';
import { streamStatesProjection } from './stream_states/index.ts';

/** Every read model; a new one is a folder and a line here. Those further down may read those above. */
export const projections: readonly Projection[] = [
  streamStatesProjection,
  batchExportsProjection,
  runsProjection,
  backfillsProjection,
  destinationObjectsProjection,
  rechecksProjection,
];

/** Appends take this advisory lock shared; a rebuild of the projections takes it alone. */
export const projectionLock = 7_116_201;

/** Folds a stored event into every read model, in the append's own transaction. See `Projection.apply`. */
export async function applyToProjections(
  connection: Connection,
  event: StoredEvent,
  folded?: FoldedState,
): Promise<void> {
  for (const projection of projections) await projection.apply(connection, event, folded);
}
