import type { Settings } from '../config/settings.ts';
import type { RunRecorder } from '../decisions/run_recorder/index.ts';
import type { MayShrink } from '../destination/may_shrink.ts';
import type { OpenDestination } from '../destination/open_destination.ts';
import type { OpenLocation } from '../destination/open_location.ts';
import type { ReadSelection } from '../destination/row_selections.ts';
import type { MemoryBudget } from '../encoding/memory_budget.ts';
import type { EncoderPool } from '../encoding/encoder.ts';
import type { Source } from '../source/source.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { PerExportLimit } from './per_export_limit.ts';
import type { StageObserver } from './stage_clock.ts';

/** Dependencies of an export. */
export interface ExportDependencies {
  readonly recorder: RunRecorder;
  readonly source: Source;
  readonly encoders: EncoderPool;
  /** Shared by all exports of the process. */
  readonly memory: MemoryBudget;
  readonly perExportLimit: PerExportLimit;
  readonly openDestination: OpenDestination;
  /** Opens what earlier generations left in a bucket, with retries. */
  readonly openLocation: OpenLocation;
  readonly readSelection: ReadSelection;
  readonly mayShrink: MayShrink;
  /** Measures the stages of attempts; nobody in most tests. */
  readonly onStage?: StageObserver;
  readonly logger: Logger;
  readonly settings: Pick<
    Settings,
    | 'EXPORTD_ENCODER_THREADS'
    | 'EXPORTD_MAX_REJECTED_ROWS'
    | 'EXPORTD_PARTS_PER_EXECUTION'
    | 'EXPORTD_SOURCE_PAGE_SIZE'
  >;
}
