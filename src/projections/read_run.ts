import type { ExistingRun } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import type { FoldedState } from '../journal/projector.ts';
import type { StoredEvent } from '../journal/stored_event.ts';
import { readStreamState } from './stream_states/index.ts';

/** The run after an event of its stream: as the append knows it, or as stored. */
export async function readRun(
  connection: Connection,
  { stream_id }: StoredEvent,
  folded?: FoldedState,
): Promise<ExistingRun> {
  const known = folded?.state as ExistingRun | undefined;
  return known ?? readStreamState<ExistingRun>(connection, 'run', stream_id);
}
