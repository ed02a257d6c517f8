import type { BackfillEvent, BackfillState } from './backfill.ts';
import type { BatchExportEvent, BatchExportState } from './batch_export.ts';
import type { StreamType } from './event.ts';
import type { RunState } from './run_state.ts';
import type { RunEvent } from './run_events.ts';

/** The events of each type of stream. */
export interface StreamEvents extends Record<StreamType, unknown> {
  readonly batch_export: BatchExportEvent;
  readonly run: RunEvent;
  readonly backfill: BackfillEvent;
}

/** What they are folded into. */
export interface StreamStates extends Record<StreamType, unknown> {
  readonly batch_export: BatchExportState;
  readonly run: RunState;
  readonly backfill: BackfillState;
}
