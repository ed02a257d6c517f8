import type { Settings } from '../src/config/settings.ts';
import type { Policies } from '../src/decisions/policies.ts';
import type { OpenPlace } from '../src/destination/open_place.ts';
import type { SelectionOf } from '../src/destination/row_selections.ts';
import type { Journal } from '../src/journal/journal.ts';
import type { Source } from '../src/source/source.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import type { ScheduleSignaller } from '../src/temporal/schedule_client.ts';
import type { ActivityContext } from './activity_context.ts';

/** What the activities of the upkeep work with. */
export interface UpkeepDependencies {
  readonly journal: Journal;
  readonly policies: Pick<Policies, 'upkeep'>;
  readonly source: Source;
  readonly selectionOf: SelectionOf;
  readonly openPlace: OpenPlace;
  readonly schedules: ScheduleSignaller;
  readonly logger: Logger;
  readonly settings: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT_MS'>;
  /** Temporal's context of the running activity, unless a test brings its own. */
  readonly context?: () => ActivityContext;
}
