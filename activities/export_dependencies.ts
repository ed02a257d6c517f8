import type { Settings } from '../src/config/settings.ts';
import type { RunSteps } from '../src/decisions/run_steps.ts';
import type { OpenDestination } from '../src/destination/open_destination.ts';
import type { SelectionOf } from '../src/destination/row_selections.ts';
import type { ByteBudget } from '../src/encoding/byte_budget.ts';
import type { EncoderPool } from '../src/encoding/encoder.ts';
import type { Source } from '../src/source/source.ts';
import type { ExportSlots } from '../src/temporal/export_slots.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import type { ActivityContext } from './activity_context.ts';
import type { ExportTurns } from './export_turns.ts';

/** What the export activities work with. */
export interface ExportDependencies {
  readonly runSteps: RunSteps;
  readonly source: Source;
  readonly encoders: EncoderPool;
  /** The memory that all exports of the process share. */
  readonly memory: ByteBudget;
  /** The slots of the worker that they run on. */
  readonly slots: Pick<ExportSlots, 'lend'>;
  readonly turns: ExportTurns;
  readonly openDestination: OpenDestination;
  readonly selectionOf: SelectionOf;
  readonly logger: Logger;
  readonly settings: Pick<
    Settings,
    | 'EXPORTD_HEARTBEAT_TIMEOUT_MS'
    | 'EXPORTD_ENCODER_THREADS'
    | 'EXPORTD_PARTS_PER_EXECUTION'
    | 'EXPORTD_REJECTED_ROWS_MAX'
    | 'EXPORTD_SLOT_LENT_AFTER_MS'
  >;
  /** Temporal's context of the running activity, unless a test brings its own. */
  readonly context?: () => ActivityContext;
}
