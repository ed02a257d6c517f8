import type { Policies } from '../decisions/policies.ts';
import type { OpenLocation } from '../destination/open_destination.ts';
import type { ReadSelection } from '../destination/config_versions.ts';
import type { FileKeeper } from '../export/publish_target.ts';
import type { Journal } from '../journal/journal.ts';
import type { Source } from '../source/source.ts';
import type { Logger } from '../telemetry/logger.ts';

/** Dependencies of the maintenance tasks. */
export interface MaintenanceDependencies {
  readonly journal: Journal;
  readonly policies: Pick<Policies, 'maintenance'>;
  readonly source: Source;
  readonly readSelection: ReadSelection;
  readonly openLocation: OpenLocation;
  /** What else needs files, such as tables. Each clean-up of an export creates its own. */
  readonly keepers: readonly ((signal: AbortSignal) => FileKeeper)[];
  readonly backfills: {
    /** Starts the workflow of a backfill, or wakes it when it runs. */
    start(backfillId: string): Promise<void>;
  };
  readonly logger: Logger;
}
